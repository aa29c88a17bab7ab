"""The memory guard of section 10: what it reads, when it looks, how it waits, and what a stopped run leaves."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from planning_worlds import Ring, plain, step_of

import empo_bi.sweep.phases
from empo_bi import (
    EmpoError,
    MemoryMonitor,
    MemoryPressureError,
    check_memory,
    compute_human_policy_prior,
    compute_robot_policy,
    solve,
)
from empo_bi.memory import monitor as monitor_module
from empo_bi.memory.budget import Budget
from empo_bi.runtime import machine as machine_module

GB = 10**9


class Machine:
    """A machine's memory and clock: ``free`` has what is found free at each look, the last one for ever."""

    def __init__(self, *free: float, tick: float = 0.0) -> None:
        self.free, self.tick = list(free), tick
        self.looks, self.slept, self.now = 0, [], 100.0

    def virtual_memory(self) -> Any:
        return SimpleNamespace(total=16 * GB, available=int(16 * GB * self.free[min(self.looks, len(self.free)) - 1]))

    def monotonic(self) -> float:
        self.now += self.tick
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Machine]:
    """Puts a machine in the place of the real one, without a container."""

    def install(*free: float, tick: float = 0.0) -> Machine:
        made = Machine(*free, tick=tick)
        original = MemoryMonitor.get_free_memory_fraction

        def look(self: MemoryMonitor) -> float:
            made.looks += 1
            return original(self)

        monkeypatch.setattr(machine_module, "control_groups", list)
        monkeypatch.setattr(machine_module.psutil, "virtual_memory", made.virtual_memory)
        monkeypatch.setattr(monitor_module, "time", SimpleNamespace(monotonic=made.monotonic, sleep=made.sleep))
        monkeypatch.setattr(MemoryMonitor, "get_free_memory_fraction", look)
        return made

    return install


@contextmanager
def undisturbed() -> Iterator[None]:
    """Makes a stop a failure of the test: as a KeyboardInterrupt, it would end the whole run of tests."""
    try:
        yield
    except MemoryPressureError as error:
        pytest.fail(f"stopped: {error}")


# --- signatures -------------------------------------------------------------------------------------------------------


