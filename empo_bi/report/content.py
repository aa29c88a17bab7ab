"""The content of a report: the numbers of the chosen states as arrays, and a head in JSON.

The robot's numbers are float64, since its values span many orders of magnitude; the humans' are float32. Letters: N
chosen states, I agents, H humans, G goals, A actions, R robot profiles, J joint profiles, T levels, L successors, E entries.
"""

from __future__ import annotations

import platform
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi._version import __version__
from empo_bi.analysis.agent_policy import marginal_policy
from empo_bi.problem.goal_columns import bits_of
from empo_bi.problem.protocols import Goal
from empo_bi.report.pictures import COLUMNS, TILE, data_url, pictures_of
from empo_bi.report.state_selection import NOT_EMBEDDED, Choice
from empo_bi.report.steps import Steps, steps_of
from empo_bi.report.survey import QUANTILES, Survey
from empo_bi.results.goal_names import label_of
from empo_bi.results.solution import Solution
from empo_bi.types import Array, FloatArray, IndexArray, Json
from empo_bi.world.goals import ConditionGoal, ReachGoal, cells_of
from empo_bi.world.row_codec import MapState

Arrays = dict[str, npt.NDArray[np.number]]


@dataclass(frozen=True)
class Content:
    """``head`` goes into the page as JSON, ``arrays`` and ``texts`` in a packed block.

    ``first_map`` is the first state of a world on a map as a data URL, which is visible before the block is unpacked.
    """

    head: Json
    arrays: Arrays
    texts: dict[str, list[str]]
    first_map: str | None = None


