"""Randomizing kernels: whole columns of codes in, private reports out.

Pure functions of arrays and a stream of random words. They work through cache-sized blocks,
so that memory beyond the result does not grow with the number of users, and they never
branch on a private value.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp.random import WordStream, bernoulli_bits, random_integers

_BLOCK_SIZE = 1 << 16  # codes at a time
_BITS_SIZE = 1 << 22  # decisions drawn at a time: bernoulli_bits is at its best with many
_ROW_BLOCK_BYTES = 1 << 18  # packed reports at a time


def randomize_codes(
    codes: NDArray[Any], n_categories: int, threshold: int, stream: WordStream
) -> NDArray[Any]:
    """Replace each code, with a fixed probability, by a uniform one.

    Parameters
    ----------
    codes : ndarray of shape (n,), uint8, uint16 or uint32
        Codes in 0..n_categories-1; not modified.
    n_categories : int
        Number of symbols.
    threshold : int
        2^64 times the probability of a replacement, which may draw the code itself again.
    stream : WordStream
        Source of random bits.

    Returns
    -------
    ndarray of shape (n,), dtype of `codes`
        The randomized codes.

    Notes
    -----
    This is the mixture form of k-ary randomized response, (4) of [1]_: its probability of a
    symbol is threshold / (2^64 n_categories), plus 1 - threshold / 2^64 for the true one.

    References
    ----------
    .. [1] P. Kairouz, K. Bonawitz, D. Ramage, "Discrete distribution estimation under local
       privacy", ICML 2016.
    """
    is_power_of_two = n_categories & (n_categories - 1) == 0
    randomized = np.empty(codes.size, dtype=codes.dtype)
    words = np.empty(-(-min(codes.size, _BITS_SIZE) // 64), dtype=np.uint64)
    for start in range(0, codes.size, _BLOCK_SIZE):
        in_bits = start % _BITS_SIZE
        if in_bits == 0:
            n_words = -(-min(codes.size - start, _BITS_SIZE) // 64)
            octets = _octets(bernoulli_bits(threshold, n_words, stream, out=words[:n_words]))
        block = codes[start : start + _BLOCK_SIZE]
        replaced = np.unpackbits(octets[in_bits // 8 :], count=block.size)
        result = randomized[start : start + block.size]
        random_integers(n_categories, block.size, stream, out=result)
        # Without a branch: code ^ ((code ^ symbol) * replaced). For a power of two,
        # code ^ symbol is as uniform as the symbol, so the inner xor can be left out.
        if not is_power_of_two:
            np.bitwise_xor(result, block, out=result)
        np.multiply(result, replaced, out=result)
        np.bitwise_xor(result, block, out=result)
    return randomized


def randomize_one_hot(
    codes: NDArray[Any], n_categories: int, threshold: int, stream: WordStream
) -> NDArray[np.uint8]:
    """Encode each code as a packed one-hot row and flip every bit with a fixed probability.

    Parameters
    ----------
    codes : ndarray of shape (n,), uint8, uint16 or uint32
        Codes in 0..n_categories-1; not modified.
    n_categories : int
        Number of symbols, the number of bits of a row.
    threshold : int
        2^64 times the probability that a bit is flipped.
    stream : WordStream
        Source of random bits.

    Returns
    -------
    ndarray of shape (n, ceil(n_categories / 8)), uint8
        Packed reports: bit j of a row is bit ``j % 8`` of byte ``j // 8``, as in
        ``np.packbits(..., bitorder="little")``. The padding bits of the last byte are 0.

    Notes
    -----
    This is basic one-time RAPPOR, the k-RAPPOR of [1]_.

    References
    ----------
    .. [1] P. Kairouz, K. Bonawitz, D. Ramage, "Discrete distribution estimation under local
       privacy", ICML 2016.
    """
    n_bytes = -(-n_categories // 8)
    words = np.empty(-(-codes.size * n_bytes // 8), dtype=np.uint64)
    n_rows = max(_ROW_BLOCK_BYTES // n_bytes & ~7, 8)  # a multiple of 8 rows is one of words
    bernoulli_bits(threshold, words.size, stream, out=words)
    row_starts = np.arange(min(n_rows, codes.size)) * n_bytes
    symbol_bits = np.left_shift(1, np.arange(8)).astype(np.uint8)
    for start in range(0, codes.size, n_rows):
        block = codes[start : start + n_rows]
        first, size = start * n_bytes // 8, -(-block.size * n_bytes // 8)
        flips = words[first : first + size]
        octets = _octets(flips)
        octets[row_starts[: block.size] + (block >> 3)] ^= symbol_bits[block & 7]
        if n_categories % 8:
            octets[n_bytes - 1 :: n_bytes] &= np.uint8((1 << n_categories % 8) - 1)
    return words.view(np.uint8)[: codes.size * n_bytes].reshape(codes.size, n_bytes)


def _octets(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """View words as bytes, least significant first."""
    return words.astype("<u8", copy=False).view(np.uint8)
