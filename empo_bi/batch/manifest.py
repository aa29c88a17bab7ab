"""The manifest of a run, ``manifest.json``: what was asked for, its status, and its results."""

from __future__ import annotations

import os
import platform
import socket
import sys
import time
import traceback
from collections.abc import Mapping
from functools import cache
from importlib import metadata

from empo_bi._version import __version__
from empo_bi.batch.runs import Run
from empo_bi.batch.spec import BatchSpec
from empo_bi.errors import EmpoError, StoreError
from empo_bi.problem.params import Params
from empo_bi.runtime.machine import available_and_total
from empo_bi.solving.run_manifest import FAILED, FINISHED, FORMAT, RUNNING, VERSION
from empo_bi.solving.run_manifest_rules import KEEPS
from empo_bi.sweep.formulas import discount_factor
from empo_bi.types import Json

OUTDATED = "outdated"  # status of rows: finished, but now more is asked for


def asked_of(spec: BatchSpec, metrics: Mapping[str, str]) -> Json:
    """What is asked for besides what identifies a run: results, limits, and metrics with their keys."""
    return {
        "keep": spec.keep,
        "per_goal": spec.per_goal,
        "rollouts": spec.rollouts,
        "metrics": dict(metrics),
        "precision": spec.precision,
        "max_states": spec.max_states,
        "memory_limit": spec.memory_limit,
    }


def begun(run: Run, asked: Json, wish: Json, call: str, before: Json | None) -> Json:
    """The manifest of a run that is about to begin.

    ``asked`` is what will be done; ``wish`` what the user asked for, which may be less; ``call`` identifies the call;
    ``before`` is the manifest of an earlier attempt, kept if it was finished, so that a failure loses nothing.
    """
    return {
        "format": FORMAT,
        "version": VERSION,
        "key": run.key,
        "status": RUNNING,
        "world": {"name": run.world.name, "source": run.world.source, "folder": str(run.world.folder), **run.about},
        "overrides": dict(run.world.overrides),
        "steps": run.steps,
        "given_steps": run.given_steps,
        "params": Params(**run.params).describe(),
        "seed": run.seed,
        "sample": run.sample,
        "repetition": run.repetition,
        "rollout_seed": run.rollout_seed,
        "asked": asked,
        "wish": wish,
        "call": call,
        "begun": time.strftime("%Y-%m-%d %H:%M:%S"),
        "versions": versions(),
        "machine": _machine(),
        "before": _earlier(before),
    }


def finished(manifest: Json, **results: object) -> Json:
    """The manifest of a run that has finished.

    ``results`` are ``columns`` for the table, ``metric_columns`` (the columns of each metric), ``timings``, and the places
    of ``dag`` and ``store`` if they were kept: relative to the batch, and to the run.
    """
    return {**manifest, "status": FINISHED, **results, "ended": time.strftime("%Y-%m-%d %H:%M:%S"), "before": None}


def failed(manifest: Json, error: BaseException, **results: object) -> Json:
    """The manifest of a run that has failed; ``results`` are those that it has nevertheless."""
    is_ours = isinstance(error, EmpoError) and error.__cause__ is None  # then the message says everything
    described = {
        "type": type(error).__name__,
        "message": str(error),
        "traceback": None if is_ours else "".join(traceback.format_exception(error)),
        # Such as a full disk; the next call tries again, even without retry_failed.
        "is_passing": isinstance(error, StoreError) or (isinstance(error, OSError) and not isinstance(error, EmpoError)),
    }
    return {**manifest, "status": FAILED, "error": described, **results, "ended": time.strftime("%Y-%m-%d %H:%M:%S")}


def settled(manifest: Json | None, asked: Json, *, retry_failed: bool) -> Json | None:
    """The manifest that settles a run, if any: finished with all that is asked for, or failed at the same.

    What an earlier attempt finished counts even if a later attempt failed.
    """
    if manifest is None:
        return None
    for found in (manifest, manifest.get("before")):
        if found is not None and found["status"] == FINISHED and _has_all(found, asked):
            return found
    is_same = manifest["status"] == FAILED and manifest["wish"] == asked
    return manifest if is_same and not retry_failed and not manifest["error"]["is_passing"] else None


