"""Bytes of the same numbers stored in four ways: dense float64, dense float32, packed, and compressed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from empo_bi.runtime.byte_sizes import as_text

WAYS = ("dense float64", "dense float32", "packed", "compressed")


@dataclass(frozen=True)
class Account:
    """Bytes of one kind of numbers, stored in each way; ``compressed`` is None for what is not on disk."""

    name: str
    dense_float64: int
    dense_float32: int
    packed: int
    compressed: int | None = None

    @property
    def steps(self) -> list[int | None]:
        return [self.dense_float64, self.dense_float32, self.packed, self.compressed]


@dataclass(frozen=True)
class MemoryReport:
    """Accounts of a DAG or a solution.

    *Dense* has one number for each state (and profile, successor, human, goal, action); *packed* is what empo_bi works
    with: bodies instead of states, bits for goals, narrow types, nothing for what is trivial; *compressed* is what is on
    disk.
    """

    title: str
    accounts: Sequence[Account]

    @property
    def total(self) -> Account:
        columns = list(zip(*(account.steps for account in self.accounts), strict=True))
        dense_float64, dense_float32, packed = (sum(size or 0 for size in column) for column in columns[:3])
        compressed = None if None in columns[3] else sum(size or 0 for size in columns[3])
        return Account("together", dense_float64, dense_float32, packed, compressed)

    @property
    def reductions(self) -> dict[str, float]:
        """By how much each way is smaller than the one before it; the last, ``"together"``, from the first to the last."""
        sizes = [size for size in self.total.steps if size is not None]
        found = {way: before / max(1, after) for way, before, after in zip(WAYS[1:], sizes, sizes[1:], strict=False)}
        return {**found, "together": sizes[0] / max(1, sizes[-1])}

    def __str__(self) -> str:
        width = max(len(name) for name in ("smaller by", *(account.name for account in [*self.accounts, self.total])))
        lines = [self.title, "", f"{'':{width}} " + " ".join(f"{way:>14}" for way in WAYS)]
        for account in [*self.accounts, self.total]:
            sizes = ("-" if size is None else as_text(size) for size in account.steps)
            lines.append(f"{account.name:{width}} " + " ".join(f"{size:>14}" for size in sizes))
        factors = [f"{self.reductions[way]:,.1f}x" if way in self.reductions else "-" for way in WAYS[1:]]
        lines.append(f"{'smaller by':{width}} {'':>14} " + " ".join(f"{factor:>14}" for factor in factors))
        lines.append(f"{self.reductions['together']:,.0f} times smaller in all")
        return "\n".join(lines)
