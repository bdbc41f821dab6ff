"""Observations as integers, so that sums and noise are exact."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["HALF_STEPS", "LARGEST_SUM", "STEPS", "to_steps"]

STEPS = 1 << 18  # per width of the bounds
HALF_STEPS = STEPS // 2
# Observations in one sum: of their squares, each up to 2^34, it stays below 2^62.
LARGEST_SUM = 1 << 28


def to_steps(units: FloatArray) -> IntArray:
    """Return observations in steps of a 2^18-th of the width, counted from the middle.

    Parameters
    ----------
    units : ndarray of float64
        Observations in half-widths from the middle. Between -1 and 1, but for rounding: bounds
        that are next to each other have no middle among floats.

    Returns
    -------
    ndarray of int64 of the same shape
        Between -2^17 and 2^17, whatever the input: the noise is made for that. Each depends on
        that observation alone.
    """
    return np.rint(np.clip(units, -1, 1) * HALF_STEPS).astype(np.int64)
