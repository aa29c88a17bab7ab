"""The contract of a stored solution: which arrays a solved level has, of which shape, and what numbers they may hold.

Values are read by kernels that take logarithms and sums of them, so what is not a number, infinite or of the wrong sign is
refused when it is read. A number within its range that somebody has made up looks like a solved one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from empo_bi.store.format_names import level_name, spoken
from empo_bi.store.records import LARGEST_WEIGHT, FormatError
from empo_bi.types import Array, Json

CARRIED = ("human", "effective", "robot")  # tables of a carry
_LARGEST = {"weight": LARGEST_WEIGHT, "joint": 1e6}  # priors whose probabilities sum to more than 1 are used as they are
SLACK = 2**-10  # by which rounding may take values beyond 1, at the most


@dataclass(frozen=True)
class SolutionRules:
    """What holds for all levels of a solution, from its manifest.

    Attributes
    ----------
    level_sizes : states of each level
    n_humans, n_goals, n_robot_profiles : H, G, R
    rest, work : types of the humans' values, in the store and in a carry
    most : the largest value that a human's goal can have, infinite where beliefs of a user's weigh outcomes
    arrays, tables : names of those that every level has, and every carry
    n_human_profiles : U, where there is a prior of the user's
    """

    level_sizes: list[int]
    n_humans: int
    n_goals: int
    n_robot_profiles: int
    rest: str
    work: str
    most: float
    arrays: frozenset[str]
    tables: frozenset[str]
    n_human_profiles: int = 0

    @classmethod
    def of(cls, manifest: Json) -> SolutionRules | None:
        """None for a temporary store, which says nothing of itself, and which only its maker reads."""
        content, goals = manifest["content"], manifest["goals"]
        if not content:
            return None
        most = 1 + SLACK if content["belief"] == "none" and content["prior"] == "none" else np.inf
        return cls(
            content["level_sizes"], len(content["humans"]), len(goals[0]), len(manifest["robot_profiles"]),
            content["rest"], content["work"], most, _arrays(content) | set(manifest.get("answers", ())), _tables(content),
            len(manifest.get("human_profiles", ())),
        )  # fmt: skip

    def check_marker(self, t: int, marker: Json) -> None:
        """Types and shapes of a level's arrays."""
        where, expected = spoken(level_name(t)), self._expected(t)
        if marker["level"] != t:
            raise FormatError(f"the group of {where} is that of level {marker['level']}")
        if missing := sorted(self.arrays - marker["arrays"].keys()):
            raise FormatError(f"{where}, array {missing[0]!r}: is missing from its record")
        for name, about in marker["arrays"].items():
            if name not in expected:
                raise FormatError(f"{where}, array {name!r}: is unexpected in a solution")
            if (about["dtype"], about["shape"]) != expected[name]:
                found = f"{about['dtype']} {about['shape']}"
                raise FormatError(
                    f"{where}, array {name!r}: it is said to be {found}; expected {' '.join(map(str, expected[name]))}"
                )

    def _expected(self, t: int) -> dict[str, tuple[str, list[int]]]:
        n_states = self.level_sizes[t]
        values = (self.rest, [n_states, self.n_humans, self.n_goals])
        bits = ("uint8", [n_states, -(-self.n_humans * self.n_goals // 8)])
        return {
            "vh": values,
            "ve": values,
            "xh": ("float64", [n_states, self.n_humans]),
            "qr": ("float64", [n_states, self.n_robot_profiles]),
            "vr": ("float64", [n_states]),
            "attained": bits,
            "listed": bits,
            "weight": ("float64", values[1]),
            "joint": ("float64", [n_states, self.n_human_profiles]),
        }

    def check_numbers(self, t: int, name: str, array: Array) -> None:
        """Numbers of an array, or of some of its rows."""
        where = f"{spoken(level_name(t))}, array {name!r}"
        least, most = _ends(array)
        if name in ("vh", "ve") and not (least >= 0 and most <= self.most):
            raise FormatError(f"{where}: values of goals are {least:g} to {most:g}; expected 0 to {min(self.most, 1)}")
        if name in _LARGEST and not (least >= 0 and most <= _LARGEST[name]):
            raise FormatError(f"{where}: numbers are {least:g} to {most:g}; expected 0 to {_LARGEST[name]:g}")
        if name == "xh" and not (least >= 0 and most < np.inf):
            raise FormatError(f"{where}: power is {least:g} to {most:g}; expected finite numbers, 0 or more")
        if name in ("qr", "vr") and not (-np.inf < least and most <= 0):
            raise FormatError(f"{where}: the robot's values are {least:g} to {most:g}; expected finite numbers, 0 or less")
        if name in ("qr", "xh") and array.size and ((array != 0).any(axis=1) != (array != 0).all(axis=1)).any():
            raise FormatError(f"{where}: in a state, some numbers are 0 and others are not; all are 0 where it is terminal")

    def check_carry(self, t: int, group: str, carried: Mapping[str, Any]) -> None:
        """What the record of level ``t``'s carry says of its tables: the rows of that level, and perhaps of higher ones."""
        if missing := sorted(self.tables - carried.keys()):
            raise FormatError(f"{spoken(group)}, array {missing[0]!r}: is missing from its record")
        least, most = self.level_sizes[t], sum(self.level_sizes[t:])
        n_rows = [about["shape"][:1] for about in carried.values()]
        for name, about in carried.items():
            widths = [] if name == "robot" else [self.n_humans * self.n_goals]
            dtype = "float64" if name == "robot" else self.work
            has_rows = [least] <= about["shape"][:1] <= [most] and about["shape"][:1] == n_rows[0]
            if name not in CARRIED or about["dtype"] != dtype or about["shape"][1:] != widths or not has_rows:
                rows = f"{least:,}" if least == most else f"{least:,} to {most:,}, as many for each table"
                raise FormatError(
                    f"{spoken(group)}, array {name!r}: it is said to be {about['dtype']} {about['shape']}; expected {dtype} "
                    f"{['rows', *widths]}, rows: {rows}"
                )


def check_table(group: str, name: str, table: Array) -> None:
    """Numbers of a carry's table: continuations of goals, -1 where a goal is attained in some of them, or the robot's."""
    least, most = _ends(table)
    if not (np.isfinite(least) and np.isfinite(most)) or (most > 0 if name == "robot" else least < -1):
        raise FormatError(f"{spoken(group)}, array {name!r}: values are {least:g} to {most:g}")


def _arrays(content: Json) -> frozenset[str]:
    """Those of phase 1, unless somebody else's prior took its place, and those of phase 2, as far as they were kept."""
    solved = {"vh"} if content["prior"] == "none" else set()
    solved |= {"ve", "xh", "qr", "vr"} if content["phase_2"] else set()
    return frozenset(solved & set(content.get("arrays", solved)))


def _tables(content: Json) -> frozenset[str]:
    solved = {"human"} if content["prior"] == "none" else set()
    return frozenset(solved | ({"effective", "robot"} if content["phase_2"] else set()))


def _ends(array: Array) -> tuple[float, float]:
    """The smallest and the largest number; both not a number if some is not."""
    return (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
