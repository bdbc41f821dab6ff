"""Integer thresholds: the probabilities that the mechanisms really use.

A mechanism draws 64-bit words and compares them with an integer, so its probabilities are
multiples of 2^-64. Each threshold is rounded toward privacy (more noise), from a lower bound
on e^ε that holds in exact arithmetic; the realised likelihood ratio is therefore at most e^ε
as a statement about integers, not about floats.
"""

from fractions import Fraction

from skldp.random._exact import exp_bounds

__all__ = ["WORD", "exp_lower_bound", "flip_threshold", "replacement_threshold"]

WORD = 2**64
"""Number of values of a 64-bit word: the common denominator of all realised probabilities."""

# Three times what a 64-bit threshold resolves.
_N_DECIMAL_DIGITS = 60

# Beyond e^1000 every threshold is 1 already; a smaller exponent is still a lower bound, and
# keeps the big integers small.
_LARGEST_EXPONENT = Fraction(1000)


def exp_lower_bound(exponent: Fraction) -> Fraction:
    """Return a rational number that is at most e^exponent (exponent >= 0), and at least 1."""
    if exponent < 0:
        raise ValueError("exponent must not be negative.")
    lower, _ = exp_bounds(min(exponent, _LARGEST_EXPONENT), _N_DECIMAL_DIGITS)
    return max(lower, Fraction(1))


def _ceiling(value: Fraction) -> int:
    return -((-value.numerator) // value.denominator)


def replacement_threshold(epsilon: float | Fraction, n_categories: int) -> int:
    """Return Q: k-RR replaces a value by a uniform symbol with probability Q / 2^64.

    Then P(y|y) / P(y|x) = 1 + k (2^64 - Q) / Q, which is at most e^ε exactly when
    Q >= 2^64 k / (k - 1 + e^ε).
    """
    odds = exp_lower_bound(Fraction(epsilon))
    return _ceiling(WORD * n_categories / (n_categories - 1 + odds))


def flip_threshold(epsilon: float | Fraction) -> int:
    """Return F: RAPPOR flips each bit with probability F / 2^64.

    One-hot rows of two values differ in two bits, so each bit may spend ε/2:
    (2^64 - F) / F <= e^(ε/2).
    """
    odds = exp_lower_bound(Fraction(epsilon) / 2)
    return _ceiling(WORD / (1 + odds))
