"""Digests: short names for contents, used for folders and keys."""

from __future__ import annotations

import hashlib


def digest(data: bytes) -> str:
    """The first 40 hexadecimal digits of the bytes' SHA-256."""
    return hashlib.sha256(data).hexdigest()[:40]


def digest_of(text: str) -> str:
    """A short name for a text: 12 hexadecimal digits."""
    return digest(text.encode())[:12]
