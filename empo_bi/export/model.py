"""Writing a model for a model checker, block by block, whatever the format."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from empo_bi._version import __version__
from empo_bi.dag.dag import Dag
from empo_bi.dag.exported_model import ExportedModel
from empo_bi.errors import StoreMismatchError
from empo_bi.export.choices import ChoiceBlock, Choices, Deciding
from empo_bi.export.labels import MEANING_OF_ENDS, GoalLabel, LabelCount, goal_labels
from empo_bi.export.model_states import ModelStates
from empo_bi.runtime.atomic_write import atomic_write, checked_place
from empo_bi.runtime.compilation import quiet_unless_shown
from empo_bi.runtime.interrupts import kept_interrupts
from empo_bi.runtime.progress import LevelBar
from empo_bi.runtime.wording import counted


@dataclass(frozen=True)
class Content:
    """What writers know before the first block.

    Attributes
    ----------
    title, remarks : the world, and sentences for people about the model
    n_states : int
    choices : Choices
    labels : of goals
    """

    title: str
    remarks: list[str]
    n_states: int
    choices: Choices
    labels: list[GoalLabel]

    @property
    def tool(self) -> tuple[str, str]:
        return "empo_bi", __version__


class Writer(Protocol):
    """Writes blocks as they come, in the order of states."""

    def add(self, block: ChoiceBlock) -> None: ...

    def finish(self, n_choices: int, n_branches: int, count: LabelCount) -> None:
        """The last block has been added."""


MakeWriter = Callable[[BinaryIO, Path, Content], Writer]


@quiet_unless_shown
def export(
    dag: Dag, path: str | os.PathLike[str], writer_for: MakeWriter, *, deciding: Deciding, unrolled: bool, overwrite: bool,
    progress: bool,
) -> ExportedModel:  # fmt: skip
    """Write a model; ``writer_for`` is called with the open file, its folder (for temporary files), and the content."""
    file = checked_place(path, overwrite)
    if not dag.is_finished or not dag.is_usable:
        raise StoreMismatchError(f"{dag!r} is {'closed' if dag.is_finished else 'unfinished'}; enumerate it again")
    choices, labels = Choices.of(dag, deciding), goal_labels(dag)
    states = ModelStates(dag, unrolled=unrolled)
    content = Content(dag.model.title, _remarks(dag, states, choices), states.n_states, choices, labels)
    count, n_choices, n_branches = LabelCount(labels), 0, 0
    # Levels of an array world may end before its horizon, where all states are terminal.
    last_step = dag.horizon if dag.model.packed is None else dag.model.packed.max_steps
    with atomic_write(file) as unfinished, kept_interrupts() as interrupts:
        bar = LevelBar(f"writing {file.name}", dag.horizon + 1, progress, n_states=states.n_states)
        with unfinished.open("wb") as handle, bar:
            writer = writer_for(handle, file.parent, content)
            for block in states.blocks():
                chosen = choices.of_block(block, last_step)
                count.add(chosen)
                writer.add(chosen)
                n_choices, n_branches = n_choices + len(chosen.name_C), n_branches + len(chosen.target_K)
                bar.block(len(chosen.kind_M))
                if block.is_last:
                    bar.level(block.level, block.n_of_level)
                interrupts.check()
            writer.finish(n_choices, n_branches, count)
    never = {label.name: (label.human, label.goal) for label in count.never}
    found = {label.name: (label.human, label.goal) for label in labels if label.name not in never}
    return ExportedModel(
        file, states.n_states, n_choices, n_branches, dag.horizon, states.is_unrolled, found, never
    )  # fmt: skip


def _remarks(dag: Dag, states: ModelStates, choices: Choices) -> list[str]:
    if states.is_unrolled:
        kind = "A state is a state of the DAG, numbered level after level."
    else:
        kind = (
            f"A state is a body (a state without its step): properties with a step bound are exact up to {dag.horizon} "
            "steps from the initial state, and up to the remaining steps from later states."
        )
    n_agents = len(choices.deciding) + len(choices.others)
    who = f"{counted(n_agents, 'agent')}, numbered from 0. " if n_agents else ""
    if choices.others:
        deciding = f"Agents {', '.join(map(str, choices.deciding))} decide" if choices.deciding else "No agent decides"
        who += f"{deciding}; all actions of the others are equally likely."
    else:
        who += "All agents decide: a choice is an action of each, in the order of agents."
    ends = [f"{name}: {meaning}" for name, meaning in MEANING_OF_ENDS.items()]
    return [f"Horizon: {counted(dag.horizon, 'step')}. {kind}", who, "Labels:", "init: the initial state", *ends]
