"""Curves as pictures: one file for each thing that is varied, one panel for each thing that is measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import Curve, Section


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
    figure, axes_L = plt.subplots(1, len(labels), figsize=(3.6 * len(labels), 3.2), squeeze=False, layout="constrained")
    for axes, label in zip(axes_L[0], labels, strict=True):
        for curve in curves:
            if curve.y_label == label:
                law = "" if curve.exponent is None else f" (exponent {curve.exponent:.2f})"
                axes.loglog(curve.x, curve.y, marker="o", markersize=4, label=f"{curve.name}{law}")
        axes.set_xlabel(next(curve.x_label for curve in curves if curve.y_label == label))
        axes.set_ylabel(label)
        axes.grid(True, which="major", alpha=0.3)
        axes.legend(fontsize=7, frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path
