"""The commands that are killed: each makes something in a folder, and says what may be asked of it meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backward.test_solution_kills import solved
from batch.batches import lasting_csv
from click.testing import CliRunner
from store_tools import enumerated, tree, world_of

from empo_bi import Params, StoreNotFoundError, open_dag, open_solution, run_batch, solve
from empo_bi.cli import cli
from empo_bi.events import agent_in

STEPS = 2
SETS = [{"gamma_h": 0.95, "gamma_r": 0.9, "zeta": 1.5}, {"gamma_h": 0.95, "gamma_r": 0.9, "zeta": 2.5}]
BATCH: dict[str, Any] = {
    "worlds": ["basics/first_steps", "basics/carousel"],
    "steps": 2,
    "params": {"gamma_h": 0.9, "zeta": [1, 2]},
}
VOLATILE = ("call", "begun", "ended", "timings", "machine", "before", "versions", "crc32")  # of manifests
Act = Callable[[Path], Any]


@dataclass(frozen=True)
class Command:
    """``act`` makes something in a folder; ``verify`` is asked about ``names``, ``show`` about ``shown``."""

    act: Act
    names: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    opened: tuple[tuple[Callable[[str], Any], str], ...] = ()
    prepare: Act | None = None
    scheme: str = ""  # before names
    workers: int = 0  # processes that it starts
    tags: frozenset[str] = field(default_factory=frozenset)


def enumerates(name: str, kind: str = "ice_rink", scheme: str = "", **options: Any) -> Command:
    def act(folder: Path) -> None:
        enumerated(kind, STEPS, f"{scheme}{folder}/{name}", **options).close()

    old: Act | None = (lambda folder: enumerated(kind, 1, folder / name).close()) if options.get("overwrite") else None
    return Command(act, (name,), opened=((open_dag, name),), prepare=old, scheme=scheme)


def solves(scheme: str = "", kind: str = "ice_rink", n: int = 1, **options: Any) -> Command:
    def act(folder: Path) -> None:
        world, more = world_of(kind, STEPS)
        for solution in solved(world, f"{scheme}{folder}/out", SETS[:n], **more, **options):
            solution.close()

    old: Act | None = None
    if options.get("overwrite"):

        def old(folder: Path) -> None:
            solves(scheme, kind, n).act(folder)

    opened = () if kind != "ice_rink" or n > 1 else ((open_solution, "out"),)
    return Command(act, ("out",), () if kind != "ice_rink" else ("out",), opened, old, scheme)


def temporary_dag(folder: Path) -> None:
    _in_tmp(folder)
    with enumerated("ice_rink", STEPS, True):
        pass


def temporary_solution(folder: Path) -> None:
    _in_tmp(folder)
    solve(world_of("ice_rink", STEPS)[0], Params(**SETS[0]), out=True, progress=False).close()


def _in_tmp(folder: Path) -> None:
    import tempfile

    (folder / "tmp").mkdir(exist_ok=True)
    tempfile.tempdir = str(folder / "tmp")


def sub_problem(folder: Path) -> None:
    world = world_of("ice_rink", 3)[0]
    initial = world.initial_state()
    _, later = world.transition_probabilities(initial, [3] * len(world.agents))[0]
    stop = agent_in(0, later[1][0][:2])  # where it is then
    solve(world, Params(**SETS[0]), start=initial, stop=stop, out=folder / "out", progress=False).close()


def archives(folder: Path) -> None:
    from empo_bi import compute_robot_policy

    compute_robot_policy(world_of("ice_rink", STEPS)[0], [0], [1], archive_dir=folder / "archive", quiet=True)


def profiled(folder: Path) -> None:
    solve(world_of("ice_rink", STEPS)[0], Params(), out=folder / "out", memory_profile=True, progress=False).close()


def batches(scheme: str = "", workers: int = 1, large: bool = False, **options: Any) -> Command:
    def act(folder: Path) -> None:
        from empo_bi.batch import run_pass as work

        if large:  # so that DAGs are kept
            work.SMALL_BODIES = work.SMALL_STATES = 10
        batch = {**BATCH, **{name: options[name] for name in options.keys() & {"keep", "steps", "params"}}}
        more = {name: value for name, value in options.items() if name not in batch}
        result = run_batch(batch, out=f"{scheme}{folder}/runs", workers=workers, progress=False, **more)
        assert result.is_complete, result.summary()

    return Command(act, ("runs",), ("runs",), scheme=scheme, workers=0 if workers == 1 else workers)


def reports(folder: Path) -> None:
    from empo_bi import write_report

    write_report(open_solution(folder / "out"), folder / "explorer.html", overwrite=True, progress=False)


COMMANDS: dict[str, Command] = {
    "enumerate, folder": enumerates("store"),
    "enumerate, folder, Python world": enumerates("store", "leaps"),
    "enumerate, zip": enumerates("store.zip"),
    "enumerate, zip, Python world": enumerates("store.zip", "drift"),
    "enumerate, URL": enumerates("store", scheme="local://"),
    "enumerate, folder, overwrite": enumerates("store", overwrite=True),
    "enumerate, zip, overwrite": enumerates("store.zip", overwrite=True),
    "enumerate, temporary": Command(temporary_dag),
    "solve, folder": solves(),
    "solve, folder, two sets": solves(n=2),
    "solve, folder, Python world": solves(kind="leaps"),
    "solve, folder, overwrite": solves(overwrite=True),
    "solve, folder, sub-problem": Command(sub_problem, ("out",)),
    "solve, URL": solves("local://"),
    "solve, temporary": Command(temporary_solution),
    "solve, memory profile": Command(profiled, ("out",), ("out",)),
    "solve, archive": Command(archives, ("archive",)),
    "report": Command(reports, ("out",), ("out",), prepare=solves().act),
    "batch, values": batches(keep="values"),
    "batch, summary": batches(keep="summary"),
    "batch, DAGs kept": batches(keep="values", large=True),
    "batch, DAGs kept, summary": batches(keep="summary", large=True),
    "batch, URL": batches("local://", keep="values"),
    "batch, two workers": batches(workers=2, keep="values"),
    "batch, Dask": batches(workers=2, keep="values", backend="dask"),
}  # fmt: skip


# --- looking at what a kill left ----------------------------------------------------------------------------------------


def complaints(command: Command, folder: Path, *, is_finished: bool) -> list[str]:
    """What ``verify``, ``show`` and opening say that they should not say."""
    found = []
    for name in command.names:
        found += _verify(f"{command.scheme}{folder}/{name}", folder / name, is_finished)
    for name in command.shown:
        done = CliRunner().invoke(cli, ["show", f"{command.scheme}{folder}/{name}"])
        if done.exit_code not in ((0,) if is_finished else (0, 2)) or "should not happen" in done.output:
            found.append(f"show {name}: exit code {done.exit_code}: {done.output.strip()} {done.exception!r}")
    for function, name in command.opened:
        try:
            function(f"{command.scheme}{folder}/{name}").close()
        except StoreNotFoundError as error:
            if is_finished:
                found.append(f"{function.__name__}: {error!r}")
        except Exception as error:
            found.append(f"{function.__name__}: {error!r}")
    return found


def _verify(place: str, path: Path, is_finished: bool) -> list[str]:
    done = CliRunner().invoke(cli, ["verify", place])
    text = f"verify: exit code {done.exit_code}: {done.output.strip()} {done.exception!r}"
    if is_finished:
        return [] if done.exit_code == 0 and "unfinished" not in done.output else [text]
    beside = [file for found in path.parent.glob(f"{path.name}*") for file in [found, *found.rglob("*")]]
    has_begun = any(file.is_file() for file in beside)
    return [] if done.exit_code == 0 or (done.exit_code == 2 and not has_begun) else [text]


# --- what is to be the same ---------------------------------------------------------------------------------------------


def lasting_tree(folder: Path) -> dict[str, Any]:
    """All files below a folder, without what depends on machine and moment."""
    return {name: _lasting(folder / name, data) for name, data in tree(folder).items()}


def _lasting(path: Path, data: bytes | None) -> Any:
    if path.name in ("log.txt", "memory_profile.txt", "memory_profile.png"):
        return bool(data)
    if path.name == "table.parquet":
        assert data is not None
        return data[:4], data[-4:]
    if path.name == "table.csv":
        return lasting_csv(path.parent)
    if path.name == "batch.json":
        return {**json.loads(path.read_text()), "called": None}
    if path.name == "manifest.json":
        return {name: value for name, value in json.loads(path.read_text()).items() if name not in VOLATILE}
    return data


def differences(folder: Path, whole: dict[str, Any]) -> list[str]:
    found = lasting_tree(folder)
    words = {
        "left over": found.keys() - whole.keys(),
        "missing": whole.keys() - found.keys(),
        "different": {name for name in found.keys() & whole.keys() if found[name] != whole[name]},
    }
    return [f"{word}: {', '.join(sorted(names)[:6])}" for word, names in words.items() if names]
