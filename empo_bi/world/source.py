"""Where a world comes from: a file, the name of a shipped world, a text, or a mapping.

The result is a plain mapping and the line of each key, so that later errors can point to it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from empo_bi import worlds
from empo_bi.errors import WorldFileError, WorldNotFoundError
from empo_bi.runtime.wording import did_you_mean, short_repr
from empo_bi.world.yaml_text import MAX_BYTES, KeyPath, load_yaml, place_of_key, read_text

_YAML_ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True)
class WorldSource:
    """A world as written: its mapping, where it came from, and the line of each key, where known."""

    mapping: dict[str, Any]
    origin: str
    name: str
    lines: dict[KeyPath, int] = field(default_factory=dict)
    overridden: frozenset[str] = frozenset()

    def place(self, *path: str | int) -> str:
        """``file:line: key`` as far as known, the beginning of every error message."""
        if path and path[0] in self.overridden:
            return place_of_key("", {}, path).removeprefix(": ") + "=... passed to load_world"
        return place_of_key(self.origin, self.lines, path)

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
            f"source={short_repr(source)} ({type(source).__name__}); give a path, the name of a shipped world, a YAML or "
            "JSON text, or a mapping"
        )
    path = _find(source)
    text = read_text(path, what="world file", remedy="check the file's permissions", error=WorldFileError)
    return _parse(text, origin=str(path), name=path.stem, as_json=path.suffix.lower() not in _YAML_ENDINGS)


def _is_text(source: str) -> bool:
    """Whether a string is a world's text, not a name or path: it has lines, a brace, or a key without such a file."""
    return "\n" in source or source.lstrip().startswith("{") or (": " in source and not os.path.isfile(source))


def _find(source: str | os.PathLike[str]) -> Path:
    """The file of a name or path; a bare name is first looked for among shipped worlds, then in this folder."""
    name = os.fspath(source)
    shipped = worlds.find(name) if isinstance(source, str) else None
    path = Path(os.path.expanduser(name))  # unlike Path.expanduser, it does not fail for an unknown user
    if shipped is not None and not path.suffix:
        return shipped
    # os.path returns False where pathlib raises an error: for names that are too long or have a null character.
    for candidate in (path, *(Path(f"{path}{ending}") for ending in _YAML_ENDINGS)):
        if os.path.isfile(candidate):
            return candidate
    if shipped is not None:
        return shipped
    inside = [full for full in worlds.available() if full.startswith(f"{name.rstrip('/')}/")]
    if name and inside:
        raise WorldNotFoundError(f"{name!r} is a folder of shipped worlds; give one of them: {', '.join(inside)}")
    if name and os.path.isdir(path):
        raise WorldNotFoundError(f"{path} is a folder; give a world file in it")
    hint = did_you_mean(name, [*worlds.available(), *(full.split("/")[-1] for full in worlds.available())])
    raise WorldNotFoundError(
        f"{short_repr(name)} is neither a file (looked in {Path.cwd()}) nor a shipped world.{hint} "
        "empo_bi.worlds.available(), or the command empo-bi worlds, lists the shipped ones."
    )


def _parse(text: str, *, origin: str, name: str, as_json: bool) -> WorldSource:
    if len(text) > MAX_BYTES:
        raise WorldFileError(f"{origin}: {len(text):,} characters; a world's text has at most {MAX_BYTES:,}")
    lines: dict[KeyPath, int] = {}
    if as_json and (mapping := _try_json(text, origin, must=origin != "<text>")) is not None:
        content: object = mapping
    else:
        content = load_yaml(text, origin, lines, what="world file", error=WorldFileError)
    if not isinstance(content, dict):
        raise WorldFileError(
            f"{origin}: found {type(content).__name__}, expected a mapping with at least the key 'map', "
            "as in 'map: |' followed by the rows of the grid"
        )
    return WorldSource(content, origin, _name_of(content, name), lines)


def _try_json(text: str, origin: str, *, must: bool) -> Any:
    """JSON content; None if the text is not JSON but may be YAML in flow style (``must`` is false)."""
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _without_repeats(pairs, origin))
    except json.JSONDecodeError as error:
        if not must:
            return None
        raise WorldFileError(
            f"{origin}:{error.lineno}: not JSON ({error.msg}, column {error.colno}); "
            "files that do not end in .yaml or .yml are read as JSON: correct it, or rename it"
        ) from error
    except WorldFileError:
        raise
    except (RecursionError, ValueError) as error:
        raise WorldFileError(f"{origin}: not a world file ({type(error).__name__}: {error})") from error


def _without_repeats(pairs: list[tuple[str, Any]], origin: str) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        duplicate = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise WorldFileError(f"{origin}: duplicate key {duplicate!r}; keep one of them")
    return mapping


def _name_of(mapping: Mapping[str, Any], otherwise: str) -> str:
    metadata = mapping.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    # Halves of characters, which escapes can spell, cannot be written to any file.
    return otherwise if name is None or name == "" else str(name).encode("utf-8", "replace").decode()
