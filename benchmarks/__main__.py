"""``python -m benchmarks``: measure, print tables, write JSON and plots, refresh docs/benchmarks.md."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.measuring import OtherWork
from benchmarks.page import write_page
from benchmarks.plots import draw
from benchmarks.report import Section, wanted_table
from benchmarks.sizes import QUICK, SIZES

ROOT = Path(__file__).parents[1]
FAILED = "this section failed"
# In the order in which they are measured and shown.
SECTIONS = ["machine", "startup", "oracle", "random_mdp", "storm", "spin", "streaming", "growth"]


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure empo_bi against peers and against this machine. All ratios are of one run; best run it alone.",
        epilog="Peers are optional: pip install 'empo-bi[peers]' (stormpy, quantecon), apt-get install spin gcc. "
        "Benchmarks in more depth are scripts of their own, see benchmarks/README.md.",
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"some of: {', '.join(SECTIONS)} (default: all)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--full", action="store_const", dest="size", const="full", help="larger sizes and more rounds (half an hour)"
    )
    size.add_argument("--quick", action="store_const", dest="size", const=QUICK, help="only show that all runs (a minute)")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks/results", help="folder for JSON and plots")
    parser.add_argument(
        "--docs", type=Path, default=None, metavar="FOLDER",
        help="folder for benchmarks.md (default: docs/, when all sections are measured and not just quickly)",
    )  # fmt: skip
    parser.set_defaults(size="small")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {unknown[0]!r}; there are {', '.join(SECTIONS)}")
    return arguments


def main() -> int:
    arguments = parsed()
    names = [name for name in SECTIONS if name in arguments.sections or not arguments.sections]
    sections = []
    for name in names:
        section = measured(name, arguments.size)
        print(section.text(verdicts=arguments.size != QUICK), flush=True)
        sections.append(section)
    arguments.results.mkdir(parents=True, exist_ok=True)
    found = {**provenance(arguments), "sections": [one.as_json() for one in sections]}
    (arguments.results / "latest.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    plots = draw(sections, arguments.results)
    docs = arguments.docs
    has_failed = any(message.startswith(FAILED) for section in sections for message in section.missing)
    if docs is None and not arguments.sections and arguments.size != QUICK and not has_failed:
        docs = ROOT / "docs"
    if docs is not None:
        write_page(docs, found, sections, plots)
        print(f"wrote {docs / 'benchmarks.md'}")
    print(f"wrote {arguments.results / 'latest.json'} and {len(plots)} plots")
    wanted = [one for section in sections for one in section.wanted]
    if wanted and arguments.size != QUICK:
        print(f"\n{wanted_table(wanted).text()}")
    return 1 if has_failed else 0


def provenance(arguments: argparse.Namespace) -> dict[str, Any]:
    """What was run, when, on what, and by which versions."""
    commit = ""
    if shutil.which("git"):
        asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
        commit = asked.stdout.strip()
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    versions = {}
    for name in ("empo-bi", "numpy", "scipy", "numba", "zarr", "stormpy", "quantecon"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    size = [] if arguments.size == "small" else [f"--{arguments.size}"]
    return {
        "size": arguments.size,
        "command": " ".join(["python -m benchmarks", *arguments.sections, *size]),
        "date": time.strftime("%Y-%m-%d"),
        "time": time.strftime("%H:%M:%S %Z"),
        "commit": commit or None,
        "processor": f"{len(models)} x {models[0]}" if models else platform.processor(),
        "python": platform.python_version(),
        "versions": versions,
    }


def measured(name: str, size: str) -> Section:
    """One section, in a process of its own, so that none inherits memory or caches of another."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "section.json"
        command = [
            sys.executable,
            "-c",
            f"from benchmarks.__main__ import _write; _write({name!r}, {size!r}, {str(answer)!r})",
        ]
        print(f"measuring: {name} ...", file=sys.stderr, flush=True)
        done = subprocess.run(command, cwd=ROOT, check=False)
        if done.returncode:  # the others are worth having
            return Section(name, name, missing=[f"{FAILED} (exit code {done.returncode}), see its error above"])
        return Section.from_json(json.loads(answer.read_text(encoding="utf-8")))


def _write(name: str, size: str, answer: str) -> None:
    begin, other_work = time.perf_counter(), OtherWork()
    section: Section = importlib.import_module(f"benchmarks.sections.{name}").measure(SIZES[size])
    section.seconds, section.others = time.perf_counter() - begin, other_work.cores()
    Path(answer).write_text(json.dumps(section.as_json()), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
