"""Where a human's values get too small for float32, a set of parameters is solved again in float64, and only that set."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backward.test_one_sweep import assert_same, derived
from planning_worlds import Patience, step_of
from store_tools import tree

from empo_bi import Params, solve
from empo_bi.sweep import phases

STEPS = 6
STEEP = Params(gamma_h=1e-8, gamma_r=0.9)  # values of 1, 1e-8, 1e-16, ..., 1e-40 on the first level; float32 ends at 1e-38
MILD = STEEP.replace(gamma_h=0.9)
OTHER = MILD.replace(zeta=2.0)  # the same humans
GIVEN_UP_AT = 1  # the level on which values are 1e-32


class SteadyPatience(Patience):
    """The same with bodies that are shared, so that tables take turns."""

    time_homogeneous = True


def solved(params: Any, **options: Any) -> Any:
    return solve(Patience(STEPS), params, level_fct=step_of, progress=False, **options)


def folders(out: Path) -> list[Path]:
    return sorted(path for path in out.glob("solution-*") if path.is_dir())  # and not a lock beside it


def content_of(folder: Path) -> dict[str, Any]:
    """What the manifest of a solution says that it answers."""
    found = json.loads((folder / "zarr.json").read_text())
    (record,) = (value for value in found["attributes"].values() if isinstance(value, dict))
    content: dict[str, Any] = record["content"]
    return content


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float, str, int]]:
    """What is computed: the phase, the discount, the type of the tables, and the level."""
    found: list[tuple[str, float, str, int]] = []
    for kind in (phases.HumanPhase, phases.RobotPhase):
        monkeypatch.setattr(kind, "run", watched(kind.run, found))
    return found


def watched(plain: Callable[..., Any], found: list[tuple[str, float, str, int]]) -> Callable[..., Any]:
    def run(self: Any, work: Any, *arguments: Any, **options: Any) -> Any:
        found.append((type(self).__name__, self.params.gamma_h, self.setting.precision.work, work.t))
        return plain(self, work, *arguments, **options)

    return run


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", [Patience, SteadyPatience])
def test_values_that_float32_does_not_hold_are_those_of_float64(world: type[Patience]) -> None:
    found = solve(world(STEPS), STEEP, progress=False)
    exact = solve(world(STEPS), STEEP, precision="float64", progress=False)
    assert (found.precision.rest, found.precision.work) == ("float16", "float64")
    assert 0 < exact.values.X_h[0].max() < np.finfo(np.float32).tiny
    for t in range(STEPS + 1):
        for of_robot, expected in ((found.values.V_r, exact.values.V_r), (found.values.X_h, exact.values.X_h)):
            assert of_robot[t].tolist() == expected[t].tolist()
        assert found.Q_r[t].tolist() == exact.Q_r[t].tolist()
        assert found.values.Vh_e[t].tolist() == exact.values.Vh_e[t].astype(np.float16).tolist()
        assert found.values.Vh_m[t].tolist() == exact.values.Vh_m[t].astype(np.float16).tolist()


@pytest.mark.parametrize("steps", [6, 7, 8, 9, 12])
def test_whatever_the_smallest_value_is_the_robots_numbers_are_as_exact_as_ever(steps: int) -> None:
    """Between 1e-38 and 1e-45 float32 has numbers, but with fewer and fewer digits; below, it has none."""
    params = STEEP.replace(gamma_h=1e-6)
    found = solve(Patience(steps), params, progress=False)
    exact = solve(Patience(steps), params, precision="float64", progress=False)
    for t in range(steps + 1):
        assert found.values.V_r[t] == pytest.approx(exact.values.V_r[t], rel=1e-6, abs=0)


def test_values_that_float32_holds_are_worked_with_in_float32(runs: list[Any]) -> None:
    found = solve(Patience(4), STEEP, progress=False)
    assert found.precision.work == "float32"
    assert 0 < found.values.X_h[0].max() < 1e-23
    assert {work for _, _, work, _ in runs} == {"float32"}


def test_a_prior_of_another_maker_is_solved_again_as_well() -> None:
    def undecided(state: Any, human: int, goal: Any) -> list[float]:
        return [0.5, 0.5]

    found = solved(STEEP, human_policy_prior=undecided)
    exact = solved(STEEP, human_policy_prior=undecided, precision="float64")
    assert found.precision.work == "float64"
    assert found.values.V_r[0].tolist() == exact.values.V_r[0].tolist()


# --- among others -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "rests"),
    [([STEEP, MILD, OTHER], "memory"), ([MILD, STEEP, OTHER], "folder"), ([OTHER, MILD, STEEP], "temporary")],
)
def test_of_a_list_only_the_set_that_needs_it_is_solved_again(
    order: list[Params], rests: str, runs: list[Any], tmp_path: Path
) -> None:
    out = {"memory": None, "folder": tmp_path / "out", "temporary": True}[rests]
    found = solved(order, out=out)
    assert [solution.precision.work for solution in found] == [
        "float64" if params is STEEP else "float32" for params in order
    ]
    wide = [(kind, gamma, t) for kind, gamma, work, t in runs if work == "float64"]
    assert wide == [(kind, STEEP.gamma_h, t) for t in range(STEPS - 1, -1, -1) for kind in ("HumanPhase", "RobotPhase")]
    narrow = [(gamma, t) for kind, gamma, work, t in runs if work == "float32" and kind == "RobotPhase"]
    assert sorted(t for gamma, t in narrow if gamma == STEEP.gamma_h) == list(range(GIVEN_UP_AT, STEPS))
    assert sorted(t for gamma, t in narrow if gamma == MILD.gamma_h) == sorted([*range(STEPS)] * 2)
    for solution, params in zip(found, order, strict=True):
        alone = solved(params)
        assert_same(solution, alone)
        assert derived(solution) == derived(alone)


def test_several_threads_may_find_out_at_once_that_a_set_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [solved(params) for params in (STEEP, MILD)]
    monkeypatch.setattr("empo_bi.sweep.memory_model.BLOCK_STATES", 1)
    monkeypatch.setattr("empo_bi.sweep.backward_pass.PARALLEL_BLOCKS", 1)
    for found, alone in zip(solved([STEEP, MILD], workers=2), expected, strict=True):
        assert found.precision == alone.precision
        assert_same(found, alone)


# --- folders ----------------------------------------------------------------------------------------------------------


def test_what_was_solved_with_wider_tables_is_opened_and_nothing_is_computed(runs: list[Any], tmp_path: Path) -> None:
    first = solved([MILD, STEEP], out=tmp_path)
    before = tree(tmp_path)
    runs.clear()
    for sets in ([STEEP], [MILD, STEEP], [STEEP, MILD]):
        for found, params in zip(solved(sets, out=tmp_path), sets, strict=True):
            assert found.precision.work == ("float64" if params is STEEP else "float32")
            assert_same(found, first[1 if params is STEEP else 0])
    assert runs == []
    assert tree(tmp_path) == before


def test_a_set_that_is_new_is_solved_beside_one_that_has_wider_tables(runs: list[Any], tmp_path: Path) -> None:
    solved(STEEP, out=tmp_path)
    before = tree(tmp_path)
    runs.clear()
    found = solved([MILD, STEEP], out=tmp_path)
    assert {(gamma, work) for _, gamma, work, _ in runs} == {(MILD.gamma_h, "float32")}
    assert before.items() <= tree(tmp_path).items()
    for solution, params in zip(found, (MILD, STEEP), strict=True):
        assert_same(solution, solved(params))


def interrupted(params: Any, out: Path, where: Callable[[Any, Any], bool]) -> None:
    """Solve until ``where`` says that somebody stops it, given a phase and what it is to do."""
    plain = phases.RobotPhase.run

    def run(self: Any, work: Any, *arguments: Any, **options: Any) -> None:
        if where(self, work):
            raise InterruptedError
        plain(self, work, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phases.RobotPhase, "run", run)
        with pytest.raises(InterruptedError):
            solved(params, out=out)


@pytest.mark.parametrize("level", [3, 0])
def test_a_run_that_was_stopped_in_the_second_pass_goes_on_there(level: int, runs: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    interrupted([MILD, STEEP], out, lambda phase, work: phase.setting.precision.work == "float64" and work.t == level)
    assert sorted(content_of(folder)["work"] for folder in folders(out)) == ["float32", "float64"]
    runs.clear()
    found = solved([MILD, STEEP], out=out)
    assert runs == [
        (kind, STEEP.gamma_h, "float64", t) for t in range(level, -1, -1) for kind in ("HumanPhase", "RobotPhase")
    ]
    for solution, params in zip(found, (MILD, STEEP), strict=True):
        assert_same(solution, solved(params))
    solved([MILD, STEEP], out=tmp_path / "whole")
    assert tree(out) == tree(tmp_path / "whole")


def test_a_set_that_is_given_up_leaves_nothing_behind_and_the_others_keep_what_they_have(tmp_path: Path) -> None:
    for n, order in enumerate(([STEEP], [MILD, STEEP, OTHER])):
        out = tmp_path / str(n)
        found = solved(order, out=out)
        expected = {(str(solution.results.place.name), solution.precision.work) for solution in found}
        assert {(str(folder), content_of(folder)["work"]) for folder in folders(out)} == expected
        assert len(expected) == len(order)
        assert {path.name for path in out.iterdir()} == {"dag", *(folder.name for folder in folders(out))}


def test_a_set_that_is_given_up_is_gone_by_the_next_level(tmp_path: Path) -> None:
    """Not only at the end: whoever is killed before that would leave it behind."""
    there: dict[int, list[float]] = {}

    def look(phase: Any, work: Any) -> bool:
        if phase.params == MILD:
            rates = [content_of(folder)["params"]["rho_h"] for folder in folders(tmp_path / "out")]
            there[work.t] = sorted(rates)
        return bool(work.t == 0)

    interrupted([STEEP, MILD], tmp_path / "out", look)
    both, one = sorted([STEEP.rate_h, MILD.rate_h]), [MILD.rate_h]
    assert there == {t: both if t >= GIVEN_UP_AT else one for t in range(STEPS)}
    (left,) = folders(tmp_path / "out")
    assert content_of(left)["params"]["rho_h"] == MILD.rate_h
    found = solved([STEEP, MILD], out=tmp_path / "out")
    for solution, params in zip(found, (STEEP, MILD), strict=True):
        assert_same(solution, solved(params))


def test_temporary_folders_of_a_set_that_is_given_up_are_gone_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    solution = solved(STEEP, out=True)
    n_folders = len(list(tmp_path.iterdir()))
    other = solved(MILD, out=True)
    assert len(list(tmp_path.iterdir())) == 2 * n_folders
    solution.close()
    other.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rests", ["memory", "folder"])
def test_equal_sets_that_need_wider_tables_are_both_solved(rests: str, tmp_path: Path) -> None:
    out = tmp_path if rests == "folder" else None
    expected = solved(STEEP)
    found = solved([STEEP, MILD, STEEP], out=out)
    assert [solution.precision.work for solution in found] == ["float64", "float32", "float64"]
    assert_same(found[0], expected)
    assert_same(found[2], expected)
