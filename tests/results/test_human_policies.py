"""Policies of humans do not depend on how many states are asked about at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planning_worlds import Ring

from empo_bi import Params, load_world, solve


def nobody_moves(state: Any, human: int, action: int) -> list[tuple[float, list[int]]]:
    return [(1.0, [0, 0, 0])]


@pytest.mark.parametrize("precision", ["float16", "float64"])
@pytest.mark.parametrize(
    ("world", "params"),
    [
        (load_world("mirror_freeing", max_steps=6), Params(gamma_h=0.9)),
        (load_world("mirror_freeing", max_steps=4), Params(believed_others_policy=nobody_moves)),
        (load_world("carousel", max_steps=8), Params(beta_h=3.0)),  # whose levels are not nested
        (load_world("ice_rink", max_steps=4), Params()),
        (Ring(5), Params(gamma_h=0.9)),
    ],
)
def test_one_by_one_or_a_level_at_once(world: Any, params: Params, precision: str) -> None:
    solution = solve(world, params, precision=precision, progress=False, phase_2=False)
    for t in range(solution.dag.horizon):
        pi_SHGA = solution.pi_h[t]
        for s in range(0, len(pi_SHGA), max(1, len(pi_SHGA) // 7)):
            places, alone = solution.human_policies.of_states(t, np.array([s]))
            if len(places):
                assert alone[0].tolist() == pi_SHGA[s].tolist()
            else:
                assert (pi_SHGA[s] == 0).all()
        backwards = np.arange(len(pi_SHGA))[::-1]
        places, some = solution.human_policies.of_states(t, backwards)
        assert (some == pi_SHGA[places]).all()
