# %% [markdown]
# # First steps: load, solve, look
#
# Two humans are locked in by rocks, and a robot can push the rocks away. What can the humans bring about within twelve
# steps, and what does a robot do that wants to increase their power? This takes a few seconds.

# %%
from empo_bi import Params, ReachCellGoal, analysis, load_world, probability_by_time, solve
from empo_bi.analysis import plots

world = load_world("asymmetric_freeing", max_steps=12)
start = world.initial_state()
plots.plot_state(world, start)

# %% [markdown]
# Humans are drops, the robot is the tag with a visor; tips point ahead. Every human may want to reach any of the cells that
# the world file lists. Both planning phases run in one backward pass over all 24,137 states.

# %%
solution = solve(world, Params(gamma_h=0.99, gamma_r=0.99, zeta=2, beta_r=50), progress=False)
print(solution.summary())

# %% [markdown]
# ## What does the robot do first?
#
# Its policy is a power law of $Q_r$. Going forward leads to the human on the right, behind whose rock there is more room.

# %%
decision = analysis.decision_at(solution, start)
print(decision)
plots.plot_decision(decision)

# %% [markdown]
# ## How does it go on?
#
# One episode, drawn under both policies: the power of each human along it, and when things happen.

# %%
episodes = solution.rollouts(1000, seed=5)
course = analysis.course_of(solution, episodes.states(0))
plots.plot_course(course)

# %% [markdown]
# Probabilities need no episodes: they follow exactly from the Markov chain of both policies. A goal is an event like any
# other, and the sample agrees.

# %%
goal = ReachCellGoal(world, 1, (8, 2))  # human 1 is out of its room
by_time = probability_by_time(solution, goal)
sampled = episodes.attained_NHG[:, solution.humans.index(1), solution.goals[1].index(goal)].mean()
print(f"{goal}: {by_time[-1]:.4f} exactly, {sampled:.3f} of {len(episodes):,} episodes")

# %% [markdown]
# ## Where does power come from?
#
# The power of human 1 as a function of where the robot is, halfway through, and where the robot wants to go from there.

# %%
plots.plot_map(analysis.power_map(solution, 1, 6, agent=2))

# %%
plots.plot_arrows(analysis.arrow_map(solution, 2, 6))

# %% tags=["script"]
from matplotlib import pyplot as plt

for number in plt.get_fignums():  # a notebook shows its figures by itself
    plt.figure(number).savefig(f"first_steps_{number}.png", dpi=100)
    print(f"first_steps_{number}.png")
