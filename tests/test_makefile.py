"""What `make` would do on a fresh machine and on later ones; nothing is run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BASE, DEVELOPERS = "--editable .\n", "--editable '.[dev]'\n"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".venv").mkdir()
    return tmp_path


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    ours = ("MAKE", "MFLAGS", "PYTHON", "VENV")  # of a `make` that runs these tests
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(["make", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False)


def planned(folder: Path, target: str) -> str:
    done = make(folder, "--dry-run", "--no-print-directory", target)
    assert done.returncode == 0, done.stderr
    return done.stdout


def stamp(folder: Path, name: str, *, seconds_after_project: float) -> None:
    path = folder / ".venv" / name
    path.touch()
    when = (folder / "pyproject.toml").stat().st_mtime + seconds_after_project
    os.utime(path, (when, when))


def test_the_demo_installs_what_it_needs_and_not_what_developers_need(folder: Path) -> None:
    commands = planned(folder, "demo")
    assert BASE in commands
    assert DEVELOPERS not in commands
    assert commands.index("Installing numpy") < commands.index(BASE) < commands.index("first_world.py")
    assert commands.index("--picture runs/demo.png") < commands.index("runs/demo.html") < commands.index("phase2_")


def test_nothing_is_installed_twice_unless_the_dependencies_change(folder: Path) -> None:
    stamp(folder, ".demo", seconds_after_project=1)
    assert "--editable" not in planned(folder, "demo")
    assert DEVELOPERS in planned(folder, "lint")
    stamp(folder, ".installed", seconds_after_project=1)
    assert "--editable" not in planned(folder, "lint")
    for name in (".demo", ".installed"):
        stamp(folder, name, seconds_after_project=-1)
    assert BASE in planned(folder, "demo")
    assert DEVELOPERS in planned(folder, "lint")


def test_what_developers_have_installed_is_enough_for_the_demo(folder: Path) -> None:
    assert "touch .venv/.demo .venv/.installed\n" in planned(folder, "lint")


def test_another_python_than_that_of_the_environment_is_refused(folder: Path) -> None:
    python = folder / ".venv/bin/python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\necho 3.9\n")
    python.chmod(0o755)
    assert make(folder, "same-python").returncode == 0  # whatever is there will do, unless one is asked for
    refused = make(folder, "same-python", f"PYTHON={sys.executable}")
    assert refused.returncode != 0
    ours = "{}.{}".format(*sys.version_info)
    assert f".venv has Python 3.9, and PYTHON={sys.executable} is {ours}. Either run 'make clean'" in refused.stderr
    assert f"VENV=.venv-{ours}" in refused.stderr
    assert make(folder, "same-python", f"PYTHON={sys.executable}", "VENV=.venv-other").returncode == 0


DEMO = """
import sys
for extra in {"matplotlib", "pandas", "xarray", "pyarrow", "PIL", "pettingzoo", "dask", "fsspec"}:
    sys.modules[extra] = None  # cannot be imported
sys.argv = ["first_world.py", "--world", "first_steps", "--picture", sys.argv[1]]
sys.path.insert(0, "examples")
import first_world
first_world.main()
sys.path.insert(0, "tests")
import compile_kernels
compile_kernels.PARTS["demo"]()
"""


def test_the_demo_draws_its_picture_first_and_imports_no_extras(tmp_path: Path) -> None:
    picture = tmp_path / "world.png"
    command = [sys.executable, "-c", DEMO, str(picture)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert told.startswith("A picture of ")
