"""Short names for contents, for folders and keys."""

from __future__ import annotations

import hashlib


def digest(data: bytes) -> str:
    """40 hexadecimal digits that stand for these bytes."""
    return hashlib.sha256(data).hexdigest()[:40]


def digest_of(text: str) -> str:
    """A short name for a text, for folders."""
    return digest(text.encode())[:12]
