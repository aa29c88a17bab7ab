"""Runs that were solved with users' functions open without them: what these said is stored."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import counting_functions as own
import numpy as np
import pytest
from command_line import invoke
from store.forging import array_of, put_array, put_record, put_tree, record_of, tree_of
from store_tools import assert_same_trees

from empo_bi import ArrayWorld, Params, Solution, enumerate_dag, load_world, open_solution, solve, write_report
from empo_bi.errors import DamagedStoreError, EmpoError, StoreMismatchError
from empo_bi.goals import TabularGoalGenerator
from empo_bi.problem.asked_prior import AskedPrior
from empo_bi.store.solution_store import SolutionStore

USUAL = Params(zeta=2, beta_r=20, gamma_h=0.9, gamma_r=0.95, beta_h=5)


def freeing() -> Any:
    return load_world("asymmetric_freeing", max_steps=3)


def room_of_matrices() -> ArrayWorld:
    rng = np.random.default_rng(3)
    return ArrayWorld(
        [rng.dirichlet(np.ones(4), size=4) for _ in range(2)], max_steps=3, goals={"end": [3], "any": range(4)}
    )


KINDS: dict[str, tuple[Any, dict[str, Any], Params]] = {
    "goals that depend on the state": (own.changing, {}, USUAL),
    "a list of goals": (own.listed, {}, USUAL),
    "another generator than the world's": (freeing, {"goals_by": own.goals_of}, USUAL),
    "a prior": (freeing, {"prior_by": own.lazy}, USUAL),
    "a prior and goals": (own.changing, {"prior_by": own.lazy}, USUAL),
    "values of terminal states": (freeing, {}, USUAL.replace(terminal_Vr=own.end_is_worth)),
    "a Python world": (own.ring, {}, USUAL),
    "float64": (own.ring, {"precision": "float64"}, USUAL),
    "a world of arrays": (room_of_matrices, {"human_agent_indices": [0], "robot_agent_indices": []}, USUAL),
}


def solved(kind: str, **where: Any) -> Solution:
    make, options, params = KINDS[kind]
    world, options = make(), dict(options)
    if goals_by := options.pop("goals_by", None):
        options["possible_goal_generator"] = goals_by(world)
    if prior_by := options.pop("prior_by", None):
        options["human_policy_prior"] = prior_by(world)
    return solve(world, params, progress=False, **options, **where)


@pytest.fixture(scope="module", params=KINDS)
def pair(request: Any, tmp_path_factory: Any) -> Iterator[tuple[str, Path, Solution]]:
    """A kind, the folder of a run of that kind, and the same solved in memory."""
    folder = tmp_path_factory.mktemp("run")
    solved(request.param, out=folder).close()
    with solved(request.param) as expected:
        yield request.param, folder, expected


def test_all_numbers_are_the_same_and_no_function_is_asked(pair: tuple[str, Path, Solution]) -> None:
    _, folder, expected = pair
    expected_numbers = numbers_of(expected)
    own.asked.clear()
    with open_solution(folder, progress=False) as found:
        found_numbers = numbers_of(found)
    assert not own.asked
    assert found_numbers.keys() == expected_numbers.keys()
    for name, levels in expected_numbers.items():
        for t, array in enumerate(levels):
            np.testing.assert_array_equal(found_numbers[name][t], array, err_msg=f"{name}, level {t}")


def numbers_of(solution: Solution) -> dict[str, list[Any]]:
    """All that can be read level by level, and some episodes."""
    last, found = solution.dag.horizon, {}
    for name in ("Vh_m", "Vh_e", "X_h", "U_r", "V_r"):
        if not (name == "Vh_m" and solution.has_own_prior):
            found[name] = [getattr(solution.values, name)[t] for t in range(last + 1)]
    if not solution.has_own_prior:
        found["pi_h"] = [solution.pi_h[t] for t in range(last + 1)]
    found["pi_r"] = [solution.pi_r[t] for t in range(last + 1)]
    found["reached"] = [solution.reached[t] for t in range(last + 1)]
    found["attained"] = [solution.goal_columns.attained(t) for t in range(last + 1)]
    rollouts = solution.rollouts(20, seed=4)
    return found | {"episodes": [rollouts.place_NT, rollouts.profile_NT, rollouts.return_N, rollouts._bits_NB]}


def test_names_and_texts_are_the_same(pair: tuple[str, Path, Solution]) -> None:
    _, folder, expected = pair
    start = expected.dag.states(0)[0]
    with open_solution(folder, progress=False) as found:
        assert found.goal_columns.names == expected.goal_columns.names
        assert str(found.at(start)) == str(expected.at(start))
        assert {human: [str(goal) for goal in goals] for human, goals in found.goals.items()} == {
            human: [str(goal) for goal in goals] for human, goals in expected.goals.items()
        }
        assert found.robot_policy(start) == expected.robot_policy(start)
        assert len(found.markov_chain) == len(expected.markov_chain)


def test_a_run_is_shown_verified_rolled_out_and_reported_without_functions(
    pair: tuple[str, Path, Solution], tmp_path: Path
) -> None:
    _, folder, expected = pair
    own.asked.clear()
    assert invoke("verify", str(folder)).exit_code == 0
    shown = invoke("show", str(folder), "--json")
    assert json.loads(shown.stdout)["V_r"] == pytest.approx(float(expected.values.V_r[0][0]), rel=1e-12)
    assert invoke("rollout", str(folder), "--episodes", "5").exit_code == 0
    assert invoke("report", str(folder), "--out", str(tmp_path / "page.html"), "--quiet").exit_code == 0
    assert not own.asked


def test_what_a_belief_decides_is_the_only_thing_that_is_missing(tmp_path: Path) -> None:
    params = USUAL.replace(believed_others_policy=own.believe)
    with solve(freeing(), params, out=tmp_path, progress=False) as expected:
        values = expected.values.V_r[1], expected.values.Vh_m[0]
    own.asked.clear()
    with open_solution(tmp_path, progress=False) as found:
        np.testing.assert_array_equal(found.values.V_r[1], values[0])
        np.testing.assert_array_equal(found.values.Vh_m[0], values[1])
        assert "value" in str(found.at(freeing().initial_state()))
        with pytest.raises(StoreMismatchError, match=r"policies depend on believed_others_policy.*call solve"):
            found.rollouts(2)
    assert not own.asked


def test_durations_of_a_python_world_come_from_the_world(tmp_path: Path) -> None:
    with solve(own.slow_ring(), USUAL, out=tmp_path, progress=False) as expected:
        policies, value = expected.pi_h[1], expected.values.V_r[0]
    with open_solution(tmp_path) as found:
        np.testing.assert_array_equal(found.values.V_r[0], value)
        with pytest.raises(StoreMismatchError, match=r"transition_durations of a world .*--world"):
            found.pi_h[1]
    with open_solution(tmp_path, world=own.slow_ring()) as found:
        np.testing.assert_array_equal(found.pi_h[1], policies)
    with pytest.raises(StoreMismatchError, match="was made for"):
        open_solution(tmp_path, world=own.ring())


def test_separate_parameters_of_phase_1_open_too(tmp_path: Path) -> None:
    world = freeing()
    first = solve(world, Params(beta_h=3), phase_2=False, progress=False)
    with solve(world, USUAL, human_policy_prior=first.prior, out=tmp_path, progress=False) as expected:
        policies = expected.pi_h[0]
    with open_solution(tmp_path) as found:
        assert found.human_params.beta_h == 3
        np.testing.assert_array_equal(found.pi_h[0], policies)


def test_own_goals_are_keys_again_with_world_or_goals(tmp_path: Path) -> None:
    solve(own.listed(), USUAL, out=tmp_path / "listed", progress=False).close()
    start = own.listed().initial_state()
    own.asked.clear()
    with open_solution(tmp_path / "listed") as found:
        assert [goal.name for goal in found.goals[0]][:2] == ["faces north (0)", "faces north (1)"]
        by_name = found.Vhe[start][0][found.goals[0][1]]
    generator = own.listed().possible_goal_generator
    with open_solution(tmp_path / "listed", goals=generator) as found:
        assert found.goals[0][1] == own.FacesNorth(1)
        assert found.Vhe[start][0][own.FacesNorth(1)] == by_name > 0
    with open_solution(tmp_path / "listed", goals="counting_functions:goals_of") as found:  # which has one of the names
        assert found.goals[0][0] == own.FacesNorth(0)
        assert not isinstance(found.goals[0][1], own.FacesNorth)
    assert own.asked.total() < 10


class Nameless(own.FacesNorth):
    """All have the same name, and are different goals."""

    def __init__(self, direction: int) -> None:
        super().__init__(0)
        self.direction = direction

    def is_achieved(self, state: Any) -> int:
        return int(state[1][self.human][2] == self.direction)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nameless) and other.direction == self.direction

    def __hash__(self) -> int:
        return hash(self.direction)

    def __repr__(self) -> str:
        return "None"


def test_goals_of_the_same_name_stay_different_goals(tmp_path: Path) -> None:
    def world() -> Any:
        found = freeing()
        found.possible_goal_generator = TabularGoalGenerator([Nameless(d) for d in range(4)])
        return found

    options: dict[str, Any] = {"human_agent_indices": [0], "phase_2": False, "progress": False}
    with solve(world(), USUAL, out=tmp_path, **options) as expected:
        start = expected.dag.states(0)[0]
        values = [float(expected.Vh[start][0].get(Nameless(d), 0.0)) for d in range(4)]
    assert len({*values}) > 2
    with open_solution(tmp_path) as found:
        goals = found.goals[0]
        assert len({*goals}) == 4
        assert [float(found.Vh[start][0].get(goal, 0.0)) for goal in goals] == values
        assert [[goal.is_achieved(state) for goal in goals] for state in found.dag.states(1)] == [
            [bool(Nameless(d).is_achieved(state)) for d in range(4)] for state in found.dag.states(1)
        ]
    with open_solution(tmp_path, goals=world().possible_goal_generator) as found:
        assert [float(found.Vh[start][0].get(Nameless(d), 0.0)) for d in range(4)] == values


class Duck:
    """A goal without a name of its own, which has an address in its ``repr``."""

    def is_achieved(self, state: Any) -> int:
        return int(state[1][0][2] == 1)


def test_goals_without_names_are_recognised(tmp_path: Path) -> None:
    options: dict[str, Any] = {"human_agent_indices": [0], "phase_2": False, "progress": False}
    duck = Duck()

    class Yields:
        def generate(self, state: Any, human_agent_index: int) -> Any:
            yield duck, 1.0

    with solve(freeing(), USUAL, possible_goal_generator=Yields(), out=tmp_path, **options) as expected:
        start = expected.dag.states(0)[0]
        value = expected.Vh[start][0][duck]
    with open_solution(tmp_path) as found:
        assert list(found.Vh[start][0].values()) == [value]
    with open_solution(tmp_path, goals=Yields()) as found:
        assert found.Vh[start][0][duck] == value


def test_goals_of_another_world_are_stored(tmp_path: Path) -> None:
    world, other = freeing(), load_world("asymmetric_freeing", max_steps=3, possible_goals=["1,1,9,4", "2,2"])
    world.possible_goal_generator = other.possible_goal_generator
    with solve(world, USUAL, out=tmp_path, progress=False) as expected:
        names, value = expected.goal_columns.names, expected.values.V_r[0][0]
    with open_solution(tmp_path) as found:
        assert (found.goal_columns.names, found.values.V_r[0][0]) == (names, value)
    with open_solution(tmp_path, goals=other.possible_goal_generator) as found:
        assert found.goals[0] == [goal for goal, _ in other.possible_goal_generator.generate(world.initial_state(), 0)]


def test_a_run_that_was_begun_with_a_copy_of_the_worlds_goals_is_continued(tmp_path: Path, monkeypatch: Any) -> None:
    world = freeing()
    with monkeypatch.context() as patch:
        patch.setattr(SolutionStore, "put", dies_at_level_1(SolutionStore.put))
        with pytest.raises(RuntimeError, match="dies"):
            solve(
                world, USUAL, possible_goal_generator=copy.copy(world.possible_goal_generator), out=tmp_path, progress=False
            )
    with solve(world, USUAL, out=tmp_path, progress=False) as expected:
        values, attained_SB = expected.values.Vh_m[0], expected.goal_columns.attained(0)
    assert len(list(tmp_path.glob("solution-*"))) == 1
    with open_solution(tmp_path) as found:
        assert (found.values.Vh_m[0] == values).all()
        assert (found.goal_columns.attained(0) == attained_SB).all()


def dies_at_level_1(put: Any) -> Any:
    def dying(store: SolutionStore, t: int, *arguments: Any) -> None:
        if t == 1:
            store._collect(backlog=0)
            raise RuntimeError("dies")
        put(store, t, *arguments)

    return dying


def test_a_prior_that_is_given_again_answers_for_single_goals(tmp_path: Path) -> None:
    solve(freeing(), USUAL, human_policy_prior=own.lazy(freeing()), out=tmp_path, progress=False).close()
    with open_solution(tmp_path) as found:
        human, goal = 0, found.goals[0][2]
        with pytest.raises(StoreMismatchError, match=r"single goals was not stored.*--prior"):
            found.rollouts(2, goals={human: goal})
        with pytest.raises(StoreMismatchError, match=r"single goals was not stored.*--prior"):
            found.prior(found.dag.states(0)[0], human, goal)
        assert found.prior(found.dag.states(0)[0], human).tolist() == [0.25, 0.0, 0.0, 0.75]
        assert found.prior.profile_distribution(found.dag.states(1)[0]) == [(0.35, [0, 0]), (0.65, [3, 1])]
    with open_solution(tmp_path, prior="counting_functions:lazy") as found:
        assert len(found.rollouts(2, goals={human: goal})) == 2


def test_another_prior_or_goals_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    solve(freeing(), USUAL, human_policy_prior=own.lazy(freeing()), out=tmp_path, progress=False).close()
    with pytest.raises(StoreMismatchError, match="another prior"):
        open_solution(tmp_path, prior=lambda state, human, goal: [0.25] * 4)
    with pytest.raises(ValueError, match=r"'lazy' does not name a function; expected 'my_priors.py:prior_of'"):
        open_solution(tmp_path, prior="lazy")
    with pytest.raises(EmpoError, match="has no function 'fast'"):
        open_solution(tmp_path, prior="counting_functions:fast")


def test_mistakes_of_whoever_opens_a_run_are_told_as_theirs(tmp_path: Path) -> None:
    with_goals, with_prior, ring, plain = (tmp_path / name for name in ("goals", "prior", "ring", "plain"))
    solve(own.changing(), USUAL, out=with_goals, progress=False).close()
    solve(freeing(), USUAL, human_policy_prior=lambda state, human, goal: [0.25] * 4, out=with_prior, progress=False).close()
    solve(own.ring(), USUAL, out=ring, progress=False).close()
    solve(freeing(), USUAL, out=plain, progress=False).close()

    class Failing(own.MoreOnTheLeft):
        def generate(self, state: Any, human_agent_index: int) -> Any:
            raise ValueError("my own mistake")

    with pytest.raises(ValueError, match=r"^my own mistake"):
        open_solution(with_goals, goals=Failing(freeing()))
    with pytest.raises(StoreMismatchError, match="none of the goals given has the name of one that was solved for"):
        open_solution(with_goals, goals=TabularGoalGenerator([own.At(7)]))
    with pytest.raises(StoreMismatchError, match="without a prior of your own; leave out prior"):
        open_solution(plain, prior=own.lazy(freeing()))
    with pytest.raises(StoreMismatchError, match="for the goals of its world; leave out goals"):
        open_solution(plain, goals=own.goals_of(freeing()))
    with pytest.raises(StoreMismatchError, match=r"not at hand; give world=\.\.\. \(--world"):
        open_solution(ring, goals="counting_functions:goals_of")
    with pytest.raises(StoreMismatchError, match="another prior"):
        open_solution(with_prior, prior=lambda state, human, goal: [1.0, 0, 0, 0])
    with open_solution(with_prior, prior=lambda state, human, goal: [0.25] * 4) as found:
        assert len(found.rollouts(2, goals={0: found.goals[0][1]})) == 2


def test_the_command_line_solves_worlds_goals_and_priors_that_functions_make(tmp_path: Path) -> None:
    code = Path(own.__file__)
    out = tmp_path / "ring"
    answer = invoke("solve", f"{code}:ring", "--steps", "3", "-p", "zeta=2", "--out", str(out), "--json")
    with solve(own.ring(3), Params(zeta=2), progress=False) as expected:
        assert json.loads(answer.stdout)["V_r"] == pytest.approx(float(expected.values.V_r[0][0]), rel=1e-12)
    assert "Ring" in invoke("show", str(out)).stdout
    freed = ("solve", "asymmetric_freeing", "--steps", "3", "-p", "zeta=2")
    answer = invoke(*freed, "--goals", f"{code}:goals_of", "--prior", f"{code}:lazy", "--json")
    world = freeing()
    with solve(
        world,
        Params(zeta=2),
        possible_goal_generator=own.goals_of(world),
        human_policy_prior=own.lazy(world),
        progress=False,
    ) as expected:
        assert json.loads(answer.stdout)["V_r"] == pytest.approx(float(expected.values.V_r[0][0]), rel=1e-12)
    wrong = invoke(*freed, "--goals", "nonsense")
    assert wrong.exit_code == 2
    assert "does not name a function" in wrong.stderr


def test_a_world_that_was_not_stored_knows_its_transitions_and_draws_itself_as_text(tmp_path: Path) -> None:
    solve(own.ring(), USUAL, out=tmp_path, progress=False).close()
    world = own.ring()
    with open_solution(tmp_path) as found:
        stored = found.world
        assert "as far as it was stored" in repr(stored)
        assert list(stored.action_names) == ["wait", "walk"]
        for t in range(found.dag.horizon + 1):
            for state in found.dag.states(t):
                for actions in ([0, 0], [1, 0], [1, 1]):
                    told, known = (w.transition_probabilities(state, actions) for w in (stored, world))
                    assert (told is None) == (known is None)
                    assert sorted(told or []) == sorted(known or [])
        with pytest.raises(ValueError, match=r"agents have \[2, 2\] actions"):
            stored.transition_probabilities(found.dag.states(0)[0], [0, 2])
        write_report(found, tmp_path / "page.html", progress=False)


def test_killed_runs_continue_with_the_same_answers(tmp_path: Path, monkeypatch: Any) -> None:
    """Killed after level 2, of 3."""
    world, whole, killed = own.changing(), tmp_path / "whole", tmp_path / "killed"
    solve(world, USUAL, human_policy_prior=own.lazy(world), out=whole, progress=False).close()
    with monkeypatch.context() as patch:
        patch.setattr(AskedPrior, "joint", dies_at_step_1(AskedPrior.joint))
        with pytest.raises(RuntimeError, match="dies"):
            solve(world, USUAL, human_policy_prior=own.lazy(world), out=killed, progress=False)
    assert list(killed.glob("solution-*/level_00002/joint"))
    solve(world, USUAL, human_policy_prior=own.lazy(world), out=killed, progress=False).close()
    assert_same_trees(killed, whole)


def dies_at_step_1(joint: Any) -> Any:
    def dying(asked: AskedPrior, states: Any, has_NX: Any, given: Any) -> Any:
        if states[0][0] == 1:
            raise RuntimeError("dies")
        return joint(asked, states, has_NX, given)

    return dying


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"goal_weights": [[1.0]]}, "goal_weights"),
        ({"goal_labels": [["a"]]}, "goal_labels"),
        ({"answers": ["attained", "everything"]}, "answers"),
        ({"answers": ["attained", "joint"]}, "'joint' needs human_profiles"),
        ({"goal_weights": [[-1.0, 0, 0, 0], [0, 0, 0, 0]]}, "negative"),
        ({"goal_weights": [[1e301, 0, 0, 0], [0, 0, 0, 0]]}, "above 1e+300"),
        ({"content": {"robots": [0, 2]}}, "share agents"),
        ({"goal_weights": None}, "goal_weights"),
        ({"goals": [["a", "b", "c", "d"], ["a", "b", "c", "d"]]}, "labels are not those"),
    ],
)
def test_manifests_that_contradict_themselves_are_refused(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    solve(own.listed(), USUAL, out=tmp_path, progress=False).close()
    (store,) = tmp_path.glob("solution-*")
    tree = tree_of(store)
    manifest = record_of(tree, "zarr.json")
    changed = manifest | change | {"content": manifest["content"] | change.get("content", {})}
    put_record(tree, "zarr.json", {name: value for name, value in changed.items() if value is not None})
    put_tree(tree, store)
    with pytest.raises(DamagedStoreError, match=re.escape(complaint)):
        open_solution(tmp_path)


@pytest.mark.parametrize("width", [1, 15, 17])
def test_a_prior_of_another_width_never_reaches_a_kernel(tmp_path: Path, width: int) -> None:
    solve(freeing(), USUAL, human_policy_prior=own.lazy(freeing()), out=tmp_path, progress=False).close()
    (store,) = tmp_path.glob("solution-*")
    tree = tree_of(store)
    manifest = record_of(tree, "zarr.json")
    put_record(tree, "zarr.json", manifest | {"human_profiles": [[0, 0]] * width})
    for t, n_states in enumerate(manifest["content"]["level_sizes"]):
        put_array(tree, f"level_{t:05d}/joint", np.ones((n_states, width)))
    put_tree(tree, store)
    with pytest.raises(DamagedStoreError, match="human_profiles are not those of the DAG's agents"):
        open_solution(tmp_path)


def test_what_humans_do_has_some_probability(tmp_path: Path) -> None:
    solve(freeing(), USUAL, human_policy_prior=own.lazy(freeing()), out=tmp_path, progress=False).close()
    (store,) = tmp_path.glob("solution-*")
    for number, complaint in ((0.0, "no probabilities"), (np.nan, "expected 0 to"), (-1.0, "expected 0 to")):
        tree = tree_of(store)
        shape = array_of(tree, "level_00001/joint").shape
        put_array(tree, "level_00001/joint", np.full(shape, number))
        put_tree(tree, store)
        with pytest.raises(EmpoError, match=complaint), open_solution(tmp_path) as found:
            found.rollouts(2)


def test_goals_that_the_world_has_itself_are_not_stored_again(tmp_path: Path) -> None:
    solve(freeing(), USUAL, out=tmp_path, progress=False).close()
    (store,) = tmp_path.glob("solution-*")
    assert not (store / "level_00000" / "attained").exists()
    assert "answers" not in json.loads((store / "zarr.json").read_text())["attributes"]["empo_bi"]


def test_a_dag_of_a_python_world_that_is_opened_without_it_is_solved_no_more(tmp_path: Path) -> None:
    enumerate_dag(own.ring(), store=tmp_path / "dag", progress=False).close()
    with pytest.raises(EmpoError, match="no solution is there"):
        open_solution(tmp_path / "dag")
