"""The independent oracle: plain, slow, dictionary-based models written from the specification alone.

They exist to check the fast engine, so they share no code with it. ``oracle.gridworld`` is the gridworld of
``spec/gridworld.md`` in its complete reading, ``oracle.planning`` the two-phase backward induction of
``spec/public_api.md``. Clarity comes before speed everywhere: no caches, no arrays, exact fractions in the rules.
"""
