"""The (ε, δ) of Gaussian noise: continuous in closed form, discrete by its own sum.

A number that one user can change by at most Δ, released with noise of standard deviation σ, is
(ε, δ)-differentially private for every ε with

    δ(ε) = Φ(Δ/(2σ) - εσ/Δ) - e^ε Φ(-Δ/(2σ) - εσ/Δ)

for continuous noise, and this δ is the smallest one [BW18]. For integers with discrete noise, P
its probabilities, it is the sum of P(y) - e^ε P(y + Δ) over the integers y beyond εσ²/Δ - Δ/2
[CKS20], where all of the terms are positive.

The difference loses all digits where ε or Δ/σ is small. With M(x) = Φ(-x)/φ(x), whose derivative
is x M(x) - 1, r = Δ/σ and a = εσ/Δ - r/2, for which φ(a) = e^ε φ(a + r), it is

    δ(ε) = φ(a) (M(a) - M(a + r)) = φ(a) ∫ (1 - x M(x)) dx    from a to a + r.

[BW18] Balle, Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018,
Theorem 8. [CKS20] Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy",
NeurIPS 2020, Theorem 7.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr

from skldp._validation import check_epsilon, check_integer, check_level, is_real
from skldp.random._discrete_laplace import check_positive_rational

__all__ = ["discrete_gaussian_delta", "gaussian_delta", "gaussian_scale"]

_LARGEST_SUMMED = 2.0**17  # standard deviations beyond which sums are replaced by integrals
_TAIL = 9.0  # standard deviations beyond the threshold; what is left out is below e^-40 of it
_ROUNDING = 1e-9  # scales are rounded up by this share, floats are wrong by less
_NO_FLOAT = 40.0  # standard deviations beyond which a probability is no float
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)  # exact to rounding for ratios up to 1


def gaussian_delta(epsilon: float, scale: float, sensitivity: float = 1.0) -> float:
    """Return the δ of continuous Gaussian noise.

    Parameters
    ----------
    epsilon : float
        Privacy level, at least 0.
    scale : float
        Standard deviation of the noise, positive.
    sensitivity : float, default=1.0
        Largest change that one user can make (for vectors, in the Euclidean norm); positive.

    Returns
    -------
    float
        The smallest δ.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not a number, or out of range.

    Examples
    --------
    >>> from skldp.random import gaussian_delta
    >>> round(gaussian_delta(1.0, 4.225, 1.0), 8)
    1e-06
    """
    epsilon = float(check_epsilon(epsilon))
    ratio = _positive(sensitivity, "sensitivity") / _positive(scale, "scale")
    return math.exp(_log_delta(epsilon, ratio))


def _log_delta(epsilon: float, ratio: float) -> float:
    """Return ln δ for a change of `ratio` standard deviations."""
    return _log_excess(epsilon, epsilon / ratio - ratio / 2, ratio, 0.0)


def _log_excess(epsilon: float, position: float, ratio: float, beyond: float) -> float:
    """Return ln(Φ(-p) - e^ε Φ(-p - r)) for a position p at or beyond a.

    `beyond` is the privacy loss at p that exceeds ε: r (p - a), without cancellation.
    """
    if position > _NO_FLOAT:
        return -math.inf
    if ratio > 1:
        above = float(log_ndtr(-position))
        below = min(epsilon + float(log_ndtr(-position - ratio)), above)
        share = -math.expm1(below - above)
        return above + math.log(share) if share > 0 else -math.inf
    x = position + ratio / 2 * (1 + _NODES)
    drop = ratio / 2 * float(_WEIGHTS @ (1 - x * _mills(x)))
    rest = -math.expm1(-beyond) * float(_mills(position + ratio))
    return math.log(drop + rest) - position * position / 2 - math.log(2 * math.pi) / 2


def _mills(x: Any) -> Any:
    """Return Φ(-x)/φ(x)."""
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))


def gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the standard deviation that continuous Gaussian noise needs.

    Parameters
    ----------
    epsilon : float
        Privacy level, positive.
    delta : float
        Strictly between 0 and 1.
    sensitivity : float, default=1.0
        Largest change that one user can make (for vectors, in the Euclidean norm); positive.

    Returns
    -------
    float
        The smallest one, rounded up by about 1e-9 of itself.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not a number, or out of range.

    Notes
    -----
    The analytic calibration of Balle and Wang (2018), at any ε. The classical
    ``sensitivity * sqrt(2 ln(1.25 / delta)) / epsilon`` holds for ε up to 1, and is larger.

    Examples
    --------
    >>> from skldp.random import gaussian_scale
    >>> round(gaussian_scale(1.0, 1e-6), 3)
    4.225
    """
    epsilon = float(check_epsilon(epsilon))
    if epsilon == 0:
        raise ValueError("epsilon must be positive.")
    delta = check_level(delta, "delta")
    goal = math.log(delta)

    def excess(log_ratio: float) -> float:
        return max(_log_delta(epsilon, math.exp(log_ratio)), -1e6) - goal

    # δ grows with the ratio of the change to the deviation, from 0 to 1.
    low, high = -1.0, 1.0
    while excess(low) > 0:
        low -= 2.0
    while excess(high) < 0:
        high += 2.0
    ratio = math.exp(float(brentq(excess, low, high, xtol=1e-13, rtol=1e-14)))
    return _positive(sensitivity, "sensitivity") / ratio * (1 + _ROUNDING)


