"""Blocks of levels on a real Dask cluster of two processes: the same bytes as without, and the same errors.

Every test also looks whether blocks went there at all.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joblib
import pytest
from backward.test_one_sweep import PARAMS, WORLDS, LeapingRing, assert_same, derived, solved
from backward.test_wider_tables import MILD, STEEP, STEPS, SteadyPatience
from dag.test_stores_and_workers import assert_same as assert_same_dag
from planning_worlds import Places, step_of
from store_tools import tree

from empo_bi import GoalError, enumerate_dag, solve
from empo_bi.errors import ClusterError, WorkerDiedError
from empo_bi.runtime.blocks import active_cluster
from empo_bi.runtime.cluster import ATTEMPTS, DaskCluster
from empo_bi.sweep.cluster_blocks import workers_or_batches

distributed = pytest.importorskip("distributed", reason="the package distributed is not installed: there is no cluster")

SOME_PARAMS = [PARAMS, PARAMS.replace(zeta=2.5), PARAMS.replace(beta_h=2.0, gamma_h=0.8)]  # two of which share phase 1
OnCluster = Callable[[], AbstractContextManager[Any]]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def on_cluster(client: Any, monkeypatch: pytest.MonkeyPatch) -> OnCluster:
    """A context in which the smallest levels are solved on the cluster, in small blocks."""
    monkeypatch.setattr("empo_bi.sweep.cluster_blocks.FEWEST_STATES", 1)
    monkeypatch.setattr("empo_bi.sweep.cluster_blocks.FEWEST_ASKED", 1)
    monkeypatch.setattr("empo_bi.sweep.cluster_blocks.LEAST_STATES", 1)
    return partial(joblib.parallel_config, backend="dask", client=client)


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumeration in small blocks, so that the smallest levels go to the cluster."""
    monkeypatch.setattr("empo_bi.solving.enumeration.BLOCK_BYTES", 0)
    monkeypatch.setattr("empo_bi.dag.packed_explorer._FEWEST_PAIRS", 1)
    monkeypatch.setattr("empo_bi.dag.python_explorer.BLOCK_PAIRS", 32)


def tasks_of(client: Any, function: str) -> int:
    """How many tasks of this name the scheduler has seen finished."""

    def count(dask_scheduler: Any) -> int:
        prefix = dask_scheduler.task_prefixes.get(function)
        return 0 if prefix is None else int(prefix.state_counts["memory"])

    return int(client.run_on_scheduler(count))


@pytest.fixture
def went_there(client: Any) -> Callable[[str], int]:
    """How many tasks of a name were computed on the cluster since the test began."""
    names = ("compute_block_batch", "expand_keys", "expand_states_of")
    before = {name: tasks_of(client, name) for name in names}
    return lambda name: tasks_of(client, name) - before[name]


# --- enumeration --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("kind", ["chances", "levels not nested", "skipped levels", "derived levels", "time-homogeneous"])
def test_states_are_enumerated_on_the_cluster(
    kind: str, on_cluster: OnCluster, went_there: Callable[[str], int], tmp_path: Path
) -> None:
    world, options = WORLDS[kind]()
    expected = enumerate_dag(world, progress=False, store=tmp_path / "here", **options)
    with on_cluster():
        found = enumerate_dag(world, progress=False, store=tmp_path / "there", **options)
    assert_same_dag(found, expected)
    assert tree(tmp_path / "there") == tree(tmp_path / "here")
    assert went_there("expand_keys" if hasattr(world, "world_spec") else "expand_states_of") >= 4


@pytest.mark.usefixtures("small_steps")
def test_an_error_of_a_world_on_the_cluster_names_state_and_profile(on_cluster: OnCluster) -> None:
    with on_cluster(), pytest.raises(ZeroDivisionError) as caught:
        enumerate_dag(Breaking(6), level_fct=step_of, progress=False)
    assert "asked about state (3, " in caught.value.__notes__[0]


class Breaking(LeapingRing):
    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return super().transition_probabilities(state, actions) if state[0] < 3 else 1 / 0


# --- the sweep ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", WORLDS)
def test_levels_are_solved_on_the_cluster(kind: str, on_cluster: OnCluster, went_there: Callable[[str], int]) -> None:
    expected = solved(kind, SOME_PARAMS)
    with on_cluster():
        found = solved(kind, SOME_PARAMS)
    for ours, theirs in zip(found, expected, strict=True):
        assert_same(ours, theirs)
        assert derived(ours) == derived(theirs)
    assert went_there("compute_block_batch") >= expected[0].dag.horizon


