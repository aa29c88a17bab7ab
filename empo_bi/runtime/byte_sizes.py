"""Sizes in bytes as people write and read them: ``"2GB"``, ``0.5`` of the available memory, 1,500 MB."""

from __future__ import annotations

import re
from numbers import Real

from empo_bi.runtime.machine import available_bytes

_UNITS = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_PRINTED = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_SMALLEST = 1_000_000  # less is probably a mistake

Size = int | float | str


def parse_size(size: Size, name: str = "memory_limit") -> int:
    """Bytes of ``"2GB"``, ``"512 MiB"``, ``2_000_000_000``, or of a fraction of the available memory such as ``0.5``.

    Examples
    --------
    >>> parse_size("1.5 GB"), parse_size("2GiB")
    (1500000000, 2147483648)
    """
    if isinstance(size, str):
        found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([KMGT]?I?)B?\s*", size.upper())
        nbytes = float(found[1]) * _UNITS[found[2]] if found and found[2] in _UNITS else 0.0
    elif isinstance(size, float) and 0 < size <= 1:
        nbytes = size * available_bytes()
    elif isinstance(size, Real) and not isinstance(size, bool):
        nbytes = float(size) if size < float("inf") else 0.0
    else:
        nbytes = 0.0
    if nbytes < _SMALLEST:
        raise ValueError(
            f"{name}={size!r}; give a size such as '2GB' or '512MiB', a number of bytes (at least a million), or a fraction "
            "of the available memory between 0 and 1"
        )
    return int(nbytes)


def held_text(held: float, limit: float | None) -> str:
    """Memory in use, and the limit if there is one, in the same unit.

    Examples
    --------
    >>> held_text(412e6, 2e9), held_text(412e6, None), held_text(52e6, 512e6)
    ('0.41 of 2.00 GB', '412 MB held', '52 of 512 MB')
    """
    if limit is None:
        return f"{as_text(held)} held"
    factor, unit = next((size for size in _PRINTED if limit >= 0.9995 * size[0]), (1.0, "B"))
    digits = 2 if limit < 9.995 * factor else 1 if limit < 99.95 * factor else 0
    return f"{held / factor:.{digits}f} of {limit / factor:.{digits}f} {unit}"


def as_text(nbytes: float) -> str:
    """Three digits and a unit.

    Examples
    --------
    >>> as_text(0), as_text(999), as_text(25.4e9), as_text(1_234_000)
    ('0 B', '999 B', '25.4 GB', '1.23 MB')
    """
    for factor, unit in _PRINTED:
        if nbytes >= 0.9995 * factor:
            return f"{float(f'{nbytes / factor:.3g}'):,g} {unit}"
    return f"{nbytes:.0f} B"
