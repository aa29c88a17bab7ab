"""``empo-bi completion``: the script by which a shell completes commands, options, worlds and parameters."""

from __future__ import annotations

import os

import click
from click.shell_completion import get_completion_class

# Where each shell reads what to do at its start.
_INSTALL = {
    "bash": "echo 'eval \"$(empo-bi completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(empo-bi completion zsh)\"' >> ~/.zshrc    # after compinit",
    "fish": "empo-bi completion fish > ~/.config/fish/completions/empo-bi.fish",
}


@click.command(short_help="Print the script by which a shell completes what you type.")
@click.argument("shell", type=click.Choice(list(_INSTALL)), required=False)
@click.pass_context
def completion(ctx: click.Context, shell: str | None) -> None:
    """Print the script that lets SHELL (by default the one you use) complete what you type: worlds, files, parameters.

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
        raise click.UsageError(f"the shell {chosen or 'in use'} is not known; give one of {', '.join(_INSTALL)}")
    program = kind(ctx.find_root().command, {}, "empo-bi", "_EMPO_BI_COMPLETE")
    click.echo(f"# Completion of empo-bi for {chosen}. For all sessions: {_INSTALL[chosen]}")
    click.echo(program.source_template % program.source_vars())  # source() would start bash to ask for its version
