"""A metric for batches: which of the two humans of asymmetric_freeing is freed first, exactly, from the Markov chain."""

from __future__ import annotations

from empo_bi import Solution, events, first_of

LEFT_ROCK, RIGHT_ROCK = (2, 2), (8, 2)  # each locks a human in, until somebody pushes it away


def freed_first(solution: Solution) -> dict[str, float]:
    """Probabilities under both policies; they sum to 1 with that of a tie, which one robot cannot bring about."""
    found = first_of(solution, [events.thing_gone("rock", LEFT_ROCK), events.thing_gone("rock", RIGHT_ROCK)])
    left, right = found.first.tolist()
    return {"left": left, "right": right, "nobody": found.none}
