"""Pictures as PNG files, without an extra library."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt


def png_bytes(picture: npt.NDArray[np.uint8]) -> bytes:
    """A PNG of an RGB array (height, width, 3), uint8."""
    height, width, _ = picture.shape
    rows = b"".join(b"\0" + row.tobytes() for row in picture)  # each row begins with its filter, 0 for none
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits, RGB
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
