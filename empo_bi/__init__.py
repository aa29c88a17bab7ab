"""empo_bi: backward-induction planning for multi-agent worlds, with disk-sliced DAGs.

The public names are below; each is imported when it is first used, so ``import empo_bi`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from empo_bi import worlds
    from empo_bi.dag.dag import Dag
    from empo_bi.enumeration import enumerate_dag, open_dag
    from empo_bi.errors import (
        DamagedStoreError,
        EmpoError,
        InvalidActionError,
        InvalidStateError,
        InvalidWorldError,
        MemoryLimitError,
        MissingAgentError,
        StoreError,
        StoreLockedError,
        StoreMismatchError,
        StoreNotFoundError,
        TooManyStatesError,
        WorldFileError,
        WorldNotFoundError,
        WorldTooLargeError,
        WorldWarning,
    )
    from empo_bi.world.goals import (
        DeterministicGoalGenerator,
        DeterministicGoalSampler,
        PossibleGoal,
        PossibleGoalGenerator,
        PossibleGoalSampler,
        ReachCellGoal,
        ReachRectangleGoal,
        TabularGoalGenerator,
        TabularGoalSampler,
        approx_integral_over_possible_goals,
    )
    from empo_bi.world.gridworld import GridWorld, load_world
    from empo_bi.world.model import WorldModel

__version__ = "0.1.0"

# Where each public name lives.
_HOMES = {
    "empo_bi.dag.dag": ["Dag"],
    "empo_bi.enumeration": ["enumerate_dag", "open_dag"],
    "empo_bi.world.gridworld": ["GridWorld", "load_world"],
    "empo_bi.world.model": ["WorldModel"],
    "empo_bi.world.goals": [
        "DeterministicGoalGenerator",
        "DeterministicGoalSampler",
        "PossibleGoal",
        "PossibleGoalGenerator",
        "PossibleGoalSampler",
        "ReachCellGoal",
        "ReachRectangleGoal",
        "TabularGoalGenerator",
        "TabularGoalSampler",
        "approx_integral_over_possible_goals",
    ],
    "empo_bi.errors": [
        "DamagedStoreError",
        "EmpoError",
        "InvalidActionError",
        "InvalidStateError",
        "InvalidWorldError",
        "MemoryLimitError",
        "MissingAgentError",
        "StoreError",
        "StoreLockedError",
        "StoreMismatchError",
        "StoreNotFoundError",
        "TooManyStatesError",
        "WorldFileError",
        "WorldNotFoundError",
        "WorldTooLargeError",
        "WorldWarning",
    ],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Dag",
    "DamagedStoreError",
    "DeterministicGoalGenerator",
    "DeterministicGoalSampler",
    "EmpoError",
    "GridWorld",
    "InvalidActionError",
    "InvalidStateError",
    "InvalidWorldError",
    "MemoryLimitError",
    "MissingAgentError",
    "PossibleGoal",
    "PossibleGoalGenerator",
    "PossibleGoalSampler",
    "ReachCellGoal",
    "ReachRectangleGoal",
    "StoreError",
    "StoreLockedError",
    "StoreMismatchError",
    "StoreNotFoundError",
    "TabularGoalGenerator",
    "TabularGoalSampler",
    "TooManyStatesError",
    "WorldFileError",
    "WorldModel",
    "WorldNotFoundError",
    "WorldTooLargeError",
    "WorldWarning",
    "__version__",
    "approx_integral_over_possible_goals",
    "enumerate_dag",
    "load_world",
    "open_dag",
    "worlds",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(importlib.import_module(_HOME_OF[name]), name)
    if name == "worlds":
        return importlib.import_module("empo_bi.worlds")
    raise AttributeError(f"module 'empo_bi' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
