"""What is written on a command line, and what it stands for: worlds, parameters, sizes, lists of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

from empo_bi.runtime.wording import did_you_mean

_YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class World(click.ParamType):
    """The name of a shipped world, or a file. Shells complete both."""

    name = "world"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from empo_bi import worlds

        full = worlds.available()
        names = [*full, *(name.split("/")[-1] for name in full if incomplete)]
        found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return [CompletionItem(incomplete, type="file"), *found]  # bash takes files where no name follows


class Assignment(click.ParamType):
    """``NAME=VALUE``, as a pair of texts."""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        if isinstance(value, tuple):  # done already
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
            hint = did_you_mean(name, known) or f" There are {', '.join(known)}."
            self.fail(f"there is no parameter {name!r}.{hint}", param, ctx)
        if name == "optimistic":
            if text.lower() not in _YES_NO:
                self.fail(f"{name}={text}; give true or false", param, ctx)
            return _YES_NO[text.lower()]
        try:
            return float(text)
        except ValueError:
            self.fail(f"{name}={text}; {text!r} is no number", param, ctx)

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
            self.fail(f"{name}={text}; the value is no YAML: quote it, or write it into a file", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from empo_bi.world.spec import OVERRIDES

        return [CompletionItem(f"{name}=") for name in OVERRIDES if name.startswith(incomplete)]


class Size(click.ParamType):
    """``2GB``; a bare number is bytes, or a fraction of what is available. Checked at once, kept as it is for the API."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from empo_bi.runtime.byte_sizes import parse_size

        try:
            size: Any = float(value)
        except ValueError:
            size = value
        try:
            parse_size(size, "--" + (param.name or "size").replace("_", "-") if param else "size")
        except ValueError as error:
            self.fail(str(error).replace("a number of bytes", "bytes"), param, ctx)
        return size


class Numbers(click.ParamType):
    """``20`` or ``5,10,15``: whole numbers."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        try:
            return value if isinstance(value, list) else [int(number) for number in str(value).split(",")]
        except ValueError:
            self.fail(f"{value!r}; give a number, or several with commas between them", param, ctx)


class Compression(click.ParamType):
    """``on``, ``off``, a level from 0 to 9, or the name of a compressor."""

    name = "compression"
    NAMES = ("zstd", "lz4", "lz4hc", "blosclz", "zlib")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in ("on", "off"):
            return value == "on"
        if value in self.NAMES:
            return value
        if str(value).isdecimal() and int(value) <= 9:
            return int(value)
        self.fail(f"{value!r}; give on, off, a level from 0 (off) to 9, or one of {', '.join(self.NAMES)}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in ("on", "off", *self.NAMES) if name.startswith(incomplete)]


def parameter_names() -> list[str]:
    """Those of the theory that can be given as text."""
    from dataclasses import fields

    from empo_bi.problem.params import Params

    return [field.name for field in fields(Params) if field.name != "believed_others_policy"]


def as_dict(pairs: Iterable[tuple[str, Any]], option: str) -> dict[str, Any]:
    """Pairs of an option that may be given several times, each name once."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise click.UsageError(f"{option} {name} is given twice; give it once")
        found[name] = value
    return found
