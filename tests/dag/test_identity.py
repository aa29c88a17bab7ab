"""Keys of users' functions and objects: the same for the same thing, in any process, and None where nobody can tell."""

from __future__ import annotations

import functools
import importlib
import json
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import MethodType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit
from planning_worlds import At, Ring
from store_tools import environment, run_python

from empo_bi import GridWorld, Params, compute_human_policy_prior, load_world, solve
from empo_bi.dag.world_fingerprint import key_of
from empo_bi.results.priors import CallablePrior
from empo_bi.world.as_model import as_model

# What a user may have in a file of his own. A belief depends on what stands beside it.
USERS_FILE = '''
import functools

SHARES = (0.25, 0.75)


def belief(state, human, action, share=0.5, *, mass=1.0):
    return [(mass * share, [0, 0, 0]), (mass * SHARES[0], [1, 1, 1])]


def other_belief(state, human, action, share=0.5, *, mass=1.0):
    return [(mass * share, [0, 0, 0]), (mass * SHARES[0], [1, 1, 1])]


def prior(state, human, goal):
    return SHARES


class Habit:
    """A prior with a state."""

    def __init__(self, share, names=("Ada",)):
        self.share, self.names, self.table = share, set(names), {(0, name): share for name in names}

    def __call__(self, state, human, goal):
        return [self.share, 1 - self.share]

    def reversed(self, state, human, goal):
        return [1 - self.share, self.share]


class OtherHabit(Habit):
    pass


class Slotted:
    __slots__ = ("share",)

    def __init__(self, share):
        self.share = share

    def __call__(self, state, human, goal):
        return [self.share, 1 - self.share]


class Follower:
    """Holds a function."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *asked):
        return self.function(*asked)


THINGS = {
    "a function": belief,
    "another function": other_belief,
    "a partial function": functools.partial(belief, share=0.25),
    "an object": Habit(0.5, ["Ada", "Bert", "Cleo", "Dora"]),
    "an object with slots": Slotted(0.5),
    "a method": Habit(0.5).reversed,
    "an object that holds a function": Follower(belief),
    "an object that holds a method": Follower(Habit(0.5).reversed),
}
'''
CHANGE = ("SHARES = (0.25, 0.75)", "SHARES = (0.75, 0.25)")
NAMES = [line.split('"')[1] for line in USERS_FILE.splitlines() if line.startswith('    "a')]

Importer = Callable[..., Any]


@pytest.fixture
def users_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Importer:
    """Writes the user's file, with a word replaced by another, and imports it as a new process would."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a file that changes within a second is read again

    def imported(word: str = "", other: str = "") -> Any:
        assert word in USERS_FILE
        (tmp_path / "users_file.py").write_text(USERS_FILE.replace(word, other) if word else USERS_FILE)
        monkeypatch.delitem(sys.modules, "users_file", raising=False)
        importlib.invalidate_caches()
        return importlib.import_module("users_file")

    return imported


def keys_of(module: Any) -> dict[str, str]:
    found = {name: key_of(thing) for name, thing in module.THINGS.items()}
    assert None not in found.values(), found
    return found  # type: ignore[return-value]


# --- the same thing, the same key -------------------------------------------------------------------------------------


def test_everything_that_can_be_told_apart_has_a_key_of_its_own(users_module: Importer) -> None:
    found = keys_of(users_module())
    assert list(found) == NAMES
    assert len(set(found.values())) == len(NAMES)
    assert key_of(None) == "none"


def test_a_file_that_is_imported_again_gives_the_same_keys(users_module: Importer) -> None:
    assert keys_of(users_module()) == keys_of(users_module())


def test_another_process_gives_the_same_keys(users_module: Importer, tmp_path: Path) -> None:
    """Also one that hashes texts otherwise, so that its sets have another order."""
    expected = keys_of(users_module())
    script = """
