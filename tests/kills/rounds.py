"""Kill a command, look at what it left, give the same command once more, and compare with a run in peace.

``python -m kills.rounds --rounds 500`` (with ``tests`` on the path) kills all commands, at moments that a seed chooses, and
prints a table; ``--every`` kills at every single touch of the disk. Ends with 1 if anything was not mended.

Commands run in forks of this process, which has imported and compiled everything and has one thread only: a round takes half
a second. Commands that start processes of their own are killed at touches of these, too, and at random moments, which also
hit what happens between touches, such as importing.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import psutil
import tqdm
from kills.commands import COMMANDS, complaints, differences, lasting_tree
from kills.dying import Plan, announce, obey

HANGS_AFTER = 180  # seconds
VICTIMS = ("worker", "caller", "group")


@dataclass(frozen=True)
class Moment:
    """When a command dies: at a touch of the disk, or after some seconds; and who does."""

    touch: int = 0
    is_torn: bool = False
    seconds: float | None = None
    victim: str = "caller"
    signal: int = signal.SIGKILL

    def __str__(self) -> str:
        when = f"touch {self.touch}" if self.seconds is None else f"{self.seconds:.2f} s"
        return f"{signal.Signals(self.signal).name} of {self.victim} at {when}{', file torn' if self.is_torn else ''}"


@dataclass
class Tally:
    """What came of killing one command again and again."""

    rounds: int = 0
    kills: int = 0
    faults: list[str] = field(default_factory=list)


# --- one process --------------------------------------------------------------------------------------------------------


def in_child(act: Callable[[], Any], folder: Path, moment: Moment | None = None, *, starts: bool = False) -> tuple[int, str]:
    """Run something in a fork; returns its exit code, minus the signal if it was killed, and what it printed."""
    printed, log, token = (folder / name for name in ("printed.txt", "touches.txt", "token"))
    for file in (printed, log):
        file.unlink(missing_ok=True)
    token.touch()
    assert threading.active_count() == 1
    pid = os.fork()
    if pid == 0:
        _work(act, printed, _plan_of(moment, folder) if moment else None, starts)
    if moment is not None and moment.seconds is not None:
        _kill_later(pid, moment, token)
    code = _wait(pid)
    return code, printed.read_text(errors="replace") if printed.exists() else ""


def _plan_of(moment: Moment, folder: Path) -> Plan:
    return Plan(
        str(folder / "here"), str(folder / "touches.txt"), str(folder / "token"), moment.touch, moment.is_torn,
        "worker" if moment.victim == "worker" else "caller", 0, moment.signal, moment.victim == "group",
    )  # fmt: skip


def _work(act: Callable[[], Any], printed: Path, plan: Plan | None, starts: bool) -> NoReturn:
    code = 1
    try:
        os.setsid()
        output = os.open(printed, os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if plan is not None:
            plan = replace(plan, caller=os.getpid())
            if starts:
                announce(plan)
            obey(plan)
        act()
        code = 0
    except BaseException as error:
        traceback.print_exc()
        code = 130 if isinstance(error, KeyboardInterrupt) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _kill_later(pid: int, moment: Moment, token: Path) -> None:
    """After some time, kill a process, one of those that it started, or all of them."""
    assert moment.seconds is not None
    end = time.monotonic() + moment.seconds
    while time.monotonic() < end:
        time.sleep(0.01)
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return
    try:
        if moment.victim == "caller":
            os.kill(pid, moment.signal)
        elif moment.victim == "group":
            os.killpg(pid, moment.signal)
        else:
            workers = _workers_of(pid)
            if not workers:
                return
            os.kill(random.Random(moment.seconds).choice(workers), moment.signal)
        token.unlink()
    except ProcessLookupError:
        pass


def _workers_of(pid: int) -> list[int]:
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        try:
            words = " ".join(child.cmdline())
        except psutil.Error:
            continue
        if "popen_loky" in words or "spawn_main" in words:
            found.append(child.pid)
    return sorted(found)


def _wait(pid: int) -> int:
    end = time.monotonic() + HANGS_AFTER
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return -1000
        time.sleep(0.002)


# --- one command --------------------------------------------------------------------------------------------------------


class Killing:
    """One command, killed again and again."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.command, self._folder = name, COMMANDS[name], folder
        self.tally = Tally()
        (folder / "here").mkdir(parents=True)
        self._begin()
        begun = time.monotonic()
        code, printed = self._run(Moment())
        assert code == 0, f"{name}: {printed}"
        self.seconds = time.monotonic() - begun
        self.touches = self._touches()
        self._whole = lasting_tree(folder / "here")
        self._of_workers: list[str] = []
        if self.command.workers:
            self._begin()
            assert self._run(Moment(victim="worker"))[0] == 0
            self._of_workers = self._touches()
        wrong = self._complaints(is_finished=True)
        assert not wrong, f"{name}: {wrong}"

    @property
    def moments(self) -> list[Moment]:
        """All touches of the process that gives the command, whole and torn."""
        found = [Moment(n) for n in range(1, len(self.touches) + 1)]
        found += [Moment(n + 1, True) for n, touch in enumerate(self.touches[:-1], 1) if touch.startswith("open")]
        return found

    def some_moments(self, n: int, rng: random.Random) -> list[Moment]:
        """``n`` of them, spread over the life of the command; where it starts processes, of these as well."""
        if not self.command.workers:
            found = [rng.choice(part) for part in _parts(self.moments, n)]
            return [Moment(moment.touch, signal=signal.SIGINT) if rng.random() < 0.1 else moment for moment in found]
        found, per_worker = [], max(1, len(self._of_workers) // self.command.workers)
        for i in range(n):
            victim = VICTIMS[i % 3]
            if i % 2:
                found.append(Moment(seconds=rng.uniform(0, 1.05 * self.seconds), victim=victim))
            else:
                last = per_worker if victim == "worker" else len(self.touches)
                found.append(Moment(rng.randint(1, last), rng.random() < 0.3, victim=victim))
        return found

    def round(self, moment: Moment, then: Moment | None = None) -> None:
        """Kill, look, perhaps kill once more, give the same command, look and compare."""
        self._begin()
        self.tally.rounds += 1
        told = []
        for one in [moment] if then is None else [moment, then]:
            code, printed = self._run(one)
            if (self._folder / "token").exists():
                continue
            self.tally.kills += 1
            told.append(f"{one} ({(self._touches() or ['?'])[-1]})")
            # A command outlives its workers, and nothing but the signal ends it otherwise.
            expected = (0,) if one.victim == "worker" else (0, 1, 130, -one.signal)
            if code not in expected:
                self._fault(told, f"ended with {code}: {printed[-2000:]}")
            self._note(told, self._complaints(is_finished=False))
        code, printed = self._run(Moment())
        if code != 0:
            self._fault(told, f"the same command ends with {code}: {printed[-2500:]}")
            return
        self._note(told, differences(self._folder / "here", self._whole))
        self._note(told, self._complaints(is_finished=True))

    def _begin(self) -> None:
        shutil.rmtree(self._folder / "here")
        (self._folder / "here").mkdir()
        if self.command.prepare is None:
            return
        prepared = self._folder / "prepared"
        if not prepared.exists():
            code, printed = in_child(lambda: self.command.prepare(self._folder / "here"), self._folder)  # type: ignore[misc]
            assert code == 0, printed
            shutil.copytree(self._folder / "here", prepared)
        else:
            shutil.copytree(prepared, self._folder / "here", dirs_exist_ok=True)

    def _run(self, moment: Moment) -> tuple[int, str]:
        starts = bool(self.command.workers)
        return in_child(lambda: self.command.act(self._folder / "here"), self._folder, moment, starts=starts)

    def _touches(self) -> list[str]:
        log = self._folder / "touches.txt"
        return log.read_text().splitlines() if log.exists() else []

    def _complaints(self, *, is_finished: bool) -> list[str]:
        here, answer = self._folder / "here", self._folder / "answer.txt"
        answer.unlink(missing_ok=True)

        def look() -> None:
            answer.write_text("\n".join(complaints(self.command, here, is_finished=is_finished)))

        code, printed = in_child(look, self._folder)
        if code != 0 or not answer.exists():
            return [f"looking ended with {code}: {printed[-2000:]}"]
        return [line for line in [answer.read_text()] if line]

    def _note(self, told: Sequence[str], wrong: Sequence[str]) -> None:
        for what in wrong:
            self._fault(told, what)

    def _fault(self, told: Sequence[str], what: str) -> None:
        fault = f"{self.name}: {'; then '.join(told) or 'no kill'}: {what}"
        self.tally.faults.append(fault)
        print("FAULT", fault, flush=True)


def _parts(moments: Sequence[Moment], n: int) -> list[Sequence[Moment]]:
    """``n`` parts, of which some may be the same where there are fewer moments."""
    n_all = len(moments)
    return [moments[i * n_all // n : max(i * n_all // n + 1, (i + 1) * n_all // n)] for i in range(n)]


# --- all commands -------------------------------------------------------------------------------------------------------


def prepare_this_process() -> None:
    """Everything is imported and compiled here, so that forks begin with work."""
    tqdm.tqdm.set_lock(threading.RLock())  # its own is shared with forks, and stays locked if one is killed
    import fsspec.implementations.local  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    from store_tools import world_of

    import empo_bi
    import empo_bi.batch.run_pass
    import empo_bi.store.verify

    empo_bi.solve(world_of("ice_rink", 2)[0], empo_bi.Params(), progress=False).close()
    assert threading.active_count() == 1, threading.enumerate()


def kill_all(names: Sequence[str], rounds: int, seed: int, folder: Path, *, every: bool = False) -> dict[str, Tally]:
    """Kill some commands so many times together, every fifth time twice in a row; with ``every``, at every touch."""
    prepare_this_process()
    tallies = {}
    share = -(-rounds // len(names))
    for name in names:
        rng, begun = random.Random(f"{seed} {name}"), time.monotonic()
        killing = Killing(name, folder / name.replace(" ", "_").replace(",", ""))
        if every and not killing.command.workers:
            chosen = killing.moments
        else:
            chosen = killing.some_moments(share, rng)
        for moment in chosen:
            is_double = not every and rng.random() < 0.2
            killing.round(moment, rng.choice(killing.some_moments(10, rng)) if is_double else None)
        tallies[name] = killing.tally
        seconds = time.monotonic() - begun
        print(f"{name}: {len(killing.touches)} touches; {killing.tally.rounds} rounds, {killing.tally.kills} kills, "
              f"{len(killing.tally.faults)} faults, {seconds:.0f} s", flush=True)  # fmt: skip
        shutil.rmtree(folder / name.replace(" ", "_").replace(",", ""))
    return tallies


def table_of(tallies: dict[str, Tally]) -> str:
    lines = ["| command | rounds | kills | faults |", "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {t.rounds} | {t.kills} | {len(t.faults)} |" for name, t in tallies.items()]
    total = [sum(getattr(t, part) for t in tallies.values()) for part in ("rounds", "kills")]
    n_faults = sum(len(t.faults) for t in tallies.values())
    return "\n".join([*lines, f"| all | {total[0]} | {total[1]} | {n_faults} |"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", action="store_true", help="kill at every touch of the disk")
    parser.add_argument("commands", nargs="*", help=f"of {', '.join(COMMANDS)}; all by default, those that begin so")
    parser.add_argument("--only", action="store_true", help="commands are given by their whole names")
    asked = parser.parse_args()
    starts = tuple(asked.commands) if asked.commands else ("",)
    names = [name for name in COMMANDS if (name in starts if asked.only else name.startswith(starts))]
    with tempfile.TemporaryDirectory(prefix="empo_bi-kills-") as folder:
        tallies = kill_all(names, asked.rounds, asked.seed, Path(folder).resolve(), every=asked.every)
    print(table_of(tallies))
    sys.exit(any(tally.faults for tally in tallies.values()))


if __name__ == "__main__":
    main()
