"""The DAG that a solution needs, enumerated beside it, or opened if it is there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from empo_bi.dag.dag import Dag
from empo_bi.dag.python_world import LevelFunction
from empo_bi.dag.slices import EXACT
from empo_bi.dag.sub_problem import SubProblem
from empo_bi.errors import DamagedStoreError, StoreMismatchError
from empo_bi.solving.enumeration import enumerated
from empo_bi.solving.options import Resources, Storage
from empo_bi.store.solution_folders import inside
from empo_bi.world.as_model import Model


def enumerated_beside(
    model: Model, storage: Storage, resources: Resources, level_fct: LevelFunction | None, part: SubProblem
) -> Dag:
    """The DAG of a world, stored as its solution is.

    One that is there is replaced only if it is another one, or damaged, whatever ``overwrite`` says: others may be using it.
    """
    where = _place_beside(storage.where)
    beside = replace(storage, where=where, precision=EXACT, overwrite=storage.overwrite and _is_damaged(where))
    try:
        return enumerated(model, beside, resources, level_fct, part)
    except (StoreMismatchError, DamagedStoreError):
        if not storage.overwrite:
            raise
        return enumerated(model, replace(beside, overwrite=True), resources, level_fct, part)


def _place_beside(where: object) -> Any:
    return where if where is None or where is True else inside(where, "dag")


def _is_damaged(where: Any) -> bool:
    from empo_bi.store.verify import is_damaged

    return where is not None and where is not True and is_damaged(where)
