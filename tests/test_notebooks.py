"""The notebooks are what their scripts say, hold no outputs, and run from top to bottom; so do the scripts."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient", reason="notebooks are run with the extra 'notebooks'")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
pytest.importorskip("jupytext")

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"
_spec = importlib.util.spec_from_file_location("make_notebooks", FOLDER / "make.py")
assert _spec is not None
assert _spec.loader is not None
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)
QUIET = {**os.environ, "MPLBACKEND": "Agg", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


def test_there_are_five_notebooks_and_each_has_its_script() -> None:
    assert len(make.SCRIPTS) == 5
    assert {make.path_of(script) for script in make.SCRIPTS} == set(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("script", make.SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_is_what_its_script_says_and_its_outputs_are_cleared(script: Path) -> None:
    text = make.path_of(script).read_text(encoding="utf-8")
    assert text == make.notebook_of(script), "run examples/notebooks/make.py"
    cells = json.loads(text)["cells"]
    assert cells[0]["cell_type"] == "markdown"
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def warnings_in(told: str) -> list[str]:
    return [line for line in told.splitlines() if "compiles its kernels" not in line]


# By default one of them: its cells are those of its script, as tested above, and all scripts are run below.
RUN = [make.SCRIPTS[0], *(pytest.param(script, marks=pytest.mark.slow) for script in make.SCRIPTS[1:])]


@pytest.mark.parametrize("script", RUN, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_something(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    notebook = nbformat.read(make.path_of(script), as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs), "there are pictures"
    told = "".join(output["text"] for output in outputs if output.get("name") == "stderr")
    assert warnings_in(told) == []


@pytest.mark.parametrize("script", make.SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs_and_saves_its_pictures(script: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error::DeprecationWarning:__main__", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=QUIET, timeout=300)
    assert done.returncode == 0, done.stderr
    assert warnings_in(done.stderr) == []
    saved = {path.name for path in tmp_path.glob("*.png")}
    assert saved
    assert saved <= set(done.stdout.split())
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in tmp_path.glob("*.png"))