def kept_before(manifest: Json | None) -> str:
    """What an earlier attempt has kept: "values", "policies" or "summary"."""
    found = _earlier(manifest)
    return "summary" if found is None else str(found["asked"]["keep"])


def _earlier(manifest: Json | None) -> Json | None:
    """The attempt that a later one can build on: the latest finished one, or else one that failed only in a metric."""
    if manifest is None or manifest["status"] == FINISHED or manifest.get("before") is not None:
        return manifest if manifest is None or manifest["status"] == FINISHED else manifest["before"]
    return manifest if manifest.get("store") is not None else None


def _has_all(manifest: Json, asked: Json) -> bool:
    there = manifest["asked"]
    return (
        asked["metrics"].items() <= there["metrics"].items()
        and asked["rollouts"] in (0, there["rollouts"])
        and asked["per_goal"] <= there["per_goal"]
        and set(KEEPS[asked["keep"]]) <= set(KEEPS[there["keep"]])
    )


def _columns(manifest: Json, asked: Json) -> Json:
    """The columns that are asked for now."""
    others = {
        name for metric, names in manifest["metric_columns"].items() if metric not in asked["metrics"] for name in names
    }
    return {
        name: value
        for name, value in manifest["columns"].items()
        if name not in others
        and (asked["rollouts"] or not name.startswith("rollout"))
        and (asked["per_goal"] or not (name.startswith("V_h_") and name.endswith("]")))
    }


def row_of(run: Run, manifest: Json | None, before: Json | None, asked: Json) -> Json:
    """A row of the table. A run without a manifest is missing, or outdated if it was finished ``before``."""
    if manifest is None and (found := _earlier(before)) is not None and found["status"] == FINISHED:
        same = {name: key for name, key in asked["metrics"].items() if found["asked"]["metrics"].get(name) == key}
        rollouts = asked["rollouts"] if asked["rollouts"] == found["asked"]["rollouts"] else 0
        return {**row_of(run, found, None, {**asked, "metrics": same, "rollouts": rollouts}), "status": OUTDATED}
    row: Json = {
        "run": run.folder_name,
        "status": "missing" if manifest is None else manifest["status"],
        "world": run.world.name,
        "steps": run.steps,
        "seed": run.seed,
        **({} if run.sample is None else {"sample": run.sample}),
        "repetition": run.repetition,
        **_plain_params(Params(**run.params)),
    }
    row["error"] = None
    if manifest is None:
        return row
    if "columns" in manifest:
        found = _columns(manifest, asked) | manifest["timings"]
        row |= {name: value for name, value in found.items() if name not in row}  # what was asked for is not up to a file
    if manifest["status"] == FAILED:
        row["error"] = f"{manifest['error']['type']}: {manifest['error']['message']}"
    return row | {"host": manifest["machine"]["host"]}


def _plain_params(params: Params) -> Json:
    """Parameters by name, with discounts as factors."""
    described = params.describe()
    gammas = {f"gamma_{who}": _factor(getattr(params, f"gamma_{who}"), described.pop(f"rho_{who}")) for who in "hr"}
    del described["believed_others"]
    described["beta_h"] = params.beta_h
    return {"beta_h": described.pop("beta_h"), "beta_r": described.pop("beta_r"), **gammas, **described}


def _factor(given: float | None, rate: float) -> float:
    return given if given is not None else discount_factor(rate)


@cache
def versions() -> dict[str, str]:
    found = {package: metadata.version(package) for package in ("numpy", "numba", "zarr", "scipy")}
    return {"empo_bi": __version__, "python": platform.python_version(), **found}


@cache
def _machine() -> Json:
    return {
        "host": socket.gethostname(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": available_and_total()[1],
        "executable": sys.executable,
    }
