"""The same random decision process for everybody: our sweep, quantecon, scipy, numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.measuring import Runs, in_turns
from benchmarks.peers.random_mdp import RandomMdp, why_quantecon_is_missing
from benchmarks.report import Section, Table
from benchmarks.sizes import Sizes
from empo_bi import Dag, Params, Solution, enumerate_dag, solve

_TOLERANCE = 1e-9


def measure(sizes: Sizes) -> Section:
    section = Section("random_mdp", "A random decision process")
    mdp = RandomMdp.make(sizes.mdp_states, sizes.mdp_actions, sizes.mdp_entries, sizes.mdp_steps, sizes.mdp_goals)
    section.about.append(
        f"{mdp.n_states:,} states, {mdp.n_actions} actions, {mdp.matrix.nnz:,} entries, {mdp.steps} steps: the greatest "
        "probability to reach a goal, in float64 throughout. We get it as an `ArrayWorld` and sweep phase 1 with "
        "`beta_h = inf` for all goals at once, over the levels as they are reached from state 0, with two workers (which is "
        "what ratios are about) and with one; quantecon runs its `backward_induction` once per goal, on one core (problems "
        "are prepared beforehand; it keeps policies as well), scipy and numpy likewise. All answers are compared, ours for "
        "all states of the first level and of one in the middle; the largest difference is in the last column."
    )
    one = _one_goal(section, mdp, sizes.rounds)
    many = _all_goals(section, mdp, max(1, sizes.rounds // 2), one)
    enumeration = Runs()
    enumeration.run(lambda: enumerate_dag(mdp.world(1), precision="exact", progress=False))
    section.about.append(
        f"Making the levels from the arrays takes us {enumeration.seconds:.2f} s, once for all goals and parameters; it is "
        "not part of the sweep. (quantecon takes its arrays as they are.)"
    )
    missing = why_quantecon_is_missing()
    if missing:
        section.missing.append(missing)
    section.want("sweep, 1 goal, against quantecon", one, at_least=2, why=missing or "")
    section.want(f"sweep, {len(mdp.goals)} goals, against quantecon", many, at_least=10, why=missing or "")
    return section


def _one_goal(section: Section, mdp: RandomMdp, rounds: int) -> float | None:
    dag = _dag(mdp, 1)
    problem = None if why_quantecon_is_missing() else mdp.quantecon_problem(0)
    jobs: dict[str, Any] = {
        "empo_bi, 2 workers": lambda: _sweep(dag, 2),
        "empo_bi, 1 worker": lambda: _sweep(dag, 1),
        "scipy sparse": lambda: mdp.with_scipy(0),
        "numpy": lambda: mdp.with_numpy(0),
    }
    if problem is not None:
        jobs["quantecon"] = lambda: mdp.with_quantecon(problem)
        mdp.with_quantecon(problem)  # it compiles, too
    for name in ("empo_bi, 2 workers", "empo_bi, 1 worker"):
        jobs[name]()
    runs = in_turns(jobs, rounds)
    expected = mdp.with_scipy(0)
    table = _table(section, "One goal")
    for name, run in runs.items():
        is_ours = isinstance(run.result, Solution)
        difference = _our_difference(run.result, mdp, 1) if is_ours else _difference(run.result, expected)
        _row(table, name, run, runs["empo_bi, 2 workers"], difference)
    return _ratio(runs, "quantecon")


def _all_goals(section: Section, mdp: RandomMdp, rounds: int, one: float | None) -> float | None:
    n_goals = len(mdp.goals)
    dag = _dag(mdp, n_goals)
    jobs: dict[str, Any] = {
        "empo_bi, 2 workers": lambda: _sweep(dag, 2),
        "empo_bi, 1 worker": lambda: _sweep(dag, 1),
        "scipy sparse, goal by goal": lambda: np.stack([mdp.with_scipy(goal) for goal in range(n_goals)], axis=1),
        "scipy sparse, all goals": lambda: mdp.with_scipy_together(n_goals),
    }
    if one is not None:
        problems = [mdp.quantecon_problem(goal) for goal in range(n_goals)]
        jobs["quantecon"] = lambda: np.stack([mdp.with_quantecon(problem) for problem in problems], axis=1)
    jobs["empo_bi, 2 workers"]()
    runs = in_turns(jobs, rounds)
    expected = np.stack([mdp.with_scipy(goal) for goal in range(n_goals)], axis=1)
    table = _table(section, f"{n_goals} goals")
    for name, run in runs.items():
        if isinstance(run.result, Solution):
            difference = _our_difference(run.result, mdp, n_goals)
        else:
            difference = _difference(run.result, expected)
        _row(table, name, run, runs["empo_bi, 2 workers"], difference)
    section.figures[f"{n_goals} goals, scipy all goals at once"] = _ratio(runs, "scipy sparse, all goals") or math.nan
    return _ratio(runs, "quantecon")


def _dag(mdp: RandomMdp, n_goals: int) -> Dag:
    return enumerate_dag(mdp.world(n_goals), precision="exact", progress=False)


def _sweep(dag: Dag, workers: int) -> Solution:
    params = Params(beta_h=math.inf)
    return solve(dag.world, params, dag=dag, phase_2=False, precision="float64", workers=workers, progress=False)


def _our_difference(solution: Solution, mdp: RandomMdp, n_goals: int) -> float:
    """Over all states of the first level and of one in the middle, where all have been reached."""
    differences = []
    for t in (0, mdp.steps // 2):
        number_S = np.array([number for _, number in solution.dag.states(t)])
        for goal in range(n_goals):
            expected = mdp.with_scipy(goal, mdp.steps - t)[number_S]
            differences.append(_difference(solution.values.Vh_m[t][:, 0, goal], expected))
    return max(differences)


def _difference(found: Any, expected: Any) -> float:
    """The largest; an error if it is more than rounding."""
    difference = float(np.abs(found - expected).max())
    if difference > _TOLERANCE:
        raise AssertionError(f"answers differ by {difference}")
    return difference


def _table(section: Section, title: str) -> Table:
    return section.table(title, "", "time", "spread", "CPU", "times ours", "difference")


def _row(table: Table, name: str, run: Runs, ours: Runs, difference: float) -> None:
    table.row(name, *run.cells(), f"{run.seconds / ours.seconds:.2f}x", f"{difference:.0e}")


def _ratio(runs: dict[str, Runs], peer: str) -> float | None:
    return runs[peer].seconds / runs["empo_bi, 2 workers"].seconds if peer in runs else None
