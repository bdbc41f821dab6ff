"""Randomizing kernels: whole columns of codes in, private reports out.

Pure functions of arrays and a stream of random words. They work through cache-sized blocks,
so that memory beyond the result does not grow with the number of users, and they never
branch on a private value.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp.random import WordStream, bernoulli_bits, random_integers

_BLOCK_SIZE = 1 << 17  # codes at a time
_LANE_BYTES = 1 << 18  # lanes at a time
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
    This is the mixture form of k-ary randomized response, (4) of [1]_: a report is any given
    symbol with probability threshold / (2^64 n_categories), plus 1 - threshold / 2^64 if it
    is the true one. Both are met exactly.

    References
    ----------
    .. [1] P. Kairouz, K. Bonawitz, D. Ramage, "Discrete distribution estimation under local
       privacy", ICML 2016.
    """
    randomized = np.empty(codes.size, dtype=codes.dtype)
    if n_categories & (n_categories - 1) == 0:
        _randomize_by_mask(codes, n_categories, threshold, stream, randomized)
    else:
        _randomize_by_inversion(codes, n_categories, threshold, stream, randomized)
    return randomized


def _randomize_by_mask(
    codes: NDArray[Any], n_categories: int, threshold: int, stream: WordStream, out: NDArray[Any]
) -> None:
    """Randomize for a power of two: ``code ^ (mask * symbol)``, symbol uniform.

    That is the true code where the mask is 0; where it is 1, `code ^ symbol` is uniform.
    """
    words = np.empty(-(-min(codes.size, _BITS_SIZE) // 64), dtype=np.uint64)
    narrow = np.empty(min(codes.size, _BLOCK_SIZE), dtype=np.min_scalar_type(n_categories - 1))
    for start in range(0, codes.size, _BLOCK_SIZE):
        in_bits = start % _BITS_SIZE
        if in_bits == 0:
            n_words = -(-min(codes.size - start, _BITS_SIZE) // 64)
            octets = _octets(bernoulli_bits(threshold, n_words, stream, out=words[:n_words]))
        block, result = codes[start : start + _BLOCK_SIZE], out[start : start + _BLOCK_SIZE]
        mask = np.unpackbits(octets[in_bits // 8 :], count=block.size)
        symbols = random_integers(n_categories, block.size, stream, out=narrow[: block.size])
        np.multiply(symbols, mask, out=symbols)
        np.bitwise_xor(block, symbols, out=result)


def _randomize_by_inversion(
    codes: NDArray[Any], n_categories: int, threshold: int, stream: WordStream, out: NDArray[Any]
) -> None:
    """Randomize for any number of categories, one lane of random bits per code."""
    n_bits = 32 if n_categories <= 1 << 16 else 64
    share, n_last, missing = _share_lanes(n_categories, threshold, n_bits)
    lane_type = np.dtype(f"u{n_bits // 8}")
    scalar = lane_type.type
    first_of_last = scalar((1 << n_bits) - n_last)
    block_size = _LANE_BYTES // lane_type.itemsize
    buffer = np.empty(min(codes.size, block_size), dtype=lane_type)
    for start in range(0, codes.size, block_size):
        block, result = codes[start : start + block_size], out[start : start + block_size]
        lanes = stream.fill(buffer[: block.size])
        # Looking for them costs more than the maximum, and there are seldom any.
        any_last = bool(lanes.max() >= first_of_last)
        last = np.flatnonzero(lanes >= first_of_last) if any_last else np.empty(0, np.intp)
        if share:
            np.floor_divide(lanes, scalar(share), out=lanes)
        else:
            lanes[...] = n_categories
        if last.size:
            draws = random_integers(n_last << (64 - n_bits), last.size, stream)
            symbols = random_integers(n_categories, last.size, stream)
            lanes[last] = np.where(draws < missing, symbols, n_categories)
        # Without a branch: code ^ ((code ^ symbol) * replaced).
        replaced = lanes < scalar(n_categories)
        np.copyto(result, lanes, casting="unsafe")
        np.bitwise_xor(result, block, out=result)
        np.multiply(result, replaced.view(np.uint8), out=result)
        np.bitwise_xor(result, block, out=result)


def _share_lanes(n_categories: int, threshold: int, n_bits: int) -> tuple[int, int, int]:
    """Divide the 2^n_bits lanes among the symbols and the codes that are kept.

    Each symbol gets `share` lanes, from 0 on. The last `n_last` lanes make up for the
    rounding of `share`: on them a uniform symbol replaces the code with probability
    ``missing / (n_last * 2^(64 - n_bits))``. The lanes between keep the code. In total
    ``share * n_categories * 2^(64 - n_bits) + missing == threshold``.
    """
    largest, remainder = divmod(1 << n_bits, n_categories)
    n_last = n_categories + remainder
    share = min(threshold // (n_categories << (64 - n_bits)), largest - 1)
    return share, n_last, threshold - (share * n_categories << (64 - n_bits))


def randomize_one_hot(
    codes: NDArray[Any], n_categories: int, threshold: int, stream: WordStream
) -> NDArray[np.uint8]:
    """Encode codes as packed rows of bits and flip every bit with a fixed probability.

    Parameters
    ----------
    codes : ndarray of shape (n,) or (n, n_hashes), uint8, uint16 or uint32
        Codes in 0..n_categories-1; not modified. Several in a row set several bits, a code that
        is repeated the same one.
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
    columns = codes.T if codes.ndim == 2 else codes[np.newaxis]
    n_rows, n_bytes = codes.shape[0], -(-n_categories // 8)
    words = np.empty(-(-n_rows * n_bytes // 8), dtype=np.uint64)
    octets = _octets(bernoulli_bits(threshold, words.size, stream, out=words))
    octets = octets[: n_rows * n_bytes]
    block_size = max(_ROW_BLOCK_BYTES // n_bytes, 1)
    row_starts = np.arange(min(block_size, n_rows)) * n_bytes
    symbol_bits = np.left_shift(1, np.arange(8)).astype(np.uint8)
    for start in range(0, n_rows, block_size):
        blocks = columns[:, start : start + block_size]
        size = blocks.shape[1]
        rows = octets[start * n_bytes : (start + size) * n_bytes]
        for j, block in enumerate(blocks):
            bits = symbol_bits[block & 7]
            if j:  # xor would clear a bit that an earlier hash has set
                bits[(blocks[:j] == block).any(axis=0)] = 0
            rows[row_starts[:size] + (block >> 3)] ^= bits
        if n_categories % 8:
            rows[n_bytes - 1 :: n_bytes] &= np.uint8((1 << n_categories % 8) - 1)
    return octets.reshape(n_rows, n_bytes)


def _octets(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """View words as bytes, least significant first."""
    return words.astype("<u8", copy=False).view(np.uint8)