import json, sys
sys.path.insert(0, sys.argv[1])
import users_file
from empo_bi.dag.world_fingerprint import key_of
print(json.dumps({name: key_of(thing) for name, thing in users_file.THINGS.items()}))
"""
    for seed in ("1", "2"):
        child = run_python(script, tmp_path, env=environment(PYTHONHASHSEED=seed))
        assert child.returncode == 0, child.stderr
        assert json.loads(child.stdout) == expected


# --- functions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_key_depends_on_everything_in_the_file(name: str, users_module: Importer) -> None:
    """A function reads constants and calls others that stand beside it."""
    before = keys_of(users_module())
    assert keys_of(users_module(*CHANGE))[name] != before[name]
    assert keys_of(users_module())[name] == before[name]


def test_functions_of_the_same_file_are_told_apart_by_their_names(users_module: Importer) -> None:
    module = users_module()
    assert key_of(module.belief) != key_of(module.other_belief)


def test_default_arguments_count(users_module: Importer, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may come from anywhere, such as the command line, which the source does not tell."""
    belief = users_module().belief
    keys = {key_of(belief)}
    monkeypatch.setattr(belief, "__defaults__", (0.75,))
    keys.add(key_of(belief))
    monkeypatch.setattr(belief, "__kwdefaults__", {"mass": 2.0})
    keys.add(key_of(belief))
    assert len(keys) == 3
    assert None not in keys


def test_a_partial_function_is_told_by_its_function_and_all_that_it_was_given(users_module: Importer) -> None:
    module = users_module()
    belief, partial = module.belief, functools.partial
    different = [
        belief,
        partial(belief),
        partial(module.other_belief),
        partial(belief, (0, 0)),
        partial(belief, (0, 1)),
        partial(belief, (0, 0), 1),
        partial(belief, share=0.25),
        partial(belief, share=0.75),
        partial(belief, mass=0.25),
        partial(module.Habit(0.25), (0, 0)),
        partial(module.Habit(0.75), (0, 0)),
    ]
    keys = [key_of(thing) for thing in different]
    assert None not in keys
    assert len(set(keys)) == len(different)
    assert key_of(partial(belief, share=0.25)) == key_of(partial(belief, share=0.25))
    assert key_of(partial(belief, (0, 0), 1)) == key_of(partial(partial(belief, (0, 0)), 1))


def test_what_one_function_made_cannot_be_told_from_what_it_made_before() -> None:
    def plays(action: int) -> Callable[..., Any]:
        def belief(state: Any, human: int, own: int) -> Any:
            return [(1.0, [action] * 3)]

        return belief

    def plain(state: Any, human: int, own: int) -> Any:
        """Closes over nothing, and still there may be many of its name."""

    assert key_of(plays(0)) is None
    assert key_of(plain) is None
    assert key_of(lambda state, human, own: [(1.0, [0] * 3)]) is None
    assert key_of(functools.partial(plays(0), (0, 0))) is None
    assert key_of(functools.partial(functools.partial(lambda *_: None))) is None


def typed(share: float) -> Any:
    """A function and a class without source, as those that were typed in by hand."""
    namespace: dict[str, Any] = {"__name__": "nowhere"}
    exec(f"def prior(state, human, goal):\n    return [{share}, 0.5]\nclass Habit:\n    act = prior", namespace)
    return namespace


@pytest.mark.parametrize("make", [lambda found: found["prior"], lambda found: found["Habit"]()])
def test_what_has_no_source_is_told_by_its_bytecode(make: Any) -> None:
    one, again, other = (key_of(make(typed(share))) for share in (0.5, 0.5, 0.25))
    assert one == again is not None
    assert other not in (None, one)


LAZINESS = 0.1


def lazy_prior(state: Any, human: int, goal: Any) -> list[float]:
    return [LAZINESS, helping(goal)]


def helping(goal: Any) -> float:
    return 1 - LAZINESS


class LazyPrior:
    def __call__(self, state: Any, human: int, goal: Any) -> list[float]:
        return lazy_prior(state, human, goal)


