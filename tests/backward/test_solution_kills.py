"""A solve that is killed, whenever and however often, can be continued, and ends with the files of one that never was."""

from __future__ import annotations

import queue
import random
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import store_tools
from store_tools import Moment, Runs, assert_same_trees, counted_expansions, environment, tree, world_of

from empo_bi import GridWorld, Params, Solution, StoreNotFoundError, enumerate_dag, solve
from empo_bi.dag.derived_explorer import DerivedExplorer
from empo_bi.dag.level_explorer import LevelExplorer
from empo_bi.dag.shared_explorer import SharedExplorer
from empo_bi.store.location import place_of
from empo_bi.store.solution_store import SolutionStore
from empo_bi.sweep import phases

STEPS = 32
ONE = [{"gamma_h": 0.95, "gamma_r": 0.9, "zeta": 1.5}]
SEVERAL = [*ONE, {**ONE[0], "zeta": 2.5}, {**ONE[0], "beta_h": 3.0}, {**ONE[0], "beta_h": float("inf"), "eta": 1.3}]


class InCell:
    """The goal of being in a cell of a ring."""

    def __init__(self, cell: int) -> None:
        self.cell = cell

    def is_achieved(self, state: Any) -> bool:
        return bool(state[1] == self.cell)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InCell) and self.cell == other.cell

    def __hash__(self) -> int:
        return hash(self.cell)

    def __repr__(self) -> str:
        return f"InCell({self.cell})"


class AllCells:
    def generate(self, state: Any, human: int) -> Iterator[tuple[InCell, float]]:
        for cell in range(9):
            yield InCell(cell), 0.125


def solved(world: Any, store: Any, params: Sequence[dict[str, float]] = ONE, **options: Any) -> list[Solution]:
    """Solve one of the worlds of ``store_tools``; those in Python have one agent, a human, and no goals of their own."""
    if not isinstance(world, GridWorld):
        options |= {"human_agent_indices": [0], "robot_agent_indices": [], "possible_goal_generator": AllCells()}
    return solve(world, [Params(**given) for given in params], out=store, **{"progress": False, **options})


# --- solves in processes of their own ---------------------------------------------------------------------------------


def kind_of(touch: str) -> str:
    """As in ``store_tools``, also for touches that differ only in the solution, or in what is carried."""
    touch = re.sub(r"carry_\d+", "carry", re.sub(r"solution-[0-9a-f]+", "solution", touch))
    touch = re.sub(r"carry/[a-z]+/", "carry/array/", touch)
    return re.sub(r"/c/[0-9/]+\.", "/c/chunk.", _plain_kind_of(touch))


_plain_kind_of = store_tools.kind_of


def serve() -> None:
    """What ``store_tools`` serves, with solving in the place of enumerating."""
    import empo_bi.store.solution_store  # noqa: F401

    store_tools.enumerate_dag = solved  # type: ignore[assignment]
    store_tools.kind_of = kind_of
    store_tools.serve()


class Solves(Runs):
    """Runs that solve. Their store is the folder ``out``."""

    def __init__(self) -> None:
        script = "from backward import test_solution_kills; test_solution_kills.serve()"
        self._server = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
        )
        self._heard: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()


@pytest.fixture(scope="module")
def runs() -> Iterator[Solves]:
    runs = Solves()
    yield runs
    runs.close()


def solutions_in(out: Path) -> list[Path]:
    return sorted(path for path in out.glob("solution-*") if path.is_dir())


def committed(out: Path, whole: Path) -> list[int]:
    """How many levels of each solution a killed run has left, each with the files that it has in the whole one."""
    found = []
    for folder in solutions_in(whole):
        try:
            results = SolutionStore.open(place_of(out / folder.name))
        except StoreNotFoundError:
            found.append(0)
            continue
        horizon = results.manifest["horizon"]
        ours, theirs = tree(out / folder.name), tree(folder)
        for t in range(results.next_level + 1, horizon + 1):
            prefix = f"level_{t:05}/"
            mine = {name: data for name, data in ours.items() if name.startswith(prefix)}
            assert mine == {name: data for name, data in theirs.items() if name.startswith(prefix)}, t
        found.append(horizon - results.next_level)
    return found


