"""YAML as plain data, with the line of each key, so that complaints can point to it.

It is loaded with the safe loader only; tags that would construct objects are refused.
"""

from __future__ import annotations

from typing import Any

import yaml

MAX_NODES = 200_000  # bounds what YAML aliases may unfold to
MAX_DEPTH = 30  # an alias that holds itself is endlessly deep
MAX_DIGITS = 400  # of a number in base 60 (1:30:00); the time to read one grows with the square of its length

KeyPath = tuple[str | int, ...]


def load_yaml(text: str, origin: str, lines: dict[KeyPath, int], *, what: str, error: type[ValueError]) -> Any:
    """The content of a text, and in ``lines`` the line of each key. Complaints are of the class ``error``."""
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
        if isinstance(trouble, error):  # complaints from _note_lines pass through
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
    """Record the line of each key, list entry and map row; refuse repeated keys and texts that unfold without end."""
    stack: list[tuple[yaml.Node, KeyPath]] = [(root, ())]
    seen = 0
    while stack:
        node, here = stack.pop()
        seen += 1
        if seen > MAX_NODES or len(here) > MAX_DEPTH:
            raise error(
                f"{origin}: unfolds to more than {MAX_NODES:,} values or {MAX_DEPTH} levels; is it a {what}? "
                "Aliases (&, *) may be the cause"
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
                raise error(
                    f"{origin}:{marked.start_mark.line + 1}: key {path[-1]!r} stands twice in one mapping; keep one of them"
                )
            paths.add(path)
            lines.setdefault(path, marked.start_mark.line + 1)
            stack.append((child, path))


def _check_scalar(node: yaml.Node, origin: str, what: str, error: type[ValueError]) -> None:
    """Keys, and what holds nothing else: texts, and numbers that end."""
    line = f"{origin}:{node.start_mark.line + 1}"
    if not isinstance(node, yaml.ScalarNode):
        raise error(f"{line}: a key that is a list or a mapping; keys of a {what} are texts")
    if len(node.value) > MAX_DIGITS and ":" in node.value and node.tag.endswith((":int", ":float")):
        raise error(f"{line}: a number in base 60 of {len(node.value):,} characters; is it a {what}?")
