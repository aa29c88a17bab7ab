r"""Two solutions side by side: where their robots decide differently, and why.

The distance of two decisions is their total variation, :math:`\frac12 \sum_r |\pi_1(r) - \pi_2(r)|`. Log-odds explain it.
For profiles a and b,

.. math:: \ln \frac{\pi_i(b)}{\pi_i(a)} = \beta_i \ell_i, \quad \ell_i = \ln \frac{Q_i(a)}{Q_i(b)},

and the change from one solution to the other has a part due to strictness (beta) and a part due to values,

.. math:: \beta_2 \ell_2 - \beta_1 \ell_1 = (\beta_2 - \beta_1) \frac{\ell_1 + \ell_2}{2}
    + \frac{\beta_1 + \beta_2}{2} (\ell_2 - \ell_1).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from operator import index

import numpy as np

from empo_bi.analysis import html_parts as parts
from empo_bi.analysis.alignment import shared_places
from empo_bi.analysis.decisions import Decision, decision_at
from empo_bi.analysis.ranking import smallest
from empo_bi.analysis.selection import REACHED, weights_of
from empo_bi.analysis.uncertainty import divergence_of_logits, log_policy, shared_logits
from empo_bi.results.solution import Solution
from empo_bi.runtime.arguments import suggests_names
from empo_bi.types import FloatArray, IndexArray

ROUNDING = 1e-12  # smaller differences of decisions do not count


@dataclass(frozen=True)
class Difference:
    """A state in which the robots of two solutions decide differently.

    Attributes
    ----------
    state, level
    reached : the probability of reaching the state in the first solution
    distance : total variation of the two decisions
    first, second : the two decisions, with Q-values and the humans' power one step later
    less, more : numbers of the robot profiles whose probability falls and rises most, from the first to the second
    by_strictness, by_values : how much the change of beta_r, and of values, adds to the log-odds of ``more`` to ``less``;
        nan where a beta_r is infinite, since log-odds are, too
    same_zeta : whether powers are measured alike, so that they can be compared
    """

    state: Hashable
    level: int
    reached: float
    distance: float
    first: Decision
    second: Decision
    less: int
    more: int
    by_strictness: float
    by_values: float
    same_zeta: bool = True

    def __str__(self) -> str:
        names, before, after = self.first.names, self.first, self.second
        lines = [
            f"a state on level {self.level}, reached with probability {self.reached:.4g}: the decisions are "
            f"{self.distance:.3f} apart"
        ]
        for word, r in (("more", self.more), ("less", self.less)):
            lines.append(
                f"  {word} {names[r]}: {before.probability_R[r]:.3f} -> {after.probability_R[r]:.3f}, "
                f"Q_r {before.Q_R[r]:.6g} -> {after.Q_R[r]:.6g}{self._power_next(r)}"
            )
        if np.isnan(self.by_strictness):
            return "\n".join(lines)
        lines.append(
            f"  log-odds change by {self.by_strictness + self.by_values:+.3g}: {self.by_values:+.3g} due to values, "
            f"{self.by_strictness:+.3g} due to beta_r"
        )
        return "\n".join(lines)

    def _power_next(self, r: int) -> str:
        """The humans' power after a profile; nothing where the two solutions measure it in other ways."""
        if not self.same_zeta:
            return ""
        powers = zip(self.first.humans, self.first.power_after_RH[r], self.second.power_after_RH[r], strict=True)
        return "; power next " + ", ".join(f"human {h} {x:.4g} -> {y:.4g}" for h, x, y in powers)


