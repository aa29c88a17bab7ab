"""Exit codes that scripts can rely on, one for each kind of ending, and no tracebacks."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from command_line import invoke, run_command

from empo_bi import errors
from empo_bi.cli.exits import exit_code_of

EXPECTED = {
    errors.WorldFileError: 2,
    errors.WorldNotFoundError: 2,
    errors.InvalidStateError: 2,
    errors.InvalidActionError: 2,
    errors.MissingAgentError: 2,
    errors.WorldTooLargeError: 2,
    errors.InvalidWorldError: 2,
    errors.GoalError: 2,
    errors.TranslationError: 2,
    errors.StoreMismatchError: 2,
    errors.StoreVersionError: 2,
    errors.StoreNotFoundError: 2,
    errors.EmpoOverflowError: 3,
    errors.MemoryPressureError: 3,
    errors.MemoryLimitError: 3,
    errors.TooManyStatesError: 3,
    errors.StoreError: 3,
    errors.StoreLockedError: 3,
    errors.DamagedStoreError: 3,
    errors.BatchFileError: 2,
    errors.MetricError: 2,
    errors.WorkerDiedError: 3,
    errors.ClusterError: 3,
    errors.EmpoError: 2,
    KeyboardInterrupt: 130,
    MemoryError: 3,
    PermissionError: 3,
    RuntimeError: 3,
    ValueError: 3,
}


def test_every_error_of_ours_has_an_exit_code() -> None:
    ours = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.EmpoError)]
    assert set(ours) <= set(EXPECTED)


@pytest.mark.parametrize("kind", EXPECTED, ids=lambda kind: kind.__name__)
def test_an_error_in_a_run_becomes_a_message_and_a_code(kind: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise kind("what went wrong")

    monkeypatch.setattr("empo_bi.cli.solve._solved", fail)
    assert exit_code_of(kind("what went wrong")) == EXPECTED[kind]
    done = invoke("solve", "first_steps", "--out", "runs")
    assert done.exit_code == EXPECTED[kind]
    assert done.stdout == ""
    assert done.stderr.startswith("empo-bi: ")
    assert "Traceback" not in done.stderr
    if kind is KeyboardInterrupt:
        assert "the same command continues" in done.stderr
    else:
        assert "what went wrong" in done.stderr
    assert ("Please report it" in done.stderr) == (kind in (RuntimeError, ValueError))


def test_what_the_api_says_of_its_arguments_is_wrong_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise TypeError("give something else")

    monkeypatch.setattr("empo_bi.solving.solve.solve", refuse)
    done = invoke("solve", "first_steps")
    assert done.exit_code == 2
    assert "Error: give something else" in done.stderr
    monkeypatch.setenv("EMPO_BI_DEBUG", "1")
    done = invoke("solve", "first_steps")
    assert done.exit_code == 2
    assert "\nTypeError: give something else\n" in done.stderr


def test_a_limit_that_does_not_suffice_ends_with_3(tmp_path: Path) -> None:
    done = run_command("solve", "asymmetric_freeing", "--steps", "6", "--memory-limit", "30MB", "--json")
    assert (done.returncode, done.stdout) == (3, "")
    assert "memory_limit=30 MB" in done.stderr
    assert "Traceback" not in done.stderr
    done_early = invoke("solve", "asymmetric_freeing", "--max-states", "10")
    assert done_early.exit_code == 3
    assert "max_states=10" in done_early.stderr


def test_a_traceback_is_there_for_who_asks() -> None:
    done = run_command("solve", "asymetric_freeing", EMPO_BI_DEBUG="1")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "WorldNotFoundError" in done.stderr
    done = run_command("solve", "asymetric_freeing")
    assert done.returncode == 2
    assert done.stderr.startswith("empo-bi: 'asymetric_freeing' is neither a file")
    assert done.stderr.count("\n") == 1
