"""Where the bodies of a world written in Python are, counted once over all levels of a store.

Its levels may have any bodies, so the marker of a level does not tell whether another one has the same body, too, or whether
what follows is on a higher level. Compiled worlds need no census: their bodies are numbered level by level.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from empo_bi.dag.slices import BodySlice, as_array
from empo_bi.store.format_names import level_name, spoken
from empo_bi.store.records import FormatError
from empo_bi.types import Bodies

NOWHERE = -1


class BodyCensus:
    """The level that has each body or, where bodies are shared, that expands it."""

    def __init__(self, *, shares_bodies: bool) -> None:
        self._shares_bodies = shares_bodies
        self._level_B: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self.n_levels = 0

    def add(self, piece: BodySlice, n_bodies: int) -> None:
        """Count the next level; ``n_bodies`` are known by then. :class:`FormatError` if another one has its bodies."""
        t, bodies = self.n_levels, as_array(self._counted(piece))
        if n_bodies > len(self._level_B):
            self._level_B = np.concatenate([self._level_B, np.full(n_bodies - len(self._level_B), NOWHERE, dtype=np.int32)])
        where = spoken(level_name(t))
        if len(bodies) and int(bodies[-1]) >= len(self._level_B):
            raise FormatError(f"{where}: it has body {int(bodies[-1]):,}, but {len(self._level_B):,} are known")
        if (self._level_B[bodies] != NOWHERE).any():
            verb = "expands" if self._shares_bodies else "has"
            raise FormatError(f"{where}: it {verb} a body that level {int(self._level_B[bodies].max())} {verb}, too")
        self._level_B[bodies] = t
        self.n_levels += 1

    def _counted(self, piece: BodySlice) -> Bodies:
        return piece.expanded if self._shares_bodies else piece.members

    def check(self, t: int, piece: BodySlice, *, is_finished: bool) -> None:
        """Whether what follows level ``t`` is on higher levels, or its states are expanded somewhere up to it."""
        where = spoken(level_name(t))
        if self._shares_bodies:
            level_M = self._level_B[as_array(piece.members)[piece.goes_on_S]]
            if not ((level_M >= 0) & (level_M <= t)).all():
                raise FormatError(f"{where}: a state that goes on is expanded nowhere")
        elif piece.succ_K is not None:
            level_K = self._level_B[piece.succ_K]
            if not ((level_K > t) | (False if is_finished else level_K == NOWHERE)).all():
                raise FormatError(
                    f"{where}, array 'succ': a transition leads to level {int(level_K.min())}, which is not a later one"
                )
