"""Names, version and sizes of the format that docs/format.md describes."""

from __future__ import annotations

import re

FORMAT, VERSION = "empo_bi DAG", 1
ATTRIBUTE = "empo_bi"  # of groups: the manifest at the root, the commit marker of a level
ROOT = ""
FINISHED = "finished"  # group that appears after the last level
BODY_ARRAYS = ("members", "added", "expanded", "ended")  # which bodies there are
HEAD_ARRAYS = (*BODY_ARRAYS, "key", "states")  # everything but transitions and goals attained
TRANSITIONS = ("count", "succ", "prob")
CHUNK_BYTES = 4 << 20  # large enough to stream, small enough to compress in the processor's cache


def level_name(t: int) -> str:
    return f"level_{t:05}"


def frontier_name(t: int) -> str:
    return f"frontier_{t:05}"


def spoken(group: str) -> str:
    """A group's name in a message."""
    if not group:
        return "the store"
    return f"level {int(group.removeprefix('level_'))}" if group.startswith("level_") else f"group {group}"


def is_our_name(name: str) -> bool:
    """Whether something at the root of a store is part of this format, or what zarr leaves of an interrupted write."""
    return re.fullmatch(r"zarr\.json|finished|(level|frontier)_\d{5,}", name) is not None or is_half_a_file(name)


def is_half_a_file(name: str) -> bool:
    """Whether zarr was interrupted before it could give the file its name."""
    return re.fullmatch(r"\w+\.[0-9a-f]{32}\.partial", name) is not None
