"""The shipped library: complete, silent, explained, and of the sizes it claims."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest
from engine import GRIDWORLDS

import empo_bi
from empo_bi import GridWorld, WorldNotFoundError, load_world, worlds
from empo_bi.world.codes import ACTION_SETS, CELL_CODES, DOORS, Kind

NAMES = worlds.available()


def different(key_KW: np.ndarray) -> np.ndarray:
    """As ``np.unique`` by row, in a tenth of its time: sorted by column, without rows that equal the one before."""
    key_KW = key_KW[np.lexsort(key_KW.T)]
    is_new_K = np.ones(len(key_KW), dtype=bool)
    is_new_K[1:] = (key_KW[1:] != key_KW[:-1]).any(axis=1)
    return key_KW[is_new_K]


def level_sizes(world: GridWorld, at_most: int | None = None) -> list[int]:
    """States at step 0, 1, ...; stops early where the total is bound to exceed ``at_most``.

    Where everybody may stay as they are, levels never shrink.
    """
    key_SW = world.initial_key
    sizes = [1]
    for step in range(1, world.max_steps + 1):
        found = [different(world.expand(key_SW[i : i + 10_000]).key_KW) for i in range(0, len(key_SW), 10_000)]
        key_SW = different(np.concatenate(found))
        sizes.append(len(key_SW))
        left = world.max_steps - step if "still" in world.action_names else 0
        if at_most is not None and sum(sizes) + left * sizes[-1] > at_most:
            return [*sizes, *[sizes[-1]] * left]
    return sizes


def test_there_are_at_least_25_worlds_in_themed_folders() -> None:
    assert len(NAMES) >= 25
    assert len({name.split("/")[0] for name in NAMES}) >= 6
    assert len({name.split("/")[1] for name in NAMES}) == len(NAMES), "short names are unique"


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_world_loads_in_silence_even_when_strict_and_says_what_it_is_for(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        world = load_world(name, strict=True)
    assert len(worlds.purpose(name)) > 40
    assert world.world_spec.metadata["name"]
    assert world.world_spec.goals or not world.human_agent_indices


def test_every_object_kind_and_action_set_and_door_is_used_at_least_twice() -> None:
    uses: Counter[object] = Counter()
    for name in GRIDWORLDS:
        spec = load_world(name).world_spec
        cells = {cell for row in spec.cells for cell in row}
        uses.update({cell.kind for cell in cells})
        uses.update({("door", cell.trait) for cell in cells if cell.kind in DOORS})
        uses.update({("disables", cell.trait) for cell in cells if cell.kind == Kind.DISABLING_SWITCH})
        uses.update([spec.action_set])
        uses.update(["enterable"] if any(agent.can_enter_magic_walls for agent in spec.agents) else [])
    kinds = {code.kind for code in CELL_CODES.values()} - {Kind.OPEN_DOOR, Kind.CLOSED_DOOR}
    wanted = [*kinds, *(("door", trait) for trait in (0, 1, 2)), "enterable"]
    wanted += [("disables", kind) for kind in (Kind.KILL_BUTTON, Kind.PAUSE_SWITCH, Kind.CONTROL_BUTTON)]
    assert {what: uses[what] for what in wanted if uses[what] < 2} == {}
    assert all(uses[name] >= 1 for name in ACTION_SETS)


@pytest.mark.parametrize(("steps", "states"), [(3, 389), (5, 1_253), (8, 3_741), (15, 70_333)])
def test_asymmetric_freeing_has_the_known_number_of_states(steps: int, states: int) -> None:
    assert sum(level_sizes(load_world("asymmetric_freeing", max_steps=steps))) == states


def test_asymmetric_freeing_is_the_world_that_was_agreed() -> None:
    world = load_world("jobst_challenges/asymmetric_freeing")
    free = [(1, 2), (2, 1), (2, 2), (3, 2), (4, 2), (5, 1), (5, 2), (6, 2), (7, 2), (7, 3), (7, 4)]
    free += [(8, 1), (8, 2), (8, 3), (8, 4), (9, 2), (9, 3), (9, 4)]
    spec = world.world_spec
    assert (spec.width, spec.height, spec.max_steps, world.action_names) == (
        11,
        6,
        15,
        ["still", "left", "right", "forward"],
    )
    assert sorted((x, y) for y in range(6) for x in range(11) if spec.cells[y][x].kind != Kind.WALL) == sorted(free)
    assert sorted(goal.rectangle[:2] for goal in spec.goals) == sorted(free)
    assert [(agent.x, agent.y, agent.direction) for agent in world.agents] == [(2, 1, 0), (8, 1, 0), (4, 2, 0)]
    assert (world.human_agent_indices, world.robot_agent_indices) == ([0, 1], [2])
    assert world.initial_state()[2] == (("rock", 2, 2), ("rock", 8, 2))


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_world_has_the_number_of_states_its_metadata_claims(name: str) -> None:
    claim = load_world(name).world_spec.metadata.get("states")
    assert claim is not None
    if isinstance(claim, int) and claim <= 20_000:
        assert sum(level_sizes(load_world(name))) == claim
    else:
        assert sum(level_sizes(load_world(name), at_most=20_000)) > 20_000


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_larger_claims_hold_too(name: str) -> None:
    claim = load_world(name).world_spec.metadata["states"]
    limit = 6_000_000
    total = sum(level_sizes(load_world(name), at_most=limit))
    assert total == claim if isinstance(claim, int) else total > limit


def test_sizes_go_from_tens_to_millions() -> None:
    claims = [load_world(name).world_spec.metadata["states"] for name in NAMES]
    assert min(claim for claim in claims if isinstance(claim, int)) < 100
    assert any(not isinstance(claim, int) or claim > 1_000_000 for claim in claims)


def test_names_are_found_short_full_and_with_ending_and_others_are_not() -> None:
    for name in ("asymmetric_freeing", "jobst_challenges/asymmetric_freeing", "jobst_challenges/asymmetric_freeing.yaml"):
        path = worlds.find(name)
        assert path is not None
        assert path.name == "asymmetric_freeing.yaml"
    assert worlds.find("nothing_of_the_kind") is None
    with pytest.raises(WorldNotFoundError, match="available"):
        empo_bi.worlds.purpose("nothing_of_the_kind")
