"""Two-phase backward induction of spec/public_api.md, sections 1 to 6, as plain loops over dictionaries.

Everything is a Python float (float64). A world is anything that offers :class:`PlanningWorld`, goals come from anything
that offers ``generate(state, human)``. :class:`GridPlanningWorld` and :class:`GridGoals` make both out of an
:class:`oracle.gridworld.OracleWorld`.

Symbols as in the specification: ``s`` a state, ``h`` a human, ``g`` a goal, ``a`` an action, ``r`` a robot profile,
``u`` a human profile, ``D`` a duration.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from oracle.gridworld import Goal, OracleWorld

State = Hashable
Profile = tuple[int, ...]
Successors = list[tuple[float, State]]
Discounted = dict[Profile, list[tuple[float, float, State]]]
# (state, human, action) -> [(probability, actions of all agents)], of which only the other humans' entries count
Belief = Callable[[State, int, int], Iterable[tuple[float, Sequence[int]]]]
Policies = dict[State, dict[int, dict[Hashable, list[float]]]]
Values = dict[State, dict[int, dict[Hashable, float]]]


class PlanningWorld(Protocol):
    """What the planners ask of a world. ``transition_durations(state, actions, transitions)`` is optional."""

    n_agents: int
    n_actions: int

    def initial_state(self) -> State: ...

    def transition_probabilities(self, state: State, actions: Sequence[int]) -> Successors | None: ...


class GoalGenerator(Protocol):
    """Yields (goal, weight); a goal is hashable and has ``is_achieved(state)`` (section 7)."""

    def generate(self, state: State, human: int) -> Iterable[tuple[Any, float]]: ...


# The gridworld seen by the planners


@dataclass(frozen=True)
class HumanGoal:
    """One human's goal in a gridworld; equal if human, kind and rectangle are (gridworld.md, 8.3)."""

    human: int
    goal: Goal

    def is_achieved(self, state: Any) -> bool:
        """gridworld.md, 8.2."""
        x, y = state[1][self.human][:2]
        return self.goal.x1 <= x <= self.goal.x2 and self.goal.y1 <= y <= self.goal.y2


class GridGoals:
    """The goals of a world file, the same list for every human, weights in proportion to the file's (gridworld.md, 8.2)."""

    def __init__(self, world: OracleWorld) -> None:
        self.goals = world.goals
        total = sum(world.layout.goal_weights)
        self.weights = [weight / total for weight in world.layout.goal_weights]

    def generate(self, state: State, human: int) -> Iterator[tuple[HumanGoal, float]]:
        for goal, weight in zip(self.goals, self.weights, strict=True):
            yield HumanGoal(human, goal), weight


class GridPlanningWorld:
    """An oracle gridworld with floats for fractions."""

    def __init__(self, world: OracleWorld) -> None:
        self.world = world
        self.n_agents = world.n_agents
        self.n_actions = world.n_actions

    def initial_state(self) -> State:
        return self.world.initial_state()

    def transition_probabilities(self, state: Any, actions: Sequence[int]) -> Successors | None:
        outcomes = self.world.transitions(state, tuple(actions))
        if outcomes is None:
            return None
        return [(float(probability), successor) for successor, probability in outcomes.items()]


# 1 and 2: discounts, reachable states, topological order


def discount_rate(gamma: float | None, rho: float | None) -> float:
    """Section 1: a factor or a rate, not both; neither means no discounting."""
    if gamma is not None and rho is not None:
        raise ValueError("a discount is given by gamma or by rho, not by both")
    if gamma is not None:
        if not 0 < gamma <= 1:
            raise ValueError(f"gamma {gamma} is not in (0, 1]")
        return 0.0 if gamma == 1 else -math.log(gamma)
    if rho is not None and rho < 0:
        raise ValueError(f"rho {rho} is negative")
    return 0.0 if rho is None else rho


def all_profiles(n_agents: int, n_actions: int) -> Iterator[Profile]:
    """Section 1: in profile-index order, agent 0 being the least significant digit."""
    for digits in itertools.product(range(n_actions), repeat=n_agents):
        yield digits[::-1]


