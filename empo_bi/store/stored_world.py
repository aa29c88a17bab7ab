"""The world that a DAG's store remembers, and a store held to the world that it is read for."""

from __future__ import annotations

import json
import warnings
from typing import Any

from empo_bi.dag.attainment import FixedGoals, fixed_goals_of
from empo_bi.dag.dag import GoalTable
from empo_bi.dag.world_fingerprint import horizon_of, identity_of
from empo_bi.errors import DamagedStoreError, EmpoError, WorldWarning
from empo_bi.runtime.wording import short_repr
from empo_bi.store.dag_store import DagStore
from empo_bi.store.format_names import WRITTEN_BY
from empo_bi.types import Json
from empo_bi.world.array_world import NumberedStates
from empo_bi.world.as_model import Model, as_model
from empo_bi.world.load import load_world
from empo_bi.world.map_world import MapWorld

MOST_BYTES = 16_000_000  # of a world as JSON; a file may have half of it


def remembered_world(mapping: Any, where: str) -> MapWorld:
    """A world on a map from what a store or a run says of it.

    That is data, which names no files and runs nothing: a text there would name a file, and is refused.
    """
    if not isinstance(mapping, dict) or len(json.dumps(mapping)) > MOST_BYTES:
        raise DamagedStoreError(f"{where}: its world is {short_repr(mapping, 40)}, not that of a world file; make it anew")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WorldWarning)  # they were given when it was made
        try:
            return load_world(mapping)
        except (EmpoError, ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError) as error:
            raise DamagedStoreError(f"{where}: its world cannot be loaded ({error}); make it anew") from error


def stored_world(levels: DagStore) -> MapWorld:
    """The world on a map of a store's manifest; DamagedStoreError if it is not the one that the rest of it is about."""
    manifest = levels.manifest
    world = remembered_world(manifest["world"], levels.place.name)
    if (identity_of(world), horizon_of(world)) != (manifest["content"]["world"], manifest["content"]["horizon"]):
        raise levels.damaged("the metadata of the store: its gridworld is another one than that of the states")
    goals = fixed_goals_of(as_model(world))
    if goals is not None and manifest["goals"] is not None and not _are_same_goals(goals, manifest):
        raise levels.damaged("the metadata of the store: its humans and goals are not those of its gridworld")
    return world


def _are_same_goals(goals: FixedGoals, manifest: Json) -> bool:
    """Whether the goals of a world are those of its store, unless these are of a user's generator, as far as it says."""
    is_same, writer = goals.key() == manifest["content"]["goals"], manifest.get("written_by")
    # 0.1 did not say whose goals they are; other versions may have other digests.
    are_others = manifest.get("own_goals", False) if writer is not None else not is_same
    names = goals.humans, goals.describe()
    return are_others or (names == (manifest["humans"], manifest["goals"]) and (is_same or writer != WRITTEN_BY))


def hold_to_world(levels: DagStore, model: Model, goals: GoalTable | None, keys: NumberedStates | None = None) -> None:
    """See to it that keys are states of the world (or ``keys``, where it is not at hand), and that sizes are the world's."""
    manifest, packed = levels.manifest, model.packed
    if packed is not None or keys is not None:
        levels.guard.use_keys_of(keys if packed is None else packed)
    if packed is not None:
        sizes = (model.n_agents, model.n_actions, packed.max_steps + 1)
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
