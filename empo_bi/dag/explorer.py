"""What finds a world's states, level by level: one interface for compiled worlds and for those written in Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from empo_bi.dag.levels import Levels
from empo_bi.dag.slices import BodySlice


class Explorer(Protocol):
    """Expands one level after the other.

    What it yields depends on the world alone, not on blocks or workers; so a run that continues an interrupted one ends with
    the same bytes.
    """

    n_profiles: int
    shares_bodies: bool  # whether a body may be on several levels
    levels_are: str  # "steps", "given" by the user's function, or "derived" from the transitions

    @property
    def n_levels(self) -> int | None:
        """How many levels there will be, if that is known beforehand."""

    @property
    def n_known(self) -> int:
        """Bodies met so far."""

    @property
    def nbytes(self) -> int:
        """What it holds to recognise them, in Python worlds a guess."""

    @property
    def waiting_bytes(self) -> int:
        """Transitions of the level in work that wait in memory for its end."""

    def next_level(self, earlier: Levels) -> BodySlice | None:
        """The next level, None after the last. ``earlier`` are the levels before it, read as needed."""

    def check(self, heads: Iterable[BodySlice]) -> None:
        """Raise :class:`StoreMismatchError` if levels found earlier are not those that this explorer would find."""

    def frontier(self) -> list[BodySlice]:
        """What is known of the levels not yet expanded: their first states, without transitions."""

    def give_back(self) -> None:
        """Move to disk what can wait there, since memory is short."""

    def resume(self, done: Levels, frontier: list[BodySlice]) -> None:
        """Go on after the levels ``done``, with the frontier that belonged to the last of them, or begin anew."""
