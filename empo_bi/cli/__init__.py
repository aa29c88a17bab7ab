"""The command line: ``empo-bi``, also ``python -m empo_bi``.

A command is a module of this package that has a click command of the module's name. To add one, write the module and name it
in ``COMMANDS``. Modules are imported for their help, too, so whatever is slow to import is imported inside the commands.
"""

from __future__ import annotations

import click

from empo_bi._version import __version__
from empo_bi.cli.exits import EXIT_CODES
from empo_bi.cli.group import LazyGroup

COMMANDS = ("worlds", "plan", "solve", "batch", "show", "rollout", "report", "export", "verify", "completion")


@click.group(cls=LazyGroup, modules=COMMANDS, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="empo-bi")
def cli() -> None:
    """Backward-induction planning for multi-agent worlds: what can humans bring about, and what should a robot do?

    \b
    Examples:
      empo-bi worlds                                  # what there is to try
      empo-bi worlds describe asymmetric_freeing      # its map, agents and goals
      empo-bi plan asymmetric_freeing --steps 20,40   # how large, how long, how much memory
      empo-bi solve asymmetric_freeing --steps 12     # both phases; what the robot does first
      empo-bi solve my_world.yaml --out runs/mine     # kept on disk; continues if it was stopped
      empo-bi batch sweep.yaml                        # many runs, in parallel, with a table
      empo-bi show runs/mine                          # what came of it
      empo-bi rollout runs/mine --out run.gif         # a film of an episode
      empo-bi report runs/mine --out report.html      # a page to look through it, in any browser
      empo-bi export thicket --out thicket.drn        # for the model checker Storm
      empo-bi verify runs/mine                        # re-check every checksum

    `empo-bi COMMAND --help` tells all about a command. Results go to stdout; progress, messages and complaints go to stderr.
    """


def main() -> None:
    """Run the command line."""
    cli(prog_name="empo-bi")
