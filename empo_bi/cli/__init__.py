"""The command line: ``empo-bi``, also ``python -m empo_bi``.

Each command is a module of this package with a click command of the same name. To add one, write the module and list it in
``COMMANDS``. Modules are also imported for ``--help``, so whatever is slow to import is imported inside the commands.
"""

from __future__ import annotations

import click

from empo_bi._version import __version__
from empo_bi.cli.exits import EXIT_CODES
from empo_bi.cli.group import LazyGroup

COMMANDS = (
    "worlds",
    "check",
    "plan",
    "solve",
    "batch",
    "show",
    "rollout",
    "report",
    "export",
    "verify",
    "pack",
    "completion",
)


@click.group(cls=LazyGroup, modules=COMMANDS, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="empo-bi")
def cli() -> None:
    """Backward-induction planning for multi-agent worlds: what can humans bring about, and what should a robot do?

    \b
    Examples:
      empo-bi worlds                                  # list the shipped worlds
      empo-bi worlds describe asymmetric_freeing      # its map, agents and goals
      empo-bi check my_world.yaml                     # probable mistakes: colours, goals, horizon, parameters
      empo-bi plan asymmetric_freeing --steps 20,40   # predict states, memory and time
      empo-bi solve asymmetric_freeing --steps 12     # solve both phases; print the robot's first move
      empo-bi solve my_world.yaml --out runs/mine     # keep results on disk; resume if interrupted
      empo-bi batch sweep.yaml                        # many runs in parallel, with a table
      empo-bi show runs/mine                          # summarise a run
      empo-bi rollout runs/mine --out run.gif         # a film of an episode
      empo-bi report runs/mine --out report.html      # a page to explore the run in a browser
      empo-bi export thicket --out thicket.drn        # for the model checker Storm
      empo-bi verify runs/mine                        # re-check all checksums
      empo-bi pack runs/mine mine.zip                 # one file to share, which opens as it is

    `empo-bi COMMAND --help` explains a command. Results go to stdout; progress, messages and errors go to stderr.
    """


def main() -> None:
    """Run the command line."""
    cli(prog_name="empo-bi")
