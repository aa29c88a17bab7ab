"""Worlds given as sparse arrays, or as the ``P`` table of a Gymnasium toy-text environment."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from empo_bi.errors import InvalidActionError, InvalidStateError, InvalidWorldError
from empo_bi.runtime.arguments import suggests_names
from empo_bi.runtime.wording import counted, short_repr
from empo_bi.types import IndexArray, Json, KeyArray
from empo_bi.world.expand import Expansion
from empo_bi.world.goals import PossibleGoal, ReachStatesGoal, TabularGoalGenerator
from empo_bi.world.model import PROBABILITY_TOLERANCE, Transitions
from empo_bi.world.packed import PackedWorld
from empo_bi.world.python_model import checked_numbers_of_actions
from empo_bi.world.toy_text import matrix_of_table, only_start, with_ended

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NumberedState = tuple[int, int]
Matrix: TypeAlias = "csr_array | npt.ArrayLike"  # of any sparse or dense kind
GoalStates = PossibleGoal | npt.ArrayLike  # a goal, numbers of states, or a mask of states
Goals = Mapping[str, GoalStates] | Sequence[GoalStates]

_OWN_ATTRIBUTES = {
    "max_steps", "n_states", "n_profiles", "agents", "action_space", "action_names", "human_agent_indices",
    "robot_agent_indices", "start", "ended_copies", "possible_goal_generator", "possible_goal_sampler", "_begin_R",
    "_succ_K", "_prob_K", "_present_state", "_profiles", "_digest_of_arrays", "_np_random", "_np_random_seed",
    "_attainment_cache", "_disk_dag", "_dag_cache",  # what the documented functions leave there
}  # fmt: skip


class NumberedStates:
    """States ``(step, number)``: a key is the number."""

    n_words = 1

    def encode(self, states: Iterable[Any]) -> tuple[IndexArray, KeyArray]:
        found = np.array([self._checked(state) for state in states], dtype=np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1:].astype(np.uint64)

    def decode(self, steps: npt.ArrayLike, key_SW: KeyArray) -> list[NumberedState]:
        step_S = np.broadcast_to(np.asarray(steps, dtype=np.int64), (len(key_SW),))
        return list(zip(step_S.tolist(), key_SW[:, 0].tolist(), strict=True))

    def problem_of_keys(self, key_SW: KeyArray, n_states: int = 2**31) -> str | None:
        """Why some keys are not numbers of states; None if all are."""
        if key_SW.shape[1] != 1:
            return f"keys of {key_SW.shape[1]} words; numbers of states have 1"
        most = int(key_SW.max(initial=0))
        return f"state {most:,} of {n_states:,} states" if most >= n_states else None

    @staticmethod
    def _checked(state: Any) -> NumberedState:
        try:
            step, number = map(index, state)
        except (TypeError, ValueError):
            raise InvalidStateError(f"{short_repr(state)} is not a state of this world; give (step, number)") from None
        if not (0 <= step < 2**31 and 0 <= number < 2**31):
            raise InvalidStateError(
                f"{short_repr(state)} is not a state of this world; step and number are from 0 to {2**31 - 1:,}"
            )
        return step, number


def _actions_of_each(n_profiles: int, n_agents: int) -> int:
    """How many actions agents have that all have the same number of them."""
    n_actions = round(n_profiles ** (1 / n_agents))
    if n_actions**n_agents != n_profiles:
        raise InvalidWorldError(
            f"{counted(n_profiles, 'action profile')} for n_agents={n_agents}; all agents have the same number A of "
            f"actions, so give A ** {n_agents} profiles, or say how many each has: num_actions_per_agent=[...]"
        )
    return n_actions


@suggests_names()
class ArrayWorld(PackedWorld):
    """A finite-horizon model given as sparse arrays. A state is ``(step, number)``.

    It is enumerated and solved by compiled kernels, like a gridworld, without a Python call for each state.

    Parameters
    ----------
    transitions : a matrix per action profile, or one matrix
        Sparse (or dense) matrices (S, S), one per action profile in profile-index order (agent 0 is the least significant
        digit; with one agent, one per action); or one matrix (S * J, S), whose row ``s * J + j`` has the successors of state
        ``s`` under profile ``j``. Rows sum to 1. A state whose rows are all empty is terminal.
    max_steps : int
        The horizon.
    goals : mapping or sequence
        Goals that humans may have: ``{name: states}``, where states are numbers, or a mask of all states. A goal is
        attained when the world reaches one of its states.
    weights : sequence of float, optional
        Weights of the goals; 1/n each by default.
    start : int
        The initial state.
    n_agents : int
        How many agents act together in one profile.
    num_actions_per_agent : sequence of int, optional
        How many actions each agent has, where they differ; as many profiles as their product.
    humans, robots : sequence of int, optional
        By default, agent 0 is the human and the others are robots.
    action_names : sequence of str, optional

    Attributes
    ----------
    n_states, n_profiles : int
    ended_copies : dict
        For worlds made by :meth:`from_gymnasium`: states that may be terminal or not, and the numbers of their terminal
        copies.

    Raises
    ------
    InvalidWorldError
        If rows are not distributions, or shapes do not fit.

    Examples
    --------
    Two states, two actions: one stays, the other moves to state 1 with probability 0.9.

    >>> import numpy as np
    >>> from empo_bi import ArrayWorld, Params, solve
    >>> stay, go = np.eye(2), np.array([[0.1, 0.9], [0.0, 1.0]])
    >>> world = ArrayWorld([stay, go], max_steps=2, goals={"there": [1]})
    >>> solution = solve(world, Params(beta_h=float("inf")), phase_2=False, precision="float64", progress=False)
    >>> [round(value, 9) for value in solution.Vh[0, 0][0].values()]  # 0.9 + 0.1 * 0.9
    [0.99]
    """

    action_space: spaces.Discrete

    def __init__(
        self,
        transitions: Matrix | Sequence[Matrix],
        *,
        max_steps: int,
        goals: Goals,
        weights: Sequence[float] | None = None,
        start: int = 0,
        n_agents: int = 1,
        humans: Sequence[int] | None = None,
        robots: Sequence[int] | None = None,
        action_names: Sequence[str] | None = None,
        num_actions_per_agent: Sequence[int] | None = None,
    ) -> None:
        n_agents = _whole("n_agents", n_agents, 1)
        self.max_steps = _whole("max_steps", max_steps, 1)
        matrix, self.n_states, self.n_profiles = _stacked(transitions)
        if num_actions_per_agent is None:
            n_actions = _actions_of_each(self.n_profiles, n_agents)
        else:  # an attribute only where it is given, since attributes are part of what a world is
            self.num_actions_per_agent = checked_numbers_of_actions(num_actions_per_agent, n_agents)
            n_actions = max(self.num_actions_per_agent)
            if math.prod(self.num_actions_per_agent) != self.n_profiles:
                expected = f"give {math.prod(self.num_actions_per_agent)}, one for each combination"
                found = f"{counted(self.n_profiles, 'action profile')} for {self.num_actions_per_agent}"
                raise InvalidWorldError(f"{found} = num_actions_per_agent; {expected}")
        if action_names is not None and len(action_names) != n_actions:
            raise InvalidWorldError(f"{len(action_names)} action_names for {counted(n_actions, 'action')}; give one each")
        self.agents = tuple(range(n_agents))
        self.action_space = spaces.Discrete(n_actions)
        self.action_names = [f"action {a}" for a in range(n_actions)] if action_names is None else list(action_names)
        self.human_agent_indices = [0] if humans is None else _checked_roles("humans", humans, n_agents)
        others = [i for i in self.agents if i not in self.human_agent_indices]
        self.robot_agent_indices = others if robots is None else _checked_roles("robots", robots, n_agents)
        both = set(self.human_agent_indices) & set(self.robot_agent_indices)
        if both:
            raise InvalidWorldError(f"agent {min(both)} is both a human and a robot; remove it from humans or from robots")
        self.start = _whole("start", start, 0)
        if self.start >= self.n_states:
            raise InvalidWorldError(f"start={start}; this world has states 0 to {self.n_states - 1}")
        self._begin_R, self._succ_K, self._prob_K = self._checked_rows(matrix)
        for array in (self._begin_R, self._succ_K, self._prob_K):
            array.flags.writeable = False
        self.ended_copies: dict[int, int] = {}
        self.possible_goal_generator = TabularGoalGenerator(_goals(goals, self.n_states), weights)
        self._present_state: NumberedState = (0, self.start)

    @classmethod
    def from_gymnasium(
        cls, environment: object, *, max_steps: int, goals: Goals, start: int | None = None, **options: Any
    ) -> ArrayWorld:
        """Make a world from a toy-text environment (FrozenLake, CliffWalking, Taxi), or from its table.

        Parameters
        ----------
        environment : environment with ``P``, or ``P`` itself
            ``P[state][action]`` has ``(probability, next state, reward, terminated)``. A state that is entered with
            ``terminated`` is terminal; if it is also entered without, it gets a terminal copy with a number after all
            others. Rewards are ignored: humans have goals instead.
        start : int, optional
            The initial state; by default the environment's, if it always starts in the same state.

        Examples
        --------
        >>> import gymnasium
        >>> from empo_bi import ArrayWorld
        >>> lake = gymnasium.make("FrozenLake-v1", map_name="4x4", is_slippery=True)
        >>> ArrayWorld.from_gymnasium(lake, max_steps=20, goals={"present": [15]})
        <ArrayWorld: 16 states, 1 agent (1 human, 0 robots), 4 actions, 1 goal, 20 steps>
        """
        bare = getattr(environment, "unwrapped", environment)
        table = bare if isinstance(bare, Mapping) else getattr(bare, "P", None)
        if table is None:
            raise InvalidWorldError(
                f"{short_repr(environment)} has no table P of exact probabilities; give a toy-text environment, or a table"
            )
        given = getattr(bare, "initial_state_distrib", None)
        start = only_start(given) if start is None else _whole("start", start, 0)
        matrix, ended_copies = matrix_of_table(table, start)
        chosen = [with_ended(goal, ended_copies) for goal in _goals(goals, len(table))]
        world = cls(matrix, max_steps=max_steps, goals=chosen, start=start, **options)
        world.ended_copies = ended_copies
        return world

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        n_goals = len(getattr(self.possible_goal_generator, "goals", ()))
        return (
            f"<{type(self).__name__}: {counted(self.n_states, 'state')}, {counted(len(self.agents), 'agent')} "
            f"({counted(len(self.human_agent_indices), 'human')}, {counted(len(self.robot_agent_indices), 'robot')}), "
            f"{counted(int(self.action_space.n), 'action')}, {counted(n_goals, 'goal')}, "
            f"{counted(self.max_steps, 'step')}>"
        )

    def _checked_rows(self, matrix: csr_array) -> tuple[IndexArray, npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Offsets of rows, successors, and positive probabilities; each row sums to 1."""
        begin_R, prob_K = matrix.indptr.astype(np.int64), matrix.data.astype(np.float64, copy=False)
        row_K = np.repeat(np.arange(len(begin_R) - 1), np.diff(begin_R))
        bad = np.flatnonzero(~(prob_K >= 0))
        if len(bad):
            raise InvalidWorldError(f"{self._where(row_K[bad[0]])} has a probability of {prob_K[bad[0]]}; give 0 or more")
        total_R = np.bincount(row_K, weights=prob_K, minlength=len(begin_R) - 1)
        length_SJ = np.diff(begin_R).reshape(self.n_states, self.n_profiles)
        goes_on_S = length_SJ.any(axis=1)
        bad = np.flatnonzero((~(np.abs(total_R - 1) <= PROBABILITY_TOLERANCE)) & np.repeat(goes_on_S, self.n_profiles))
        if len(bad):
            is_empty = length_SJ.ravel()[bad[0]] == 0
            raise InvalidWorldError(
                f"{self._where(bad[0])}: the probabilities sum to {total_R[bad[0]]!r}, expected 1"
                + ("; a state must be terminal for all profiles or for none" if is_empty else "")
            )
        prob_K = prob_K / total_R[row_K]
        return begin_R, matrix.indices.astype(np.int32), prob_K

    def _where(self, row: int | np.integer) -> str:
        state, profile = divmod(int(row), self.n_profiles)
        return f"state {state}, profile {profile}"

    @property
    def content_key(self) -> str | None:
        """Identifies the transitions, also in another process.

        None for a subclass, or if the object has other attributes: then all of its content counts.
        """
        if type(self) is not ArrayWorld or not vars(self).keys() <= _OWN_ATTRIBUTES:
            return None
        return f"{self._digest_of_arrays} {self.max_steps} {self.start} {len(self.agents)} {self.action_space.n}"

    @cached_property
    def _digest_of_arrays(self) -> str:
        """Computed once, since the arrays never change."""
        digest = hashlib.sha256()
        for array in (self._begin_R, self._succ_K, self._prob_K):
            digest.update(array.data)
        return digest.hexdigest()

    # --- for users ----------------------------------------------------------------------------------------------------

    def get_state(self) -> NumberedState:
        return self._present_state

    def set_state(self, state: Any) -> None:
        self._present_state = self._checked_state(state)

    def reset(self, *, seed: int | None = None, options: Json | None = None) -> tuple[Any, Json]:
        super().reset(seed=seed)
        self._present_state = (0, self.start)
        return self._present_state, {}

    def initial_state(self) -> NumberedState:
        return (0, self.start)

    def is_terminal(self, state: Any = None) -> bool:
        step, number = self._present_state if state is None else self._checked_state(state)
        first = number * self.n_profiles
        return step >= self.max_steps or self._begin_R[first] == self._begin_R[first + self.n_profiles]

    def transition_probabilities(self, state: Any, actions: int | Sequence[int]) -> Transitions | None:
        """``[(probability, successor), ...]`` for one action per agent, None at a terminal state."""
        step, number = self._checked_state(state)
        actions_N = self._actions_N
        profile = [index(action) for action in ([actions] if hasattr(actions, "__index__") else actions)]
        if len(profile) != len(actions_N) or not all(0 <= a < n for a, n in zip(profile, actions_N, strict=True)):
            most = f"{actions_N[0] - 1}" if len(set(actions_N)) == 1 else f"{[n - 1 for n in actions_N]}"
            raise InvalidActionError(
                f"actions {actions!r}; give one action per agent, {counted(len(self.agents), 'number')} from 0 to {most}"
            )
        if self.is_terminal((step, number)):
            return None
        row = number * self.n_profiles + sum(a * math.prod(actions_N[:i]) for i, a in enumerate(profile))
        entries = range(int(self._begin_R[row]), int(self._begin_R[row + 1]))
        return [(float(self._prob_K[k]), (step + 1, int(self._succ_K[k]))) for k in entries]

    def _checked_state(self, state: Any) -> NumberedState:
        step, number = NumberedStates._checked(state)
        if number >= self.n_states:
            raise InvalidStateError(f"{short_repr(state)}; this world has states 0 to {self.n_states - 1}")
        return step, number

    # --- for the engine -----------------------------------------------------------------------------------------------

    @property
    def n_words(self) -> int:
        return NumberedStates.n_words

    @property
    def initial_key(self) -> KeyArray:
        return np.array([[self.start]], dtype=np.uint64)

    def encode(self, states: Iterable[Any]) -> tuple[IndexArray, KeyArray]:
        return NumberedStates().encode(states)

    def problem_of_keys(self, key_SW: KeyArray) -> str | None:
        """Why some keys are not states of this world; None if all are. For keys from untrusted files."""
        return NumberedStates().problem_of_keys(key_SW, self.n_states)

    def decode(self, steps: npt.ArrayLike, key_SW: KeyArray) -> list[NumberedState]:
        return NumberedStates().decode(steps, key_SW)

    def expand(self, key_SW: KeyArray, profile_JN: npt.NDArray[np.int64] | None = None) -> Expansion:
        j_J = np.arange(self.n_profiles)
        if profile_JN is not None:
            actions_N = self._actions_N
            j_J = profile_JN @ np.array([math.prod(actions_N[:i]) for i in range(len(actions_N))], dtype=np.int64)
        row_R = (key_SW[:, :1].astype(np.int64) * self.n_profiles + j_J).ravel()
        begin_R = self._begin_R[row_R]
        count_R = self._begin_R[row_R + 1] - begin_R
        shift_R = begin_R - (count_R.cumsum() - count_R)
        entry_K = np.arange(count_R.sum()) + np.repeat(shift_R, count_R)
        key_KW = self._succ_K[entry_K, np.newaxis].astype(np.uint64)
        return Expansion(count_R.reshape(len(key_SW), len(j_J)), key_KW, self._prob_K[entry_K])

    def attainment(self, steps: npt.ArrayLike, key_SW: KeyArray, goals: Sequence[PossibleGoal]) -> npt.NDArray[np.bool_]:
        attained_SG = np.zeros((len(key_SW), len(goals)), dtype=np.bool_)
        number_S, others = key_SW[:, 0].astype(np.int64), []
        for g, goal in enumerate(goals):
            if type(goal) is ReachStatesGoal:  # a subclass may define is_achieved differently
                attained_SG[:, g] = goal.mask(self.n_states)[number_S]
            else:
                others.append(g)
        if others:
            for s, state in enumerate(self.decode(steps, key_SW)):
                attained_SG[s, others] = [bool(goals[g].is_achieved(state)) for g in others]
        return attained_SG


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or index(value) < least:
        raise InvalidWorldError(f"{name}={short_repr(value)}; give a whole number, {least} or more")
    return index(value)


