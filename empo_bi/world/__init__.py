"""Worlds: from a text file to exact transition probabilities of whole blocks of packed states.

Reading order for gridworlds: ``codes`` (the vocabulary), ``source`` and ``spec`` (text to validated description),
``layout`` and ``tables`` (description to integers), ``board`` and ``rules`` (what one action does), ``joint_actions`` and
``turn_order`` (what a profile of actions does), ``expand`` (blocks of states), ``encoding`` (tuples to keys and back),
``gridworld`` (the object that users hold). Other compiled worlds share ``key_layout``, ``row_codec``, ``packed`` and
``map_world`` with them; ``bush`` is one. ``load`` reads a world of any kind; ``as_model`` is the seam to the rest.
"""
