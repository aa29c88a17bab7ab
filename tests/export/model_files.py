"""Exported models read by a few lines that share nothing with what wrote them, and worlds to export."""

from __future__ import annotations

import itertools
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from empo_bi import TabularGoalGenerator


@dataclass
class Model:
    """``choices[s]`` lists (name, {successor: probability}) of state s; ``labels[s]`` is a set."""

    labels: list[set[str]]
    choices: list[list[tuple[str, dict[int, float]]]]

    @property
    def n_choices(self) -> int:
        return sum(map(len, self.choices))

    @property
    def n_branches(self) -> int:
        return sum(len(branches) for choices in self.choices for _, branches in choices)

    def having(self, label: str) -> list[int]:
        return [s for s, labels in enumerate(self.labels) if label in labels]


def drn_model(path: Path) -> Model:
    lines = path.read_text(encoding="utf-8").split("\n")
    begin = lines.index("@model")
    model = Model([], [])
    for line in lines[begin + 1 : -1]:
        if line.startswith("state "):
            number, *labels = line.split()[1:]
            assert int(number) == len(model.labels)
            model.labels.append(set(labels))
            model.choices.append([])
        elif line.startswith("\taction "):
            model.choices[-1].append((line.split()[1], {}))
        else:
            target, probability = line.strip().split(" : ")
            branches = model.choices[-1][-1][1]
            assert int(target) not in branches
            branches[int(target)] = float(probability)
    assert int(lines[lines.index("@nr_states") + 1]) == len(model.labels)
    assert int(lines[lines.index("@nr_choices") + 1]) == model.n_choices
    return model


def umb_model(path: Path) -> tuple[Model, dict[str, Any]]:
    """The model, and index.json."""
    with tarfile.open(path) as archive:
        entries = archive.getmembers()
        files = {entry.name: archive.extractfile(entry).read() for entry in entries}  # type: ignore[union-attr]
    assert entries[0].name == "index.json"
    index = json.loads(files["index.json"])
    size = index["transition-system"]
    n_states = size["#states"]
    first_choice, first_branch, target, string = (
        np.frombuffer(files[f"{name}.bin"], dtype="<u8").tolist()
        for name in ("state-to-choices", "choice-to-branches", "branch-to-target", "actions/choices/string-mapping")
    )
    probability = np.frombuffer(files["branch-to-probability.bin"], dtype="<f8").tolist()
    name_of = np.frombuffer(files["actions/choices/values.bin"], dtype="<u4").tolist()
    names = [files["actions/choices/strings.bin"][a:b].decode() for a, b in itertools.pairwise(string)]
    assert (len(first_choice), len(first_branch)) == (n_states + 1, size["#choices"] + 1)
    assert len(target) == len(probability) == size["#branches"] == first_branch[-1]
    assert (len(names), len(name_of)) == (size["#choice-actions"], size["#choices"])
    bits = {"init": files["state-is-initial.bin"]}
    bits |= {name: files[f"annotations/aps/{name}/states/values.bin"] for name in index["annotations"]["aps"]}
    labels: list[set[str]] = [set() for _ in range(n_states)]
    for name, content in bits.items():
        assert len(content) == -(-n_states // 64) * 8
        number = int.from_bytes(content, "little")
        assert number >> n_states == 0
        for s in range(n_states):
            if number >> s & 1:
                labels[s].add(name)

    def choice(c: int) -> tuple[str, dict[int, float]]:
        chosen = slice(first_branch[c], first_branch[c + 1])
        return names[name_of[c]] or "__NOLABEL__", dict(zip(target[chosen], probability[chosen], strict=True))

    choices = [[choice(c) for c in range(first_choice[s], first_choice[s + 1])] for s in range(n_states)]
    return Model(labels, choices), index


@dataclass(frozen=True)
class AtCell:
    """The goal of being in a cell, from some step on."""

    cell: int
    since: int = 0

    def is_achieved(self, state: Any) -> int:
        return int(state[1] == self.cell and state[0] >= self.since)


class Stroll:
    """A human on cells 0 to 3: action 1 goes on with probability 2/3, or 1/3 where the robot plays 1; action 0 goes back.

    ``pauses`` are (step, cell) at which everything ends, besides the horizon.
    """

    time_homogeneous = True
    agents = ("human", "robot")
    action_space = SimpleNamespace(n=2)
    action_names = ("go back", "go on")
    human_agent_indices = (0,)
    robot_agent_indices = (1,)

    def __init__(self, horizon: int, goals: list[AtCell], pauses: frozenset[tuple[int, int]] = frozenset()) -> None:
        self.horizon, self.pauses = horizon, pauses
        self.possible_goal_generator = TabularGoalGenerator(goals)

    def initial_state(self) -> Any:
        return (0, 1)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, cell = state
        if step == self.horizon or (step, cell) in self.pauses:
            return None
        if actions[0] == 0:
            return [(1.0, (step + 1, max(cell - 1, 0)))]
        share = 1 / 3 if actions[1] else 2 / 3
        return [(share, (step + 1, cell + 1)), (1 - share, (step + 1, cell))] if cell < 3 else [(1.0, (step + 1, 3))]


class LevelledStroll(Stroll):
    """The same without shared bodies."""

    time_homogeneous = False
