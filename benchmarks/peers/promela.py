"""A gridworld as a Promela model, for the explicit-state model checker SPIN: :func:`promela_of`.

What SPIN then enumerates is what ``enumerate_dag`` enumerates: one state per (step, body), or per body. It is written
from the rules (sections 6 and 7 of the specification) and the world's map alone, with its own numbering of cells, so
that equal numbers of states say something about both.

**One joint step is one transition.** The model is a single process in a single loop. Each option of the loop is one
``d_step``: a profile of actions and the order in which the agents that go forward carry it out. So no state in the
middle of a step exists that could be stored, and there is nothing to interleave.

**Chance becomes choice.** Agents that want the same cell form a block, and a winner is drawn in each; the winners act
first, in the order of their blocks, then the others by index (7.5 to 7.7). For those who go forward in a profile, each way
of forming blocks and each draw gives an order. Options with the same order are one, guarded by the blocks that lead to it.

**Claims are part of the state**: which cell each agent would come to claim by going forward. They follow from the rest of
the state, hence do not multiply states, and make the guards short. An agent that cannot move whatever the others do (it
faces a wall, or another agent, whose cell is closed for the whole step) has no part in a conflict that anybody could notice;
its claim is, like that of one who cannot push what is in front, a number of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from empo_bi import GridWorld
from empo_bi.world import codes
from empo_bi.world.codes import Action, Kind

WALL = 0  # the number of all walls and of everything outside the map
BYTE = 255
_FREE = (Kind.EMPTY, Kind.GOAL, Kind.SWITCH)  # goal tiles and switches have no effect
_SUPPORTED_KINDS = (*_FREE, Kind.WALL, Kind.AGENT, *codes.PUSHABLES)
_SUPPORTED_ACTIONS = (Action.STILL, Action.LEFT, Action.RIGHT, Action.FORWARD)
TURNS = {Action.STILL: 0, Action.LEFT: 3, Action.RIGHT: 1}


class UnsupportedWorldError(ValueError):
    """The world has something that the model cannot say."""


def promela_of(world: GridWorld, *, with_step: bool = True) -> str:
    """A Promela model whose reachable states are those of the world.

    Parameters
    ----------
    world : GridWorld
        With walls, agents of any colour, blocks, rocks, goal tiles and switches; its actions still, left, right, forward.
    with_step : bool
        Whether the step is part of the state, and ends the run at ``max_steps``; there are then as many states as the
        DAG has. Without it there are as many as the DAG has bodies, if SPIN searches breadth first and no deeper than
        ``max_steps``.

    Raises
    ------
    UnsupportedWorldError
        Names the first thing that is not supported.
    """
    refuse_unsupported(world)
    return _Model(world, with_step).text()


def refuse_unsupported(world: GridWorld) -> None:
    """Raise :class:`UnsupportedWorldError` for what neither this model nor the one for Storm can say."""
    spec = world.world_spec
    for y, row in enumerate(spec.cells):
        for x, cell in enumerate(row):
            if cell.kind not in _SUPPORTED_KINDS:
                raise _unsupported(world, f"{cell.kind.name.lower().replace('_', ' ')} at {x},{y}")
    for action in spec.actions:
        if action not in _SUPPORTED_ACTIONS:
            raise _unsupported(world, f"action {action.name.lower()} of {spec.action_set}")
    if not spec.agents:
        raise _unsupported(world, "a map without agents")
    n_numbers = spec.width * spec.height + len(spec.agents)
    if n_numbers > BYTE:
        raise _unsupported(world, f"{spec.width} x {spec.height} cells and {len(spec.agents)} agents, over {BYTE} together")


def _unsupported(world: GridWorld, what: str) -> UnsupportedWorldError:
    supported = ", ".join(kind.name.lower() for kind in _SUPPORTED_KINDS)
    actions = ", ".join(action.name.lower() for action in _SUPPORTED_ACTIONS)
    return UnsupportedWorldError(
        f"{world.world_spec.origin}: {what}: models for other tools do not know that; "
        f"use a world of {supported}, with the actions {actions}"
    )


class _Model:
    """The parts of one world's model; ``text`` puts them together."""

    def __init__(self, world: GridWorld, with_step: bool) -> None:
        spec = world.world_spec
        self.name, self.agents, self.actions, self.max_steps = spec.name, spec.agents, spec.actions, spec.max_steps
        self.with_step = with_step
        self.n = len(spec.agents)
        cells = [(x, y) for y in range(spec.height) for x in range(spec.width) if spec.cells[y][x].kind != Kind.WALL]
        self.number = {cell: i for i, cell in enumerate(cells, start=1)}
        self.ahead = [[WALL] * 4] + [
            [self.number.get((x + dx, y + dy), WALL) for dx, dy in codes.DIRECTION_VECTORS] for x, y in cells
        ]
        self.rocks, self.blocks = (
            [self.number[x, y] for x, y in cells if spec.cells[y][x].kind == kind] for kind in (Kind.ROCK, Kind.BLOCK)
        )
        self.things = self.rocks + self.blocks

    # --- what the state is --------------------------------------------------------------------------------------------

    def text(self) -> str:
        parts = [f"/* {_comment(self.name)}: written by benchmarks/peers/promela.py */", self._state(), self._words()]
        if self.things:
            parts += [self._push(), self._sort()]
        parts += [self._forward()]
        if self.has_claims:
            parts += [self._claims()]
        parts += ["active proctype steps()\n{\nend:\n  do\n" + "\n".join(self._options()) + "\n  od\n}"]
        return "\n\n".join(parts) + "\n"

    @property
    def has_claims(self) -> bool:
        return self.n > 1 and Action.FORWARD in self.actions

    def _state(self) -> str:
        lines = []
        if self.with_step:
            kind = "byte" if self.max_steps <= BYTE else "int"
            lines += [f"{kind} step = 0;"]
        places = [self.number[agent.x, agent.y] for agent in self.agents]
        lines += [_array("byte", "pos", places), _array("byte", "dir", [agent.direction for agent in self.agents])]
        if self.things:
            lines += [_array("byte", "thing", self.things) + "  /* rocks, then blocks, each in ascending order */"]
        if self.has_claims:
            lines += [_array("byte", "claim", [self._first_claim(i) for i in range(self.n)])]
        lines += ["", "/* Constant, or set before it is read within one step: not part of the state. */"]
        lines += [_array("hidden byte", "ahead", [cell for row in self.ahead for cell in row])]
        lines += [f"hidden byte start[{self.n}];", "hidden byte front, last, behind, swap;"]
        return "\n".join(lines)

    def _first_claim(self, i: int) -> int:
        """The claim of agent ``i`` at the start: what ``claims`` computes for all later states."""
        agent = self.agents[i]
        cell = self.ahead[self.number[agent.x, agent.y]][agent.direction]
        while cell in self.things:
            if cell in self.rocks and not agent.can_push_rocks:
                return self._private(i)
            cell = self.ahead[cell][agent.direction]
        is_taken = any(self.number[other.x, other.y] == cell for other in self.agents)
        return self._private(i) if cell == WALL or is_taken else cell

    def _private(self, i: int) -> int:
        return len(self.ahead) + i

    # --- rules of one agent -------------------------------------------------------------------------------------------

    def _words(self) -> str:
        n_rocks = len(self.rocks)
        here = " || ".join(f"pos[{i}] == (c)" for i in range(self.n))
        before = " || ".join(f"start[{i}] == (c)" for i in range(self.n))
        lines = [
            "#define AHEAD(c, d)  ahead[4 * (c) + (d)]",
            f"#define AGENT(c)     ({here})",
            f"#define CLOSED(c)    ({here} || {before})  /* taken now, or when the step began */",
        ]
        if self.things:
            lines += [f"#define THING(c)     ({_any_thing(range(len(self.things)))})"]
            lines += [f"#define ROCK(c)      ({_any_thing(range(n_rocks)) or 'false'})"]
        return "\n".join(lines)

    def _push(self) -> str:
        """``find_end`` follows a chain of things to the cell behind it; ``shift`` moves the chain by one, from the end."""
        moves = "\n".join(f"    :: thing[{k}] == behind -> thing[{k}] = last" for k in range(len(self.things)))
        return f"""\
inline find_end(i, pushes_rocks)  /* last = the cell behind the chain at front, or {WALL} */
{{
  last = front;
  do
  :: ROCK(last) && !pushes_rocks -> last = {WALL}; break
  :: THING(last) -> last = AHEAD(last, dir[i])
  :: else -> break
  od
}}

inline shift(i)  /* the chain from front on by one cell, to last */
{{
  do
  :: last != front ->
    behind = AHEAD(last, (dir[i] + 2) & 3);
    if
{moves}
    fi;
    last = behind
  :: else -> break
  od;
  sort()
}}"""

    def _sort(self) -> str:
        """Things of a kind are interchangeable: one order stands for all."""
        lines = []
        for first, past in ((0, len(self.rocks)), (len(self.rocks), len(self.things))):
            for end in range(past - 1, first, -1):
                lines += [
                    f"  if :: thing[{k}] > thing[{k + 1}] -> swap = thing[{k}]; thing[{k}] = thing[{k + 1}]; "
                    f"thing[{k + 1}] = swap :: else fi;"
                    for k in range(first, end)
                ]
        return "\n".join(["inline sort()", "{", *lines, "  skip", "}"])

    def _forward(self) -> str:
        walk = f"""\
inline walk(i)  /* forward, by one who can push nothing */
{{
  front = AHEAD(pos[i], dir[i]);
  if
  :: front == {WALL} || CLOSED(front){" || THING(front)" if self.things else ""} -> skip
  :: else -> pos[i] = front
  fi
}}"""
        if not self.things:
            return walk
        forward = f"""\
inline forward(i, pushes_rocks)
{{
  front = AHEAD(pos[i], dir[i]);
  if
  :: front == {WALL} || CLOSED(front) -> skip
  :: else ->
    if
    :: !THING(front) -> pos[i] = front
    :: else ->
      find_end(i, pushes_rocks);
      if
      :: last == {WALL} || CLOSED(last) -> skip
      :: else -> shift(i); pos[i] = front
      fi
    fi
  fi
}}"""
        return f"{walk}\n\n{forward}"

    def _pushes(self, i: int) -> bool:
        return bool(self.blocks) or (bool(self.rocks) and self.agents[i].can_push_rocks)

    def _go(self, i: int) -> str:
        return f"forward({i}, {str(self.agents[i].can_push_rocks).lower()})" if self._pushes(i) else f"walk({i})"

    # --- rules of all together ----------------------------------------------------------------------------------------

    def _claims(self) -> str:
        lines = [
            "inline claims()  /* the cell that each would claim by going forward, or a number of its own */",
            "{",
        ]
        for i, agent in enumerate(self.agents):
            lines += [f"  front = AHEAD(pos[{i}], dir[{i}]);"]
            if self._pushes(i):
                lines += [f"  find_end({i}, {str(agent.can_push_rocks).lower()});"]
                claimed, free = "last", f"last != {WALL} && !AGENT(last)"
            else:
                claimed, free = "front", f"front != {WALL} && !AGENT(front)" + (" && !THING(front)" if self.things else "")
            lines += [f"  if :: {free} -> claim[{i}] = {claimed} :: else -> claim[{i}] = {self._private(i)} fi;"]
        return "\n".join([*lines, "  skip", "}"])

    def _options(self) -> Iterator[str]:
        """One option for each profile of actions and each order in which it may be carried out."""
        for profile in product(self.actions, repeat=self.n):
            walkers = [i for i, action in enumerate(profile) if action == Action.FORWARD]
            turns = [(i, TURNS[action]) for i, action in enumerate(profile) if TURNS.get(action)]
            for order, guards in orders_of(walkers).items():
                does = [f"start[{i}] = pos[{i}]" for i in range(self.n)] if walkers else []
                does += [f"dir[{i}] = (dir[{i}] + {turn}) & 3" for i, turn in turns]
                does += [self._go(i) for i in order]
                if self.has_claims and (walkers or turns):
                    does += ["claims()"]
                conditions = [f"step < {self.max_steps}"] if self.with_step else []
                if self.with_step:
                    does += ["step++"]
                if "true" not in guards:
                    conditions += ["(" + " || ".join(guards) + ")"]
                names = " ".join(action.name.lower() for action in profile)
                yield f"  :: d_step {{ {' && '.join(conditions) or 'true'} -> {'; '.join(does) or 'skip'} }}  /* {names} */"


