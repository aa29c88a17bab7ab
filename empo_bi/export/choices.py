r"""The choices of the deciding agents in each state, with all other agents as part of the environment.

The others play each of their O profiles with the same probability. The choice c leads to s' with

.. math:: P(s' \mid s, c) = \frac{1}{O} \sum_o T(s' \mid s, (c, o))

A state without successors has one nameless choice, to stay.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from empo_bi.dag.dag import Dag
from empo_bi.export.model_states import StateBlock, goes_on
from empo_bi.runtime.jit import kernel
from empo_bi.types import ByteArray, FloatArray, IndexArray

GOES_ON, TERMINAL, HORIZON = range(3)  # kinds of states: with successors, without successors, on the last level

Deciding = int | Sequence[int] | None  # an agent, several agents, or None for all


@dataclass(frozen=True)
class ChoiceBlock:
    """M consecutive states with their C choices and K branches.

    Attributes
    ----------
    first : the number of the first state
    kind_M : (M,) uint8, :data:`GOES_ON`, :data:`TERMINAL` or :data:`HORIZON`
    attained_MX : (M, X) uint8, or None
    n_choices_M : (M,) int64
    name_C : (C,) uint32, numbers of names, 0 for none
    n_branches_C : (C,) int64
    target_K : (K,) int64, ascending and distinct within a choice
    prob_K : (K,) float64
    """

    first: int
    kind_M: ByteArray
    attained_MX: ByteArray | None
    n_choices_M: IndexArray
    name_C: npt.NDArray[np.uint32]
    n_branches_C: IndexArray
    target_K: IndexArray
    prob_K: FloatArray


@dataclass(frozen=True)
class Choices:
    """Profiles of all agents as choices of the deciding ones.

    Attributes
    ----------
    deciding : agents, ascending
    others : the other agents, ascending
    profile_CO : (C, O) int64, the profiles of all agents in which the deciding ones play c; the lowest agent is the least
        significant digit of c
    names : names of choices, numbered from 1; number 0 is not a name
    name_C : (C,) uint32, the number of each choice's name
    """

    deciding: tuple[int, ...]
    others: tuple[int, ...]
    profile_CO: IndexArray
    names: list[str]
    name_C: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, dag: Dag, deciding: Deciding) -> Choices:
        """``deciding`` is an agent, several agents, or None for all."""
        if dag.world is None:
            if deciding is not None:
                raise ValueError(
                    f"deciding={deciding!r}: this DAG was opened without its world, so the agents' parts in a profile are "
                    "unknown; open it with open_dag(path, world=...), or leave out deciding"
                )
            profiles = [f"profile_{j}" for j in range(dag.n_profiles)]
            numbers = np.arange(dag.n_profiles)
            return cls((), (), numbers[:, np.newaxis], ["", *profiles], (numbers + 1).astype(np.uint32))
        n_agents, actions_N = dag.model.n_agents, dag.model.num_actions_per_agent
        agents = _checked(deciding, n_agents)
        others = tuple(agent for agent in range(n_agents) if agent not in agents)
        profile_CO = np.add.outer(_parts(agents, actions_N), _parts(others, actions_N))
        plain = _plain_names(dag.model.action_names)
        names = [""]
        if agents:
            played = itertools.product(*(range(actions_N[agent]) for agent in reversed(agents)))  # the first one fastest
            names += [",".join(plain[action] for action in reversed(actions)) for actions in played]
        name_C = np.arange(1, len(names), dtype=np.uint32) if agents else np.zeros(1, dtype=np.uint32)
        return cls(agents, others, profile_CO, names, name_C)

    def of_block(self, block: StateBlock, horizon: int) -> ChoiceBlock:
        has_more = goes_on(block)
        kind_M = np.where(has_more, GOES_ON, HORIZON if block.level == horizon else TERMINAL).astype(np.uint8)
        n_choices_M = np.where(has_more, len(self.profile_CO), 1)
        n_choices = int(n_choices_M.sum())
        name_C, n_branches_C = np.zeros(n_choices, dtype=np.uint32), np.zeros(n_choices, dtype=np.int64)
        room = len(block.succ_K) + len(kind_M)
        target_K, prob_K = np.empty(room, dtype=np.int64), np.empty(room)
        n_branches = merge(
            block.first, block.count_MJ, block.succ_K, block.prob_K, self.profile_CO, self.name_C, name_C, n_branches_C,
            target_K, prob_K,
        )  # fmt: skip
        return ChoiceBlock(
            block.first, kind_M, block.attained_MX, n_choices_M, name_C, n_branches_C, target_K[:n_branches],
            prob_K[:n_branches],
        )  # fmt: skip


def _checked(deciding: Deciding, n_agents: int) -> tuple[int, ...]:
    if deciding is None:
        return tuple(range(n_agents))
    given = list(deciding) if isinstance(deciding, Sequence | np.ndarray) and not isinstance(deciding, str) else [deciding]
    are_agents = all(isinstance(agent, int | np.integer) and not isinstance(agent, bool) for agent in given)
    if not are_agents or len(set(given)) < len(given) or not all(0 <= agent < n_agents for agent in given):
        raise ValueError(
            f"deciding={deciding!r}; give an agent from 0 to {n_agents - 1}, a list of different agents, or None for all"
        )
    return tuple(sorted(int(agent) for agent in given))


def _parts(agents: tuple[int, ...], actions_N: Sequence[int]) -> IndexArray:
    """The contribution of some agents to a profile's index, for each of their profiles; the first agent changes fastest."""
    part = np.zeros(1, dtype=np.int64)
    for agent in agents:
        part = np.add.outer(np.arange(actions_N[agent]) * math.prod(actions_N[:agent]), part).ravel()
    return part


