"""Progress bars: on stderr, only for what takes over a second, gone when done."""

from __future__ import annotations

from typing import Any

from tqdm.auto import tqdm


def level_bar(what: str, n_levels: int | None, shown: bool) -> Any:
    """A bar over levels; ``n_levels`` is None where their number is not known beforehand."""
    return tqdm(total=n_levels, unit="level", desc=what, delay=1, leave=False, disable=not shown)
