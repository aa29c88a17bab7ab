"""docs/benchmarks.md: everything that a run found, with how to repeat it, and what was not reached."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Section, wanted_table
from benchmarks.sizes import QUICK

HEAD = """<!-- Written by `python -m benchmarks`; changes made here are lost with the next run. -->

# Benchmarks

All numbers on this page are of one run of one command, `{command}`, on {date}: {processor}, Python
{python}, {versions}. Repeat it with

    make bench                        # python -m benchmarks, some minutes
    python -m benchmarks --full       # larger sizes, more rounds: half an hour
    python -m benchmarks storm spin   # some sections only; python -m benchmarks --help lists them

It writes `benchmarks/results/latest.json` and the plots beside it, and this page. Peers are optional: `pip install
'empo-bi[peers]'` brings stormpy and quantecon, `apt-get install spin gcc` brings SPIN; what is absent is said and left out.

Ratios matter, seconds depend on the machine. Things that are compared take turns; the fastest run of each counts, and the
*spread* says by how much the median one exceeds it. *CPU* adds up all threads and child processes. Peak memory is measured
in processes of their own. Each section also says how many cores others used meanwhile, which should be near 0.
"""


def write_page(folder: Path, found: dict[str, Any], sections: Sequence[Section], plots: Sequence[Path]) -> None:
    """Write ``benchmarks.md`` and its pictures to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pictures").mkdir(exist_ok=True)
    for plot in plots:
        shutil.copy(plot, folder / "pictures" / plot.name)
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    parts = [HEAD.format(**{**found, "versions": versions})]
    is_quick = found["size"] == QUICK
    if is_quick:
        parts.append("**These sizes are too small to mean anything: `--quick` only shows that everything runs.**")
    wanted = [] if is_quick else [one for section in sections for one in section.wanted]
    if wanted:
        parts += ["## What was wanted, and what was reached", wanted_table(wanted).markdown().split("\n", 2)[2]]
        failed = [one for one in wanted if not one.is_met]
        parts += [f"**{one.what}: {one.verdict.lower()}.** {one.why}".rstrip() for one in failed]
    for section in sections:
        parts += [f"## {section.title}", *section.about, *(table.markdown() for table in section.tables)]
        parts += [f"*Not measured:* {message}" for message in section.missing]
        for name in dict.fromkeys(curve.plot for curve in section.curves):
            if any(plot.name == f"bench_{name}.png" for plot in plots):
                parts.append(f"![growth with {name}](pictures/bench_{name}.png)")
        parts.append(f"*{section.seconds:.0f} s; others used {section.others:.2f} cores meanwhile.*")
    (folder / "benchmarks.md").write_text("\n\n".join(part.strip("\n") for part in parts) + "\n", encoding="utf-8")
