"""The gridworld of spec/gridworld.md in its complete reading, as plain rules on dictionaries.

Comments name the section of the specification that a rule comes from. A :class:`Board` is the world at one moment of
a step; it is built afresh from the state for every outcome, changed by the rules, and read back as a state. The joint
rules of section 7 are methods of :class:`OracleWorld`. Probabilities are exact fractions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from oracle.golden import (
    canonical_state,
    digest,
    enumerate_levels,
    golden_figures,
    golden_figures_by_horizon,
    transition_line,
)
from oracle.worldfile import ALL_SIDES, AgentSpec, Cell, Goal, Layout, read_layout

__all__ = [
    "Board",
    "Goal",
    "OracleWorld",
    "canonical_state",
    "digest",
    "enumerate_levels",
    "golden_figures",
    "golden_figures_by_horizon",
    "parse",
    "transition_line",
]

State = tuple
Profile = tuple[int, ...]

STEP_OF_DIRECTION = {0: (1, 0), 1: (0, 1), 2: (-1, 0), 3: (0, -1)}  # 2

EMPTY = "empty"
PUSHABLES = ("block", "rock")
ITEMS = ("key", "ball", "box")
ALWAYS_WALK_OVER = ("goal", "switch", "lava", "unsteady")  # 3; doors only while open

# 4.4: the fields after (kind, x, y), in order
FIELDS = {
    "door": ("is_open", "is_locked"),
    "magicwall": ("active",),
    "bush": ("trampled",),
    "killbutton": ("enabled",),
    "pauseswitch": ("is_on", "enabled"),
    "controlbutton": ("enabled", "controlled_agent", "triggered_action", "awaiting_action"),
}

ENTRY_PROBABILITY = Fraction(1, 2)  # 1.1: no key for it


def front_of(cell: Cell, direction: int) -> Cell:
    """The next cell in a direction (2)."""
    dx, dy = STEP_OF_DIRECTION[direction]
    return cell[0] + dx, cell[1] + dy


@dataclass
class Agent:
    """An agent at one moment: the fields of 4.2, and its constant properties as ``spec``."""

    index: int
    spec: AgentSpec
    cell: Cell
    direction: int
    terminated: bool
    paused: bool
    carried: tuple[str, str] | None  # (kind, colour)
    forced_action: int | None

    @property
    def front(self) -> Cell:
        return front_of(self.cell, self.direction)

    @property
    def out_of_play(self) -> bool:
        return self.terminated or self.paused


class Board:
    """The whole world at one moment of a step, and what single actions do to it (sections 5 and 6).

    ``pushables`` maps a cell to "block" or "rock", ``items`` a cell to (kind, colour), ``flags`` the cell of a mutable
    object to its named fields. Terrain is static and stays in the layout (C2).
    """

    def __init__(self, layout: Layout, state: State) -> None:
        """Load a state (5): one thing on top of the other."""
        self.layout = layout
        self.step_count, agents, mobile, mutable = state
        self.agents = []
        for index, (x, y, direction, terminated, _, paused, kind, colour, forced) in enumerate(agents):
            carried = None if kind is None else (kind, colour)
            agent = Agent(index, layout.agents[index], (x, y), direction, terminated, paused, carried, forced)
            self.agents.append(agent)
        self.pushables = {(x, y): kind for kind, x, y, *_ in mobile if kind in PUSHABLES}
        self.items = {(x, y): (kind, *colour) for kind, x, y, *colour in mobile if kind in ITEMS}
        self.flags = {(x, y): dict(zip(FIELDS[kind], values, strict=True)) for kind, x, y, *values in mutable}
        # S0 (6): cells of the agents not terminated, paused ones included, at the beginning of the step
        self.closed_cells = {agent.cell for agent in self.agents if not agent.terminated}

    def state(self) -> State:
        """Read the state back (4, C1)."""
        agents = tuple(
            (*a.cell, a.direction, a.terminated, True, a.paused, *(a.carried or (None, None)), a.forced_action)
            for a in self.agents
        )
        mobile = [(kind, x, y) for (x, y), kind in self.pushables.items()]
        mobile += [(kind, x, y, colour) for (x, y), (kind, colour) in self.items.items()]
        mutable = [(self.layout.terrain[x, y], x, y, *flags.values()) for (x, y), flags in self.flags.items()]
        mobile.sort(key=lambda entry: entry[:3])
        mutable.sort(key=lambda entry: (entry[2], entry[1]))
        return self.step_count, agents, tuple(mobile), tuple(mutable)

    # What one sees

    def shows(self, cell: Cell) -> str:
        """What a cell shows (C12): agent, else pushable, else item, else the map's object."""
        if any(agent.cell == cell for agent in self.agents):
            return "agent"
        if cell in self.pushables:
            return self.pushables[cell]
        if cell in self.items:
            return self.items[cell][0]
        return self.ground(cell)

    def ground(self, cell: Cell) -> str:
        """The map's object on a cell, whatever covers it; a trampled bush is nothing (C12)."""
        x, y = cell
        if not (0 <= x < self.layout.width and 0 <= y < self.layout.height):
            return "wall"  # C8
        kind = self.layout.terrain.get(cell, EMPTY)
        if kind == "bush" and self.flags[cell]["trampled"]:
            return EMPTY
        return kind

    def is_free(self, cell: Cell) -> bool:
        """Whether a cell shows nothing or something walk-over (3)."""
        shown = self.shows(cell)
        if shown == "door":
            return self.flags[cell]["is_open"]
        return shown == EMPTY or shown in ALWAYS_WALK_OVER

    # 6: one action

    def execute(self, agent: Agent, action: str, action_id: int) -> None:
        """Do one action of one agent, then let control buttons record it (6.1 to 6.9)."""
        started_button = None
        if action == "left":
            agent.direction = (agent.direction - 1) % 4
        elif action == "right":
            agent.direction = (agent.direction + 1) % 4
        elif action == "forward":
            self.forward(agent)
        elif action == "pickup":
            self.pickup(agent)
        elif action == "drop":
            self.drop(agent)
        elif action == "toggle":
            started_button = self.toggle(agent)
        else:
            assert action == "build", action  # 6.1: does nothing
        self.record(agent, action_id, started_button)

    def forward(self, agent: Agent) -> None:
        """6.2. A magic wall is like a wall here (6.6); lava is seen to in :meth:`place` (C5)."""
        if agent.front in self.closed_cells:
            return
        self.advance(agent)

    def advance(self, agent: Agent) -> None:
        """Act on the front cell as it shows now: push, move, or enter a bush (6.2 below its first line; 7.8, 3)."""
        cell = agent.front
        shown = self.shows(cell)
        if shown in PUSHABLES:
            self.push(agent)
        elif shown == "bush":
            self.enter_or_trample(agent)
        elif self.is_free(cell):
            self.place(agent, cell)

    def place(self, agent: Agent, cell: Cell) -> None:
        """Move an agent to a cell (6.4). What it leaves shows again by itself (C12); lava terminates (C5)."""
        agent.cell = cell
        if self.ground(cell) == "lava":
            agent.terminated = True

    def push_chain(self, agent: Agent) -> list[Cell]:
        """The consecutive cells with blocks and rocks in front of an agent (6.3)."""
        chain = []
        cell = agent.front
        while self.shows(cell) in PUSHABLES:
            chain.append(cell)
            cell = front_of(cell, agent.direction)
        return chain

    def push_end(self, agent: Agent) -> Cell | None:
        """The end cell of a push, or None if there is nothing to push or the push is impossible (6.3)."""
        chain = self.push_chain(agent)
        if not chain:
            return None
        if not agent.spec.can_push_rocks and any(self.pushables[cell] == "rock" for cell in chain):
            return None
        end = front_of(chain[-1], agent.direction)
        if end in self.closed_cells or not self.is_free(end):
            return None
        return end

    def push(self, agent: Agent) -> None:
        """6.3: the chain moves one cell on and the agent follows."""
        if self.push_end(agent) is None:
            return
        chain = self.push_chain(agent)
        kinds = [self.pushables.pop(cell) for cell in chain]
        for cell, kind in zip(chain, kinds, strict=True):
            self.pushables[front_of(cell, agent.direction)] = kind
        self.place(agent, chain[0])

    def enter_or_trample(self, agent: Agent) -> None:
        """6.5: robot-like agents trample the bush for good, others stand in it."""
        if agent.spec.robot_like:
            self.flags[agent.front]["trampled"] = True
        self.place(agent, agent.front)

    def pickup(self, agent: Agent) -> None:
        """6.7."""
        if agent.carried is None and self.shows(agent.front) in ITEMS:
            agent.carried = self.items.pop(agent.front)

    def drop(self, agent: Agent) -> None:
        """6.7, C13: S0 plays no role."""
        if agent.carried is not None and self.is_free(agent.front):
            self.items[agent.front] = agent.carried
            agent.carried = None

    # 6.8: toggle

    def toggle(self, agent: Agent) -> Cell | None:
        """6.8. Returns the control button whose programming this very action started, if any."""
        cell = agent.front
        shown = self.shows(cell)
        if shown == "door":
            self.toggle_door(agent, cell)
        elif shown == "box":
            del self.items[cell]  # C1: an opened box is gone
        elif shown == "killbutton":
            self.toggle_kill_button(agent, cell)
        elif shown == "pauseswitch":
            self.toggle_pause_switch(agent, cell)
        elif shown == "disablingswitch":
            self.toggle_disabling_switch(agent, cell)
        elif shown == "controlbutton":
            return self.toggle_control_button(agent, cell)
        return None

    def toggle_door(self, agent: Agent, cell: Cell) -> None:
        """6.8: a locked door needs a key of its colour, which is kept; never locked again."""
        door = self.flags[cell]
        if not door["is_locked"]:
            door["is_open"] = not door["is_open"]
        elif agent.carried == ("key", self.layout.door_colour[cell]):
            door["is_locked"] = False
            door["is_open"] = True

    def grey_agents(self) -> list[Agent]:
        return [agent for agent in self.agents if agent.spec.colour == "grey"]

    def toggle_kill_button(self, agent: Agent, cell: Cell) -> None:
        """6.8."""
        if self.flags[cell]["enabled"] and agent.spec.colour == "yellow":
            for robot in self.grey_agents():
                robot.terminated = True

    def toggle_pause_switch(self, agent: Agent, cell: Cell) -> None:
        """6.8."""
        switch = self.flags[cell]
        if switch["enabled"] and agent.spec.colour == "yellow":
            switch["is_on"] = not switch["is_on"]
            for robot in self.grey_agents():
                robot.paused = switch["is_on"]

    def toggle_disabling_switch(self, agent: Agent, cell: Cell) -> None:
        """6.8: flips every object of the target kind; disabling a pause switch that is on releases the robots."""
        if agent.spec.colour != "grey":
            return
        for target, flags in self.flags.items():
            if self.layout.terrain[target] != self.layout.disables[cell]:
                continue
            flags["enabled"] = not flags["enabled"]
            if flags.get("is_on") and not flags["enabled"]:
                for robot in self.grey_agents():
                    robot.paused = False

    def toggle_control_button(self, agent: Agent, cell: Cell) -> Cell | None:
        """6.8: a grey agent starts programming, a yellow one forces the recorded action onto the next step."""
        button = self.flags[cell]
        if not button["enabled"]:
            return None
        if agent.spec.colour == "grey":
            if button["awaiting_action"] and button["controlled_agent"] == agent.index:
                return None  # the toggle itself will be recorded
            button["awaiting_action"] = True
            button["controlled_agent"] = agent.index
            return cell
        programmed = button["controlled_agent"] is not None and button["triggered_action"] is not None
        if agent.spec.colour == "yellow" and programmed:
            self.agents[button["controlled_agent"]].forced_action = button["triggered_action"]
        return None

    def record(self, agent: Agent, action_id: int, started_button: Cell | None) -> None:
        """6.9: every button awaiting this agent records, except one that this very action started."""
        for cell, flags in self.flags.items():
            if self.layout.terrain[cell] != "controlbutton" or cell == started_button:
                continue
            if flags["awaiting_action"] and flags["controlled_agent"] == agent.index:
                flags["triggered_action"] = action_id
                flags["awaiting_action"] = False

    # 7.8 to 7.10: the random moves

    def stumble(self, turns: Mapping[int, int]) -> None:
        """7.8: ``turns`` gives each stumbler's turn, -1 left, 0 straight, 1 right."""
        stumblers = [self.agents[i] for i in sorted(turns) if not self.agents[i].out_of_play]
        for agent in stumblers:
            agent.direction = (agent.direction + turns[agent.index]) % 4
        contested = {agent.index: self.push_end(agent) or agent.front for agent in stumblers}
        wanted = list(contested.values())
        unblocked = [
            agent
            for agent in stumblers
            if self.shows(contested[agent.index]) != "agent"
            and contested[agent.index] not in self.closed_cells
            and wanted.count(contested[agent.index]) == 1
        ]
        for agent in unblocked:
            self.advance(agent)

    def magic_entrants(self, attempts: Mapping[int, str]) -> dict[Cell, list[int]]:
        """C14: wall -> the agents that are to enter it, among those still in play."""
        entrants: dict[Cell, list[int]] = {}
        for i in sorted(attempts):
            if attempts[i] == "enter" and not self.agents[i].out_of_play:
                entrants.setdefault(self.agents[i].front, []).append(i)
        return entrants

    def attempt_magic(self, attempts: Mapping[int, str]) -> None:
        """C14: in index order, if the front cell then shows an active magic wall."""
        for i in sorted(attempts):
            agent = self.agents[i]
            if agent.out_of_play or self.shows(agent.front) != "magicwall" or not self.flags[agent.front]["active"]:
                continue
            if attempts[i] == "enter":
                self.place(agent, agent.front)
            elif attempts[i] == "solidify":
                self.flags[agent.front]["active"] = False

    def attempt_bushes(self, attempts: Mapping[int, str]) -> None:
        """7.10: in index order, if the front cell still shows a bush."""
        for i in sorted(attempts):
            agent = self.agents[i]
            if attempts[i] == "enter" and self.shows(agent.front) == "bush":
                self.enter_or_trample(agent)


