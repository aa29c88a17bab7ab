"""Canaries: what we use of numba, zarr, xarray and joblib that they do not document, and may change without a word.

When one fails after an upgrade, its message says who relies on the name and what to do without it.
"""

from __future__ import annotations

import asyncio
import importlib
import re
import zipfile
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from numba import njit

import empo_bi
from empo_bi.runtime import numba_internals
from empo_bi.runtime.jit import kernel
from empo_bi.world.expand import pack_rows

PACKAGE = Path(empo_bi.__file__).parent
HOMES = {
    "numba": "runtime/numba_internals.py",
    "joblib": "runtime/joblib_internals.py",
    "zarr": "store/zarr_internals.py",
    "xarray": "analysis/xarray_internals.py",
}
DOCUMENTED = {
    "numba": {"numba", "numba.extending"},
    "joblib": {"joblib"},
    "zarr": {"zarr", "zarr.abc.buffer", "zarr.abc.store", "zarr.buffer", "zarr.storage"},
    "xarray": {"xarray", "xarray.backends"},
}


def canary(is_well: bool, library: str, change: str, remedy: str) -> None:
    """Fail with advice to whoever upgrades."""
    assert is_well, f"{library} has changed: {change}. In empo_bi/{HOMES[library]}: {remedy}"


def internals(library: str) -> Any:
    """Our door to what a library does not document, if it still opens."""
    name = HOMES[library].removesuffix(".py").replace("/", ".")
    try:
        return importlib.import_module(f"empo_bi.{name}")
    except ImportError as error:
        canary(False, library, str(error), "import it from where it is now; if it is gone, the canaries say what it was for")


# --- each library has one door ------------------------------------------------------------------------------------------


IMPORT = re.compile(r"^\s*(?:from|import) ((?:numba|joblib|zarr|xarray)\b[\w.]*)", re.MULTILINE)


@pytest.mark.parametrize("library", HOMES)
def test_only_one_module_imports_what_a_library_does_not_document(library: str) -> None:
    beyond = {
        (path.relative_to(PACKAGE).as_posix(), module)
        for path in PACKAGE.rglob("*.py")
        for module in IMPORT.findall(path.read_text(encoding="utf-8"))
        if module.partition(".")[0] == library and module not in DOCUMENTED[library]
    }
    strangers = sorted((path, module) for path, module in beyond if path != HOMES[library])
    assert not strangers, f"import these by way of empo_bi/{HOMES[library]}: {strangers}"
    assert beyond, f"nothing private is left: delete empo_bi/{HOMES[library]} and its canaries"


# --- numba --------------------------------------------------------------------------------------------------------------


def test_numba_compiles_without_reference_counting() -> None:
    is_well = bool(numba_internals.without_reference_counting())
    if is_well:
        is_well = njit(**numba_internals.without_reference_counting())(lambda x: x + 1)(2) == 3
    canary(
        is_well,
        "numba",
        "the option _nrt of njit is gone",
        "return its new name (see numba.core.options) from without_reference_counting; without it results are the same, and "
        "kernels take twice as long",
    )


def test_numba_tells_when_compilations_begin_and_end() -> None:
    begun: list[Any] = []
    ended: list[Any] = []
    numba_internals.listen_to_compilations(begun.append, ended.append)
    doubled = njit(lambda x: 2 * x)
    doubled(1)
    canary(
        doubled in begun and doubled in ended,
        "numba",
        "events 'numba:compile' are not sent, or not with their dispatcher",
        "follow numba.core.event in listen_to_compilations; without it there is no bar while kernels compile",
    )


def test_numba_tells_what_is_compiled() -> None:
    doubled = njit(lambda x: 2 * x)
    is_well = numba_internals.is_dispatcher(doubled) and not numba_internals.is_compiled(doubled)
    if is_well:
        doubled(1)
        is_well = numba_internals.is_compiled(doubled)
    canary(
        is_well,
        "numba",
        "dispatchers have no 'overloads' that fill up",
        "have is_dispatcher and is_compiled use what holds compiled signatures now; runtime/compilation.py counts with them "
        "how many functions are left to compile",
    )


def test_numba_has_a_stamp_in_its_cache() -> None:
    """That numba heeds it is tested in test_jit.py, where a rule changes in another module."""
    stamped = numba_internals.stamp_cache(njit(cache=True)(plus_one), "a stamp")
    canary(
        stamped,
        "numba",
        "cached kernels have no _cache._cache_file._source_stamp",
        "find where numba compares the time of the source (numba.core.caching.IndexDataCacheFile) and set our stamp there "
        "in stamp_cache; until then every start compiles the kernels, since cached code may be out of date",
    )


def plus_one(x: int) -> int:
    return x + 1


def test_where_kernels_cannot_be_stamped_they_are_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("empo_bi.runtime.jit.stamp_cache", lambda *_: False)
    with pytest.warns(RuntimeWarning, match=r"newer than empo_bi.*use an older numba"):
        compiled = kernel(pack_rows.py_func)
    assert not compiled.stats.cache_path
    assert pack_rows.stats.cache_path


# --- joblib -------------------------------------------------------------------------------------------------------------


def test_joblib_hashes_as_ever() -> None:
    """By numbers that stores have on disk: with others, stores of Python worlds would be taken for those of other worlds."""
    content = {"b": [1, 2.5, "three"], "a": (None, True, b"4"), "c": np.arange(6, dtype=np.int64).reshape(2, 3)}
    found = internals("joblib").NumpyHasher(hash_name="sha1").hash(content)
    canary(
        found == "496ba9da3c107a6c883327239b576b7948219b56",
        "joblib",
        f"NumpyHasher now gives {found}",
        "copy the old joblib/hashing.py (BSD licence) beside it, for ContentHasher of dag/contents.py; with other digests "
        "stores of Python worlds are refused, with a message, although they are right",
    )


