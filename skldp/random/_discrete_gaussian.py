"""Discrete Gaussian noise: integers with P(x) proportional to e^(-x^2/(2 variance)), exactly.

Rejection from discrete Laplace noise (Algorithm 3 of [CKS20]): with t = floor(sigma) + 1 a
draw y of scale t is kept with probability e^-γ, γ = (abs(y) - variance/t)^2 / (2 variance),
for which abs(y)/t + γ is y^2/(2 variance) and a constant. About three draws in four are kept.

Every y has its own γ, so the digits of e^-γ are not computed for all of them. Floats
whose error is known decide, and where the uniform word is too close to their value, which
happens once in 2^38 draws, exact arithmetic does, from the same word and further digits.

The filter. Let u = 2^-53, s = abs(y)/t, c = variance/t^2 and k = t^2/(2 variance), so that
γ = k (s - c)^2, ck = 1/2 and k >= 1/2. As floats s is off by at most 2us and c and k by u of
themselves, hence d = s - c by 2us + uc + u·abs(d) <= 3u(abs(d) + c), and γ, up to terms of
order u^2, by at most

    2 k abs(d) 3u (abs(d) + c) + 3uγ  =  9uγ + 3u abs(d)  <=  9uγ + 3u sqrt(2γ).

For γ <= 64 that is below 611u. `filtered_exponential` adds 256u, so the float a = 2^64 e^-γ
has a relative error below 1000u < 2^-43. The word w is a float with the relative error u. Hence
w + 1 <= 2^64 e^-γ wherever the floats say w < a(1 - 2^-40) - 1, and w >= 2^64 e^-γ wherever
they say w > a(1 + 2^-40): the margins are eight times what the errors add up to. A larger γ
counts as 64, where a is below 2^-28: no word passes the first test, and all but 0 pass the
second one, rightly, as 2^64 e^-γ < 1 there.

[CKS20] Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", 2020.
"""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp.random._discrete_laplace import (
    check_positive_rational,
    check_stream,
    discrete_laplace,
)
from skldp.random._exact import exponential_digits, filtered_exponential, is_below
from skldp.random._words import WordStream

_BLOCK = 1 << 15  # candidates at a time
_MARGIN = 2.0**-40
_LARGEST_EXPONENT = 64.0


def discrete_gaussian(
    variance: int | float | Fraction, size: int, stream: WordStream
) -> NDArray[Any]:
    """Draw independent integers x with probability proportional to exp(-x^2/(2 variance)).

    Parameters
    ----------
    variance : int, Fraction or float
        Positive: the parameter sigma^2. A float stands for the binary fraction that it is.
    size : int
        Number of draws.
    stream : WordStream
        Source of random bits.

    Returns
    -------
    ndarray of shape (size,)
        The draws: int64 where `variance` is below 2^80, otherwise Python integers (object).

    Raises
    ------
    TypeError
        If `variance` is not a real number (booleans are not) or `stream` no word stream.
    ValueError
        If `variance` is NaN, infinite, zero or negative, or `size` negative.
    OverflowError
        If a candidate does not fit into int64. This has a probability below e^(-2^22).

    See Also
    --------
    discrete_laplace : Noise for pure differential privacy.

    Notes
    -----
    An integer that a user can change by at most d, released with this noise, is
    d^2/(2 variance) zero-concentrated differentially private [1]_, the same as with
    continuous noise. The variance of the draws is at most `variance`, and practically equal to
    it from 1 on [1]_. The running time depends on the draws, those rejected included: whoever
    can measure it exactly learns something about them.

    References
    ----------
    .. [1] C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential
       Privacy", NeurIPS 2020, arXiv:2004.00010.

    Examples
    --------
    >>> from skldp.random import discrete_gaussian, random_stream
    >>> discrete_gaussian(100, 5, random_stream(0))
    array([-17,  10,   5,  10, -22])
    """
    variance = check_positive_rational(variance, "variance")
    check_stream(stream)
    scale = _proposal_scale(variance)
    # The type of the candidates is that of the result.
    draws = np.empty(size, dtype=discrete_laplace(scale, 0, stream).dtype)
    n_drawn = 0
    while n_drawn < size:
        n_missing = size - n_drawn
        candidates = discrete_laplace(scale, min(_BLOCK, 3 * n_missing // 2 + 8), stream)
        kept = candidates[_is_kept(candidates, variance, scale, stream)][:n_missing]
        draws[n_drawn : n_drawn + kept.size] = kept
        n_drawn += kept.size
    return draws


def _proposal_scale(variance: Fraction) -> int:
    return math.isqrt(math.floor(variance)) + 1


def _is_kept(
    candidates: NDArray[Any], variance: Fraction, scale: int, stream: WordStream
) -> NDArray[np.bool_]:
    """Decide for every candidate with probability e^-γ, exactly."""
    words = stream.words(candidates.size)
    expected = filtered_exponential(_float_exponents(candidates, variance, scale))
    expected *= 2.0**64
    uniform = words.astype(np.float64)
    kept: NDArray[np.bool_] = uniform < expected * (1 - _MARGIN) - 1
    is_close = ~kept & (uniform <= expected * (1 + _MARGIN))
    for i in np.flatnonzero(is_close):
        exponent = _exponent(int(candidates[i]), variance, scale)
        kept[i] = is_below(partial(exponential_digits, exponent), 64, int(words[i]), stream)
    return kept


def _exponent(candidate: int, variance: Fraction, scale: int) -> Fraction:
    return (abs(candidate) - variance / scale) ** 2 / (2 * variance)


def _float_exponents(
    candidates: NDArray[Any], variance: Fraction, scale: int
) -> NDArray[np.float64]:
    """γ, or 64 where it is larger, within the error stated above."""
    # Python integers too are divided with correct rounding.
    distance: NDArray[np.float64] = (np.abs(candidates) / scale).astype(np.float64, copy=False)
    distance -= float(variance / scale**2)
    # A variance that small rejects everything but 0, with this factor as with its own.
    factor = float(min(scale**2 / (2 * variance), Fraction(2**200)))
    return np.minimum(distance * distance * factor, _LARGEST_EXPONENT)
