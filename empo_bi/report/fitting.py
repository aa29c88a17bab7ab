"""As many states as make a file of about 2 MB. Nobody knows how well arrays deflate, so files are made and measured."""

from __future__ import annotations

import numpy as np

from empo_bi.report.content import content_of
from empo_bi.report.page import page_of
from empo_bi.report.state_selection import Choice, choose
from empo_bi.report.survey import Survey
from empo_bi.results.solution import Solution

AIM = 2_000_000  # bytes
NEAR = 0.75, 1.15  # shares of it that will do
FIRST = 400  # states of the first try: enough to tell what one takes, and soon done
FEWEST, MOST = 100, 20_000  # states, whatever their size: some to look at, and not too many for a phone
TRIES = 5


def fitted_page(
    solution: Solution, found: Survey, *, min_probability: float, title: str | None = None, aim: int = AIM
) -> tuple[Choice, bytes]:
    """The states of at least ``min_probability``, the most probable ones if they are too many for the aim, and their file.

    Each try takes as many states as would meet the aim if bytes were linear in states, judged by the last two tries. The
    first is judged as if the page itself took no bytes, so that the second is rather too small than too large.
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
