"""The world that a DAG's store remembers, and a store held to the world that it is read for."""

from __future__ import annotations

import json
import warnings
from typing import Any

from empo_bi.dag.dag import GoalTable
from empo_bi.dag.identity import horizon_of, identity_of
from empo_bi.errors import EmpoError, WorldWarning
from empo_bi.store.zarr_levels import ZarrLevels
from empo_bi.world.gridworld import GridWorld, load_world
from empo_bi.world.packed import PackedWorld

MOST_BYTES = 10_000_000  # of a world as JSON; a file may have a tenth of it


def stored_world(levels: ZarrLevels) -> GridWorld:
    """The gridworld of a store's manifest, which names no files and runs nothing.

    DamagedStoreError if it is none, or not the one that the rest of the manifest is about.
    """
    manifest = levels.manifest
    where = "the metadata of the store: the gridworld in it"
    if len(json.dumps(manifest["world"])) > MOST_BYTES:
        raise levels.damaged(f"{where} is larger than any world file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WorldWarning)  # they were told when the store was made
            world = load_world(manifest["world"])
        identity = identity_of(world), horizon_of(world)
    except (EmpoError, ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError) as error:
        raise levels.damaged(f"{where} cannot be loaded ({error})") from error
    content = manifest["content"]
    if identity != (content["world"], content["horizon"]):
        raise levels.damaged(f"{where} is another one than that of the states, or follows other rules")
    return world


def hold_to_world(levels: ZarrLevels, world: Any, goals: GoalTable | None) -> None:
    """See to it that keys are states of the world (or of less, which reads them), and that sizes are the world's."""
    manifest = levels.manifest
    if world is None:
        return
    levels.guard.use_keys_of(world) if hasattr(world, "problem_of_keys") else None
    if isinstance(world, PackedWorld):
        sizes = (len(world.agents), int(world.action_space.n), world.max_steps + 1)  # type: ignore[attr-defined]
        if sizes[:2] != (manifest["n_agents"], manifest["n_actions"]) or len(levels) > sizes[2]:
            raise levels.damaged(
                f"the metadata of the store: {manifest['n_agents']:,} agents, {manifest['n_actions']:,} actions and "
                f"{len(levels):,} levels; the world has {sizes[0]}, {sizes[1]} and at most {sizes[2]:,}"
            )
    if (
        goals is not None
        and goals.is_stored
        and _sizes(goals.humans, goals.names) != _sizes(manifest["humans"], manifest["goals"])
    ):
        raise levels.damaged("the metadata of the store: other humans, or other numbers of goals, than those of the world")


def _sizes(humans: list[int] | None, names: list[list[str]] | None) -> tuple[list[int], list[int]]:
    return list(humans or []), [len(goals) for goals in names or []]
