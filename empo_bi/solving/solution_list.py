"""Several solutions in one folder: which one has which parameters."""

from __future__ import annotations

from collections.abc import Sequence

from empo_bi.errors import StoreError
from empo_bi.runtime.printable import one_line
from empo_bi.runtime.wording import short_repr
from empo_bi.store.small_files import Folder
from empo_bi.store.solution_folders import inside
from empo_bi.sweep.formulas import discount_factor
from empo_bi.types import Json

MOST_LISTED = 20
_FUNCTIONS = {"goals": "goals", "prior": "prior", "belief": "belief", "durations": "durations", "arrays": "arrays kept"}


def lines_of(folder: Folder, names: Sequence[str]) -> list[str]:
    """A line for each solution: its name, and the parameters in which it differs from the others, or all if in none."""
    found = {name: _settings(folder, name) for name in names[:MOST_LISTED]}
    known = [settings for settings in found.values() if settings is not None]
    every = list(dict.fromkeys(name for settings in known for name in settings))
    differing = [name for name in every if len({short_repr(settings.get(name)) for settings in known}) > 1] or every
    lines = [f"  {name}: {_in_words(settings, differing)}" for name, settings in found.items()]
    more = len(names) - MOST_LISTED
    return [*lines, *([f"  and {more:,} more"] if more > 0 else [])]


def _settings(folder: Folder, name: str) -> Json | None:
    """What one may have asked for, by name; None if that cannot be read."""
    from empo_bi.store.location import place_of
    from empo_bi.store.solution_store import SolutionStore

    try:
        store = SolutionStore.open(place_of(inside(folder.place, name)))
    except StoreError:
        return None
    content = store.manifest["content"]
    settings = {key: value for key, value in content["params"].items() if key != "believed_others"}
    if settings["terminal_Vr"] is None:
        settings["terminal_Vr"] = "a function"
    for who in ("h", "r"):
        rate = settings.pop(f"rho_{who}", None)
        settings[f"gamma_{who}"] = discount_factor(rate) if isinstance(rate, int | float) else rate
    settings |= {"humans": content["humans"], "robots": content["robots"], "precision": content["rest"]}
    settings |= {word: content[key] for key, word in _FUNCTIONS.items() if key in content}
    return settings | ({} if store.is_finished else {"": "not finished"})


def _in_words(settings: Json | None, names: Sequence[str]) -> str:
    if settings is None:
        return "cannot be read"
    return one_line(", ".join(f"{name} {_number(settings[name])}".lstrip() for name in names if name in settings))


def _number(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value) if isinstance(value, str | int) else short_repr(value)
