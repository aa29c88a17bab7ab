"""Help that teaches by example, and comes at once."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from command_line import invoke, run_command

from empo_bi import worlds
from empo_bi.cli import COMMANDS, cli
from empo_bi.cli.values import parameter_names

HEAVY = ("numba", "zarr", "numpy", "gymnasium", "tqdm")


def all_commands() -> list[tuple[str, ...]]:
    """Paths of all commands, the groups among them included."""
    found: list[tuple[str, ...]] = [()]
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        found.append((name,))
        if isinstance(command, click.Group):
            found += [(name, inner) for inner in command.list_commands(context)]
    return found


def command_at(path: tuple[str, ...]) -> click.Command:
    command: click.Command = cli
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return command


def test_the_commands_are_those_that_are_listed() -> None:
    assert {("worlds",), ("worlds", "describe"), ("worlds", "draw"), ("plan",), ("solve",), ("verify",)} <= set(
        all_commands()
    )
    listed = invoke("--help").stdout
    assert all(re.search(rf"^  {name} +\w", listed, re.MULTILINE) for name in COMMANDS)


@pytest.mark.parametrize("path", all_commands(), ids=" ".join)
def test_every_command_has_help_with_examples(path: tuple[str, ...]) -> None:
    for option in ("--help", "-h"):
        done = invoke(*path, option)
        assert done.exit_code == 0
        assert "Examples:\n" in done.stdout
    for option in command_at(path).params:
        assert not isinstance(option, click.Option) or option.help, option.name


@pytest.mark.parametrize("path", all_commands(), ids=" ".join)
def test_every_example_of_our_own_parses(path: tuple[str, ...]) -> None:
    """Each line of an example that begins with ``empo-bi`` is a command with arguments that exist."""
    lines = [line.strip() for line in invoke(*path, "--help").stdout.split("Examples:")[1].split("\n\n")[0].splitlines()]
    ours = [line for line in lines if line.startswith("empo-bi")]
    assert ours
    for line in ours:
        words = shlex.split(re.split(r" [|&>]| {2,}#", line)[0])[1:]
        command: click.Command = cli
        context = click.Context(cli, resilient_parsing=False)
        while isinstance(command, click.Group) and words and (inner := command.get_command(context, words[0])) is not None:
            command, words = inner, words[1:]
        command.make_context("empo-bi", words)  # raises for what does not exist
        for word in words:
            assert word.endswith(".yaml") or "/" in word or not re.fullmatch(r"[a-z]+_[a-z_]+", word) or worlds.find(word)


def test_the_help_names_the_exit_codes_and_every_parameter() -> None:
    shown = invoke("--help").stdout
    for code in (0, 1, 2, 3, 130):
        assert re.search(rf"^ +{code} +\w", shown, re.MULTILINE)
    for command in ("solve", "plan"):
        assert all(re.search(rf"\b{name}\b", invoke(command, "--help").stdout) for name in parameter_names())


@pytest.mark.parametrize("arguments", [["--help"], ["solve", "--help"], ["--version"], ["worlds"], ["completion", "bash"]])
def test_help_and_lists_load_nothing_heavy(arguments: list[str]) -> None:
    tell = f"import atexit; atexit.register(lambda: print('LOADED', *[m for m in {HEAVY} if m in sys.modules]))"
    done = run_command(*arguments, code=tell)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "LOADED"


def test_python_m_is_the_same_program() -> None:
    done = run_command("--version")
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "empo-bi,", "")


def test_a_command_that_does_not_exist_is_guessed() -> None:
    done = invoke("slove", "asymmetric_freeing")
    assert done.exit_code == 2
    assert "Did you mean 'solve'?" in done.stderr
    assert "Commands: worlds, check, plan" in invoke("xyzzy").stderr


def test_the_page_names_every_command_and_every_option_of_solve() -> None:
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
    assert [path for path in all_commands() if f"empo-bi {' '.join(path).removesuffix(' list')}" not in page] == []
    options = [name for option in command_at(("solve",)).params for name in option.opts if name.startswith("--")]
    assert [name for name in options if name not in page and name != "--param"] == []
    assert all(f"\n| {code} | " in page for code in (0, 1, 2, 3, 130))
