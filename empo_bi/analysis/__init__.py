"""Questions about a solution, and pictures of the answers: ``from empo_bi import analysis``.

Maps over the grid, arrows, decisions with the values behind them, rankings, trajectories, entropies, comparisons. Only the
arrays of the levels in question are read; nothing here changes a solution. ``__init__.pyi`` lists the public names.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
