"""The package as it is installed: quick to import, true to its list of names, worlds included."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import empo_bi

ROOT = Path(__file__).parents[1]


def _python(code: str, *arguments: str, cwd: Path | None = None) -> str:
    command = [sys.executable, *arguments, "-c", code]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout.strip()


def test_every_public_name_exists_and_a_star_import_works() -> None:
    for name in empo_bi.__all__:
        assert getattr(empo_bi, name) is not None
    namespace: dict[str, object] = {}
    exec("from empo_bi import *", namespace)
    assert set(empo_bi.__all__) <= set(namespace)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        empo_bi.nonsense  # noqa: B018


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = _python("import sys, empo_bi; print(*[m for m in ('numba', 'gymnasium', 'zarr', 'numpy') if m in sys.modules])")
    assert loaded == ""


def test_loading_a_world_leaves_optional_things_unloaded() -> None:
    code = "import sys, empo_bi; empo_bi.load_world('asymmetric_freeing'); "
    code += "print(*[m for m in ('pettingzoo', 'matplotlib', 'zarr', 'empo_bi.world.render') if m in sys.modules])"
    assert _python(code) == ""


def test_an_installed_package_has_the_shipped_worlds_with_it(tmp_path: Path) -> None:
    """Build the wheel, unpack it far from the repository, and load a world from there."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
        assert not [name for name in archive.namelist() if name.startswith(("tests/", "worlds/"))]
    assert wheel.name.split("-")[1] == empo_bi.__version__  # which is written in one place
    code = f"import sys; sys.path.insert(0, {str(site)!r}); import empo_bi; "
    code += "world = empo_bi.load_world('jobst_challenges/asymmetric_freeing', max_steps=3); "
    code += "print(empo_bi.__file__, len(empo_bi.worlds.available()), world.initial_state()[0], sep='|')"
    file, n_worlds, step = _python(code, "-P", cwd=tmp_path).split("|")
    assert Path(file).is_relative_to(site)
    assert int(n_worlds) == len(empo_bi.worlds.available())
    assert step == "0"
