"""Optional libraries, which extras of the installation bring: :func:`import_optional`."""

from __future__ import annotations

import importlib
from typing import Any


def import_optional(module: str, extra: str) -> Any:
    """Import an optional module, or say which extra of the installation brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"this needs {module}, which is not installed; pip install 'empo-bi[{extra}]'") from error
