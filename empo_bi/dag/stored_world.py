"""A world written in Python that is not at hand, as far as the store of its DAG knows it: states and transitions."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np

from empo_bi.dag.dag import Dag
from empo_bi.dag.level_blocks import Block, LevelBlocks
from empo_bi.errors import StoreMismatchError
from empo_bi.types import Json
from empo_bi.world.model import State, Transitions
from empo_bi.world.python_model import PythonModel


class StoredWorld:
    """Answers for the states of a DAG, from its transitions; nothing is known of other states.

    Parameters
    ----------
    dag : the DAG, opened without its world
    manifest : of its store
    actions : their names
    humans, robots : lists of agents
    """

    def __init__(self, dag: Dag, manifest: Json, actions: Sequence[str], humans: list[int], robots: list[int]) -> None:
        self._dag, self.stored_title = dag, str(manifest["title"])
        self.n_agents: int = manifest["n_agents"]
        self.action_space = SimpleNamespace(n=manifest["n_actions"])
        self.num_actions_per_agent = manifest.get("num_actions_per_agent", [manifest["n_actions"]] * self.n_agents)
        self.action_names, self.human_agent_indices, self.robot_agent_indices = list(actions), humans, robots

    def __repr__(self) -> str:
        return f"<{self.stored_title}, as far as it was stored>"

    def initial_state(self) -> State:
        return self._dag.states(0, np.zeros(1, dtype=np.int64))[0]

    def transition_probabilities(self, state: State, actions: Sequence[int]) -> Transitions | None:
        """``[(probability, successor), ...]``, None at a terminal state."""
        t, place = self._dag.place_of(state)
        block = next(LevelBlocks(self._dag, 1).of_states(t, np.array([place])), None)
        return None if block is None else self._transitions(t, block, self._profile(actions))

    def _profile(self, actions: Sequence[int]) -> int:
        """The number of an action profile; agent 0 is the least significant digit."""
        number, stride = 0, 1
        for action, n_actions in zip(actions, self.num_actions_per_agent, strict=True):
            if not 0 <= action < n_actions:
                raise ValueError(
                    f"actions {list(actions)}: agents have {self.num_actions_per_agent} actions, counted from 0"
                )
            number, stride = number + int(action) * stride, stride * n_actions
        return number

    def _transitions(self, t: int, block: Block, profile: int) -> Transitions:
        count_J = block.counts_of(self._dag.n_profiles)[0]
        first = int(count_J[:profile].sum())
        entry_K = block.entries_of(self._dag.n_profiles)[first : first + int(count_J[profile])]
        body_K = block.succ_K[entry_K].astype(np.int64)
        prob_K = block.prob_K[entry_K] if block.prob_K.size else np.ones(len(entry_K))
        body_N = np.unique(body_K)
        state_of: dict[int, State] = {}
        for level, chosen, places in self._dag.locate(t, body_N):
            state_of |= dict(zip(body_N[chosen].tolist(), self._dag.states(level, places), strict=True))
        return [(float(p), state_of[body]) for p, body in zip(prob_K, body_K.tolist(), strict=True)]


class StoredModel(PythonModel):
    """What the engine sees of it."""

    world: StoredWorld

    @property
    def title(self) -> str:
        return self.world.stored_title

    @property
    def name(self) -> str | None:
        return self.world.stored_title

    @property
    def has_own_durations(self) -> bool:
        """Perhaps; solutions say whether durations matter to them."""
        return False

    def durations(self, state: State, profile: Sequence[int], transitions: Transitions) -> Sequence[float]:
        raise StoreMismatchError(
            f"how long transitions take is known only to the world, {self.title}, which is not at hand: open with world=... "
            "(--world MODULE:FUNCTION)"
        )


def with_stored_world(dag: Dag, manifest: Json, actions: Sequence[str], humans: list[int], robots: list[int]) -> Dag:
    """A DAG that was opened without its world, with as much of it as is stored."""
    if dag.world is not None:
        return dag
    agents = [*humans, *robots]
    if any(agent >= manifest["n_agents"] for agent in agents):
        raise StoreMismatchError(f"the DAG has {manifest['n_agents']} agents, its solution is about agents {agents}")
    return dag.with_model(StoredModel(StoredWorld(dag, manifest, actions, humans, robots)))
