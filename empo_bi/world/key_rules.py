"""Whether keys from untrusted files are states of a gridworld; kernels use their values as indices without a check.

In a valid key, every field has a value that it can have, no two agents or things are on one cell, and carried items are not
on the ground. The rules rely on this, whether or not the state can ever be reached.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from empo_bi.types import KeyArray
from empo_bi.world.layout import AGENT_SLOTS, CARRIED, CELL, StateLayout

ROWS_AT_A_TIME = 1 << 14


def problem_of_keys(layout: StateLayout, key_SW: KeyArray) -> str | None:
    """What is wrong with the first of some keys (S, W) that is not a state; None if all are."""
    if key_SW.shape[1] != layout.n_words:
        return f"keys of {key_SW.shape[1]} words; expected {layout.n_words} for this world"
    for first in range(0, len(key_SW), ROWS_AT_A_TIME):
        problem = _problem_of(layout, key_SW[first : first + ROWS_AT_A_TIME])
        if problem is not None:
            return problem
    return None


def _problem_of(layout: StateLayout, key_SW: KeyArray) -> str | None:
    rest_SW = key_SW.copy()
    row_SR = np.broadcast_to(layout.initial_row, (len(key_SW), layout.n_slots)).copy()
    for field in layout.fields:
        value_S = field.values(key_SW)
        if int(value_S.max()) > field.largest or int(value_S.min()) < field.smallest:
            return f"a field of {field.width} bits is {int(value_S.min())} to {int(value_S.max())}; expected " + (
                f"{field.smallest} to {field.largest}"
            )
        row_SR[:, field.slot] = value_S
        rest_SW[:, field.word] &= ~field.bits
    if rest_SW.any():
        return "bits are set that belong to no field"
    if _share_a_cell(layout, row_SR).any():
        return "two agents or things are on one cell"
    return "more is carried than is missing on the ground" if _carry_too_much(layout, row_SR).any() else None


def _share_a_cell(layout: StateLayout, row_SR: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """0 stands for no cell."""
    agents, things = row_SR[:, CELL : layout.first_thing : AGENT_SLOTS], row_SR[:, layout.first_thing : layout.first_object]
    cells = np.sort(np.concatenate([agents, things], axis=1), axis=1)
    shared: npt.NDArray[np.bool_] = ((cells[:, 1:] == cells[:, :-1]) & (cells[:, 1:] > 0)).any(axis=1)
    return shared


def _carry_too_much(layout: StateLayout, row_SR: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    carried_SN = row_SR[:, CARRIED : layout.first_thing : AGENT_SLOTS]
    too_much = np.zeros(len(row_SR), dtype=np.bool_)
    for number, (first, last) in enumerate(layout.type_ranges[: layout.item_types]):
        cells = row_SR[:, layout.first_thing + first : layout.first_thing + last]
        too_much |= (carried_SN == number + 1).sum(axis=1) > (cells == 0).sum(axis=1)
    return too_much
