"""Checks of arguments that many functions share; messages begin with the argument's name as the caller knows it."""

from __future__ import annotations

import os

import numpy as np

from empo_bi.runtime.wording import short_repr


def check_flags(**flags: object) -> None:
    """True or False; also 1, 0 and None. Strings are refused: ``"False"`` would count as true."""
    for name, value in flags.items():
        is_flag = value is None or isinstance(value, bool | np.bool_) or (isinstance(value, int) and value in (0, 1))
        if not is_flag:
            raise TypeError(f"{name}={short_repr(value)}; give True or False")


def check_path(name: str, value: object, expected: str) -> None:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise TypeError(f"{name}={short_repr(value)}; give {expected}")


def check_function(name: str, value: object, expected: str) -> None:
    """Something that can be called, or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name}={short_repr(value)} cannot be called; give {expected}, or None")


def check_kind(name: str, value: object, kind: type) -> None:
    """An object of a class, or None."""
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{name}={short_repr(value)} is a {type(value).__name__}; give a {kind.__name__}, or None")
