"""Memory of the machine or container, and of this process; the only importer of psutil."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

CGROUPS = Path("/sys/fs/cgroup")  # where control groups are mounted
OWN_CGROUPS = Path("/proc/self/cgroup")  # which of them this process is in
_M_MMAP_THRESHOLD = -3  # from malloc.h of glibc
_LARGE = 8 << 20  # more than a chunk on its way to disk: mapping these, too, took a quarter more CPU time
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
# By version: the files with limit and usage, and the entry of memory.stat for cached files, which can be dropped any time.
_FILES = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


@dataclass(frozen=True)
class ControlGroup:
    """The memory of a container, of a batch job, or of a group around it."""

    limit: int
    used: int


def control_groups() -> list[ControlGroup]:
    """All groups with a limit that this process belongs to, whatever the version of cgroups.

    The page cache counts as usage there, though the kernel drops it when memory is needed; it is subtracted here.
    """
    found = []
    for folder, version in _cgroup_folders():
        limit_file, usage_file, stat_name = _FILES[version]
        with contextlib.suppress(OSError, ValueError):
            limit = (folder / limit_file).read_text().strip()
            if limit == "max":
                continue
            used = int((folder / usage_file).read_text()) - _stat(folder / "memory.stat", stat_name)
            found.append(ControlGroup(int(limit), max(0, used)))
    return found


def _cgroup_folders() -> Iterator[tuple[Path, int]]:
    """The group of this process and the groups around it. Inside a container, its own group is usually the outermost."""
    paths = {1: "/", 2: "/"}
    with contextlib.suppress(OSError):
        for line in OWN_CGROUPS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                paths[2] = path
            elif "memory" in controllers.split(","):
                paths[1] = path
    for root, version in ((CGROUPS, 2), (CGROUPS / "unified", 2), (CGROUPS / "memory", 1)):
        parts = [part for part in paths[version].split("/") if part not in ("", "..")]
        for n in range(len(parts), -1, -1):
            yield root.joinpath(*parts[:n]), version


def _stat(file: Path, name: str) -> int:
    with contextlib.suppress(OSError):
        for line in file.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return 0


def available_and_total() -> tuple[int, int]:
    """Bytes that this process may still take, and all bytes there are: of the machine, or of its container if less."""
    machine, groups = psutil.virtual_memory(), control_groups()
    available = min([int(machine.available), *(group.limit - group.used for group in groups)])
    return max(0, available), min([int(machine.total), *(group.limit for group in groups)])


def available_bytes() -> int:
    return available_and_total()[0]


def used_bytes() -> int:
    """What all processes on the machine use together; files in the page cache do not count."""
    memory = psutil.virtual_memory()
    return int(memory.total - memory.available)


def resident_bytes() -> int:
    """What this process holds, Python and libraries included."""
    try:
        with open("/proc/self/statm", "rb") as file:  # five times faster than psutil
            return int(file.read().split()[1]) * _PAGE
    except OSError:
        return int(psutil.Process().memory_info().rss)


def peak_bytes() -> int:
    """The most that this process has held so far.

    On Linux, a child inherits ``ru_maxrss`` from its parent, so the child of a large process seems large itself;
    ``VmHWM`` is the child's own.
    """
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="utf-8") as file:
        return int(file.read().split("VmHWM:")[1].split()[0]) * 1024
    import resource  # not on Windows

    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1024)


def reset_peak() -> None:
    """Let :func:`peak_bytes` start again from now, where the system can (Linux)."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def worker_bytes() -> list[int]:
    """Memory of each child process that it does not share with others."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            found.append(int(child.memory_full_info().uss))
    return found


def trim() -> None:
    """Let the C library return to the system what Python and numpy have freed; otherwise it keeps some of it."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # other C libraries than glibc have no such function
            ctypes.CDLL(None).malloc_trim(0)


def set_malloc_threshold() -> None:
    """From now on, return arrays of 8 MB or more to the system as soon as they are freed.

    glibc maps large arrays one by one, but raises its idea of large to 32 MB once such an array has been freed; after that
    the arrays of a level leave holes: 250 MB in a sweep over a million bodies. This affects the whole process, so it is
    done only where a memory limit is set.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
