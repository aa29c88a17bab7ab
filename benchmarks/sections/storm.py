"""Storm builds the same model and answers the same 18 questions, one after the other; we enumerate, store and sweep once."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import Runs, in_turns, megabytes
from benchmarks.peers import storm
from benchmarks.peers.prism import prism_of
from benchmarks.report import Section
from benchmarks.sizes import Sizes
from empo_bi import Params, Solution, TabularGoalGenerator, enumerate_dag, load_world, open_dag, solve

WORLD = "asymmetric_freeing"
N_GOALS = 18
TOLERANCE = 1e-9
BUILDING = "enumeration on disk against Storm's builder"
READING = "enumeration on disk against Storm reading DRN"
ASKING = f"one sweep for {N_GOALS} goals from disk against {N_GOALS} queries of Storm"


def measure(sizes: Sizes) -> Section:
    section = Section("storm", "Storm: building and asking")
    section.about.append(
        f"`{WORLD}` with {sizes.storm_steps} steps, and goals that agent 0 or agent 1 reaches a certain cell. The question: "
        "how likely can that be within the horizon, if everybody does their best for it? For Storm that is "
        "`Pmax=? [F<=steps goal]` in the decision process whose choices are the action profiles, once per goal; for us it "
        "is one sweep of phase 1 for all goals (one human who decides with `optimistic=True` and `beta_h = inf`, float64), "
        "from the DAG on disk, reads included. Answers are compared to 1e-9."
    )
    missing = storm.why_missing()
    if missing:
        section.missing.append(missing)
        for what, bound in ((BUILDING, 5), (READING, 5), (ASKING, 10)):
            section.want(what, None, at_least=bound, why=missing)
        return section
    world = world_of(sizes.storm_steps)
    with tempfile.TemporaryDirectory() as name:
        _build(section, world, Path(name), sizes.rounds)
        _ask(section, world, Path(name), sizes.rounds)
    return section


def world_of(steps: int) -> Any:
    """All agents do their best for one human, whose goals are cells that agents 0 and 1 can reach."""
    world = load_world(WORLD, max_steps=steps)
    dag, goals = enumerate_dag(world, progress=False), world.possible_goal_generator
    found = [goal for human in world.human_agent_indices for goal in goals.goals_of(human)]
    bits_SX = np.concatenate([np.unpackbits(dag.attained(t), axis=1, bitorder="little") for t in range(1, dag.horizon + 1)])
    at_start = np.unpackbits(dag.attained(0), axis=1, bitorder="little")[0]
    asked = [goal for x, goal in enumerate(found) if bits_SX[:, x].any() and not at_start[x]]
    world.human_agent_indices, world.robot_agent_indices = [0], list(range(1, len(world.agents)))
    world.possible_goal_generator = TabularGoalGenerator(asked[:N_GOALS])
    return world


def _build(section: Section, world: Any, folder: Path, rounds: int) -> None:
    section.about.append(
        "*Building.* Storm explores the PRISM program that `benchmarks/peers/prism.py` writes from the map (its states have "
        "the step in them); or it reads the model as we exported it (`dag.to_drn`, `dag.to_umb`, without the step), where "
        "nothing is left to be found. Ours is enumeration from the map, with every level written to disk."
    )
    dag = enumerate_dag(world, precision="exact", progress=False)
    (folder / "world.prism").write_text(prism_of(world), encoding="utf-8")
    writers = {"DRN": lambda: dag.to_drn(folder / "world.drn", overwrite=True, progress=False)}
    writers["UMB"] = lambda: dag.to_umb(folder / "world.umb", overwrite=True, progress=False)
    written = in_turns(writers, 1)
    places = iter(range(10**6))
    jobs = {
        "ours, to disk": lambda: enumerate_dag(
            world, store=folder / f"dag_{next(places)}", precision="exact", progress=False
        ),
        "Storm, from the PRISM program": lambda: storm.build(folder / "world.prism"),
        "Storm, reading DRN": lambda: storm.build(folder / "world.drn"),
        "Storm, reading UMB": lambda: storm.build(folder / "world.umb"),
    }
    jobs["ours, to disk"]()  # zarr is imported now
    runs = {name: Runs() for name in jobs}
    for round_ in range(rounds):
        for name, job in jobs.items():
            if round_ < 2 or "PRISM" not in name:  # which takes long
                runs[name].run(job)
    ours = runs["ours, to disk"]
    columns = ("", "states", "transitions", "time", "spread", "CPU", "times ours", "file")
    table = section.table("Building the state space", *columns)
    files = {"PRISM": folder / "world.prism", "DRN": folder / "world.drn", "UMB": folder / "world.umb"}
    for name, run in runs.items():
        model = run.result
        if run is ours:
            numbers, size = (f"{model.n_states:,} ({model.n_bodies:,} bodies)", f"{model.n_transitions:,}"), "–"
        else:
            numbers = f"{model.nr_states:,}", f"{model.nr_transitions:,}"
            size = megabytes(next(path for kind, path in files.items() if kind in name).stat().st_size)
        table.row(name, *numbers, *run.cells(), f"{run.seconds / ours.seconds:.1f}x", size)
    for kind, run in written.items():
        table.row(f"ours, writing {kind}", "", "", *run.cells(), f"{run.seconds / ours.seconds:.1f}x", "")
    built = runs["Storm, from the PRISM program"].result
    if built.nr_states != dag.n_states:
        raise AssertionError(f"Storm builds {built.nr_states} states, we have {dag.n_states}")
    against = {name: runs[f"Storm, {how}"].seconds / ours.seconds for name, how in _STORMS.items()}
    section.want(BUILDING, against["builder"], at_least=5)
    section.want(READING, against["DRN"], at_least=5)
    section.figures["enumeration on disk against Storm reading UMB"] = against["UMB"]


_STORMS = {"builder": "from the PRISM program", "DRN": "reading DRN", "UMB": "reading UMB"}


def _ask(section: Section, world: Any, folder: Path, rounds: int) -> None:
    store = folder / "asked"
    dag = enumerate_dag(world, store=store, precision="exact", progress=False)
    exported = dag.to_drn(folder / "asked.drn", progress=False)
    model = storm.build(folder / "asked.drn")
    queries = exported.queries()
    jobs: dict[str, Any] = {f"ours, {n} worker{'s' * (n > 1)}": lambda n=n: _sweep(world, store, n) for n in (2, 1)}
    jobs[f"Storm, {len(queries)} queries"] = lambda: [storm.probability(model, query) for query in queries.values()]
    jobs["ours, 2 workers"]()
    runs = in_turns(jobs, rounds)
    ours, theirs = runs["ours, 2 workers"], runs[f"Storm, {len(queries)} queries"]
    solution: Solution = ours.result
    found = {label: float(solution.values.Vh_m[0][0, 0, goal]) for label, (_, goal) in exported.labels.items()}
    for label, answer in zip(queries, theirs.result, strict=True):
        if abs(found[label] - answer) > TOLERANCE:
            raise AssertionError(f"{label}: Storm says {answer}, we say {found[label]}")
    table = section.table(f"{len(queries)} goals", "", "time", "spread", "CPU", "times ours")
    for name, run in runs.items():
        table.row(name, *run.cells(), f"{run.seconds / ours.seconds:.1f}x")
    section.want(ASKING, theirs.seconds / ours.seconds, at_least=10)


def _sweep(world: Any, store: Path, workers: int) -> Solution:
    params = Params(beta_h=math.inf, optimistic=True)
    dag = open_dag(store, world=world)
    return solve(world, params, dag=dag, phase_2=False, precision="float64", workers=workers, progress=False)
