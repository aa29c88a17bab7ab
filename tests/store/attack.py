"""Use forged runs in every way there is, in a process of its own: ``python attack.py KIND,KIND,... FIRST N``.

A line for each forgery that was met with anything but a clear error, or that changed numbers it could not change by rights.
Ends with code 0 if it came to the end; a crash, a hang or too much memory shows as another code.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import resource
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse
from forging import Tree, forged, put_tree, tree_of

import empo_bi
from empo_bi import (
    ArrayWorld,
    EmpoError,
    Params,
    TooManyStatesError,
    enumerate_dag,
    load_world,
    open_dag,
    open_solution,
    solve,
)
from empo_bi.batch.stores import stores_at
from empo_bi.store.solution_store import SolutionStore
from empo_bi.store.verify import verify_store

PARAMS = Params(zeta=2.0, beta_r=5.0, gamma_h=0.9, gamma_r=0.9)
MEMORY = 3 << 30  # addresses beyond those taken before the first forgery
PATIENCE = 120  # seconds for one forgery, on a machine that does other things
KINDS = ("grid", "keys", "array", "ring", "shared", "unfinished DAG", "unfinished solution")


class At:
    """A goal: to be at a place."""

    def __init__(self, place: int) -> None:
        self.place = place

    def is_achieved(self, state: Any) -> int:
        return int(state[1] == self.place)

    def __repr__(self) -> str:
        return f"At({self.place})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, At) and other.place == self.place

    def __hash__(self) -> int:
        return hash(self.place)


class Ring:
    """A human and a robot push something round a ring of five places, sometimes by two steps at once."""

    agents = ("human", "robot")
    action_space = SimpleNamespace(n=2)
    human_agent_indices = (0,)
    robot_agent_indices = (1,)
    leap = 2
    content_key = "a ring"

    def __init__(self, steps: int = 4) -> None:
        self.steps = steps
        self.possible_goal_generator = empo_bi.TabularGoalGenerator([At(1), At(2), At(3)])

    def initial_state(self) -> Any:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, place = state
        if step >= self.steps or place == 4:
            return None
        return [
            (0.5, (step + 1, (place + actions[0]) % 5)),
            (0.25, (step + 1, (place + 2 * actions[1]) % 5)),
            (0.25, (min(step + self.leap, self.steps), place)),
        ]


class Shared(Ring):
    """The same without leaps, so that bodies are shared."""

    time_homogeneous = True
    leap = 1
    content_key = "a shared ring"


def step_of(state: Any) -> int:
    return int(state[0])


def array_world() -> ArrayWorld:
    """Nobody can stay where they are, so levels are not nested."""
    rng = np.random.default_rng(3)
    n, n_profiles = 14, 4
    rows = np.zeros((n * n_profiles, n))
    for s in range(n):
        for j in range(n_profiles):
            for following in rng.choice([x for x in range(n) if x % 2 != s % 2], size=2, replace=False):
                rows[s * n_profiles + j, following] = rng.choice([0.25, 0.5])
    rows[12 * n_profiles :] = 0.0
    rows /= np.maximum(rows.sum(axis=1, keepdims=True), 1e-9)
    goals = {"low": [1, 3], "high": [9, 10, 11], "end": [12]}
    return ArrayWorld(scipy.sparse.csr_array(rows), max_steps=5, goals=goals, n_agents=2)


def world_of(kind: str) -> tuple[Any, dict[str, Any]]:
    """A world, and what it takes to enumerate it."""
    if kind == "ring":
        return Ring(), {"level_fct": step_of}
    if kind == "shared":
        return Shared(), {}
    if kind == "array":
        return array_world(), {}
    if kind == "keys":
        return load_world("one_key_two_rooms", max_steps=2), {}
    return load_world("ice_rink", max_steps=3), {}


def make_master(kind: str, folder: Path) -> None:
    """A run as an honest user leaves it."""
    world, options = world_of(kind)
    if kind == "unfinished DAG":
        with contextlib.suppress(TooManyStatesError):
            enumerate_dag(world, store=folder / "dag", max_states=150, precision="exact", progress=False)
        return
    put = SolutionStore.put

    def stopping(self: Any, t: int, *rest: Any) -> None:
        if kind == "unfinished solution" and t == 1:
            raise KeyboardInterrupt
        put(self, t, *rest)

    with mock.patch.object(SolutionStore, "put", stopping), contextlib.suppress(KeyboardInterrupt):
        solve(world, PARAMS, out=folder, progress=False, **options).close()


# --- using it ---------------------------------------------------------------------------------------------------------


def digest(*things: Any) -> str:
    content = hashlib.sha256()
    for thing in things:
        content.update(np.ascontiguousarray(thing).tobytes() if isinstance(thing, np.ndarray) else repr(thing).encode())
    return content.hexdigest()[:12]


def levels_of(dag: Any) -> str:
    slices = [dag.level(t) for t in range(dag.horizon + 1)]
    arrays = [(s.body_S, s.count_SJ, s.succ_K, s.prob_K, s.attained_SX) for s in slices]
    return digest(
        *(array for level in arrays for array in level if array is not None), *map(dag.states, range(dag.horizon + 1))
    )


def solved(solution: Any) -> str:
    values, horizon = solution.values, range(solution.dag.horizon + 1)
    found = [values.Vh_m, values.Vh_e, values.X_h, values.U_r, values.V_r, solution.Q_r, solution.pi_r, solution.pi_h]
    return digest(*(array[t] for array in found for t in horizon), *(solution.reached[t] for t in horizon))


def played(solution: Any) -> str:
    rollouts = solution.rollouts(20, seed=1)
    pieces = [rows for _, rows in solution.pieces("vr", 1, range(solution.dag.level_sizes[1]))]
    assert solution.summary()
    return digest(rollouts.length_N, rollouts.action_NTI, str(solution.at(solution.dag.states(0)[0])), *pieces)


def uses(folder: Path, kind: str, seed: int) -> dict[str, Callable[[], Any]]:
    """Ways to use a run, by name; each returns what tells numbers from others."""
    world, options = world_of(kind)
    given = world if kind in ("ring", "shared", "array") else None

    def verified() -> str:
        return str([bool(verify_store(store, progress=False).damage) for store in stores_at(folder)])

    def opened() -> str:
        with open_dag(folder / "dag", world=given) as dag:
            return levels_of(dag)

    def unknown_world() -> str:
        with open_dag(folder / "dag") as dag:
            assert dag.summary()
            return digest(dag.states(0), dag.level(0).succ_K)

    def shown() -> str:
        with open_solution(folder, world=given, progress=False) as solution:
            return solved(solution) + played(solution)

    def exported() -> str:
        with open_dag(folder / "dag", world=given) as dag:
            dag.to_drn(folder / "model.drn", overwrite=True, unrolled=seed % 4 < 2, progress=False)
            return digest((folder / "model.drn").read_bytes())

    def reported() -> str:
        with open_solution(folder, world=given, progress=False) as solution:
            empo_bi.write_report(solution, folder / "page.html", progress=False)
        return ""

    def continued() -> str:
        with solve(world, PARAMS, out=folder, progress=False, **options) as solution:
            return solved(solution)

    found: dict[str, Callable[[], Any]] = {"verify": verified, "open_dag": opened, "open without a world": unknown_world}
    if not kind.startswith("unfinished"):
        found["solution"] = shown
        if seed % 4 == 0:
            found["export"] = exported
        if seed % 16 == 0 and kind in ("grid", "keys"):
            found["report"] = reported
    found["continue"] = continued
    return found


def attempted(use: Callable[[], Any]) -> tuple[str, str]:
    """How a use ended: ``("fine", digest)``, ``("refused", error)`` or ``("WRONG", error)``."""
    try:
        return "fine", use()
    except EmpoError as error:
        return ("refused", f"{type(error).__name__}: {error}") if str(error) else ("WRONG", f"{error!r}, without a word")
    except Exception as error:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = "" if place is None else f" at {Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}"
        return "WRONG", f"{error!r}"[:300] + where


def may_change_numbers(done: list[str]) -> bool:
    """Whether a forgery has written other numbers into arrays, so that other results may be right."""
    return any(what.startswith(("numbers", "shape", "packed", "file")) for what in done)


def attack(kind: str, master: Tree, seeds: range, told: Callable[[str], None]) -> Counter[str]:
    counts: Counter[str] = Counter()
    expected: dict[str, str] = {}
    for seed in (-4 if kind.startswith("unfinished") else -16, *seeds):  # first an untouched run, used in every way
        tree, done = (master, ["untouched"]) if seed < 0 else forged(master, seed)
        told(f"seed {seed} {done}"[:400].replace("\n", " "))
        with tempfile.TemporaryDirectory(prefix="empo_bi-attack-") as name:
            folder = Path(name) / "run"
            put_tree(tree, folder)
            if seed >= 0:  # before that, kernels are compiled
                faulthandler.dump_traceback_later(PATIENCE, exit=True)
            results = {way: attempted(use) for way, use in uses(folder, kind, seed).items()}
            faulthandler.cancel_dump_traceback_later()
            strangers = sorted(path.name for path in Path(name).iterdir() if path.name not in ("run", "run.lock"))
        for way, (outcome, text) in results.items():
            counts[f"{way}: {outcome}"] += 1
            if seed < 0:
                expected[way] = text
            is_other = outcome == "fine" and way not in ("verify",) and expected.get(way, text) != text
            if (
                outcome == "WRONG"
                or (seed < 0 and outcome != "fine")
                or (is_other and not may_change_numbers(done))
                or strangers
            ):
                print(f"FOUND seed {seed} {kind}, {way}: {outcome} {text[:300]} {strangers} after {done}"[:900], flush=True)
    return counts


def main(kinds: str, first: str, n: str) -> None:
    faulthandler.enable()
    warnings.simplefilter("ignore")
    masters: dict[str, Tree] = {}
    for kind in kinds.split(","):
        with tempfile.TemporaryDirectory(prefix="empo_bi-attack-") as name:
            make_master(kind, Path(name) / "run")
            masters[kind] = tree_of(Path(name) / "run")
        attack(kind, masters[kind], range(0), lambda _: None)  # load and compile everything before memory is limited
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
    for kind, master in masters.items():
        counts = attack(kind, master, range(int(first), int(first) + int(n)), lambda line: print(line, flush=True))
        print("COUNTS", kind, dict(sorted(counts.items())), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