def test_joblib_asks_its_hasher_to_save_what_is_inside() -> None:
    class Saving(internals("joblib").NumpyHasher):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(hash_name="sha1")
            self.saved: list[Any] = []

        def save(self, thing: Any) -> None:
            self.saved.append(thing)
            super().save(thing)

    hasher = Saving()
    hasher.hash([plus_one, {"a": 2.5}])
    canary(
        plus_one in hasher.saved and 2.5 in hasher.saved,
        "joblib",
        "NumpyHasher does not call save for what is inside",
        "derive ContentHasher of dag/contents.py from pickle._Pickler, or copy the old hasher (BSD licence)",
    )


@pytest.mark.parametrize("backend", ["sequential", "threading", "multiprocessing", "loky"])
def test_joblib_tells_its_own_active_backend(backend: str) -> None:
    with joblib.parallel_config(backend=backend):
        kind, _ = internals("joblib").active_backend()
    canary(
        kind == "local",
        "joblib",
        f"the backend {backend!r} is called {kind}",
        "add its class to _HERE; runtime/blocks.py would refuse to work inside joblib.parallel_config",
    )


def test_joblib_tells_of_dask() -> None:
    distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    here = {"processes": False, "n_workers": 1, "threads_per_worker": 3, "dashboard_address": None}
    with distributed.Client(**here) as client, joblib.parallel_config(backend="dask", client=client):
        kind, backend = internals("joblib").active_backend()
        is_well = kind == "dask" and backend.client is client and backend.effective_n_jobs(-1) == 3
    canary(
        is_well,
        "joblib",
        "its backend for Dask has no client, or cannot count its workers",
        "have active_backend return them as they are called now; DaskCluster of runtime/cluster.py asks for both",
    )


def test_joblib_reports_dead_workers_as_a_broken_executor() -> None:
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    canary(
        issubclass(TerminatedWorkerError, BrokenExecutor),
        "joblib",
        "dead workers are reported by another error",
        "import that error, and add it to Workers.crashes of batch/workers.py",
    )


# --- zarr ---------------------------------------------------------------------------------------------------------------


def test_zarr_runs_what_its_stores_give_to_be_awaited() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    canary(
        internals("zarr").sync(answer()) == 42,
        "zarr",
        "sync does not run a coroutine to its end",
        "run coroutines in a thread of our own (asyncio.run_coroutine_threadsafe); store/zarr_files.py does all by it",
    )


def test_zarr_opens_zip_files_when_it_is_told_to(tmp_path: Path) -> None:
    from zarr.buffer import default_buffer_prototype
    from zarr.storage import ZipStore

    zarr_internals = internals("zarr")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("key", b"value")
    store = ZipStore(tmp_path / "a.zip", mode="r", read_only=True)
    remedy = "use what zarr has for it now, in is_open and open_if_needed; stores in zip files are read through them"
    canary(not zarr_internals.is_open(store), "zarr", "a new ZipStore says that it is open already", remedy)

    async def value() -> bytes:
        await zarr_internals.open_if_needed(store)
        found = await store.get("key", default_buffer_prototype())
        assert found is not None
        return found.to_bytes()

    is_well = zarr_internals.sync(value()) == b"value" and zarr_internals.is_open(store)
    canary(is_well, "zarr", "a ZipStore cannot be opened by _open", remedy)
    store.close()


# --- xarray -------------------------------------------------------------------------------------------------------------


def test_xarray_reads_lazily_what_is_asked_for() -> None:
    xarray = pytest.importorskip("xarray", reason="the extra 'analysis' is not installed")
    indexing, asked = internals("xarray"), []

    class Numbers(xarray.backends.BackendArray):  # type: ignore[misc,name-defined]
        shape, dtype = (10,), np.dtype(np.int64)

        def __getitem__(self, key: Any) -> Any:
            asked.append(type(key))
            return indexing.explicit_indexing_adapter(
                key, self.shape, indexing.IndexingSupport.OUTER, np.arange(10).__getitem__
            )

    variable = xarray.Variable(("state",), indexing.LazilyIndexedArray(Numbers()))
    some = variable[2:8][::2]
    remedy = "follow 'How to add a new backend' in xarray's documentation; the arrays of analysis/lazy_arrays.py and the "
    remedy += "coordinate of analysis/level_index.py are read this way. Solution.values and to_pandas do without"
    canary(not asked, "xarray", "LazilyIndexedArray reads before it is asked", remedy)
    is_well = some.values.tolist() == [2, 4, 6] and variable[[7, 1]].values.tolist() == [7, 1]
    canary(is_well, "xarray", "LazilyIndexedArray or explicit_indexing_adapter read something else", remedy)
    is_well = set(asked) == {indexing.BasicIndexer, indexing.OuterIndexer}
    canary(is_well, "xarray", f"arrays are asked with {asked}, not with a BasicIndexer and an OuterIndexer", remedy)


def test_xarray_selects_by_what_an_index_answers() -> None:
    xarray = pytest.importorskip("xarray", reason="the extra 'analysis' is not installed")
    from empo_bi.analysis.level_index import LevelIndex

    levels = LevelIndex(np.arange(3), np.array([0, 1, 3, 6]))
    coordinates = xarray.Coordinates(levels.create_variables(), {"level": levels})
    numbers = xarray.Dataset({"number": ("state", np.arange(6))}, coordinates).number
    canary(
        numbers.sel(level=1).values.tolist() == [1, 2],
        "xarray",
        "Index.sel is not asked, or IndexSelResult is read otherwise",
        "import IndexSelResult from where xarray's documentation of custom indexes has it now; "
        "analysis/level_index.py answers with it",
    )
