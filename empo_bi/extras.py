"""Libraries that come with an extra of empo-bi: :func:`needed`."""

from __future__ import annotations

import importlib
from typing import Any


def needed(module: str, extra: str) -> Any:
    """Import a module, or say which extra has it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{module} is not installed, and this needs it: pip install 'empo-bi[{extra}]'") from error
