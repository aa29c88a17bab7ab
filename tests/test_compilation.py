"""Compiling is shown while it takes long: a bar on a terminal, lines elsewhere, nothing where quiet was asked for."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

from empo_bi import compute_human_policy_prior, compute_robot_policy, enumerate_dag, load_world
from empo_bi.cli.common import quiet_option
from empo_bi.results import rollouts
from empo_bi.results.joint_policy import JointPolicy
from empo_bi.runtime import compilation, progress
from empo_bi.runtime.compilation import Compilations, compilations, functions_to_compile, quiet_unless_shown, words_for
from empo_bi.sweep.phases import HumanPhase
from empo_bi.world import expand

ROOT = Path(__file__).parents[1]


class Clock:
    """Time that passes when somebody says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def fake(name: str, module: str = "empo_bi.world.fake", calls: tuple[Any, ...] = ()) -> Any:
    """What numba tells of: a dispatcher with its Python function, which calls others by their names."""
    namespace: dict[str, Any] = {"__name__": module, **{one.py_func.__name__: one for one in calls}}
    body = "; ".join(f"{one.py_func.__name__}()" for one in calls) or "pass"
    exec(f"def {name}(): {body}", namespace)
    return FakeDispatcher(namespace[name])


class FakeDispatcher(SimpleNamespace):
    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func=py_func, overloads={})

    __hash__ = object.__hash__
    __eq__ = object.__eq__


PARTS = [fake(f"part_{i}") for i in range(9)]
KERNEL = fake("kernel", calls=tuple(PARTS))


def compile_all(told: Compilations, clock: Clock, seconds: float = 1.0) -> None:
    told.begin(KERNEL)
    for part in PARTS:
        told.begin(part)
        clock.now += seconds
        told.end(part)
    told.end(KERNEL)


