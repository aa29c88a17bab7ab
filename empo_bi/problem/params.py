"""The parameters of the theory: defaults, ranges, and discounts given as factors or as rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn

import numpy as np

from empo_bi.runtime.arguments import suggests_names
from empo_bi.runtime.wording import short_repr
from empo_bi.types import Json

Belief = Callable[[Any, int, int], Sequence[tuple[float, Sequence[int]]]]
TerminalValue = Callable[[Any], float]  # what a terminal state is worth to the robot
_MAY_BE_INFINITE = ("beta_h", "beta_r")
_OF_THE_WORLD = dict.fromkeys(
    ("max_steps", "steps", "horizon"), "the horizon belongs to the world: load_world(..., max_steps={value})"
)


@suggests_names(elsewhere=_OF_THE_WORLD)
@dataclass(frozen=True, kw_only=True)
class Params:
    r"""Parameters of both phases.

    Attributes
    ----------
    beta_h : float >= 0, ``inf`` allowed
        Inverse temperature of the humans: how strictly they pursue a goal.
    gamma_h, rho_h : float, optional
        The humans' discount as a factor in (0, 1], or as a rate :math:`\rho = -\ln \gamma \ge 0`; not both.
    optimistic : bool
        Humans expect the best, not the worst, of the robots when they make their plans.
    believed_others_policy : function, optional
        What a human believes of the other humans: ``f(state, human, action) -> [(probability, actions of all agents)]``; by
        default all combinations of their actions are equally likely.
    beta_r : float >= 0, ``inf`` allowed
        Exponent of the robot's power law; 0 is a random robot, with ``inf`` its best actions share equally.
    gamma_r, rho_r : float, optional
        The robot's discount.
    zeta, xi, eta : float > 0
        Risk aversion over goals, aversion to inequality between humans, and to inequality over time.
    terminal_Vr : float < 0, or function
        The robot's value of terminal states: one number for all, or ``f(state)``, which is asked once about each of them.
    """

    beta_h: float = 10.0
    gamma_h: float | None = None
    rho_h: float | None = None
    optimistic: bool = False
    believed_others_policy: Belief | None = None
    beta_r: float = 10.0
    gamma_r: float | None = None
    rho_r: float | None = None
    zeta: float = 1.0
    xi: float = 1.0
    eta: float = 1.0
    terminal_Vr: float | TerminalValue = -1e-10

    def __post_init__(self) -> None:
        for field in fields(self):
            is_function = field.name == "terminal_Vr" and callable(self.terminal_Vr)
            if field.name not in ("optimistic", "believed_others_policy") and not is_function:
                self._check_number(field.name)
        if not isinstance(self.optimistic, bool | np.bool_):
            raise TypeError(f"optimistic={self.optimistic!r}; give True or False")
        object.__setattr__(self, "optimistic", bool(self.optimistic))
        if self.believed_others_policy is not None and not callable(self.believed_others_policy):
            raise TypeError(f"believed_others_policy={self.believed_others_policy!r} cannot be called; give a function "
                            "f(state, agent_index, action), or None")  # fmt: skip
        discount_rate("h", self.gamma_h, self.rho_h)
        discount_rate("r", self.gamma_r, self.rho_r)
        for name in ("beta_h", "beta_r"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}={getattr(self, name)!r}; an inverse temperature is 0 or more")
        for name in ("zeta", "xi", "eta"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)!r}; give a positive number (1 for no aversion)")
        if not callable(self.terminal_Vr) and not self.terminal_Vr < 0:
            raise ValueError(f"terminal_Vr={self.terminal_Vr!r}; the robot's values are negative: give, say, -1e-10")

    def _check_number(self, name: str) -> None:
        value = getattr(self, name)
        if value is None and name in ("gamma_h", "rho_h", "gamma_r", "rho_r"):
            return
        if isinstance(value, bool) or not hasattr(value, "__float__") or isinstance(value, complex) or np.ndim(value):
            raise TypeError(f"{name}={value!r} is a {type(value).__name__}; give a number")
        try:
            number = float(value)
        except OverflowError:  # a whole number of hundreds of digits
            raise ValueError(f"{name}={short_repr(value, 40)}; the number is too large") from None
        if math.isnan(number) or (math.isinf(number) and name not in _MAY_BE_INFINITE):
            raise ValueError(f"{name}={value!r}; give a finite number" + (" or inf" if name in _MAY_BE_INFINITE else ""))
        object.__setattr__(self, name, number)

    @property
    def terminal_function(self) -> TerminalValue | None:
        """What is asked about terminal states; None where all are worth the same."""
        return self.terminal_Vr if callable(self.terminal_Vr) else None

    @property
    def rate_h(self) -> float:
        return discount_rate("h", self.gamma_h, self.rho_h)

    @property
    def rate_r(self) -> float:
        return discount_rate("r", self.gamma_r, self.rho_r)

    def replace(self, **changes: Any) -> Params:
        """The same with some parameters changed. A discount given one way takes the place of one given the other way."""
        for who in "hr":
            given = {f"gamma_{who}", f"rho_{who}"} & changes.keys()
            if len(given) == 1:
                changes = {f"gamma_{who}": None, f"rho_{who}": None} | changes
        return replace(self, **changes)

    def describe(self) -> Json:
        """What the numbers depend on, by name, in JSON; discounts as rates, None for a function of terminal states."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("gamma_h", "gamma_r", "believed_others_policy"):
            del found[name]
        found |= {"rho_h": self.rate_h, "rho_r": self.rate_r, "believed_others": self.believed_others_policy is not None}
        found["terminal_Vr"] = None if callable(self.terminal_Vr) else self.terminal_Vr
        return {name: "inf" if value == math.inf else value for name, value in found.items()}


