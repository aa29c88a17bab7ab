"""What is known of a model that was written for a model checker: :class:`ExportedModel`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from empo_bi.runtime.wording import counted

OPTIMA = ("max", "min")


@dataclass(frozen=True)
class ExportedModel:
    """A Markov decision process in a file, as :meth:`Dag.to_drn` and :meth:`Dag.to_umb` write it.

    Attributes
    ----------
    path : Path
    n_states, n_choices, n_transitions : int
        As Storm counts them; transitions are (choice, successor) pairs.
    horizon : int
        The last level, and the largest bound for which properties are exact.
    is_unrolled : bool
        Whether a state of the model is a state of the DAG, with the number that ``dag.index_of`` tells; otherwise it is a
        body, with its number in the DAG (``level.body_S``).
    labels : dict
        ``{"goal_0_3": (0, 3)}``: human 0 has attained its goal number 3.
    never : dict
        The same for goals that are attained in no state. The file has no such label, and Storm would complain of it.
    """

    path: Path
    n_states: int
    n_choices: int
    n_transitions: int
    horizon: int
    is_unrolled: bool
    labels: dict[str, tuple[int, int]]
    never: dict[str, tuple[int, int]]

    def __str__(self) -> str:
        return (
            f"{self.path}: {counted(self.n_states, 'state')} ({'one a level' if self.is_unrolled else 'bodies'}), "
            f"{counted(self.n_choices, 'choice')}, {counted(self.n_transitions, 'transition')}, "
            f"{counted(len(self.labels), 'goal')}; bound {self.horizon}"
        )

    def queries(self, optimum: str = "max", bound: int | None = None) -> dict[str, str]:
        """A property for each label, such as ``Pmax=? [F<=15 "goal_0_3"]``: how likely those who decide can bring it about.

        Parameters
        ----------
        optimum : "max" or "min"
            Whether those who decide want it or want to prevent it.
        bound : int, optional
            Steps, at most and by default the horizon.
        """
        if optimum not in OPTIMA:
            raise ValueError(f"optimum={optimum!r}; expected {' or '.join(map(repr, OPTIMA))}")
        bound = self.horizon if bound is None else bound
        if isinstance(bound, bool) or bound != int(bound) or not 0 <= bound <= self.horizon:
            raise ValueError(f"bound={bound!r}; expected a number of steps from 0 to {self.horizon}, the horizon of the DAG")
        return {label: f'P{optimum}=? [F<={int(bound)} "{label}"]' for label in self.labels}