class Outcome(NamedTuple):
    """One combination of the random choices of 7.6."""

    probability: Fraction
    winners: tuple[int, ...]  # one a block, in block order
    stumbles: dict[int, int]
    magic: dict[int, str]
    bush: dict[int, str]


class OracleWorld:
    """A world: its fixed layout, its states (4) and its joint transitions (7)."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.max_steps = layout.max_steps
        self.action_names = list(layout.action_names)
        self.n_actions = len(layout.action_names)
        self.n_agents = len(layout.agents)
        self.humans = [i for i, agent in enumerate(layout.agents) if agent.colour == "yellow"]  # 1.4
        self.robots = [i for i, agent in enumerate(layout.agents) if agent.colour == "grey"]
        self.goals = list(layout.goals)

    # 4.5, 8: states and goals

    def initial_state(self) -> State:
        """4.5."""
        layout = self.layout
        agents = tuple((*a.start, a.direction, False, True, False, None, None, None) for a in layout.agents)
        mobile = [(kind, *cell) for cell, kind in layout.pushables.items()]
        mobile += [(kind, *cell, colour) for cell, (kind, colour) in layout.items.items()]
        mutable = [(kind, *cell, *self.initial_flags(cell)) for cell, kind in layout.terrain.items() if kind in FIELDS]
        mobile.sort(key=lambda entry: entry[:3])
        mutable.sort(key=lambda entry: (entry[2], entry[1]))
        return 0, agents, tuple(mobile), tuple(mutable)

    def initial_flags(self, cell: Cell) -> tuple:
        """1.3: all enabled, switches off, buttons unprogrammed; in the order of 4.4."""
        return {
            "door": self.layout.door_start.get(cell, ()),
            "magicwall": (True,),
            "bush": (False,),
            "killbutton": (True,),
            "pauseswitch": (False, True),
            "controlbutton": (True, None, None, False),
        }[self.layout.terrain[cell]]

    def achieved(self, state: State, human: int, goal: Goal) -> bool:
        """8.2: by the human's position alone."""
        x, y = state[1][human][:2]
        return goal.x1 <= x <= goal.x2 and goal.y1 <= y <= goal.y2

    def profiles(self) -> Iterator[Profile]:
        """All profiles in index order, agent 0 being the least significant digit (public_api.md, 1)."""
        for digits in itertools.product(range(self.n_actions), repeat=self.n_agents):
            yield digits[::-1]

    # 7: joint transitions

    def transitions(self, state: State, profile: Sequence[int]) -> dict[State, Fraction] | None:
        """Successors and their probabilities; None if the state is terminal (4.5, 7.11, C7)."""
        if len(profile) != self.n_agents or any(not 0 <= action < self.n_actions for action in profile):
            raise ValueError(f"{profile} is no profile of {self.n_agents} agents with {self.n_actions} actions")
        if state[0] >= self.max_steps:
            return None
        start, ids = self.apply_forced_actions(state, profile)
        actions = [self.action_names[action] for action in ids]
        board = Board(self.layout, start)
        active = [a.index for a in board.agents if not a.out_of_play and actions[a.index] != "still"]  # 7.2
        classes = {i: self.class_of(board, board.agents[i], actions[i]) for i in active}
        normal = [i for i in active if classes[i] == "normal"]
        blocks = self.conflict_blocks(board, normal, actions)
        if self.is_deterministic(active, classes, blocks, actions):
            return {self.execute_in_index_order(start, actions, ids): Fraction(1)}
        successors: dict[State, Fraction] = {}
        for outcome in self.outcomes(blocks, classes):
            for probability, successor in self.execute_outcome(start, actions, ids, normal, outcome):
                successors[successor] = successors.get(successor, Fraction(0)) + probability
        return successors

    def apply_forced_actions(self, state: State, profile: Sequence[int]) -> tuple[State, list[int]]:
        """7.1: forced actions replace the chosen ones and are cleared, whoever they belong to."""
        step, agents, mobile, mutable = state
        ids = [action if agent[8] is None else agent[8] for action, agent in zip(profile, agents, strict=True)]
        return (step, tuple((*agent[:8], None) for agent in agents), mobile, mutable), ids

    def class_of(self, board: Board, agent: Agent, action: str) -> str:
        """7.3: the first class that fits, in the loaded state."""
        if action != "forward":
            return "normal"
        shown = board.shows(agent.front)
        if shown == "magicwall" and agent.spec.can_enter_magic_walls and self.is_magic_for(board, agent):
            return "magic"
        if shown == "bush" and not agent.spec.robot_like and self.layout.bush_probability < 1:
            return "bush"
        if board.ground(agent.cell) == "unsteady":
            return "stumbler"
        return "normal"

    def is_magic_for(self, board: Board, agent: Agent) -> bool:
        """7.3: the wall in front is active, and its magic side is the one the agent comes from."""
        side = self.layout.magic_side[agent.front]
        return board.flags[agent.front]["active"] and side in (ALL_SIDES, (agent.direction + 2) % 4)

    def is_deterministic(
        self, active: list[int], classes: Mapping[int, str], blocks: list[list[int]], actions: list[str]
    ) -> bool:
        """7.4, without its exception for "all sides" walls (C4)."""
        if any(classes[i] != "normal" for i in active):
            return False
        not_turning = [i for i in active if actions[i] not in ("left", "right")]
        return len(active) <= 1 or len(not_turning) <= 1 or all(len(block) == 1 for block in blocks)

    def resource(self, board: Board, agent: Agent, action: str) -> tuple:
        """7.5: what an agent wants, in the loaded state; equal resources are in conflict."""
        private = ("private", agent.index)
        shown = board.shows(agent.front)
        if action == "forward":
            if shown not in PUSHABLES:
                return ("cell", agent.front)
            end = board.push_end(agent)
            return private if end is None else ("cell", end)
        if action == "pickup" and shown in ITEMS:  # C13: also with full hands
            return ("pickup", agent.front)
        if action == "drop" and shown == "agent":
            return ("drop", agent.front)
        return private

    def conflict_blocks(self, board: Board, normal: list[int], actions: list[str]) -> list[list[int]]:
        """7.5: normal agents by resource, merged for remote effects, ordered by their lowest member."""
        by_resource: dict[tuple, list[int]] = {}
        for i in normal:
            by_resource.setdefault(self.resource(board, board.agents[i], actions[i]), []).append(i)
        blocks = list(by_resource.values())
        for i in normal:
            if self.acts_remotely(board, board.agents[i], actions[i]):
                hit = {i} | {j for j in normal if self.layout.agents[j].colour == "grey"}
                merged = sorted(j for block in blocks if hit & set(block) for j in block)
                blocks = [merged] + [block for block in blocks if not hit & set(block)]
        return sorted(blocks, key=min)

    def acts_remotely(self, board: Board, agent: Agent, action: str) -> bool:
        """7.5: a yellow agent toggling an enabled kill button or pause switch."""
        return (
            action == "toggle"
            and agent.spec.colour == "yellow"
            and board.shows(agent.front) in ("killbutton", "pauseswitch")
            and board.flags[agent.front]["enabled"]
        )

    def outcomes(self, blocks: list[list[int]], classes: Mapping[int, str]) -> Iterator[Outcome]:
        """7.6: all combinations of the independent random choices that have positive probability (C7)."""
        p = self.layout.stumble_probability
        s = self.layout.solidify_probability
        q = self.layout.bush_probability
        e = ENTRY_PROBABILITY
        options_of_class = {
            "stumbler": [(1 - p, 0), (p / 2, -1), (p / 2, 1)],
            "magic": [(e, "enter"), ((1 - e) * (1 - s), "fail"), ((1 - e) * s, "solidify")],
            "bush": [(q, "enter"), (1 - q, "fail")],
        }
        choosers = [i for i in sorted(classes) if classes[i] != "normal"]
        options = [[(Fraction(1, len(block)), i) for i in block] for block in blocks]
        options += [[option for option in options_of_class[classes[i]] if option[0] > 0] for i in choosers]
        for combination in itertools.product(*options):
            probability = Fraction(1)
            for share, _ in combination:
                probability *= share
            picks = [pick for _, pick in combination]
            chosen = dict(zip(choosers, picks[len(blocks) :], strict=True))
            yield Outcome(
                probability,
                winners=tuple(picks[: len(blocks)]),
                stumbles={i: pick for i, pick in chosen.items() if classes[i] == "stumbler"},
                magic={i: pick for i, pick in chosen.items() if classes[i] == "magic"},
                bush={i: pick for i, pick in chosen.items() if classes[i] == "bush"},
            )

    def execute_in_index_order(self, start: State, actions: list[str], ids: list[int]) -> State:
        """7.4: everybody in index order, unless terminated or paused at that moment (C16)."""
        board = Board(self.layout, start)
        board.step_count += 1
        for agent in board.agents:
            if actions[agent.index] != "still" and not agent.out_of_play:
                board.execute(agent, actions[agent.index], ids[agent.index])
        return board.state()

    def execute_outcome(
        self, start: State, actions: list[str], ids: list[int], normal: list[int], outcome: Outcome
    ) -> Iterator[tuple[Fraction, State]]:
        """7.7: the four phases of one outcome, which branches once more where a magic wall is contested (C14)."""
        board = self.board_before_magic(start, actions, ids, normal, outcome)
        entrants = board.magic_entrants(outcome.magic)
        for chosen in itertools.product(*entrants.values()):
            board = self.board_before_magic(start, actions, ids, normal, outcome)
            attempts = dict(outcome.magic)
            share = outcome.probability
            for rivals, winner in zip(entrants.values(), chosen, strict=True):
                share /= len(rivals)
                attempts.update({i: "fail" for i in rivals if i != winner})
            board.attempt_magic(attempts)
            board.attempt_bushes(outcome.bush)
            yield share, board.state()

    def board_before_magic(
        self, start: State, actions: list[str], ids: list[int], normal: list[int], outcome: Outcome
    ) -> Board:
        """7.7, phases 1 and 2: winners in block order, the other normal agents in index order, then stumblers."""
        board = Board(self.layout, start)
        board.step_count += 1
        losers = [i for i in normal if i not in outcome.winners]
        for i in [*outcome.winners, *losers]:
            if not board.agents[i].out_of_play:
                board.execute(board.agents[i], actions[i], ids[i])
        board.stumble(outcome.stumbles)
        return board


def parse(source: Mapping[str, Any] | str, **overrides: Any) -> OracleWorld:
    """A world from a mapping or from YAML text; keyword arguments override its keys (1, C9)."""
    return OracleWorld(read_layout(source, **overrides))
