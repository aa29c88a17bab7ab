"""Questions about a solution, and pictures of the answers: ``from empo_bi import analysis``.

Maps over the grid, arrows, decisions with the values behind them, extremes, courses, entropies, comparisons. Everything is
computed from the arrays of the levels that are asked about; nothing here changes a solution.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from empo_bi.analysis.arrows import ArrowMap, arrow_map
    from empo_bi.analysis.comparison import Comparison, Difference, compare
    from empo_bi.analysis.decisions import Decision, decision_at
    from empo_bi.analysis.maps import CellMap, cell_map, power_map, presence_map, robot_value_map, value_map
    from empo_bi.analysis.ranking import RankedState, least_empowered, most_empowered
    from empo_bi.analysis.trajectory import Course, course_of
    from empo_bi.analysis.uncertainty import human_divergence, human_entropy, robot_divergence, robot_entropy

# Where each public name lives.
_HOMES = {
    "arrows": ["ArrowMap", "arrow_map"],
    "comparison": ["Comparison", "Difference", "compare"],
    "course": ["Course", "course_of"],
    "decisions": ["Decision", "decision_at"],
    "extremes": ["RankedState", "least_empowered", "most_empowered"],
    "maps": ["CellMap", "cell_map", "power_map", "presence_map", "robot_value_map", "value_map"],
    "uncertainty": ["human_divergence", "human_entropy", "robot_divergence", "robot_entropy"],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ArrowMap",
    "CellMap",
    "Comparison",
    "Course",
    "Decision",
    "Difference",
    "RankedState",
    "arrow_map",
    "cell_map",
    "compare",
    "course_of",
    "decision_at",
    "human_divergence",
    "human_entropy",
    "least_empowered",
    "most_empowered",
    "power_map",
    "presence_map",
    "robot_divergence",
    "robot_entropy",
    "robot_value_map",
    "value_map",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
