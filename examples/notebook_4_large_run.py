# %% [markdown]
# # A large run, from disk, lazily
#
# Results that are larger than memory are written level by level while they are computed, and read level by level when
# somebody asks. With 15 steps this world has 70,333 states and takes a second; set `STEPS = 50` for 23 million states, two
# minutes and 1.8 GB of disk.

# %%
import tempfile
from pathlib import Path

import xarray as xr

from empo_bi import Params, analysis, load_world, open_solution, plan, solve
from empo_bi.analysis import plots

STEPS = 15
out = tempfile.mkdtemp() + "/freeing"  # a folder of your own keeps it
world = load_world("asymmetric_freeing", max_steps=STEPS)
print(plan(world, memory="2GB", progress=False))

# %% [markdown]
# A run that is stopped, by whatever, continues where it was when the same call is made again.

# %%
solve(world, Params(gamma_h=0.99, gamma_r=0.99, zeta=2), out=out, memory_limit="2GB", progress=False).close()
solution = open_solution(out)  # reads nothing yet
print(solution.summary())

# %% [markdown]
# ## One dataset over all levels
#
# Dimensions have names, goals and actions have labels, and states know where agents are. Only what is selected is read: here
# the values of one level.

# %%
dataset = solution.to_xarray()
print(dataset)

# %%
level = dataset.V_r.sel(level=STEPS // 2)
print(f"level {STEPS // 2}: {level.sizes['state']:,} states, V_r from {float(level.min()):.4g} to {float(level.max()):.4g}")

# %% [markdown]
# The power of human 1 by the cell of the robot, from the table of a single level:

# %%
table = solution.to_pandas("X_h", levels=STEPS // 2, humans=[1])
print(table.groupby(["x_2", "y_2"])["value"].agg(["size", "mean"]).round(4).head(8).to_string())

# %% [markdown]
# The store is plain zarr, so other tools read it as well, without this package:

# %%
store = next(Path(out).glob("solution-*"))
with xr.open_zarr(store, group=f"level_{STEPS // 2:05}", consolidated=False) as plain:
    print(dict(plain.sizes), list(plain.data_vars))

# %% [markdown]
# ## Questions that go through all levels
#
# They take one level at a time: states and power by level, and the states with the least power on a level, by partial
# selection.

# %%
plots.plot_levels(solution)

# %%
for ranked in analysis.least_empowered(solution, STEPS - 3, human=1, n=2, min_probability=0.001):
    print(f"{ranked.value:.5f} at place {ranked.place}:\n{world.describe(ranked.state)}")

# %% tags=["script"]
from matplotlib import pyplot as plt

for number in plt.get_fignums():
    plt.figure(number).savefig(f"large_run_{number}.png", dpi=100)
    print(f"large_run_{number}.png")
solution.close()
