"""Solutions that are opened again, and what is said where that cannot be."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke
from planning_worlds import TwoSteps

from empo_bi import Params, StoreMismatchError, StoreNotFoundError, enumerate_dag, load_world, open_solution, solve
from empo_bi.solving import solution_list


def belief(state: Any, human: int, action: int) -> list[tuple[float, Any]]:
    return [(1.0, [0, 0, 0])]


@pytest.mark.parametrize("precision", ["float16", "float64"])
@pytest.mark.parametrize("phase_2", [True, False])
def test_a_solution_is_what_it_was(precision: str, phase_2: bool, tmp_path: Path) -> None:
    params = Params(beta_h=float("inf"), gamma_h=0.9, rho_r=0.3, optimistic=True, zeta=2, terminal_Vr=-1)
    world = load_world("pushing/mirror_freeing", max_steps=4)
    first = solve(world, params, out=tmp_path, precision=precision, phase_2=phase_2, progress=False)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with open_solution(tmp_path) as again:
        assert again.params.describe() == params.describe()
        for t in range(5):
            np.testing.assert_array_equal(again.values.Vh_m[t], first.values.Vh_m[t])
            if phase_2:
                np.testing.assert_array_equal(again.values.V_r[t], first.values.V_r[t])
        assert again.precision == first.precision
        assert (again.has_robot, again.humans, again.robots) == (phase_2, first.humans, first.robots)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_of_several_solutions_one_has_to_be_named(tmp_path: Path) -> None:
    world = load_world("basics/first_steps", max_steps=3)
    solve(world, [Params(zeta=1), Params(zeta=2)], out=tmp_path, progress=False)
    with pytest.raises(StoreMismatchError, match="has 2 solutions; give the folder of one of them:\n  solution-"):
        open_solution(tmp_path)
    zetas = [open_solution(folder).params.zeta for folder in sorted(tmp_path.glob("solution-*"))]
    assert sorted(zetas) == [1, 2]


def test_solutions_in_one_folder_are_listed_with_what_differs(tmp_path: Path) -> None:
    world = load_world("basics/first_steps", max_steps=3)
    solve(world, [Params(zeta=1), Params(zeta=2, gamma_h=0.9)], out=tmp_path, progress=False)
    with pytest.raises(StoreMismatchError) as refused:
        open_solution(tmp_path)
    _, *lines = str(refused.value).splitlines()
    assert sorted(line.partition(": ")[2] for line in lines) == ["zeta 1, gamma_h 1", "zeta 2, gamma_h 0.9"]
    for line in lines:
        name, _, told = line.strip().partition(": ")
        assert f"zeta {open_solution(tmp_path / name).params.zeta:g}, " in told
    shown = invoke("show", tmp_path)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[:3] == ["2 solutions:", *lines]


def test_among_several_solutions_one_that_is_not_finished_or_damaged_is_told_of(tmp_path: Path) -> None:
    world = load_world("basics/first_steps", max_steps=3)
    solve(world, [Params(zeta=1), Params(zeta=2), Params(zeta=3)], out=tmp_path, progress=False)
    by_zeta = {open_solution(path).params.zeta: path for path in tmp_path.glob("solution-*")}
    shutil.rmtree(by_zeta[2] / "level_00000")
    (by_zeta[3] / "zarr.json").write_text("{")
    with pytest.raises(StoreMismatchError) as refused:
        open_solution(tmp_path)
    told = dict(line.strip().split(": ") for line in str(refused.value).splitlines()[1:])
    assert told[by_zeta[1].name] == "zeta 1"
    assert told[by_zeta[2].name] == "zeta 2, not finished"
    assert told[by_zeta[3].name] == "cannot be read"


def test_many_solutions_are_not_all_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solution_list, "MOST_LISTED", 2)
    solve(load_world("basics/first_steps", max_steps=2), [Params(zeta=z) for z in (1, 2, 3)], out=tmp_path, progress=False)
    with pytest.raises(StoreMismatchError, match=r"has 3 solutions(.|\n)*\n  and 1 more$"):
        open_solution(tmp_path)


def test_worlds_in_python_may_be_given_and_have_to_be_the_same(tmp_path: Path) -> None:
    first = solve(TwoSteps(), Params(zeta=2), out=tmp_path, progress=False)
    assert open_solution(tmp_path).values.V_r[0][0] == first.values.V_r[0][0]
    assert open_solution(tmp_path, world=TwoSteps()).values.V_r[0][0] == first.values.V_r[0][0]
    with pytest.raises(StoreMismatchError, match="was made for"):
        open_solution(tmp_path, world=TwoSteps(3))


def test_where_nothing_is_that_is_said(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere", tmp_path / "solution-123"):
        with pytest.raises(StoreNotFoundError):
            open_solution(place)


def test_an_unfinished_solution_is_not_continued_by_opening_it(tmp_path: Path) -> None:
    world = load_world("pushing/mirror_freeing", max_steps=4)
    solve(world, Params(), out=tmp_path, progress=False)
    store = next(tmp_path.glob("solution-*"))
    for t in (0, 1):
        for path in sorted((store / f"level_0000{t}").rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        (store / f"level_0000{t}").rmdir()
    with pytest.raises(StoreNotFoundError, match="is not finished; call solve again"):
        open_solution(tmp_path)


def test_a_run_that_was_killed_before_anything_was_solved_is_not_finished(tmp_path: Path) -> None:
    enumerate_dag(load_world("first_steps", max_steps=2), store=tmp_path / "dag", precision="exact", progress=False).close()
    with pytest.raises(StoreNotFoundError, match="nothing is solved there yet; run the same command again to continue"):
        open_solution(tmp_path)
