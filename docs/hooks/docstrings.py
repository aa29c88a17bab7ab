"""Docstrings speak of equations and of other names in reStructuredText; here that becomes Markdown for the reference."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([^`]+)`")
# "name : type" at the head of an entry of a section: types are shown as they are, without links
HEAD = re.compile(r"^[\w*, ]+ : .*$", flags=re.MULTILINE)
INLINE = re.compile(r":math:`([^`]+)`")
BLOCK = re.compile(r"^([ ]*)\.\. math::[ ]*(.*)\n((?:[ ]*\n|\1[ ]+\S.*\n?)*)", flags=re.MULTILINE)


def _block(match: re.Match[str]) -> str:
    latex = f"{match[2]}\n{textwrap.dedent(match[3])}".strip()
    lines = "\n".join(match[1] + line for line in latex.splitlines())
    return f"\n{match[1]}$$\n{lines}\n{match[1]}$$\n\n"


def _name(match: re.Match[str]) -> str:
    name = match[1].removeprefix("empo_bi.")
    return f'<autoref identifier="empo_bi.{name}" optional><code>{name}</code></autoref>'


def markdown(text: str) -> str:
    """A docstring with its equations between dollars and its references as links, where the reference has the name."""
    text = HEAD.sub(lambda match: ROLE.sub(r"\1", match[0]).replace("``", ""), text)
    return ROLE.sub(_name, INLINE.sub(r"$\1$", BLOCK.sub(_block, text + "\n"))).rstrip("\n")


class MarkdownDocstrings(griffe.Extension):
    """Rewrites every docstring as it is read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)
