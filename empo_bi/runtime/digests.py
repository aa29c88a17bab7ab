"""Digests: short names for contents, used for folders and keys; checksums, which find damage."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any


def digest(data: bytes) -> str:
    """The first 40 hexadecimal digits of the bytes' SHA-256."""
    return hashlib.sha256(data).hexdigest()[:40]


def digest_of(text: str) -> str:
    """A short name for a text: 12 hexadecimal digits."""
    return digest(text.encode())[:12]


def checksum_of_json(content: Mapping[str, Any]) -> str:
    """CRC-32 of the JSON text with sorted keys and without spaces, in 8 hexadecimal digits."""
    return f"{zlib.crc32(json.dumps(content, sort_keys=True, separators=(',', ':')).encode()):08x}"
