# %% [markdown]
# # A parameter sweep, from the batch table
#
# Thirty-six settings of one world in one batch, and what the table says. The batch is kept in a folder: run this again and
# nothing is solved anew; ask for more samples and only those are added. The full study, with 200 settings and a regression,
# is `examples/freeing_sweep.py`.

# %%
import tempfile

import pandas as pd
from matplotlib import pyplot as plt

from empo_bi import open_solution, run_batch
from empo_bi.analysis import plots

out = tempfile.mkdtemp()  # give a folder of your own to keep it
result = run_batch(
    {
        "worlds": "asymmetric_freeing",
        "overrides": {"orientations": ["s", "s", "n"]},
        "steps": [8, 10, 12],
        "params": {
            "beta_h": {"log_uniform": [5, 100]},
            "zeta": {"uniform": [1, 3]},
            "gamma_h": 0.99,
            "gamma_r": 0.99,
            "beta_r": 50,
        },
        "samples": 12,
        "seed": 1,
        "keep": "policies",
    },
    out=out,
    workers=1,
    progress=False,
)
print(result)

# %% [markdown]
# One row per run, with parameters, sizes, and the values of the initial state:

# %%
table = pd.read_csv(f"{out}/table.csv")
print(table[["steps", "beta_h", "zeta", "states", "V_r", "X_h_0", "X_h_1"]].head().to_string())

# %% [markdown]
# ## How does power depend on the horizon and on the humans' risk aversion?

# %%
fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
for ax, human, name in zip(axes, (0, 1), ("left", "right"), strict=True):
    for i, (steps, rows) in enumerate(table.groupby("steps")):
        ax.scatter(rows["zeta"], rows[f"X_h_{human}"], s=16, color=plots.agent_colour(i), label=f"{steps} steps")
    ax.set(title=f"{name} human", xlabel="zeta (risk aversion over goals)", yscale="log")
axes[0].set_ylabel("power X_h at the start")
axes[1].legend()

# %%
print(table.groupby("steps")[["V_r", "X_h_0", "X_h_1"]].agg(["mean", "std"]).round(4).to_string())

# %% [markdown]
# ## Back from a row to its run
#
# Every row knows its folder, and what was kept there opens as a solution.

# %%
best = table.sort_values("X_h_1").iloc[-1]
solution = open_solution(f"{out}/runs/{best['run']}")
print(solution.params)
print(solution.robot_policy(solution.world.initial_state()))

# %% tags=["script"]
for number in plt.get_fignums():
    plt.figure(number).savefig(f"parameter_sweep_{number}.png", dpi=100)
    print(f"parameter_sweep_{number}.png")
