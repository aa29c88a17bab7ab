# %% [markdown]
# # Your own world, in Python
#
# Any object with agents, actions, an initial state and exact transition probabilities can be solved. Here: a ferry. A human
# stands on one of two banks of a river, a robot runs the ferry, which may fail to arrive in bad weather.

# %%
from types import SimpleNamespace

import numpy as np

from empo_bi import Params, PossibleGoal, TabularGoalGenerator, analysis, probability_by_time, solve
from empo_bi.analysis import plots

HUMAN, FERRY = 0, 1
STAY, GO = 0, 1


class Ferry:
    """A state is (step, bank of the human, bank of the ferry); the human boards by going while the ferry is on its bank.

    Both act at once. If the human boards and the ferry goes, both cross, with probability 0.9. If the human boards and the
    ferry stays, nothing happens. A ferry that goes without the human always arrives.
    """

    agents = ("human", "ferry")
    human_agent_indices, robot_agent_indices = (HUMAN,), (FERRY,)
    action_space = SimpleNamespace(n=2)
    action_names = ("stay", "go")
    time_homogeneous = True  # the rules do not look at the step

    def __init__(self, steps=6, arrives=0.9):
        self.steps, self.arrives = steps, arrives
        self.possible_goal_generator = TabularGoalGenerator([OnBank(0), OnBank(1)], weights=[1.0, 1.0])

    def initial_state(self):
        return (0, 0, 1)  # the ferry is on the other bank

    def transition_probabilities(self, state, actions):
        step, human, ferry = state
        if step == self.steps:
            return None
        if actions[FERRY] == STAY:
            return [(1.0, (step + 1, human, ferry))]
        if actions[HUMAN] == GO and human == ferry:
            return [(self.arrives, (step + 1, 1 - human, 1 - ferry)), (1 - self.arrives, (step + 1, human, ferry))]
        return [(1.0, (step + 1, human, 1 - ferry))]


class OnBank(PossibleGoal):
    """The human is on a bank."""

    def __init__(self, bank):
        super().__init__()
        self.bank = bank

    def is_achieved(self, state):
        return int(state[1] == self.bank)

    def __eq__(self, other):
        return isinstance(other, OnBank) and other.bank == self.bank

    def __hash__(self):
        return hash(self.bank)


# %% [markdown]
# ## Solve and look
#
# By default humans expect the worst of robots when they plan: a ferry that never goes, so that no action is better than
# another. Here they are optimistic, and board as soon as they can.

# %%
world = Ferry()
start = world.initial_state()
solution = solve(world, Params(gamma_h=0.95, gamma_r=0.95, beta_r=20, optimistic=True), precision="float64", progress=False)
print(solution.at(start))

# %%
decision = analysis.decision_at(solution, start)
plots.plot_decision(decision)

# %% [markdown]
# ## Check a number by hand
#
# On the last step a human who is on the ferry's bank and wants to cross gets there if it goes, the ferry goes and the
# weather holds. $V_h^e = \pi_r(\text{go}) \cdot \pi_h(\text{go} \mid g) \cdot 0.9$:

# %%
last = (5, 0, 0)
report = solution.at(last)
goes = report.robot_policy[(GO,)]
row = report.goals[HUMAN][1]
print(f"{row.V_h_e:.12f} and by hand {goes * row.policy[GO] * 0.9:.12f}")
assert np.isclose(row.V_h_e, goes * row.policy[GO] * 0.9)

# %% [markdown]
# ## By time, and all states as a table

# %%
plots.plot_probability_by_time(solution, [OnBank(1)], labels=["the human has been on the other bank"])
print(probability_by_time(solution, OnBank(1)).round(4))

# %%
print(solution.to_pandas("pi_r", levels=1, states=True).to_string())

# %% tags=["script"]
from matplotlib import pyplot as plt

for number in plt.get_fignums():
    plt.figure(number).savefig(f"own_world_{number}.png", dpi=100)
    print(f"own_world_{number}.png")