PLAIN_PARAMETERS = [field.name for field in fields(Params) if field.name != "believed_others_policy"]  # all but functions
# For functions that take Params, or a world: where other names belong that people give them.
BELONGS_ELSEWHERE = _OF_THE_WORLD | {
    field.name: f"it is a parameter of the theory: Params({field.name}={{value}})" for field in fields(Params)
}


def params_from(described: object, function: Callable[..., NoReturn] | None = None) -> Params:
    """Parameters as :meth:`Params.describe` wrote them; TypeError or ValueError for anything else.

    ``function`` takes the place of users' functions; without it, parameters with such functions are refused.
    """
    known = set(Params().describe())
    if not isinstance(described, dict) or described.keys() != known:
        raise ValueError(f"expected numbers for {', '.join(sorted(known - {'believed_others'}))}")
    given: Json = {name: math.inf if value == "inf" else value for name, value in described.items()}
    has_belief = given.pop("believed_others") is not False
    if function is None and (has_belief or given["terminal_Vr"] is None):
        raise ValueError("a parameter is a function of the user's, which cannot be described")
    if given["terminal_Vr"] is None:
        given["terminal_Vr"] = function
    return Params(**given, believed_others_policy=function if has_belief else None)


def discount_rate(who: str, gamma: float | None, rho: float | None) -> float:
    r"""The rate :math:`\rho` of a discount that is given as a factor, as a rate, or not at all."""
    if gamma is not None and rho is not None:
        raise ValueError(f"gamma_{who}={gamma!r} and rho_{who}={rho!r}: a discount is given by its factor or by its rate, "
                         "not by both")  # fmt: skip
    if gamma is not None:
        if not 0 < gamma <= 1:
            raise ValueError(f"gamma_{who}={gamma!r}; a discount factor is above 0 and at most 1")
        return 0.0 if gamma == 1 else -math.log(gamma)
    if rho is not None and not rho >= 0:
        raise ValueError(f"rho_{who}={rho!r}; a discount rate is 0 or more")
    return 0.0 if rho is None else float(rho)
