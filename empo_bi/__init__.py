"""empo_bi: backward-induction planning for multi-agent worlds, with disk-sliced DAGs.

``__init__.pyi`` lists the public names. Each is imported when it is first used, so ``import empo_bi`` is quick. Errors are
in ``empo_bi.errors``, goals in ``empo_bi.goals``.
"""

from __future__ import annotations

import importlib
from typing import Any

import lazy_loader

from empo_bi._version import __version__ as __version__
from empo_bi.runtime.hooks import register

# Methods of core classes that optional rooms provide; the core itself imports none of these rooms.
register(
    {
        "Dag.display": "empo_bi.analysis.displays:dag_html",
        "Dag.to_drn": "empo_bi.export.drn:write_drn",
        "Dag.to_umb": "empo_bi.export.umb:write_umb",
        "MapWorld.bundle": "empo_bi.analysis.displays:world_bundle",
        "MapWorld.display": "empo_bi.analysis.displays:world_html",
        "MapWorld.get_dag": "empo_bi.compat.documented:dag_of_python_objects",
        "MapWorld.show": "empo_bi.analysis.displays:state_view",
        "Rollouts.display": "empo_bi.analysis.displays:rollouts_html",
        "Rollouts.save": "empo_bi.analysis.film:save_film",
        "Solution.columns": "empo_bi.batch.summary:columns_of",
        "Solution.display": "empo_bi.analysis.displays:solution_html",
        "Solution.explore": "empo_bi.report.in_notebook:explorer_of",
        "Solution.precision": "empo_bi.accuracy.measured:bounds_of",
        "Solution.to_pandas": "empo_bi.analysis.to_pandas:table_of",
        "Solution.to_xarray": "empo_bi.analysis.to_xarray:dataset_of",
        "StateReport.display": "empo_bi.analysis.displays:report_html",
    }
)

# Names that version 0.1 had at the front door. They keep working, and are not listed any more.
_FORMER_HOMES = {
    "BatchResult": "batch.batch",
    "ExportedModel": "dag.exported_model",
    "MarkovChain": "results.chain",
    "Plan": "planner.plan",
    "ReportFile": "report.report",
    "TabularHumanPolicyPrior": "results.policies",
    "TabularRobotPolicy": "results.policies",
    "check_memory": "memory.monitor",
}

_listed, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _listed(name)
    if name in _FORMER_HOMES:
        return getattr(importlib.import_module(f"empo_bi.{_FORMER_HOMES[name]}"), name)
    for home in ("errors", "goals"):
        if not name.startswith("_") and name in (module := importlib.import_module(f"empo_bi.{home}")).__all__:
            return getattr(module, name)
    raise AttributeError(f"module 'empo_bi' has no attribute {name!r}")
