"""What commands print. Titles and messages may come from files of others: no control character reaches the terminal."""

from __future__ import annotations

import json
from typing import Any

import click

from empo_bi.runtime.printable import printable, printable_json


def echo(text: str, *, err: bool = False) -> None:
    click.echo(printable(text), err=err)


def print_json(content: Any) -> None:
    """Numbers that JSON does not have become texts (``"inf"``) or null."""
    click.echo(printable_json(json.dumps(_plain(content), indent=2, allow_nan=False, ensure_ascii=False)))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return value