def actions_of(world: PlanningWorld, agent: int) -> range:
    """The actions of an agent: as many as the world has, or as it says of that agent."""
    own = getattr(world, "num_actions_per_agent", None)
    return range(world.n_actions if own is None else own[agent])


def combinations(world: PlanningWorld, agents: Iterable[int]) -> list[Profile]:
    """All that some agents can do together, the last one changing fastest."""
    return list(itertools.product(*(actions_of(world, agent) for agent in agents)))


class Graph:
    """All reachable states in topological order with their transitions (section 2, ``get_dag``).

    ``transitions[s]`` maps every profile to its successors; it is empty for a terminal state. A sub-problem has other
    ``roots`` than the initial state, and states where it ``stops`` are terminal.
    """

    def __init__(
        self, world: PlanningWorld, roots: Sequence[State] = (), stops: Callable[[State], bool] = lambda state: False
    ) -> None:
        self.world, self.stops = world, stops
        self.transitions: dict[State, dict[Profile, Successors]] = {}
        roots = list(roots) or [world.initial_state()]
        frontier = list(roots)
        while frontier:
            state = frontier.pop()
            if state not in self.transitions:
                self.transitions[state] = self.transitions_of(state)
                frontier.extend(self.successors(state))
        self.states = self.topological_order(roots)
        self.index = {state: i for i, state in enumerate(self.states)}

    def transitions_of(self, state: State) -> dict[Profile, Successors]:
        """All or nothing: successors for every profile, or for none."""
        world = self.world
        if self.stops(state):
            return {}
        found = {
            profile: world.transition_probabilities(state, list(profile))
            for profile in (p[::-1] for p in combinations(world, reversed(range(world.n_agents))))
        }
        if not any(found.values()):
            return {}
        assert all(found.values()), f"{state} has successors for some profiles only"
        return {profile: list(outcomes) for profile, outcomes in found.items() if outcomes}

    def successors(self, state: State) -> list[State]:
        """Without repetition, first met first."""
        met = (successor for outcomes in self.transitions[state].values() for _, successor in outcomes)
        return list(dict.fromkeys(met))

    def topological_order(self, roots: list[State]) -> list[State]:
        """Root first, ties by the smallest state; where states do not compare, first ready first served."""
        try:
            return self.kahn(roots, heapq.heappush, heapq.heappop)
        except TypeError:
            return self.kahn(roots, lambda ready, state: ready.append(state), lambda ready: ready.pop(0))

    def kahn(self, roots: list[State], put: Callable, take: Callable) -> list[State]:
        """Kahn's algorithm: a state is ready once all its predecessors are out."""
        predecessors = dict.fromkeys(self.transitions, 0)
        for state in self.transitions:
            for successor in self.successors(state):
                predecessors[successor] += 1
        order: list[State] = []
        ready: list[State] = []
        for root in dict.fromkeys(roots):
            if predecessors[root] == 0:
                put(ready, root)
        while ready:
            state = take(ready)
            order.append(state)
            for successor in self.successors(state):
                predecessors[successor] -= 1
                if predecessors[successor] == 0:
                    put(ready, successor)
        if len(order) < len(self.transitions):
            raise ValueError("the graph of states has a cycle")
        return order

    def durations(self, state: State) -> dict[Profile, list[float]]:
        """D of section 1: profile -> durations in the order of the successors, 1 where the world does not say."""
        table = {}
        for profile, outcomes in self.transitions[state].items():
            table[profile] = [1.0] * len(outcomes)
            if hasattr(self.world, "transition_durations"):
                table[profile] = list(self.world.transition_durations(state, list(profile), outcomes))
            if len(table[profile]) != len(outcomes):
                raise ValueError(f"{len(table[profile])} durations for {len(outcomes)} successors of {state}")
        return table

    def discounted(self, state: State, rho: float, durations: dict[Profile, list[float]] | None) -> Discounted:
        """Profile -> [(probability, exp(-rho D), successor)]; ``durations`` is not looked at if rho is 0."""
        table = {}
        for profile, outcomes in self.transitions[state].items():
            factors = [1.0] * len(outcomes)
            if rho > 0:
                factors = [math.exp(-rho * duration) for duration in durations[profile]]
            table[profile] = [(p, factor, after) for (p, after), factor in zip(outcomes, factors, strict=True)]
        return table


