"""Counting kernels: from private reports to sufficient statistics."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def count_codes(codes: NDArray[Any], n_categories: int) -> NDArray[np.int64]:
    counts = np.zeros(n_categories, dtype=np.int64)
    for s in range(0, codes.size, 32768):
        np.add.at(counts, codes[s : s + 32768].astype(np.intp), 1)
    return counts


def sum_packed_bits(packed: NDArray[np.uint8], n_bits: int) -> NDArray[np.int64]:
    out = np.zeros(n_bits, dtype=np.int64)
    for s in range(0, len(packed), 1024):
        out += np.unpackbits(packed[s : s + 1024], axis=1, bitorder="little")[:, :n_bits].sum(
            axis=0, dtype=np.int64
        )
    return out


def sum_bits(bits: NDArray[Any]) -> NDArray[np.int64]:
    return bits.sum(axis=0, dtype=np.int64)
