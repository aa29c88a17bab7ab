"""Types of command-line values: worlds, parameters, sizes, lists of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

from empo_bi.runtime.wording import did_you_mean
from empo_bi.store.format_names import COMPRESSORS

Pairs = Iterable[tuple[str, Any]]  # NAME=VALUE, as given in a repeatable option

_YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class World(click.ParamType):
    """The name of a shipped world, or a file. Shells complete both."""

    name = "world"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from empo_bi import worlds

        full = worlds.available()
        names = [*full, *(name.split("/")[-1] for name in full if incomplete)]
        found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return [CompletionItem(incomplete, type="file"), *found]  # bash offers files if no name matches


class Assignment(click.ParamType):
    """``NAME=VALUE``, as a pair of texts."""

    name = "name=value"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        if isinstance(value, tuple):  # already converted
            return value
        name, is_there, text = str(value).partition("=")
        if not is_there or not name.strip():
            self.fail(f"{value!r}; give NAME=VALUE, such as {self.example}", param, ctx)
        return name.strip(), self.value_of(name.strip(), text.strip(), param, ctx)

    example = "zeta=2"

    def value_of(self, name: str, text: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return text


class TheoryParameter(Assignment):
    """A parameter of the theory. Shells complete the names."""

    def value_of(self, name: str, text: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        known = parameter_names()
        if name == "believed_others_policy":
            self.fail(f"{name} is a function; give it in Python, to empo_bi.Params", param, ctx)
        if name not in known:
            hint = did_you_mean(name, known) or f" Known parameters: {', '.join(known)}."
            self.fail(f"unknown parameter {name!r}.{hint}", param, ctx)
        if name == "optimistic":
            if text.lower() not in _YES_NO:
                self.fail(f"{name}={text}; give true or false", param, ctx)
            return _YES_NO[text.lower()]
        try:
            return float(text)
        except ValueError:
            self.fail(f"{name}={text}; give a number", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(f"{name}=") for name in parameter_names() if name.startswith(incomplete)]


class WorldOverride(Assignment):
    """A key of a world file and a value in YAML."""

    example = "stumble_probability=0.2"

    def value_of(self, name: str, text: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        import yaml

        try:
            return yaml.safe_load(text)
        except yaml.YAMLError:
            self.fail(f"{name}={text}; the value is not YAML: quote it, or write it into a file", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from empo_bi.world.load import OVERRIDES

        return [CompletionItem(f"{name}=") for name in OVERRIDES if name.startswith(incomplete)]


class Size(click.ParamType):
    """``2GB``; a bare number is bytes, or a fraction of the available memory. Checked here, but passed on as written."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from empo_bi.runtime.byte_sizes import parse_size

        try:
            size: float | str = float(str(value))
        except ValueError:
            size = str(value)
        try:
            parse_size(size, "--" + (param.name or "size").replace("_", "-") if param else "size")
        except ValueError as error:
            self.fail(str(error).replace("a number of bytes", "bytes"), param, ctx)
        return size


class Numbers(click.ParamType):
    """``20`` or ``5,10,15``: whole numbers."""

    name = "numbers"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        try:
            return value if isinstance(value, list) else [int(number) for number in str(value).split(",")]
        except ValueError:
            self.fail(f"{value!r}; give a number, or several separated by commas", param, ctx)


class Compression(click.ParamType):
    """``on``, ``off``, a level from 0 to 9, or the name of a compressor."""

    name = "compression"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in ("on", "off"):
            return value == "on"
        if value in COMPRESSORS:
            return value
        if str(value).isdecimal() and int(str(value)) <= 9:
            return int(str(value))
        self.fail(f"{value!r}; give on, off, a level from 0 (off) to 9, or one of {', '.join(COMPRESSORS)}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in ("on", "off", *COMPRESSORS) if name.startswith(incomplete)]


def parameter_names() -> list[str]:
    """Parameters of the theory that can be given as text."""
    from empo_bi.problem.params import PLAIN_PARAMETERS

    return PLAIN_PARAMETERS


def as_dict(pairs: Pairs, option: str) -> dict[str, Any]:
    """The pairs of a repeatable option, in which each name may appear once."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise click.UsageError(f"{option} {name} is given twice; keep one of them")
        found[name] = value
    return found