@pytest.mark.parametrize(("kind", "precision"), [("chances", "float64"), ("skipped levels", "float16")])
def test_folders_have_the_same_bytes(kind: str, precision: str, on_cluster: OnCluster, tmp_path: Path) -> None:
    expected = solved(kind, precision=precision, out=tmp_path / "here")
    with on_cluster():
        assert_same(solved(kind, precision=precision, out=tmp_path / "there"), expected)
    assert tree(tmp_path / "there") == tree(tmp_path / "here")


@pytest.mark.parametrize("kind", ["nested levels", "derived levels"])
def test_values_in_float64_are_the_same(kind: str, on_cluster: OnCluster, went_there: Callable[[str], int]) -> None:
    expected = solved(kind, precision="float64")
    with on_cluster():
        assert_same(solved(kind, precision="float64"), expected)
    assert went_there("compute_block_batch") >= expected.dag.horizon


def test_several_blocks_travel_together(
    on_cluster: OnCluster, went_there: Callable[[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = solved("nested levels")
    monkeypatch.setattr("empo_bi.sweep.memory_model.BLOCK_STATES", 3)
    monkeypatch.setattr("empo_bi.sweep.cluster_blocks.LEAST_STATES", 1000)
    with on_cluster():
        assert_same(solved("nested levels"), expected)
    assert went_there("compute_block_batch") < 20  # of 224 states on the last level but one


def test_small_levels_stay_here(client: Any, went_there: Callable[[str], int]) -> None:
    with joblib.parallel_config(backend="dask", client=client):
        solved("nested levels")
        solved("derived levels")
    assert [went_there(name) for name in ("compute_block_batch", "expand_keys", "expand_states_of")] == [0, 0, 0]


def test_a_set_that_wants_wider_tables_is_given_up_on_the_cluster_too(on_cluster: OnCluster) -> None:
    world = SteadyPatience(STEPS)
    expected = solve(world, [STEEP, MILD], progress=False)
    with on_cluster():
        found = solve(world, [STEEP, MILD], progress=False)
    for ours, theirs in zip(found, expected, strict=True):
        assert_same(ours, theirs)
        assert ours.setting.precision == theirs.setting.precision
    assert [solution.setting.precision.work for solution in found] == ["float64", "float32"]


def test_a_state_without_power_is_named_as_in_one_process(on_cluster: OnCluster) -> None:
    messages = []
    for context in (partial(joblib.parallel_config, n_jobs=1), on_cluster):
        with context(), pytest.raises(GoalError) as caught:
            solve(LeapingRing(6), PARAMS, possible_goal_generator=Places(0.0, 1.0), level_fct=negative, progress=False)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "has no power in state (" in messages[0]


def negative(state: Any) -> int:
    return int(state[0]) - 10


# --- users' functions ---------------------------------------------------------------------------------------------------


def doubtful(state: Any, human: int, action: int) -> list[tuple[float, list[int]]]:
    share = (1 + state[1]) / 10
    return [(share, [action] * 3), (1 - share, [1 - action] * 3)]


def breaking(state: Any, human: int, action: int) -> Any:
    return doubtful(state, human, action) if state[0] != 2 else {}["nobody knows"]


def killing(flag: Path, own: int, state: Any, human: int, action: int) -> Any:
    """Kills the worker that asks, once; the process ``own`` is spared."""
    if os.getpid() != own and state[0] == 3 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return doubtful(state, human, action)


class Together:
    """A prior that tells what the humans do together."""

    def profile_distribution(self, state: Any) -> list[tuple[float, list[int]]]:
        return [(0.5, [0, 0]), (0.3, [1, 0]), (0.2, [1, state[1] % 2])]

    def profile_distribution_with_fixed_goal(self, state: Any, human: int, goal: Any) -> list[tuple[float, list[int]]]:
        return [(0.6, [0, 0]), (0.4, [state[1] % 2, int(goal.is_achieved(state))])]


def test_beliefs_and_priors_are_asked_on_the_cluster(on_cluster: OnCluster, went_there: Callable[[str], int]) -> None:
    believing = PARAMS.replace(believed_others_policy=doubtful)
    expected = solved("durations", believing)
    given = solved("durations", PARAMS, human_policy_prior=Together())
    with on_cluster():
        assert_same(solved("durations", believing), expected)
        assert went_there("compute_block_batch") > 10
        found = solved("durations", PARAMS, human_policy_prior=Together())
    assert_same(found, given, ("ve", "xh", "qr", "vr"))
    assert went_there("compute_block_batch") > 20


def test_an_error_of_a_users_function_on_the_cluster_names_the_state(on_cluster: OnCluster) -> None:
    notes = []
    for context in (partial(joblib.parallel_config, n_jobs=1), on_cluster):
        with context(), pytest.raises(KeyError, match="nobody knows") as caught:
            solved("skipped levels", PARAMS.replace(believed_others_policy=breaking))
        notes.append(caught.value.__notes__)
    assert "believed_others_policy((2, " in notes[0][0]
    assert notes[0] == notes[1]


def test_a_function_that_cannot_be_sent_is_refused_with_a_remedy(on_cluster: OnCluster, client: Any) -> None:
    def belief(state: Any, human: int, action: int) -> Any:
        return client, doubtful(state, human, action), open_file

    with (
        (Path(__file__)).open() as open_file,
        on_cluster(),
        pytest.raises(TypeError, match=r"cannot be pickled and sent .* outside"),
    ):
        solved("skipped levels", PARAMS.replace(believed_others_policy=belief))


# --- what may happen to a cluster ---------------------------------------------------------------------------------------


def test_a_worker_may_die_in_the_middle_of_a_solve(client: Any, on_cluster: OnCluster, tmp_path: Path) -> None:
    expected = solved("skipped levels", PARAMS.replace(believed_others_policy=doubtful))
    deadly = partial(killing, tmp_path / "killed", os.getpid())
    with on_cluster():
        found = solved("skipped levels", PARAMS.replace(believed_others_policy=deadly))
    assert_same(found, expected)
    assert (tmp_path / "killed").exists()
    client.wait_for_workers(2)


def double(shared: int, block: int) -> int:
    return shared * block


def test_what_is_shared_is_sent_again_if_it_is_lost(client: Any) -> None:
    with joblib.parallel_config(backend="dask", client=client):
        cluster = active_cluster()
    assert isinstance(cluster, DaskCluster)

    def blocks() -> Iterator[int]:
        for i in range(20):
            if i in (5, 6, 17):
                client.cancel([cluster._sent], force=True)
            yield i

    assert list(cluster.map(double, 3, blocks())) == [3 * i for i in range(20)]


def failing(error: Exception) -> DaskCluster:
    """A cluster on which everything fails."""

    def result() -> Any:
        raise error

    client = SimpleNamespace(
        scatter=lambda things, **_: things, submit=lambda *_, **__: SimpleNamespace(result=result), cancel=lambda _: None
    )
    return DaskCluster(SimpleNamespace(client=client, effective_n_jobs=lambda _: 1))


def test_a_block_that_kills_all_workers_is_reported() -> None:
    killed = distributed.KilledWorker("double", SimpleNamespace(address="tcp://nowhere"), 3)
    with pytest.raises(WorkerDiedError, match=r"killed one Dask worker .* memory_limit"):
        list(failing(killed).map(double, 3, repeat(1)))
    with pytest.raises(WorkerDiedError, match=f"lost {ATTEMPTS} times"):
        list(failing(distributed.client.FutureCancelledError("double", "lost")).map(double, 3, [1]))


# --- which backends are clusters ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", [None, "sequential", "threading", "multiprocessing", "loky"])
def test_backends_of_this_machine_are_no_cluster(backend: str | None) -> None:
    with joblib.parallel_config(backend=backend) if backend else joblib.parallel_config(n_jobs=2):
        assert active_cluster() is None


def is_local(_: int) -> bool:
    with joblib.parallel_config(backend="dask"):
        return active_cluster() is None


def test_what_runs_on_the_cluster_already_spreads_no_further(client: Any) -> None:
    assert client.submit(is_local, 0).result()
    with joblib.parallel_config(backend="dask", client=client):
        assert joblib.Parallel()([joblib.delayed(is_local)(i) for i in range(3)]) == [True] * 3


class Elsewhere(joblib.ParallelBackendBase):
    """Stands for the backend of another kind of cluster."""

    def effective_n_jobs(self, n_jobs: int) -> int:
        return 2

    def apply_async(self, func: Any, callback: Any = None) -> Any:
        raise AssertionError("nothing goes there")


def test_backends_of_other_clusters_are_refused_with_a_remedy() -> None:
    joblib.register_parallel_backend("elsewhere", Elsewhere)
    with (
        joblib.parallel_config(backend="elsewhere", n_jobs=2),
        pytest.raises(ClusterError, match=r"active backend is Elsewhere; expected Dask's .*parallel_config\(backend='dask'"),
    ):
        solved("skipped levels", PARAMS)


def test_blocks_on_the_way_count_as_blocks_in_work(client: Any) -> None:
    """So that a memory limit, which decides how large blocks are, holds here as well."""
    assert workers_or_batches(3, 64) == 3
    with joblib.parallel_config(backend="dask", client=client):
        assert workers_or_batches(1, 64) == 2 * 4  # four blocks of 1024 states for each of two workers
        assert workers_or_batches(9, 64) == 9
        assert workers_or_batches(1, 1 << 20) == 2
