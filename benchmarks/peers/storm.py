"""Storm through stormpy: build a model from a file, ask a query, each on its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def why_missing() -> str | None:
    """None if stormpy can be used, else what to install."""
    try:
        import stormpy  # noqa: F401
    except ImportError:
        return "stormpy is not installed: pip install 'empo-bi[peers]'"
    return None


def build(path: Path) -> Any:
    """A model from a DRN or UMB file, or built by Storm itself from a PRISM program."""
    import stormpy

    if path.suffix == ".drn":
        return stormpy.build_model_from_drn(str(path))
    if path.suffix == ".umb":
        options = stormpy.io.UmbImportOptions()
        options.build_state_valuations = False  # there are none
        return stormpy.build_model_from_umb(str(path), options=options)
    program = stormpy.parse_prism_program(str(path))
    return stormpy.build_model(program)


def probability(model: Any, query: str) -> float:
    """What a query has to say of the initial state."""
    import stormpy

    result = stormpy.model_checking(model, stormpy.parse_property(query), only_initial_states=True)
    return float(result.get_value(model.initial_states[0]))
