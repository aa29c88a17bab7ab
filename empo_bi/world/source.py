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

import yaml

from empo_bi import worlds
from empo_bi.errors import WorldFileError, WorldNotFoundError, did_you_mean, short_repr

MAX_BYTES = 1_000_000  # a map of 500 x 500 cells fits; more is surely another kind of file
MAX_NODES = 200_000  # bounds what YAML aliases may unfold to
MAX_DEPTH = 30  # an alias that holds itself is endlessly deep
_YAML_ENDINGS = (".yaml", ".yml")

KeyPath = tuple[str | int, ...]


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
        key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
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
            f"a world comes from a path, a shipped world's name, a YAML or JSON text or a mapping, "
            f"not from {type(source).__name__}"
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
        "empo_bi.worlds.available() lists the shipped ones."
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
        content = _load_yaml(text, origin, lines)
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


def _load_yaml(text: str, origin: str, lines: dict[KeyPath, int]) -> Any:
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _note_lines(node, lines, origin)
        return loader.construct_document(node)
    except yaml.constructor.ConstructorError as error:
        problem = error.problem or "not plain data"
        remedy = "; world files are plain data: remove the tag" if "tag" in problem else ""
        raise WorldFileError(f"{origin}{_line_of(error)}: {problem}{remedy}") from error
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or str(error)
        raise WorldFileError(
            f"{origin}{_line_of(error)}: not YAML ({problem}); check indentation, quotes and colons around that line"
        ) from error
    except (RecursionError, ValueError, OverflowError) as error:
        # WorldFileError is a ValueError too: complaints from _note_lines pass through.
        if isinstance(error, WorldFileError):
            raise
        raise WorldFileError(f"{origin}: not a world file ({type(error).__name__}: {error})") from error
    finally:
        if loader is not None:
            loader.dispose()


def _line_of(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    return f":{mark.line + 1}" if mark else ""


def _note_lines(root: yaml.Node, lines: dict[KeyPath, int], origin: str) -> None:
    """Record the line of each key, list entry and map row; refuse repeated keys and texts that unfold without end."""
    stack: list[tuple[yaml.Node, KeyPath]] = [(root, ())]
    seen = 0
    while stack:
        node, here = stack.pop()
        seen += 1
        if seen > MAX_NODES or len(here) > MAX_DEPTH:
            raise WorldFileError(
                f"{origin}: unfolds to more than {MAX_NODES:,} values or {MAX_DEPTH} levels; is it a world file? "
                "Aliases (&, *) may be the cause"
            )
        if isinstance(node, yaml.SequenceNode):
            children = [((*here, i), child, child) for i, child in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            children = [((*here, str(key.value)), key, child) for key, child in node.value]
        else:
            children = []
            if here == ("map",) and isinstance(node, yaml.ScalarNode) and node.style == "|":
                blank = node.value[: len(node.value) - len(node.value.lstrip())].count("\n")
                first = node.start_mark.line + 2 + blank  # the first row below the bar, counted from 1
                lines.update({("map", y): first + y for y in range(node.value.count("\n") + 1)})
        paths: set[KeyPath] = set()
        for path, marked, child in children:
            if path in paths:
                raise WorldFileError(
                    f"{origin}:{marked.start_mark.line + 1}: key {path[-1]!r} stands twice in one mapping; keep one of them"
                )
            paths.add(path)
            lines.setdefault(path, marked.start_mark.line + 1)
            stack.append((child, path))


def _name_of(mapping: Mapping[str, Any], otherwise: str) -> str:
    metadata = mapping.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return otherwise if name is None or name == "" else str(name)
