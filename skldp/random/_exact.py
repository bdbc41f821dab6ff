"""Bernoulli variables whose probability is an irrational number, met exactly.

A uniform number U is below p as soon as a digit of U differs from that of p and is the
smaller one. So a draw needs as many binary digits of p as U happens to share with it: sixteen
nearly always, 64 more once in 65536 draws, and only where those agree as well are further
ones computed. The law is that of p itself, not that of p rounded to some number of digits.

The digits come from bounds on e^x that hold in exact arithmetic. For a positive rational x,
e^x is transcendental (Lindemann), hence neither e^-x nor 1/(1 + e^x) has a finite binary
expansion, and bounds that are close enough agree on any number of leading digits.
"""

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from skldp.random._words import WordStream

# From n to the integer part of 2^n p: the first n binary digits of a probability p.
Digits: TypeAlias = Callable[[int], int]

_N_LANE = 16  # digits compared for every draw
_N_WORD = 64  # digits that a tie adds
N_LEADING = _N_LANE + _N_WORD
"""Digits compared before any further one is computed."""

_LARGEST_FILTERED = 64  # e^-64 is below the last digit of a word
_N_STEPS = 64  # of the table of exponentials in a unit
_SERIES = (-1 / 120, 1 / 24, -1 / 6, 1 / 2, -1.0, 1.0)  # of e^-r, the highest power first


def exp_bounds(exponent: Fraction, n_digits: int) -> tuple[Fraction, Fraction]:
    """Return rational numbers below and above e^exponent.

    Parameters
    ----------
    exponent : Fraction
        Not negative, and below 10^9.
    n_digits : int
        Decimal digits of the arithmetic. The relative distance of the bounds is about
        ``exponent + 1`` units of the last one.

    Returns
    -------
    lower, upper : Fraction
        ``lower < e^exponent < upper``.

    Notes
    -----
    `decimal` rounds the quotient as it is told to and its ``exp`` correctly (to the nearest,
    whatever the context says), so one unit in the last place beyond it is a strict bound.
    """
    numerator, denominator = Decimal(exponent.numerator), Decimal(exponent.denominator)
    down = Context(prec=n_digits, rounding=ROUND_FLOOR, Emax=10**9, Emin=-(10**9))
    up = Context(prec=n_digits, rounding=ROUND_CEILING, Emax=10**9, Emin=-(10**9))
    lower = down.next_minus(down.exp(down.divide(numerator, denominator)))
    upper = up.next_plus(up.exp(up.divide(numerator, denominator)))
    return Fraction(lower), Fraction(upper)


def exponential_digits(exponent: Fraction, n: int) -> int:
    """Return the first n binary digits of e^-exponent, as an integer; exponent >= 0."""
    if exponent == 0:
        return 1 << n
    return _digits(lambda odds: 1 / odds, exponent, n)


def logistic_digits(exponent: Fraction, n: int) -> int:
    """Return the first n binary digits of 1 / (1 + e^exponent), as an integer; exponent > 0."""
    return _digits(lambda odds: 1 / (1 + odds), exponent, n)


def _digits(probability: Callable[[Fraction], Fraction], exponent: Fraction, n: int) -> int:
    if exponent >= n:
        return 0  # the probability is at most e^-n
    n_decimal = n // 3 + 10
    while True:
        lower, upper = exp_bounds(exponent, n_decimal)
        digits = int(probability(upper) * (1 << n))
        if digits == int(probability(lower) * (1 << n)):
            return digits
        n_decimal *= 2


class ExactProbability:
    """A probability strictly between 0 and 1, known by its binary digits.

    Parameters
    ----------
    digits : callable
        ``digits(n)`` returns the integer part of 2^n p.
    """

    def __init__(self, digits: Digits) -> None:
        self.digits = digits
        self.leading = digits(N_LEADING)

    @classmethod
    def exponential(cls, exponent: Fraction) -> "ExactProbability":
        """e^-exponent, for a positive exponent."""
        return cls(partial(exponential_digits, exponent))

    @classmethod
    def logistic(cls, exponent: Fraction) -> "ExactProbability":
        """1 / (1 + e^exponent), for a positive exponent."""
        return cls(partial(logistic_digits, exponent))


