"""Where a world's text comes from: a file, a shipped world's name, a text, a mapping.

The result is a plain mapping plus the line on which each key stands, so that every later complaint can point to it.
YAML is loaded with the safe loader only; tags that would construct objects are refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from empo_bi import worlds
from empo_bi.errors import WorldFileError, WorldNotFoundError
from empo_bi.runtime.printable import one_line
from empo_bi.runtime.wording import did_you_mean, short_repr
from empo_bi.world.yaml_text import KeyPath, load_yaml

MAX_BYTES = 1_000_000  # a map of 500 x 500 cells fits; more is surely another kind of file
_YAML_ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True)
class WorldSource:
    """A world as written: its mapping, where it came from, and the line of each key (empty when unknown)."""

    mapping: dict[str, Any]
    origin: str
    name: str
    lines: dict[KeyPath, int] = field(default_factory=dict)
    overridden: frozenset[str] = frozenset()

    def place(self, *path: str | int) -> str:
        """``file:line: key`` as far as known, the beginning of every complaint."""
        key = one_line("".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip("."))
        if path and path[0] in self.overridden:
            return f"{key}=... passed to load_world"
        line = self.lines.get(path) or self.lines.get(path[:-1])
        where = f"{self.origin}:{line}" if line else self.origin
        return f"{where}: {key}" if key else where

    def error(self, *path: str | int, message: str) -> WorldFileError:
        return WorldFileError(f"{self.place(*path)}: {message}")


def read_source(source: str | os.PathLike[str] | Mapping[str, Any]) -> WorldSource:
    """Read a path, the name of a shipped world, a YAML or JSON text, or a mapping."""
    if isinstance(source, Mapping):
        return WorldSource(dict(source), origin="<mapping>", name=_name_of(source, "unnamed"))
    if isinstance(source, str) and _is_text(source):
        return _parse(source, origin="<text>", name="unnamed", as_json=source.lstrip().startswith("{"))
    if not isinstance(source, str | os.PathLike):
        raise TypeError(
            f"source={short_repr(source)}: a world comes from a path, a shipped world's name, a YAML or JSON text or a "
            f"mapping, not from {type(source).__name__}"
        )
    path = _find(source)
    return _parse(_read(path), origin=str(path), name=path.stem, as_json=path.suffix.lower() not in _YAML_ENDINGS)


def _is_text(source: str) -> bool:
    """Whether a string is a world's text rather than a name or path: it has lines, braces, or a key and no such file."""
    return "\n" in source or source.lstrip().startswith("{") or (": " in source and not os.path.isfile(source))


def _find(source: str | os.PathLike[str]) -> Path:
    """The file that a name or path stands for; a bare name is a shipped world first, a file in this folder second."""
    name = os.fspath(source)
    shipped = worlds.find(name) if isinstance(source, str) else None
    path = Path(os.path.expanduser(name))  # unlike Path.expanduser, it leaves an unknown user's folder as it is
    if shipped is not None and not path.suffix:
        return shipped
    # os.path answers False where pathlib raises: for names too long, or with a null character.
    for candidate in (path, *(Path(f"{path}{ending}") for ending in _YAML_ENDINGS)):
        if os.path.isfile(candidate):
            return candidate
    if shipped is not None:
        return shipped
    inside = [full for full in worlds.available() if full.startswith(f"{name.rstrip('/')}/")]
    if name and inside:
        raise WorldNotFoundError(f"{name!r} is a folder of shipped worlds; give one of them: {', '.join(inside)}")
    if name and os.path.isdir(path):
        raise WorldNotFoundError(f"{path} is a folder; give one of the world files in it")
    hint = did_you_mean(name, [*worlds.available(), *(full.split("/")[-1] for full in worlds.available())])
    raise WorldNotFoundError(
        f"{short_repr(name)} is neither a file (looked in {Path.cwd()}) nor a shipped world.{hint} "
        "empo_bi.worlds.available(), or the command empo-bi worlds, lists the shipped ones."
    )


def _read(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise WorldFileError(
                f"{path}: {size:,} bytes; a world file has at most {MAX_BYTES:,}. Is it a world file at all?"
            )
        return path.read_text(encoding="utf-8-sig")  # with or without a byte-order mark
    except UnicodeDecodeError as error:
        raise WorldFileError(
            f"{path}: not UTF-8 text (byte {error.start}); a world file is YAML or JSON in UTF-8"
        ) from error
    except OSError as error:
        raise WorldFileError(f"{path}: cannot be read ({error.strerror}); check the file's permissions") from error


def _parse(text: str, *, origin: str, name: str, as_json: bool) -> WorldSource:
    if len(text) > MAX_BYTES:
        raise WorldFileError(f"{origin}: {len(text):,} characters; a world's text has at most {MAX_BYTES:,}")
    lines: dict[KeyPath, int] = {}
    if as_json and (mapping := _try_json(text, origin, must=origin != "<text>")) is not None:
        content: Any = mapping
    else:
        content = load_yaml(text, origin, lines, what="world file", error=WorldFileError)
    if not isinstance(content, dict):
        raise WorldFileError(
            f"{origin}: found {type(content).__name__}, expected a mapping with at least the key 'map', "
            "as in 'map: |' followed by the rows of the grid"
        )
    return WorldSource(content, origin, _name_of(content, name), lines)


def _try_json(text: str, origin: str, *, must: bool) -> Any:
    """JSON content, or None where the text may still be YAML in flow style (``must`` is false)."""
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _without_repeats(pairs, origin))
    except json.JSONDecodeError as error:
        if not must:
            return None
        raise WorldFileError(
            f"{origin}:{error.lineno}: not JSON ({error.msg}, column {error.colno}); "
            "a file that does not end in .yaml or .yml is read as JSON: mend it, or rename it"
        ) from error
    except WorldFileError:
        raise
    except (RecursionError, ValueError) as error:
        raise WorldFileError(f"{origin}: not a world file ({type(error).__name__}: {error})") from error


def _without_repeats(pairs: list[tuple[str, Any]], origin: str) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise WorldFileError(f"{origin}: key {twice!r} stands twice in one mapping; keep one of them")
    return mapping


def _name_of(mapping: Mapping[str, Any], otherwise: str) -> str:
    metadata = mapping.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return otherwise if name is None or name == "" else str(name)
