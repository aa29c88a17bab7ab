"""What a batch varies: lists, ranges and draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from empo_bi.batch.parameter_values import ParameterValues, parameter_values_of


def read(value: Any, name: str = "zeta") -> ParameterValues:
    return parameter_values_of(name, value, ValueError)


@pytest.mark.parametrize(
    ("written", "values"),
    [(3, (3,)), ([1, 2.5], (1, 2.5)), ({"range": [8, 11]}, (8, 9, 10, 11)), ({"range": [4, 4]}, (4,)), (True, (True,))],
)
def test_what_is_not_drawn_is_a_grid(written: Any, values: tuple[Any, ...]) -> None:
    quantity = read(written)
    assert quantity.values == values
    assert not quantity.is_random


@given(seed=st.integers(0, 2**40), n=st.integers(0, 30), more=st.integers(0, 30))
def test_more_draws_begin_with_the_same_ones(seed: int, n: int, more: int) -> None:
    for written in ({"uniform": [0.8, 1]}, {"log_uniform": [5, 100]}, {"integers": [8, 14]}, {"choices": ["a", "b"]}):
        quantity = read(written)
        assert quantity.draws(n + more, seed)[:n] == quantity.draws(n, seed)


def test_each_name_and_each_seed_draws_on_its_own() -> None:
    draws = {
        (name, seed): tuple(read({"uniform": [0, 1]}, name).draws(5, seed)) for name in ("zeta", "xi") for seed in (0, 1)
    }
    assert len(set(draws.values())) == 4


def test_draws_have_the_distribution_that_is_written() -> None:
    n = 20_000  # the bounds below are five standard errors
    uniform = np.array(read({"uniform": [0.8, 1]}).draws(n, 1))
    assert uniform.min() >= 0.8
    assert uniform.max() <= 1
    assert abs(uniform.mean() - 0.9) < 5 * 0.2 / math.sqrt(12 * n)
    logs = np.log(read({"log_uniform": [5, 100]}).draws(n, 1))
    assert logs.min() >= math.log(5)
    assert logs.max() <= math.log(100)
    assert abs(logs.mean() - (math.log(5) + math.log(100)) / 2) < 5 * math.log(20) / math.sqrt(12 * n)
    for written, expected in (({"integers": [8, 14]}, range(8, 15)), ({"choices": [3, 1, 2]}, (3, 1, 2))):
        drawn = read(written).draws(n, 1)
        assert set(drawn) == set(expected)
        share = 1 / len(expected)
        for value in expected:
            assert abs(drawn.count(value) / n - share) < 5 * math.sqrt(share * (1 - share) / n)
        assert all(isinstance(value, int) for value in drawn)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ([], "empty list"),
        ([1, 2, 1], "duplicate value"),
        ({"unifrom": [0, 1]}, "Did you mean 'uniform'"),
        ({"uniform": [0, 1], "choices": [1]}, "give a value, a list, or one of"),
        ({}, "give a value, a list, or one of"),
        ({"uniform": [1, 0]}, "the lower and the upper end"),
        ({"uniform": [0, 1, 2]}, "the lower and the upper end"),
        ({"uniform": 3}, "the lower and the upper end"),
        ({"uniform": [0, math.inf]}, "the lower and the upper end"),
        ({"log_uniform": [0, 1]}, "above 0"),
        ({"integers": [1, 2.5]}, "whole numbers"),
        ({"range": [1.0, 2]}, "whole numbers"),
        ({"choices": []}, "give a list"),
        ({"choices": 3}, "give a list"),
    ],
    ids=repr,
)
def test_what_makes_no_sense_is_told(written: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read(written)
