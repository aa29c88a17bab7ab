"""Every golden world, wrapped as an environment of EMPO: translated or asked state by state, the tables are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from golden_files import NO_REFERENCE, REFERENCE, golden_files
from multigrid_standin import StandIn

from empo_bi import compute_human_policy_prior, compute_robot_policy, from_multigrid
from empo_bi.errors import TranslationError

FEW, MORE = 400, 6_000  # transitions that the Python path may ask for
QUICK = ("own_", "jobst_", "trivial")  # worlds that have all kinds of objects among them; the others take long together
TOO_LARGE = {"berkin_challenges__asymmetric_trolley"}  # 117,649 profiles: one step takes the Python path many minutes
REFUSED: dict[str, str] = {}  # worlds that are not translated, and why
DISCOUNTS = {"gamma_h": 0.95, "gamma_r": 0.9}


def most_steps(path: Path, n_lines: int) -> int:
    horizons = json.loads(path.read_text())["horizons"]
    return max([1, *(int(m) for m, figures in horizons.items() if figures["profile_lines"] <= n_lines)])


def cases() -> list[Any]:
    """(name, steps): few steps of each world, and more where there is time."""
    found = []
    for name, path in sorted({path.stem: path for path in golden_files() if path.stem not in TOO_LARGE}.items()):
        for steps in sorted({most_steps(path, FEW), most_steps(path, MORE)}):
            is_slow = not name.startswith(QUICK) or steps > most_steps(path, FEW)
            found.append(pytest.param(name, steps, id=f"{name} {steps}", marks=[pytest.mark.slow] * is_slow))
    return found or [pytest.param("", 0, marks=pytest.mark.skip(reason=NO_REFERENCE))]


def wrapped(name: str, steps: int) -> StandIn:
    """A golden world as an environment. All get the whole map as one more goal, so that everybody has some power."""
    mapping = yaml.safe_load((REFERENCE / "worlds" / f"{name}.yaml").read_text()) | {"max_steps": steps}
    goals = mapping.get("possible_goals") or [[1, 1], [2, 1], [1, 1, 2, 2]]
    mapping["possible_goals"] = [*goals, [0, 0, 99, 99]]
    env = StandIn(mapping)
    env.human_agent_indices = list(env.human_agent_indices) or [0]
    env.robot_agent_indices = list(env.robot_agent_indices)
    return env


def tables(env: StandIn) -> dict[str, dict[Any, Any]]:
    """What both documented functions return, flat: (state, human, goal) or (state, profile) -> number or array."""
    humans, robots = env.human_agent_indices, env.robot_agent_indices
    prior, Vh = compute_human_policy_prior(
        env, humans, gamma_h=DISCOUNTS["gamma_h"], return_Vh=True, use_float16=False, quiet=True
    )
    policy, Vr, Vhe = compute_robot_policy(
        env, humans, robots, human_policy_prior=prior, beta_r=5, zeta=2, return_values=True, use_float16=False, quiet=True,
        **DISCOUNTS,
    )  # fmt: skip
    by_goal = {"prior": prior.values, "Vh": Vh, "Vhe": Vhe}
    flat = {
        table: {(s, h, g): x for s, of in values.items() for h, goals in of.items() for g, x in goals.items()}
        for table, values in by_goal.items()
    }
    flat["policy"] = {(s, profile): p for s, of in policy.values.items() for profile, p in of.items()}
    return flat | {"Vr": dict(Vr.items()), "is_translated": {None: prior.solution.dag.world is not env}}


@pytest.mark.parametrize(("name", "steps"), cases())
def test_a_golden_world_has_the_same_tables_translated_and_not(name: str, steps: int) -> None:
    env = wrapped(name, steps)
    there = tables(env)
    env = wrapped(name, steps)
    env.empo_bi_translate = False
    here = tables(env)
    assert there.pop("is_translated") == {None: name not in REFUSED}
    assert here.pop("is_translated") == {None: False}
    for table, entries in here.items():
        assert entries.keys() == there[table].keys(), table
        values = [np.array([of[key] for key in entries]) for of in (entries, there[table])]
        np.testing.assert_allclose(*values, rtol=1e-9, atol=1e-12, err_msg=table)
    assert here["Vr"]
    assert here["prior"]


def test_refusals_are_counted_and_explained() -> None:
    names = sorted({path.stem for path in golden_files()})
    if not names:
        pytest.skip(NO_REFERENCE)
    found = {}
    for name in names:
        try:
            from_multigrid(wrapped(name, 3))
        except TranslationError as error:
            found[name] = str(error)
    assert found == REFUSED
