"""Checks for worlds of your own, in the manner of gymnasium's ``check_env``: :func:`check_world`.

Put it into the tests of your world:

>>> from empo_bi import load_world
>>> from empo_bi.testing import check_world
>>> def test_my_world_keeps_the_contract():
...     check_world(load_world("basics/first_steps", max_steps=4), strict=True)
"""

from __future__ import annotations

from empo_bi.testing.check import WorldCheck, check_world

__all__ = ["WorldCheck", "check_world"]
