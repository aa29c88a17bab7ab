"""Worlds: from a text file to exact transition probabilities of whole blocks of packed states.

Reading order: ``codes`` (the vocabulary), ``source`` and ``spec`` (text to validated description), ``tables`` and
``packing`` (description to integers), ``rules`` (what one action does), ``joint`` (what a profile of actions does),
``expand`` (blocks of states), ``gridworld`` (the object users hold).
"""