def _plain_names(names: list[str]) -> list[str]:
    """Unique names of actions without blanks, commas and other special characters."""
    plain = [re.sub(r"[^\w.+-]", "_", name, flags=re.ASCII) or "_" for name in names]
    return plain if len(set(plain)) == len(plain) else [f"{name}_{a}" for a, name in enumerate(plain)]


@kernel
def merge(  # type: ignore[no-untyped-def]
    first, count_MJ, succ_K, prob_K, profile_CO, own_name_C, name_C, n_branches_C, target_K, merged_K
):
    """Write names, numbers of branches, targets and probabilities of all choices of M states; return how many branches.

    Targets of a choice ascend and are distinct: probabilities are summed in the order of profiles and divided by the number
    of the other agents' profiles.
    """
    M, J = count_MJ.shape
    C, n_others = profile_CO.shape
    start_J = np.empty(J + 1, np.int64)
    c, k, begin = 0, 0, 0
    for m in range(M):
        start_J[0] = begin
        for j in range(J):
            start_J[j + 1] = start_J[j] + count_MJ[m, j]
        if start_J[J] == begin:  # no successors
            target_K[k], merged_K[k] = first + m, 1.0
            n_branches_C[c] = 1
            c, k = c + 1, k + 1
            continue
        begin = start_J[J]
        for choice in range(C):
            low = k
            for o in range(n_others):
                j = profile_CO[choice, o]
                for i in range(start_J[j], start_J[j + 1]):
                    target = succ_K[i]
                    at = k
                    if k > low and target_K[k - 1] >= target:  # else it goes to the end, as most do
                        at = low + np.searchsorted(target_K[low:k], target)
                    if at < k and target_K[at] == target:
                        merged_K[at] += prob_K[i]
                        continue
                    for n in range(k, at, -1):
                        target_K[n], merged_K[n] = target_K[n - 1], merged_K[n - 1]
                    target_K[at], merged_K[at] = target, prob_K[i]
                    k += 1
            if n_others > 1:
                for n in range(low, k):
                    merged_K[n] /= n_others
            name_C[c], n_branches_C[c] = own_name_C[choice], k - low
            c += 1
    return k
