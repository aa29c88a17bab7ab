"""``empo-bi export``: the file of the API, and its numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import invoke, json_of

from empo_bi import enumerate_dag, load_world


@pytest.mark.parametrize("kind", ["drn", "umb"])
def test_the_file_is_that_of_the_api(kind: str, tmp_path: Path) -> None:
    dag = enumerate_dag(load_world("thicket", max_steps=3, enter_bush_success_prob=0.4), precision="exact", progress=False)
    expected = getattr(dag, f"to_{kind}")(tmp_path / f"expected.{kind}", deciding=0, unrolled=True, progress=False)
    out = tmp_path / f"model.{kind}"
    given = ("--steps", 3, "--set", "enter_bush_success_prob=0.4", "--deciding", 0, "--unrolled")
    content = json_of("export", "thicket", "--out", out, *given)
    assert out.read_bytes() == expected.path.read_bytes()
    assert (content["states"], content["choices"], content["transitions"]) == (
        expected.n_states, expected.n_choices, expected.n_transitions,
    )  # fmt: skip
    assert content["labels"] == {label: list(meant) for label, meant in expected.labels.items()}
    assert (content["queries"], content["never"]) == (expected.queries(), list(expected.never))
    limited = invoke("export", "thicket", "--out", out, *given, "--force", "--memory-limit", "2GB")
    assert limited.stdout == str(expected).replace("expected", "model") + "\n"
    assert out.read_bytes() == expected.path.read_bytes()
    assert invoke("export", "thicket", "--out", out, "--steps", 2, "--force", "-q").output == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--out", "model.txt"], "give a name that ends in .drn or .umb"),
        (["--out", "there.drn"], "already exists"),
        (["--out", "new.drn", "--deciding", "0,5"], "give an agent from 0 to 1"),
        (["--out", "new.drn", "--deciding", "me"], "give a number"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: list[str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.drn").write_text("precious", encoding="utf-8")
    done = invoke("export", "thicket", "--steps", 2, *arguments)
    assert done.exit_code == 2
    assert complaint in " ".join(done.stderr.split())
    assert [(path.name, path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()] == [("there.drn", "precious")]