def discrete_gaussian_delta(
    epsilon: float | Fraction, variance: int | float | Fraction, sensitivity: int = 1
) -> float:
    """Return the δ of an integer released with discrete Gaussian noise.

    Parameters
    ----------
    epsilon : float or Fraction
        Privacy level, at least 0.
    variance : int, float or Fraction
        The parameter σ² of `discrete_gaussian`, positive.
    sensitivity : int, default=1
        Largest change of the integer that one user can make, at least 1.

    Returns
    -------
    float
        The smallest δ, but for rounding (about 1e-12 of it), where the standard deviation is
        below 2^17; an upper bound beyond, larger by less than 1e-6 of it.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not a number, or out of range.

    See Also
    --------
    discrete_gaussian : The noise.
    gaussian_delta : The δ of continuous noise, close to this one from some ten steps on.

    Examples
    --------
    >>> from skldp.random import discrete_gaussian_delta, gaussian_delta
    >>> round(discrete_gaussian_delta(1.0, 100, 10) / gaussian_delta(1.0, 10, 10), 4)
    0.9977
    """
    level = Fraction(check_epsilon(epsilon))
    exact = check_positive_rational(variance, "variance")
    change = check_integer(sensitivity, "sensitivity", minimum=1)
    # All y from here on count; exact, as one integer more or less is a term of the sum.
    first = math.floor(level * exact / change - Fraction(change, 2)) + 1
    deviation = math.sqrt(exact)
    if deviation > _LARGEST_SUMMED:
        return _integral_bound(level, exact, change, first)
    last = max(first, 0) + math.ceil(_TAIL * deviation) + 1
    # Below 0 the probabilities fall again, and are left out where they are negligible as well.
    start = max(first, -math.ceil((_TAIL + 1) * deviation) - 1)
    total = float(_terms(np.arange(start, last + 1), float(level), exact, change).sum())
    if start > first:  # what was left out, each at most its probability
        total += 2 * math.exp(-0.5 * (start / deviation) ** 2)
    return min(total / _normalizer(deviation), 1.0)


def _terms(y: Any, epsilon: float, variance: Fraction, change: int) -> Any:
    """Return P(y) - e^ε P(y + Δ), times the normalizing sum, without cancellation."""
    sigma2 = float(variance)
    loss = change * (2.0 * y + change) / (2 * sigma2)
    return np.exp(-(y * (y / (2 * sigma2)))) * -np.expm1(np.minimum(epsilon - loss, 0.0))


def _normalizer(deviation: float) -> float:
    """Return Σ e^(-y²/(2σ²)) over the integers."""
    if deviation >= 4:  # Poisson summation: off by less than 2 e^(-2π²σ²), 1e-137
        return deviation * math.sqrt(2 * math.pi)
    y = np.arange(1, math.ceil(40 * deviation) + 2)
    return 1 + 2 * float(np.exp(-((y / deviation) ** 2) / 2).sum())


def _integral_bound(epsilon: Fraction, variance: Fraction, change: int, first: int) -> float:
    """Bound the sum by the Euler-Maclaurin formula, remainder included.

    With f the terms, which are smooth, Σ f = ∫ f + f(first)/2 - f'(first)/12 + r, where r is at
    most a twelfth of the total variation of f'. From f' = -(y/σ²) f + (Δ/σ²) e^ε P(y + Δ), with
    0 <= f <= P(y) min(1, Δ(y - t)/σ²) beyond the threshold t, abs(f') <= 2 P Δ/σ², P the largest
    probability there. f' has at most four monotone pieces.
    """
    deviation = math.sqrt(variance)
    ratio, position = change / deviation, first / deviation
    beyond = float(change * (2 * first + change) / (2 * variance) - epsilon)
    integral = math.exp(_log_excess(float(epsilon), position, ratio, beyond))
    largest = math.exp(-0.5 * max(position, 0.0) ** 2) / _normalizer(deviation)
    density = math.exp(-0.5 * position**2) / _normalizer(deviation)
    term = density * -math.expm1(-beyond)
    slope = 2 * largest * change / float(variance)
    return min((integral + term / 2 + slope) * (1 + _ROUNDING), 1.0)


def _positive(value: Any, name: str) -> float:
    if not is_real(value):
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}.")
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}.")
    return float(value)
