"""Compile the kernels into the cache beside their sources, in two processes, before the tests or the demo begin.

Otherwise each of the processes that share the tests compiles them all by itself. `make test` does this while it lints;
without it everything works as well, later. Where all is compiled already it takes three seconds. `make demo` compiles what
planning needs while it shows the first world.
"""

from __future__ import annotations

import subprocess
import sys

from planning_worlds import Ring

from empo_bi import Params, Solution, enumerate_dag, load_world, solve


def of_gridworlds() -> None:
    world = load_world("asymmetric_freeing", max_steps=2)
    dag = enumerate_dag(world, store=True, progress=False)
    with dag:
        dag.place_of(world.initial_state())
    bush = load_world("bush_worlds/overgrown_start", max_steps=1)
    bush.expand(bush.initial_key)


def of_planning(precision: str = "float16") -> Solution:
    """A world in Python will do, since both kinds of worlds become the same arrays."""
    solution = solve(Ring(), Params(gamma_h=0.9, gamma_r=0.9), precision=precision, progress=False)
    assert sum(mass.sum() for mass in solution.reached) > 0
    return solution


def of_solving() -> None:
    """In both widths, and what else is done with solutions."""
    from empo_bi.analysis import decision_at  # the demo is installed without what this needs

    for precision in ("float16", "float64"):
        solution = of_planning(precision)
        solution.rollouts(2, seed=0)
        decision_at(solution, solution.dag.states(0)[0])
        assert solution.precision.values > 0


def of_demo() -> None:
    """What `empo-bi solve` needs: float64 for robots that always take their best action."""
    of_planning("float16")
    of_planning("float64")


HALVES = {"gridworlds": of_gridworlds, "solving": of_solving}
PARTS = HALVES | {"demo": of_demo}


def main() -> None:
    if len(sys.argv) > 1:
        PARTS[sys.argv[1]]()
        return
    processes = [subprocess.Popen([sys.executable, __file__, half]) for half in HALVES]
    exit_codes = [process.wait() for process in processes]
    if any(exit_codes):
        sys.exit("kernels could not be compiled; see above")


if __name__ == "__main__":
    main()
