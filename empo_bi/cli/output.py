"""Output of commands. Titles and messages may come from strangers' files: no control character reaches the terminal."""

from __future__ import annotations

import json

import click

from empo_bi.runtime.printable import printable, printable_json


def echo(text: str, *, err: bool = False) -> None:
    click.echo(printable(text), err=err)


def print_json(content: object) -> None:
    """Print JSON; infinities become texts (``"inf"``), and nan becomes null."""
    click.echo(printable_json(json.dumps(_plain(content), indent=2, allow_nan=False, ensure_ascii=False)))


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return value
