"""What the tests of stores share: small worlds, folders as dictionaries, and enumerations in processes of their own."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import tqdm

from empo_bi import Dag, GridWorld, enumerate_dag, load_world

HANGS_AFTER = 120  # seconds without a word
ARRAYS = ("body_S", "count_SJ", "succ_K", "prob_K", "attained_SX")


# --- worlds -----------------------------------------------------------------------------------------------------------


class Leaps:
    """A walker on a ring of nine cells; a leap takes three steps at once, so that several levels lie ahead at a time."""

    n_agents = 1
    action_space = SimpleNamespace(n=2)

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def initial_state(self) -> Any:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, cell = state
        if step == self.steps:
            return None
        if actions[0] == 0:
            return [(1.0, (step + 1, cell))]
        return [(0.75, (step + 1, (cell + 1) % 9)), (0.25, (min(step + 3, self.steps), cell))]


class Drift(Leaps):
    """The same ring without leaps, which lets bodies be shared; who reaches cell 7 has arrived."""

    time_homogeneous = True

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, cell = state
        if step == self.steps or cell == 7:
            return None
        return [(0.75, (step + 1, (cell + actions[0]) % 9)), (0.25, (step + 1, (cell + 2) % 9))]


def step_of(state: Any) -> int:
    return int(state[0])


def world_of(kind: str, steps: int) -> tuple[Any, dict[str, Any]]:
    """A world and the options that it is enumerated with: a shipped world's name, or one of the classes above."""
    if kind == "leaps":
        return Leaps(steps), {"level_fct": step_of}
    if kind == "leaps, levels derived":
        return Leaps(steps), {}
    if kind == "drift":
        return Drift(steps), {}
    return load_world(kind, max_steps=steps), {}


def enumerated(kind: str, steps: int, store: Any, **more: Any) -> Dag:
    world, options = world_of(kind, steps)
    return enumerate_dag(world, store=store, progress=False, **options, **more)


# --- what is found ----------------------------------------------------------------------------------------------------


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder with its bytes, every folder with None."""
    paths = sorted(folder.rglob("*"))
    return {path.relative_to(folder).as_posix(): None if path.is_dir() else path.read_bytes() for path in paths}


def assert_same_trees(found: Path, expected: Path) -> None:
    """The same files with the same bytes, the same folders, and nothing else."""
    ours, theirs = tree(found), tree(expected)
    left_over = sorted(ours.keys() - theirs.keys())
    missing = sorted(theirs.keys() - ours.keys())
    other = sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name])
    assert not left_over + missing + other, f"left over: {left_over}, missing: {missing}, with other bytes: {other}"


def assert_same_dags(found: Dag, expected: Dag, n_levels: int | None = None) -> None:
    """All numbers of the first levels, of all levels by default, and the states that they are about."""
    n_levels = expected.horizon + 1 if n_levels is None else n_levels
    assert found.horizon + 1 == n_levels
    assert found.level_values == expected.level_values[:n_levels]
    assert found.level_sizes == expected.level_sizes[:n_levels]
    for t in range(n_levels):
        assert_same_level(found, expected, t)


def assert_same_level(found: Dag, expected: Dag, t: int, *, states: bool = True) -> None:
    ours, theirs = found.level(t), expected.level(t)
    for name in ARRAYS:
        a, b = getattr(ours, name), getattr(theirs, name)
        assert (a is None) == (b is None), (t, name)
        assert a is None or (a.dtype == b.dtype and np.array_equal(a, b)), (t, name)
    assert not states or found.states(t) == expected.states(t)


@contextlib.contextmanager
def counted_expansions(monkeypatch: Any) -> Iterator[list[int]]:
    """A list that gets the size of every block of states that a gridworld expands meanwhile."""
    sizes: list[int] = []
    plain = GridWorld.expand

    def counting(self: GridWorld, key_SW: Any, *args: Any, **options: Any) -> Any:
        sizes.append(len(key_SW))
        return plain(self, key_SW, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(GridWorld, "expand", counting)
        yield sizes


# --- processes --------------------------------------------------------------------------------------------------------


def environment(**more: str) -> dict[str, str]:
    """Of a child that is to find the same modules as this process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **more}


def run_python(script: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """A Python process of its own, to its end."""
    options = {"env": environment(), **options}
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options
    )


def mapped_beyond_usual() -> int:
    """Bytes of libraries that a new process has in memory beyond the usual 70 MB.

    How much of a file the kernel maps around each page that is used depends on how the file came into its cache: LLVM took
    37 MB on one day, and 94 MB on another, of the same file.
    """
    lines = run_python("import empo_bi.dag.key_index, scipy.sparse, zarr; print(open('/proc/self/status').read())").stdout
    mapped = next((line.split()[1] for line in lines.splitlines() if line.startswith("RssFile")), "0")
    return max(0, int(mapped) * 1024 - 70_000_000)


