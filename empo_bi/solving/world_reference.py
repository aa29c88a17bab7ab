"""A world as people write it: the name of a shipped one, a file, or a Python function that makes it."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

from empo_bi.dag.world_fingerprint import identity_of, key_of
from empo_bi.errors import StoreMismatchError, WorldWarning
from empo_bi.runtime.digests import digest_of
from empo_bi.runtime.user_functions import REFERENCE, function_of, text_key
from empo_bi.store.solution_folders import durations_key
from empo_bi.types import Json
from empo_bi.world.as_model import as_model
from empo_bi.world.load import load_world
from empo_bi.world.model import World


@dataclass(frozen=True)
class ResolvedWorld:
    """A world that was made, and what is known of it.

    Attributes
    ----------
    model : the world
    horizon : its steps; None for a world in Python that does not say
    key : the same for runs that can share a DAG, and for these alone
    about : for manifests: title, key, and for worlds from files all that makes them
    """

    model: World
    horizon: int | None
    key: str
    about: Json


@dataclass(frozen=True)
class WorldReference:
    """How a batch calls a world: ``name`` in its table, ``source`` for :func:`load_world`, or ``module:function``."""

    name: str
    source: str
    folder: Path
    overrides: tuple[tuple[str, object], ...] = ()

    @property
    def is_function(self) -> bool:
        return REFERENCE.fullmatch(self.source) is not None

    def look(self, steps: int | None) -> ResolvedWorld:
        """Make the world, with a horizon or with its own."""
        options: Json = dict(self.overrides) | ({} if steps is None else {"max_steps": steps})
        if self.is_function:
            return self._look_at_function(options)
        world = load_world(self.source, **options)
        model = as_model(world)
        mapping = model.mapping or {}
        told = [identity_of(world), mapping.get("possible_goals"), model.max_steps]
        key = digest_of(json.dumps(told))
        return ResolvedWorld(world, model.max_steps, key, {"title": model.title, "key": key, "mapping": mapping})

    def _look_at_function(self, options: Json) -> ResolvedWorld:
        """What a function made may have been changed in any way, so that its whole module counts, too."""
        function = function_of(self.source, self.folder, "'my_worlds.py:make_ring', a function that makes a world")
        world = function(**options)
        model = as_model(world)
        horizon = getattr(world, "max_steps", options.get("max_steps"))
        told = [
            text_key(function, f"{self.source} {self.folder}"), sorted(options.items()), horizon, identity_of(world),
            key_of(model.goal_generator),
            durations_key(model, are_asked=model.has_own_durations),
            list(model.human_agent_indices), list(model.robot_agent_indices),
        ]  # fmt: skip
        key = digest_of(json.dumps(told, default=str))
        return ResolvedWorld(world, horizon, key, {"title": model.title, "key": key, "mapping": None})

    def load_again(self, steps: int | None, about: Json) -> World:
        """The very world that was looked at, also if its file has been changed or removed since.

        Raises
        ------
        StoreMismatchError
            If a function makes another one now.
        """
        if about["mapping"] is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", WorldWarning)  # they were given when it was looked at
                return load_world(about["mapping"])
        look = self.look(steps)
        if look.key != about["key"]:
            raise StoreMismatchError(
                f"{self.source} now makes a different world than when the batch started; run the batch again, "
                "where it counts as a new run"
            )
        return look.model