def read_value(values: Values, state: State, human: int, goal: Hashable) -> float:
    """A sparse table read: what is absent is 0 (section 3)."""
    return values.get(state, {}).get(human, {}).get(goal, 0.0)


def store_value(values: Values, state: State, human: int, goal: Hashable, value: float) -> None:
    """A sparse table write: zeros stay out (section 3)."""
    if value != 0.0:
        values.setdefault(state, {}).setdefault(human, {})[goal] = value


def attain_or_continue(outcomes: list[tuple[float, float, State]], values: Values, human: int, goal: Any) -> float:
    """E of section 3: attaining is worth 1, undiscounted; otherwise the discounted value of what follows."""
    total = 0.0
    for probability, factor, after in outcomes:
        worth = 1.0 if goal.is_achieved(after) else factor * read_value(values, after, human, goal)
        total += probability * worth
    return total


# 3: phase 1


def uniform_belief(world: PlanningWorld, humans: Sequence[int]) -> Belief:
    """Section 3, default belief: all combinations of the other humans' actions are equally likely."""

    def belief(state: State, human: int, action: int) -> Iterator[tuple[float, list[int]]]:
        others = [j for j in humans if j != human]
        choices = combinations(world, others)
        for choice in choices:
            profile = [-1] * world.n_agents
            for j, chosen in zip(others, choice, strict=True):
                profile[j] = chosen
            yield 1.0 / len(choices), profile

    return belief


def boltzmann(q: Sequence[float], beta: float) -> list[float]:
    """Section 3, policy: softmax of beta * q; for infinite beta equal shares among the maximisers, compared by ==."""
    best = max(q)
    if math.isinf(beta):
        weights = [1.0 if value == best else 0.0 for value in q]
    else:
        weights = [math.exp(beta * (value - best)) for value in q]
    return [weight / sum(weights) for weight in weights]


def replaced(profile: Sequence[int], agents: Sequence[int], actions: Sequence[int]) -> Profile:
    """A profile in which some agents' actions are replaced."""
    changed = [int(action) for action in profile]
    for agent, action in zip(agents, actions, strict=True):
        changed[agent] = action
    return tuple(changed)


def human_policy_prior(
    world: PlanningWorld,
    humans: Sequence[int],
    generator: GoalGenerator,
    believed_others_policy: Belief | None = None,
    *,
    beta_h: float = 10.0,
    gamma_h: float | None = None,
    rho_h: float | None = None,
    optimistic: bool = False,
    graph: Graph | None = None,
) -> tuple[Policies, Values]:
    """Phase 1 (section 3): ``policies[state][human][goal]`` and the sparse table ``Vh[state][human][goal]``.

    ``graph`` saves enumerating the world again.
    """
    rho = discount_rate(gamma_h, rho_h)
    graph = graph or Graph(world)
    robots = [i for i in range(world.n_agents) if i not in humans]  # every other agent counts as a robot
    robot_profiles = combinations(world, robots)
    belief = believed_others_policy or uniform_belief(world, humans)
    extremum = max if optimistic else min
    policies: Policies = {}
    Vh: Values = {}

    def q_value(state: State, table: Discounted, h: int, a: int, goal: Any) -> float:
        """Expectation over what the others do, and inside it the worst (or best) case over the robots."""
        total = 0.0
        for probability, believed in belief(state, h, a):
            others = replaced(believed, [h], [a])
            profiles = [replaced(others, robots, r) for r in robot_profiles]
            total += probability * extremum(attain_or_continue(table[p], Vh, h, goal) for p in profiles)
        return total

    for state in reversed(graph.states):
        if not graph.transitions[state]:
            continue
        table = graph.discounted(state, rho, graph.durations(state) if rho > 0 else None)
        policies[state] = {h: {} for h in humans}
        for h in humans:
            for goal, _ in generator.generate(state, h):
                if goal.is_achieved(state):  # credited on arrival
                    policies[state][h][goal] = [1.0] + [0.0] * (world.n_actions - 1)
                    continue
                q = [q_value(state, table, h, a, goal) for a in actions_of(world, h)]
                policies[state][h][goal] = boltzmann(q, beta_h) + [0.0] * (world.n_actions - len(q))
                q += [0.0] * (world.n_actions - len(q))  # actions that h does not have
                value = sum(p * q_a for p, q_a in zip(policies[state][h][goal], q, strict=True))
                store_value(Vh, state, h, goal, value)
    return policies, Vh


