"""Counting kernels: from private reports to sufficient statistics.

Pure functions of arrays that work through cache-sized blocks, so that memory beyond the
result does not grow with the number of reports.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CODE_BLOCK = 1 << 16  # codes at a time
_MIN_PAIRED = 1 << 18  # codes that repay the table of pairs
_SLAB_BYTES = 1 << 15  # packed reports added up at a time
_BIT_BLOCK_BYTES = 1 << 20  # unpacked reports at a time


def count_codes(codes: NDArray[Any], n_categories: int) -> NDArray[np.int64]:
    """Count how often each code occurs.

    Parameters
    ----------
    codes : ndarray of shape (n,), any integer dtype
        Codes already known to lie in 0..n_categories-1; not modified.
    n_categories : int
        Number of symbols.

    Returns
    -------
    ndarray of shape (n_categories,), int64
        The counts.

    Notes
    -----
    Large columns of bytes are read as pairs, counted in a table of 65536 cells whose two
    margins are added. ``np.bincount`` would convert the whole column to eight bytes a code.
    """
    if codes.itemsize == 1 and codes.size >= _MIN_PAIRED:
        return _count_pairs(codes)[:n_categories].copy()
    counts = np.zeros(n_categories, dtype=np.int64)
    _add_counts(codes, counts)
    return counts


def sum_packed_bits(packed: NDArray[np.uint8], n_bits: int) -> NDArray[np.int64]:
    """Sum the columns of a matrix of packed bits.

    Parameters
    ----------
    packed : ndarray of shape (n, ceil(n_bits / 8)), uint8
        Rows packed with ``bitorder="little"``; not modified. Padding bits are ignored.
    n_bits : int
        Number of columns.

    Returns
    -------
    ndarray of shape (n_bits,), int64
        The number of ones of each column.

    Notes
    -----
    The method of Harley and Seal [1]_: slabs of rows go through carry-save adders, five
    logical operations for two slabs, and only the few planes of binary digits that remain
    are unpacked and summed.

    References
    ----------
    .. [1] H. S. Warren, "Hacker's Delight", 2nd ed., section 5-1, 2012.
    """
    n_rows, n_bytes = packed.shape
    slab_rows = max(_SLAB_BYTES // n_bytes, 1)
    counter = _CarrySaveCounter(slab_rows * n_bytes)
    start = 0
    while start + 2 * slab_rows <= n_rows:
        pair = np.ascontiguousarray(packed[start : start + 2 * slab_rows]).reshape(2, -1)
        counter.add(pair[0], pair[1])
        start += 2 * slab_rows
    sums = _sum_unpacked(packed[start:], n_bits)
    for weight, plane in counter.weighted_planes():
        sums += weight * _sum_unpacked(plane.reshape(slab_rows, n_bytes), n_bits)
    return sums


def sum_bits(bits: NDArray[Any]) -> NDArray[np.int64]:
    """Sum the columns of a matrix of zeros and ones.

    Parameters
    ----------
    bits : ndarray of shape (n, k), bool or any integer dtype
        Zeros and ones; not modified.

    Returns
    -------
    ndarray of shape (k,), int64
        The number of ones of each column.
    """
    n_rows, n_columns = bits.shape
    sums = np.zeros(n_columns, dtype=np.int64)
    # Up to 255 rows add up in bytes. Short rows are joined, so that a row is worth a call.
    n_joined = max(1024 // n_columns, 1)
    block_rows = max(min(255 * n_joined, _BIT_BLOCK_BYTES // n_columns), 1)
    for start in range(0, n_rows, block_rows):
        block = np.ascontiguousarray(bits[start : start + block_rows], dtype=np.uint8)
        whole = len(block) - len(block) % n_joined
        joined = block[:whole].reshape(-1, n_joined * n_columns)
        partial = np.add.reduce(joined, axis=0, dtype=np.uint8)
        sums += partial.reshape(n_joined, n_columns).sum(axis=0, dtype=np.int64)
        sums += block[whole:].sum(axis=0, dtype=np.int64)
    return sums


def _add_counts(codes: NDArray[Any], counts: NDArray[np.int64]) -> None:
    buffer = np.empty(min(codes.size, _CODE_BLOCK), dtype=np.intp)
    for start in range(0, codes.size, _CODE_BLOCK):
        block = codes[start : start + _CODE_BLOCK]
        positions = buffer[: block.size]
        np.copyto(positions, block, casting="unsafe")
        np.add.at(counts, positions, 1)


def _count_pairs(codes: NDArray[Any]) -> NDArray[np.int64]:
    """Count bytes two by two; the order within a pair does not matter to the sum."""
    table = np.zeros(1 << 16, dtype=np.int64)
    for start in range(0, codes.size - 1, _CODE_BLOCK):
        block = codes[start : start + _CODE_BLOCK]
        block = np.ascontiguousarray(block[: block.size & ~1])
        _add_counts(block.view(np.uint16), table)
    cells = table.reshape(256, 256)
    counts: NDArray[np.int64] = cells.sum(axis=0) + cells.sum(axis=1)
    if codes.size % 2:
        counts[codes[-1]] += 1
    return counts


def _sum_unpacked(packed: NDArray[np.uint8], n_bits: int) -> NDArray[np.int64]:
    return sum_bits(np.unpackbits(packed, axis=1, count=n_bits, bitorder="little"))


class _CarrySaveCounter:
    """Counts of ones, kept for every bit position as planes of binary digits.

    Level l holds the digit of weight 2^l and up to two carries of weight 2^(l + 1). A pair
    of carries is the next level's input.
    """

    def __init__(self, n_bytes: int) -> None:
        self._shape = (3, n_bytes)
        self._levels: list[NDArray[np.uint8]] = []  # digit, first and second carry
        self._has_carry: list[bool] = []
        self._scratch = np.empty((2, n_bytes), dtype=np.uint8)

    def add(self, first: NDArray[np.uint8], second: NDArray[np.uint8]) -> None:
        """Add two slabs of bits."""
        level = 0
        while True:
            if level == len(self._levels):
                self._levels.append(np.zeros(self._shape, dtype=np.uint8))
                self._has_carry.append(False)
            digit, *carries = self._levels[level]
            self._add_to_digit(digit, first, second, carries[self._has_carry[level]])
            self._has_carry[level] = not self._has_carry[level]
            if self._has_carry[level]:
                return
            first, second = carries
            level += 1

    def weighted_planes(self) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield each plane that may have ones, with the weight of its bits."""
        for level, (digit, carry, _) in enumerate(self._levels):
            yield 1 << level, digit
            if self._has_carry[level]:
                yield 2 << level, carry

    def _add_to_digit(
        self,
        digit: NDArray[np.uint8],
        first: NDArray[np.uint8],
        second: NDArray[np.uint8],
        carry: NDArray[np.uint8],
    ) -> None:
        """Full adder: ``digit + first + second`` becomes `digit` and twice `carry`."""
        half_sum, both = self._scratch
        np.bitwise_xor(first, second, out=half_sum)
        np.bitwise_and(first, second, out=carry)
        np.bitwise_and(half_sum, digit, out=both)
        np.bitwise_or(carry, both, out=carry)
        np.bitwise_xor(digit, half_sum, out=digit)
