"""Objects with the attributes of a ``MultiGridEnv``, replaced by compiled gridworlds that were checked against them.

A translated world is used only if it has the same initial state and the same transitions along random walks. Everything is
asked of a copy: the object itself is never changed.
"""

from __future__ import annotations

import json
import math
import random
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

from empo_bi.errors import EmpoError, TranslationError, WorldWarning
from empo_bi.runtime.progress import say
from empo_bi.runtime.wording import short_repr
from empo_bi.types import Json
from empo_bi.world.gridworld import GridWorld
from empo_bi.world.model import State, Transitions
from empo_bi.world.multigrid import MultiGrid, is_multigrid, world_file_of
from empo_bi.world.noticed_parts import Parts, changed, noticed_parts
from empo_bi.world.python_model import AnyWorld, PythonModel, deep_copy_of
from empo_bi.world.source import read_source
from empo_bi.world.spec import read_spec

N_CHECKS = 300  # transitions that are compared
N_CHECKS_AGAIN = 10  # on every further look at an object of which nothing has changed
_TOLERANCE = 1e-9


def from_multigrid(env: object) -> GridWorld:
    """A compiled gridworld that is the same world as an environment of the public EMPO project.

    It has the environment's goals, humans and robots, and the environment itself as ``translated_from``. ``solve``,
    ``enumerate_dag``, ``plan`` and the documented functions call this by themselves.

    Raises
    ------
    TranslationError
        With the reason, if the environment cannot be written as a world file, or behaves differently.
    TypeError
        For an object without the attributes of a ``MultiGridEnv``.
    """
    if not is_multigrid(env):
        raise TypeError(f"env={short_repr(env)} does not have the attributes of a MultiGridEnv, such as grid and agents")
    found = _look_up(env)
    if found.world is None:
        raise TranslationError(found.reason)
    return found.world


def translated(world: AnyWorld, *, progress: bool) -> AnyWorld | GridWorld:
    """The world to use for what somebody gave: a gridworld where it can be translated, otherwise the object itself.

    With ``progress`` a line says what was done, once for each object.
    """
    given = world  # which the type checker forgets below
    if not is_multigrid(world):
        return given
    found = _look_up(world)
    name = type(world).__name__
    if progress and not found.is_announced:
        found.is_announced = True
        if found.world is None:
            say(f"{name} is asked state by state, since it cannot be translated to a compiled gridworld: {found.reason}")
        else:
            say(f"{name} was translated to a compiled gridworld, which agrees with it in {N_CHECKS} transitions")
    return given if found.world is None else found.world


@dataclass
class _Translation:
    """What was found out about an object, as long as its attributes say ``written``, and its others are ``plain``.

    ``parts`` are all its attributes; if any has changed, it is checked again, except for those that differ between any two
    copies (``restless``: random numbers, say). ``states`` are those that were met.
    """

    env: MultiGrid
    written: str
    plain: dict[str, object]
    parts: Parts = field(default_factory=dict)
    restless: set[tuple[str, str]] = field(default_factory=set)
    states: list[State] = field(default_factory=list)
    world: GridWorld | None = None
    reason: str = ""
    is_announced: bool = False
    n_looks: int = 0


# A memo of the objects that were asked about last, so that a sweep over parameters checks its world once.
_known: list[_Translation] = []
_MOST_KNOWN = 8


def _look_up(env: MultiGrid) -> _Translation:
    twin, mapping, reason = None, None, ""
    try:
        twin = _twin(env)
        mapping = world_file_of(twin)
    except TranslationError as error:
        reason = str(error)
    except Exception as error:  # whatever reading somebody's attributes leads to
        reason = f"its attributes cannot be read ({type(error).__name__}: {error})"
    written = reason if mapping is None else json.dumps([mapping, _roles(env)])
    known = next((found for found in _known if found.env is env), None)
    plain = _plain_values(twin)
    if known is not None and known.written == written and _still_holds(known, twin, plain):
        return known
    found = _Translation(env, written, plain, reason=reason, is_announced=known is not None and known.is_announced)
    if twin is not None and mapping is not None:
        found.parts = noticed_parts(twin)
        try:
            found.restless = changed(found.parts, noticed_parts(_twin(env)))
            found.world, found.states = _checked(env, twin, mapping)
        except EmpoError as error:
            found.reason = str(error)
    _known[:] = [found, *(other for other in _known if other.env is not env)][:_MOST_KNOWN]
    return found


def _still_holds(known: _Translation, twin: MultiGrid | None, plain: dict[str, object]) -> bool:
    """Whether what was found out is still true: checked in full if anything has changed, otherwise in a few transitions.

    What turns out to have other rules now is not translated any more.
    """
    if known.world is None or twin is None:
        return known.plain == plain
    if not _has_goals_of(known.world, known.env):
        return False
    known.n_looks += 1
    parts = noticed_parts(twin)
    try:
        if changed(parts, known.parts) - known.restless:
            known.states = _hold(twin, known.world, known.n_looks)
        else:
            _compare_some(PythonModel(twin), known.world, known.states, known.n_looks)
    except TranslationError as error:
        known.world, known.reason, known.is_announced = None, str(error), False
    known.parts, known.plain = parts, plain
    return True


