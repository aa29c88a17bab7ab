"""``empo-bi solve``: solve both phases of a world."""

from __future__ import annotations

import math
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click

from empo_bi.cli.common import (
    agent_options,
    as_usage_errors,
    json_option,
    loaded,
    made,
    made_from_world,
    param_option,
    params_of,
    phase_1_option,
    quiet_option,
    scale_option,
    workers_option,
    world_options,
)
from empo_bi.cli.output import echo, print_json
from empo_bi.cli.scale import Comparison, next_steps, place_of_results
from empo_bi.cli.values import Compression, Pairs, Size
from empo_bi.errors import AdviceWarning

if TYPE_CHECKING:
    from empo_bi.problem.params import Params
    from empo_bi.results.solution import Solution
    from empo_bi.results.state_report import StateReport
    from empo_bi.solving.options import Resources
    from empo_bi.types import Json
    from empo_bi.world.model import World


@click.command(short_help="Solve both phases of a world; keep results, or resume.")
@world_options
@click.option("--steps", type=int, help="The horizon; by default the world's own.")
@param_option
@phase_1_option
@agent_options
@made_from_world("It takes the place of those of WORLD, or of phase 1.")
@click.option("--out", type=click.Path(file_okay=False), help="A folder for the results; an interrupted run continues.")
@click.option("--temporary", is_flag=True, help="Work in a temporary folder, to save memory; deleted at the end.")
@click.option("--overwrite", is_flag=True, help="Replace what is in the folder.")
@click.option("--compression", type=Compression(), default="on", show_default=True,
              help="Compression on disk: on, off, a level from 0 to 9, or a compressor such as lz4.")  # fmt: skip
@click.option("--precision", type=click.Choice(["float16", "float64"]), default="float16", show_default=True,
              help="Storage dtype of the humans' values; with float64 nothing is rounded.")  # fmt: skip
@workers_option
@click.option("--memory-limit", type=Size(), help="Memory of the process: 2GB, or 0.5 for half of what is available.")
@click.option("--max-states", type=click.IntRange(min=1), metavar="N",
              help="Stop after N states, ignoring the step counter.")  # fmt: skip
@click.option("--min-free", type=click.FloatRange(0, 1, max_open=True), default=0.1, show_default=True,
              help="Pause when less than this share of the machine's memory is free; 0 for never.")  # fmt: skip
@click.option("--profile-memory", is_flag=True, help="Write a memory profile, as text and picture.")
@click.option("--memory-snapshot-interval", type=click.IntRange(min=1), default=1, show_default=True,
              help="Levels between two snapshots of the memory profile.")  # fmt: skip
