"""All rules of the contract, held against a sample of a world's states: :func:`check_world`."""

from __future__ import annotations

from dataclasses import dataclass

from empo_bi.dag.python_world import LevelFunction
from empo_bi.errors import InvalidWorldError
from empo_bi.runtime.arguments import check_flags, check_function, suggests_names
from empo_bi.runtime.wording import counted
from empo_bi.testing.rules import RULES, Finding
from empo_bi.testing.sample import sample_of
from empo_bi.world.as_model import as_model
from empo_bi.world.model import World


@dataclass(frozen=True)
class WorldCheck:
    """What :func:`check_world` found; ``print`` shows it.

    Attributes
    ----------
    title : how stores and messages call the world
    n_states : states that were looked at
    is_complete : whether these are all states that can be reached
    findings : what each rule found, by its name
    """

    title: str
    n_states: int
    is_complete: bool
    findings: dict[str, Finding]

    @property
    def notes(self) -> list[str]:
        """What is allowed, but may be a slip, or stand in the way of something later."""
        return [note for finding in self.findings.values() for note in finding.notes]

    def __str__(self) -> str:
        seen = f"all {counted(self.n_states, 'state')}" if self.is_complete else f"{counted(self.n_states, 'state')} of more"
        lines = [f"{self.title}: keeps the contract ({seen} looked at)"]
        lines += [f"  {name:<12} {finding.text}" for name, finding in self.findings.items()]
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])


@suggests_names()
def check_world(
    world: World, n_states: int = 200, seed: int = 0, *, level_fct: LevelFunction | None = None, strict: bool = False
) -> WorldCheck:
    """Hold a world against the contract that :class:`~empo_bi.WorldModel` describes, on a random sample of its states.

    Parameters
    ----------
    world : any world
    n_states : int
        How many states to look at, found on random walks from the initial one; all of them, if there are fewer. Where there
        are more than 64 action profiles, 64 random ones are asked about.
    seed : int
        Of the walks. The same seed looks at the same states.
    level_fct : function, optional
        What you give to ``solve`` or ``enumerate_dag``.
    strict : bool
        Turn notes into errors: actions out of range that are not refused, states that no store on disk can keep, and so on.

    Raises
    ------
    InvalidWorldError
        For the first rule that is broken: what was found, what was expected, and what to do.
    TypeError
        For what is not a world at all.

    Examples
    --------
    >>> from empo_bi import load_world
    >>> print(check_world(load_world("basics/first_steps", max_steps=2)))  # doctest: +ELLIPSIS
    <GridWorld 'First steps'...>: keeps the contract (all ... states looked at)
      agents       ...
    """
    if isinstance(n_states, bool) or not isinstance(n_states, int) or n_states < 1:
        raise ValueError(f"n_states={n_states!r}; give how many states to look at, 1 or more")
    check_function("level_fct", level_fct, "a function of a state")
    check_flags(strict=strict)
    model = as_model(world)
    sample = sample_of(model, n_states, seed, level_fct)
    found = WorldCheck(model.title, len(sample.states), sample.is_complete, {rule.__name__: rule(sample) for rule in RULES})
    if strict and found.notes:
        raise InvalidWorldError(f"{found.notes[0]} (an error because of strict=True)")
    return found
