"""Where the tests put their files: in memory if there is plenty, since they make and remove tens of thousands of folders.

Removing a folder takes a millisecond or two on the disks of some machines (ext4 that discards), and microseconds in memory.
Whoever sets ``TMPDIR`` or gives ``--basetemp`` chooses another place. Tests that want a real disk ask for ``disk_path``.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

IN_MEMORY = Path("/dev/shm")
PREFIX = "empo_bi-tests-"  # and the number of the process
ROOM = 4_000_000_000  # bytes; the tests leave 600 MB there
FOLDER = pytest.StashKey[Path]()
DISK = "EMPO_BI_TESTS_DISK"  # tells the processes that share the tests


# Files that take longest, whatever the number of their tests, begin first: processes that share the tests then end together.
LONG = (
    "benchmarks/test_sections.py", "memory/test_limits.py", "store/test_forged_runs.py", "kills/test_every_command.py",
    "memory/test_leaks.py", "test_notebooks.py", "test_site.py", "test_package.py", "test_docs.py", "planner/test_plan.py",
    "batch/test_all_worlds.py", "batch/test_batch_kills.py", "batch/test_batch.py", "backward/test_golden_values.py",
    "backward/test_solution_kills.py", "store/test_kills.py", "store/test_writers.py", "accuracy/test_bounds.py",
    "report/test_explorer_in_browser.py", "test_compilation.py", "test_cluster_blocks.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONG))


def pytest_configure(config: pytest.Config) -> None:
    is_one_of_several = "PYTEST_XDIST_WORKER" in os.environ  # which do as they are told by the first
    if is_one_of_several or "TMPDIR" in os.environ or config.getoption("basetemp") or not _has_room():
        return
    _remove_what_others_left()
    folder = IN_MEMORY / f"{PREFIX}{os.getpid()}"
    folder.mkdir()
    os.environ[DISK], os.environ["TMPDIR"] = tempfile.gettempdir(), str(folder)
    tempfile.tempdir = None  # ask the environment again
    config.stash[FOLDER] = folder


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = config.stash.get(FOLDER, None)
    if folder is None:
        return
    tempfile.tempdir = os.environ.pop(DISK)
    del os.environ["TMPDIR"]
    if not getattr(config.pluginmanager.get_plugin("session"), "testsfailed", 0):  # otherwise somebody may want to look
        shutil.rmtree(folder, ignore_errors=True)


def _has_room() -> bool:
    if not (IN_MEMORY.is_dir() and os.access(IN_MEMORY, os.W_OK)):
        return False
    return min(shutil.disk_usage(IN_MEMORY).free, psutil.virtual_memory().available) >= ROOM


def _remove_what_others_left() -> None:
    """What failed or killed sessions have left is kept until the next one begins."""
    for folder in IN_MEMORY.glob(f"{PREFIX}*"):
        if not psutil.pid_exists(int(folder.name.removeprefix(PREFIX))):
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """A folder that is not in memory, where files in memory would count as memory of the process that writes them."""
    with tempfile.TemporaryDirectory(prefix="empo_bi-tests-", dir=os.environ.get(DISK)) as folder:
        yield Path(folder)
