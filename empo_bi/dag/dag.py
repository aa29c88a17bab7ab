"""The levelled DAG that users and the solver hold, in memory or on disk."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.attainment import FixedGoals
from empo_bi.dag.exported_model import ExportedModel
from empo_bi.dag.levels import Levels
from empo_bi.dag.slices import BodySlice, LevelSlice, as_array, places_in, transitions_of
from empo_bi.dag.state_index import KeyStateIndex, ListStateIndex, SharedStateIndex, StateIndex, StateKeys
from empo_bi.dag.sub_problem import WHOLE
from empo_bi.dag.world_snapshot import WorldSnapshot
from empo_bi.errors import InvalidStateError, StoreMismatchError
from empo_bi.memory.storage_report import Account, MemoryReport
from empo_bi.runtime.hooks import Displayed, provider_of
from empo_bi.runtime.wording import counted, short_repr
from empo_bi.types import Bodies, ByteArray, IndexArray, KeyArray
from empo_bi.world.as_model import UNKNOWN, Model, as_model
from empo_bi.world.model import State, World

ATTAINED = ("members", "added", "attained")  # arrays of a slice that tell where goals are attained


class Dag(Displayed):
    """All states of a world, level by level; in a gridworld, level = step.

    Use it as a context manager, or call :meth:`close`, to remove a temporary store at once; otherwise that happens when
    nobody uses the DAG any more.

    Attributes
    ----------
    world : the world, or None if a store was opened without the Python world it was made from
    model : what the engine sees of it
    horizon : int
        The last level; its states are terminal, unless the DAG is partial.
    is_finished : bool
        False for a store whose enumeration was interrupted: then only the levels so far are here.
    level_sizes : list of int
        States on each level.
    level_values : list of int
        What ``level_fct`` says of each level; simply 0, 1, 2, ... for gridworlds.
    n_states, n_bodies, n_transitions : int
        States of all levels; distinct states but for the step; stored (body, profile, successor) entries.
    """

    def __init__(
        self, world: World | None, levels: Levels, *, n_profiles: int, shares_bodies: bool, goals: GoalTable | None = None,
        keys: StateKeys | None = None,
    ) -> None:  # fmt: skip
        """``keys`` translates what a packed world's store has, where the world itself is not at hand."""
        self.world: Any = world
        self.model = UNKNOWN if world is None else as_model(world)
        self.levels = levels
        self.n_profiles = n_profiles
        self.goals = goals
        self.is_finished = levels.is_finished
        self.precision = "float16"  # how probabilities rest, as enumerate_dag was asked
        self.world_key: tuple[str, int | None] | None = None  # tells whether a world is still the one this was made of
        self.snapshot: WorldSnapshot | None = None  # likewise, of a world whose attributes change when it is asked
        self.part = WHOLE  # of the world that was enumerated
        self.begins: Sequence[State] = ()  # where runs begin, where that is not where the enumeration began
        self.goal_answers: dict[str, object] = {}  # what users' goals said of these states, by a key of the goals
        self.is_usable = True  # until it is closed
        self.horizon = len(levels) - 1
        self.level_sizes = [sizes.n_states for sizes in levels.sizes]
        self.level_values = [sizes.value for sizes in levels.sizes]
        self.n_states = sum(self.level_sizes)
        self.n_bodies = sum(sizes.n_bodies for sizes in levels.sizes)
        self.n_transitions = sum(sizes.n_transitions for sizes in levels.sizes)
        self.shares_bodies = shares_bodies
        self.first_state_T = np.cumsum([0, *self.level_sizes])  # number of each level's first state, then that of all states
        self._expanded: list[Bodies] = []  # by level, once somebody asks
        self._level_of_body: npt.NDArray[np.int32] | None = None  # likewise, where bodies are not shared
        self._book: StateIndex
        codec = keys if self.model.packed is None else self.model.packed
        if codec is not None:
            self._book = KeyStateIndex(codec, levels)
        else:
            self._book = SharedStateIndex(levels) if shares_bodies else ListStateIndex(levels)

    _display = "Dag.display"

    def __repr__(self) -> str:
        return f"<Dag: {self.summary()}>"

    def __enter__(self) -> Dag:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def of_world(self, world: World) -> Dag:
        """The same DAG, for a world that is equal to the one it was made from."""
        if world is self.world:
            return self
        return self.with_model(as_model(world))

    def with_model(self, model: Model) -> Dag:
        other = copy.copy(self)
        other.world, other.model = model.world, model
        return other

    def close(self) -> None:
        """Give back memory and, if the DAG is in a temporary store, the disk."""
        self.is_usable = False
        self.goal_answers.clear()
        self.levels.close()

    def level(self, t: int) -> LevelSlice:
        """Everything about level ``t``, negative levels counting from the last one."""
        t = self._checked_level(t)
        piece = self.levels.part(t, ("members", "ended"))
        body_S = as_array(piece.members)
        goes_on = piece.goes_on_S
        # A shared body's transitions are in the slice of the level where it was first expanded.
        going_on = body_S[goes_on]
        sources = (piece for i in self.needed(t) for piece in self.levels.stretches(i, self.n_profiles, going_on))
        rows = transitions_of(going_on, sources, self.n_profiles)
        check = self.levels.successor_check(t)
        if check is not None:
            check.check_all(rows.succ_K)
        count_SJ = np.zeros((len(body_S), self.n_profiles), dtype=np.int64)
        count_SJ[goes_on] = rows.count_MJ
        n_humans, n_goals = (len(self.goals.humans), self.goals.n_goals) if self.goals else (0, 0)
        return LevelSlice(t, body_S, count_SJ, rows.succ_K, rows.prob_K, self.attained(t), n_humans, n_goals)

    def prefetch(self, t: int) -> None:
        """Start reading level ``t`` in the background, as far as the cache has room for it."""
        t = self._checked_level(t)
        self.levels.prefetch([*self.needed(t), t] if self.shares_bodies else [t])

    def needed(self, t: int) -> list[int]:
        """Levels whose slices may hold transitions of level ``t``."""
        return [i for i in range(t + 1) if self.levels.sizes[i].n_transitions] if self.shares_bodies else [t]

    def holders_of(self, t: int, body_M: IndexArray) -> list[int]:
        """Levels whose slices do hold transitions of some bodies of level ``t``, which ascend."""
        if len(self._expanded) == 0:
            self._expanded = [piece.expanded for piece in self.levels.heads()]
        return [i for i in self.needed(t) if places_in(self._expanded[i], body_M)[0].any()]

    def keys(self, t: int, places: Bodies | None = None) -> KeyArray | None:
        """Packed keys of the states of level ``t`` of a packed world, or of some of its places, (S, W); None for others.

        ``places`` is a range of step 1, or an array.
        """
        t = self._checked_level(t)
        if not isinstance(self._book, KeyStateIndex):
            return None
        members = self.levels.members(t)
        if isinstance(places, range):
            body_S = as_array(members[places.start : places.stop])
        else:
            body_S = as_array(members) if places is None else as_array(members)[places]
        return self._book.keys(t, body_S)

    def attained(self, t: int) -> ByteArray | None:
        """One bit per (human, goal) for each state of level ``t``, (S, X) uint8; None without goals."""
        t = self._checked_level(t)
        if self.goals is None:
            return None
        if self.goals.is_stored:
            piece = self.levels.part(t, ATTAINED)
            return self._stored_attainment(t, piece, as_array(piece.members))
        assert self.goals.fixed is not None
        return self.attainment_of(self.goals.fixed, t)

    def attainment_of(self, goals: FixedGoals, t: int) -> ByteArray:
        """The same for any goals, which are asked about each state."""
        keys = self.keys(t)
        return goals.rows(self.model.packed, self.level_values[t], keys, self.states(t) if keys is None else None)

    def _stored_attainment(self, t: int, piece: BodySlice, body_S: IndexArray) -> ByteArray | None:
        if not piece.attained_by_body or not self.shares_bodies:
            return piece.attained
        attained_SX: ByteArray | None = None
        for source in (self.levels.part(i, ATTAINED) for i in range(t + 1) if self.levels.sizes[i].n_bodies):
            if source.attained is not None:
                inside, place = places_in(source.added, body_S)
                if attained_SX is None:
                    attained_SX = np.zeros((len(body_S), source.attained.shape[1]), dtype=np.uint8)
                attained_SX[inside] = source.attained[place]
        return attained_SX

    def states(self, t: int, place_M: IndexArray | None = None) -> list[Any]:
        """States of level ``t``, in the order of ``level(t)``; all of them, or those at some places."""
        t = self._checked_level(t)
        body_S = as_array(self.levels.members(t))
        return self._book.states(t, body_S if place_M is None else body_S[place_M])

    def starts(self) -> dict[int, IndexArray]:
        """Where runs begin, each state as likely as any other: by level, the places of these states, ascending.

        Raises
        ------
        StoreMismatchError
            For a store that starts on several levels and was opened without saying where: only its lowest level has
            nothing but states to start with.
        """
        states = self.begins or self.part.starts
        if not states:
            n_starts = self.part.content.get("n_starts", self.level_sizes[0])
            if n_starts != self.level_sizes[0]:
                raise StoreMismatchError(
                    f"this was enumerated from {n_starts:,} states on several levels, and the store does not say which; "
                    "solve with the same start and out, which opens it, to ask what happens from there"
                )
            return {0: np.arange(self.level_sizes[0])}
        found: dict[int, list[int]] = {}
        for t, place in sorted(self.place_of(state) for state in states):
            found.setdefault(t, []).append(place)
        return {t: np.array(places) for t, places in found.items()}

    def terminal_states(self) -> list[State]:
        """All states without successors, level by level: where the world ends, or where a sub-problem stops.

        Examples
        --------
        >>> from empo_bi import enumerate_dag, events, load_world
        >>> world = load_world("asymmetric_freeing", max_steps=8)
        >>> freed = events.thing_gone("rock", (2, 2))
        >>> ends = enumerate_dag(world, stop=freed, progress=False).terminal_states()
        >>> len(ends), min(state[0] for state in ends)
        (1080, 4)
        """
        return [state for t in range(self.horizon + 1) for state in self.states(t, self._terminal_places(t))]

    def _terminal_places(self, t: int) -> IndexArray:
        return np.flatnonzero(self.level(t).count_SJ.sum(axis=1) == 0)

    def locate(self, t: int, body_N: npt.NDArray[np.integer]) -> Iterator[tuple[int, IndexArray, IndexArray]]:
        """Where bodies that follow level ``t`` are: levels, which of the bodies are there, and their places there.

        ``body_N`` ascends.
        """
        if not self.shares_bodies and self._level_of_body is None:
            self._level_of_body = np.zeros(self.n_bodies, dtype=np.int32)
            for u, piece in enumerate(self.levels.heads()):
                self._level_of_body[as_array(piece.added)] = u
        level_N = np.full(len(body_N), t + 1) if self._level_of_body is None else self._level_of_body[body_N]
        for u in np.unique(level_N).tolist():
            chosen = np.flatnonzero(level_N == u)
            yield u, chosen, places_in(self.levels.members(u), body_N[chosen].astype(np.int64))[1]

    def numbers_of(self, t: int, body_N: npt.NDArray[np.integer]) -> IndexArray:
        """Numbers, among all states level after level, of ascending bodies that follow level ``t``."""
        number_N = np.zeros(len(body_N), dtype=np.int64)
        for u, chosen, place in self.locate(t, body_N):
            number_N[chosen] = self.first_state_T[u] + place
        return number_N

    def place_of(self, state: Any) -> tuple[int, int]:
        """Level of a state, and its place among the states of that level."""
        try:
            places = self._book.find(state)
        except TypeError as error:
            raise InvalidStateError(f"{short_repr(state)} is not a state: {error}") from error
        for t, body in places:
            if 0 <= t <= self.horizon:
                inside, place = places_in(self.levels.members(t), np.array([body], dtype=np.int64))
                if inside[0]:
                    return t, int(place[0])
        so_far = "" if self.is_finished else " on the levels found so far"
        raise InvalidStateError(
            f"{short_repr(state, 300)} cannot be reached{so_far} from the start within levels 0 to {self.horizon}; "
            "dag.states(t) lists the states of level t"
        )

    def bodies_of(self, state: Any) -> list[int]:
        """The number of the body of a state, in a list; none if it is not a state of this DAG."""
        return [body for _, body in self._book.find(state)]

    def index_of(self, state: Any) -> int:
        """The number of a state among all states, level after level."""
        t, place = self.place_of(state)
        return int(self.first_state_T[t]) + place

    def summary(self) -> str:
        """Sizes in one line."""
        return (
            f"{counted(self.n_states, 'state')} on levels 0 to {self.horizon}, "
            f"{self.n_bodies:,} {'body' if self.n_bodies == 1 else 'bodies'}, "
            f"{counted(self.n_transitions, 'transition')}, {self.levels.describe()}"
            + ("" if self.is_finished else "; unfinished: more levels follow")
        )

    def memory_report(self) -> MemoryReport:
        """What is stored how, and by how much smaller than it might be.

        Examples
        --------
        >>> from empo_bi import enumerate_dag, load_world
        >>> report = enumerate_dag(load_world("asymmetric_freeing", max_steps=8), progress=False).memory_report()
        >>> report.reductions["together"] > 20
        True
        """
        entries = self._entries_of_states()
        pairs = self.n_states * self.n_profiles
        n_columns = 0 if self.goals is None else len(self.goals.humans) * self.goals.n_goals
        packed = self.levels.bytes_by_array()
        on_disk = self.levels.compressed_bytes()
        transitions, goals = ("succ", "prob", "count", "members", "expanded", "added", "ended"), ("attained",)
        states = tuple(name for name in packed if name not in (*transitions, *goals))

        def account(name: str, dense: int, arrays: tuple[str, ...]) -> Account:
            compressed = None if on_disk is None else sum(on_disk.get(array, 0) for array in arrays)
            return Account(name, 8 * dense, 4 * dense, sum(packed.get(array, 0) for array in arrays), compressed)

        return MemoryReport(
            self.summary(),
            [
                account("transitions", 2 * entries + pairs, transitions),
                account("goals attained", self.n_states * n_columns, goals),
                account("states", self.n_states * self._numbers_per_state(), states),
            ],
        )

    def to_drn(
        self, path: Any, *, deciding: int | Sequence[int] | None = None, unrolled: bool = False, overwrite: bool = False,
        progress: bool = True,
    ) -> ExportedModel:  # fmt: skip
        """Write all that can happen as a Markov decision process in DRN, the text format of the model checker Storm.

        Parameters
        ----------
        path : path of the file, such as ``model.drn``
        deciding : agent, or list of agents, optional
            Whose actions are the choices of the process. Everybody else becomes part of the environment, with all actions
            equally likely. By default all decide, and choices are action profiles.
        unrolled : bool
            Write a state once for each level that it is on, so that properties without a bound can be asked, too. By default
            states that differ by their step only are one state, where that is exact for properties such as
            ``F<=horizon``: where nothing depends on the step but the end of the run.
        overwrite : bool
            Replace a file that is there.
        progress : bool
            Show a bar, where it takes over a second.

        Returns
        -------
        ExportedModel
            With the labels of goals, and :meth:`~ExportedModel.queries` to ask for them. Goals have labels if they are the
            same in every state.

        Examples
        --------
        >>> import tempfile
        >>> from empo_bi import enumerate_dag, load_world
        >>> dag = enumerate_dag(load_world("asymmetric_freeing", max_steps=8), precision="exact", progress=False)
        >>> model = dag.to_drn(tempfile.mkdtemp() + "/freeing.drn", deciding=0)
        >>> model.n_states, model.n_choices
        (1144, 3400)
        >>> model.queries()["goal_0_1"]
        'Pmax=? [F<=8 "goal_0_1"]'
        """
        write = provider_of("Dag.to_drn")
        written: ExportedModel = write(
            self, path, deciding=deciding, unrolled=unrolled, overwrite=overwrite, progress=progress
        )
        return written

    def to_umb(
        self, path: Any, *, deciding: int | Sequence[int] | None = None, unrolled: bool = False, overwrite: bool = False,
        progress: bool = True,
    ) -> ExportedModel:  # fmt: skip
        """The same as :meth:`to_drn` in UMB, a binary format that Storm (stormpy 2.0) reads many times faster."""
        write = provider_of("Dag.to_umb")
        written: ExportedModel = write(
            self, path, deciding=deciding, unrolled=unrolled, overwrite=overwrite, progress=progress
        )
        return written

    def _entries_of_states(self) -> int:
        """Successors of all (state, profile) pairs, were no body shared; roughly, where levels are not nested."""
        if not self.shares_bodies:
            return self.n_transitions
        n_bodies = np.array([sizes.n_bodies for sizes in self.levels.sizes])
        if self.model.packed is not None and n_bodies.cumsum().tolist() == self.level_sizes:
            return sum(sizes.n_transitions * (self.horizon - t) for t, sizes in enumerate(self.levels.sizes))
        per_body = self.n_transitions / max(1, sum(sizes.n_bodies for sizes in self.levels.sizes if sizes.n_transitions))
        return round(sum(self.level_sizes[:-1]) * per_body)

    def _numbers_per_state(self) -> int:
        return _leaves(self.states(0)[0])

    def _checked_level(self, t: int) -> int:
        if not -self.horizon - 1 <= t <= self.horizon:
            raise IndexError(f"level {t}: this DAG has levels 0 to {self.horizon}")
        return t % (self.horizon + 1)


def _leaves(thing: Any) -> int:
    """Numbers in nested tuples."""
    return sum(map(_leaves, thing)) if isinstance(thing, tuple | list) else 1


class GoalTable:
    """Whose goals the attainment bits are about: ``names[h][g]``, and the goals themselves where they are at hand.

    ``is_stored`` says whether the bits are in the slices; otherwise they are computed when a level is read.
    """

    def __init__(self, humans: list[int], names: list[list[str]], fixed: FixedGoals | None, *, is_stored: bool) -> None:
        self.humans, self.names, self.fixed, self.is_stored = humans, names, fixed, is_stored

    def __repr__(self) -> str:
        own = [[name for name in names if name != "None"] for names in self.names]  # without what fills up
        lines = [f"human {human}: {', '.join(names)}" for human, names in zip(self.humans, own, strict=True)]
        return f"<goals of {len(self.humans)} humans, in the order of attained_SHG; {'; '.join(lines)}>"

    @property
    def n_goals(self) -> int:
        return len(self.names[0])