@pytest.mark.parametrize("thing", [lazy_prior, LazyPrior(), helping, functools.partial(lazy_prior, 1)])
def test_global_values_that_a_function_uses_count(thing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of(thing)
    monkeypatch.setitem(globals(), "UNUSED", 1)
    assert key_of(thing) == before is not None
    monkeypatch.setitem(globals(), "LAZINESS", 0.5)
    assert key_of(thing) not in (None, before)


def test_modules_that_a_function_uses_count(users_module: Importer, monkeypatch: pytest.MonkeyPatch) -> None:
    def key(*change: str) -> str | None:
        monkeypatch.setitem(globals(), "users_file", users_module(*change))
        return key_of(use_module)

    before = key()
    assert key() == before is not None
    assert key(*CHANGE) not in (None, before)
    users_module().SHARES = (0.5, 0.5)
    sys.modules["users_file"].SHARES = (0.1, 0.9)
    monkeypatch.setitem(globals(), "users_file", sys.modules["users_file"])
    assert key_of(use_module) not in (None, before)


def use_module(state: Any, human: int, goal: Any) -> Any:
    return users_file.SHARES  # type: ignore[name-defined]  # noqa: F821


# --- objects and their methods ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Habit", "Slotted"])
def test_an_object_is_told_by_its_values(kind: str, users_module: Importer) -> None:
    make = getattr(users_module(), kind)
    assert key_of(make(0.5)) == key_of(make(0.5)) is not None
    assert key_of(make(0.5)) != key_of(make(0.25))


def test_a_changed_object_has_another_key(users_module: Importer) -> None:
    habit = users_module().Habit(0.5)
    before = key_of(habit)
    habit.table[0, "Ada"] = 0.25
    assert key_of(habit) != before
    habit.table[0, "Ada"] = 0.5
    assert key_of(habit) == before


def test_methods_are_told_by_their_names_and_their_objects(users_module: Importer) -> None:
    module = users_module()
    assert key_of(module.Habit(0.5).reversed) == key_of(module.Habit(0.5).reversed) is not None
    different = [module.Habit(0.5).reversed, module.Habit(0.25).reversed, module.Habit(0.5).__call__, module.Habit(0.5)]
    assert len({key_of(thing) for thing in different}) == len(different)


def test_an_object_that_holds_a_function_is_as_well_known_as_that(users_module: Importer) -> None:
    module = users_module()
    held = [module.belief, module.other_belief, functools.partial(module.belief, share=0.25), module.Habit(0.5).reversed]
    keys = [key_of(module.Follower(function)) for function in held]
    assert None not in keys
    assert len(set(keys)) == len(held)
    assert key_of(module.Follower(lambda *_: None)) is None


# --- functions as priors ----------------------------------------------------------------------------------------------


def test_a_function_as_a_prior_is_told_by_the_function_and_not_by_the_world_that_it_is_asked_about(
    users_module: Importer,
) -> None:
    module = users_module()
    key = key_of(CallablePrior(module.prior, Ring(), [0, 2]))
    assert key is not None
    assert key == key_of(CallablePrior(module.prior, Ring(steps=3), [0, 2]))  # worlds have keys of their own
    others = [module.belief, module.Habit(0.5), module.Habit(0.25), functools.partial(module.prior, goal=None)]
    keys = [key_of(CallablePrior(function, Ring(), [0, 2])) for function in others]
    assert None not in keys
    assert len({key, *keys}) == len(others) + 1
    assert key_of(CallablePrior(lambda *_: [0.5, 0.5], Ring(), [0, 2])) is None


def test_a_function_as_a_prior_has_another_key_when_its_file_was_changed(users_module: Importer) -> None:
    before = key_of(CallablePrior(users_module().prior, Ring(), [0, 2]))
    changed = users_module(*CHANGE)
    assert key_of(CallablePrior(changed.prior, Ring(), [0, 2])) != before
    assert key_of(CallablePrior(users_module().prior, Ring(), [0, 2])) == before


# --- things that hold the user's things -------------------------------------------------------------------------------


class Keeper:
    def __init__(self, held: Any) -> None:
        self.held = held


class SlottedKeeper:
    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held


def ask(*asked: Any) -> None:
    """A function that knows nothing of the user's file."""


@pytest.mark.parametrize(
    "hold",
    [
        Keeper, SlottedKeeper, lambda thing: Keeper([thing]), lambda thing: Keeper({"a": (1, thing)}),
        lambda thing: functools.partial(ask, thing), lambda thing: functools.partial(ask, asked=thing),
        lambda thing: CallablePrior(thing, Ring(), [0]), lambda thing: [thing], lambda thing: Keeper(Keeper(thing)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["belief", "Habit", "Slotted"])
def test_what_is_held_counts_with_its_source_however_deep_it_is(hold: Any, name: str, users_module: Importer) -> None:
    def key(module: Any) -> str | None:
        thing = getattr(module, name)
        return key_of(hold(thing(0.5) if isinstance(thing, type) else thing))

    before = key(users_module())
    assert key(users_module()) == before is not None
    assert key(users_module(*CHANGE)) not in (None, before)


def test_a_function_bound_to_an_object_by_hand_is_told_by_its_own_source(users_module: Importer) -> None:
    module = users_module()
    habit = module.Habit(0.5)
    bound = [MethodType(function, habit) for function in (module.belief, module.other_belief, lambda *asked: None)]
    assert key_of(bound[0]) != key_of(bound[1])
    assert key_of(bound[2]) is None


def test_what_holds_itself_has_a_key() -> None:
    first, second = Keeper(1), Keeper(1)
    first.held, second.held = first, second
    assert key_of(first) == key_of(second) is not None


# --- gridworlds, whose identity is their map and their rules ----------------------------------------------------------


class Paced(GridWorld):
    def transition_durations(self, state: Any, actions: Any, transitions: Any) -> list[float]:
        return [self.pace for _ in transitions]


def paced(pace: float) -> GridWorld:
    world = load_world("first_steps", max_steps=2)
    world.__class__, world.pace = Paced, pace
    return world


def test_solving_and_playing_add_nothing_to_a_gridworld_but_users_may() -> None:
    world = load_world("asymmetric_freeing", max_steps=2)
    world.reset(seed=1)
    world.step([0] * len(world.agents))
    compute_human_policy_prior(world, world.human_agent_indices, quiet=True, use_disk_slicing=True)
    world.get_dag(quiet=True)
    assert as_model(world).added_attributes == {}
    assert as_model(paced(3.0)).added_attributes == {"pace": 3.0}


def test_durations_that_depend_on_what_a_user_put_on_a_gridworld_have_folders_of_their_own(tmp_path: Path) -> None:
    params = Params(gamma_h=0.9, gamma_r=0.8)
    for pace in (1.0, 3.0):
        kept = solve(paced(pace), params, out=tmp_path, progress=False)
        assert kept.values.V_r[0][0] == solve(paced(pace), params, progress=False).values.V_r[0][0]
    assert len(list(tmp_path.glob("solution-*"))) == 2
    solve(paced(3.0), params, out=tmp_path, progress=False)
    assert len(list(tmp_path.glob("solution-*"))) == 2


# --- contents of all kinds --------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    pace: float
    name: str = "pair"


class Table(dict[str, float]):
    pass


@dataclass(frozen=True)
class Frozen:
    pace: float


@dataclass
class Plain:
    pace: float
    inner: Any = None


class Reduced:
    def __init__(self, pace: float) -> None:
        self._pace = [pace]

    def __reduce__(self) -> Any:
        return Reduced, (self._pace[0],)


def in_a_ring(back: bool) -> Keeper:
    """Two things, the second of which refers back to the first, or to itself."""
    first, second = Keeper(None), Keeper(None)
    first.held, second.held = second, first if back else second
    return first


@pytest.mark.parametrize(
    "make",
    [
        Pair, Frozen, Plain, Reduced, Keeper, lambda x: Table(pace=x), lambda x: {"a": Pair(x)}, lambda x: {Pair(x): 1},
        lambda x: OrderedDict(a=x), lambda x: defaultdict(float, a=x), lambda x: deque([x]), lambda x: SimpleNamespace(a=x),
        lambda x: np.array([Keeper(x)], dtype=object), lambda x: np.float32(x), lambda x: frozenset({Pair(x)}),
        lambda x: Plain(1.0, Frozen(x)), lambda x: in_a_ring(x > 1), lambda x: Fraction(x),
    ],
)  # fmt: skip
def test_different_contents_have_different_keys_and_equal_ones_the_same(make: Any) -> None:
    one, again, other = (key_of(Keeper(make(x))) for x in (1.0, 1.0, 2.0))
    assert one == again is not None
    assert other not in (None, one)


def test_things_in_a_net_are_told_once_each() -> None:
    """Were every path through the net told, this would not end in our time."""
    net = {(x, y): Keeper([]) for x in range(4) for y in range(5)}
    for (x, y), node in net.items():
        node.held += [net[place] for place in ((x + 1, y), (x, y + 1), (x - 1, y), (x, y - 1)) if place in net]
    assert key_of(net[0, 0]) is not None


@pytest.mark.parametrize("wrap", [functools.cache, functools.lru_cache(maxsize=8), njit, np.vectorize])
def test_functions_that_are_wrapped_count_with_their_source(wrap: Any, users_module: Importer) -> None:
    before = key_of(wrap(users_module().belief))
    assert key_of(wrap(users_module().belief)) == before is not None
    assert key_of(wrap(users_module(*CHANGE).belief)) not in (None, before)


def test_a_file_that_is_named_like_one_of_pythons_own_is_still_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    keys = []
    for pace in (1.0, 2.0):
        (tmp_path / "statistics.py").write_text(f"class Habit:\n    def pace(self):\n        return {pace}\n")
        script = "import sys; sys.path.insert(0, sys.argv[1]); import statistics\n"
        child = run_python(
            script + "from empo_bi.dag.world_fingerprint import key_of; print(key_of(statistics.Habit()))", tmp_path
        )
        assert child.returncode == 0, child.stderr
        keys.append(child.stdout.strip())
    assert "None" not in keys
    assert keys[0] != keys[1]


class InSomeOrder:
    """A generator whose goals come in the order of its table, which is not part of its key."""

    def __init__(self, *names: str) -> None:
        self.table = {name: At({"three": 3, "zero": 0}[name]) for name in names}

    def generate(self, state: Any, human: int) -> Any:
        return ((goal, 0.5) for goal in self.table.values())


def test_goals_that_come_in_another_order_next_time_are_not_mixed_up(tmp_path: Path) -> None:
    for order in (("zero", "three"), ("three", "zero")):
        world = Ring()
        options: dict[str, Any] = {"possible_goal_generator": InSomeOrder(*order), "progress": False}
        kept, fresh = solve(world, out=tmp_path, **options), solve(world, **options)
        state = world.initial_state()
        assert kept.Vh[state] == fresh.Vh[state]


# --- which function it is, and what there is about it -----------------------------------------------------------------


def acts_one_way(self: Any) -> float:
    return 0.25


def acts_another_way(self: Any) -> float:
    return 0.75


def patched(way: Any) -> Any:
    class Patched:
        act = way

    return Patched()


def conditional(is_first: bool) -> Any:
    if is_first:

        class Chosen:
            def act(self) -> float:
                return 0.25
    else:

        class Chosen:  # type: ignore[no-redef]
            def act(self) -> float:
                return 0.75

    return Chosen()


def test_two_functions_of_the_same_file_are_told_apart() -> None:
    assert key_of(patched(acts_one_way)) == key_of(patched(acts_one_way)) is not None
    assert key_of(patched(acts_one_way)) != key_of(patched(acts_another_way))
    assert key_of(conditional(True)) == key_of(conditional(True)) is not None
    assert key_of(conditional(True)) != key_of(conditional(False))


def test_what_a_wrapped_partial_holds_and_what_a_function_has_count(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [key_of(functools.update_wrapper(functools.partial(lazy_prior, goal=n), lazy_prior)) for n in (1, 1, 2)]
    assert keys[0] == keys[1] is not None
    assert keys[2] not in (None, keys[0])
    before = key_of(lazy_prior)
    monkeypatch.setattr(lazy_prior, "share", 0.5, raising=False)
    assert key_of(lazy_prior) not in (None, before)


class Decorated:
    @functools.cached_property
    def share(self) -> float:
        return LAZINESS

    @staticmethod
    @functools.cache
    def cached() -> float:
        return LAZINESS


class Shy(dict[str, float]):
    """Gives its entries as attributes, and complains about all others."""

    __getattr__ = dict.__getitem__


def test_globals_count_also_where_methods_are_decorated_but_not_where_only_an_attribute_has_the_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, plain = key_of(Decorated()), key_of(Keeper(1))
    monkeypatch.setitem(globals(), "held", object())  # Keeper has an attribute of that name
    assert key_of(Keeper(1)) == plain is not None
    monkeypatch.setitem(globals(), "LAZINESS", 0.5)
    assert key_of(Decorated()) not in (None, before)
    assert key_of(Shy(a=1.0)) not in (None, key_of(Shy(a=2.0)))
