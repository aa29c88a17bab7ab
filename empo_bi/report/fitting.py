"""As many states as fit into a file of about 2 MB, found by making files: how well arrays compress cannot be predicted."""

from __future__ import annotations

import numpy as np

from empo_bi.report.content import content_of
from empo_bi.report.page import page_of
from empo_bi.report.state_selection import Choice, choose
from empo_bi.report.survey import Survey
from empo_bi.results.solution import Solution

AIM = 2_000_000  # bytes
NEAR = 0.75, 1.15  # sizes between these multiples of the aim are accepted
FIRST = 400  # states of the first try: enough to estimate the size of one, and quick
FEWEST, MOST = 100, 20_000  # states, whatever their size: enough to look at, and not too many for a phone
TRIES = 5


def fitted_page(
    solution: Solution, found: Survey, *, min_probability: float, title: str | None = None, aim: int = AIM
) -> tuple[Choice, bytes]:
    """The states of at least ``min_probability``, or only the most probable ones if they are too many, and their file.

    Each try takes as many states as would meet the aim if bytes were linear in states, according to the last two tries. The
    first try counts the page itself as states, so the second is rather too small than too large.
    """
    n, before = FIRST, (0, 0)
    for left in reversed(range(TRIES)):
        choice = choose(solution, found, min_probability=min_probability, max_states=n)
        page = page_of(content_of(solution, found, choice, title)).encode("utf-8")
        size = len(page)
        are_all_there = choice.n_probable < n and size <= NEAR[1] * aim
        if left == 0 or are_all_there or NEAR[0] * aim <= size <= NEAR[1] * aim:
            break
        per_state = max(1.0, (size - before[1]) / (n - before[0]))
        after = int(np.clip(min(n + (aim - size) / per_state, 25 * n), FEWEST, MOST))
        if after == n:
            break
        n, before = after, (n, size)
    return choice, page