def orders_of(walkers: Sequence[int]) -> dict[tuple[int, ...], list[str]]:
    """The orders in which agents that all go forward may act, each with the guards under which it may be drawn.

    A guard says which claims are equal, that is, which blocks there are; any one of them suffices.

    >>> orders_of([0, 1])
    {(0, 1): ['true'], (1, 0): ['claim[0] == claim[1]']}
    """
    if len(walkers) < 2:
        return {tuple(walkers): ["true"]}
    guards: dict[tuple[int, ...], list[str]] = {}
    all_blocks = list(partitions(list(walkers)))
    for blocks in all_blocks:
        for winners in product(*blocks):
            order = (*winners, *(i for i in walkers if i not in winners))
            guards.setdefault(order, []).append(_guard(blocks))
    return {order: ["true"] if len(found) == len(all_blocks) else found for order, found in guards.items()}


def partitions(members: list[int]) -> Iterator[list[list[int]]]:
    """All ways of forming blocks, which are in the order of their lowest members."""
    if not members:
        yield []
        return
    *others, last = members
    for blocks in partitions(others):
        for k in range(len(blocks)):
            yield [[*block, last] if k == i else block for i, block in enumerate(blocks)]
        yield [*blocks, [last]]


def _guard(blocks: list[list[int]]) -> str:
    same = [f"claim[{block[0]}] == claim[{i}]" for block in blocks for i in block[1:]]
    leaders = [block[0] for block in blocks]
    different = [f"claim[{a}] != claim[{b}]" for k, a in enumerate(leaders) for b in leaders[k + 1 :]]
    return " && ".join(same + different)


def _any_thing(numbers: Sequence[int]) -> str:
    return " || ".join(f"thing[{k}] == (c)" for k in numbers)


def _array(kind: str, name: str, values: Sequence[int]) -> str:
    return f"{kind} {name}[{len(values)}] = {{ {', '.join(map(str, values))} }};"


def _comment(text: str) -> str:
    return " ".join(text.replace("*/", "").replace("/*", "").split())
