"""What a run's folder says about itself: ``manifest.json``."""

from __future__ import annotations

import math
import os
import platform
import socket
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from typing import Any

import empo_bi
from empo_bi.batch.folder import Folder, Json
from empo_bi.batch.runs import Run
from empo_bi.batch.spec import KEEPS
from empo_bi.errors import EmpoError
from empo_bi.memory.machine import available_and_total
from empo_bi.options import Params

FILE = "manifest.json"
FORMAT, VERSION = "empo_bi run", 1
RUNNING, FINISHED, FAILED = "running", "finished", "failed"


def read_manifest(folder: Folder) -> Json | None:
    """None if there is none, or not one of ours."""
    found = folder.read_json(FILE)
    return found if found is not None and (found.get("format"), found.get("version")) == (FORMAT, VERSION) else None


def begun(run: Run, asked: Json, call: str) -> Json:
    """The manifest of a run that is about to begin; ``asked`` is what :func:`asked_of` says, ``call`` tells who asks."""
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
        "asked": asked,
        "call": call,
        "begun": time.strftime("%Y-%m-%d %H:%M:%S"),
        "versions": _versions(),
        "machine": _machine(),
    }


def finished(manifest: Json, *, columns: Json, timings: Json, dag: str | None) -> Json:
    """The same when all is done: numbers for the table, and where the DAG is, relative to the batch, if it was kept."""
    ended = {"ended": time.strftime("%Y-%m-%d %H:%M:%S")}
    return {**manifest, "status": FINISHED, "columns": columns, "timings": timings, "dag": dag, **ended}


def failed(manifest: Json, error: BaseException) -> Json:
    """The same when something went wrong."""
    told = {
        "type": type(error).__name__,
        "message": str(error),
        # What we raise on purpose says all in its message.
        "traceback": None if isinstance(error, EmpoError) else "".join(traceback.format_exception(error)),
    }
    return {**manifest, "status": FAILED, "error": told, "ended": time.strftime("%Y-%m-%d %H:%M:%S")}


def asked_of(*, keep: str, per_goal: bool, rollouts: int, metrics: Mapping[str, str], precision: str) -> Json:
    """What is wanted of a solution, besides what tells runs apart."""
    return {"keep": keep, "per_goal": per_goal, "rollouts": rollouts, "metrics": dict(metrics), "precision": precision}


def has_all(manifest: Json | None, asked: Json) -> bool:
    """Whether a finished run has what is asked for now."""
    if manifest is None or manifest["status"] != FINISHED:
        return False
    there = manifest["asked"]
    same = all(there[part] == asked[part] for part in ("per_goal", "rollouts", "metrics"))
    return same and set(KEEPS[asked["keep"]]) <= set(KEEPS[there["keep"]])


def row_of(run: Run, manifest: Json | None) -> Json:
    """A row of the table."""
    params = Params(**run.params)
    row: Json = {
        "run": run.folder_name,
        "status": "missing" if manifest is None else manifest["status"],
        "world": run.world.name,
        "steps": run.steps,
        **({} if run.sample is None else {"seed": run.seed, "sample": run.sample}),
        "repetition": run.repetition,
        **_plain_params(params),
    }
    if manifest is not None:
        row |= manifest.get("columns", {})
        if manifest["status"] == FAILED:
            row["error"] = f"{manifest['error']['type']}: {manifest['error']['message']}"
        row |= manifest.get("timings", {})
        row["host"] = manifest["machine"]["host"]
    return row


def _plain_params(params: Params) -> Json:
    """By name, discounts as factors."""
    described = params.describe()
    gammas = {f"gamma_{who}": _factor(getattr(params, f"gamma_{who}"), described.pop(f"rho_{who}")) for who in "hr"}
    del described["believed_others"]
    described["beta_h"] = params.beta_h
    return {"beta_h": described.pop("beta_h"), "beta_r": described.pop("beta_r"), **gammas, **described}


def _factor(given: float | None, rate: float) -> float:
    return given if given is not None else math.exp(-rate)


@cache
def _versions() -> dict[str, str]:
    packages: Sequence[str] = ("numpy", "numba", "zarr", "scipy")
    return {"empo_bi": empo_bi.__version__, "python": platform.python_version()} | {
        package: metadata.version(package) for package in packages
    }


@cache
def _machine() -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": available_and_total()[1],
        "executable": sys.executable,
    }
