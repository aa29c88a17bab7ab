"""A gridworld as an MDP in the PRISM language, for Storm's own builder of state spaces: :func:`prism_of`.

States are those of the DAG, steps included; each profile of actions is a choice; conflicts are drawn with their
probabilities. Storm evaluates a guard and new values from the present state only, while the agents act one after the other
on what those before them have left. So what agent ``i`` does after the agents of a *prefix* is a formula that refers to the
formulas of shorter prefixes: ``ok_02_1`` says whether agent 1 moves when 0 and 2 have acted, ``thing_02_0`` where thing 0 is
by then. Storm puts formulas in place of their names, so that expressions grow with the number of agents that push.

Cells are numbered row by row over the whole map, with a wall around it, so that the next cell is a sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from benchmarks.peers.promela import TURNS, partitions, refuse_unsupported
from empo_bi import GridWorld
from empo_bi.world.codes import Action, Kind

Prefix = tuple[int, ...]


def prism_of(world: GridWorld) -> str:
    """A PRISM program with the states and the transition probabilities of the world.

    Variables are ``step``, ``p<i>`` and ``d<i>`` of agent ``i`` (cell and direction), and ``r<k>`` of thing ``k``. A goal of
    agent 0 at the cell (x, y) is ``p0 = `` :func:`cell_number`.

    Raises
    ------
    UnsupportedWorldError
        Names the first thing that is not supported.
    """
    refuse_unsupported(world)
    return _Program(world).text()


def cell_number(world: GridWorld, x: int, y: int) -> int:
    """The number of a cell in the program."""
    return (y + 1) * (world.world_spec.width + 2) + x + 1


class _Program:
    def __init__(self, world: GridWorld) -> None:
        spec = world.world_spec
        self.agents, self.actions, self.max_steps = spec.agents, spec.actions, spec.max_steps
        self.n, self.width, self.n_cells = len(spec.agents), spec.width + 2, (spec.width + 2) * (spec.height + 2)
        cells = [(x, y) for y in range(spec.height) for x in range(spec.width)]
        kinds = {cell_number(world, x, y): spec.cells[y][x].kind for x, y in cells}
        self.free_cells = [cell for cell, kind in kinds.items() if kind != Kind.WALL]
        self.starts = [cell_number(world, agent.x, agent.y) for agent in spec.agents]
        self.rocks, self.blocks = ([c for c, kind in kinds.items() if kind == it] for it in (Kind.ROCK, Kind.BLOCK))
        self.things = self.rocks + self.blocks
        self.formulas: dict[str, str] = {}

    def text(self) -> str:
        commands = "\n".join(self._commands())
        formulas = "\n".join(f"formula {name} = {value};" for name, value in self.formulas.items())
        return f"mdp\n\n{formulas}\n\nmodule world\n{self._variables()}\n\n{commands}\nendmodule\n"

    def _variables(self) -> str:
        lines = [f"  step : [0..{self.max_steps}] init 0;"]
        for i, agent in enumerate(self.agents):
            lines += [f"  p{i} : [0..{self.n_cells}] init {self.starts[i]};  d{i} : [0..3] init {agent.direction};"]
        return "\n".join(lines + [f"  r{k} : [0..{self.n_cells}] init {cell};" for k, cell in enumerate(self.things)])

    # --- what an agent does after others ------------------------------------------------------------------------------

    def _define(self, name: str, value: str) -> str:
        self.formulas.setdefault(name, value)
        return name

    def _cell(self, i: int, m: int) -> str:
        """The cell ``m`` steps ahead of agent ``i`` at the beginning; nobody's direction matters once it goes forward."""
        move = self._define(f"move_{i}", f"(d{i}=0 ? 1 : d{i}=1 ? {self.width} : d{i}=2 ? -1 : -{self.width})")
        return self._define(f"cell_{i}_{m}", f"(p{i} + {m} * {move})")

    def _free(self, i: int, m: int) -> str:
        """Whether that cell is no wall, as a union of intervals."""
        runs: list[list[int]] = []
        for cell in self.free_cells:
            if runs and runs[-1][1] == cell - 1:
                runs[-1][1] = cell
            else:
                runs.append([cell, cell])
        c = self._cell(i, m)
        return self._define(f"free_{i}_{m}", "(" + " | ".join(f"({c}>={a} & {c}<={b})" for a, b in runs) + ")")

    def _closed(self, prefix: Prefix, i: int, m: int) -> str:
        """Whether somebody was there when the step began, or has come there since."""
        c = self._cell(i, m)
        taken = [f"{c}=p{j}" for j in range(self.n) if j != i]
        taken += [f"({self._ok(prefix[:k], j)} & {c}={self._cell(j, 1)})" for k, j in enumerate(prefix)]
        return "(" + (" | ".join(taken) or "false") + ")"

    def _is_thing(self, prefix: Prefix, i: int, m: int, kinds: range | None = None) -> str:
        found = kinds if kinds is not None else range(len(self.things))
        return "(" + (" | ".join(f"{self._cell(i, m)}={self._thing(prefix, k)}" for k in found) or "false") + ")"

    def _chain(self, prefix: Prefix, i: int, m: int) -> str:
        """Whether the first ``m`` cells ahead have things on them."""
        if m == 0:
            return "true"
        longer = f"{self._chain(prefix, i, m - 1)} & {self._is_thing(prefix, i, m)}"
        return self._define(f"chain_{_name(prefix)}_{i}_{m}", f"({longer})")

    def _ok(self, prefix: Prefix, i: int) -> str:
        """Whether agent ``i`` moves, with or without pushing, when those of the prefix have acted."""
        name = f"ok_{_name(prefix)}_{i}"
        if name not in self.formulas:
            ways = []
            for m in range(len(self.things) + 1 if self._pushes(i) else 1):
                way = [self._free(i, m + 1), f"!{self._closed(prefix, i, m + 1)}", f"!{self._is_thing(prefix, i, m + 1)}"]
                if m:  # the agent comes to the first cell of the chain
                    way += [self._chain(prefix, i, m), f"!{self._closed(prefix, i, 1)}"]
                if not self.agents[i].can_push_rocks:
                    way += [f"!{self._is_thing(prefix, i, j, range(len(self.rocks)))}" for j in range(1, m + 1)]
                ways.append("(" + " & ".join(way) + ")")
            self._define(name, "(" + " | ".join(ways) + ")")
        return name

    def _thing(self, prefix: Prefix, k: int) -> str:
        """Where thing ``k`` is when those of the prefix have acted."""
        if not prefix:
            return f"r{k}"
        *others, i = prefix
        before = tuple(others)
        if not self._pushes(i):
            return self._thing(before, k)
        name = f"thing_{_name(prefix)}_{k}"
        if name not in self.formulas:
            here = self._thing(before, k)
            cells = range(1, len(self.things) + 1)
            pushed = " | ".join(f"({here}={self._cell(i, m)} & {self._chain(before, i, m - 1)})" for m in cells)
            self._define(name, f"({self._ok(before, i)} & ({pushed}) ? {here} + move_{i} : {here})")
        return name

    def _pushes(self, i: int) -> bool:
        return bool(self.blocks) or (bool(self.rocks) and self.agents[i].can_push_rocks)

    # --- what all do --------------------------------------------------------------------------------------------------

    def _claim(self, i: int) -> str:
        """The cell that agent ``i`` would claim by going forward, or a number of its own."""
        end = self._cell(i, 1)  # unless there is a chain; the longest one is asked for first
        for m in range(1, len(self.things) + 1 if self._pushes(i) else 1):
            end = f"({self._chain((), i, m)} ? {self._cell(i, m + 1)} : {end})"
        return self._define(f"claim_{i}", f"({self._ok((), i)} ? {end} : -{i + 1})")

    def _commands(self) -> Iterator[str]:
        for profile in product(self.actions, repeat=self.n):
            walkers = [i for i, action in enumerate(profile) if action == Action.FORWARD]
            label = "_".join(action.name.lower() for action in profile)
            for blocks in partitions(walkers):
                guard = " & ".join([f"step<{self.max_steps}", *self._guard(blocks)])
                draws = list(product(*blocks))
                outcomes = []
                for winners in draws:
                    order = (*winners, *(i for i in walkers if i not in winners))
                    outcomes.append(f"1/{len(draws)} : {self._update(profile, order)}")
                yield f"  [{label}] {guard} -> {' + '.join(outcomes)};"
        yield f"  [end] step={self.max_steps} -> true;"

    def _guard(self, blocks: list[list[int]]) -> Iterator[str]:
        for k, block in enumerate(blocks):
            yield from (f"{self._claim(block[0])}={self._claim(i)}" for i in block[1:])
            yield from (f"{self._claim(block[0])}!={self._claim(other[0])}" for other in blocks[k + 1 :])

    def _update(self, profile: tuple[Action, ...], order: Prefix) -> str:
        new = ["(step'=step+1)"]
        new += [f"(d{i}'=mod(d{i}+{TURNS[a]},4))" for i, a in enumerate(profile) if TURNS.get(a)]
        new += [f"(p{i}'={self._ok(order[:k], i)} ? {self._cell(i, 1)} : p{i})" for k, i in enumerate(order)]
        if any(self._pushes(i) for i in order):
            new += self._sorted_things(order)
        return " & ".join(new)

    def _sorted_things(self, order: Prefix) -> list[str]:
        """Things of a kind are interchangeable: in ascending order, one order stands for all."""
        places = [self._thing(order, k) for k in range(len(self.things))]
        for first, past in ((0, len(self.rocks)), (len(self.rocks), len(self.things))):
            for end in range(past - 1, first, -1):
                for k in range(first, end):
                    places[k], places[k + 1] = (f"{f}({places[k]},{places[k + 1]})" for f in ("min", "max"))
        return [f"(r{k}'={place})" for k, place in enumerate(places)]


def _name(prefix: Prefix) -> str:
    return "".join(map(str, prefix)) or "first"