def exact_bernoulli(
    probabilities: Sequence[ExactProbability], size: int, stream: WordStream
) -> NDArray[np.bool_]:
    """Draw independent Bernoulli variables, `size` for each of the probabilities.

    Parameters
    ----------
    probabilities : sequence of ExactProbability
        The probabilities of True, met exactly.
    size : int
        Number of draws of each.
    stream : WordStream
        Source of random bits.

    Returns
    -------
    ndarray of shape (len(probabilities), size), bool
        The draws.
    """
    leading = [probability.leading for probability in probabilities]
    heads = np.array([digits >> _N_WORD for digits in leading], dtype=np.uint16)[:, np.newaxis]
    lanes = stream.fill(np.empty((len(probabilities), size), dtype=np.uint16))
    result = lanes < heads
    tied = np.flatnonzero(lanes == heads)
    if tied.size:
        flat = result.reshape(-1)
        rows = tied // size
        tails = np.array([digits % (1 << _N_WORD) for digits in leading], dtype=np.uint64)[rows]
        words = stream.words(tied.size)
        flat[tied] = words < tails
        for i in np.flatnonzero(words == tails):
            probability = probabilities[rows[i]]
            flat[tied[i]] = is_below(probability.digits, N_LEADING, probability.leading, stream)
    return result


def is_below(digits: Digits, n: int, prefix: int, stream: WordStream) -> bool:
    """Say whether the uniform number that begins with the n digits `prefix` is below p.

    Its further digits are drawn as far as they are needed, 64 at a time. With d the first n
    digits of p, the number lies in [prefix, prefix + 1) / 2^n and p in [d, d + 1) / 2^n.
    """
    while prefix == (threshold := digits(n)):
        prefix = prefix << _N_WORD | int(stream.words(1)[0])
        n += _N_WORD
    return prefix < threshold


def filtered_exponential(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return e^-exponents as floats whose relative error is below 2^-45.

    Only additions, multiplications and table entries are used, whose rounding IEEE 754
    prescribes; nothing is taken on trust from a mathematical library.

    Parameters
    ----------
    exponents : ndarray of float64
        Between 0 and 64.

    Returns
    -------
    ndarray of float64
        The exponentials.

    Notes
    -----
    The exponent is i/64 + r with an integer i and 0 <= r < 1/64, both exact. With u = 2^-53,
    the entry of the table for i is a product of two rounded numbers (relative error below 4u);
    the Taylor polynomial of e^-r of degree 5 is off by r^6/720 < 2^-45.4 = 194u at most, its
    evaluation by 3u, because every rounding but that of the last sum is multiplied by r; the
    product adds u. The sum is below 202u, and e^-r > 63/64: below 256u = 2^-45 relatively.
    """
    steps = np.floor(exponents * _N_STEPS)
    rest = exponents - steps / _N_STEPS
    series = rest * _SERIES[0]
    for coefficient in _SERIES[1:-1]:
        series += coefficient
        series *= rest
    series += _SERIES[-1]
    series *= _exponential_table()[steps.astype(np.intp)]
    return series


@lru_cache(maxsize=1)
def _exponential_table() -> NDArray[np.float64]:
    """e^(-i/64) for i = 0, ..., 64 * 65 - 1, from 128 rounded values."""

    def rounded(exponent: Fraction) -> float:
        return float(1 / exp_bounds(exponent, 30)[0])

    units = [rounded(Fraction(unit)) for unit in range(_LARGEST_FILTERED + 1)]
    parts = [rounded(Fraction(part, _N_STEPS)) for part in range(_N_STEPS)]
    table = np.multiply.outer(units, parts).reshape(-1)
    table.flags.writeable = False
    return table