@dataclass(frozen=True)
class Comparison:
    """Two solutions, level by level; means are over states that both have, weighted as ``over`` says.

    Attributes
    ----------
    distance_T : (T,), mean total variation of the robots' policies on levels 0 to T - 1; nan if no state is shared
    divergence_T : (T,), mean Kullback-Leibler divergence of the first from the second
    power_TH : (T, H), mean change of each human's power, second minus first; power is defined with zeta, so this says
        nothing where the two solutions differ in zeta
    """

    first: Solution
    second: Solution
    over: str
    distance_T: FloatArray
    divergence_T: FloatArray
    power_TH: FloatArray

    @property
    def same_zeta(self) -> bool:
        """Whether power is measured alike in both solutions."""
        return self.first.params.zeta == self.second.params.zeta

    @cached_property
    def value_TH(self) -> FloatArray:
        """(T, H), mean change of V_h^e, a mean over the goals of each human by weight; comparable whatever zeta is."""
        return np.array([self._value_change(t) for t in range(len(self.distance_T))]).reshape(self.power_TH.shape)

    @property
    def change_TH(self) -> FloatArray:
        """(T, H), the mean change that is shown: of power, or of V_h^e where the solutions differ in zeta."""
        return self.power_TH if self.same_zeta else self.value_TH

    @property
    def changed(self) -> str:
        """What :attr:`change_TH` is of."""
        return "power" if self.same_zeta else "V_h^e"

    @property
    def note(self) -> str:
        """Why power is not compared; empty where it is."""
        if self.same_zeta:
            return ""
        zetas = " and ".join(f"{one.params.zeta:g}" for one in (self.first, self.second))
        return (
            f"Power X_h is defined with zeta, and zeta differs ({zetas}), so powers cannot be compared. The change of V_h^e "
            "is shown instead: what goals are worth to each human, on average."
        )

    def _value_change(self, t: int) -> FloatArray:
        own_M, other_M, weight_M = _shared(self.first, self.second, t, self.over)
        if not weight_M.sum() > 0:
            return np.full(len(self.first.humans), np.nan)
        change_MH = mean_values(self.second, t, other_M) - mean_values(self.first, t, own_M)
        return np.asarray(np.average(change_MH, axis=0, weights=weight_M))

    def __str__(self) -> str:
        heads = [f"human {human}" for human in self.first.humans]
        text_TH = [[f"{x:+.4g}" for x in change_H] for change_H in self.change_TH]
        width_H = [max(map(len, column)) for column in zip(heads, *text_TH, strict=True)]
        before = f"{'':5}  {'':8}  {'':10}  "
        lines = [f"{before}change of {self.changed}"] if heads else []
        lines.append("level  distance  divergence  " + _in_columns(heads, width_H))
        for t, (distance, divergence) in enumerate(zip(self.distance_T, self.divergence_T, strict=True)):
            lines.append(f"{t:5}  {distance:8.4f}  {divergence:10.4g}  {_in_columns(text_TH[t], width_H)}")
        return "\n".join(line.rstrip() for line in [*lines, *([self.note] if self.note else [])])

    def _repr_html_(self) -> str:
        """For notebooks: what differs between the parameters, and a row for each level."""
        head = [
            "level",
            "distance",
            "divergence",
            *(f"change of {self.changed}, human {human}" for human in self.first.humans),
        ]
        columns = zip(self.distance_T, self.divergence_T, self.change_TH, strict=True)
        rows = [
            [t, f"{distance:.4f}", f"{divergence:.4g}", *(f"{x:+.4g}" for x in change_H)]
            for t, (distance, divergence, change_H) in enumerate(columns)
        ]
        return parts.table(head, rows, self._caption()) + (parts.paragraph(self.note) if self.note else "")

    def _caption(self) -> str:
        one, other = self.first.params.describe(), self.second.params.describe()
        pairs = {name: (parts.number(one[name]), parts.number(other[name])) for name in one if one[name] != other[name]}
        changed = ", ".join(f"{name} {before} → {after}" for name, (before, after) in pairs.items())
        weights = "all states count the same" if self.over == "mean" else "states count by how likely they are reached"
        return f"{changed or 'the same parameters'}; {weights}"

    def most_different(self, n: int = 5, *, by: str = "expected") -> list[Difference]:
        """The ``n`` states in which decisions differ most.

        ``by="expected"`` ranks by distance times the probability of reaching the state in the first solution, that is, by
        how much it matters; ``by="distance"`` ranks by the distance alone, whether the state is ever reached or not.
        """
        if by not in ("expected", "distance"):
            raise ValueError(f"by={by!r}; give 'expected' (distance times probability) or 'distance'")
        if index(n) < 1:
            raise ValueError(f"n={n}; give a number of states, 1 or more")
        found: list[tuple[float, int, int, float]] = []
        for t in range(len(self.distance_T)):
            place_M, logit_MR, other_MR = shared_logits(self.first, self.second, t)
            distance_M = _distances(logit_MR, other_MR)
            rank_M = distance_M * self.first.reached[t][place_M] if by == "expected" else distance_M
            found += [
                (float(rank_M[m]), t, int(place_M[m]), float(distance_M[m]))
                for m in smallest(-rank_M, n).tolist()
                if rank_M[m] > ROUNDING
            ]
        found.sort(key=lambda entry: (-entry[0], entry[1], entry[2]))
        return [self._explained(t, place, distance) for _, t, place, distance in found[:n]]

    def _explained(self, t: int, place: int, distance: float) -> Difference:
        state = self.first.dag.states(t, np.array([place]))[0]
        before, after = decision_at(self.first, state), decision_at(self.second, state)
        change_R = after.probability_R - before.probability_R
        less, more = int(change_R.argmin()), int(change_R.argmax())
        beta_1, beta_2 = self.first.params.beta_r, self.second.params.beta_r
        strictness = (beta_2 - beta_1, (beta_1 + beta_2) / 2) if np.isfinite([beta_1, beta_2]).all() else (np.nan, np.nan)
        ratio_1, ratio_2 = (float(np.log(one.Q_R[less] / one.Q_R[more])) for one in (before, after))
        return Difference(
            state, t, float(self.first.reached[t][place]), distance, before, after, less, more,
            by_strictness=strictness[0] * (ratio_1 + ratio_2) / 2 + 0.0,  # never -0
            by_values=strictness[1] * (ratio_2 - ratio_1),
            same_zeta=self.same_zeta,
        )  # fmt: skip


