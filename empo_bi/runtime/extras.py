"""Optional libraries, which extras of the installation bring: :func:`needed`."""

from __future__ import annotations

import importlib
from typing import Any


def needed(module: str, extra: str) -> Any:
    """Import an optional module, or say which extra of the installation brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"this needs {module}, which is not installed; pip install 'empo-bi[{extra}]'") from error