def kill_again_and_again(
    runs: Solves, kind: str, steps: int, n_kills: int, folder: Path, params: Sequence[dict[str, float]] = ONE
) -> None:
    """Kill at random moments so many times, a third of them at least when some levels are there and some are not.

    Folders that are finished in between are checked and begun again.
    """
    whole, out = folder / "whole" / "out", folder / "out"
    if kind != "ice_rink":  # one kind is enough for kills that hit the DAG, of which test_kills has plenty
        for place in (whole, out):
            with_dag(kind, steps, place)
    in_peace = runs.run(kind, steps, whole, params=params)
    assert in_peace.exit_code == 0
    assert len(solutions_in(whole)) == len(params)
    rng, n_killed, n_in_the_middle = random.Random(kind), 0, 0
    for _ in range(20 * n_kills):
        is_last = n_killed >= n_kills and n_in_the_middle >= n_kills / 3
        kill_after = None if is_last else rng.uniform(0, 0.7 * in_peace.seconds)
        outcome = runs.run(kind, steps, out, kill_after=kill_after, params=params)
        if outcome.was_killed:
            n_killed += 1
            n_in_the_middle += 0 < sum(committed(out, whole)) < len(params) * (steps + 1)
            continue
        assert outcome.exit_code == 0
        assert_same_trees(out, whole)
        assert not list(out.glob("*/carry_*"))
        if is_last:
            return
        for path in solutions_in(out):
            shutil.rmtree(path)
    raise AssertionError(f"{n_killed} runs were killed, {n_in_the_middle} of them in the middle")


@pytest.mark.parametrize(
    ("kind", "n_kills"), [("ice_rink", 7), ("carousel", 4), ("leaps", 5), ("drift", 3), ("leaps, levels derived", 3)]
)
def test_killed_solves_end_with_the_files_of_a_solve_in_peace(runs: Solves, kind: str, n_kills: int, tmp_path: Path) -> None:
    kill_again_and_again(runs, kind, STEPS, n_kills, tmp_path)


@pytest.mark.parametrize(("kind", "n_kills"), [("ice_rink", 3), ("leaps", 3)])
def test_killed_solves_of_several_sets_end_with_the_files_of_a_solve_in_peace(
    runs: Solves, kind: str, n_kills: int, tmp_path: Path
) -> None:
    kill_again_and_again(runs, kind, STEPS, n_kills, tmp_path, SEVERAL[:2] if kind == "leaps" else SEVERAL[1:3])


@pytest.mark.slow
@pytest.mark.parametrize("params", [ONE, SEVERAL], ids=["one set", "several sets"])
@pytest.mark.parametrize(("kind", "steps"), [("asymmetric_freeing", 20), ("carousel", 120), ("leaps", 120), ("drift", 120)])
def test_killed_long_solves_end_with_the_files_of_a_solve_in_peace(
    runs: Solves, kind: str, steps: int, params: Any, tmp_path: Path
) -> None:
    kill_again_and_again(runs, kind, steps, 60, tmp_path, params)


# --- at every kind of touch of the disk -------------------------------------------------------------------------------


def moments_of(touches: Sequence[str]) -> list[Moment]:
    """Each touch of a solution (not of the DAG) as its kind, and how many of that kind there were until then."""
    counts: dict[str, int] = {}
    moments = []
    for kind in map(kind_of, touches):
        counts[kind] = counts.get(kind, 0) + 1
        if "out/dag" not in kind:
            moments.append((kind, counts[kind]))
    return moments


def one_of_each_kind(moments: Sequence[Moment]) -> list[Moment]:
    rng = random.Random(7)
    return [(kind, rng.randint(1, n)) for kind, n in dict(moments).items()]


def with_dag(kind: str, steps: int, out: Path) -> Path:
    """A folder where nothing but the DAG is left to be used."""
    world, options = world_of(kind, steps)
    enumerate_dag(world, store=out / "dag", precision="exact", progress=False, **options)
    return out


