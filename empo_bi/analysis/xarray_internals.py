"""What we use of xarray that its documentation names, but that lives in its private ``xarray.core``: lazy indexing.

The only module that imports such names; imported only where xarray is there. ``tests/test_private_names.py`` says what to do
when they change.
"""

from __future__ import annotations

from xarray.core.indexing import (
    BasicIndexer,
    ExplicitIndexer,
    IndexingSupport,
    IndexSelResult,
    LazilyIndexedArray,
    OuterIndexer,
    explicit_indexing_adapter,
)

__all__ = [
    "BasicIndexer",
    "ExplicitIndexer",
    "IndexSelResult",
    "IndexingSupport",
    "LazilyIndexedArray",
    "OuterIndexer",
    "explicit_indexing_adapter",
]