def test_the_monitor_has_the_documented_parameters() -> None:
    found = {name: p.default for name, p in inspect.signature(MemoryMonitor).parameters.items()}
    assert list(found.items()) == [
        ("min_free_fraction", 0.1),
        ("check_interval", 100),
        ("pause_duration", 60.0),
        ("verbose", True),
        ("enabled", True),
        ("ceiling", None),  # ours, like give_back
    ]
    check = inspect.signature(MemoryMonitor.check).parameters
    assert list(check) == ["self", "step", "force", "give_back", "between"]
    assert check["force"].default is False
    assert next(iter(inspect.signature(check_memory).parameters)) == "step"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_free_fraction": -0.1}, "min_free_fraction=-0.1"),
        ({"min_free_fraction": 1.0}, "min_free_fraction=1.0"),
        ({"min_free_fraction": float("nan")}, "min_free_fraction=nan"),
        ({"check_interval": 0}, "check_interval=0"),
        ({"pause_duration": -1.0}, "pause_duration=-1.0"),
    ],
    ids=str,
)
def test_numbers_out_of_range_are_named(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MemoryMonitor(**options)


# --- readings ---------------------------------------------------------------------------------------------------------


def use_group(patch: pytest.MonkeyPatch, folder: Path, limit: str, usage: str, *, version: int = 2, path: str = "/") -> Path:
    """Let this process be in a control group; ``usage`` includes files in the page cache. Returns the group's folder."""
    group = folder / ("memory" if version == 1 else "") / path.strip("/")
    group.mkdir(parents=True, exist_ok=True)
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    for name, text in zip(names, (limit, usage), strict=True):
        (group / name).write_text(f"{text}\n")
    (folder / "own").write_text(f"0::{path}\n" if version == 2 else f"5:cpu:/\n4:hugetlb,memory:{path}\n0::/\n")
    patch.setattr(machine_module, "CGROUPS", folder)
    patch.setattr(machine_module, "OWN_CGROUPS", folder / "own")
    return group


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("limit", "usage", "expected"),
    [
        ("2000000000", "1500000000", 0.25),  # the container is tighter than the machine
        ("2000000000", "2500000000", 0.0),  # and overfull
        ("max", "3000000000", 0.5),  # it has no limit: those of the machine count
        ("9223372036854771712", "3000000000", 0.5),  # what version 1 says for no limit
    ],
)
def test_the_tighter_of_machine_and_container_counts(
    limit: str, usage: str, expected: float, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_machine(monkeypatch, available=8 * GB)
    use_group(monkeypatch, tmp_path, limit, usage, version=version)
    monitor = MemoryMonitor()
    assert monitor.get_free_memory_fraction() == pytest.approx(expected)
    assert monitor.get_memory_usage_fraction() == pytest.approx(1 - expected)
    assert MemoryMonitor(expected + 0.01).is_memory_low()
    assert not MemoryMonitor(max(0.0, expected - 0.01)).is_memory_low()


def test_a_full_machine_counts_also_inside_a_roomy_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_machine(monkeypatch, available=GB // 10)
    use_group(monkeypatch, tmp_path, str(8 * GB), str(GB))
    assert MemoryMonitor(0.1).is_memory_low()


@pytest.mark.parametrize("version", [1, 2])
def test_groups_within_groups_count_each(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch job is in a group of its own, inside that of its user: either may be the tighter one."""
    use_machine(monkeypatch, available=8 * GB)
    use_group(monkeypatch, tmp_path, str(2 * GB), str(GB), version=version, path="/user")
    use_group(monkeypatch, tmp_path, str(4 * GB), str(GB), version=version, path="/user/job")
    assert machine_module.available_and_total() == (GB, 2 * GB)
    use_group(monkeypatch, tmp_path, str(GB), str(GB // 2), version=version, path="/user/job")
    assert machine_module.available_and_total() == (GB // 2, GB)


@pytest.mark.parametrize(("version", "name"), [(1, "total_inactive_file"), (2, "inactive_file")])
def test_files_in_the_page_cache_do_not_count(
    version: int, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_machine(monkeypatch, available=8 * GB)
    group = use_group(monkeypatch, tmp_path, str(2 * GB), str(2 * GB), version=version)
    assert machine_module.available_bytes() == 0
    (group / "memory.stat").write_text(f"anon {GB}\n{name} {GB}\nactive_file 7\n")
    assert machine_module.available_bytes() == GB


def test_a_ceiling_makes_the_machine_smaller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_machine(monkeypatch, available=13 * GB)  # so 3 GB are used
    monkeypatch.setattr(machine_module, "control_groups", list)
    assert MemoryMonitor(ceiling="4GB").get_free_memory_fraction() == pytest.approx(0.25)
    assert MemoryMonitor(ceiling="2GB").get_free_memory_fraction() == 0
    assert MemoryMonitor(ceiling="99GB").get_free_memory_fraction() == pytest.approx(13 / 16)
    with pytest.raises(ValueError, match="ceiling='a lot'"):
        MemoryMonitor(ceiling="a lot")


def use_machine(patch: pytest.MonkeyPatch, *, available: int) -> None:
    patch.setattr(machine_module.psutil, "virtual_memory", lambda: SimpleNamespace(total=16 * GB, available=available))


def test_this_machine_has_some_memory_free() -> None:
    assert 0 < MemoryMonitor().get_free_memory_fraction() <= 1


# --- looking ----------------------------------------------------------------------------------------------------------


def test_it_looks_every_so_many_steps(machine: Callable[..., Machine]) -> None:
    watched = machine(0.5, tick=1.0)
    monitor = MemoryMonitor(0.1, check_interval=100)
    looked = []
    for step in range(0, 1000, 10):
        before = watched.looks
        monitor.check(step)
        looked += [step] if watched.looks > before else []
    assert looked == list(range(0, 1000, 100))
    assert watched.slept == []


def test_force_looks_at_once(machine: Callable[..., Machine]) -> None:
    watched = machine(0.5, tick=1.0)
    monitor = MemoryMonitor(0.1, check_interval=100)
    for step in range(1, 6):
        monitor.check(step, force=True)
    assert watched.looks == 5


@pytest.mark.parametrize("options", [{"min_free_fraction": 0.0}, {"min_free_fraction": 0.9, "enabled": False}], ids=str)
def test_switched_off_it_never_looks(machine: Callable[..., Machine], options: dict[str, Any]) -> None:
    watched = machine(0.0, tick=1.0)
    monitor = MemoryMonitor(**options)
    with undisturbed():
        for step in range(0, 500, 100):
            monitor.check(step)
            monitor.check(step, force=True)
    assert not monitor.is_memory_low()
    assert watched.looks == 0
    assert watched.slept == []


def test_it_is_a_context_manager(machine: Callable[..., Machine]) -> None:
    machine(0.5)
    with MemoryMonitor(0.1) as monitor:
        assert isinstance(monitor, MemoryMonitor)
        monitor.check(0)
    with pytest.raises(ZeroDivisionError), MemoryMonitor(0.1):
        raise ZeroDivisionError


# --- waiting ----------------------------------------------------------------------------------------------------------


def test_it_waits_and_goes_on_when_there_is_room_again(
    machine: Callable[..., Machine], caplog: pytest.LogCaptureFixture
) -> None:
    watched = machine(0.05, 0.05, 0.05, 0.05, 0.3)
    with caplog.at_level(logging.WARNING), undisturbed():
        MemoryMonitor(0.1, pause_duration=60.0).check(0)
    assert 0 < sum(watched.slept) < 60
    assert "10% free memory required, 5.0% available" in caplog.text
    assert "60 s" in caplog.text


def test_if_there_is_still_no_room_it_stops_with_an_error_of_its_own(machine: Callable[..., Machine]) -> None:
    watched = machine(0.05)
    with pytest.raises(MemoryPressureError, match=r"10% free memory required, 5.0% available, even after a pause of 60 s"):
        MemoryMonitor(0.1, pause_duration=60.0).check(0)
    assert sum(watched.slept) == pytest.approx(60, abs=0.5)


def test_scripts_that_expect_a_keyboard_interrupt_get_one(machine: Callable[..., Machine]) -> None:
    machine(0.05)
    assert issubclass(MemoryPressureError, KeyboardInterrupt)
    assert issubclass(MemoryPressureError, EmpoError)
    with pytest.raises(KeyboardInterrupt):
        MemoryMonitor(0.1, pause_duration=1.0).check(0)


def test_without_a_pause_it_stops_at_once(machine: Callable[..., Machine]) -> None:
    watched = machine(0.05)
    with pytest.raises(MemoryPressureError):
        MemoryMonitor(0.1, pause_duration=0.0).check(0)
    assert watched.slept == []


def test_a_quiet_monitor_says_nothing(machine: Callable[..., Machine], caplog: pytest.LogCaptureFixture) -> None:
    machine(0.05)
    with caplog.at_level(logging.DEBUG), pytest.raises(MemoryPressureError):
        MemoryMonitor(0.1, pause_duration=1.0, verbose=False).check(0)
    assert caplog.text == ""


def test_enough_memory_is_no_reason_to_wait(machine: Callable[..., Machine]) -> None:
    watched = machine(0.1)
    with undisturbed():
        MemoryMonitor(0.1).check(0, force=True)  # not below the threshold
    assert watched.looks == 1
    assert watched.slept == []


def test_the_one_off_form_looks_every_so_many_steps_too(machine: Callable[..., Machine]) -> None:
    watched = machine(0.5)
    for step in range(0, 301, 50):
        check_memory(step, 0.1, 100, 60.0)
    assert watched.looks == 4
    check_memory(100, min_free_fraction=0.0)
    assert watched.looks == 4
    with pytest.raises(MemoryPressureError):
        check_memory(200, min_free_fraction=0.6, check_interval=100, pause_duration=1.0)
    check_memory(201, min_free_fraction=0.6, check_interval=100, pause_duration=1.0)


# --- in the planners --------------------------------------------------------------------------------------------------


def phase_1(**options: Any) -> Any:
    return compute_human_policy_prior(Ring(), [0, 2], level_fct=step_of, **{"quiet": True} | options)


def phase_2(**options: Any) -> Any:
    return compute_robot_policy(Ring(), [0, 2], [1], level_fct=step_of, **{"quiet": True} | options)


PHASES = {"phase 1": (phase_1, "human_block"), "phase 2": (phase_2, "robot_block")}


@pytest.fixture(params=PHASES)
def phase(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return PHASES[request.param][0]


@pytest.mark.parametrize("on_disk", [False, True])
def test_planning_pauses_and_stops_where_memory_is_short(
    phase: Callable[..., Any], on_disk: bool, machine: Callable[..., Machine]
) -> None:
    watched = machine(0.9)
    with pytest.raises(MemoryPressureError, match="min_free_memory_fraction"):
        phase(min_free_memory_fraction=0.99, memory_pause_duration=0.01, use_disk_slicing=on_disk)
    assert watched.slept
    assert max(watched.slept) <= 0.01


def test_planning_goes_on_after_a_pause(phase: Callable[..., Any], machine: Callable[..., Machine]) -> None:
    expected = plain(phase(min_free_memory_fraction=0.0).values)
    watched = machine(0.05, 0.05, 0.05, 0.9)
    with undisturbed():
        assert plain(phase(memory_pause_duration=30.0).values) == expected
    assert 0 < sum(watched.slept) < 30


def test_a_guard_that_is_switched_off_never_looks(phase: Callable[..., Any], machine: Callable[..., Machine]) -> None:
    watched = machine(0.0, tick=1.0)
    with undisturbed():
        phase(min_free_memory_fraction=0.0)
    assert watched.looks == 0


def test_the_interval_is_counted_in_states(phase: Callable[..., Any], machine: Callable[..., Machine]) -> None:
    looks = []
    for interval in (1, 10_000):
        watched = machine(0.9, tick=1.0)
        phase(memory_check_interval=interval)
        looks.append(watched.looks)
    assert looks[0] > looks[1]


def test_quiet_planning_does_not_speak_of_pauses(
    phase: Callable[..., Any], machine: Callable[..., Machine], caplog: pytest.LogCaptureFixture
) -> None:
    for quiet in (True, False):
        machine(0.05, 0.05, 0.9)
        caplog.clear()
        with undisturbed():
            phase(memory_pause_duration=30.0, quiet=quiet)
        assert ("memory is low" in caplog.text) is not quiet


@pytest.mark.parametrize("name", PHASES)
def test_what_was_committed_before_memory_ran_short_is_used_when_the_run_is_repeated(
    name: str, machine: Callable[..., Machine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, kernel = PHASES[name]
    expected = plain(plan().values)
    computed = []
    original = getattr(empo_bi.sweep.phases, kernel)

    def counted(*args: Any) -> Any:
        computed.append(len(args[0]))
        return original(*args)

    monkeypatch.setattr(empo_bi.sweep.phases, kernel, counted)
    options = {"use_disk_slicing": True, "disk_cache_dir": tmp_path, "memory_check_interval": 1}
    looks = []  # when a level is computed; there is one after each level that is not all terminal
    watched = machine(0.9, tick=1.0)
    monkeypatch.setattr(empo_bi.sweep.phases, kernel, lambda *args: looks.append(watched.looks) or original(*args))
    plan(**{**options, "disk_cache_dir": tmp_path / "rehearsal"})
    monkeypatch.setattr(empo_bi.sweep.phases, kernel, counted)
    machine(*[0.9] * looks[2], 0.05, tick=1.0)  # short at the third
    with pytest.raises(MemoryPressureError):
        plan(memory_pause_duration=1.0, **options)
    assert computed == [3, 3, 3]
    assert list(tmp_path.rglob("*.lock")) == []
    computed.clear()
    machine(0.9)
    found = plan(**options)
    assert computed == [3, 1], "levels 3 and 2 were there; level 1 was not finished"
    assert plain(found.values) == expected


def test_a_run_that_was_stopped_can_be_continued_by_solve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = plain(solve(Ring(), progress=False).Vr)
    blocks = []

    def stop(self: Any, doing: str, *_: Any, **__: Any) -> None:
        blocks.extend([doing] if doing == "solving" else [])
        if len(blocks) == 2:
            raise MemoryPressureError("short")

    with monkeypatch.context() as patch:
        patch.setattr(Budget, "check", stop)
        with pytest.raises(MemoryPressureError):
            solve(Ring(), out=tmp_path, progress=False)
    assert blocks == ["solving"] * 2
    assert plain(solve(Ring(), out=tmp_path, progress=False).Vr) == expected
