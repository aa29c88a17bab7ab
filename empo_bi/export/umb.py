"""Models as an archive of plain arrays in the UMB format ("unified Markov binary"), which Storm and others read.

A tar file: ``index.json`` first, then arrays, little-endian, offsets as in CSR. Arrays grow in temporary files without a
name, which go with the process whatever becomes of it, and are put into the archive at the end.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from empo_bi.dag.dag import Dag
from empo_bi.dag.exported_model import ExportedModel
from empo_bi.export.choices import ChoiceBlock
from empo_bi.export.labels import ENDS, MEANING_OF_ENDS, LabelCount, has_attained
from empo_bi.export.model import Content, export
from empo_bi.types import BoolArray, IndexArray

FORMAT_VERSION, FORMAT_REVISION = 1, 0
_BITS = 64  # bits come in words of so many


def write_umb(dag: Dag, path: Any, **options: Any) -> ExportedModel:
    return export(dag, path, UmbWriter, **options)


class GrowingArray:
    """An array in a temporary file."""

    def __init__(self, folder: Path, dtype: npt.DTypeLike) -> None:
        self.file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by the writer)
        self._dtype = np.dtype(dtype).newbyteorder("<")

    def append(self, values: npt.NDArray[Any]) -> None:
        self.file.write(np.ascontiguousarray(values, dtype=self._dtype).data)


class GrowingOffsets(GrowingArray):
    """Where runs begin, from their lengths: 0, and the end of each."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, np.uint64)
        self._end = 0
        super().append(np.zeros(1))

    def append(self, values: npt.NDArray[Any]) -> None:
        ends: IndexArray = self._end + np.cumsum(values)
        super().append(ends)
        self._end = int(ends[-1]) if len(ends) else self._end


class GrowingBits(GrowingArray):
    """Yes or no for each state, one bit each, the first in the lowest one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, np.uint8)
        self._left: BoolArray = np.zeros(0, dtype=np.bool_)  # that do not yet fill a byte

    def append(self, values: npt.NDArray[Any]) -> None:
        bits = np.concatenate([self._left, values])
        whole = len(bits) // 8 * 8
        super().append(np.packbits(bits[:whole], bitorder="little"))
        self._left = bits[whole:]

    def fill_up(self) -> None:
        """Zeros to the end of the last word."""
        super().append(np.packbits(self._left, bitorder="little"))
        super().append(np.zeros(-self.file.tell() % (_BITS // 8)))


class UmbWriter:
    def __init__(self, file: BinaryIO, folder: Path, content: Content) -> None:
        self._file, self._content = file, content
        self._arrays: dict[str, GrowingArray] = {
            "state-to-choices.bin": GrowingOffsets(folder),
            "choice-to-branches.bin": GrowingOffsets(folder),
            "branch-to-target.bin": GrowingArray(folder, np.uint64),
            "branch-to-probability.bin": GrowingArray(folder, np.float64),
            "actions/choices/values.bin": GrowingArray(folder, np.uint32),
        }
        self._is_initial = GrowingBits(folder)
        self._labels = {name: GrowingBits(folder) for name in [*(label.name for label in content.labels), *ENDS]}

    def add(self, block: ChoiceBlock) -> None:
        values: tuple[npt.NDArray[Any], ...] = (
            block.n_choices_M,
            block.n_branches_C,
            block.target_K,
            block.prob_K,
            block.name_C,
        )
        for array, value in zip(self._arrays.values(), values, strict=True):
            array.append(value)
        self._is_initial.append(np.arange(len(block.kind_M)) + block.first == 0)
        for label in self._content.labels:
            self._labels[label.name].append(has_attained(block, label))
        for name, kind in ENDS.items():
            self._labels[name].append(block.kind_M == kind)

    def finish(self, n_choices: int, n_branches: int, count: LabelCount) -> None:
        files: dict[str, Any] = {name: array.file for name, array in self._arrays.items()}
        shown = {name: bits for name, bits in self._labels.items() if count.counts[name]}
        for bits in (self._is_initial, *shown.values()):
            bits.fill_up()
        names = [name.encode("utf-8") for name in self._content.choices.names]
        index = json.dumps(self._index(n_choices, n_branches, count), indent=2, ensure_ascii=False).encode("utf-8")
        files = {
            "index.json": io.BytesIO(index),
            "state-is-initial.bin": self._is_initial.file,
            **files,
            "actions/choices/string-mapping.bin": io.BytesIO(np.cumsum([0, *map(len, names)]).astype("<u8").tobytes()),
            "actions/choices/strings.bin": io.BytesIO(b"".join(names)),
            **{f"annotations/aps/{name}/states/values.bin": bits.file for name, bits in shown.items()},
        }
        with tarfile.open(fileobj=self._file, mode="w") as archive:
            for name, file in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = file.seek(0, io.SEEK_END)
                file.seek(0)
                archive.addfile(entry, file)
                file.close()
        for bits in self._labels.values():
            bits.file.close()

    def _index(self, n_choices: int, n_branches: int, count: LabelCount) -> dict[str, Any]:
        content = self._content
        tool, version = content.tool
        meanings = {label.name: label.meaning for label in content.labels} | MEANING_OF_ENDS
        never = [f"No state has {label.name}: {label.meaning}" for label in count.never]
        return {
            "format-version": FORMAT_VERSION,
            "format-revision": FORMAT_REVISION,
            "model-data": {"name": content.title, "description": " ".join(content.remarks[:2]), "comment": "; ".join(never)},
            "file-data": {"tool": tool, "tool-version": version},
            "transition-system": {
                "time": "discrete",
                "#players": 1,
                "#states": content.n_states,
                "#initial-states": 1,
                "#choices": n_choices,
                "#choice-actions": len(content.choices.names),
                "#branches": n_branches,
                "#branch-actions": 0,
                "#observations": 0,
                "branch-probability-type": {"type": "double", "size": 64},
            },
            "annotations": {
                "aps": {
                    name: {
                        "alias": name,
                        "description": meanings[name],
                        "applies-to": ["states"],
                        "type": {"type": "bool", "size": 1},
                    }
                    for name in self._labels
                    if count.counts[name]
                }
            },
        }
