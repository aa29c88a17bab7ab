"""Labels of states: goals that humans have attained, and where the model ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from empo_bi.dag.dag import Dag
from empo_bi.export.choices import HORIZON, TERMINAL, ChoiceBlock
from empo_bi.runtime.printable import one_line
from empo_bi.types import BoolArray

ENDS = {"terminal": TERMINAL, "horizon": HORIZON}
MEANING_OF_ENDS = {
    "terminal": "no successors, so the model stays there",
    "horizon": "first reached on the last level, where the run ends, so the model stays there",
}


@dataclass(frozen=True)
class GoalLabel:
    """``goal_0_3``: human 0 (an agent) has attained its goal number 3; ``column`` is its bit, ``text`` its ``repr``."""

    name: str
    human: int
    goal: int
    column: int
    text: str

    @property
    def meaning(self) -> str:
        return f"human {self.human} has attained goal {self.goal}, {self.text}"


def goal_labels(dag: Dag) -> list[GoalLabel]:
    """A label for each goal of each human if goals are the same in every state; else none."""
    if dag.goals is None:
        return []
    found = []
    for h, (human, names) in enumerate(zip(dag.goals.humans, dag.goals.names, strict=True)):
        for g, name in enumerate(names):
            if name != "None":  # padding for humans who have fewer goals than others
                text = one_line(name)
                found.append(GoalLabel(f"goal_{human}_{g}", human, g, h * dag.goals.n_goals + g, text))
    return found


class LabelCount:
    """Counts the states that have each label, block by block."""

    def __init__(self, labels: list[GoalLabel]) -> None:
        self.labels = labels
        self.counts = dict.fromkeys([*(label.name for label in labels), *ENDS], 0)

    def add(self, block: ChoiceBlock) -> None:
        for label in self.labels:
            self.counts[label.name] += int(has_attained(block, label).sum())
        for name, kind in ENDS.items():
            self.counts[name] += int((block.kind_M == kind).sum())

    @property
    def never(self) -> list[GoalLabel]:
        """Goals that are attained in no state of the model."""
        return [label for label in self.labels if not self.counts[label.name]]


def has_attained(block: ChoiceBlock, label: GoalLabel) -> BoolArray:
    """Which states of a block have a label, (M,)."""
    assert block.attained_MX is not None
    return (block.attained_MX[:, label.column >> 3] >> np.uint8(label.column & 7) & 1).astype(np.bool_)
