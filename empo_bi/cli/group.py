"""A group of commands that are imported on demand, and whose errors become messages and exit codes."""

from __future__ import annotations

import errno
import importlib
import os
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import click

from empo_bi.cli.exits import DEBUG, exit_code_of, message_of
from empo_bi.cli.output import echo
from empo_bi.runtime.printable import printable
from empo_bi.runtime.wording import did_you_mean


class LazyGroup(click.Group):
    """``modules`` are the names of commands, each a module of this package."""

    def __init__(self, *args: Any, modules: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of ``modules``, not of the alphabet."""
        return [*self._modules, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._modules:
            return super().get_command(ctx, cmd_name)
        command = getattr(importlib.import_module(f"empo_bi.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            known = self.list_commands(ctx)
            hint = did_you_mean(args[0], known) or f" Commands: {', '.join(known)}."
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Show errors as messages, and as tracebacks only if the environment asks for it; exit codes stay the same."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning  # type: ignore[assignment]
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort) as error:
            if error.__cause__ is not None:
                _show_traceback(error.__cause__)
            if isinstance(error, click.ClickException):
                error.message = printable(error.message)  # type: ignore[misc]
            raise
        except (Exception, KeyboardInterrupt) as error:
            if getattr(error, "errno", None) == errno.EPIPE:  # handled by click
                raise
            _show_traceback(error)
            echo(f"empo-bi: {message_of(error)}", err=True)
            ctx.exit(exit_code_of(error))


def _show_traceback(error: BaseException) -> None:
    if os.environ.get(DEBUG):
        echo("".join(traceback.format_exception(error)).rstrip(), err=True)


def _show_warning(message: Warning | str, *_: object) -> None:
    echo(f"empo-bi: warning: {message}", err=True)
