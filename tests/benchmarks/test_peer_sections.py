"""The sections about peers and the machine, in their quickest size, with and without the peers."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from benchmarks.__main__ import SECTIONS
from benchmarks.measuring import OtherWork

ROOT = Path(__file__).parents[2]
NAMES = ["machine", "oracle", "random_mdp", "storm", "spin"]


def run(folder: Path, names: list[str], environment: dict[str, str] | None = None) -> Any:
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        *names,
        "--quick",
        "--results",
        str(folder),
        "--docs",
        str(folder / "docs"),
    ]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "latest.json").read_text(encoding="utf-8"))


def test_every_section_that_is_listed_can_be_measured() -> None:
    for name in SECTIONS:
        assert callable(importlib.import_module(f"benchmarks.sections.{name}").measure)


def test_answers_are_compared_and_tables_are_filled(tmp_path: Path) -> None:
    """Each section compares answers with those of its peers, and fails where they differ."""
    found = run(tmp_path, NAMES)
    assert [section["name"] for section in found["sections"]] == NAMES
    assert found["command"] == f"python -m benchmarks {' '.join(NAMES)} --quick"
    assert found["versions"]["numpy"]
    for section in found["sections"]:
        assert section["tables"] or section["missing"]
        assert all(table["rows"] for table in section["tables"])
    page = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "too small to mean anything" in page
    assert "NOT MET" not in page
    assert all(f"## {section['title']}" in page for section in found["sections"])


def test_absent_peers_are_said_and_what_to_do(tmp_path: Path) -> None:
    """Modules that cannot be imported, and a path without programs."""
    for name in ("stormpy", "quantecon"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not here')", encoding="utf-8")
    hidden = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]), "PATH": str(tmp_path)}
    found = run(tmp_path, ["random_mdp", "storm", "spin"], hidden)
    messages = [" ".join(section["missing"]) for section in found["sections"]]
    assert "quantecon is not installed: pip install 'empo-bi[peers]'" in messages[0]
    assert "stormpy is not installed: pip install 'empo-bi[peers]'" in messages[1]
    assert "apt-get install spin gcc" in messages[2]
    assert [one["measured"] for section in found["sections"] for one in section["wanted"]] == [None] * 5


def test_a_niced_neighbour_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"user": 1.0, "nice": 5.0, "system": 1.0, "steal": 0.0}
    monkeypatch.setattr(psutil, "cpu_times", lambda: SimpleNamespace(**kinds))
    others = OtherWork()
    kinds["nice"] += 1000.0
    assert others.cores() > 10
