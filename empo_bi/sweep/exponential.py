"""An exponential that LLVM can turn into vector instructions, in single and double precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from empo_bi.runtime.jit import inlined

# log2(e), ln(2) in two parts, and the Taylor series from the 13th term to the first.
EXP_CONSTANTS = np.array(
    [1.4426950408889634, 0.693145751953125, 1.42860682030941723212e-6, *(1.0 / math.factorial(n) for n in range(13, -1, -1))]
)


@intrinsic
def _power_of_two(typing_context: Any, exponent: Any) -> Any:
    """2 ** n for a whole number n in a float32 or float64, by writing the bits of the result."""
    is_single = exponent == types.float32
    width, bias, shift, kind = (32, 127, 23, ir.FloatType()) if is_single else (64, 1023, 52, ir.DoubleType())

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer = ir.IntType(width)
        biased = builder.add(builder.fptosi(arguments[0], integer), ir.Constant(integer, bias))
        return builder.bitcast(builder.shl(biased, ir.Constant(integer, shift)), kind)

    return exponent(exponent), generate


@inlined
def exp_nonpositive(z, least, c):  # type: ignore[no-untyped-def]
    """The exponential of a number that is at most 0, to one unit in the last place.

    Exists because LLVM turns loops over it into vector instructions, which it cannot do with calls of the C library. ``c``
    has the constants ``EXP_CONSTANTS`` in the type of ``z``, as a tuple; below ``least`` the result is as good as 0.
    """
    z = max(z, least)
    n = np.rint(z * c[0])
    r = (z - n * c[1]) - n * c[2]  # at most 0.35, so further terms are below 1e-17
    high = (((((c[3] * r + c[4]) * r + c[5]) * r + c[6]) * r + c[7]) * r + c[8]) * r + c[9]
    series = ((((((high * r + c[10]) * r + c[11]) * r + c[12]) * r + c[13]) * r + c[14]) * r + c[15]) * r + c[16]
    return series * _power_of_two(n)  # type: ignore[call-arg]


@inlined
def exp_constants(c):  # type: ignore[no-untyped-def]
    """An array of constants as a tuple, which stays in registers."""
    return (
        c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12], c[13], c[14], c[15], c[16]
    )  # fmt: skip