def die_and_continue(runs: Solves, kind: str, moments: Sequence[Moment], folder: Path, begun: Path, **options: Any) -> None:
    """Die at each of the moments, beginning with a copy of ``begun``, and run again; compare with ``folder / whole``."""
    wrong = []
    for i, moment in enumerate(moments):
        place = folder / str(i)
        shutil.copytree(begun, place / "out")
        outcome = runs.run(kind, 2, place / "out", die_at=moment, **options)
        assert outcome.was_killed, moment
        try:
            assert runs.run(kind, 2, place / "out", **options).exit_code == 0, "cannot be continued"
            assert_same_trees(place, folder / "whole")
        except AssertionError as error:
            wrong.append(f"{outcome.last_touch}: {error}")
        shutil.rmtree(place)
    assert not wrong, "\n".join(wrong)


def watched(runs: Solves, kind: str, folder: Path) -> tuple[list[Moment], Path]:
    """All moments of a solve that begins where only the DAG is, and a folder to begin in; a whole one is made, too."""
    assert runs.run(kind, 2, folder / "whole" / "out").exit_code == 0
    begun = with_dag(kind, 2, folder / "begun" / "out")
    shutil.copytree(begun, folder / "watched" / "out")
    return moments_of(runs.run(kind, 2, folder / "watched" / "out", watch=True).touches), begun


def test_death_at_any_kind_of_write_leaves_nothing_that_differs_afterwards(runs: Solves, tmp_path: Path) -> None:
    moments, begun = watched(runs, "ice_rink", tmp_path)
    kinds = dict(moments)
    for what in ("zarr", "level/zarr", "level/array/zarr", "level/array/c/chunk", "carry/zarr", "carry/array/c/chunk"):
        assert f"open out/solution/{what}.*.partial" in kinds
        assert f"os.rename out/solution/{what}.*.partial" in kinds
    assert "os.remove in a folder that goes" in kinds
    die_and_continue(runs, "ice_rink", one_of_each_kind(moments), tmp_path, begun)


def test_death_while_tables_of_several_levels_are_carried_leaves_nothing_that_differs_afterwards(
    runs: Solves, tmp_path: Path
) -> None:
    moments, begun = watched(runs, "leaps", tmp_path)
    of_carrying = [moment for moment in moments if "solution/carry" in moment[0] or "level/zarr" in moment[0]]
    # What was carried goes as levels 1 and 0 are committed; the last time is like no other.
    last = ("os.rmdir out/solution/carry", dict(moments)["os.rmdir out/solution/carry"])
    die_and_continue(runs, "leaps", sorted({*one_of_each_kind(of_carrying), last}), tmp_path, begun)


def test_death_where_every_level_is_there_but_not_everything_is_tidy_leaves_no_trace(tmp_path: Path) -> None:
    """The last thing that a solve does is to remove what was carried to level 0; nobody needs it any more."""
    out = tmp_path / "out"
    (solution,) = solved(world_of("ice_rink", 2)[0], out)
    solution.close()
    (folder,) = solutions_in(out)
    expected = tree(out)
    shutil.copytree(folder / "level_00001", folder / "carry_00001")  # any group will do
    (folder / f"zarr.{'0f' * 16}.partial").write_text('{"attributes": {')
    solved(world_of("ice_rink", 2)[0], out)
    assert tree(out) == expected


@pytest.mark.slow
@pytest.mark.parametrize("params", [ONE, SEVERAL[:2]], ids=["one set", "two sets"])
@pytest.mark.parametrize("kind", ["ice_rink", "carousel", "leaps", "drift"])
def test_death_at_every_single_write(runs: Solves, kind: str, params: Any, tmp_path: Path) -> None:
    assert runs.run(kind, 2, tmp_path / "whole" / "out", params=params).exit_code == 0
    begun = with_dag(kind, 2, tmp_path / "begun" / "out")
    shutil.copytree(begun, tmp_path / "watched" / "out")
    touches = runs.run(kind, 2, tmp_path / "watched" / "out", watch=True, params=params).touches
    die_and_continue(runs, kind, moments_of(touches), tmp_path, begun, params=params)


def test_death_while_a_solution_is_being_replaced_is_no_obstacle_to_replacing_it(runs: Solves, tmp_path: Path) -> None:
    assert runs.run("ice_rink", 2, tmp_path / "whole" / "out").exit_code == 0
    shutil.copytree(tmp_path / "whole", tmp_path / "watched")
    moments = moments_of(runs.run("ice_rink", 2, tmp_path / "watched" / "out", watch=True, overwrite=True).touches)
    some = one_of_each_kind(moments)[::4]
    die_and_continue(runs, "ice_rink", some, tmp_path, tmp_path / "whole" / "out", overwrite=True)


