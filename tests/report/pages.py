"""Reading a report's file without a browser: its head in JSON, and the arrays and texts in its block."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np


class Page:
    """A file that was written; arrays and texts are attributes of ``data`` by name."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")
        self.head: dict[str, Any] = json.loads(self.element("head"))
        self.data: dict[str, Any] = {}
        block = zlib.decompress(base64.b64decode(self.element("block")))
        for name, entry in self.head["arrays"].items():
            if entry["type"] == "text":
                self.data[name] = json.loads(block[entry["at"] :][: entry["shape"][0]])
                continue
            n, kind = int(np.prod(entry["shape"])), np.dtype("<" + entry["type"])
            self.data[name] = np.frombuffer(block, kind, n, entry["at"]).reshape(entry["shape"])

    def element(self, identity: str) -> str:
        (found,) = re.findall(rf'<script type="[^"]*" id="{identity}">(.*?)</script>', self.text, flags=re.DOTALL)
        return str(found)

    def __len__(self) -> int:
        return len(self.data["level"])

    def where(self, n: int) -> tuple[int, int]:
        return int(self.data["level"][n]), int(self.data["place"][n])

    def outcomes(self, n: int, j: int) -> dict[int, float]:
        """What follows profile ``j`` in state ``n``: numbers (-1 for all that are not in the file) with probabilities."""
        counts = self.data["outcome_count"].astype(int).ravel()
        before = int(counts[: n * self.data["outcome_count"].shape[1] + j].sum())
        found: dict[int, float] = {}
        for e in range(before, before + int(self.data["outcome_count"][n, j])):
            successor = int(self.data["successor"][self.data["successor_start"][n] + self.data["outcome_successor"][e]])
            assert successor not in found
            found[successor] = float(self.data["probabilities"][self.data["outcome_probability"][e]])
        return found

    def successors(self, n: int) -> dict[int, float]:
        """The same under both policies; what nobody does is left out."""
        start, stop = self.data["successor_start"][n : n + 2]
        pairs = zip(self.data["successor"][start:stop].tolist(), self.data["successor_probability"][start:stop], strict=True)
        return {number: float(p) for number, p in pairs if p > 0}

    def picture(self, n: int) -> Any:
        """State ``n`` put together from the sheet of painted cells, as the page does it."""
        grid, data = self.head["grid"], self.data
        sheet, tile = pixels(grid["sheet"]), grid["tile"]
        shown = data["first_cells"].copy()
        changed = slice(*data["difference_start"][n : n + 2])
        shown[data["difference_cell"][changed]] = data["difference_shown"][changed]
        rows = []
        for y in range(grid["height"]):
            cells = []
            for sprite in shown[y * grid["width"] : (y + 1) * grid["width"]].astype(int).tolist():
                row, column = divmod(sprite, grid["columns"])
                cells.append(sheet[row * tile : (row + 1) * tile, column * tile : (column + 1) * tile])
            rows.append(np.concatenate(cells, axis=1))
        return np.concatenate(rows)


def pixels(url: str) -> Any:
    """(height, width, 3) of an RGB picture whose rows are not filtered."""
    data = base64.b64decode(url.removeprefix("data:image/png;base64,"))
    width, height = struct.unpack(">II", data[16:24])
    at, packed = 8, b""
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        packed += data[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += length + 12
    rows = np.frombuffer(zlib.decompress(packed), dtype=np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)
