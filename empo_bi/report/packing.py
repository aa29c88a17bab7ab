"""Arrays and texts as one block of bytes for a page: bytes of equal significance side by side, deflated, in base64."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

TYPES = {"|u1": "u1", "<u2": "u2", "<u4": "u4", "<i2": "i2", "<i4": "i4", "<f4": "f4", "<f8": "f8"}


def packed(arrays: Mapping[str, npt.NDArray[Any]], texts: Mapping[str, Sequence[str]]) -> tuple[dict[str, Any], str]:
    """What is where in the block (types, shapes and offsets by name), and the block itself.

    An array of n numbers of b bytes lies there as the n first bytes of all numbers, then all second bytes and so on: neighbours
    are alike then, and compress to half of what they would otherwise.
    """
    parts, where, offset = list[bytes](), dict[str, Any](), 0
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
        size = plain.dtype.itemsize
        data = plain.view(np.uint8).reshape(-1, size).T.tobytes() if plain.size else b""
        where[name] = {"type": TYPES[plain.dtype.str], "shape": list(plain.shape), "at": offset}
        parts.append(data)
        offset += len(data)
    for name, lines in texts.items():
        data = json.dumps(list(lines), ensure_ascii=False).encode("utf-8")
        where[name] = {"type": "text", "shape": [len(data)], "at": offset}
        parts.append(data)
        offset += len(data)
    return where, base64.b64encode(zlib.compress(b"".join(parts), 9)).decode("ascii")