def _checked_roles(name: str, agents: Sequence[int], n_agents: int) -> list[int]:
    found = [_whole(name, agent, 0) for agent in agents]
    if len(set(found)) < len(found) or any(agent >= n_agents for agent in found):
        raise InvalidWorldError(f"{name}={short_repr(agents)}; give different agents from 0 to {n_agents - 1}")
    return found


def _stacked(transitions: Matrix | Sequence[Matrix]) -> tuple[csr_array, int, int]:
    """All profiles in one CSR matrix (S * J, S) without zeros, and S and J."""
    from scipy import sparse  # importing it takes a fifth of a second

    is_list = isinstance(transitions, list | tuple) or getattr(transitions, "ndim", 2) == 3
    given: list[Matrix] = list(cast(Sequence[Matrix], transitions)) if is_list else [cast(Matrix, transitions)]
    try:
        matrices = [sparse.csr_array(one, dtype=np.float64) for one in given]
    except (TypeError, ValueError) as error:
        raise InvalidWorldError(
            f"transitions={short_repr(transitions)} ({error}); give a matrix or a list of matrices"
        ) from error
    if not matrices:
        raise InvalidWorldError("transitions is empty; give a matrix per action profile")
    flat = next((one.shape for one in matrices if one.ndim != 2), None)
    if flat is not None:
        raise InvalidWorldError(f"transitions have shape {flat}; give a matrix (S, S) per action profile, or one (S * J, S)")
    least = min(_least(one) for one in given)
    n_rows, n_states = matrices[0].shape
    wrong = next((one.shape for one in matrices if one.shape != (n_rows, n_states)), None)
    if wrong is not None or n_states == 0 or n_rows % n_states or n_rows == 0 or (is_list and n_rows != n_states):
        raise InvalidWorldError(
            f"transitions have matrices of shape {(n_rows, n_states) if wrong is None else wrong}; expected "
            + ("(S, S), the same for all profiles" if is_list else "(S * J, S), a row per state and profile")
        )
    n_profiles = len(matrices) if is_list else n_rows // n_states
    if is_list:
        # Row j * S + s becomes row s * J + j.
        order = np.arange(n_profiles * n_states).reshape(n_profiles, n_states).T.ravel()
        stacked = sparse.csr_array(sparse.vstack(matrices, format="csr")[order])
    else:
        stacked = matrices[0].copy()  # the user's matrix is not changed
    stacked.sum_duplicates()
    stacked.eliminate_zeros()
    if least < 0 and not (stacked.data < 0).any():  # hidden by other entries of the same row and column
        raise InvalidWorldError(f"transitions have a probability of {least}; give 0 or more")
    return stacked, n_states, n_profiles


