"""Questions about a solution, and pictures of the answers: ``from empo_bi import analysis``.

Maps over the grid, arrows, decisions with the values behind them, extremes, courses, entropies, comparisons. Everything is
computed from the arrays of the levels that are asked about; nothing here changes a solution.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
