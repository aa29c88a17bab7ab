"""A parameter study from end to end: 200 sampled settings in one batch, and what drives the robot's choice.

Two humans are locked in, and a robot can free them. Whom does it free first, and which parameters decide that? Every setting
is solved exactly, and so is the probability that the left human is the first: nothing here is sampled but the settings.

    python examples/freeing_sweep.py                        # 200 settings, 10 to 30 seconds; again: at once
    python examples/freeing_sweep.py --samples 1000         # more, which adds to those that are there
    python examples/freeing_sweep.py --plot drivers.png     # with a picture
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from empo_bi import run_batch

SPEC = Path(__file__).with_name("freeing_sweep.yaml")
DRIVERS = ["steps", "beta_h", "gamma_h", "gamma_r", "zeta", "eta", "xi"]
OUTCOME = "freed_first.left"


def regression(table: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """Least squares of the outcome on standardised drivers: coefficients, their standard errors, and R squared.

    A coefficient tells by how much the probability changes when a driver grows by one standard deviation. beta_h, which was
    drawn on a logarithmic scale, enters by its logarithm.
    """
    x_ND = np.array([[np.log(row[name]) if name == "beta_h" else row[name] for name in DRIVERS] for row in table.rows])
    y_N = np.array(table[OUTCOME])
    x_ND = (x_ND - x_ND.mean(axis=0)) / np.maximum(x_ND.std(axis=0), 1e-12)
    design = np.column_stack([np.ones(len(y_N)), x_ND])
    coefficients, *_ = np.linalg.lstsq(design, y_N, rcond=None)
    residual = y_N - design @ coefficients
    degrees = max(1, len(y_N) - design.shape[1])
    variances = np.diag(np.linalg.pinv(design.T @ design)) * (residual @ residual) / degrees
    spread = ((y_N - y_N.mean()) ** 2).sum()
    return coefficients[1:], np.sqrt(variances[1:]), float(1 - residual @ residual / spread) if spread > 0 else 0.0


def plot(table: Any, coefficients: np.ndarray, errors: np.ndarray, file: str) -> None:
    """Left, how much each driver matters; right, the outcome against the one that matters most, by horizon."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    order = np.argsort(np.abs(coefficients))
    left.barh([DRIVERS[i] for i in order], coefficients[order], xerr=1.96 * errors[order], color="#0072b2", ecolor="#555555")
    left.axvline(0, color="#555555", linewidth=0.8)
    left.set_xlabel("change of P(left human freed first)\nper standard deviation of the parameter")
    left.set_title("What drives it")
    main = DRIVERS[order[-1]]
    shown = next(DRIVERS[i] for i in reversed(order) if DRIVERS[i] != "steps") if main == "steps" else main
    points = right.scatter(table[shown], table[OUTCOME], c=table["steps"], cmap="viridis", s=18)
    if shown == "beta_h":
        right.set_xscale("log")
    figure.colorbar(points, ax=right, label="horizon (steps)")
    right.set_xlabel(shown)
    right.set_ylabel("P(left human freed first)")
    right.set_title(f"{len(table):,} settings")
    figure.savefig(file, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200, help="how many settings are drawn (default 200)")
    parser.add_argument("--steps", type=int, nargs=2, metavar=("LOW", "HIGH"), help="horizons, by default 8 to 14")
    parser.add_argument("--out", default="runs/freeing_sweep", help="where runs and table go (default runs/freeing_sweep)")
    parser.add_argument("--workers", type=int, default=-1, help="processes (default one per core)")
    parser.add_argument("--plot", metavar="FILE", help="write a picture")
    options = parser.parse_args()

    batch = yaml.safe_load(SPEC.read_text(encoding="utf-8"))
    batch |= {"samples": options.samples, "metrics": f"{SPEC.parent}/freeing_metrics.py:freed_first"}
    if options.steps:
        batch["steps"] = {"integers": options.steps}
    result = run_batch(batch, out=options.out, workers=options.workers)
    print(result.summary())

    coefficients, errors, explained = regression(result.table)
    outcome = np.array(result.table[OUTCOME])
    print(f"\nP(left human freed first): mean {outcome.mean():.3f}, from {outcome.min():.3f} to {outcome.max():.3f}")
    print(f"What drives it (change per standard deviation, with standard error; R squared {explained:.2f}):")
    for i in np.argsort(-np.abs(coefficients)):
        print(f"  {DRIVERS[i]:8} {coefficients[i]:+.4f} +- {errors[i]:.4f}")
    if options.plot:
        plot(result.table, coefficients, errors, options.plot)
        print(f"\npicture: {options.plot}")


if __name__ == "__main__":
    main()
