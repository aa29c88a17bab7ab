"""Whether a run's ``manifest.json`` is one that we could have written.

A folder may be somebody else's. What its manifest says is data: it is checked here, once, before any of it becomes a path, a
parameter or a line on the screen, and nothing in it is ever imported or called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from empo_bi.problem.params import params_from
from empo_bi.runtime.wording import short_repr
from empo_bi.store.records import FLAG, OBJECT, TEXT, listed, one_of
from empo_bi.sweep.phases import PRECISIONS

_is_text, _is_flag, _is_mapping, _is_list_of_texts = TEXT.fits, FLAG.fits, OBJECT.fits, listed(TEXT).fits
Check = Callable[[object], bool]
KEEPS = {  # what remains of a run, and which arrays that takes
    "values": ("vh", "ve", "xh", "qr", "vr"),
    "policies": ("vh", "qr"),
    "summary": (),
}
MOST_EARLIER = 3  # manifests inside manifests: that of the attempt before, and of the one before that


def problem_of(manifest: Mapping[str, object], n_earlier: int = 0) -> str | None:
    """What is wrong with a manifest, in words; None if all is well. One inside another is that of an earlier attempt."""
    has_results = any(name in manifest for name in IF_SOLVED if name not in IF_FAILED)
    is_solved = manifest.get("status") == "finished" or has_results or n_earlier > 0
    wanted = ALWAYS | (IF_SOLVED if is_solved else {}) | (IF_FAILED if manifest.get("status") == "failed" else {})
    found, before = _problem(manifest, wanted), manifest.get("before")
    if found is not None or before is None:
        return found
    if not isinstance(before, dict) or n_earlier == MOST_EARLIER:
        return f"before is {short_repr(before, 40)}"
    found = problem_of(before, n_earlier + 1)
    return None if found is None else f"before.{found}"


def _problem(found: Mapping[str, object], wanted: Mapping[str, Check]) -> str | None:
    for name, check in wanted.items():
        if name not in found:
            return f"{name} is missing"
        if not check(found[name]):
            return f"{name} is {short_repr(found[name], 40)}"
    return None


def _has(**wanted: Check) -> Check:
    return lambda value: isinstance(value, dict) and _problem(value, wanted) is None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63)


def _is_plain(value: object) -> bool:
    """What a cell of a table may hold."""
    is_small = not isinstance(value, int) or abs(value) < 10**300  # as a float can be
    return value is None or isinstance(value, float | str) or (isinstance(value, int) and is_small)


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _written(pattern: str) -> Check:
    """Texts that match a pattern as a whole: names of ours, which lead nowhere else."""
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII) is not None


def _all(check: Check) -> Check:
    """Mappings with values of a kind, and names that can be printed."""
    return lambda value: isinstance(value, dict) and all(map(_is_text, value)) and all(map(check, value.values()))


def _each(*checks: Check) -> Check:
    return lambda value: all(check(value) for check in checks)


def _are_params(value: object) -> bool:
    try:
        params_from(value)
    except (TypeError, ValueError):
        return False
    return True


def _are_timings(value: object) -> bool:
    """Named so that they cannot stand for other numbers in a table."""
    known = ("peak_bytes", "runs_in_pass")
    return isinstance(value, dict) and all(name in known or str(name).endswith("_seconds") for name in value)


_ASKED = _has(
    keep=one_of(*KEEPS).fits, per_goal=_is_flag, rollouts=_is_count, metrics=_all(_is_text),
    precision=one_of(*PRECISIONS).fits, max_states=_or_none(_is_count), memory_limit=_is_plain,
)  # fmt: skip
ALWAYS: dict[str, Check] = {
    "key": _written("[0-9a-f]+"),
    "status": one_of("running", "finished", "failed").fits,
    "world": _has(
        name=_is_text, source=_is_text, folder=_is_text, title=_is_text, key=_written("[0-9a-f]+"),
        mapping=_or_none(_is_mapping),
    ),
    "overrides": _is_mapping,
    "steps": _is_plain,  # which a world in Python may call anything
    "given_steps": _or_none(_is_count),
    "params": _are_params,
    "asked": _ASKED,
    "wish": _ASKED,
    "call": _is_text,
    "begun": _is_text,
    "machine": _has(host=_is_text),
    "before": lambda value: True,  # checked as a manifest of its own
}  # fmt: skip
IF_SOLVED: dict[str, Check] = {  # also where a metric failed after that
    "columns": _all(_is_plain),
    "metric_columns": _all(_is_list_of_texts),
    "timings": _each(_all(_is_number), _has(solve_seconds=_is_number, peak_bytes=_is_number), _are_timings),
    "dag": _or_none(_written("dags/[0-9a-f]+")),
    "store": _or_none(_written("solution-[0-9a-f]+(-[0-9a-f]+)?")),
    "ended": _is_text,
}
IF_FAILED: dict[str, Check] = {
    "error": _has(type=_is_text, message=_is_text, traceback=_or_none(_is_text), is_passing=_is_flag),
    "ended": _is_text,
}
