"""Worlds: from a text file to exact transition probabilities of whole blocks of packed states.

Reading order: ``codes`` (the vocabulary), ``source`` and ``spec`` (text to validated description), ``layout`` and ``tables``
(description to integers), ``board`` and ``rules`` (what one action does), ``joint_actions`` and ``turn_order`` (what a
profile of actions does), ``expand`` (blocks of states), ``encoding`` (tuples to keys and back), ``gridworld`` (the object
that users hold).
"""
