"""Names, version and sizes of the format that docs/format.md describes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from empo_bi._version import __version__

FORMAT, VERSION = "empo_bi DAG", 1
WRITTEN_BY = f"empo_bi {__version__}"  # who began a store; for people, since readers go by the version of the format
ATTRIBUTE = "empo_bi"  # of groups: the manifest at the root, the commit marker of a level
ROOT = ""
FINISHED = "finished"  # group that appears after the last level
BODY_ARRAYS = ("members", "added", "expanded", "ended")  # which bodies there are
HEAD_ARRAYS = (*BODY_ARRAYS, "key", "states")  # everything but transitions and goals attained
TRANSITIONS = ("count", "succ", "prob")
COMPRESSORS = ("zstd", "lz4", "lz4hc", "blosclz", "zlib")  # of Blosc
CHUNK_BYTES = 4 << 20  # large enough to stream, small enough to compress in the processor's cache


@dataclass(frozen=True)
class StoreKind:
    """What distinguishes one kind of store from another: its format, its names, and the words of its messages."""

    format: str
    version: int
    noun: str  # what the store is called
    maker: str  # the call that makes it
    remedy: str  # what to do about damage
    resume_prefix: str  # how groups are called that have what is needed to continue after a level
    closed: str  # what is wrong, and what to do, where somebody reads what was closed
    has_guests: bool  # whether a store is continued although somebody has put files of their own into its folder
    others: str = ""  # names of further groups, a regular expression

    def resume_name(self, t: int) -> str:
        """The group without which nobody can continue after level ``t``."""
        return f"{self.resume_prefix}_{t:05}"

    def is_our_name(self, name: str) -> bool:
        """Whether something at the root of a store is part of the format, or what zarr leaves of an interrupted write."""
        groups = rf"zarr\.json|(level|{self.resume_prefix})_\d{{5,}}{self.others}"
        return re.fullmatch(groups, name) is not None or is_half_a_file(name)


DAG_KIND = StoreKind(
    FORMAT, VERSION, noun="slice store", maker="enumerate_dag(world, store=...)",
    remedy="To make the store anew, call what made it (enumerate_dag, or solve) with overwrite=True (--overwrite), or "
    "delete it",
    resume_prefix="frontier", closed="this DAG was closed; open it again, or enumerate it anew", has_guests=True,
    others=f"|{FINISHED}",
)  # fmt: skip
SOLUTION_KIND = StoreKind(
    "empo_bi solution", 1, noun="solution", maker="solve(world, out=...)",
    remedy="To make it anew, call solve with overwrite=True, or delete it",
    resume_prefix="carry", closed="this solution was closed; solve again to open it", has_guests=False,
)  # fmt: skip


def level_name(t: int) -> str:
    return f"level_{t:05}"


def spoken(group: str) -> str:
    """A group's name in a message."""
    if not group:
        return "the store"
    return f"level {int(group.removeprefix('level_'))}" if group.startswith("level_") else f"group {group}"


def is_half_a_file(name: str) -> bool:
    """Whether zarr was interrupted before it could give the file its name."""
    return re.fullmatch(r"\w+\.[0-9a-f]{32}\.partial", name) is not None
