"""``empo-bi solve``: both phases, and what the start is worth."""

from __future__ import annotations

import math
import time
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from empo_bi.cli.common import (
    agent_options,
    as_usage_errors,
    json_option,
    loaded,
    param_option,
    params_of,
    phase_1_option,
    quiet_option,
    workers_option,
    world_options,
)
from empo_bi.cli.output import echo, print_json
from empo_bi.cli.values import Compression, Size

if TYPE_CHECKING:
    from empo_bi.problem.params import Params
    from empo_bi.results.solution import Solution
    from empo_bi.results.state_report import StateReport
    from empo_bi.world.gridworld import GridWorld


@click.command(short_help="Solve both phases of a world; keep results, or continue.")
@world_options
@click.option("--steps", type=int, help="The horizon; by default that of the world.")
@param_option
@phase_1_option
@agent_options
@click.option("--out", type=click.Path(file_okay=False), help="A folder for the results; a run that was stopped continues.")
@click.option("--temporary", is_flag=True, help="Work in a temporary folder, which takes less memory and goes at the end.")
@click.option("--overwrite", is_flag=True, help="Replace what is in the folder.")
@click.option("--compression", type=Compression(), default="on", show_default=True,
              help="Of what goes to disk: on, off, a level from 0 to 9, or a compressor such as lz4.")  # fmt: skip
@click.option("--precision", type=click.Choice(["float16", "float64"]), default="float16", show_default=True,
              help="How the humans' values rest; with float64 everything is exact.")  # fmt: skip
@workers_option
@click.option("--memory-limit", type=Size(), help="What the process may hold: 2GB, or 0.5 for half of what is available.")
@click.option("--max-states", type=click.IntRange(min=1), help="Stop if more states (but for the step) are found.")
@click.option("--min-free", type=click.FloatRange(0, 1, max_open=True), default=0.1, show_default=True,
              help="Pause when a smaller share of the machine's memory is free; 0 for never.")  # fmt: skip
@click.option("--profile-memory", is_flag=True, help="Write a report of what was held when, as text and picture.")
@click.option("--memory-snapshot-interval", type=click.IntRange(min=1), default=1, show_default=True,
              help="Levels from one snapshot of that report to the next.")  # fmt: skip
@quiet_option("No progress and no messages; just the result.")
@json_option
def solve(
    world: str, changes: Any, strict: bool, steps: int | None, given: Any, phase_1_only: bool, humans: list[int] | None,
    robots: list[int] | None, out: str | None, temporary: bool, overwrite: bool, compression: Any, precision: str,
    workers: int, memory_limit: Any, max_states: int | None, min_free: float, profile_memory: bool,
    memory_snapshot_interval: int, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Solve both phases of WORLD (a name or a file), and print what the start is worth and what the robot does there.

    With --out, results are kept: a run that was stopped continues when the same command is given again, a finished one
    is opened, and other parameters use the same DAG.

    \b
    Examples:
      empo-bi solve asymmetric_freeing --steps 12 -p gamma_h=0.99 -p zeta=2
      empo-bi solve asymmetric_freeing -p beta_h=inf -p optimistic=true --json | jq .V_r
      empo-bi solve my_world.yaml --out runs/mine --memory-limit 2GB --profile-memory
      empo-bi solve my_world.yaml --set stumble_probability=0.2 --phase-1-only
    """
    if out is not None and temporary:
        raise click.UsageError("--out and --temporary: results go to one place; give one of them")
    begin = time.perf_counter()
    params, world_model = params_of(given), loaded(world, changes, strict, steps)
    options: dict[str, Any] = {
        "human_agent_indices": humans,
        "robot_agent_indices": robots,
        "phase_2": not phase_1_only,
        "out": True if temporary else out,
        "precision": precision,
        "compression": compression,
        "memory_limit": memory_limit,
        "workers": workers,
        "overwrite": overwrite,
        "max_states": max_states,
        "progress": not quiet,
    }
    profile = (memory_snapshot_interval, memory_limit) if profile_memory else None
    try:
        solution = _solved(world_model, params, options, min_free, profile)
    except KeyboardInterrupt as error:
        if out is not None:
            error.add_note(f"What was finished is kept in {out}; the same command continues there")
        raise
    with solution:
        report = solution.at(world_model.initial_state())
        if as_json:
            print_json(content_of(solution, report, world, out, time.perf_counter() - begin))
        else:
            echo("\n".join([solution.summary(), *in_words(solution, report)]))


def _solved(world: GridWorld, params: Params, options: dict[str, Any], min_free: float, profile: Any) -> Solution:
    from empo_bi.memory.monitor import MemoryMonitor
    from empo_bi.memory.profiler import MemoryProfiler
    from empo_bi.solving.solve import solve as solved

    profiler = False if profile is None else MemoryProfiler(profile[0], limit=profile[1])
    monitor = MemoryMonitor(min_free, verbose=bool(options["progress"]))
    with as_usage_errors():
        return solved(world, params, monitor=monitor, memory_profile=profiler, **options)


def content_of(solution: Solution, report: StateReport, name: str, out: str | None, seconds: float | None) -> dict[str, Any]:
    from empo_bi.runtime.machine import peak_bytes

    model = solution.model
    given = {field.name: getattr(solution.params, field.name) for field in fields(solution.params)}
    del given["believed_others_policy"]  # a function; there is none here
    return {
        "world": name,
        "title": model.title if model.name is None else model.name,
        "steps": solution.dag.horizon if model.max_steps is None else model.max_steps,
        "params": given,
        "states": solution.dag.n_states,
        "bodies": solution.dag.n_bodies,
        "V_r": report.V_r,
        "X_h": report.power,
        "robot_policy": [
            {"actions": list(profile), "names": _names(solution, profile), "probability": p, "Q_r": report.Q_r[profile]}
            for profile, p in report.robot_policy.items()
        ],
        "goals": {
            human: [
                {"goal": repr(goal), "weight": weight, "V_h": alone, "V_h_e": helped}
                for goal, weight, alone, helped, _ in rows
            ]
            for human, rows in report.goals.items()
        },
        "seconds": None if seconds is None else round(seconds, 3),
        "peak_bytes": peak_bytes(),
        "where": out,
    }  # fmt: skip


def _names(solution: Solution, profile: tuple[int, ...]) -> list[str]:
    names = solution.model.action_names
    return [names[action] for action in profile]


def in_words(solution: Solution, report: StateReport) -> list[str]:
    """What the robot does first, the likeliest first; where there is no robot, what humans hope for."""
    if report.is_terminal:
        return ["the world is over before it begins: it has no steps"]
    if math.isnan(report.V_r):
        expected = {human: sum(weight * alone for _, weight, alone, _, _ in rows) for human, rows in report.goals.items()}
        return [f"human {human}: its goals are worth {value:.4g} on average" for human, value in expected.items()]
    ranked = sorted(report.robot_policy.items(), key=lambda item: -item[1])
    told = ", ".join(f"{' + '.join(_names(solution, profile)) or 'nothing'} {p:.1%}" for profile, p in ranked[:16])
    rest = f", and {len(ranked) - 16} more" if len(ranked) > 16 else ""
    return [f"the robot{'' if len(solution.robots) == 1 else 's'} at the start: {told}{rest}"]