def _twin(env: MultiGrid) -> MultiGrid:
    """A copy that has just been reset, without what planning left on it."""
    try:
        twin = deep_copy_of(env)
        twin.reset()
    except Exception as error:
        raise TranslationError(f"it cannot be copied and reset ({type(error).__name__}: {error})") from error
    return twin


def _plain_values(twin: MultiGrid | None) -> dict[str, object]:
    """Public numbers, texts and flags of an object and of its class: a subclass may have rules that depend on them."""
    found = {} if twin is None else {**vars(type(twin)), **getattr(twin, "__dict__", {})}
    return {
        name: value
        for name, value in found.items()
        if not name.startswith("_") and isinstance(value, bool | int | float | str | None)
    }


def _roles(env: MultiGrid) -> list[list[int]]:
    return [list(map(int, getattr(env, f"{who}_agent_indices", ()) or ())) for who in ("human", "robot")]


def _has_goals_of(world: GridWorld, env: MultiGrid) -> bool:
    return world.possible_goal_generator is getattr(env, "possible_goal_generator", None)


def _checked(env: MultiGrid, twin: MultiGrid, mapping: Json) -> tuple[GridWorld, list[State]]:
    """The compiled world, and the states in which it agrees with the object."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WorldWarning)  # it has no goals yet
        roles = zip(("humans", "robots"), _roles(env), strict=True)
        written = {**mapping, **{who: agents for who, agents in roles if agents}}
        world = GridWorld(read_spec(read_source(written)))
    states = _hold(twin, world, 0)
    world.possible_goal_generator = getattr(env, "possible_goal_generator", None)
    world.possible_goal_sampler = getattr(env, "possible_goal_sampler", None)
    world.translated_from = env
    return world, states


def _hold(twin: MultiGrid, world: GridWorld, seed: int) -> list[State]:
    """Hold both to each other; the states that were met."""
    _check_order(twin)
    model = PythonModel(twin)
    if len({*model.num_actions_per_agent}) > 1:
        raise TranslationError(f"its agents have different numbers of actions, {model.num_actions_per_agent}")
    if tuple(twin.get_state()) != world.initial_state():
        raise TranslationError("its initial state is " + _difference(twin.get_state(), world.initial_state()))
    return _compare_walks(model, world, seed)


def _check_order(twin: MultiGrid) -> None:
    places = [tuple(map(int, agent.pos))[::-1] for agent in twin.agents]
    if places != sorted(places):
        raise TranslationError(
            "its agents are not numbered in reading order, from the top row to the bottom, as in a world file"
        )


def _compare_walks(model: PythonModel, world: GridWorld, seed: int) -> list[State]:
    """Hold both to each other, from the initial state on, each time with a profile drawn at random."""
    draw, state, met = random.Random(seed), world.initial_state(), list[State]()
    for _ in range(N_CHECKS):
        met.append(state)
        successors = _compare_in(state, model, world, draw)
        state = world.initial_state()
        if successors is not None:
            state = draw.choices([successor for _, successor in successors], [p for p, _ in successors])[0]
    return met


def _compare_some(model: PythonModel, world: GridWorld, states: list[State], seed: int) -> None:
    """The same in some of the states that were met before."""
    draw = random.Random(seed)
    for state in draw.sample(states, N_CHECKS_AGAIN):
        _compare_in(state, model, world, draw)


def _compare_in(state: State, model: PythonModel, world: GridWorld, draw: random.Random) -> Transitions | None:
    profile = [draw.randrange(model.n_actions) for _ in range(model.n_agents)]
    theirs, ours = model.transitions(state, profile), world.transition_probabilities(state, profile)
    if theirs is None or ours is None:
        if theirs is not ours:
            ends, goes_on = ("environment", "translation") if theirs is None else ("translation", "environment")
            raise TranslationError(f"the {ends} ends in state {short_repr(state, 300)}, where the {goes_on} goes on")
        return None
    _compare(state, profile, theirs, ours)
    if model.has_own_durations and any(d != 1 for d in model.durations(state, profile, theirs)):
        raise TranslationError(f"it has durations of its own, other than 1, in state {short_repr(state, 300)}")
    return ours


def _compare(state: State, profile: Sequence[int], theirs: Transitions, ours: Transitions) -> None:
    found, expected = _by_successor(ours), _by_successor(theirs)
    for successor in found.keys() | expected.keys():
        p, q = expected.get(successor, 0.0), found.get(successor, 0.0)
        if not math.isclose(p, q, rel_tol=0, abs_tol=_TOLERANCE):
            raise TranslationError(
                f"in state {short_repr(state, 300)} with actions {list(profile)} it leads to {short_repr(successor, 300)} "
                f"with probability {p:g}, the rules of world files say {q:g}"
            )


def _by_successor(transitions: Transitions) -> dict[State, float]:
    found: dict[State, float] = {}
    for probability, successor in transitions:
        found[successor] = found.get(successor, 0.0) + float(probability)
    return found


def _difference(theirs: State, ours: State) -> str:
    """The first part in which two states differ."""
    for name, there, here in zip(("step", "agents", "mobile things", "things that change"), theirs, ours, strict=False):
        if there != here:
            return f"another one: {name} {short_repr(there, 200)}, by the rules of world files {short_repr(here, 200)}"
    return f"{short_repr(theirs, 200)}, of another form than {short_repr(ours, 200)}"
