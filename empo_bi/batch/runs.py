"""The runs of a batch: which there are, and what tells one from another."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from glob import glob
from pathlib import Path
from typing import Any

from empo_bi import worlds
from empo_bi.batch.folder import Json
from empo_bi.batch.metrics import function_of
from empo_bi.batch.spec import BatchSpec
from empo_bi.dag.identity import digest_of, identity_of, key_of
from empo_bi.enumeration import title_of
from empo_bi.errors import EmpoError, WorldNotFoundError
from empo_bi.options import Params
from empo_bi.world.gridworld import GridWorld, load_world
from empo_bi.world.text import to_mapping


@dataclass(frozen=True)
class WorldReference:
    """How a batch calls a world; ``load`` makes it."""

    name: str  # as the table calls it
    source: str  # what load_world takes, or module:function
    folder: Path
    overrides: tuple[tuple[str, Any], ...] = ()

    def load(self, steps: int | None) -> Any:
        options = dict(self.overrides) | ({} if steps is None else {"max_steps": steps})
        if _is_function(self.source):
            return function_of(self.source, self.folder)(**options)
        return load_world(self.source, **options)


@dataclass(frozen=True, eq=False)
class Run:
    """One row of the table: a world, a horizon, a set of parameters.

    Attributes
    ----------
    key : tells this run from all others, also in another batch
    world_key : the same for runs that can share a DAG
    about : of the world, for its manifest
    trouble : why this run cannot even begin
    """

    world: WorldReference
    given_steps: int | None  # what the world is loaded with, None for its own
    steps: int | None  # what that means
    params: Json
    seed: int = 0
    sample: int | None = None
    repetition: int = 0
    key: str = ""
    world_key: str = ""
    about: Json = field(default_factory=dict)
    trouble: Exception | None = None

    @property
    def folder_name(self) -> str:
        return f"{_slug(self.world.name)}{'' if self.steps is None else f'-{self.steps}'}-{self.key}"

    @property
    def rollout_seed(self) -> int:
        """The same for this run wherever and whenever it runs."""
        return int(digest_of(f"{self.seed} {self.repetition} {self.key}"), 16)


def runs_of(spec: BatchSpec) -> list[Run]:
    """All runs of a batch, in the order of its table. A world that cannot be loaded makes runs with ``trouble``.

    Runs that ask the same, as draws of few choices do, have the same key.
    """
    found: list[Run] = []
    loaded: dict[tuple[str, int | None], Run] = {}
    for world, trouble in _worlds_of(spec):
        for seed, sample, steps, params in _settings_of(spec):
            if (world.source, steps) not in loaded:
                loaded[world.source, steps] = _looked_at(world, steps, trouble)
            base = loaded[world.source, steps]
            found += [_told_apart(base, spec, params, seed, sample, repetition) for repetition in range(spec.repetitions)]
    return found


def _worlds_of(spec: BatchSpec) -> Iterator[tuple[WorldReference, Exception | None]]:
    """Worlds, and what is wrong with those that are none."""
    overrides = tuple(sorted(dict(spec.overrides).items()))
    seen = set()
    for entry in spec.worlds:
        matches = _matches(entry, spec.folder)
        trouble = None if matches else WorldNotFoundError(
            f"{entry!r} matches no shipped world, and no file in {spec.folder}; `empo-bi worlds` lists the shipped ones"
        )  # fmt: skip
        for name, source in matches or [(entry, entry)]:
            if source not in seen:
                seen.add(source)
                yield WorldReference(name, source, spec.folder, overrides), trouble


def _matches(entry: str, folder: Path) -> list[tuple[str, str]]:
    """Names and sources of the worlds that an entry means: one, or all that match a pattern."""
    if _is_function(entry):
        return [(entry, entry)]
    if not any(mark in entry for mark in "*?["):
        beside = folder / Path(entry).expanduser()
        is_file = beside.suffix in (".yaml", ".yml", ".json") and beside.is_file()
        return [(entry, str(beside) if is_file else entry)]
    shipped = [name for name in worlds.available() if fnmatchcase(name, entry)]
    files = sorted(glob(entry, root_dir=folder, recursive=True))
    return [(name, name) for name in shipped] or [
        (name, str(folder / name)) for name in files if name.endswith((".yaml", ".yml"))
    ]


def _is_function(source: str) -> bool:
    return re.fullmatch(r"[\w./~-]+:\w+", source) is not None and not source.startswith("/:")


def _settings_of(spec: BatchSpec) -> Iterator[tuple[int, int | None, int | None, Json]]:
    """Seed, number of the sample, horizon and parameters, the grid changing fastest.

    A sample has the same numbers whatever the world and wherever in the grid, so that they can be compared.
    """
    quantities = [*(() if spec.steps is None else (spec.steps,)), *spec.params]
    listed = [quantity for quantity in quantities if not quantity.is_random]
    drawn = [quantity for quantity in quantities if quantity.is_random]
    for seed in spec.seeds:
        draws = {quantity.name: quantity.draws(spec.samples, seed) for quantity in drawn}
        for sample in range(spec.samples) if drawn else [None]:
            for point in itertools.product(*(quantity.values for quantity in listed)):
                values = dict(zip([quantity.name for quantity in listed], point, strict=True))
                values |= {name: numbers[sample] for name, numbers in draws.items()} if sample is not None else {}
                yield seed, sample, values.pop("steps", None), values


def _looked_at(world: WorldReference, steps: int | None, trouble: Exception | None) -> Run:
    """A run without parameters: what all runs of a world and horizon have in common."""
    try:
        if trouble is not None:
            raise trouble
        model = world.load(steps)
        mapping = to_mapping(model.world_spec) if isinstance(model, GridWorld) else None
        goals = key_of(getattr(model, "possible_goal_generator", None)) if mapping is None else mapping.get("possible_goals")
        identity = identity_of(model)
        # What cannot be told from others is told by where it comes from.
        told = [world.source] if identity is None or (mapping is None and goals is None) else [identity, goals]
        horizon = getattr(model, "max_steps", None) if steps is None else steps
    except (EmpoError, TypeError, ValueError, OSError, ImportError) as error:
        return Run(world, steps, steps, {}, world_key=digest_of(f"{world.source} {world.overrides} {steps}"), trouble=error)
    about = {"title": title_of(model), "digest": digest_of(json.dumps(told)), "mapping": mapping}
    return Run(world, steps, horizon, {}, world_key=digest_of(json.dumps([*told, horizon])), about=about)


def _told_apart(base: Run, spec: BatchSpec, params: Json, seed: int, sample: int | None, repetition: int) -> Run:
    # Samples are told by their numbers, whatever seed they were drawn with; rollouts have seeds of their own.
    content: Json = {"world": base.world_key, "params": Params(**params).describe(), "precision": spec.precision}
    if repetition or (spec.rollouts and seed):
        content |= {"repetition": repetition, "seed": seed}
    key = digest_of(json.dumps(content, sort_keys=True))
    return replace(base, params=params, seed=seed, sample=sample, repetition=repetition, key=key)


def _slug(name: str) -> str:
    """A world's name as part of a folder's."""
    stem = name.rpartition("/")[2].removesuffix(".yaml").removesuffix(".yml")
    return re.sub(r"[^\w-]+", "_", stem)[:40] or "world"