# 6: the prior as phase 2 uses it


class TabularPrior:
    """Phase-1 policies as joint distributions over human profiles (section 6)."""

    def __init__(self, policies: Policies, humans: Sequence[int], generator: GoalGenerator, n_actions: int) -> None:
        self.policies = policies
        self.humans = list(humans)
        self.generator = generator
        self.n_actions = n_actions

    def marginal(self, state: State, human: int) -> list[float]:
        """Weighted sum over the goals, normalised to 1; uniform if it sums to 0."""
        total = [0.0] * self.n_actions
        for goal, weight in self.generator.generate(state, human):
            for a, probability in enumerate(self.policies[state][human][goal]):
                total[a] += weight * probability
        mass = sum(total)
        return [value / mass for value in total] if mass > 0 else [1.0 / self.n_actions] * self.n_actions

    def joint(self, by_human: list[list[float]]) -> list[tuple[float, Profile]]:
        """Independent humans, only positive entries, last human changing fastest."""
        profiles = itertools.product(range(self.n_actions), repeat=len(by_human))
        weighted = [(math.prod(p[a] for p, a in zip(by_human, u, strict=True)), u) for u in profiles]
        return [(probability, u) for probability, u in weighted if probability > 0]

    def profile_distribution(self, state: State) -> list[tuple[float, Profile]]:
        return self.joint([self.marginal(state, h) for h in self.humans])

    def profile_distribution_with_fixed_goal(self, state: State, human: int, goal: Any) -> list[tuple[float, Profile]]:
        fixed = self.policies[state][human][goal]
        return self.joint([fixed if h == human else self.marginal(state, h) for h in self.humans])


# 4: phase 2


def power_law(Qr: dict[Profile, float], beta_r: float) -> dict[Profile, float]:
    """Section 4: proportional to (-Q) ** -beta, as a softmax of -beta * ln(-Q); for infinite beta the best share."""
    if math.isinf(beta_r):
        best = [r for r, value in Qr.items() if value == max(Qr.values())]
        return {r: 1.0 / len(best) if r in best else 0.0 for r in Qr}
    exponents = {r: -beta_r * math.log(-value) for r, value in Qr.items()}
    largest = max(exponents.values())
    weights = {r: math.exp(exponent - largest) for r, exponent in exponents.items()}
    total = sum(weights.values())
    return {r: weight / total for r, weight in weights.items()}


