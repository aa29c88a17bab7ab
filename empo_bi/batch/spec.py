"""A batch as written in YAML: its keys, and errors that point to the line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from empo_bi.batch.metrics import MetricReference, metric_references
from empo_bi.batch.parameter_values import ParameterValues, parameter_values_of
from empo_bi.errors import BatchFileError
from empo_bi.problem.params import PLAIN_PARAMETERS, Params
from empo_bi.runtime.arguments import check_path
from empo_bi.runtime.blocks import checked_workers
from empo_bi.runtime.byte_sizes import Size, parse_size
from empo_bi.runtime.wording import did_you_mean, short_repr
from empo_bi.solving.run_manifest_rules import KEEPS
from empo_bi.sweep.phases import PRECISIONS
from empo_bi.types import Json
from empo_bi.world.lint import KNOWN_KEYS
from empo_bi.world.yaml_text import KeyPath, load_yaml, place_of_key, read_text

KEYS = {  # of a batch file, and the method that reads each
    "worlds": "_worlds", "steps": "_steps", "params": "_params", "overrides": "_overrides", "samples": "_count",
    "seed": "_seeds", "repetitions": "_count", "rollouts": "_count", "metrics": "_metrics", "keep": "_keep",
    "per_goal": "_flag", "precision": "_precision", "max_states": "_count", "memory_limit": "_size",
    "workers": "_workers", "out": "_out",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BatchSpec:
    """Everything that a batch file says.

    Attributes
    ----------
    worlds : names of shipped worlds, paths, globs of either, or ``module:function`` for worlds written in Python
    steps : the horizon, None for each world's own
    params : parameters of the theory, each fixed, listed or drawn
    overrides : values that replace those of the world files, for all worlds
    samples : how many samples of drawn parameters there are
    seeds : each seed draws its own samples
    repetitions : runs with the same parameters, which differ only in their rollouts
    rollouts : episodes sampled in each run
    metrics : functions of a solution whose numbers go into the table
    keep : "values", "policies" or "summary"
    per_goal : whether the table has the humans' values for each goal, or only their mean and range
    precision, max_states, memory_limit : as for :func:`solve`, for each run
    workers : runs at a time
    out : folder or URL
    folder : paths in the file are relative to this folder
    written : the file as it was read
    """

    worlds: tuple[str, ...]
    steps: ParameterValues | None = None
    params: tuple[ParameterValues, ...] = ()
    overrides: Mapping[str, Any] = ()  # type: ignore[assignment]
    samples: int = 0
    seeds: tuple[int, ...] = (0,)
    repetitions: int = 1
    rollouts: int = 0
    metrics: tuple[MetricReference, ...] = ()
    keep: str = "values"
    per_goal: bool = False
    precision: str = "float16"
    max_states: int | None = None
    memory_limit: Size | None = None
    workers: int = -1
    out: str = "runs/batch"
    folder: Path = Path()
    written: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def describe(self) -> Json:
        """The batch as JSON: the file, and options that may have been replaced."""
        replaced = ("samples", "keep", "memory_limit", "workers", "out")
        return {"file": dict(self.written), "folder": str(self.folder), **{name: getattr(self, name) for name in replaced}}

    def replace(self, **changes: Any) -> BatchSpec:
        """The same batch with some options changed; None leaves an option as it is."""
        changes = {name: value for name, value in changes.items() if value is not None}
        if changes.get("keep", "values") not in list(KEEPS):  # a list, since the value may not be hashable
            hint = did_you_mean(str(changes["keep"]), KEEPS)
            raise ValueError(f"keep={changes['keep']!r}; give one of {', '.join(KEEPS)}.{hint}")
        parse_size(changes.get("memory_limit", "1GB"))
        checked_workers(changes.get("workers", 1))
        spec = replace(self, **changes)
        if spec.rollouts and spec.keep == "policies":
            raise ValueError("keep='policies': rollouts need values; give 'values' or 'summary'")
        return spec


def read_spec(source: str | os.PathLike[str] | Mapping[str, Any]) -> BatchSpec:
    """Read a batch from a YAML file, a YAML text (of several lines), or a mapping.

    Raises
    ------
    BatchFileError
        The message names file, line, key and value, and says what is expected.

    Examples
    --------
    >>> spec = read_spec({"worlds": "asymmetric_freeing", "steps": [8, 10], "params": {"zeta": [1, 2]}})
    >>> spec.keep, [parameter.values for parameter in spec.params]
    ('values', [(1, 2)])
    """
    if isinstance(source, Mapping):
        return _Reader(dict(source), "<mapping>", {}, Path.cwd(), "batch").spec()
    lines: dict[KeyPath, int] = {}
    if isinstance(source, str) and "\n" in source:
        content = load_yaml(source, "<text>", lines, what="batch file", error=BatchFileError)
        return _Reader(content, "<text>", lines, Path.cwd(), "batch").spec()
    check_path("source", source, "a YAML file or text, a mapping or a BatchSpec")
    path = Path(source).expanduser()
    remedy = "give a YAML file that says what to run, see docs/batch.md"
    text = read_text(path, what="batch file", remedy=remedy, error=BatchFileError)
    content = load_yaml(text, str(path), lines, what="batch file", error=BatchFileError)
    return _Reader(content, str(path), lines, path.resolve().parent, path.stem).spec()


def _number(value: object) -> object:
    """Accept ``inf`` and ``1e-10`` as numbers; YAML spells infinity ``.inf``, and takes ``1e-10`` for a text."""
    if isinstance(value, list):
        return [_number(one) for one in value]
    if isinstance(value, dict):
        return {name: _number(one) for name, one in value.items()}
    if isinstance(value, str) and re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+|inf|infinity", value):
        return float(value)
    return value


class _Reader:
    """Checks a mapping key by key."""

    def __init__(self, content: object, origin: str, lines: dict[KeyPath, int], folder: Path, name: str) -> None:
        self._origin, self._lines, self._folder, self._name = origin, lines, folder, name
        if not isinstance(content, dict):
            raise BatchFileError(
                f"{origin}: found {type(content).__name__}, expected a mapping with at least the key 'worlds', "
                "as in 'worlds: [asymmetric_freeing]'"
            )
        self._content: Json = content

    def _error(self, *path: str | int, message: str) -> BatchFileError:
        return BatchFileError(f"{place_of_key(self._origin, self._lines, path)}: {message}")

    def _error_maker(self, *path: str | int) -> Callable[[str], BatchFileError]:
        return lambda message: self._error(*path, message=message)

    def spec(self) -> BatchSpec:
        for key in self._content:
            if key not in KEYS:
                hint = did_you_mean(str(key), KEYS) or f" Known keys: {', '.join(KEYS)}."
                moved = f" {key} is a parameter of the theory: write it below 'params'." if key in PLAIN_PARAMETERS else ""
                raise self._error(str(key), message=f"unknown key.{moved or hint}")
        if "worlds" not in self._content:
            raise self._error("worlds", message="missing; list the worlds to run, as in 'worlds: [asymmetric_freeing]'")
        found: Json = {}
        for key, value in self._content.items():
            name = "seeds" if key == "seed" else key
            found[name] = getattr(self, KEYS[key])(key, value)
        spec = BatchSpec(**{"out": f"runs/{self._name}", **found, "folder": self._folder, "written": self._content})
        self._check_samples(spec)
        self._check_rollouts(spec)
        return spec

    def _check_rollouts(self, spec: BatchSpec) -> None:
        if spec.repetitions > 1 and not spec.rollouts:
            raise self._error("repetitions", message="differ only in rollouts; also give rollouts, as in 'rollouts: 100'")
        if spec.rollouts and spec.keep == "policies":
            raise self._error("keep", message="rollouts need values; write 'keep: values' or 'keep: summary'")

    def _check_samples(self, spec: BatchSpec) -> None:
        drawn = [parameter.name for parameter in (spec.steps, *spec.params) if parameter is not None and parameter.is_random]
        if drawn and "samples" not in self._content:
            raise self._error(
                "samples",
                message=f"missing; {', '.join(drawn)} is drawn at random: give a number of draws, 'samples: 200'",
            )
        if drawn and spec.samples < 1:
            raise self._error("samples", message=f"{spec.samples}; {', '.join(drawn)} is drawn at random: give 1 or more")
        if not drawn and "samples" in self._content:
            raise self._error(
                "samples",
                message="nothing is drawn; give a distribution, as in 'zeta: {uniform: [1, 3]}', or remove this",
            )

    # --- the keys -----------------------------------------------------------------------------------------------------

    def _worlds(self, key: str, given: object) -> tuple[str, ...]:
        worlds = [given] if isinstance(given, str) else given
        if not isinstance(worlds, list) or not worlds:
            raise self._error(
                key, message=f"found {short_repr(given)}; give a list of names, paths or patterns such as 'pushing/*'"
            )
        for i, world in enumerate(worlds):
            if not isinstance(world, str) or not world.strip():
                raise self._error(key, i, message=f"found {short_repr(world)}; give the name, path or pattern of worlds")
        return tuple(dict.fromkeys(worlds))

    def _steps(self, key: str, given: object) -> ParameterValues:
        parameter = parameter_values_of("steps", given, self._error_maker(key))
        for value in parameter.values or parameter.ends:
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise self._error(key, message=f"found {short_repr(value)}; give a whole number of steps, 1 or more")
        if parameter.kind in ("uniform", "log_uniform"):
            raise self._error(key, message=f"{parameter.kind} draws fractions; write {{integers: {list(parameter.ends)}}}")
        return parameter

    def _params(self, key: str, given: object) -> tuple[ParameterValues, ...]:
        if not isinstance(given, dict):
            raise self._error(
                key, message=f"found {short_repr(given)}; give parameters by name, as in 'zeta: [1, 2]' below it"
            )
        found = []
        for name, value in given.items():
            if name not in PLAIN_PARAMETERS:
                hint = did_you_mean(str(name), PLAIN_PARAMETERS) or f" Known parameters: {', '.join(PLAIN_PARAMETERS)}."
                raise self._error(key, str(name), message=f"unknown parameter.{hint}")
            parameter = parameter_values_of(name, _number(value), self._error_maker(key, name))
            for number in parameter.values or parameter.ends:
                try:
                    Params(**{name: number})
                except (TypeError, ValueError) as error:
                    raise self._error(key, name, message=str(error)) from error
            found.append(parameter)
        for who in "hr":
            if {f"gamma_{who}", f"rho_{who}"} <= given.keys():
                raise self._error(key, f"rho_{who}", message=f"gamma_{who} is given as well; give only one of them")
        return tuple(found)

    def _overrides(self, key: str, given: object) -> Json:
        if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
            raise self._error(
                key, message=f"found {short_repr(given)}; give keys of world files, as in 'actions: small' below it"
            )
        if "max_steps" in given:
            raise self._error(key, "max_steps", message="write horizons as 'steps: [8, 10]' instead")
        has_functions = any(":" in str(world) for world in self._content.get("worlds", []))  # with options of their own
        for name in [] if has_functions else given:
            if name not in (*KNOWN_KEYS, "actions"):
                hint = did_you_mean(name, KNOWN_KEYS) or f" Known keys: {', '.join(KNOWN_KEYS)}."
                raise self._error(key, name, message=f"unknown key of world files.{hint}")
        return given

    def _count(self, key: str, given: object) -> int:
        least = 0 if key == "rollouts" else 1
        if isinstance(given, bool) or not isinstance(given, int) or given < least:
            raise self._error(key, message=f"found {short_repr(given)}; give a whole number, {least} or more")
        return given

    def _seeds(self, key: str, given: object) -> tuple[int, ...]:
        seeds = given if isinstance(given, list) else [given]
        if not seeds or any(isinstance(seed, bool) or not isinstance(seed, int) or seed < 0 for seed in seeds):
            raise self._error(key, message=f"found {short_repr(given)}; give a whole number, or a list of them")
        return tuple(dict.fromkeys(seeds))

    def _metrics(self, key: str, given: object) -> tuple[MetricReference, ...]:
        return metric_references(given, self._folder, lambda *path, message: self._error(key, *path, message=message))

    def _keep(self, key: str, given: object) -> str:
        if not isinstance(given, str) or given not in KEEPS:
            raise self._error(
                key, message=f"found {short_repr(given)}; give one of {', '.join(KEEPS)}.{did_you_mean(str(given), KEEPS)}"
            )
        return str(given)

    def _flag(self, key: str, given: object) -> bool:
        if not isinstance(given, bool):
            raise self._error(key, message=f"found {short_repr(given)}; give true or false")
        return given

    def _precision(self, key: str, given: object) -> str:
        if not isinstance(given, str) or given not in PRECISIONS:
            raise self._error(key, message=f"found {short_repr(given)}; give one of {', '.join(PRECISIONS)}")
        return str(given)

    def _size(self, key: str, given: Any) -> Size:
        try:
            parse_size(given)
        except (TypeError, ValueError) as error:
            raise self._error(key, message=str(error)) from error
        return given

    def _workers(self, key: str, given: Any) -> int:
        try:
            checked_workers(given)
        except (TypeError, ValueError) as error:
            raise self._error(key, message=str(error)) from error
        return int(given)

    def _out(self, key: str, given: object) -> str:
        if not isinstance(given, str) or not given:
            raise self._error(key, message=f"found {short_repr(given)}; give a folder or URL")
        return given if "://" in given else str(self._folder / Path(given).expanduser())
