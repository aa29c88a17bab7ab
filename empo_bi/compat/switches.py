"""The switches that both documented functions have, translated into the options that everything else knows."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from empo_bi.dag.python_world import LevelFunction
from empo_bi.dag.world_fingerprint import world_key
from empo_bi.errors import MemoryLimitError, MemoryPressureError
from empo_bi.memory.monitor import MemoryMonitor, check_monitor
from empo_bi.runtime.arguments import check_flags
from empo_bi.runtime.blocks import checked_workers
from empo_bi.runtime.byte_sizes import Size
from empo_bi.runtime.digests import digest_of
from empo_bi.runtime.machine import resident_bytes
from empo_bi.runtime.progress import say
from empo_bi.solving.options import Resources, Storage, resources_from
from empo_bi.store.solution_folders import inside
from empo_bi.world.as_model import as_model
from empo_bi.world.model import World

ProgressCallback = Callable[[int, int], None]
Folder = str | os.PathLike[str] | None

# What messages recommend, and how it is called here; the first that fits counts.
_OUR_WORDS = {
    "out=PATH or True": "use_disk_slicing=True",
    "store=PATH or True, in solve out=PATH": "use_disk_slicing=True with disk_cache_dir=PATH",
    "out=PATH": "use_disk_slicing=True with disk_cache_dir=PATH",
    "precision='float16'": "use_float16=True",
}


@dataclass(frozen=True, kw_only=True)
class Switches:
    """As the documented functions describe them."""

    world_model: World
    parallel: bool
    num_workers: int | None
    level_fct: LevelFunction | None
    progress_callback: ProgressCallback | None
    quiet: bool
    min_free_memory_fraction: float
    memory_check_interval: int
    memory_pause_duration: float
    memory_profile: bool
    use_disk_slicing: bool
    disk_cache_dir: Folder
    use_float16: bool
    use_compression: bool
    archive_dir: Folder
    memory_limit: Size | None

    def check(self) -> None:
        """Complain about what cannot be, and say which switches have no effect."""
        as_model(self.world_model, "world_model")  # refuses what is not one
        check_flags(parallel=self.parallel, quiet=self.quiet, use_disk_slicing=self.use_disk_slicing,
                    use_float16=self.use_float16, use_compression=self.use_compression)  # fmt: skip
        check_monitor(
            min_free_memory_fraction=self.min_free_memory_fraction, memory_check_interval=self.memory_check_interval,
            memory_pause_duration=self.memory_pause_duration,
        )  # fmt: skip
        for name, folder in (("disk_cache_dir", self.disk_cache_dir), ("archive_dir", self.archive_dir)):
            if folder is not None and (not isinstance(folder, str | os.PathLike) or not os.fspath(folder)):
                raise TypeError(f"{name}={folder!r}; give the path of a folder, or None")
        if self.disk_cache_dir is not None and not self.use_disk_slicing:
            self.tell("disk_cache_dir has no effect without use_disk_slicing=True")
        if self.num_workers is not None and not self.parallel:
            self.tell("num_workers has no effect without parallel=True")
        if self.progress_callback is not None and not callable(self.progress_callback):
            raise TypeError(f"progress_callback={self.progress_callback!r} cannot be called; give f(done, total), or None")

    def tell(self, message: str) -> None:
        if not self.quiet:
            say(message)

    def tell_of_levels(self) -> None:
        """Levels of worlds that do not have any take a search over all states, which not everybody expects."""
        has_levels = as_model(self.world_model).is_time_homogeneous
        if self.use_disk_slicing and not has_levels and self.level_fct is None:
            self.tell("no level_fct was given; levels are derived from the transitions: a state's level is its longest path")

    @property
    def has_cache(self) -> bool:
        return self.use_disk_slicing and self.disk_cache_dir is not None

    def storage(self, *, elsewhere: bool = False) -> Storage:
        """Memory, a temporary folder, or a folder of this world's own in the cache: always the same, or a new one."""
        where: object = True if self.use_disk_slicing else None
        if self.has_cache:
            key = None if elsewhere else world_key(self.world_model)
            name = os.urandom(6).hex() if key is None else digest_of(repr((key, self.level_fct is None)))
            where = inside(self.disk_cache_dir, name)
        precision = "float16" if self.use_float16 else "float64"
        return Storage(where=where, archive=self.archive_dir, precision=precision, compression=self.use_compression)

    def resources(self) -> Resources:
        workers = checked_workers(-1 if self.num_workers is None else self.num_workers, "num_workers")
        monitor = MemoryMonitor(
            self.min_free_memory_fraction, self.memory_check_interval, self.memory_pause_duration, verbose=not self.quiet
        )
        return resources_from(
            memory_limit=self.memory_limit, workers=workers if self.parallel else 1, monitor=monitor,
            memory_profile=self.memory_profile, progress=not self.quiet, after_level=self._after_level(),
        )  # fmt: skip

    def _after_level(self) -> Callable[[int, int, int], None]:
        n_done = 0

        def after_level(t: int, n_states: int, total: int) -> None:
            nonlocal n_done
            if self.progress_callback is not None:
                for i in range(n_done + 1, n_done + n_states + 1):
                    self.progress_callback(i, total)
            n_done += n_states
            if self.memory_profile:
                self.tell(f"level {t}: {n_states:,} states, the process holds {resident_bytes() / 1e6:,.0f} MB")

        return after_level


@contextlib.contextmanager
def in_our_words() -> Iterator[None]:
    """Around work whose complaints about memory are to recommend switches, not options of others."""
    try:
        yield
    except (MemoryLimitError, MemoryPressureError) as error:
        text = str(error)
        for theirs, ours in _OUR_WORDS.items():
            text = text.replace(theirs, ours)
        error.args = (text,)
        raise