# --- what is there is not computed again ------------------------------------------------------------------------------

KINDS = ["ice_rink", "leaps, levels derived", "drift"]


def forbid(monkeypatch: pytest.MonkeyPatch, *methods: tuple[type, str]) -> None:
    def forbidden(*_: Any, **__: Any) -> Any:
        raise AssertionError("this was done before")

    for owner, name in methods:
        monkeypatch.setattr(owner, name, forbidden)


SOLVING = [(phases.HumanPhase, "run"), (phases.RobotPhase, "run")]
ENUMERATING = [(GridWorld, "expand"), *((e, "next_level") for e in (LevelExplorer, SharedExplorer, DerivedExplorer))]


@pytest.mark.parametrize(("kind", "params"), [*((kind, ONE) for kind in KINDS[1:]), ("ice_rink", SEVERAL)])
def test_a_second_solve_of_the_same_thing_computes_nothing_and_writes_nothing(
    kind: str, params: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, options = world_of(kind, 5)
    first = solved(world, tmp_path / "out", params, **options)
    numbers = [solution.values.V_r[0].tolist() for solution in first]
    assert not list((tmp_path / "out").glob("*/carry_*"))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    forbid(monkeypatch, *SOLVING, *ENUMERATING)
    world, options = world_of(kind, 5)
    for chosen in (params, params[::-1], params[:1]):
        again = solved(world, tmp_path / "out", chosen, **options)
        expected = [numbers[params.index(given)] for given in chosen]
        assert [solution.values.V_r[0].tolist() for solution in again] == expected
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before


@pytest.mark.parametrize("kind", KINDS)
def test_other_parameters_use_the_same_dag_and_have_a_folder_of_their_own(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, options = world_of(kind, 5)
    solved(world, tmp_path / "out", **options)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    expected = [solution.values.V_r[0].tolist() for solution in solved(world, None, SEVERAL[1:], **options)]
    forbid(monkeypatch, *ENUMERATING)
    for n, given in enumerate(SEVERAL[1:]):
        world, options = world_of(kind, 5)
        (found,) = solved(world, tmp_path / "out", [given], **options)
        assert found.values.V_r[0].tolist() == expected[n]
        assert len(solutions_in(tmp_path / "out")) == 2 + n
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    assert {path: after[path] for path in before} == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_computes_only_what_is_not_there_yet(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, options = world_of(kind, 5)
    expected = [solution.values.V_r[0].tolist() for solution in solved(world, None, SEVERAL, **options)]
    solved(world, tmp_path / "out", SEVERAL[1:2], **options)
    solved(world, tmp_path / "out", SEVERAL[3:], **options)
    computed: set[float] = set()
    plain = phases.RobotPhase.run

    def run(self: Any, *arguments: Any) -> None:
        computed.add(self.params.zeta + self.params.beta_h)
        plain(self, *arguments)

    monkeypatch.setattr(phases.RobotPhase, "run", run)
    found = solved(world, tmp_path / "out", SEVERAL, **options)
    assert [solution.values.V_r[0].tolist() for solution in found] == expected
    assert computed == {1.5 + 10.0, 1.5 + 3.0}


def test_a_continued_solve_computes_only_what_is_missing(
    runs: Solves, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = with_dag("ice_rink", 9, tmp_path / "out")
    moment = ("os.rename out/solution/level/zarr.*.partial", 4)
    assert runs.run("ice_rink", 9, begun, die_at=moment).was_killed
    levels: set[int] = set()
    plain = phases.HumanPhase.run

    def run(self: Any, work: Any, **options: Any) -> Any:
        levels.add(work.t)
        return plain(self, work, **options)

    monkeypatch.setattr(phases.HumanPhase, "run", run)
    world, _ = world_of("ice_rink", 9)
    with counted_expansions(monkeypatch) as expanded:
        (found,) = solved(world, begun)
    assert expanded == []
    assert levels == set(range(7))  # levels 9, 8 and 7 were committed
    (expected,) = solved(world, None)
    for t in range(10):
        assert found.results.get(t, "vh").tobytes() == expected.results.get(t, "vh").tobytes()
        assert found.results.get(t, "vr").tobytes() == expected.results.get(t, "vr").tobytes()
