"""Texts of worlds and batches: files in UTF-8, YAML as plain data, and the line of each key, so that errors can point to it.

YAML is loaded with the safe loader only; tags that would construct objects are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from empo_bi.runtime.printable import one_line

MAX_BYTES = 1_000_000  # a map of 500 x 500 cells fits; more is surely another kind of file
MAX_NODES = 200_000  # limits what YAML aliases expand to
MAX_DEPTH = 30  # an alias that contains itself is endlessly deep
MAX_DIGITS = 400  # of a number in base 60 (1:30:00); the time to read one grows with the square of its length

KeyPath = tuple[str | int, ...]


def read_text(path: Path, *, what: str, remedy: str, error: type[ValueError]) -> str:
    """The text of a file; ``remedy`` says what to do if it cannot be read. Errors have the class ``error``."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise error(f"{path}: {size:,} bytes; a {what} has at most {MAX_BYTES:,}. Is this a {what}?")
        return path.read_text(encoding="utf-8-sig")  # with or without a byte-order mark
    except UnicodeDecodeError as trouble:
        raise error(f"{path}: not UTF-8 text (byte {trouble.start}); a {what} is a text in UTF-8") from trouble
    except OSError as trouble:
        raise error(f"{path}: cannot be read ({trouble.strerror}); {remedy}") from trouble


def place_of_key(origin: str, lines: Mapping[KeyPath, int], path: KeyPath) -> str:
    """``file:line: key``, the beginning of an error message; the line is that of the nearest key above if unknown."""
    key = one_line("".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip("."))
    line = next((lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in lines), None)
    where = origin if line is None else f"{origin}:{line}"
    return f"{where}: {key}" if key else where


def load_yaml(text: str, origin: str, lines: dict[KeyPath, int], *, what: str, error: type[ValueError]) -> Any:
    """The content of a text; the line of each key goes into ``lines``. Errors have the class ``error``."""
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _note_lines(node, lines, origin, what, error)
        return loader.construct_document(node)
    except yaml.constructor.ConstructorError as trouble:
        problem = trouble.problem or "not plain data"
        remedy = f"; a {what} is plain data: remove the tag" if "tag" in problem else ""
        raise error(f"{origin}{_line_of(trouble)}: {problem}{remedy}") from trouble
    except yaml.YAMLError as trouble:
        problem = getattr(trouble, "problem", None) or str(trouble)
        raise error(
            f"{origin}{_line_of(trouble)}: not YAML ({problem}); check indentation, quotes and colons around that line"
        ) from trouble
    except (RecursionError, ValueError, OverflowError) as trouble:
        if isinstance(trouble, error):  # raised by _note_lines
            raise
        raise error(f"{origin}: not a {what} ({type(trouble).__name__}: {trouble})") from trouble
    except (LookupError, AttributeError, TypeError) as trouble:  # PyYAML's own, such as a KeyError for "!!bool x"
        raise error(f"{origin}: a value does not fit its tag, such as !!bool or !!int; remove the tag") from trouble
    finally:
        if loader is not None:
            loader.dispose()


def _line_of(trouble: yaml.YAMLError) -> str:
    mark = getattr(trouble, "problem_mark", None) or getattr(trouble, "context_mark", None)
    return f":{mark.line + 1}" if mark else ""


def _note_lines(root: yaml.Node, lines: dict[KeyPath, int], origin: str, what: str, error: type[ValueError]) -> None:
    """Record the line of each key, list entry and map row; refuse duplicate keys and texts that expand endlessly."""
    stack: list[tuple[yaml.Node, KeyPath]] = [(root, ())]
    seen = 0
    while stack:
        node, here = stack.pop()
        seen += 1
        if seen > MAX_NODES or len(here) > MAX_DEPTH:
            raise error(
                f"{origin}: expands to more than {MAX_NODES:,} values or {MAX_DEPTH} levels, perhaps by aliases (&, *); is "
                f"this a {what}?"
            )
        if isinstance(node, yaml.SequenceNode):
            children = [((*here, i), child, child) for i, child in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            for key, _ in node.value:
                _check_scalar(key, origin, what, error)
            children = [((*here, str(key.value)), key, child) for key, child in node.value]
        else:
            _check_scalar(node, origin, what, error)
            children = []
            if here == ("map",) and isinstance(node, yaml.ScalarNode) and node.style == "|":
                blank = node.value[: len(node.value) - len(node.value.lstrip())].count("\n")
                first = node.start_mark.line + 2 + blank  # the first row below the bar, counted from 1
                lines.update({("map", y): first + y for y in range(node.value.count("\n") + 1)})
        paths: set[KeyPath] = set()
        for path, marked, child in children:
            if path in paths:
                raise error(f"{origin}:{marked.start_mark.line + 1}: duplicate key {path[-1]!r}; keep one of them")
            paths.add(path)
            lines.setdefault(path, marked.start_mark.line + 1)
            stack.append((child, path))


def _check_scalar(node: yaml.Node, origin: str, what: str, error: type[ValueError]) -> None:
    """Refuse keys that are not scalars, and endless numbers in base 60."""
    line = f"{origin}:{node.start_mark.line + 1}"
    if not isinstance(node, yaml.ScalarNode):
        raise error(f"{line}: a key is a list or a mapping; keys of a {what} are texts")
    if len(node.value) > MAX_DIGITS and ":" in node.value and node.tag.endswith((":int", ":float")):
        raise error(f"{line}: a number in base 60 with {len(node.value):,} characters; is this a {what}?")
