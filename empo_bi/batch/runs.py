"""The runs of a batch, and the keys that identify them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from empo_bi.batch.references import references_of
from empo_bi.batch.spec import BatchSpec
from empo_bi.problem.params import Params
from empo_bi.runtime.digests import digest_of
from empo_bi.solving.world_reference import WorldReference
from empo_bi.types import Json


@dataclass(frozen=True, eq=False)
class Run:
    """One row of the table: a world, a horizon, a set of parameters.

    Attributes
    ----------
    given_steps, steps : the horizon as given, None for the world's own; and as it is
    key : identifies this run, also in other batches
    folder_name : its folder, below ``runs`` in the folder of the batch
    about : about the world, see :class:`~empo_bi.solving.world_reference.ResolvedWorld`
    trouble : why this run cannot begin, if it cannot
    """

    world: WorldReference
    given_steps: int | None
    steps: int | None
    params: Json
    seed: int = 0
    sample: int | None = None
    repetition: int = 0
    key: str = ""
    folder_name: str = ""
    about: Json = field(default_factory=dict)
    trouble: Exception | None = None

    @property
    def rollout_seed(self) -> int:
        """Always the same for the same run."""
        return int(digest_of(f"{self.seed} {self.repetition} {self.key}"), 16)


def runs_of(spec: BatchSpec) -> list[Run]:
    """All runs of a batch, in the order of its table. A world that cannot be loaded makes runs with ``trouble``.

    Identical runs, which draws from few choices make, have the same key.
    """
    found: list[Run] = []
    looked_at: dict[tuple[str, int | None], Run] = {}
    for world, trouble in references_of(spec):
        for seed, sample, steps, params in _settings_of(spec):
            if (world.source, steps) not in looked_at:
                looked_at[world.source, steps] = _look(world, steps, trouble)
            base = looked_at[world.source, steps]
            found += [_with_key(base, spec, params, seed, sample, repetition) for repetition in range(spec.repetitions)]
    return found


def _settings_of(spec: BatchSpec) -> Iterator[tuple[int, int | None, int | None, Json]]:
    """Seed, number of the sample, horizon and parameters; the grid changes fastest.

    A sample has the same numbers for all worlds and all points of the grid, so that they can be compared.
    """
    parameters = [*(() if spec.steps is None else (spec.steps,)), *spec.params]
    listed = [parameter for parameter in parameters if not parameter.is_random]
    drawn = [parameter for parameter in parameters if parameter.is_random]
    for seed in spec.seeds:
        draws = {parameter.name: parameter.draws(spec.samples, seed) for parameter in drawn}
        for sample in range(spec.samples) if drawn else [None]:
            for point in itertools.product(*(parameter.values for parameter in listed)):
                values = dict(zip([parameter.name for parameter in listed], point, strict=True))
                values |= {name: numbers[sample] for name, numbers in draws.items()} if sample is not None else {}
                yield seed, sample, values.pop("steps", None), values


def _look(world: WorldReference, steps: int | None, trouble: Exception | None) -> Run:
    """A run without parameters: what all runs of a world and horizon have in common."""
    try:
        if trouble is not None:
            raise trouble
        look = world.look(steps)
    except (Exception, SystemExit) as error:  # whatever a user's function does
        cause = RuntimeError(f"SystemExit: {error}") if isinstance(error, SystemExit) else error
        about = {"title": world.name, "key": digest_of(f"{world.source} {world.overrides} {steps}"), "mapping": None}
        return Run(world, steps, steps, {}, about=about, trouble=cause)
    return Run(world, steps, look.horizon, {}, about=look.about)


def _with_key(base: Run, spec: BatchSpec, params: Json, seed: int, sample: int | None, repetition: int) -> Run:
    # Samples are identified by their numbers, whatever seed drew them; only rollouts depend on the seed.
    content: Json = {"world": base.about["key"], "params": Params(**params).describe(), "precision": spec.precision}
    if repetition or (spec.rollouts and seed):
        content |= {"repetition": repetition, "seed": seed}
    key = digest_of(json.dumps(content, sort_keys=True))
    name = "-".join([_slug(base.world.name), *([] if base.steps is None else [str(base.steps)]), key])
    return replace(base, params=params, seed=seed, sample=sample, repetition=repetition, key=key, folder_name=name)


def _slug(name: str) -> str:
    """A world's name as part of a folder's name."""
    stem = name.rpartition("/")[2].removesuffix(".yaml").removesuffix(".yml")
    return re.sub(r"[^\w-]+", "_", stem)[:40] or "world"
