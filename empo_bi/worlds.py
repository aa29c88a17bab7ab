"""The shipped worlds: their names and files.

>>> "jobst_challenges/asymmetric_freeing" in available()
True
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

from empo_bi.errors import WorldNotFoundError
from empo_bi.runtime.wording import did_you_mean

_HERE = Path(__file__).parent
# Inside an installed package, or at the top of a checkout.
_PLACES = (_HERE / "shipped_worlds", _HERE.parent / "worlds")


@cache
def _files() -> dict[str, Path]:
    for place in _PLACES:
        if place.is_dir():
            return {p.relative_to(place).with_suffix("").as_posix(): p for p in sorted(place.rglob("*.yaml"))}
    return {}


def available() -> list[str]:
    """Names of all shipped worlds, ``"folder/world"``, in alphabetical order."""
    return list(_files())


def find(name: str) -> Path | None:
    """The file of a shipped world, named ``"folder/world"`` or, if that is unique, ``"world"``; None if there is none."""
    wanted = name.removesuffix(".yaml").removesuffix(".yml").removeprefix("worlds/")
    files = _files()
    if wanted in files:
        return files[wanted]
    matches = [full for full in files if full.split("/")[-1] == wanted]
    if len(matches) > 1:
        raise WorldNotFoundError(f"{name!r} is ambiguous; give one of {', '.join(matches)}")
    return files[matches[0]] if matches else None


def purpose(name: str) -> str:
    """What a shipped world shows: the comment at the top of its file."""
    path = find(name)
    if path is None:
        hint = did_you_mean(name, [*available(), *(full.split("/")[-1] for full in available())])
        raise WorldNotFoundError(
            f"no shipped world is called {name!r}.{hint} empo_bi.worlds.available(), or the command empo-bi worlds, has all"
        )
    return comment_at_top(path)


def comment_at_top(path: Path) -> str:
    """What the comment at the top of a world file says, in one line."""
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    return " ".join(line.lstrip("# ").rstrip() for line in itertools.takewhile(lambda line: line.startswith("#"), lines))
