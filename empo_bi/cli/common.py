"""Options that several commands share, and how they are used."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from empo_bi.cli.values import Numbers, Pairs, Size, TheoryParameter, World, WorldOverride, as_dict
from empo_bi.errors import EmpoError
from empo_bi.runtime.atomic_write import checked_place
from empo_bi.runtime.compilation import compilations

if TYPE_CHECKING:
    from empo_bi.problem.params import Params

Function = Callable[..., object]

trust_option = click.option(
    "--trust", is_flag=True,
    help="If a Python function made the world of RUN, import and call the function that RUN's files name. This runs "
    "whatever code their author chose: use it only for your own runs and those of people you trust.",
)  # fmt: skip
made_by_option = click.option(
    "--world", "made_by", metavar="FUNCTION",
    help="The function that makes the world of RUN, if it is written in Python: my_worlds.py:make_ring, or module:function. "
    "RUN opens without it, with what was stored.",
)  # fmt: skip
_NAMED = {  # what users' functions make, by option
    "goals": "a generator of goals", "prior": "the humans' prior",
}  # fmt: skip


def made_from_world(help: str) -> Callable[[Function], Function]:
    """``--goals`` and ``--prior``, functions that get the world. The command gets ``goals_by`` and ``prior_by``."""

    def add(command: Function) -> Function:
        for name, what in reversed(_NAMED.items()):
            text = f"A function that makes {what} from the world: my_{name}.py:make, or module:function. {help}"
            command = click.option(f"--{name}", f"{name}_by", metavar="FUNCTION", help=text)(command)
        return command

    return add


goals_and_prior_options = made_from_world("RUN opens without it, with what was stored.")
again_option = click.option(
    "--memory-limit", type=Size(),
    help="Where a batch did not keep all states or values of RUN, they are computed again, within this memory: 2GB if "
    "nothing is given.",
)  # fmt: skip
world_argument = click.argument("world", type=World())
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
workers_option = click.option("--workers", type=int, default=1, show_default=True, help="Threads; -1 for one per core.")
phase_1_option = click.option("--phase-1-only", is_flag=True, help="Solve only the humans' phase; no robot policy.")
scale_option = click.option(
    "--scale/--no-scale", default=None,
    help="Compare V_r with a robot that does nothing, one that acts at random, and one that always takes its best action: "
    "two more passes. By default if that takes a few seconds at most, that is, up to 30 million pairs of a state and an "
    "action profile.",
)  # fmt: skip
param_option = click.option(
    "--param", "-p", "given", type=TheoryParameter(), multiple=True, metavar="NAME=VALUE",
    help="A parameter of the theory; repeatable. Names: beta_h (may be inf), gamma_h or rho_h, optimistic (true or false), "
    "beta_r (may be inf), gamma_r or rho_r, zeta, xi, eta, terminal_Vr.",
)  # fmt: skip


def quiet_option(help: str) -> Callable[[Function], Function]:
    return click.option("--quiet", "-q", is_flag=True, help=help, callback=_compile_quietly)


def _compile_quietly(context: click.Context, _: click.Parameter, quiet: bool) -> bool:
    context.with_resource(compilations.quiet(quiet))
    return quiet


def world_options(command: Function) -> Function:
    """WORLD, and changes to its file. The command gets ``world``, ``changes`` and ``strict``."""
    command = click.option("--strict", is_flag=True, help="Treat warnings about the file as errors.")(command)
    command = click.option(
        "--set", "changes", type=WorldOverride(), multiple=True, metavar="KEY=VALUE",
        help="Replace a value of the file, in YAML, such as stumble_probability=0.2 or actions=small; repeatable.",
    )(command)  # fmt: skip
    return world_argument(command)


def agent_options(command: Function) -> Function:
    """The agents' roles. The command gets ``humans`` and ``robots``."""
    for role in ("robots", "humans"):
        help = f"Agents that count as {role}, such as 0,2; by default the world's own."
        command = click.option(f"--{role}", type=Numbers(), metavar="AGENTS", help=help)(command)
    return command


@contextlib.contextmanager
def as_usage_errors() -> Iterator[None]:
    """Around calls whose ``ValueError`` and ``TypeError`` mean wrong arguments, which become usage errors.

    Elsewhere such errors are bugs of ours, and users should not be told to look for a mistake of their own.
    """
    try:
        yield
    except EmpoError:
        raise
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from error


def check_out_file(out: str, force: bool) -> None:
    """Refuse a wrong --out before anything that takes long."""
    try:
        checked_place(out, force)
    except OSError as error:
        raise click.UsageError(str(error)) from error


def loaded(world: str, changes: Pairs, strict: bool, steps: int | None = None) -> Any:
    """The world of a file or of a name, or what a Python function makes, called with ``--set`` and ``--steps``."""
    from empo_bi.runtime.user_functions import REFERENCE, function_of
    from empo_bi.world.load import load_world

    overrides = as_dict(changes, "--set") | ({} if steps is None else {"max_steps": steps})
    with as_usage_errors():
        if REFERENCE.fullmatch(world):
            return function_of(world, Path.cwd(), "'my_worlds.py:make_ring', a function that makes a world")(**overrides)
        return load_world(world, strict=strict, **overrides)


def made(reference: str | None, world: object, option: str) -> object:
    """What the function that an option names makes of a world; None without one."""
    from empo_bi.runtime.user_functions import made_by

    with as_usage_errors():
        return made_by(reference, world, f"'my_{option}.py:make', a function of a world, for --{option}")


def params_of(given: Pairs) -> Params:
    from empo_bi.problem.params import Params

    with as_usage_errors():
        return Params(**as_dict(given, "--param"))
