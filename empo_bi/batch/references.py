"""The worlds of a batch: shipped worlds, files, patterns of either, and Python functions that make worlds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from glob import glob
from pathlib import Path

from empo_bi import worlds
from empo_bi.batch.spec import BatchSpec
from empo_bi.errors import WorldNotFoundError
from empo_bi.runtime.wording import did_you_mean
from empo_bi.solving.world_reference import WorldReference


def references_of(spec: BatchSpec) -> Iterator[tuple[WorldReference, Exception | None]]:
    """The worlds of a batch, each once; with an error for entries that match no world."""
    overrides = tuple(sorted(dict(spec.overrides).items()))
    seen = set()
    for entry in spec.worlds:
        matches = _matches(entry, spec.folder)
        trouble = None if matches else WorldNotFoundError(
            f"{entry!r} matches no shipped world, and no file in {spec.folder}.{_near(entry, spec.folder)} `empo-bi worlds` "
            "lists the shipped worlds"
        )  # fmt: skip
        for name, source in matches or [(entry, entry)]:
            if source not in seen:
                seen.add(source)
                yield WorldReference(name, source, spec.folder, overrides), trouble


def _near(entry: str, folder: Path) -> str:
    """A hint at a file of a similar name."""
    return did_you_mean(entry, [path.name for path in folder.glob("*.y*ml")])


def _matches(entry: str, folder: Path) -> list[tuple[str, str]]:
    """Names and sources of the worlds of an entry: one, or all that match a pattern."""
    if not any(mark in entry for mark in "*?["):
        beside = folder / os.path.expanduser(entry)
        if beside.suffix not in (".yaml", ".yml", ".json"):
            return [(entry, entry)]
        return [(entry, str(beside))] if beside.is_file() else [(entry, entry)] if worlds.find(entry) is not None else []
    shipped = [name for name in worlds.available() if fnmatchcase(name, entry)]
    files = sorted(glob(os.path.expanduser(entry), root_dir=folder, recursive=True))
    return [(name, name) for name in shipped] or [
        (name, str(folder / name)) for name in files if name.endswith((".yaml", ".yml"))
    ]
