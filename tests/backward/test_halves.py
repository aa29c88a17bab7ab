"""Values are put to rest in float16 as numpy would round them, to the last bit."""

from __future__ import annotations

import numpy as np

from empo_bi.sweep.float16 import put_rows


def all_halves() -> np.ndarray:
    """Every float16 from 0 to infinity."""
    return np.arange(0x7C01, dtype=np.uint16).view(np.float16)


def rounded(numbers: np.ndarray) -> np.ndarray:
    row_MX = numbers.astype(np.float32).reshape(-1, 1)
    rest_SX = np.zeros((len(row_MX), 1), dtype=np.float16)
    put_rows(rest_SX, np.arange(len(row_MX)), row_MX)
    return rest_SX[:, 0]


def expected(numbers: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return numbers.astype(np.float32).astype(np.float16)


def test_what_is_a_float16_stays_what_it_is() -> None:
    assert np.array_equal(rounded(all_halves()), all_halves())


def test_what_is_between_two_neighbours_goes_to_the_nearer_and_from_the_middle_to_the_even_one() -> None:
    below = all_halves()[:-2].astype(np.float32)
    above = all_halves()[1:-1].astype(np.float32)
    middle = (below + above) / 2
    for numbers in (middle, np.nextafter(middle, below), np.nextafter(middle, above)):
        assert np.array_equal(rounded(numbers).view(np.uint16), expected(numbers).view(np.uint16))


def test_what_is_too_large_becomes_infinite_and_a_negative_zero_is_zero() -> None:
    numbers = np.array([65504.0, 65519.996, 65520.0, 1e30, np.inf, -0.0])
    assert rounded(numbers).tolist() == [65504.0, 65504.0, np.inf, np.inf, np.inf, 0.0]


def test_bits_at_random() -> None:
    bits = np.random.default_rng(1).integers(0, 0x7F800000, 200_000, dtype=np.uint32)
    numbers = bits.view(np.float32)
    assert np.array_equal(rounded(numbers).view(np.uint16), expected(numbers).view(np.uint16))


def test_rows_go_to_their_places_whatever_the_types() -> None:
    place_M = np.array([4, 0, 3])
    row_MX = np.random.default_rng(2).random((3, 37))
    for work, rest in ((np.float32, np.float16), (np.float64, np.float16), (np.float64, np.float64)):
        rest_SX = np.full((6, 37), 0.5, dtype=rest)
        put_rows(rest_SX, place_M, row_MX.astype(work))
        wanted = np.full((6, 37), 0.5, dtype=rest)
        wanted[place_M] = row_MX.astype(work)
        assert np.array_equal(rest_SX, wanted)