@scale_option
@quiet_option("No progress and no messages; just the result.")
@json_option
def solve(
    world: str, changes: Pairs, strict: bool, steps: int | None, given: Pairs, phase_1_only: bool,
    humans: list[int] | None, robots: list[int] | None, goals_by: str | None, prior_by: str | None, out: str | None,
    temporary: bool, overwrite: bool, compression: bool | int | str, precision: str, workers: int,
    memory_limit: float | str | None, max_states: int | None, min_free: float, profile_memory: bool,
    memory_snapshot_interval: int, scale: bool | None, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Solve both phases of WORLD, and print values and the robot's policy at the initial state, how other robots would do
    there, and what to type next.

    WORLD is a name or a file, or a function that makes a world written in Python.

    With --out, results are kept: the same command continues an interrupted run and opens a finished one, and runs with other
    parameters use the same DAG.

    \b
    Examples:
      empo-bi solve asymmetric_freeing --steps 12 -p gamma_h=0.99 -p zeta=2
      empo-bi solve asymmetric_freeing -p beta_h=inf -p optimistic=true --json | jq .V_r
      empo-bi solve my_world.yaml --out runs/mine --memory-limit 2GB --profile-memory
      empo-bi solve my_world.yaml --set stumble_probability=0.2 --phase-1-only
      empo-bi solve my_worlds.py:make_ring --steps 20 --out runs/ring
    """
    if out is not None and temporary:
        raise click.UsageError("--out and --temporary exclude each other; give one of them")
    begin = time.perf_counter()
    params, world_model = params_of(given), loaded(world, changes, strict, steps)
    options: Json = {
        "human_agent_indices": humans,
        "robot_agent_indices": robots,
        "possible_goal_generator": made(goals_by, world_model, "goals"),
        "human_policy_prior": made(prior_by, world_model, "prior"),
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
            error.add_note(f"Finished levels are kept in {out}; the same command continues there")
        raise
    with solution:
        report = solution.at(solution.dag.states(0)[0])
        seconds = time.perf_counter() - begin
        if not as_json:  # before anything else that takes time
            echo("\n".join([solution.summary(), *in_words(solution, report)]))
        resources = _resources(memory_limit, workers, min_free, progress=not quiet)
        try:
            compared = Comparison.of(solution, report, scale, resources)
        except KeyboardInterrupt as error:
            if out is not None:
                error.add_note(f"The run is finished and kept in {out}; --no-scale leaves out what was being compared")
            raise
        if as_json:
            print_json(content_of(solution, report, world, out, seconds) | {"scale": compared.content})
            return
        place = None if out is None else place_of_results(solution, out)
        lines = [*compared.lines, *([] if quiet else next_steps(place, Path(world).stem))]
        if lines:
            echo("\n".join(lines))


def _solved(
    world: World, params: Params, options: Json, min_free: float, profile: tuple[int, float | str | None] | None
) -> Solution:
    from empo_bi.memory.monitor import MemoryMonitor
    from empo_bi.memory.profiler import MemoryProfiler
    from empo_bi.solving.solve import solve as solved

    profiler = False if profile is None else MemoryProfiler(profile[0], limit=profile[1])
    monitor = MemoryMonitor(min_free, verbose=bool(options["progress"]))
    with as_usage_errors(), warnings.catch_warnings():
        if not options["progress"]:
            warnings.simplefilter("ignore", AdviceWarning)
        return solved(world, params, monitor=monitor, memory_profile=profiler, **options)


def _resources(memory_limit: float | str | None, workers: int, min_free: float, *, progress: bool) -> Resources:
    from empo_bi.memory.monitor import MemoryMonitor
    from empo_bi.solving.options import resources_from

    monitor = MemoryMonitor(min_free, verbose=progress)
    return resources_from(memory_limit=memory_limit, workers=workers, monitor=monitor, progress=progress)


def content_of(solution: Solution, report: StateReport, name: str, out: str | None, seconds: float | None) -> Json:
    from empo_bi.problem.params import PLAIN_PARAMETERS
    from empo_bi.runtime.machine import peak_bytes
    from empo_bi.world.goals import name_of

    model, given = solution.model, {name: getattr(solution.params, name) for name in PLAIN_PARAMETERS}
    return {
        "world": name,
        "title": model.title if model.name is None else model.name,
        "steps": solution.dag.horizon if model.max_steps is None else model.max_steps,
        "params": {name: None if callable(value) else value for name, value in given.items()},
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
                {"goal": name_of(row.goal), "weight": row.weight, "V_h": row.V_h, "V_h_e": row.V_h_e}
                for row in rows
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
    """The robots' policy at the start, the likeliest profile first; without phase 2, the mean V_h of goals."""
    from empo_bi.results.state_report import what_V_h_is

    if report.is_terminal:
        return ["the initial state is terminal: there are no steps"]
    if math.isnan(report.V_r):
        expected = {human: sum(row.weight * row.V_h for row in rows) for human, rows in report.goals.items()}
        how = f"if the robot {what_V_h_is(report.optimistic)}"
        return [f"human {human}: the mean value of its goals is {value:.4g} {how}" for human, value in expected.items()]
    ranked = sorted(report.robot_policy.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{' + '.join(_names(solution, profile)) or 'nothing'} {p:.1%}" for profile, p in ranked[:16])
    rest = f", and {len(ranked) - 16} more" if len(ranked) > 16 else ""
    return [f"the robot{'' if len(solution.robots) == 1 else 's'} at the start: {shown}{rest}"]
