"""The explorer inside a notebook: ``solution.explore()``."""

from __future__ import annotations

import html
from dataclasses import dataclass
from operator import index

from empo_bi.report.report import check_choices, made_page
from empo_bi.report.state_selection import MIN_PROBABILITY
from empo_bi.results.solution import Solution
from empo_bi.runtime.arguments import check_flags
from empo_bi.runtime.compilation import quiet_unless_shown
from empo_bi.runtime.wording import counted


@dataclass(frozen=True)
class Explorer:
    """A page that notebooks show in a frame.

    The frame is a sandbox: the page runs its own script, cannot reach the notebook, and cannot load or send anything.

    Attributes
    ----------
    page : the HTML that :func:`empo_bi.write_report` would write
    height : of the frame, in pixels
    embedded, reached : how many states it shows, and how many can be reached
    """

    page: str
    height: int
    embedded: int
    reached: int

    def __repr__(self) -> str:
        shown = f"{counted(self.embedded, 'state')} of {self.reached:,} that can be reached"
        return f"<Explorer: {shown}, {len(self.page) / 1e6:.1f} MB; shown in notebooks, write_report writes it to a file>"

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {self.height}px; border: 1px solid #8888; border-radius: 4px"
        return (
            f'<iframe sandbox="allow-scripts" style="{style}" title="empo_bi explorer" '
            f'srcdoc="{html.escape(self.page)}"></iframe>'
        )


@quiet_unless_shown
def explorer_of(
    solution: Solution,
    *,
    height: int = 760,
    min_probability: float = MIN_PROBABILITY,
    max_states: int | None = None,
    title: str | None = None,
    progress: bool = True,
) -> Explorer:
    """The explorer of a solution; the choices are those of :func:`empo_bi.write_report`."""
    check_choices(solution, min_probability, max_states, title)
    check_flags(progress=progress)
    if isinstance(height, bool) or not hasattr(height, "__index__") or height < 100:
        raise ValueError(f"height={height!r}; give the height of the frame in pixels, 100 or more")
    made = made_page(solution, min_probability=min_probability, max_states=max_states, title=title, progress=progress)
    return Explorer(made.page.decode("utf-8"), index(height), made.embedded, made.reached)
