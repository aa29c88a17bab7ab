"""Curves as pictures: one file for each thing that is varied, one panel for each thing that is measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Curve, Section

_PANELS_A_ROW = 2


def draw(sections: Sequence[Section], folder: Path) -> list[Path]:
    """Write ``bench_PLOT.png`` for each plot; none, with a message, if matplotlib is not installed."""
    curves = [curve for section in sections for curve in section.curves]
    names = list(dict.fromkeys(curve.plot for curve in curves))
    try:
        import matplotlib

        matplotlib.use("Agg")
    except ImportError:
        print("no plots: matplotlib is not installed (pip install 'empo-bi[analysis]')")
        return []
    return [_draw(name, [curve for curve in curves if curve.plot == name], folder / f"bench_{name}.png") for name in names]


def _draw(name: str, curves: Sequence[Curve], path: Path) -> Path:
    from matplotlib import pyplot as plt

    labels = list(dict.fromkeys(curve.y_label for curve in curves))
    n_columns = min(len(labels), _PANELS_A_ROW)
    n_rows = -(-len(labels) // n_columns)
    size = (4.6 * n_columns, 3.4 * n_rows)
    figure, axes_RC = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, layout="constrained")
    for axes, label in zip(axes_RC.flat, labels, strict=False):
        shown = [curve for curve in curves if curve.y_label == label]
        for curve in shown:
            law = "" if curve.exponent is None else f" (exponent {curve.exponent:.2f})"
            axes.loglog(curve.x, curve.y, marker="o", markersize=4, label=f"{curve.name}{law}")
        axes.set_xlabel(shown[0].x_label)
        axes.set_ylabel(label)
        axes.grid(True, which="major", alpha=0.3)
        axes.margins(y=0.05 + 0.06 * len(shown))  # room for the legend
        axes.legend(fontsize=8, frameon=False)
        _plain_ticks(axes.xaxis, sorted({x for curve in shown for x in curve.x}))
        _plain_ticks(axes.yaxis, [])
    for axes in axes_RC.flat[len(labels) :]:
        axes.set_axis_off()
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def _plain_ticks(axis: Any, points: Sequence[float]) -> None:
    """Numbers as people write them; ticks where the points are, if these are few and near each other."""
    from matplotlib import ticker

    plain = ticker.FuncFormatter(lambda value, _: f"{value:,.12g}" if value < 1e5 else f"{value:.0e}".replace("e+0", "e"))
    low, high = (points[0], points[-1]) if points else axis.get_view_interval()
    axis.set_minor_formatter(ticker.NullFormatter())
    if points and high < 20 * low:
        axis.set_major_locator(ticker.FixedLocator(points))
        axis.set_minor_locator(ticker.NullLocator())
    elif high < 200 * low:
        axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(plain)
