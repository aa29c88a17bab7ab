"""Libraries that only some of the work needs."""

from __future__ import annotations

import importlib
from typing import Any


def needed(module: str, extra: str) -> Any:
    """The module, or an error that says which extra of empo-bi has it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"this needs {module}: pip install 'empo-bi[{extra}]'") from error
