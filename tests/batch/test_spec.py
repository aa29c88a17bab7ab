"""Batch files: what they may say, and what is said of those that are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from empo_bi import BatchFileError
from empo_bi.batch.spec import BatchSpec, read_spec

WHOLE = """
worlds: [basics/*, mine.yaml]
steps: {range: [3, 5]}
params:
  beta_h: {log_uniform: [5, 100]}
  zeta: [1, 2]
  beta_r: 50
  optimistic: true
overrides: {stumble_probability: 0.25}
samples: 7
seed: [1, 2]
repetitions: 2
rollouts: 10
metrics: {first: my_metrics.py:left_first}
keep: summary
per_goal: true
precision: float64
max_states: 1000
memory_limit: 2GB
workers: 2
out: results
"""


def test_everything_that_can_be_said_is_understood(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(WHOLE)
    spec = read_spec(tmp_path / "study.yaml")
    assert spec.worlds == ("basics/*", "mine.yaml")
    assert spec.steps is not None
    assert spec.steps.values == (3, 4, 5)
    assert [quantity.name for quantity in spec.params] == ["beta_h", "zeta", "beta_r", "optimistic"]
    assert [quantity.is_random for quantity in spec.params] == [True, False, False, False]
    assert (spec.samples, spec.seeds, spec.repetitions, spec.rollouts) == (7, (1, 2), 2, 10)
    assert [(metric.name, metric.reference) for metric in spec.metrics] == [("first", "my_metrics.py:left_first")]
    assert (spec.keep, spec.per_goal, spec.precision, spec.max_states) == ("summary", True, "float64", 1000)
    assert (spec.memory_limit, spec.workers, spec.overrides) == ("2GB", 2, {"stumble_probability": 0.25})
    assert spec.out == str(tmp_path / "results")  # paths in a file are relative to it
    assert spec.folder == tmp_path


def test_little_needs_to_be_said(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text("worlds: asymmetric_freeing\n")
    spec = read_spec(tmp_path / "study.yaml")
    assert spec == BatchSpec(worlds=("asymmetric_freeing",), out="runs/study", folder=tmp_path)


def test_a_text_and_a_mapping_do_as_well() -> None:
    written = {"worlds": ["a", "b"], "params": {"zeta": 2}}
    assert read_spec("worlds: [a, b]\nparams: {zeta: 2}\n") == read_spec(written)


def test_infinity_may_be_written_as_a_word() -> None:
    for written, values in (("inf", (float("inf"),)), (["inf", 10], (float("inf"), 10)), ("1e1", (10.0,))):
        [quantity] = read_spec({"worlds": "a", "params": {"beta_h": written}}).params
        assert quantity.values == values


@pytest.mark.parametrize("change", [{"keep": "value"}, {"memory_limit": "lots"}, {"workers": 0}], ids=repr)
def test_what_takes_the_place_of_the_file_is_checked_as_well(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=str(next(iter(change)))):
        read_spec({"worlds": "a"}).replace(**change)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("- a\n- b\n", None, "found list, expected a mapping"),
        ("steps: 3\n# nothing else\n", None, "worlds: missing"),
        ("worlds: a\nstep: 3\n", 2, "Did you mean 'steps'"),
        ("worlds: a\nzeta: 3\n", 2, "below 'params'"),
        ("worlds: []\n\n", 1, "give a list of names"),
        ("worlds:\n  - a\n  - 3\n", 3, "found 3"),
        ("worlds: a\nsteps: 0\n", 2, "1 or more"),
        ("worlds: a\nsteps: [3, 2.5]\n", 2, "found 2.5"),
        ("worlds: a\nsteps: {uniform: [3, 5]}\nsamples: 3\n", 2, "write {integers: [3, 5]}"),
        ("worlds: a\nparams: 3\n", 2, "by name"),
        ("worlds: a\nparams:\n  zetta: 3\n", 3, "Did you mean 'zeta'"),
        ("worlds: a\nparams:\n  zeta: -1\n", 3, "zeta=-1.0; give a positive number"),
        ("worlds: a\nparams:\n  zeta: [1, two]\n", 3, "zeta='two'"),
        ("worlds: a\nparams:\n  gamma_h: {uniform: [0.5, 1.5]}\nsamples: 2\n", 3, "at most 1"),
        ("worlds: a\nparams: {gamma_h: 0.9, rho_h: 0.1}\n", 2, "give only one of them"),
        ("worlds: a\nparams: {believed_others_policy: 3}\n", 2, "unknown parameter"),
        ("worlds: a\nparams: {zeta: {uniform: [1, 2]}}\n", None, "samples: missing; zeta is drawn"),
        ("worlds: a\nsamples: 5\n", 2, "nothing is drawn"),
        ("worlds: a\nsamples: many\n", 2, "whole number"),
        ("worlds: a\nrepetitions: 0\n", 2, "1 or more"),
        ("worlds: a\nrollouts: -1\n", 2, "0 or more"),
        ("worlds: a\nseed: -3\n", 2, "whole number"),
        ("worlds: a\nmetrics: 3\n", 2, "give a list of functions"),
        ("worlds: a\nmetrics: [left_first]\n", 2, "my_metrics.py:left_first"),
        ("worlds: a\nmetrics: ['a:f', 'b:f']\n", 2, "two metrics are called 'f'"),
        ("worlds: a\nkeep: value\n", 2, "Did you mean 'values'"),
        ("worlds: a\nper_goal: 3\n", 2, "true or false"),
        ("worlds: a\nprecision: float32\n", 2, "give one of float16, float64"),
        ("worlds: a\nmemory_limit: much\n", 2, "much"),
        ("worlds: a\nworkers: 0\n", 2, "workers=0"),
        ("worlds: a\nout: 3\n", 2, "folder or URL"),
        ("worlds: a\noverrides: {max_steps: 3}\n", 2, "steps: \\[8, 10\\]"),
        ("worlds: a\noverrides: 3\n", 2, "keys of world files"),
        ("worlds: a\noverrides: {stumble_probabilty: 1}\n", 2, "Did you mean 'stumble_probability'"),
        ("worlds: a\nkeep: [values]\n", 2, "give one of values"),
        ("worlds: a\nprecision: [float16]\n", 2, "give one of float16"),
        ("worlds: a\nrepetitions: 3\n", 2, "also give rollouts, as in 'rollouts: 100'"),
        ("worlds: a\nkeep: policies\nrollouts: 3\n", 2, "rollouts need values"),
        ("worlds: a\nmetrics: 'm.py:V_r'\n", 2, "the table already has a column 'V_r'"),
        ("worlds: a\nmetrics: {pi_r_left: 'm.py:f'}\n", 2, "the table already has a column 'pi_r_left'"),
        ("worlds: a\nworlds: b\n", 2, "duplicate key"),
        ("worlds: [a\nsteps: 3\n", 2, "not YAML"),
        ("worlds: !!python/object:os.system a\n\n", 1, "plain data"),
    ],
    ids=repr,
)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int | None, words: str, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(text)
    words = words if "\\" in words else words.replace("[", r"\[").replace("{", r"\{")
    with pytest.raises(BatchFileError, match=words) as caught:
        read_spec(tmp_path / "study.yaml")
    place = str(tmp_path / "study.yaml") + ("" if line is None else f":{line}:")
    assert str(caught.value).startswith(place)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(BatchFileError, match=r"cannot be read \(No such file"):
        read_spec(tmp_path / "nothing.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"worlds: \xff\n")
    with pytest.raises(BatchFileError, match="not UTF-8"):
        read_spec(tmp_path / "bytes.yaml")
