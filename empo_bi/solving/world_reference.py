"""A world as people write it: the name of a shipped one, a file, or a Python function that makes it."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empo_bi.dag.world_fingerprint import identity_of, key_of
from empo_bi.errors import StoreMismatchError, WorldWarning
from empo_bi.problem.callbacks import has_own_durations
from empo_bi.runtime.digests import digest_of
from empo_bi.runtime.user_functions import function_of, text_key
from empo_bi.solving.enumeration import title_of
from empo_bi.store.solution_folders import durations_key
from empo_bi.types import Json
from empo_bi.world.gridworld import load_world
from empo_bi.world.text import to_mapping


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

    model: Any
    horizon: int | None
    key: str
    about: Json


@dataclass(frozen=True)
class WorldReference:
    """How a batch calls a world: ``name`` in its table, ``source`` for :func:`load_world`, or ``module:function``."""

    name: str
    source: str
    folder: Path
    overrides: tuple[tuple[str, Any], ...] = ()

    @property
    def is_function(self) -> bool:
        return re.fullmatch(r"(.+\.py|[\w.]+):\w+", self.source) is not None

    def look(self, steps: int | None) -> ResolvedWorld:
        """Make the world, with a horizon or with its own."""
        options = dict(self.overrides) | ({} if steps is None else {"max_steps": steps})
        if self.is_function:
            return self._look_at_function(options)
        model = load_world(self.source, **options)
        mapping = to_mapping(model.world_spec)
        told = [identity_of(model), mapping.get("possible_goals"), model.max_steps]
        key = digest_of(json.dumps(told))
        return ResolvedWorld(model, model.max_steps, key, {"title": title_of(model), "key": key, "mapping": mapping})

    def _look_at_function(self, options: Json) -> ResolvedWorld:
        """What a function made may have been changed in any way, so that its whole module counts, too."""
        function = function_of(self.source, self.folder, "'my_worlds.py:make_ring', a function that makes a world")
        model = function(**options)
        horizon = getattr(model, "max_steps", options.get("max_steps"))
        told = [
            text_key(function, f"{self.source} {self.folder}"), sorted(options.items()), horizon, identity_of(model),
            key_of(getattr(model, "possible_goal_generator", None)),
            durations_key(model, are_asked=has_own_durations(model)),
            *(list(getattr(model, f"{role}_agent_indices", ())) for role in ("human", "robot")),
        ]  # fmt: skip
        key = digest_of(json.dumps(told, default=str))
        return ResolvedWorld(model, horizon, key, {"title": title_of(model), "key": key, "mapping": None})

    def load_again(self, steps: int | None, about: Json) -> Any:
        """The very world that was looked at, also if its file has been changed or removed since.

        Raises
        ------
        StoreMismatchError
            If a function makes another one now.
        """
        if about["mapping"] is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", WorldWarning)  # they were told when it was looked at
                return load_world(about["mapping"])
        look = self.look(steps)
        if look.key != about["key"]:
            raise StoreMismatchError(
                f"{self.source} makes another world now than when the run was asked for; run the batch again, which "
                "takes it for a new one"
            )
        return look.model