def robot_policy(
    world: PlanningWorld,
    humans: Sequence[int],
    robots: Sequence[int],
    generator: GoalGenerator,
    prior: Any = None,
    *,
    beta_r: float = 10.0,
    gamma_h: float | None = None,
    rho_h: float | None = None,
    gamma_r: float | None = None,
    rho_r: float | None = None,
    zeta: float = 1.0,
    xi: float = 1.0,
    eta: float = 1.0,
    terminal_Vr: float | Callable[[State], float] = -1e-10,
    graph: Graph | None = None,
) -> dict[str, Any]:
    """Phase 2 (sections 4 and 5).

    Parameters
    ----------
    prior : policies of :func:`human_policy_prior`, or an object with ``profile_distribution(state)`` and
        ``profile_distribution_with_fixed_goal(state, human, goal)``; None runs phase 1 with its own defaults.

    Returns
    -------
    dict with ``states`` (topological order), ``pi_r[state][r]``, ``Vr[state]``, the sparse ``Vhe[state][human][goal]``,
    ``Xh[state][human]``, ``Ur[state]``, ``Qr[state][r]`` and ``chain`` (list over states, index -> probability).
    """
    if not humans:
        raise ValueError("no humans")
    if not callable(terminal_Vr) and not terminal_Vr < 0:
        raise ValueError(f"terminal_Vr {terminal_Vr} is not negative")
    rate_h = discount_rate(gamma_h, rho_h)
    rate_r = discount_rate(gamma_r, rho_r)
    graph = graph or Graph(world)
    if prior is None:
        prior, _ = human_policy_prior(world, humans, generator, graph=graph)
    if isinstance(prior, dict):
        prior = TabularPrior(prior, humans, generator, world.n_actions)
    robot_profiles = combinations(world, robots)  # last robot fastest
    nobody_acts = [0] * world.n_agents  # agents in neither list play action 0

    result: dict[str, Any] = {"states": graph.states, "chain": [{} for _ in graph.states]}
    result |= {name: {} for name in ("pi_r", "Vr", "Vhe", "Xh", "Ur", "Qr")}
    Vr, Vhe = result["Vr"], result["Vhe"]
    for state in reversed(graph.states):
        if not graph.transitions[state]:
            Vr[state] = terminal_Vr(state) if callable(terminal_Vr) else terminal_Vr
            continue
        durations = graph.durations(state) if rate_h > 0 or rate_r > 0 else None
        for_robot = graph.discounted(state, rate_r, durations)
        for_human = graph.discounted(state, rate_h, durations)
        by_robot = {r: replaced(nobody_acts, robots, r) for r in robot_profiles}

        # robot profile -> [(probability of the humans' part, profile of all agents)]
        pi_H = prior.profile_distribution(state)
        plays = {r: [(p, replaced(by_robot[r], humans, u)) for p, u in pi_H] for r in robot_profiles}
        Qr = {r: expected_value(plays[r], for_robot, Vr) for r in robot_profiles}
        pi_r = power_law(Qr, beta_r)

        Xh = dict.fromkeys(humans, 0.0)
        for h in humans:
            for goal, weight in generator.generate(state, h):
                effective = 0.0
                pi_H_goal = prior.profile_distribution_with_fixed_goal(state, h, goal)
                for r in robot_profiles:
                    for p, u in pi_H_goal:
                        outcomes = for_human[replaced(by_robot[r], humans, u)]
                        effective += pi_r[r] * p * attain_or_continue(outcomes, Vhe, h, goal)
                store_value(Vhe, state, h, goal, effective)
                Xh[h] += weight * effective**zeta
            if Xh[h] <= 0:
                raise ValueError(f"human {h} can attain no goal in state {graph.index[state]}")
        Ur = -((sum(Xh[h] ** -xi for h in humans) / len(humans)) ** eta)

        W = dict.fromkeys(robot_profiles, 1.0)
        if rate_r > 0:
            W = {r: duration_weight(plays[r], graph.transitions[state], durations, rate_r) for r in robot_profiles}
        Vr[state] = sum(pi_r[r] * W[r] for r in robot_profiles) * Ur + sum(pi_r[r] * Qr[r] for r in robot_profiles)

        link = result["chain"][graph.index[state]]
        for r in robot_profiles:
            for p_u, profile in plays[r]:
                for p, after in graph.transitions[state][profile]:
                    if pi_r[r] * p_u * p > 0:
                        link[graph.index[after]] = link.get(graph.index[after], 0.0) + pi_r[r] * p_u * p
        result["pi_r"][state], result["Qr"][state] = pi_r, Qr
        result["Xh"][state], result["Ur"][state] = Xh, Ur
    return result


def expected_value(plays: list[tuple[float, Profile]], table: Discounted, Vr: dict[State, float]) -> float:
    """Q of section 4 for one robot profile; it holds no reward of the state itself."""
    return sum(p_u * p * factor * Vr[after] for p_u, profile in plays for p, factor, after in table[profile])


def duration_weight(
    plays: list[tuple[float, Profile]],
    transitions: dict[Profile, Successors],
    durations: dict[Profile, list[float]],
    rho: float,
) -> float:
    """W of section 4 for one robot profile and a positive rate."""
    total = 0.0
    for p_u, profile in plays:
        for (p, _), duration in zip(transitions[profile], durations[profile], strict=True):
            total += p_u * p * -math.expm1(-rho * duration) / rho
    return total


