"""Compilation: one specialisation for all worlds, and a cache that notices a change in any module a kernel uses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

import empo_bi
from empo_bi import load_world
from empo_bi.runtime.jit import source_stamp
from empo_bi.world import expand

PACKAGE = Path(empo_bi.__file__).parent


def test_loading_and_expanding_all_shipped_worlds_compiles_each_kernel_once() -> None:
    for name in empo_bi.worlds.available():
        world = load_world(name)
        expansion = world.expand(world.initial_key)
        world.encode(world.decode(1, expansion.key_KW[:3]))
        world.expand(expansion.key_KW[::2], world.all_profiles[::2])  # not contiguous
        frozen = world.initial_key
        frozen.flags.writeable = False  # numba takes this for another type
        world.expand(frozen, world.all_profiles[:3].astype(np.int32))
        world.decode(0, frozen)
    for kernel in (expand.expand_block, expand.pack_rows, expand.unpack_keys):
        assert len(kernel.signatures) == 1


COUNT_SPECIALISATIONS = """
from empo_bi import load_world
from empo_bi.world import board, expand, joint_actions, rules, turn_order
world = load_world("asymmetric_freeing")
world.expand(world.initial_key)
for module in (board, rules, joint_actions, turn_order, expand):
    for name, function in vars(module).items():
        if hasattr(function, "signatures"):
            print(name, len(function.signatures))
"""


def test_no_rule_is_compiled_for_more_than_one_set_of_types(tmp_path: Path) -> None:
    """Otherwise a literal or a narrow integer has slipped into a call, and the first start takes longer than it must."""
    lines = _python(COUNT_SPECIALISATIONS, PACKAGE.parent, tmp_path).splitlines()
    counts = {name: int(count) for name, count in map(str.split, lines)}
    assert counts["play_stumblers"] == 1, "compiled from scratch, so that there is something to count"
    assert {name: count for name, count in counts.items() if count > 1} == {}


def test_the_stamp_of_a_kernel_covers_all_modules_it_is_made_of() -> None:
    names = {name for name, _, _ in source_stamp(PACKAGE / "world" / "expand.py")}
    assert {
        f"world/{name}.py"
        for name in ("expand", "turn_order", "joint_actions", "rules", "board", "layout", "codes", "tables")
    } <= names
    assert "world/render.py" not in names


PACK_ONE_ROW = """
import numpy as np
from empo_bi.world import expand, layout, tables
from empo_bi.world.source import read_source
from empo_bi.world.spec import read_spec
world = layout.StateLayout(read_spec(read_source({"map": "We We We\\nWe Ay We\\nWe We We"})))
keys = np.zeros((1, 1), dtype=np.uint64)
expand.pack_rows(tables.build_tables(world).world, world.initial_row[None].copy(), keys)
print(keys[0, 0], expand.pack_rows.stats.cache_hits.total())
"""


def _python(code: str, root: Path, cache: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=True).stdout


def test_other_peoples_functions_are_compiled_as_ever() -> None:
    namespace: dict[str, Any] = {"__name__": None}
    exec("def twice(x): return 2 * x", namespace)  # a function without a module, as notebooks have them
    assert njit(namespace["twice"])(3) == 6


def test_without_a_folder_for_the_cache_everything_works_and_one_is_told_why_it_is_slow(tmp_path: Path) -> None:
    code = """
import warnings
from numba.core import caching
caching.CacheImpl._locator_classes = []  # as on a read-only installation without a home folder
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from empo_bi.runtime.jit import kernel
    print(kernel(lambda x: x + 1)(2), "NUMBA_CACHE_DIR" in str(caught[-1].message))
"""
    assert _python(code, PACKAGE.parent, tmp_path).split() == ["3", "True"]


def test_a_rule_changed_in_another_module_is_not_served_from_the_cache(tmp_path: Path) -> None:
    """Numba alone would look at expand.py only and go on with the old rule."""
    shutil.copytree(PACKAGE, tmp_path / "empo_bi", ignore=shutil.ignore_patterns("__pycache__"))

    def key_and_cache_hits() -> list[str]:
        return _python(PACK_ONE_ROW, tmp_path, tmp_path / "cache").split()

    key, hits = key_and_cache_hits()
    assert hits == "0"
    assert key_and_cache_hits() == [key, "1"]
    path = tmp_path / "empo_bi" / "world" / "board.py"
    old = "    return world[world[TYPES] + 2 * type_number]"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, old + " + 0"))
    assert key_and_cache_hits() == [key, "0"]
    assert key_and_cache_hits() == [key, "1"]
