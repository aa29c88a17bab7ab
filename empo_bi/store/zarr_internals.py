"""What we use of zarr that it does not document: how its asynchronous stores are called, and whether one is open.

The only module that imports such names. ``tests/test_private_names.py`` says what to do when they change.
"""

from __future__ import annotations

from zarr.abc.store import Store
from zarr.core.sync import sync

__all__ = ["is_open", "open_if_needed", "sync"]


def is_open(store: Store) -> bool:
    """False for a zip file that nobody has read yet."""
    return bool(getattr(store, "_is_open", True))


async def open_if_needed(store: Store) -> None:
    """Open a zip file that nobody has read yet, which does not open itself."""
    if not is_open(store):
        await store._open()
