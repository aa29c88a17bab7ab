"""A script as users of the EMPO project have it: one environment, both phases, a small sweep, results printed and saved.

    python examples/empo_script.py
    python examples/empo_script.py --steps 6 --samples 20 --out results

One line of it was changed to run here: the import that is marked below. (The environment is a stand-in, since the project
itself need not be installed; yours stays as it is.) docs/coming_from_empo.md says what else you may want to know.
"""

from __future__ import annotations

import argparse
import pickle
import time
from pathlib import Path

# In your script:   from gym_multigrid.multigrid import MultiGridEnv
from standin_multigrid import MultiGridEnv

# THE LINE THAT CHANGES. Before:   from empo.backward_induction import compute_human_policy_prior, compute_robot_policy
from empo_bi import compute_human_policy_prior, compute_robot_policy

WORLD = "asymmetric_freeing"  # in your script, the path of a YAML file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--samples", type=int, default=5, help="values of beta_r in the sweep")
    parser.add_argument("--out", type=Path, default=Path("empo_results"), help="folder for the results")
    options = parser.parse_args()

    env = MultiGridEnv(config_file=WORLD, partial_obs=False)
    env.max_steps = options.steps
    env.reset()
    state = env.get_state()
    humans, robots = env.human_agent_indices, env.robot_agent_indices

    # both phases
    prior, Vh = compute_human_policy_prior(env, humans, beta_h=10.0, gamma_h=0.99, return_Vh=True)
    policy, Vr, _, chain = compute_robot_policy(
        env, humans, robots, human_policy_prior=prior, beta_r=10.0, gamma_h=0.99, gamma_r=0.99, zeta=2.0,
        return_values=True, return_markov_chain=True,
    )  # fmt: skip

    # what is printed
    print(f"{len(Vr)} states; V_r at the start: {Vr[state]:.4f}; {len(chain[0])} states may follow")
    for goal, weight in list(env.possible_goal_generator.generate(state, humans[0]))[:4]:
        print(f"  {goal} with weight {weight:.2f}: the human plays {prior(state, humans[0], goal).round(2)}")
    best = max(policy(state), key=policy(state).get)
    print(f"the robot most likely plays {best}; a sample: {policy.sample(state)}")
    attained = sum(value > 0.5 for by_human in Vh.values() for table in by_human.values() for value in table.values())
    print(f"{attained} times a human attains a goal against the worst robot with V_h above one half")

    # what is saved
    assert isinstance(Vr, dict)
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "policy.pkl", "wb") as file:
        pickle.dump(policy.values, file)

    # a sweep with the same environment
    begin = time.perf_counter()
    for i in range(options.samples):
        beta_r = 1.0 + 4.0 * i
        prior = compute_human_policy_prior(env, humans, beta_h=10.0, gamma_h=0.99, quiet=True)
        policy, Vr, _ = compute_robot_policy(
            env, humans, robots, human_policy_prior=prior, beta_r=beta_r, gamma_h=0.99, gamma_r=0.99, zeta=2.0,
            return_values=True, quiet=True,
        )  # fmt: skip
        print(f"  beta_r {beta_r:5.1f}: V_r {Vr[state]:.4f}, {max(policy(state).values()):.3f} on the likeliest action")
    took = time.perf_counter() - begin
    print(f"the sweep took {took:.2f} s; in all, the environment was asked {env.calls['transitions']} times")


if __name__ == "__main__":
    main()
