"""``empo-bi completion``: the script with which a shell completes commands, options, worlds and parameters."""

from __future__ import annotations

import os

import click
from click.shell_completion import get_completion_class

# How to install it for each shell.
_INSTALL = {
    "bash": "echo 'eval \"$(empo-bi completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(empo-bi completion zsh)\"' >> ~/.zshrc    # after compinit",
    "fish": "empo-bi completion fish > ~/.config/fish/completions/empo-bi.fish",
}


@click.command(short_help="Print the script for tab completion in your shell.")
@click.argument("shell", type=click.Choice(list(_INSTALL)), required=False)
@click.pass_context
def completion(ctx: click.Context, shell: str | None) -> None:
    """Print the script for tab completion in SHELL (by default the one you use): commands, worlds, files, parameters.

    \b
    Examples:
      eval "$(empo-bi completion bash)"                                        # for this session
      echo 'eval "$(empo-bi completion bash)"' >> ~/.bashrc                    # for all
      echo 'eval "$(empo-bi completion zsh)"' >> ~/.zshrc
      empo-bi completion fish > ~/.config/fish/completions/empo-bi.fish
    """
    chosen = shell or os.path.basename(os.environ.get("SHELL", ""))
    kind = get_completion_class(chosen) if chosen in _INSTALL else None
    if kind is None:
        raise click.UsageError(f"cannot complete for {chosen or 'the shell in use'}; give one of {', '.join(_INSTALL)}")
    program = kind(ctx.find_root().command, {}, "empo-bi", "_EMPO_BI_COMPLETE")
    click.echo(f"# Completion of empo-bi for {chosen}. For all sessions: {_INSTALL[chosen]}")
    click.echo(program.source_template % program.source_vars())  # source() would start bash to ask for its version
