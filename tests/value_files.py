"""The value files of ../shared/reference: numbers of both phases that another program computed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from golden_files import REFERENCE, as_tuple
from oracle.gridworld import OracleWorld, parse
from oracle.planning import GridPlanningWorld


def value_paths() -> list[Path]:
    return sorted((REFERENCE / "values").glob("*.json"))


class ValueFile:
    """A file: a world with its agents, the parameters, and the values of some states."""

    def __init__(self, path: Path) -> None:
        self.file = json.loads(path.read_text())
        self.params = {name: float(value) if value == "inf" else value for name, value in self.file["params"].items()}
        self.humans, self.robots = self.file["humans"], self.file["robots"]
        self.world_path, self.max_steps = REFERENCE / "worlds" / self.file["world"], self.file["max_steps"]

    def only(self, *names: str) -> dict[str, Any]:
        """Those of the parameters that the file has."""
        return {name: self.params[name] for name in names if name in self.params}

    @property
    def for_humans(self) -> dict[str, Any]:
        return self.only("beta_h", "gamma_h", "optimistic")

    @property
    def for_robots(self) -> dict[str, Any]:
        return self.only("gamma_h", "beta_r", "gamma_r", "zeta", "xi", "eta", "terminal_Vr")

    @property
    def samples(self) -> list[tuple[Any, dict[str, Any]]]:
        found = [(as_tuple(sample["state"]), sample) for sample in self.file["samples"]]
        assert found
        return found

    def oracle_world(self) -> OracleWorld:
        return parse(self.world_path.read_text(), max_steps=self.max_steps)


def middle_of(rectangle: Sequence[int]) -> str:
    """The files name a rectangle by its middle cell, rounded down."""
    x1, y1, x2, y2 = rectangle
    return f"{(x1 + x2) // 2},{(y1 + y2) // 2}"


class HalfPrecisionWorld(GridPlanningWorld):
    """Transition probabilities rounded to float16, as the other program's phase 1 held them (section 11)."""

    def transition_probabilities(self, state: Any, actions: Any) -> list | None:
        outcomes = super().transition_probabilities(state, actions)
        return outcomes and [(float(np.float16(probability)), successor) for probability, successor in outcomes]
