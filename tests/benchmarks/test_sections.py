"""The benchmark command as users call it, in its quickest size: every section finds something, and writes all of it."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SECTIONS = ["startup", "streaming", "growth"]
PLOTS = ["horizon", "agents", "goals", "actions", "states"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the command wrote its results and its page."""
    found = tmp_path_factory.mktemp("benchmarks")
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        *SECTIONS,
        "--quick",
        "--results",
        str(found),
        "--docs",
        str(found / "docs"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("Startup", "Streaming from disk", "Growth", "Fitted exponents"):
        assert name in done.stdout
    return found


@pytest.fixture(scope="module")
def sections(folder: Path) -> dict[str, dict[str, Any]]:
    found = json.loads((folder / "latest.json").read_text(encoding="utf-8"))
    assert found["size"] == "quick"
    return {section["name"]: section for section in found["sections"]}


def table_of(section: dict[str, Any], begin: str) -> list[dict[str, str]]:
    """Rows of the table whose title begins so, by the names of columns; those that come twice keep the last."""
    (table,) = [table for table in section["tables"] if table["title"].startswith(begin)]
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def test_every_section_is_there_and_no_table_is_empty(sections: dict[str, dict[str, Any]]) -> None:
    assert list(sections) == SECTIONS
    for section in sections.values():
        assert section["about"]
        assert section["seconds"] > 0
        for table in section["tables"]:
            assert table["rows"], table["title"]
            assert all(len(row) == len(table["columns"]) for row in table["rows"])


def test_all_numbers_are_positive(sections: dict[str, dict[str, Any]]) -> None:
    for section in sections.values():
        for name, figure in section["figures"].items():
            assert math.isfinite(figure), name
            assert figure > 0 or name == "heavy modules", name
        for curve in section["curves"]:
            assert len(curve["x"]) == len(curve["y"]) > 1
            assert all(number > 0 for number in [*curve["x"], *curve["y"]]), curve["name"]


def test_importing_the_package_brings_no_heavy_library(sections: dict[str, dict[str, Any]]) -> None:
    figures = sections["startup"]["figures"]
    assert figures["heavy modules"] == 0
    assert 1 < figures["modules"] < 100
    assert figures["bare interpreter, s"] < figures["the command, warm, s"]


def test_what_was_not_measured_quickly_is_said_and_counts_as_not_met(sections: dict[str, dict[str, Any]]) -> None:
    rows = {row[""]: row for row in table_of(sections["startup"], "Time")}
    assert rows["the command, cold"]["wall"] == "not in this size"
    assert any("cold" in message for message in sections["startup"]["missing"])
    measured = {one["what"]: one["measured"] for section in sections.values() for one in section["wanted"]}
    assert len(measured) == 5
    assert [what for what, number in measured.items() if number is not None] == ["warm `empo-bi solve` of a trivial world"]


def test_streaming_is_of_the_world_that_is_told(sections: dict[str, dict[str, Any]]) -> None:
    titles = [table["title"] for table in sections["streaming"]["tables"]]
    assert titles[0].startswith("1,144 bodies, 3,741 states")  # asymmetric_freeing, 8 steps, as documented
    rows = table_of(sections["streaming"], "1,144")
    assert [row[""] for row in rows] == ["1 worker, in memory", "1 worker, from disk"]
    assert re.fullmatch(r"[\d.]+x", rows[1]["time, ratio"])


def test_growth_has_a_row_for_each_point_with_the_sizes_of_its_world(sections: dict[str, dict[str, Any]]) -> None:
    rows = table_of(sections["growth"], "Horizon")
    assert [(row["steps"], row["states"], row["bodies"]) for row in rows] == [("4", "757", "368"), ("8", "3,741", "1,144")]
    fits = [row[""] for row in table_of(sections["growth"], "Fitted")]
    assert fits == [f"{name}, {part}" for name in PLOTS for part in ("enumerate", "solve")]
    assert {curve["plot"] for curve in sections["growth"]["curves"]} == set(PLOTS)


def test_the_page_has_all_tables_and_pictures(folder: Path, sections: dict[str, dict[str, Any]]) -> None:
    page = (folder / "docs/benchmarks.md").read_text(encoding="utf-8")
    for section in sections.values():
        assert f"## {section['title']}" in page
        for table in section["tables"]:
            assert f"**{table['title']}**" in page
    for name in PLOTS:
        assert f"(pictures/bench_{name}.png)" in page
        for picture in (folder / f"bench_{name}.png", folder / f"docs/pictures/bench_{name}.png"):
            assert picture.read_bytes().startswith(b"\x89PNG")
