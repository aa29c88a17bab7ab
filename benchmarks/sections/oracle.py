"""Against the plain oracle in tests/: dictionaries and loops, as users have them today."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.child import ROOT
from benchmarks.measuring import Runs, in_turns
from benchmarks.report import Section
from benchmarks.sizes import Sizes
from empo_bi import Params, Solution, enumerate_dag, load_world, solve, worlds

sys.path.insert(0, str(ROOT / "tests"))  # the oracle lives there

from oracle import planning
from oracle.gridworld import parse

WORLD = "asymmetric_freeing"
GIVEN = {"gamma_h": 0.99, "gamma_r": 0.99, "zeta": 2.0}


def measure(sizes: Sizes) -> Section:
    section = Section("oracle", "Dictionaries and loops")
    section.about.append(
        f"`{WORLD}`, enumeration and both phases, one core, CPU seconds: the oracle that the tests hold the engine to, "
        "plain Python with dictionaries by state, profile and goal, against `solve`. V_r of the initial state is compared."
    )
    table = section.table("The oracle against the engine", "steps", "states", "oracle", "engine", "spread", "ratio")
    ratio = 0.0
    for steps in sorted({max(1, sizes.oracle_steps - 2), sizes.oracle_steps}):
        world = load_world(WORLD, max_steps=steps)
        _ours(world)
        oracle = Runs()
        oracle.run(lambda steps=steps: _by_oracle(steps))
        ours = in_turns({"engine": lambda world=world: _ours(world)}, 4 * sizes.rounds)["engine"]
        if abs(ours.result / oracle.result - 1) > 1e-6:
            raise AssertionError(f"V_r is {ours.result}, the oracle says {oracle.result}")
        ratio = oracle.cpu_seconds / ours.cpu_seconds
        n_states = enumerate_dag(world, progress=False).n_states
        cells = oracle.cells()[2], ours.cells()[2], ours.cells()[1]
        table.row(str(steps), f"{n_states:,}", *cells, f"{ratio:,.0f}x")
    section.want("both phases against dictionaries", ratio, at_least=1000)
    return section


def _ours(world: Any) -> float:
    solution: Solution = solve(world, Params(**GIVEN), progress=False)
    return float(solution.values.V_r[0][0])


def _by_oracle(steps: int) -> float:
    path = worlds.find(WORLD)
    assert path is not None
    raw = parse(path.read_text(encoding="utf-8"), max_steps=steps)
    world, goals = planning.GridPlanningWorld(raw), planning.GridGoals(raw)
    graph = planning.Graph(world)
    ours = load_world(WORLD)
    humans, robots = ours.human_agent_indices, ours.robot_agent_indices
    prior, _ = planning.human_policy_prior(world, humans, goals, beta_h=10.0, gamma_h=GIVEN["gamma_h"], graph=graph)
    found = planning.robot_policy(world, humans, robots, goals, prior, beta_r=10.0, xi=1.0, eta=1.0, graph=graph, **GIVEN)
    return float(found["Vr"][world.initial_state()])
