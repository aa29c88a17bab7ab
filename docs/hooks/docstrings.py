"""Docstrings speak of equations and of other names in reStructuredText; here that becomes Markdown for the reference.

Entries of their sections are lists of our own: numpydoc has a type after the colon, and the docstrings of this package
often have a whole description there, which is to be read as such.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([^`]+)`")
INLINE = re.compile(r":math:`([^`]+)`")
BLOCK = re.compile(r"^([ ]*)\.\. math::[ ]*(.*)\n((?:[ ]*\n|\1[ ]+\S.*\n?)*)", flags=re.MULTILINE)
TABLE = re.compile(r"^([ ]*)=+(?: +=+)+\n((?:.*\n)*?)\1=+(?: +=+)+\n", flags=re.MULTILINE)
# A section ends where the next one begins: a title and a line of dashes.
SECTION = re.compile(
    r"^(Parameters|Other parameters|Attributes|Returns|Yields|Raises)\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)",
    flags=re.MULTILINE | re.DOTALL,
)
NAMES = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : (.*))?$")


def _block(match: re.Match[str]) -> str:
    latex = f"{match[2]}\n{textwrap.dedent(match[3])}".strip()
    lines = "\n".join(match[1] + line for line in latex.splitlines())
    return f"\n{match[1]}$$\n{lines}\n{match[1]}$$\n\n"


def _table(match: re.Match[str]) -> str:
    return f"{match[1]}```text\n{match[2]}{match[1]}```\n"


def _name(match: re.Match[str]) -> str:
    name = match[1].removeprefix("empo_bi.")
    return f'<autoref identifier="empo_bi.{name}" optional><code>{name}</code></autoref>'


def entry(head: str, body: str, facts: Mapping[str, str], defaults: Mapping[str, str]) -> str:
    """One entry of a section with names, as an item of a list: names, (type, default), what they are.

    What stands after the colon is the type if a description follows or if it is a single word; otherwise it is the
    description, which may go on in the lines below. ``facts`` are annotations for names about which nothing is said.
    """
    match = NAMES.match(head)
    if match is None:  # what is returned has no name
        return f"{head}\n\n{body}" if body else head
    names, said = match[1].split(", "), match[2] or ""
    if not said and not body:
        return ", ".join(f"**`{name}`**" + (f" (`{facts[name]}`)" if name in facts else "") for name in names)
    kind = said
    if not body and not re.fullmatch(r"\w+", said):
        kind, body = "", said
    elif body[:1].islower() and " " in said:  # a sentence that goes on
        kind, body = "", f"{said}\n{body}"
    found = {defaults[name] for name in names if name in defaults}
    default = "" if len(found) != 1 else "optional" if found == {"None"} else f"default `{min(found)}`"
    if default:
        kind = re.sub(r"(^|, )optional$", "", kind)
    told = ", ".join(part for part in (kind, default) if part)
    given = {name: f"={defaults[name]}" for name in names if name in defaults and len(found) > 1}  # each has its own
    first = ", ".join(f"**`{name}{given.get(name, '')}`**" for name in names) + (f" ({told})" if told else "")
    return f"{first} – {body}" if body else first


def _section(match: re.Match[str], facts: Mapping[str, str], defaults: Mapping[str, str]) -> str:
    items: list[list[str]] = []
    for line in match[2].splitlines():
        if line and not line.startswith(" "):
            items.append([line])
        elif items:
            items[-1].append(line)
    if "arameters" not in match[1]:
        defaults = {}
    lines = [f'<span class="doc-section-title">{match[1]}:</span>', ""]
    for head, *rest in items:
        text = entry(head, textwrap.dedent("\n".join(rest)).strip("\n"), facts, defaults)
        if match[1] == "Raises":  # errors are in the reference
            text = re.sub(r"\*\*`(\w+)`\*\*", r":exc:`\1`", text)
        lines.append("-   " + textwrap.indent(text, "    ").lstrip())
    return "\n".join(lines) + "\n\n"


def markdown(text: str, facts: Mapping[str, str] | None = None, defaults: Mapping[str, str] | None = None) -> str:
    """A docstring with its equations between dollars, its references as links, where the reference has the name, and its
    sections as lists, to which the defaults of parameters are added."""
    text = SECTION.sub(lambda match: _section(match, facts or {}, defaults or {}), text + "\n")
    return ROLE.sub(_name, INLINE.sub(r"$\1$", BLOCK.sub(_block, TABLE.sub(_table, text)))).rstrip("\n")


def constant(obj: griffe.Object, expression: Any) -> Any:
    """What a name stands for, if it is that of a number or a text of this package; otherwise the expression as it is."""
    with suppress(griffe.GriffeError, KeyError):
        if isinstance(expression, griffe.ExprName):
            value = obj.modules_collection[expression.canonical_path].value
            if re.fullmatch(r"-?[\d_.]+(e[-+]?\d+)?|'[^']*'|\"[^\"]*\"", str(value)):
                return value
    return expression


class MarkdownDocstrings(griffe.Extension):
    """Rewrites every docstring, and defaults that are names of constants, once all modules are read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if isinstance(obj, griffe.Function):
            for parameter in obj.parameters:
                parameter.default = constant(obj, parameter.default)
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value, *_known(obj))


def _known(obj: griffe.Object) -> tuple[dict[str, str], dict[str, str]]:
    """Annotations and defaults by name."""
    facts = {
        name: str(it.annotation) for name, it in obj.members.items() if isinstance(it, griffe.Attribute) and it.annotation
    }
    defaults = {}
    if isinstance(obj, griffe.Function | griffe.Class):
        for parameter in obj.parameters:
            if parameter.annotation:
                facts.setdefault(parameter.name, str(parameter.annotation))
            if parameter.default is not None and not str(parameter.default).endswith("()"):
                defaults[parameter.name] = str(constant(obj, parameter.default))
    return facts, defaults
