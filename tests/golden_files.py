"""The golden figures of ../shared/reference, as test cases that skip themselves where that folder is absent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

REFERENCE = Path(__file__).parents[2] / "shared" / "reference"
NO_REFERENCE = f"no reference data: {REFERENCE} is absent"


def golden_files() -> list[Path]:
    return sorted(path for folder in ("golden", "golden_complete") for path in (REFERENCE / folder).glob("*.json"))


def golden_cases(quick_lines: int) -> list[Any]:
    """(file, binding horizons) twice a file: the quick horizons, and all of them if some have more than ``quick_lines``."""
    cases = []
    for path in golden_files():
        golden = json.loads(path.read_text())["horizons"]
        binding = {int(m): figures["profile_lines"] for m, figures in golden.items() if figures["parity"]}
        quick = [m for m, lines in binding.items() if lines <= quick_lines]
        name = f"{path.parent.name}/{path.stem}"
        if quick:
            cases.append(pytest.param(path, quick, id=f"{name} up to {max(quick)}"))
        if len(binding) > len(quick):
            slow = pytest.mark.slow
            cases.append(pytest.param(path, list(binding), id=f"{name} up to {max(binding)}", marks=slow))
    return cases or [pytest.param(None, [], marks=pytest.mark.skip(reason=NO_REFERENCE))]


def check_golden_figures(path: Path, horizons: list[int], found: dict[int, dict[str, Any]]) -> None:
    """Compare counts and digests of the binding horizons."""
    golden = json.loads(path.read_text())
    for horizon in horizons:
        wanted = golden["horizons"][str(horizon)]
        compared = {name: figure for name, figure in found[horizon].items() if name in wanted}
        assert {"states_digest", "transitions_digest"} < set(compared)
        assert (horizon, compared) == (horizon, {name: wanted[name] for name in compared})


def as_tuple(value: Any) -> Any:
    return tuple(as_tuple(part) for part in value) if isinstance(value, list) else value


def golden_worlds() -> list[Any]:
    cases = [pytest.param(path, id=path.stem) for path in golden_files() if path.parent.name == "golden"]
    return cases or [pytest.param(None, marks=pytest.mark.skip(reason=NO_REFERENCE))]
