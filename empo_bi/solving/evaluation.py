"""What other robots than the solved one are worth to the same humans: one more backward pass, of which one level is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from empo_bi.dag.level_blocks import LevelBlocks
from empo_bi.errors import StoreMismatchError
from empo_bi.memory.watch import Watch
from empo_bi.problem.asked_prior import AskedPrior
from empo_bi.problem.params import Params
from empo_bi.results.solution import Solution
from empo_bi.results.stored_prior import StoredPrior
from empo_bi.solving.memory_advice import sweep_sizes
from empo_bi.solving.options import Resources
from empo_bi.solving.problem import Problem
from empo_bi.solving.sweeping import run_sweep
from empo_bi.store.solved_levels import MemorySolution
from empo_bi.sweep.backward_pass import SolveTask
from empo_bi.sweep.memory_model import BLOCK_STATES
from empo_bi.sweep.phases import HumanPhase, Precision, RobotPhase, Setting, wants_double
from empo_bi.types import Arrays, FloatArray

_ADVICE = "Allow more, or solve with fewer goals or a shorter horizon"


@dataclass(frozen=True)
class Robots:
    """How the robots act: by the power law with these parameters, or, with ``policy_R``, alike in every state.

    Attributes
    ----------
    params : of phase 2, with which their work is valued
    policy_R : the probability of each robot profile; None for the power law
    """

    params: Params
    policy_R: FloatArray | None = None


class OneLevel(MemorySolution):
    """The arrays of one level of a sweep, which ends there."""

    def __init__(self, horizon: int, level: int) -> None:
        super().__init__(horizon)
        self._level = level

    def put(self, t: int, arrays: Arrays, carry: Callable[[], Arrays]) -> None:
        super().put(t, arrays if t == self._level else {}, carry)
        if t == self._level:
            self.next_level = -1


def level_with(solution: Solution, robots: Sequence[Robots], level: int, resources: Resources) -> list[Arrays]:
    """The arrays ``ve``, ``xh``, ``qr`` and ``vr`` of a level for each of some robots, with the humans of a solution.

    The humans act as in the solution, by the same phase 1 or the same prior. Numbers are as exact as the solution's. Where a
    robot leaves a human without power, V_r is -inf.
    """
    if (reason := why_not(solution)) is not None:
        raise StoreMismatchError(f"other robots cannot be evaluated: {reason}")
    found: dict[int, Arrays] = {}
    for setting in _settings(solution.setting):
        is_last = setting.precision.work == "float64"
        left = [i for i, one in enumerate(robots) if i not in found and (is_last or not _is_too_steep(one))]
        if left:
            arrays = _pass(solution, setting, [robots[i] for i in left], level, resources)
            found |= {i: one for i, one in zip(left, arrays, strict=True) if one is not None}
    return [found[i] for i in range(len(robots))]


def why_not(solution: Solution) -> str | None:
    """Why other robots cannot be evaluated: a folder does not hold what the humans' policies take; None if they can."""
    what = solution.missing
    if what is None and solution.has_own_prior and isinstance(solution.prior, StoredPrior):
        what = "a prior of the user's (open the run with prior=...)"
    if what is None:
        return None
    return (
        f"the humans act by {what}, which a folder cannot hold; call solve with the same arguments: it opens what is there"
    )


def _settings(own: Setting) -> list[Setting]:
    """That of the solution, and the same with wider tables, in case its own turn out to be too narrow."""
    wide = Precision(own.precision.rest, "float64")
    return [own] if own.precision == wide else [own, replace(own, precision=wide)]


def _is_too_steep(robots: Robots) -> bool:
    return robots.policy_R is None and wants_double(robots.params, phase_2=True)


def _pass(
    solution: Solution, setting: Setting, robots: Sequence[Robots], level: int, resources: Resources
) -> list[Arrays | None]:
    """One sweep for all of them; None for those whose tables are too narrow."""
    dag, problem = solution.dag, _problem_of(solution, [one.params for one in robots])
    prior = None if problem.prior is None else AskedPrior(problem.prior, setting.profiles, setting.goals)
    human = HumanPhase(setting, solution.human_params, keeps_values=False) if prior is None else None
    tasks = [
        SolveTask(human, RobotPhase(setting, one.params, prior, one.policy_R), OneLevel(dag.horizon, level))
        for one in robots
    ]
    resources.budget.check_base("evaluating")
    sizes = sweep_sizes(problem, dag, setting, resources, range(len(robots)), in_memory=False)
    watch = Watch("evaluating", _ADVICE, budget=resources.budget, monitor=resources.monitor)
    blocks = LevelBlocks(dag, min(sizes.block_states, BLOCK_STATES))
    run_sweep(
        problem, blocks, setting, tasks, sizes, resources, watch, after_level=watch.level, doing="evaluate other robots"
    )
    return [None if task.is_given_up else _arrays(task.sink, level) for task in tasks]


def _arrays(sink: object, level: int) -> Arrays:
    assert isinstance(sink, OneLevel)
    return {name: sink.get(level, name) for name in ("ve", "xh", "qr", "vr")}


def _problem_of(solution: Solution, params: Sequence[Params]) -> Problem:
    """What was solved, with other parameters of phase 2."""
    goals, prior = solution.goal_columns, solution.prior if solution.has_own_prior else None
    return Problem(
        solution.model, list(params), solution.humans, solution.robots, goals.generator, prior, solution.human_params,
        phase_2=True, world_key=solution.dag.world_key,
    )  # fmt: skip
