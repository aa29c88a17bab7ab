"""Numbers that another program computed: the value files of ../shared/reference, and one world at growing horizons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine import load_quietly
from golden_files import NO_REFERENCE, REFERENCE
from oracle.planning import GridGoals, human_policy_prior
from value_files import HalfPrecisionWorld, ValueFile, middle_of, value_paths

from empo_bi import Params, compute_human_policy_prior, compute_robot_policy, load_world, solve

# The other program kept transition probabilities of phase 1 in float16. The chances of this world (0.7, thirds) lose digits
# there, which moves its numbers by up to 5.2e-4; the oracle reproduces them to the last digit if it rounds likewise. (In
# corridor_t4_hot the same moves numbers by 1.5e-7.)
TOLERANCE = {"bush_t3_std": 1e-3}

ASYMMETRIC_FREEING = Params(beta_h=10, gamma_h=0.99, beta_r=10, gamma_r=0.99, zeta=2, xi=1, eta=1.1)


def value_files() -> list[Any]:
    cases = [pytest.param(path, id=path.stem) for path in value_paths()]
    return cases or [pytest.param(None, marks=pytest.mark.skip(reason=NO_REFERENCE))]


class EngineCase(ValueFile):
    """A file, its world, and checks of what the engine finds there."""

    def __init__(self, path: Path, tolerance: float | None = None) -> None:
        super().__init__(path)
        self.world = load_quietly(self.world_path, max_steps=self.max_steps)
        self._tolerance = TOLERANCE.get(path.stem, 1e-6) if tolerance is None else tolerance

    def near(self, value: Any) -> Any:
        return pytest.approx(value, rel=self._tolerance, abs=0)

    def check_robot_policy(self, policy: Any) -> None:
        for state, sample in self.samples:
            robot = {",".join(map(str, profile)): p for profile, p in policy(state).items()}
            assert robot == self.near(sample["pi_r"])

    def check_prior(self, prior: Any) -> None:
        for state, sample in self.samples:
            for human in self.humans:
                found = {name_of(goal): pi.tolist() for goal, pi in prior.values[state][human].items()}
                wanted = sample["pi_h"][str(human)]
                assert found.keys() == wanted.keys()
                for goal, probabilities in wanted.items():  # printed with twelve digits
                    assert found[goal] == pytest.approx(probabilities, rel=0, abs=self._tolerance)

    def check_robot_values(self, Vr: Any) -> None:
        for state, sample in self.samples:
            assert Vr[state] == self.near(sample["Vr"])

    def check_human_values(self, table: Any, name: str) -> None:
        for state, sample in self.samples:
            for human in self.humans:
                found = {name_of(goal): value for goal, value in table.get(state, {}).get(human, {}).items()}
                assert found == self.near(sample[name].get(str(human), {}))

    def check_everything(self, prior: Any, policy: Any, Vh: Any, Vhe: Any, Vr: Any) -> None:
        self.check_prior(prior)
        self.check_robot_policy(policy)
        self.check_human_values(Vh, "Vh_m")
        self.check_human_values(Vhe, "Vh_e")
        self.check_robot_values(Vr)


def name_of(goal: Any) -> str:
    return middle_of(goal.target_rect)


@pytest.mark.parametrize("path", value_files())
def test_the_documented_functions_give_the_values_of_the_file(path: Path) -> None:
    case = EngineCase(path)
    prior, Vh = compute_human_policy_prior(
        case.world, case.humans, return_Vh=True, use_float16=False, quiet=True, **case.for_humans
    )
    policy, Vr, Vhe = compute_robot_policy(
        case.world, case.humans, case.robots, None, prior, return_values=True, use_float16=False, quiet=True,
        **case.for_robots,
    )  # fmt: skip
    case.check_everything(prior, policy, Vh, Vhe, Vr)
    assert len(Vr) == case.file["n_states"]


@pytest.mark.parametrize("path", value_files())
def test_solve_gives_the_values_and_the_sums_of_the_file(path: Path) -> None:
    case = EngineCase(path)
    solution = solve(
        case.world, Params(**case.params), human_agent_indices=case.humans, robot_agent_indices=case.robots,
        precision="float64", progress=False,
    )  # fmt: skip
    assert solution.dag.n_states == case.file["n_states"]
    assert solution.dag.horizon == case.file["max_steps"]
    for t in range(solution.dag.horizon + 1):
        assert solution.values.V_r[t].sum() == case.near(case.file["sum_Vr_by_level"][str(t)])
        wanted = case.file["sum_Vh_m_by_level"].get(str(t), {})
        sum_H = solution.values.Vh_m[t].sum(axis=(0, 2)).tolist()
        assert sum_H == case.near([wanted.get(str(human), 0.0) for human in case.humans])
    case.check_everything(solution.prior, solution.robot_policy, solution.Vh, solution.Vhe, solution.Vr)


@pytest.mark.skipif(not REFERENCE.exists(), reason=NO_REFERENCE)
def test_with_the_humans_of_the_file_phase_2_gives_its_values_where_phase_1_differs() -> None:
    """Policies that the oracle finds with probabilities in float16, as the other program had them in its phase 1, are handed
    to the engine as a function. Phase 2 of that program had them in full, so that nothing is left to differ."""
    case = EngineCase(REFERENCE / "values" / "bush_t3_std.json", tolerance=1e-6)
    grid = case.oracle_world()
    goals = GridGoals(grid)
    policies, _ = human_policy_prior(HalfPrecisionWorld(grid), case.humans, goals, **case.for_humans)

    def prior(state: Any, human: int, goal: Any) -> Any:
        by_goal = policies[state][human]
        if goal is None:
            return np.sum([weight * np.array(by_goal[wish]) for wish, weight in goals.generate(state, human)], axis=0)
        return next(policy for wish, policy in by_goal.items() if wish.goal[:4] == goal.target_rect)

    policy, Vr, Vhe = compute_robot_policy(
        case.world, case.humans, case.robots, None, prior, return_values=True, use_float16=False, quiet=True,
        **case.for_robots,
    )  # fmt: skip
    case.check_robot_policy(policy)
    case.check_human_values(Vhe, "Vh_e")
    case.check_robot_values(Vr)
    for level, total in case.file["sum_Vr_by_level"].items():
        assert sum(value for state, value in Vr.items() if state[0] == int(level)) == case.near(total)


# --- a world of our own, whose numbers are known ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "Vr"),
    [(3, -71.02157), (5, -117.19348), (8, -184.70908), (15, -271.97)],
)
def test_the_robots_value_of_asymmetric_freeing(steps: int, Vr: float) -> None:
    world = load_world("asymmetric_freeing", max_steps=steps)
    solution = solve(world, ASYMMETRIC_FREEING, precision="float64", progress=False)
    printed = 5e-3 if steps == 15 else 5e-6
    assert solution.values.V_r[0].tolist() == [pytest.approx(Vr, rel=0, abs=printed)]
