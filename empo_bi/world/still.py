"""Actions that do nothing, by their names."""

from __future__ import annotations

from collections.abc import Sequence

STILL_NAMES = ("still", "pass", "stay", "stand", "wait", "noop", "no-op", "no_op", "nothing", "do nothing", "idle")


def still_action(names: Sequence[str]) -> int | None:
    """The first action whose name says that it does nothing; None if there is none."""
    return next((a for a, name in enumerate(names) if str(name).lower() in STILL_NAMES), None)
