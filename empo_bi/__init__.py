"""empo_bi: backward-induction planning for multi-agent worlds, with disk-sliced DAGs.

The public names are below; each is imported when it is first used, so ``import empo_bi`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from empo_bi._version import __version__

if TYPE_CHECKING:
    from empo_bi import analysis, events, worlds
    from empo_bi.api import compute_human_policy_prior, compute_robot_policy
    from empo_bi.batch.batch import BatchResult, run_batch
    from empo_bi.dag.dag import Dag
    from empo_bi.enumeration import enumerate_dag, open_dag
    from empo_bi.errors import (
        BatchFileError,
        ClusterError,
        DamagedStoreError,
        EmpoError,
        GoalError,
        InvalidActionError,
        InvalidStateError,
        InvalidWorldError,
        MemoryLimitError,
        MemoryPressureError,
        MetricError,
        MissingAgentError,
        StoreError,
        StoreLockedError,
        StoreMismatchError,
        StoreNotFoundError,
        TooManyStatesError,
        WorkerDiedError,
        WorldFileError,
        WorldNotFoundError,
        WorldTooLargeError,
        WorldWarning,
    )
    from empo_bi.export.model import ExportedModel
    from empo_bi.memory.monitor import MemoryMonitor, check_memory
    from empo_bi.memory.profiler import MemoryProfiler
    from empo_bi.opening import open_solution
    from empo_bi.options import Params
    from empo_bi.planner.plan import Plan, plan
    from empo_bi.report.report import ReportFile, write_report
    from empo_bi.results.chain import MarkovChain, compute_markov_chain_value_function
    from empo_bi.results.policies import HumanPolicyPrior, RobotPolicy, TabularHumanPolicyPrior, TabularRobotPolicy
    from empo_bi.results.reached import first_of, probability_by_time
    from empo_bi.results.solution import Solution
    from empo_bi.solving import solve
    from empo_bi.world.array_world import ArrayWorld
    from empo_bi.world.goals import (
        DeterministicGoalGenerator,
        DeterministicGoalSampler,
        PossibleGoal,
        PossibleGoalGenerator,
        PossibleGoalSampler,
        ReachCellGoal,
        ReachRectangleGoal,
        ReachStatesGoal,
        TabularGoalGenerator,
        TabularGoalSampler,
        approx_integral_over_possible_goals,
    )
    from empo_bi.world.gridworld import GridWorld, load_world
    from empo_bi.world.model import WorldModel

# Where each public name lives.
_HOMES = {
    "empo_bi.api": ["compute_human_policy_prior", "compute_robot_policy"],
    "empo_bi.batch.batch": ["BatchResult", "run_batch"],
    "empo_bi.opening": ["open_solution"],
    "empo_bi.options": ["Params"],
    "empo_bi.report.report": ["ReportFile", "write_report"],
    "empo_bi.results.chain": ["MarkovChain", "compute_markov_chain_value_function"],
    "empo_bi.results.policies": ["HumanPolicyPrior", "RobotPolicy", "TabularHumanPolicyPrior", "TabularRobotPolicy"],
    "empo_bi.results.reached": ["first_of", "probability_by_time"],
    "empo_bi.results.solution": ["Solution"],
    "empo_bi.memory.monitor": ["MemoryMonitor", "check_memory"],
    "empo_bi.memory.profiler": ["MemoryProfiler"],
    "empo_bi.planner.plan": ["Plan", "plan"],
    "empo_bi.solving": ["solve"],
    "empo_bi.dag.dag": ["Dag"],
    "empo_bi.export.model": ["ExportedModel"],
    "empo_bi.enumeration": ["enumerate_dag", "open_dag"],
    "empo_bi.world.array_world": ["ArrayWorld"],
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
        "ReachStatesGoal",
        "TabularGoalGenerator",
        "TabularGoalSampler",
        "approx_integral_over_possible_goals",
    ],
    "empo_bi.errors": [
        "BatchFileError",
        "ClusterError",
        "DamagedStoreError",
        "EmpoError",
        "GoalError",
        "InvalidActionError",
        "InvalidStateError",
        "InvalidWorldError",
        "MemoryLimitError",
        "MemoryPressureError",
        "MetricError",
        "MissingAgentError",
        "StoreError",
        "StoreLockedError",
        "StoreMismatchError",
        "StoreNotFoundError",
        "TooManyStatesError",
        "WorkerDiedError",
        "WorldFileError",
        "WorldNotFoundError",
        "WorldTooLargeError",
        "WorldWarning",
    ],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ArrayWorld",
    "BatchFileError",
    "BatchResult",
    "ClusterError",
    "Dag",
    "DamagedStoreError",
    "DeterministicGoalGenerator",
    "DeterministicGoalSampler",
    "EmpoError",
    "ExportedModel",
    "GoalError",
    "GridWorld",
    "HumanPolicyPrior",
    "InvalidActionError",
    "InvalidStateError",
    "InvalidWorldError",
    "MarkovChain",
    "MemoryLimitError",
    "MemoryMonitor",
    "MemoryPressureError",
    "MemoryProfiler",
    "MetricError",
    "MissingAgentError",
    "Params",
    "Plan",
    "PossibleGoal",
    "PossibleGoalGenerator",
    "PossibleGoalSampler",
    "ReachCellGoal",
    "ReachRectangleGoal",
    "ReachStatesGoal",
    "ReportFile",
    "RobotPolicy",
    "Solution",
    "StoreError",
    "StoreLockedError",
    "StoreMismatchError",
    "StoreNotFoundError",
    "TabularGoalGenerator",
    "TabularGoalSampler",
    "TabularHumanPolicyPrior",
    "TabularRobotPolicy",
    "TooManyStatesError",
    "WorkerDiedError",
    "WorldFileError",
    "WorldModel",
    "WorldNotFoundError",
    "WorldTooLargeError",
    "WorldWarning",
    "__version__",
    "analysis",
    "approx_integral_over_possible_goals",
    "check_memory",
    "compute_human_policy_prior",
    "compute_markov_chain_value_function",
    "compute_robot_policy",
    "enumerate_dag",
    "events",
    "first_of",
    "load_world",
    "open_dag",
    "open_solution",
    "plan",
    "probability_by_time",
    "run_batch",
    "solve",
    "worlds",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(importlib.import_module(_HOME_OF[name]), name)
    if name in ("analysis", "events", "worlds"):
        return importlib.import_module(f"empo_bi.{name}")
    raise AttributeError(f"module 'empo_bi' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
