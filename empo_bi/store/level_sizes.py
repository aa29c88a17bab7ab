"""How large the slices of a store are, from their commit markers alone."""

from __future__ import annotations

import math

import numpy as np

from empo_bi.dag.levels import LevelSizes
from empo_bi.store.records import Json

_WHEN_READ = {"succ": 4, "members": 8, "added": 8, "expanded": 8}  # bytes of numbers that are narrower on disk


def sizes_of(marker: Json) -> LevelSizes:
    nbytes = sum(nbytes_when_read(name, about) for name, about in marker["arrays"].items())
    counts = {name: marker[name] for name in ("value", "n_states", "n_bodies", "n_expanded", "n_transitions")}
    return LevelSizes(**counts, nbytes=nbytes, known=marker["n_known"])


def nbytes_when_read(name: str, about: Json) -> int:
    """An array when it has been read."""
    return int(math.prod(about["shape"]) * _WHEN_READ.get(name, np.dtype(about["dtype"]).itemsize))