def markov_chain_values(
    chain: Sequence[dict[int, float]], rewards: Sequence[Sequence[float]], gamma: float
) -> list[list[float]]:
    """Section 5: V = R + gamma * P V, one column at a time; the chain is in topological order."""
    values = [list(row) for row in rewards]
    for i in reversed(range(len(chain))):
        for column in range(len(values[i])):
            values[i][column] += gamma * sum(p * values[j][column] for j, p in chain[i].items())
    return values


# A given robot


def worth_of_robots(
    world: PlanningWorld,
    humans: Sequence[int],
    robots: Sequence[int],
    generator: GoalGenerator,
    prior: Any,
    plays: Callable[[State, Profile], float],
    *,
    gamma_h: float | None = None,
    rho_h: float | None = None,
    gamma_r: float | None = None,
    rho_r: float | None = None,
    zeta: float = 1.0,
    xi: float = 1.0,
    eta: float = 1.0,
    terminal_Vr: float | Callable[[State], float] = -1e-10,
    graph: Graph | None = None,
) -> dict[str, Any]:
    """What robots are worth that play profile r in state s with probability ``plays(s, r)``, whatever the power law says.

    Walks forward: each number of a state is asked of its successors, and remembered. A human without power makes U_r and V_r
    -inf; what has probability 0 does not count.

    Returns
    -------
    dict with ``Vr[state]``, ``Ur[state]``, ``Xh[state][human]`` and ``Vhe[state][human][goal]``, not sparse
    """
    rate_h, rate_r = discount_rate(gamma_h, rho_h), discount_rate(gamma_r, rho_r)
    graph = graph or Graph(world)
    if isinstance(prior, dict):
        prior = TabularPrior(prior, humans, generator, world.n_actions)
    Vr: dict[State, float] = {}
    Ur: dict[State, float] = {}
    Xh: dict[State, dict[int, float]] = {}
    Vhe: dict[State, dict[int, dict[Hashable, float]]] = {}

    def futures(state: State, pi_H: Iterable[tuple[float, Profile]]) -> Iterator[tuple[float, float, State]]:
        """(probability, duration, successor) of everything that may happen if the humans play ``pi_H``."""
        durations = graph.durations(state)
        for share, u in pi_H:
            for r in combinations(world, robots):
                chance = share * plays(state, r)
                if chance > 0:
                    profile = replaced(replaced([0] * world.n_agents, robots, r), humans, u)
                    outcomes = graph.transitions[state][profile]
                    for (p, after), duration in zip(outcomes, durations[profile], strict=True):
                        if p > 0:
                            yield chance * p, duration, after

    def worth(state: State, human: int, goal: Any) -> float:
        """V_h^e; a goal that a state does not have is worth 0 there."""
        return Vhe.get(state, {}).get(human, {}).get(goal, 0.0)

    for state in reversed(graph.states):
        if not graph.transitions[state]:
            Vr[state] = terminal_Vr(state) if callable(terminal_Vr) else terminal_Vr
            continue
        Vhe[state], Xh[state] = {h: {} for h in humans}, {}
        for h in humans:
            for goal, _ in generator.generate(state, h):
                Vhe[state][h][goal] = sum(
                    p * (1.0 if goal.is_achieved(after) else math.exp(-rate_h * d) * worth(after, h, goal))
                    for p, d, after in futures(state, prior.profile_distribution_with_fixed_goal(state, h, goal))
                )
            Xh[state][h] = sum(weight * Vhe[state][h][goal] ** zeta for goal, weight in generator.generate(state, h))
        powers = Xh[state].values()
        Ur[state] = -math.inf if 0 in powers else -((sum(x**-xi for x in powers) / len(humans)) ** eta)
        expected = list(futures(state, prior.profile_distribution(state)))
        span = sum(p * -math.expm1(-rate_r * d) / rate_r for p, d, _ in expected) if rate_r > 0 else 1.0
        Vr[state] = span * Ur[state] + sum(p * math.exp(-rate_r * d) * Vr[after] for p, d, after in expected)
    return {"Vr": Vr, "Ur": Ur, "Xh": Xh, "Vhe": Vhe}
