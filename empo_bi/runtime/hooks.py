"""Methods of core classes that optional rooms provide: exports, tables, films.

The core never imports these rooms. The front door, ``empo_bi/__init__.py``, registers where each method is found, and it
is imported on the first call.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from empo_bi.errors import StoreError

_PROVIDERS: dict[str, str] = {}  # filled once, when the package is imported


class Displayed:
    """What notebooks show richly. ``_display`` is the name under which the function that makes the HTML is registered."""

    _display = ""

    def _repr_html_(self) -> str | None:
        """HTML, or None if it cannot be made, since a store was closed or is gone: then the ``repr`` says so."""
        try:
            shown: str | None = provider_of(self._display)(self)
        except StoreError:
            return None
        return shown


def register(providers: Mapping[str, str]) -> None:
    """Say where methods are found, by name: ``{"Dag.to_drn": "empo_bi.export.drn:write_drn"}``."""
    _PROVIDERS.update(providers)


def provider_of(method: str) -> Callable[..., Any]:
    """The function behind a method, such as ``"Dag.to_drn"``."""
    module, _, function = _PROVIDERS[method].partition(":")
    return getattr(importlib.import_module(module), function)
