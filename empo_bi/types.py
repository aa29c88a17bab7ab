"""Names for types that many rooms use: JSON, and arrays by what they hold. Nothing else is here, and nothing is imported."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Json = dict[str, Any]  # an object of JSON
Array = npt.NDArray[Any]
Arrays = dict[str, Array]  # by name
IndexArray = npt.NDArray[np.int64]
SuccessorArray = npt.NDArray[np.int32]
KeyArray = npt.NDArray[np.uint64]  # packed states, (..., W)
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]
Bodies = range | IndexArray  # ascending numbers; a range wherever they are consecutive