def test_lines_tell_what_how_many_of_how_many_and_how_long(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    compile_all(Compilations(), clock)
    what = "empo_bi: compiling the rules of gridworlds, once per installation"
    assert capsys.readouterr().err.splitlines() == [
        f"{what}: 2 of 10 functions done, 2 s", f"{what}: 5 of 10 functions done, 5 s",
        f"{what}: 8 of 10 functions done, 8 s", f"{what}: done in 9 s",
    ]  # fmt: skip


def test_what_is_soon_done_says_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    compile_all(Compilations(), clock, seconds=0.1)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar_that_goes_away(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    compile_all(Compilations(), clock)
    shown = screen.getvalue()
    assert "compiling the rules of gridworlds, once per installation:  90%" in shown
    assert "9/10 functions, 9 s" in shown
    assert shown.endswith("\r")


def test_nothing_is_said_while_somebody_asks_for_quiet(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    told = Compilations()
    with told.quiet(), told.quiet(False):
        compile_all(told, clock)
    assert capsys.readouterr() == ("", "")
    compile_all(told, clock)
    assert "done in 9 s" in capsys.readouterr().err


def test_quiet_holds_for_all_threads_until_the_last_who_asked_is_done(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    told, leave, is_quiet = Compilations(), threading.Event(), threading.Event()

    def ask() -> None:
        with told.quiet():
            is_quiet.set()
            leave.wait(10)

    thread = threading.Thread(target=ask)
    thread.start()
    is_quiet.wait(10)
    with told.quiet():
        pass
    compile_all(told, clock)
    assert capsys.readouterr().err == ""
    leave.set()
    thread.join()
    compile_all(told, clock)
    assert capsys.readouterr().err != ""


def test_other_peoples_functions_and_odd_events_are_left_alone(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    told = Compilations()
    for stranger in (None, object(), fake("theirs", "scipy.stats"), SimpleNamespace(py_func=print), FakeDispatcher(None)):
        told.begin(stranger)
        clock.now += 10
        told.end(stranger)
    told.begin(fake("theirs", "scipy.stats"))  # whose function calls one of ours
    compile_all(told, clock)
    assert capsys.readouterr().err.count("\n") == 4


def test_a_kernel_that_fails_ends_its_bar_and_the_next_one_begins_its_own(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Compilations()
    told.begin(KERNEL)
    told.begin(PARTS[0])
    clock.now += 5
    told.end(PARTS[0])
    told.end(KERNEL)
    assert "1 of 10 functions done, 5 s" in capsys.readouterr().err
    compile_all(told, clock)
    assert "2 of 10 functions done, 2 s" in capsys.readouterr().err


class Gone(io.StringIO):
    def write(self, _: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("stream", ["none", "closed", "gone"])
def test_a_stderr_that_nobody_reads_does_not_stop_the_compiler(
    stream: str, clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", {"none": None, "closed": closed, "gone": Gone()}[stream])
    told = Compilations()
    compile_all(told, clock)
    assert (told._depth, told._bar) == (0, None)
    assert capsys.readouterr().out == ""


def test_what_a_kernel_calls_is_known_before_it_is_compiled_less_what_is_compiled_already() -> None:
    inner = fake("inner")
    ready, outer = fake("ready", calls=(inner,)), fake("outer", calls=(inner, fake("theirs", "scipy.stats")))
    ready.overloads[()] = None
    kernel = fake("kernel", calls=(ready, outer))
    assert functions_to_compile(kernel) == {kernel, outer, inner}
    names = {one.py_func.__name__ for one in functions_to_compile(expand.expand_block)}
    assert {"expand_block"} <= names


@pytest.mark.parametrize("part", ["world", "dag", "sweep", "results", "export"])
def test_every_part_with_kernels_has_words_that_people_understand(part: str) -> None:
    assert words_for(fake("x", f"empo_bi.{part}.y")) != "x"
    assert words_for(fake("x", "empo_bi.elsewhere")) == "x"


def test_parts_without_words_have_no_kernels() -> None:
    found = {
        path.relative_to(ROOT / "empo_bi").parts[0]
        for path in (ROOT / "empo_bi").rglob("*.py")
        if "\n@kernel" in path.read_text()
    }
    assert found <= compilation._WORDS.keys()


@pytest.mark.parametrize(
    ("options", "asked"), [({}, False), ({"progress": False}, True), ({"progress": True}, False), ({"quiet": True}, True)]
)
def test_functions_hand_on_whether_quiet_is_asked_for(options: dict[str, bool], asked: bool) -> None:
    @quiet_unless_shown
    def ask(**options: bool) -> bool:
        return compilations._quiet > before

    before = compilations._quiet
    assert ask(**options) == asked
    assert compilations._quiet == before


def test_progress_reaches_compilations(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    world = load_world("first_steps", max_steps=2)
    ordinary = type(world).expand
    monkeypatch.setattr(type(world), "expand", lambda *args: seen.append(compilations._quiet) or ordinary(*args))
    enumerate_dag(world, progress=False)
    enumerate_dag(world, progress=True)
    assert seen == [1, 1, 0, 0]
    assert compilations._quiet == 0


def test_the_quiet_option_reaches_compilations() -> None:
    seen: list[int] = []

    @click.command()
    @quiet_option("No progress.")
    def command(quiet: bool) -> None:
        seen.append(compilations._quiet)

    for arguments in ([], ["--quiet"], ["-q"]):
        assert CliRunner().invoke(command, arguments).exit_code == 0
    assert seen == [0, 1, 1]
    assert compilations._quiet == 0


TINY = """
from empo_bi.results import rollouts
from empo_bi.results.joint_policy import JointPolicy
from empo_bi.runtime import compilation, progress
progress.LINE_AFTER = progress.COMPILATION_LINE_EVERY = 0.0
from empo_bi.world.expand import pack_rows
import numpy as np
pack_rows(np.zeros(200, np.int64), np.zeros((0, 1), np.int64), np.zeros((0, 1), np.uint64))
"""


def test_a_real_kernel_is_told_of_when_it_compiles_and_not_when_it_is_loaded(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    cold, warm = (
        subprocess.run([sys.executable, "-c", TINY], env=environment, capture_output=True, text=True, check=True).stderr
        for _ in range(2)
    )
    what = "empo_bi: compiling the rules of gridworlds, once per installation"
    assert cold.splitlines()[-1].startswith(f"{what}: done in ")
    assert f"{what}: 1 of 5 functions done, 0 s" in cold
    assert warm == ""


@pytest.mark.parametrize("is_quiet", [True, False])
def test_results_of_a_quiet_call_are_read_quietly(*, is_quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = load_world("basics/first_steps", max_steps=2)
    humans, robots = world.human_agent_indices, world.robot_agent_indices
    prior = compute_human_policy_prior(world, humans, quiet=True)
    policy, chain = compute_robot_policy(
        world, humans, robots, human_policy_prior=prior, return_markov_chain=True, quiet=is_quiet
    )
    seen: dict[str, list[bool]] = {}

    def watch(owner: Any, name: str) -> None:
        ordinary = getattr(owner, name)
        seen[name] = []

        def watched(*args: Any, **options: Any) -> Any:
            seen[name].append(compilations.are_quiet)
            return ordinary(*args, **options)

        monkeypatch.setattr(owner, name, watched)

    watch(JointPolicy, "profile_weights")
    watch(JointPolicy, "push")
    watch(HumanPhase, "run")
    watch(rollouts, "draw_episodes")
    assert chain[0]
    assert policy.solution.reached[0][0] == 1
    assert len(policy.solution.rollouts(2)) == 2
    assert policy.solution.human_policies.of_level(0).any()
    assert all(seen.values())
    assert {quiet for found in seen.values() for quiet in found} == {is_quiet}
    assert not compilations.are_quiet