Moment = tuple[str, int]  # the n-th touch of the disk of a kind, see kind_of


@dataclass
class Outcome:
    """How a run ended: its exit code, minus the signal if it was killed, and what it touched on disk if that was watched."""

    exit_code: int
    seconds: float
    last_touch: str | None = None
    touches: list[str] = field(default_factory=list)

    @property
    def was_killed(self) -> bool:
        return self.exit_code == -signal.SIGKILL


class Runs:
    """Enumerations, each in a process of its own, forked from one that has done all importing, so that kills hit work."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-c", "import store_tools; store_tools.serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        self._heard: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def run(
        self,
        kind: str,
        steps: int,
        store: Path,
        *,
        kill_after: float | None = None,
        watch: bool = False,
        die_at: Moment | None = None,
        **more: Any,
    ) -> Outcome:
        """One run. It is killed ``kill_after`` seconds after it has begun, or when it is about to touch the disk."""
        job = {"kind": kind, "steps": steps, "store": str(store), "options": more}
        self._say({**job, "watch": watch or die_at is not None, "die_at": die_at})
        word, pid = self._hear()
        assert word == "begun"
        begun = time.monotonic()
        if kill_after is not None:
            time.sleep(kill_after)
            # If it has ended by now, its number is not given away before it is collected below.
            os.kill(pid, signal.SIGKILL)
        self._say("collect")
        heard: dict[str, Any] = {}
        while "ended" not in heard:
            try:
                word, heard[word] = self._hear()
            except queue.Empty:
                os.kill(pid, signal.SIGABRT)  # it hangs; this lets it say where
        return Outcome(heard["ended"], time.monotonic() - begun, heard.get("dying"), heard.get("touches", []))

    def close(self) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()

    def _listen(self) -> None:
        assert self._server.stdout is not None
        for line in self._server.stdout:
            self._heard.put(line)

    def _say(self, message: Any) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(message) + "\n")
        self._server.stdin.flush()

    def _hear(self) -> Any:
        return json.loads(self._heard.get(timeout=HANGS_AFTER))


def serve() -> None:
    """The process that :class:`Runs` talks to."""
    tqdm.tqdm.set_lock(threading.RLock())  # its own is shared with forks, and stays locked if one is killed
    enumerated("ice_rink", 2, None)  # loads what is compiled
    import empo_bi.store.dag_store  # noqa: F401

    faulthandler.enable()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _work(json.loads(line))
        sys.stdin.readline()
        _, status = os.waitpid(pid, 0)
        _tell("ended", os.waitstatus_to_exitcode(status))


def _work(job: Any) -> NoReturn:
    code = 1
    try:
        _tell("begun", os.getpid())
        world, options = world_of(job["kind"], job["steps"])
        touches: list[str] = []
        if job["watch"]:
            _watch(Path(job["store"]).parent, touches, job["die_at"])
        enumerate_dag(world, store=job["store"], progress=False, **options, **job["options"])
        _tell("touches", touches)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _tell(word: str, value: Any) -> None:
    os.write(1, (json.dumps([word, value]) + "\n").encode())


def _watch(folder: Path, touches: list[str], die_at: list[Any] | None) -> None:
    """Note whatever is about to be created, renamed or removed below a folder, and drop dead just before ``die_at``."""
    n_left = [-1 if die_at is None else die_at[1]]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("open", "os.rename", "os.link", "os.remove", "os.rmdir"):
            return
        if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return
        path = os.fsdecode(arguments[0]) if not isinstance(arguments[0], int) else ""
        # Folders are removed by way of their descriptor, so that names in them are relative.
        if not path or (os.path.isabs(path) and not path.startswith(str(folder))):
            return
        touch = f"{event} {path.removeprefix(str(folder)).lstrip('/')}"
        touches.append(touch)
        if die_at is not None and kind_of(touch) == die_at[0]:
            n_left[0] -= 1
        if n_left[0] == 0:
            _tell("dying", touch)
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def kind_of(touch: str) -> str:
    """The same for touches that differ only in the level, the array or a random name."""
    touch = re.sub(r"[0-9a-f]{32}", "*", re.sub(r"(level|frontier)_\d+", r"\1", touch))
    touch = re.sub(r"frontier/\d/", "frontier/n/", touch)
    touch = re.sub(r"(level|frontier/n)/[a-z]+/", r"\1/array/", touch)
    return re.sub(r"^(os.remove|os.rmdir) [a-z0-9]+(.json)?$", r"\1 in a folder that goes", touch)


def moments_of(touches: Sequence[str]) -> list[Moment]:
    """Each touch as its kind, and how many of that kind there were until then."""
    counts: dict[str, int] = {}
    moments = []
    for kind in map(kind_of, touches):
        counts[kind] = counts.get(kind, 0) + 1
        moments.append((kind, counts[kind]))
    return moments
