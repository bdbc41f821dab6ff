"""Bernoulli variables whose probability is exactly an integer over 2^64.

A variable is ``U < threshold`` for a uniform 64-bit integer U, of which only as many leading
bits are drawn as the comparison needs. What the leading bits leave undecided gets the
remaining ones, so both functions decide exactly as if all 64 had been drawn.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from skldp.random._words import WordStream

_ONE = 1 << 64
_PLANE_BLOCK = 1 << 14  # words of a plane at a time: 128 KiB each, in the second-level cache
_TAIL_BLOCK = 1 << 15  # words whose undecided bits are settled together
_UNPACK_BLOCK = 1 << 16  # bits spread into bytes at a time
_N_DENSE = 9  # digits compared for all bits; each leaves half of them undecided


def bernoulli(
    threshold: int,
    size: int,
    stream: WordStream,
    out: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Draw independent Bernoulli variables, one per byte.

    Parameters
    ----------
    threshold : int
        The probability of True times 2^64, between 0 and 2^64; it is met exactly.
    size : int
        Number of draws.
    stream : WordStream
        Source of random bits.
    out : ndarray of shape (size,), bool, optional
        Where to write.

    Returns
    -------
    ndarray of shape (size,), bool
        The draws; `out` where it was given.

    Raises
    ------
    ValueError
        If `threshold` is out of range, or `out` has another shape or dtype.

    See Also
    --------
    bernoulli_bits : The same draws as bits; this function spreads them.

    Examples
    --------
    >>> from skldp.random import bernoulli, random_stream
    >>> bernoulli(2**64, 3, random_stream(0))
    array([ True,  True,  True])
    """
    threshold = _check_threshold(threshold)
    if out is None:
        out = np.empty(size, dtype=np.bool_)
    elif out.shape != (size,) or out.dtype != np.bool_:
        raise ValueError(
            f"out must be a bool array of shape ({size},), got {out.dtype} of {out.shape}."
        )
    for start in range(0, size, _TAIL_BLOCK * 64):
        block = out[start : start + _TAIL_BLOCK * 64]
        bits = bernoulli_bits(threshold, -(-block.size // 64), stream)
        octets = bits.astype("<u8", copy=False).view(np.uint8)
        for first in range(0, block.size, _UNPACK_BLOCK):
            piece = block[first : first + _UNPACK_BLOCK]
            piece.view(np.uint8)[...] = np.unpackbits(
                octets[first // 8 :], count=piece.size, bitorder="little"
            )
    return out


def bernoulli_bits(
    threshold: int,
    size: int,
    stream: WordStream,
    out: NDArray[np.uint64] | None = None,
) -> NDArray[np.uint64]:
    """Draw independent Bernoulli variables, 64 per word.

    Parameters
    ----------
    threshold : int
        The probability of a set bit times 2^64, between 0 and 2^64; it is met exactly.
    size : int
        Number of words.
    stream : WordStream
        Source of random bits.
    out : ndarray of shape (size,), uint64, optional
        Where to write.

    Returns
    -------
    ndarray of shape (size,), uint64
        Words whose ``64 * size`` bits are independent; `out` where it was given.

    Raises
    ------
    ValueError
        If `threshold` is out of range, or `out` has another shape or dtype.

    Notes
    -----
    The comparison runs over planes: bit i of word j of a plane says whether the current digit
    of U, for the variable at bit i of word j, agrees with that of the threshold. The first
    disagreement decides, for True where the digit of the threshold is 1. After a few planes
    the variables still undecided are too sparse for whole words; each of them then compares
    the remaining digits at once with a word of its own.

    Examples
    --------
    >>> from skldp.random import bernoulli_bits, random_stream
    >>> bernoulli_bits(2**64, 1, random_stream(0)) == 2**64 - 1
    array([ True])
    """
    threshold = _check_threshold(threshold)
    if out is None:
        out = np.empty(size, dtype=np.uint64)
    elif out.shape != (size,) or out.dtype != np.uint64:
        raise ValueError(
            f"out must be a uint64 array of shape ({size},), got {out.dtype} of {out.shape}."
        )
    if threshold in (0, _ONE):
        out[...] = _ONE - 1 if threshold else 0
        return out
    digits = f"{threshold:064b}".rstrip("0")[:_N_DENSE]
    # What the dense digits leave of the threshold, moved to the top of a word.
    remaining = (threshold << len(digits)) % _ONE
    plane = np.empty(min(size, _PLANE_BLOCK), dtype=np.uint64)
    undecided = np.empty(min(size, _TAIL_BLOCK), dtype=np.uint64)
    for tail_start in range(0, size, _TAIL_BLOCK):
        result = out[tail_start : tail_start + _TAIL_BLOCK]
        for start in range(0, result.size, _PLANE_BLOCK):
            block = slice(start, min(start + _PLANE_BLOCK, result.size))
            _compare_digits(
                digits, undecided[block], plane[: block.stop - start], result[block], stream
            )
        if remaining:
            _settle_undecided(remaining, undecided[: result.size], result, stream)
    return out


def _check_threshold(threshold: int) -> int:
    threshold = int(threshold)
    if not 0 <= threshold <= _ONE:
        raise ValueError(f"threshold must be between 0 and 2**64, got {threshold}.")
    return threshold


def _compare_digits(
    digits: str,
    undecided: NDArray[np.uint64],
    plane: NDArray[np.uint64],
    result: NDArray[np.uint64],
    stream: WordStream,
) -> None:
    """Overwrite `result` and `undecided` with the state after comparing `digits`.

    The undecided bits only ever lose members, and those lost at digits 1 are the successes.
    Over a run of equal digits 1 they are the difference of `undecided` before and after it,
    so `result` changes only where a run begins or ends.
    """
    stream.fill(undecided)
    before: NDArray[np.uint64] | np.uint64 = np.uint64(_ONE - 1 if digits[0] == "1" else 0)
    for previous, digit in pairwise(digits):
        if previous != digit:
            before = np.bitwise_xor(before, undecided, out=result)
        np.bitwise_and(undecided, stream.fill(plane), out=undecided)
    if digits[-1] == "1":
        np.bitwise_xor(before, undecided, out=result)
    elif before is not result:
        result[...] = before


def _settle_undecided(
    remaining: int,
    undecided: NDArray[np.uint64],
    result: NDArray[np.uint64],
    stream: WordStream,
) -> None:
    """Compare a word with the remaining digits for every bit set in `undecided`."""
    where = np.flatnonzero(undecided != 0)  # a search through bools is the fast one
    members = undecided[where]
    while where.size:
        lowest = members & -members
        success = stream.words(where.size) < np.uint64(remaining)
        # The bit is still clear in the result.
        result[where] |= lowest * success
        members ^= lowest
        more = members != 0
        where, members = where[more], members[more]
