"""Aliases of array types, shared by all subpackages."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
"""Real numbers; float64 for geometry, float32 for learning."""

IntArray: TypeAlias = NDArray[np.integer[Any]]
"""Integers of any size, such as vertices and faces."""