def content_of(solution: Solution, found: Survey, choice: Choice, title: str | None = None) -> Content:
    """All that the page shows."""
    grid = solution.model.grid
    states = [state for t in range(solution.dag.horizon + 1) for state in _states(solution, choice, t)]
    arrays = _numbers(solution, choice) | _transitions(solution, choice) | _levels(solution, found, choice)
    texts = {"state": [repr(state) for state in states]}
    head, first_map = _head(solution, choice, found, title), None
    if grid is not None:
        pictures = pictures_of(grid, states)
        head["grid"] = {
            "width": grid.width,
            "height": grid.height,
            "tile": TILE,
            "columns": COLUMNS,
            "parts": grid.state_parts,
        }
        head["grid"]["sheet"], first_map = data_url(pictures.sheet), data_url(pictures.first(grid.width))
        pose_NI = np.array([[grid.pose(state, i) for i in range(len(grid.agents))] for state in states])
        arrays |= {
            "first_cells": pictures.first_C, "difference_start": pictures.start_N,
            "difference_cell": pictures.cell_D, "difference_shown": pictures.shown_D,
            "agent_cell": (pose_NI // grid.n_directions).astype(np.uint16),
            "agent_direction": (pose_NI % grid.n_directions).astype(np.uint8),
            "others": _others(states),
        }  # fmt: skip
        texts["words"] = [grid.describe(state) for state in states]
    return Content(head, arrays, texts, first_map)


def _states(solution: Solution, choice: Choice, t: int) -> Sequence[Any]:
    here = choice.on_level(t)
    return solution.dag.states(t, choice.place_N[here]) if here.stop > here.start else []


def _others(states: list[MapState]) -> npt.NDArray[np.int32]:
    """(N, I): states with equal numbers in column i differ at most in agent i."""
    known = dict[Hashable, int]()
    rows = []
    for step, agents, *rest in states:
        without = [(step, i, agents[:i] + agents[i + 1 :], *rest) for i in range(len(agents))]
        rows.append([known.setdefault(rest, len(known)) for rest in without])
    return np.array(rows, dtype=np.int32)


# --- values and policies ----------------------------------------------------------------------------------------------


def _numbers(solution: Solution, choice: Choice) -> Arrays:
    goals, n = solution.goal_columns, len(choice)
    shape = (n, len(solution.humans), goals.n_goals)
    n_actions, has_phase_1 = solution.profiles.n_actions, solution.results.has(0, "vh")
    v_r, u_r, x_h = np.zeros(n), np.zeros(n), np.zeros(shape[:2])
    q_r, pi_r = np.zeros((n, len(solution.robot_profiles))), np.zeros((n, len(solution.robot_profiles)))
    vh_m, vh_e = np.zeros(shape if has_phase_1 else (0, *shape[1:]), dtype=np.float32), np.zeros(shape, dtype=np.float32)
    pi_h = np.zeros((*vh_m.shape, n_actions), dtype=np.float32)
    attained = np.zeros(shape, dtype=np.uint8)
    weight = np.zeros(shape) if not goals.is_fixed else goals.weights(0).reshape(1, *shape[1:])
    for t in range(solution.dag.horizon + 1):
        here = choice.on_level(t)
        place = choice.place_N[here]
        if len(place) == 0:
            continue
        v_r[here], x_h[here] = solution.rows("vr", t, place), solution.rows("xh", t, place)
        u_r[here] = solution.rewards(t, place)
        q_r[here], pi_r[here] = solution.rows("qr", t, place), solution.robot_policies(t, place)
        vh_e[here] = solution.rows("ve", t, place)
        attained[here] = bits_of(goals.attained(t, place), goals.n_columns).reshape(-1, *shape[1:])
        if not goals.is_fixed:
            weight[here] = np.where(goals.has(t)[place], goals.weights(t)[place], np.nan).reshape(-1, *shape[1:])
        if has_phase_1:
            vh_m[here] = solution.rows("vh", t, place)
            going_on, policies = solution.human_policies.of_states(t, place)
            pi_h[here.start + _where(going_on, place)] = policies
    return {
        "level": choice.level_N.astype(np.int32), "place": choice.place_N.astype(np.int32), "reached": choice.mass_N,
        "V_r": v_r, "U_r": u_r, "X_h": x_h, "Q_r": q_r, "pi_r": pi_r, "Vh_m": vh_m, "Vh_e": vh_e, "pi_h": pi_h,
        "weight": weight, "attained": attained,
    }  # fmt: skip


def _where(wanted: IndexArray, place: IndexArray) -> IndexArray:
    """The index in ``place`` of each wanted place."""
    order = np.argsort(place)
    return order[np.searchsorted(place[order], wanted)]


# --- transitions ------------------------------------------------------------------------------------------------------


def _transitions(solution: Solution, choice: Choice) -> Arrays:
    """For each state its distinct successors with their probabilities under both policies, and the outcomes of each profile.

    All successors that are not in the file count as one. ``outcome_successor`` is an index among the state's successors.
    """
    n, dag, profiles = len(choice), solution.dag, solution.profiles
    count_NJ = np.zeros((n, dag.n_profiles), dtype=np.uint16)
    n_succ_N = np.zeros(n, dtype=np.int64)
    goes_on_N = np.zeros(n, dtype=np.uint8)
    marginal_NHA = np.zeros((n, len(solution.humans), profiles.n_actions), dtype=np.float32)
    owner, successor, likely = list[IndexArray](), list[IndexArray](), list[FloatArray]()
    entry_owner, entry_profile, entry_local, entry_prob = (list[IndexArray]() for _ in range(4))
    for t in range(dag.horizon + 1):
        here = choice.on_level(t)
        for steps in steps_of(solution, t, choice.place_N[here]):
            number_M = here.start + _where(steps.place_M, choice.place_N[here])
            goes_on_N[number_M] = 1
            for h, human in enumerate(solution.humans):
                marginal_NHA[number_M, h] = marginal_policy(solution, steps.weight_MJ, human)
            row_L, succ_L, prob_L, row_E, profile_E, local_E, prob_E = _distinct(steps, choice)
            owner.append(number_M[row_L])
            successor.append(succ_L)
            likely.append(prob_L)
            np.add.at(count_NJ, (number_M[row_E], profile_E), 1)
            n_succ_N[number_M] = np.bincount(row_L, minlength=len(number_M))
            for parts, part in zip(
                (entry_owner, entry_profile, entry_local, entry_prob),
                (number_M[row_E], profile_E, local_E, prob_E),
                strict=True,
            ):
                parts.append(part)
    order_L = np.argsort(_joined(owner), kind="stable")
    order_E = np.lexsort((_joined(entry_profile), _joined(entry_owner)))  # stable
    value_P, prob_E = np.unique(_joined(entry_prob, float)[order_E], return_inverse=True)
    return {
        "goes_on": goes_on_N,
        "marginal": marginal_NHA,
        "successor_start": np.concatenate([[0], n_succ_N.cumsum()]).astype(np.int32),
        "successor": _joined(successor)[order_L].astype(np.int32),
        "successor_probability": _joined(likely, float)[order_L],
        "outcome_count": count_NJ,
        "outcome_successor": _small(_joined(entry_local)[order_E]),
        "outcome_probability": _small(prob_E),
        "probabilities": value_P,
    }


def _distinct(steps: Steps, choice: Choice) -> tuple[Array, ...]:
    """Successors (row, number in the file, probability under both policies); entries (row, profile, successor, probability).

    In both, successors that are not in the file are summed.
    """
    n_profiles = steps.count_MJ.shape[1]
    number_K = choice.numbers_of(steps.number_K)
    profile_K = np.repeat(np.tile(np.arange(n_profiles), len(steps.place_M)), steps.count_MJ.ravel())
    weight_K = np.repeat(steps.weight_MJ.ravel(), steps.count_MJ.ravel()) * steps.prob_K
    width = len(choice) + 1  # numbers from -1
    pair_L, inverse_K = np.unique(steps.row_K * width + number_K + 1, return_inverse=True)
    row_L, succ_L = pair_L // width, pair_L % width - 1
    prob_L = np.bincount(inverse_K, weight_K, minlength=len(pair_L))
    local_L = np.arange(len(row_L)) - np.searchsorted(row_L, row_L)
    triple_E, inverse_K = np.unique((steps.row_K * n_profiles + profile_K) * len(pair_L) + inverse_K, return_inverse=True)
    prob_E = np.bincount(inverse_K, steps.prob_K, minlength=len(triple_E))
    both_E = triple_E // len(pair_L)
    return row_L, succ_L, prob_L, both_E // n_profiles, both_E % n_profiles, local_L[triple_E % len(pair_L)], prob_E


def _joined(parts: Sequence[npt.NDArray[np.number]], kind: npt.DTypeLike = np.int64) -> Array:
    return np.concatenate([np.zeros(0, dtype=kind), *parts])


def _small(numbers: IndexArray) -> npt.NDArray[np.unsignedinteger]:
    """Two bytes per number if they fit."""
    return numbers.astype(np.uint16 if numbers.max(initial=0) < 2**16 else np.uint32)


# --- levels and the head ----------------------------------------------------------------------------------------------


def _levels(solution: Solution, found: Survey, choice: Choice) -> Arrays:
    embedded_T, embedded_mass_T = choice.embedded_by_level(solution.dag.horizon + 1)
    arrays: Arrays = {
        "level_states": found.states_T.astype(np.float64),
        "level_reached": found.reached_T.astype(np.float64),
        "level_mass": found.mass_T,
        "level_embedded": embedded_T.astype(np.int32),
        "level_embedded_mass": embedded_mass_T,
        "level_V_r": found.v_r_TM,
        "level_X_h": found.x_TMH,
        "level_entropy": found.entropy_T,
    }
    return arrays if found.cell_TIC is None else arrays | {"cell_reached": found.cell_TIC.astype(np.float32)}


def _head(solution: Solution, choice: Choice, found: Survey, title: str | None) -> Json:
    model, dag = solution.model, solution.dag
    name = type(model.world).__name__ if model.name is None else model.name
    _, embedded_mass_T = choice.embedded_by_level(dag.horizon + 1)
    return {
        "title": title or name,
        "world": name,
        "agents": [_agent(solution, i) for i in range(model.n_agents)],
        "actions": model.action_names,
        "humans": solution.humans,
        "robots": solution.robots,
        "robot_profiles": [list(profile) for profile in solution.robot_profiles],
        "goals": _goals(solution),
        "params": solution.params.describe(),
        "optimistic": solution.human_params.optimistic,
        "horizon": dag.horizon,
        "level_values": dag.level_values,
        "quantiles": list(QUANTILES),
        "sizes": {
            "states": dag.n_states, "bodies": dag.n_bodies, "transitions": dag.n_transitions, "levels": dag.horizon + 1,
            "joint actions": dag.n_profiles,
        },
        "precision": solution.precision.types,
        "versions": {
            "empo_bi": __version__, "numpy": np.__version__, "Python": platform.python_version(),
        },
        "embedded": {
            "states": len(choice), "probable": choice.n_probable, "min_probability": choice.min_probability,
            "max_states": choice.max_states, "reached": int(found.reached_T.sum()),
            "left_out": int(found.reached_T.sum() - np.count_nonzero(choice.mass_N)),
            "smallest_mass": float(np.nanmin(embedded_mass_T / np.where(found.mass_T > 0, found.mass_T, np.nan))),
        },
        "not_embedded": NOT_EMBEDDED,
    }  # fmt: skip


def _agent(solution: Solution, i: int) -> Json:
    role = "human" if i in solution.humans else "robot" if i in solution.robots else "agent"
    grid = solution.model.grid
    colour = None if grid is None else grid.agents[i].colour
    return {"name": f"{role} {i}", "role": role, "colour": colour}


def _goals(solution: Solution) -> list[list[Json | None]]:
    """For each human its goals: name, label, and rectangles where it has to be; None for columns it lacks."""
    columns = solution.goal_columns
    return [
        [None if goal is None else _goal(goal, name) for goal, name in zip(goals, names, strict=True)]
        for goals, names in zip(columns.goals, columns.names, strict=True)
    ]


def _goal(goal: Goal, name: str) -> Json:
    label = label_of(goal) if isinstance(goal, ReachGoal | ConditionGoal) else name
    return {"name": name, "label": label, "places": [list(place) for place in cells_of(goal) or ()]}
