"""How small worlds are stored: bytes of DAGs and solutions as dense float64, dense float32, packed, and compressed.

Run with `make bench-memory`, or

    python benchmarks/memory_table.py             # the shipped worlds at their own horizons: two or three minutes
    python benchmarks/memory_table.py --quick     # two small worlds, only to see that it runs
    python benchmarks/memory_table.py --largest   # also those of more than 300,000 bodies
    python benchmarks/memory_table.py --worlds asymmetric_freeing --steps 25

*Dense* has a number for each state, profile, successor, human, goal and action; *packed* is what the engine works with:
bodies instead of states, bits for goals, narrow types, nothing for what is trivial, policies computed when they are asked
for; *compressed* is what is on disk. Each factor is that of one step; *all* is from dense float64 to disk. The last table
has what the obvious data structures of Python would take, by arithmetic, beside what is held in memory for the same.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from measuring import OtherWork, Table, obvious_bytes

from empo_bi import EmpoError, Params, TooManyStatesError, load_world, solve, worlds
from empo_bi.memory.storage_report import Account, MemoryReport
from empo_bi.runtime.byte_sizes import as_text

PARAMS = Params(gamma_h=0.99, gamma_r=0.99, zeta=2.0, eta=1.1)
MOST_BODIES = 300_000
QUICK = {"asymmetric_freeing": 5, "ice_rink": 4}


@dataclass(frozen=True)
class Row:
    """One world, solved on disk."""

    name: str
    steps: int
    n_states: int
    dag: MemoryReport
    solution: MemoryReport
    obvious: int

    @property
    def together(self) -> MemoryReport:
        return MemoryReport(self.name, [*self.dag.accounts, *self.solution.accounts])


def row_of(name: str, steps: int | None, max_bodies: int | None) -> Row | str:
    """A world's accounts, or why there are none."""
    world = load_world(name) if steps is None else load_world(name, max_steps=steps)
    with tempfile.TemporaryDirectory(prefix="empo_bi-bench-") as parent:
        try:
            solution = solve(world, PARAMS, out=Path(parent) / "run", max_states=max_bodies, progress=False)
        except TooManyStatesError:
            return f"left out: more than {max_bodies:,} bodies (--largest has it)"
        except (EmpoError, ValueError) as error:  # no goals, or none that can be attained: there is nothing to solve
            return f"left out: {str(error).split(':')[0][:60]}"
        with solution:
            dag = solution.dag
            entries = sum(int(dag.level(t).count_SJ.sum()) for t in range(dag.horizon))
            n_columns = solution.goal_columns.n_columns
            obvious = sum(obvious_bytes(dag.n_states, dag.n_profiles, entries, n_columns).values())
            return Row(name, dag.horizon, dag.n_states, dag.memory_report(), solution.memory_report(), obvious)


def print_accounts(title: str, accounts: list[tuple[Row, MemoryReport]]) -> None:
    table = Table(title, world=24, steps=6, states=12, float64=11, float32=10, packed=11, _=8, compressed=12, __=8, all=10)
    for row, report in accounts:
        total, factors = report.total, report.reductions
        assert total.compressed is not None
        table.row(
            short(row.name), f"{row.steps}", f"{row.n_states:,}", as_text(total.dense_float64), as_text(total.dense_float32),
            as_text(total.packed), f"{factors['packed']:.1f}x", as_text(total.compressed), f"{factors['compressed']:.1f}x",
            f"{factors['together']:,.0f}x",
        )  # fmt: skip
    if len(accounts) > 1:
        together = MemoryReport("all of them", [report.total for _, report in accounts])
        sums, factors = together.total, together.reductions
        table.row(
            "together", "", f"{sum(row.n_states for row, _ in accounts):,}", as_text(sums.dense_float64),
            as_text(sums.dense_float32), as_text(sums.packed), f"{factors['packed']:.1f}x", as_text(sums.compressed or 0),
            f"{factors['compressed']:.1f}x", f"{factors['together']:,.0f}x",
        )  # fmt: skip


def print_obvious(rows: list[Row]) -> None:
    title = "The obvious data structures, transition tuples and a dictionary of attainment arrays, against slices in memory"
    table = Table(title, world=24, steps=6, states=12, obvious=12, slices=12, smaller=10, on_disk=12, smaller_=10)
    for row in rows:
        held: Account = row.dag.total
        assert held.compressed is not None
        sizes = [as_text(nbytes) for nbytes in (row.obvious, held.packed, held.compressed)]
        factors = [f"{row.obvious / max(1, nbytes):,.0f}x" for nbytes in (held.packed, held.compressed)]
        table.row(short(row.name), f"{row.steps}", f"{row.n_states:,}", *sizes[:2], factors[0], sizes[2], factors[1])


def short(name: str) -> str:
    return name.split("/")[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two small worlds: only to see that everything runs")
    parser.add_argument("--largest", action="store_true", help=f"also worlds of more than {MOST_BODIES:,} bodies")
    parser.add_argument("--worlds", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--steps", type=int, metavar="N", help="a horizon for all of them, instead of their own")
    options = parser.parse_args()
    begin, others = time.perf_counter(), OtherWork()
    chosen: dict[str, int | None] = dict.fromkeys(options.worlds or worlds.available(), options.steps)
    if options.quick:
        chosen = dict(QUICK)
    found: list[Row] = []
    left_out: dict[str, str] = {}
    for name, steps in chosen.items():
        row = row_of(name, steps, None if options.largest else MOST_BODIES)
        if isinstance(row, Row):
            found.append(row)
        else:
            left_out[name] = row
    found.sort(key=lambda row: row.n_states)
    print_accounts("DAGs: transitions, goals attained and states", [(row, row.dag) for row in found])
    print_accounts("Solutions: values of both phases, and policies", [(row, row.solution) for row in found])
    print_accounts("Both together", [(row, row.together) for row in found])
    print_obvious(found)
    for name, why in left_out.items():
        print(f"\n{name}: {why}", end="")
    print(f"\n\n{time.perf_counter() - begin:.0f} s in all; others used {others.cores():.2f} cores meanwhile")


if __name__ == "__main__":
    main()
