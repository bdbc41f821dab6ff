"""Uniform bounded integers without bias.

A lane is a few random bits read as an unsigned integer. For a power of two its low bits are
the result. Otherwise, with 2^w = q·high + r and r < high, the quotient of the lane by q is
uniform on 0..high-1 once the last r lanes are rejected and drawn again.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from skldp.random._words import WordStream

_BLOCK_BYTES = 1 << 18  # lanes at a time
# Lanes this much wider than the range are rejected at most once in 65536 times, so that a
# look at the maximum of a block is mostly all that rejection costs.
_SPARE_BITS = 16


def random_integers(
    high: int,
    size: int,
    stream: WordStream,
    dtype: DTypeLike = np.int64,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Draw independent integers, exactly uniform on 0..high-1.

    Parameters
    ----------
    high : int
        Number of different values, between 1 and 2^63.
    size : int
        Number of draws.
    stream : WordStream
        Source of random bits.
    dtype : dtype, default=int64
        Integer dtype of the result; it must hold ``high - 1``.
    out : ndarray of shape (size,), optional
        Where to write, C-contiguous. Its dtype takes the place of `dtype`.

    Returns
    -------
    ndarray of shape (size,)
        The draws; `out` where it was given.

    Raises
    ------
    ValueError
        If `high` is out of range or does not fit the dtype, or `out` has another shape.

    Examples
    --------
    >>> from skldp.random import random_integers, random_stream
    >>> random_integers(1, 3, random_stream(0))
    array([0, 0, 0])
    """
    high = int(high)
    if not 1 <= high <= 1 << 63:
        raise ValueError(f"high must be between 1 and 2**63, got {high}.")
    if out is None:
        out = np.empty(size, dtype=dtype)
    elif out.shape != (size,):
        raise ValueError(f"out must have shape ({size},), got {out.shape}.")
    kind, n_bits = out.dtype.kind, 8 * out.dtype.itemsize
    if kind not in "iu" or high > 1 << (n_bits - (kind == "i")):
        raise ValueError(f"dtype {out.dtype} does not hold the integers up to {high - 1}.")
    if high == 1:
        out[...] = 0
        return out
    lane_type = _lane_type(high)
    block_size = _BLOCK_BYTES // lane_type.itemsize
    in_place = out.dtype == lane_type and out.flags.c_contiguous
    buffer = np.empty(0 if in_place else min(size, block_size), dtype=lane_type)
    for start in range(0, size, block_size):
        block = out[start : start + block_size]
        lanes = block if in_place else buffer[: block.size]
        _reduce_lanes(stream.fill(lanes), high)
        if not in_place:
            np.copyto(block, lanes, casting="unsafe")
        # Rejected lanes survive the cast: they become `high` itself (r < high <= q) or, for
        # ranges above 2^32, something below 2^63.
        if not _is_power_of_two(high) and block.max() >= high:
            _replace_rejected(block, high, lane_type, stream)
    return out


def _is_power_of_two(high: int) -> bool:
    return high & (high - 1) == 0


def _lane_type(high: int) -> np.dtype[Any]:
    """Type of the narrowest lane for which few or no draws are rejected."""
    n_bits = (high - 1).bit_length() + (0 if _is_power_of_two(high) else _SPARE_BITS)
    return np.dtype(f"u{next((size for size in (1, 2, 4) if n_bits <= 8 * size), 8)}")


def _reduce_lanes(lanes: NDArray[Any], high: int) -> None:
    """Turn full-range lanes into integers below `high`, and into larger ones where rejected."""
    scalar = lanes.dtype.type
    if not _is_power_of_two(high):
        np.floor_divide(lanes, scalar((1 << 8 * lanes.itemsize) // high), out=lanes)
    elif high < 1 << 8 * lanes.itemsize:
        np.bitwise_and(lanes, scalar(high - 1), out=lanes)


def _replace_rejected(
    block: NDArray[Any], high: int, lane_type: np.dtype[Any], stream: WordStream
) -> None:
    rejected = np.flatnonzero(block >= high)
    while rejected.size:
        lanes = stream.fill(np.empty(rejected.size, dtype=lane_type))
        _reduce_lanes(lanes, high)
        block[rejected] = lanes
        rejected = rejected[lanes >= lane_type.type(high)]
