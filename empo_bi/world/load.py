"""Reading a world of any kind: :func:`load_world`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from empo_bi.runtime.arguments import check_flags
from empo_bi.world.bush.spec import KEYS as BUSH_KEYS
from empo_bi.world.bush.spec import is_bush_world, read_bush_spec
from empo_bi.world.file_values import SHORT_NAMES
from empo_bi.world.gridworld import GridWorld
from empo_bi.world.lint import RELEVANT_KEYS
from empo_bi.world.map_world import MapWorld
from empo_bi.world.source import read_source
from empo_bi.world.spec import read_spec

OVERRIDES = tuple(dict.fromkeys((*RELEVANT_KEYS, *SHORT_NAMES, *BUSH_KEYS)))


def load_world(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    strict: bool = False,
    require_human: bool = False,
    require_robot: bool = False,
    render_mode: str | None = None,
    **overrides: Any,
) -> MapWorld:
    """Load a world: a gridworld, or a bush world if the file has the key ``B`` or the codes of one.

    Parameters
    ----------
    source : path, str or mapping
        A world file (YAML if it ends in .yaml or .yml, else JSON), the name of a shipped world such as
        ``"asymmetric_freeing"`` or ``"jobst_challenges/asymmetric_freeing"``, a YAML or JSON text, or a mapping with the
        keys of a world file.
    strict : bool
        Turn warnings (unknown keys, useless goals, cells without a goal) into errors.
    require_human, require_robot : bool
        Refuse a world without a human (yellow agent, ``Hu``) or robot (grey agent, ``Ro``).
    render_mode : None, "rgb_array" or "ansi"
        What ``render()`` returns: a picture (also the default) or a text.
    **overrides
        Values that replace the file's: ``max_steps=15``, ``actions="small"`` (or ``action_class="SmallActions"``),
        ``orientations``, ``can_push_rocks``, ``can_enter_magic_walls``, ``stumble_probability``,
        ``solidify_probability``, ``enter_bush_success_prob``, ``possible_goals`` (or ``goals``; ``"all"`` for every cell
        where a human can walk), ``humans=[0]``, ``robots=[1]``, ``map``, ``metadata``; for a BushWorld ``B`` and
        ``fill_density``.

    Examples
    --------
    >>> world = load_world("jobst_challenges/asymmetric_freeing", max_steps=3)
    >>> len(world.agents), world.human_agent_indices, world.robot_agent_indices
    (3, [0, 1], [2])
    """
    check_flags(strict=strict, require_human=require_human, require_robot=require_robot)
    read = read_source(source)
    world: MapWorld
    if is_bush_world({**read.mapping, **overrides}):
        from empo_bi.world.bush.world import BushWorld  # a kernel, which most worlds do without

        world = BushWorld(read_bush_spec(read, overrides, strict=strict), render_mode=render_mode)
    else:
        world = GridWorld(read_spec(read, overrides, strict=strict), render_mode=render_mode)
    world.require_agents(human=require_human, robot=require_robot)
    return world
