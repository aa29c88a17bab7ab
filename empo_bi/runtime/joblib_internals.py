"""What we use of joblib that it does not document: its hasher, and the backend that is active.

The only module that imports such names. ``tests/test_private_names.py`` says what to do when they change.
"""

from __future__ import annotations

from typing import Any

from joblib.hashing import NumpyHasher
from joblib.parallel import get_active_backend

__all__ = ["NumpyHasher", "active_backend"]

_HERE = ("SequentialBackend", "ThreadingBackend", "MultiprocessingBackend", "LokyBackend")  # of this machine


def active_backend() -> tuple[str, Any]:
    """What :func:`joblib.parallel_config` has made active: ``"local"``, ``"dask"`` or the name of another class, and itself.

    The backend of Dask has a ``client`` and ``effective_n_jobs``. Others may be derived from joblib's own, so that the class
    itself counts, not its bases.
    """
    backend, _ = get_active_backend()
    kind = type(backend)
    if not kind.__module__.startswith("joblib."):
        return kind.__qualname__, backend
    if kind.__name__ in _HERE:
        return "local", backend
    return "dask" if kind.__name__ == "DaskDistributedBackend" else kind.__qualname__, backend