@suggests_names()
def compare(first: Solution, second: Solution, *, over: str = REACHED) -> Comparison:
    """Compare two solutions of one world with different parameters, or of worlds that share states, for example worlds that
    differ in their horizon.

    Parameters
    ----------
    first, second : Solution, with both phases, the same humans and the same robots
    over : "reached" weights states by their probability in the first solution (default), "mean" weights all equally
    """
    if first.humans != second.humans:
        raise ValueError(
            f"the solutions have different humans, {first.humans} and {second.humans}; compare solutions with the same ones"
        )
    n_levels = min(first.dag.horizon, second.dag.horizon)
    distance_T, divergence_T = np.full((2, n_levels), np.nan)
    power_TH = np.full((n_levels, len(first.humans)), np.nan)
    n_shared = 0
    for t in range(n_levels):
        place_M, logit_MR, other_MR = shared_logits(first, second, t)
        n_shared += len(place_M)
        weight_M = weights_of(first, t, over)[place_M]
        if not weight_M.sum() > 0:
            continue
        distance_T[t] = np.average(_distances(logit_MR, other_MR), weights=weight_M)
        divergence_T[t] = np.average(divergence_of_logits(logit_MR, other_MR), weights=weight_M)
        own_M, other_M = _both_places(first, second, t, place_M)
        change_MH = second.rows("xh", t, other_M) - first.rows("xh", t, own_M)
        power_TH[t] = np.average(change_MH, axis=0, weights=weight_M)
    if n_shared == 0:
        raise ValueError("the two solutions share no state that is not terminal; compare solutions of the same world")
    found = Comparison(first, second, over, distance_T, divergence_T, power_TH)
    if not found.same_zeta:
        _ = found.value_TH  # now, since a solution may be closed before this is shown
    return found


def _shared(first: Solution, second: Solution, t: int, over: str) -> tuple[IndexArray, IndexArray, FloatArray]:
    """States of a level that go on in both solutions: their places in each, and their weights."""
    place_M, _, _ = shared_logits(first, second, t)
    own_M, other_M = _both_places(first, second, t, place_M)
    return own_M, other_M, weights_of(first, t, over)[place_M]


def _both_places(first: Solution, second: Solution, t: int, place_M: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Places in both solutions of the states that the first has at ``place_M``."""
    own_M, other_M = shared_places(first, second, t)
    inside = np.isin(own_M, place_M, assume_unique=True)
    return own_M[inside], other_M[inside]


def mean_values(solution: Solution, t: int, place_M: IndexArray) -> FloatArray:
    """V_h^e of each human in some states of a level, averaged over its goals there by weight, (M, H)."""
    goals = solution.goal_columns
    weight_NX = goals.weights(t) if goals.is_fixed else goals.weights(t)[place_M]
    weight_NHG = weight_NX.reshape(len(weight_NX), len(solution.humans), goals.n_goals)
    total_NH = weight_NHG.sum(axis=2)
    value_MH = (solution.rows("ve", t, place_M) * weight_NHG).sum(axis=2)
    return np.asarray(value_MH / np.where(total_NH > 0, total_NH, 1.0))


def _in_columns(text_H: list[str], width_H: list[int]) -> str:
    return "  ".join(text.rjust(width) for text, width in zip(text_H, width_H, strict=True))


def _distances(logit_MR: FloatArray, other_MR: FloatArray) -> FloatArray:
    """Total variation, (M,)."""
    return np.abs(np.exp(log_policy(logit_MR)) - np.exp(log_policy(other_MR))).sum(axis=1) / 2
