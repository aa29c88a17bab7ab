"""A look at a few states of a store that was made earlier: does the world still say of them what the store says?

A world's digest cannot see everything that its answers depend on. This cannot either, but what changes a world usually
changes the first state on some level.
"""

from __future__ import annotations

import numpy as np

from empo_bi.dag.dag import Dag
from empo_bi.dag.python_world import expand_states
from empo_bi.dag.slices import Rows, as_array, places_in
from empo_bi.errors import StoreMismatchError
from empo_bi.runtime.wording import short_repr

MAX_STATES_ASKED = 25


def check_some_states(dag: Dag) -> None:
    """Ask a Python world about the first state expanded on some levels, and compare successors and probabilities.

    Raises
    ------
    StoreMismatchError
    """
    profiles = dag.model.profiles
    expanding = [t for t, sizes in enumerate(dag.levels.sizes) if sizes.n_transitions]
    for t in expanding[:: max(1, len(expanding) // MAX_STATES_ASKED)]:
        piece = next(dag.levels.stretches(t, dag.n_profiles))
        bodies = as_array(piece.expanded)[:1]
        inside, place = places_in(piece.members, bodies)
        if not inside[0]:
            continue
        state = dag.states(t)[int(place[0])]
        rows = piece.rows(np.zeros(1, dtype=np.int64), dag.n_profiles)
        block = expand_states(dag.model, profiles, [state], dag.part.stops)
        body_of_local = np.array([(dag.bodies_of(successor) or [-1])[0] for successor in block.found], dtype=np.int64)
        if not rows.agrees_with(Rows(block.count_SJ, body_of_local[block.local_K].astype(np.int32), block.prob_K)):
            raise StoreMismatchError(
                f"{short_repr(state)} on level {dag.level_values[t]} has other successors in the store than the world says "
                "now, so the world was changed since. Choose another place, or replace the store with overwrite=True "
                "(--overwrite)"
            )
