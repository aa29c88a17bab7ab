"""The `empo-bi` commands that README and docs/ show: all of them parse, those of the README run."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import click
import pytest
from command_line import invoke

from empo_bi import worlds
from empo_bi.cli import cli

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "worlds" / "README.md"]


def shown_commands(page: Path) -> list[str]:
    """Lines of indented blocks that begin with ``empo-bi``, without comments, pipes and what follows ``||``."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(r"^ {4}(?:\$ )?(empo-bi [^\n]+)$", text, flags=re.MULTILINE)
    return [re.split(r" +[|#&>]| +\|\|", line)[0].strip() for line in lines]


def test_commands_are_found_with_their_continuation_lines() -> None:
    shown = shown_commands(ROOT / "docs" / "memory.md")
    assert any("--out runs/freeing_60 --memory-limit 3GB" in " ".join(line.split()) for line in shown)
    assert len(shown_commands(ROOT / "docs" / "command_line.md")) > 20


@pytest.mark.parametrize("page", [page for page in PAGES if shown_commands(page)], ids=lambda page: page.name)
def test_every_command_that_a_page_shows_exists_with_its_options(page: Path) -> None:
    for line in shown_commands(page):
        words = shlex.split(line)[1:]
        command: click.Command = cli
        # Click remembers how help is asked for at first, so commands have to know their group.
        context = cli.make_context("empo-bi", [], resilient_parsing=True)
        while isinstance(command, click.Group) and words and (inner := command.get_command(context, words[0])) is not None:
            command, words = inner, words[1:]
        assert command is not cli, line
        try:
            command.make_context("empo-bi", words, parent=context)  # raises for what does not exist
        except click.UsageError as error:
            pytest.fail(f"{page.name}: {line}: {error.format_message()}")
        for word in words:  # whatever looks like the name of a world is one
            if re.fullmatch(r"[a-z]+(_[a-z]+)+", word):
                assert worlds.find(word), f"{page.name}: {line}: there is no world {word!r}"


def test_the_commands_of_the_readme_run_and_print_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = shown_commands(ROOT / "README.md")
    assert {shlex.split(line)[1] for line in commands} == {"worlds", "check", "plan", "solve", "show", "verify", "batch"}
    for line in commands:
        words = shlex.split(line)[1:]
        done = invoke(
            *words, *(["--dry-run"] if words[0] == "batch" else [])
        )  # the batch itself takes a quarter of a minute
        assert done.exit_code == 0, f"{line}: {done.output}"
        assert done.stdout
        if words[:2] == ["solve", "asymmetric_freeing"]:
            assert all(f"    {printed}\n" in readme for printed in done.stdout.splitlines())
