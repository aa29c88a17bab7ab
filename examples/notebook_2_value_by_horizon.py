# %% [markdown]
# # Whom does the robot free first? Values by horizon
#
# In `asymmetric_freeing` the human on the right would have more room, but the rock on the left is nearer. With little time
# left the robot should go left, with more time right. We solve the same world for many horizons and look at the values
# behind the change of mind. The robot begins facing north, so that both ways cost one turn.

# %%
import numpy as np
from matplotlib import pyplot as plt

from empo_bi import Params, analysis, events, first_of, load_world, solve
from empo_bi.analysis import plots

HORIZONS = [8, 9, 10, 11, 12]
SHORT, LONG = HORIZONS[0], HORIZONS[-1]
PARAMS = Params(gamma_h=0.99, gamma_r=0.99, zeta=2, beta_r=50)


def solved(steps):
    world = load_world("asymmetric_freeing", max_steps=steps, orientations=["s", "s", "n"])
    return solve(world, PARAMS, progress=False)


solutions = {steps: solved(steps) for steps in HORIZONS}
plots.plot_state(solutions[SHORT].world)

# %% [markdown]
# ## What happens, exactly
#
# A human is freed when the rock is not on its cell any more. `first_of` pushes probabilities through the Markov chain;
# nothing is sampled.

# %%
freed = [events.thing_gone("rock", (2, 2)), events.thing_gone("rock", (8, 2))]
first = np.array([first_of(solution, freed).first for solution in solutions.values()])
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for human, label in enumerate(["left human", "right human"]):
    ax.plot(HORIZONS, first[:, human], "o-", color=plots.agent_colour(human), label=label)
ax.set(xlabel="horizon (steps)", ylabel="probability of being freed first", xticks=HORIZONS, ylim=(-0.03, 1.03))
ax.legend(loc="center right")
for steps, (left, right) in zip(HORIZONS, first, strict=True):
    print(f"{steps:2} steps: left {left:.3f}, right {right:.3f}")

# %% [markdown]
# ## What the robot sees
#
# The values of its first actions. Turning left (west) and right (east) are equally far from the rocks; what differs is what
# freeing a human is worth in the time that remains.

# %%
for steps in (SHORT, LONG):
    solution = solutions[steps]
    print(f"--- {steps} steps")
    print(analysis.decision_at(solution, solution.world.initial_state()))

# %% [markdown]
# ## Why: power by level
#
# Power of each human on average over what both policies come to. In the short run the right one gains nothing: there is no
# time to go there and for the human to walk out.

# %%
for steps in (SHORT, LONG):
    solution = solutions[steps]
    mean = np.array([solution.reached[t] @ solution.values.X_h[t] for t in range(steps)])
    start, middle = mean[0].round(4), mean[steps // 2].round(4)
    print(f"{steps} steps: power of left and right at the start {start}, in the middle {middle}")
plots.plot_levels(solutions[LONG])

# %% [markdown]
# ## Which decisions change, and why
#
# States are the same in both worlds up to the shorter horizon, so the two solutions can be compared state by state. The
# reasons add up: what other values, and what another $\beta_r$, add to the log-odds of two actions.

# %%
comparison = analysis.compare(solutions[SHORT], solutions[LONG])
for difference in comparison.most_different(2):
    print(difference)
plots.plot_comparison(comparison)

# %% [markdown]
# Where the robot goes under each horizon, as the probability of each cell halfway through the shortest one:

# %%
(robot,) = solutions[SHORT].robots
plots.plot_maps([analysis.presence_map(solutions[steps], robot, SHORT // 2) for steps in HORIZONS[::2]])

# %% tags=["script"]
for number in plt.get_fignums():
    plt.figure(number).savefig(f"value_by_horizon_{number}.png", dpi=100)
    print(f"value_by_horizon_{number}.png")