def _least(matrix: Matrix) -> float:
    """The least entry as given, before entries of the same place are summed."""
    entries: Any = getattr(matrix, "data", matrix) if hasattr(matrix, "tocsr") else matrix
    return float(np.min(entries, initial=0.0))


def _goals(goals: Goals, n_states: int) -> list[PossibleGoal]:
    if not isinstance(goals, Mapping):
        if isinstance(goals, str) or not hasattr(goals, "__iter__"):
            raise InvalidWorldError(f"goals={short_repr(goals)}; give names with states, such as {{'home': [3]}}")
        goals = {getattr(states, "name", f"goal {g}"): states for g, states in enumerate(goals)}
    if not goals:
        raise InvalidWorldError("goals is empty; give names with states, such as {'home': [3]}")
    return [_goal(str(name), states, n_states) for name, states in goals.items()]


def _goal(name: str, states: PossibleGoal | npt.ArrayLike, n_states: int) -> PossibleGoal:
    if type(states) is ReachStatesGoal and max(states.numbers, default=0) >= n_states:
        raise InvalidWorldError(f"{states!r} has state {states.numbers[-1]}; this world has states 0 to {n_states - 1}")
    if hasattr(states, "is_achieved"):
        return cast(PossibleGoal, states)
    found = np.atleast_1d(np.asarray(states))
    if found.dtype == np.bool_ and found.shape == (n_states,):
        found = np.flatnonzero(found)
    if found.ndim != 1 or len(found) == 0 or not np.issubdtype(found.dtype, np.integer):
        raise InvalidWorldError(
            f"goal {name!r}: {short_repr(states)}; give numbers of states, or a mask of {n_states} booleans, not all False"
        )
    if found.min() < 0 or found.max() >= n_states:
        raise InvalidWorldError(f"goal {name!r} has states {short_repr(states)}; this world has states 0 to {n_states - 1}")
    return ReachStatesGoal(name, found.tolist())
