"""Canonical forms, digests and counts of shared/reference/README.md, for any source of transitions.

``canonical_state``, ``transition_line`` and ``digest`` need no world, so that another implementation's states and
transitions can be digested with them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol

State = tuple


class GoldenWorld(Protocol):
    """What the enumeration asks of a world."""

    def initial_state(self) -> State: ...

    def profiles(self) -> Iterable[tuple[int, ...]]: ...

    def transitions(self, state: State, profile: Sequence[int]) -> Mapping[State, Fraction] | None: ...


def canonical_state(state: State) -> str:
    """The nested tuple as JSON without white space (canonical form, 1)."""
    return json.dumps(state, separators=(",", ":"))


def transition_line(state: State, profile: Sequence[int], outcomes: Mapping[State, Fraction | float]) -> str:
    """One line for a state, a profile and its successors {state: probability} (canonical form, 2)."""
    pairs = sorted((canonical_state(successor), f"{float(p):.9f}") for successor, p in outcomes.items())
    successors = ",".join(f'[{text},"{p}"]' for text, p in pairs)
    actions = ",".join(str(int(action)) for action in profile)
    return f"[{canonical_state(state)},[{actions}],[{successors}]]"


def line_hash(line: str) -> bytes:
    """32 raw bytes (canonical form, 3)."""
    return hashlib.sha256(line.encode("utf-8")).digest()


def digest_of_hashes(hashes: Iterable[bytes]) -> str:
    """Sort, concatenate, hash (canonical form, 4)."""
    return hashlib.sha256(b"".join(sorted(hashes))).hexdigest()


def digest(lines: Iterable[str]) -> str:
    """Digest of state texts or transition lines, whatever their order (canonical form, 4 and 5)."""
    return digest_of_hashes(line_hash(line) for line in lines)


def enumerate_levels(world: GoldenWorld, max_steps: int) -> list[list[State]]:
    """All reachable states by step count 0, 1, ..., ``max_steps``, breadth first."""
    levels = [[world.initial_state()]]
    for _ in range(max_steps):
        found: dict[State, None] = {}
        for state in levels[-1]:
            for profile in world.profiles():
                found.update(dict.fromkeys(world.transitions(state, profile) or ()))
        levels.append(list(found))
    return levels


def golden_figures_by_horizon(world: GoldenWorld, max_horizon: int) -> dict[int, dict[str, Any]]:
    """The figures of horizons 1, 2, ..., ``max_horizon`` from one enumeration.

    The enumeration for horizon m is a prefix of that for m + 1 (README, "How the numbers were made"); the world's
    own ``max_steps`` must not be below ``max_horizon``.
    """
    figures: dict[int, dict[str, Any]] = {}
    level: list[State] = [world.initial_state()]
    states_per_level = [1]
    state_hashes = [line_hash(canonical_state(level[0]))]
    transition_hashes: list[bytes] = []
    stochastic_lines = transition_entries = 0
    for horizon in range(1, max_horizon + 1):
        found: dict[State, None] = {}
        for state in level:
            for profile in world.profiles():
                outcomes = world.transitions(state, profile)
                assert outcomes is not None, f"terminal state before step {max_horizon}"
                transition_hashes.append(line_hash(transition_line(state, profile, outcomes)))
                stochastic_lines += len(outcomes) > 1
                transition_entries += len(outcomes)
                found.update(dict.fromkeys(outcomes))
        level = list(found)
        states_per_level.append(len(level))
        state_hashes.extend(line_hash(canonical_state(state)) for state in level)
        figures[horizon] = {
            "states_per_level": list(states_per_level),
            "profile_lines": len(transition_hashes),
            "stochastic_lines": stochastic_lines,
            "transition_entries": transition_entries,
            "states_digest": digest_of_hashes(state_hashes),
            "transitions_digest": digest_of_hashes(transition_hashes),
        }
    return figures


def golden_figures(world: GoldenWorld, horizon: int) -> dict[str, Any]:
    """Counts and digests of one horizon, at least 1, as README.md defines them."""
    return golden_figures_by_horizon(world, horizon)[horizon]
