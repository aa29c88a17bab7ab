"""Shell completion, through the protocol by which shells ask."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from command_line import invoke, run_command

from empo_bi import worlds
from empo_bi.cli import COMMANDS, cli
from empo_bi.cli.values import parameter_names


def completed(*words: str) -> list[str]:
    """What is offered for the last word."""
    program = ShellComplete(cli, {}, "empo-bi", "_EMPO_BI_COMPLETE")
    return [item.value for item in program.get_completions(list(words[:-1]), words[-1]) if item.type == "plain"]


def offers_files(*words: str) -> bool:
    program = ShellComplete(cli, {}, "empo-bi", "_EMPO_BI_COMPLETE")
    return any(item.type in ("file", "dir") for item in program.get_completions(list(words[:-1]), words[-1]))


def test_commands_and_options() -> None:
    assert completed("") == list(COMMANDS)
    assert completed("so") == ["solve"]
    assert completed("solve", "asymmetric_freeing", "--memory") == ["--memory-limit", "--memory-snapshot-interval"]
    assert completed("worlds", "d") == ["describe", "draw", *(name for name in worlds.available() if name[0] == "d")]
    assert completed("completion", "") == ["bash", "zsh", "fish"]


@pytest.mark.parametrize("command", [["solve"], ["plan"], ["worlds", "describe"], ["worlds", "draw"]])
def test_worlds_are_names_with_or_without_folder_and_files(command: list[str]) -> None:
    assert completed(*command, "") == worlds.available()
    assert completed(*command, "jobst") == ["jobst_challenges/asymmetric_freeing"]
    assert completed(*command, "asym") == ["asymmetric_freeing"]
    assert offers_files(*command, "my_wor")


def test_parameters_and_their_kin() -> None:
    assert completed("solve", "first_steps", "-p", "") == [f"{name}=" for name in parameter_names()]
    assert completed("solve", "first_steps", "-p", "beta") == ["beta_h=", "beta_r="]
    assert completed("solve", "first_steps", "--set", "max") == ["max_steps="]
    assert completed("solve", "first_steps", "--precision", "") == ["float16", "float64"]
    assert completed("solve", "first_steps", "--compression", "lz") == ["lz4", "lz4hc"]
    assert offers_files("solve", "first_steps", "--out", "")
    assert offers_files("verify", "")


@pytest.mark.parametrize(
    ("shell", "words", "expected"),
    [
        ("bash", {"COMP_WORDS": "empo-bi solve asym", "COMP_CWORD": "2"}, "file,asym\nplain,asymmetric_freeing\n"),
        ("fish", {"COMP_WORDS": "empo-bi solve x -p xi", "COMP_CWORD": "xi"}, "plain\nxi=\n_\n"),
        ("zsh", {"COMP_WORDS": "empo-bi so", "COMP_CWORD": "1"}, "plain\nsolve\nSolve both phases"),
    ],
)
def test_shells_ask_by_the_environment(shell: str, words: dict[str, str], expected: str) -> None:
    done = run_command(_EMPO_BI_COMPLETE=f"{shell}_complete", **words)
    assert done.returncode == 0, done.stderr
    if shell == "fish":  # whose form differs between versions of click
        assert "xi=" in done.stdout
    else:
        assert done.stdout.startswith(expected)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_that_of_click(shell: str) -> None:
    script = invoke("completion", shell).stdout
    asked = run_command(_EMPO_BI_COMPLETE=f"{shell}_source")
    assert script.startswith("# Completion of empo-bi for")
    assert script.split("\n", 1)[1].strip() == asked.stdout.strip()


def test_without_a_shell_it_is_the_one_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert invoke("completion").stdout == invoke("completion", "zsh").stdout
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    done = invoke("completion")
    assert done.exit_code == 2
    assert "cannot complete for tcsh; give one of bash, zsh, fish" in done.stderr


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_itself_completes_a_world(tmp_path: Path) -> None:
    """The script is loaded and its function called as bash calls it."""
    program = tmp_path / "empo-bi"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m empo_bi "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    script = f"""
eval "$({program} completion bash)"
compopt() {{ :; }}
COMP_WORDS=(empo-bi solve mirr) COMP_CWORD=2
_empo_bi_completion {program}
echo "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=60)
    assert done.stdout.strip() == "mirror_freeing", done.stderr
