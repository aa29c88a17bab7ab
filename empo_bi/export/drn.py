"""Models as text in Storm's DRN format: one line for each state, choice and branch.

Numbers are written so that reading returns exactly the same: each distinct probability by Python's ``repr``. (Storm's own
exporter keeps ten digits.) A kernel writes a block of lines into a buffer of bytes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from empo_bi.dag.dag import Dag
from empo_bi.dag.exported_model import ExportedModel
from empo_bi.export.choices import ChoiceBlock
from empo_bi.export.labels import ENDS, LabelCount
from empo_bi.export.model import Content, export
from empo_bi.runtime.jit import inlined, kernel
from empo_bi.types import ByteArray, IndexArray

NO_NAME = "__NOLABEL__"  # what Storm writes for a choice without a label
_MOST_DIGITS = 20  # of a 64-bit number
_STATE, _CHOICE, _BRANCH, _COLON = (
    np.frombuffer(word, dtype=np.uint8) for word in (b"state ", b"\taction ", b"\t\t", b" : ")
)


def write_drn(dag: Dag, path: str | os.PathLike[str], **options: Any) -> ExportedModel:
    """Write the model as DRN; ``options`` are those of :func:`export`."""
    return export(dag, path, DrnWriter, **options)


class DrnWriter:
    """Leaves room for the header, which has numbers that are known only at the end."""

    def __init__(self, file: BinaryIO, folder: Path, content: Content) -> None:
        self._file, self._content = file, content
        self._names = Texts.of([name or NO_NAME for name in content.choices.names])
        self._room = len(self._header(10**_MOST_DIGITS, LabelCount(content.labels)))
        file.write(b" " * self._room)

    def add(self, block: ChoiceBlock) -> None:
        labels, label_M = self._labels(block)
        distinct, prob_K = np.unique(block.prob_K, return_inverse=True)
        numbers = Texts.of([repr(p).removesuffix(".0") for p in distinct.tolist()])
        n_bytes = (
            len(block.kind_M) * (len(_STATE) + _MOST_DIGITS + labels.longest + 1)
            + len(block.name_C) * (len(_CHOICE) + self._names.longest + 1)
            + len(prob_K) * (len(_BRANCH) + _MOST_DIGITS + len(_COLON) + numbers.longest + 1)
        )
        line_L = np.empty(n_bytes, dtype=np.uint8)
        used = put_lines(
            block.first, label_M, labels.byte_L, labels.start_N, block.n_choices_M, block.name_C, self._names.byte_L,
            self._names.start_N, block.n_branches_C, block.target_K, prob_K.ravel(), numbers.byte_L, numbers.start_N,
            _STATE, _CHOICE, _BRANCH, _COLON, line_L,
        )  # fmt: skip
        self._file.write(line_L[:used].data)

    def finish(self, n_choices: int, n_branches: int, count: LabelCount) -> None:
        header = self._header(n_choices, count)
        self._file.seek(0)
        self._file.write(self._header(n_choices, count, padding=self._room - len(header)))

    def _labels(self, block: ChoiceBlock) -> tuple[Texts, IndexArray]:
        """The distinct label texts of a block, and the number of each state's text."""
        bits_MX = np.zeros((len(block.kind_M), 0), np.uint8) if block.attained_MX is None else block.attained_MX
        is_first_M = np.arange(len(bits_MX)) + block.first == 0
        distinct_NX, label_M = np.unique(
            np.column_stack([bits_MX, block.kind_M, is_first_M.astype(np.uint8)]), axis=0, return_inverse=True
        )
        texts = []
        for *bits, kind, is_first in distinct_NX.tolist():
            words = ["init"] if is_first else []
            words += [label.name for label in self._content.labels if bits[label.column >> 3] >> (label.column & 7) & 1]
            words += [name for name, number in ENDS.items() if number == kind]
            texts.append("".join(f" {word}" for word in words))
        return Texts.of(texts), label_M.ravel()

    def _header(self, n_choices: int, count: LabelCount, padding: int = 0) -> bytes:
        """Comments for people, and the header that Storm expects."""
        content = self._content
        tool, version = content.tool
        remarks = [f"{content.title}, exported by {tool} {version}", *content.remarks]
        remarks += [f"{label.name}: {label.meaning}" for label in content.labels]
        if count.never:
            never = ", ".join(label.name for label in count.never)
            remarks.append(f"Labels that no state has, so Storm does not know them: {never}")
        lines = [*(f"// {' '.join(remark.split())}" for remark in remarks), "//" + " " * padding]
        lines += ["@type: MDP", "@value_type: double", "@parameters", "", "@reward_models", ""]
        lines += ["@nr_states", str(content.n_states), "@nr_choices", str(n_choices), "@model", ""]
        return "\n".join(lines).encode("utf-8")


class Texts:
    """N texts as one array of bytes; text n is ``byte_L[start_N[n] : start_N[n + 1]]``."""

    def __init__(self, byte_L: ByteArray, start_N: IndexArray) -> None:
        self.byte_L, self.start_N = byte_L, start_N
        self.longest = int(np.diff(start_N).max(initial=0))

    @classmethod
    def of(cls, texts: list[str]) -> Texts:
        encoded = [text.encode("utf-8") for text in texts]
        start_N = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), start_N)


@inlined
def put_bytes(word_L, first, last, out_L, at):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        out_L[at] = word_L[i]
        at += 1
    return at


@inlined
def put_number(number, out_L, at):  # type: ignore[no-untyped-def]
    """Write the decimal digits of a nonnegative number."""
    digits, rest = 1, number // 10
    while rest > 0:
        digits, rest = digits + 1, rest // 10
    for i in range(at + digits - 1, at - 1, -1):
        out_L[i] = 48 + number % 10
        number //= 10
    return at + digits


@kernel
def put_lines(  # type: ignore[no-untyped-def]
    first, label_M, label_L, label_start_N, n_choices_M, name_C, name_L, name_start_N, n_branches_C, target_K, prob_K,
    number_L, number_start_N, state_L, choice_L, branch_L, colon_L, out_L,
):  # fmt: skip
    """Write the lines of M states with all their choices and branches; return the number of bytes."""
    at, c, k = 0, 0, 0
    for m in range(label_M.size):
        at = put_bytes(state_L, 0, state_L.size, out_L, at)
        at = put_number(first + m, out_L, at)
        n = label_M[m]
        at = put_bytes(label_L, label_start_N[n], label_start_N[n + 1], out_L, at)
        out_L[at] = 10
        at += 1
        for _ in range(n_choices_M[m]):
            at = put_bytes(choice_L, 0, choice_L.size, out_L, at)
            n = name_C[c]
            at = put_bytes(name_L, name_start_N[n], name_start_N[n + 1], out_L, at)
            out_L[at] = 10
            at += 1
            for _ in range(n_branches_C[c]):
                at = put_bytes(branch_L, 0, branch_L.size, out_L, at)
                at = put_number(target_K[k], out_L, at)
                at = put_bytes(colon_L, 0, colon_L.size, out_L, at)
                n = prob_K[k]
                at = put_bytes(number_L, number_start_N[n], number_start_N[n + 1], out_L, at)
                out_L[at] = 10
                at += 1
                k += 1
            c += 1
    return at
