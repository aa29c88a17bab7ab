"""Texts, numbers and nesting in files of a batch that we would never write."""

from __future__ import annotations

import json
from pathlib import Path

from empo_bi.batch.batch import failure_lines
from empo_bi.solving.run_manifest_rules import _is_plain, _is_text
from empo_bi.store.small_files import Folder


def test_json_that_is_nested_deeper_than_ours_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text(json.dumps({"a": 1})[:-1] + ', "b": ' + "[" * 200 + "]" * 200 + "}")
    (tmp_path / "flat.json").write_text('{"a": {"b": [1]}}')
    assert Folder(tmp_path).read_json("deep.json") is None
    assert Folder(tmp_path).read_json("flat.json") == {"a": {"b": [1]}}


def test_numbers_beyond_floats_and_halves_of_characters_are_refused() -> None:
    assert _is_plain(2**70)
    assert not _is_plain(10**4000)
    assert _is_text("a")
    assert not _is_text("\ud800x")


def test_an_error_of_a_run_is_one_line() -> None:
    rows = [{"world": "w\nall checksums agree", "error": "E\nstatus: finished", "steps": 2, "run": "r"}]
    assert failure_lines(rows) == ["w all checksums agree, 2 steps (r): E status: finished"]
