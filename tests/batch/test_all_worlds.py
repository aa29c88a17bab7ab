"""A batch over all shipped worlds, with three broken entries among them."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from empo_bi import worlds
from empo_bi.cli import cli

NO_SUCH_CODE = "map: |\n  We We We\n  We Xx We\n  We We We\nmax_steps: 2\npossible_goals: ['1,1']\n"
NO_GOALS = "map: |\n  We We We We\n  We Ay Ae We\n  We We We We\nmax_steps: 2\n"


def test_all_but_the_broken_ones_finish_and_the_three_are_told_precisely(tmp_path: Path) -> None:
    (tmp_path / "no_such_code.yaml").write_text(NO_SUCH_CODE)
    (tmp_path / "no_goals.yaml").write_text(NO_GOALS)
    names = worlds.available()
    middle = len(names) // 2
    entries = [*names[:middle], "no_such_code.yaml", "misspelt_freeing", *names[middle:], "no_goals.yaml"]
    batch = {"worlds": entries, "steps": 2, "params": {"gamma_h": 0.9}, "keep": "summary", "out": "runs"}
    (tmp_path / "batch.yaml").write_text(json.dumps(batch))
    result = CliRunner().invoke(cli, ["batch", str(tmp_path / "batch.yaml"), "--workers", "1", "--quiet", "--json"])
    assert result.exit_code == 3, result.output
    content = json.loads(result.stdout)
    alone = [name for name in names if name == "basics/robot_alone"]  # has no human, and says so
    assert (content["runs"], content["finished"]) == (len(entries), len(entries) - 3 - len(alone))
    failed = {row["world"]: row["error"] for row in content["failed"]}
    assert set(failed) == {"no_such_code.yaml", "misspelt_freeing", "no_goals.yaml", *alone}
    assert "no_such_code.yaml:3: map" in failed["no_such_code.yaml"]
    assert "'Xx'" in failed["no_such_code.yaml"]
    assert "Did you mean" in failed["misspelt_freeing"]
    assert "asymmetric_freeing" in failed["misspelt_freeing"]
    assert "possible_goals" in failed["no_goals.yaml"]
    # In words, each failure has a line of its own.
    shown = CliRunner().invoke(cli, ["show", str(tmp_path / "runs")])
    assert shown.exit_code == 0
    for world in failed:
        assert sum(line.startswith(f"  failed: {world}, 2 steps") for line in shown.stdout.splitlines()) == 1
