"""Output of commands. Titles and messages may come from strangers' files: no control character reaches the terminal."""

from __future__ import annotations

import json

import click

from empo_bi.runtime.printable import printable, printable_json, without_nan


def echo(text: str, *, err: bool = False) -> None:
    click.echo(printable(text), err=err)


def print_json(content: object) -> None:
    """Print JSON; infinities become texts (``"inf"``), and nan becomes null."""
    click.echo(printable_json(json.dumps(without_nan(content), indent=2, allow_nan=False, ensure_ascii=False)))
