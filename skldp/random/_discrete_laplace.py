"""Discrete Laplace noise: integers with P(x) proportional to e^(-|x|/t), drawn exactly.

The variable is the difference of two independent geometric ones, P(g) proportional to q^g on
g = 0, 1, ... with q = e^(-1/t): summing over their common part leaves (1-q)/(1+q) q^|x|.

A geometric variable is drawn by its binary digits. The weight q^g is the product of
q^(2^j) over the digits 1 of g, so the digits are independent, digit j being 1 with probability
q^(2^j) / (1 + q^(2^j)) = 1/(1 + e^(2^j/t)). The number that the digits from J on make up is
geometric as well, with the ratio e^(-2^J/t), and independent of the digits below: successes
are counted until the first failure. No logarithm is taken, nothing is cut off.

Rounding a digit's probability in any direction would not be private: at a carry, as from 7 to
8, all digits change at once and their errors oppose each other. Hence every digit is exact.
"""

import numbers
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp.random._exact import ExactProbability, exact_bernoulli
from skldp.random._words import WordStream

_LARGEST_INT64_SCALE = 1 << 40
_BLOCK_LANES = 1 << 19
# The digits end where one more is set with a probability below e^-8. The larger J, the more
# digits everyone draws; the smaller, the more often the rare rest has to be counted.
_REST_EXPONENT = 8


def discrete_laplace(scale: int | float | Fraction, size: int, stream: WordStream) -> NDArray[Any]:
    """Draw independent integers x with probability proportional to exp(-abs(x)/scale), exactly.

    Parameters
    ----------
    scale : int, Fraction or float
        Positive. A float stands for the binary fraction that it is.
    size : int
        Number of draws.
    stream : WordStream
        Source of random bits.

    Returns
    -------
    ndarray of shape (size,)
        The draws: int64 where `scale` is at most 2^40, otherwise Python integers (object).

    Raises
    ------
    TypeError
        If `scale` is not a real number (booleans are not) or `stream` no word stream.
    ValueError
        If `scale` is NaN, infinite, zero or negative, or `size` negative.
    OverflowError
        If a draw does not fit into int64. This has a probability below e^(-2^22).

    See Also
    --------
    discrete_gaussian : Noise with lighter tails, for concentrated differential privacy.

    Notes
    -----
    With q = e^(-1/scale) the variance is 2q / (1 - q)^2. An integer that a user can
    change by at most d, released with this noise, is d/scale differentially private, because
    P(x) / P(x + 1) is between e^(-1/scale) and e^(1/scale). The running time depends on the
    draws, a little: whoever can measure it exactly learns something about them.

    Examples
    --------
    >>> from skldp.random import discrete_laplace, random_stream
    >>> discrete_laplace(10, 5, random_stream(0))
    array([-13,   2,  23, -13,  -9])
    """
    scale = check_positive_rational(scale, "scale")
    check_stream(stream)
    n_probabilities = len(_geometric_probabilities(scale))
    draws = np.empty(size, dtype=np.int64 if scale <= _LARGEST_INT64_SCALE else object)
    block_size = _BLOCK_LANES // (n_probabilities + 8)  # the values take up as much as 8 lanes
    for start in range(0, size, block_size):
        block = draws[start : start + block_size]
        pairs = _geometric(scale, 2 * block.size, stream)
        np.subtract(pairs[: block.size], pairs[block.size :], out=block)
    return draws


def check_positive_rational(value: Any, name: str) -> Fraction:
    """Return a positive real number as the fraction that it is."""
    real: tuple[Any, ...] = (numbers.Real,)
    if isinstance(value, bool | np.bool_) or not isinstance(value, real):
        raise TypeError(f"{name} must be a positive number, got {type(value).__name__}.")
    if isinstance(value, numbers.Rational):
        exact = Fraction(int(value.numerator), int(value.denominator))
    elif np.isfinite(value):
        exact = Fraction(*value.as_integer_ratio())
    else:
        raise ValueError(f"{name} must be finite, got {value}.")
    if exact <= 0:
        raise ValueError(f"{name} must be positive, got {value}.")
    return exact


def check_stream(stream: Any) -> None:
    """Refuse anything but a stream of words: a seed, say, or one of numpy's generators."""
    if not isinstance(stream, WordStream):
        raise TypeError(
            f"stream must be a WordStream, got {type(stream).__name__}; "
            "build one with skldp.random.random_stream."
        )


@lru_cache(maxsize=128)
def _geometric_probabilities(scale: Fraction) -> tuple[ExactProbability, ...]:
    """Those of the digits, the lowest first, and last that of one more 2^J."""
    n_digits = 0
    while 1 << n_digits < _REST_EXPONENT * scale:
        n_digits += 1
    digits = (ExactProbability.logistic(Fraction(1 << j) / scale) for j in range(n_digits))
    return (*digits, ExactProbability.exponential(Fraction(1 << n_digits) / scale))


def _geometric(scale: Fraction, size: int, stream: WordStream) -> NDArray[Any]:
    """Draw integers g >= 0 with probability proportional to e^(-g/scale)."""
    *_, rest = probabilities = _geometric_probabilities(scale)
    n_digits = len(probabilities) - 1
    bits = exact_bernoulli(probabilities, size, stream)
    values: NDArray[Any]
    if scale <= _LARGEST_INT64_SCALE:
        values = _join_digits(bits[:-1]).view(np.int64)
    else:
        values = np.zeros(size, dtype=object)
        for low in range(0, n_digits, 64):
            values += _join_digits(bits[low : min(low + 64, n_digits)]).astype(object) << low
    beyond, limit = np.flatnonzero(bits[-1]), 1 << n_digits
    while beyond.size:
        limit += 1 << n_digits
        if values.dtype != object and limit > 1 << 63:
            raise OverflowError("A draw does not fit into 64 bits.")
        values[beyond] += 1 << n_digits
        beyond = beyond[exact_bernoulli([rest], beyond.size, stream)[0]]
    return values


def _join_digits(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Read the columns of up to 64 rows of bits as integers, the lowest digit first."""
    octets = np.zeros((bits.shape[1], 8), dtype=np.uint8)
    digits = bits.view(np.uint8)
    for low in range(0, len(bits), 8):
        *lower, octet = digits[low : low + 8]
        octet = octet.copy()
        for digit in reversed(lower):
            np.add(octet, octet, out=octet)
            np.bitwise_or(octet, digit, out=octet)
        octets[:, low // 8] = octet
    return octets.view("<u8")[:, 0].astype(np.uint64, copy=False)
