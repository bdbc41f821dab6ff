"""Quantiles of the error of a mean: normal sampling error plus Laplace noise.

Central quantiles of ``Normal(0, variance) + sum_g Laplace(scale_g)``: in closed form for one
Laplace variable, by inverting the characteristic function (Gil-Pelaez) for several.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtri

FloatArray = NDArray[np.float64]

__all__ = ["central_quantile"]

_TAIL = 1e-13  # what the inversion may leave out
_LOG_TAIL = -float(np.log(_TAIL))
_LONGEST = 1 << 22


def central_quantile(level: float, variance: float, scales: FloatArray) -> float:
    """Return q with ``P(|Z| <= q) = level``, Z normal plus independent Laplace variables.

    Parameters
    ----------
    level : float
        Strictly between 0 and 1.
    variance : float
        Variance of the normal part, positive or 0.
    scales : ndarray of float64 of shape (g,)
        Laplace scales; zeros are left out.

    Returns
    -------
    float
        The half-width of a central interval.
    """
    scales = np.asarray(scales, dtype=np.float64)
    deviation = float(np.sqrt(variance))
    # Scales far below the rest change nothing that a float would show.
    scales = scales[scales > 1e-9 * max(deviation, float(scales.max(initial=0.0)))]
    if scales.size == 0:
        return float(deviation * -ndtri((1 - level) / 2))
    unit = float(np.sqrt(variance + 2 * (scales**2).sum()))
    relative, normal = scales / unit, deviation / unit
    # With a variance of 1, E exp(Z) <= 2, so P(|Z| > q) <= 4 exp(-q).
    upper = float(np.log(4 / (1 - level)))
    if relative.size == 1:
        if normal < 1e-9:
            return float(-unit * relative[0] * np.log1p(-level))

        def excess(q: float) -> float:
            return _tail(q, normal, float(relative[0])) - (1 - level)

    else:
        frequencies, amplitudes = _characteristic(normal, relative, upper)

        def excess(q: float) -> float:
            return level - float(np.dot(np.sin(frequencies * q), amplitudes))

    if excess(upper) >= 0:  # so close to 1 that the inversion cannot tell; the bound can
        return unit * upper
    return unit * float(brentq(excess, 0.0, upper, xtol=1e-14, rtol=1e-12))


def _tail(q: float, deviation: float, scale: float) -> float:
    """Return P(|Z| > q) for a normal of this deviation plus one Laplace variable."""
    # 2 Φ(-u) + e^(c²/2 - uc) Φ(u - c) - e^(c²/2 + uc) Φ(-u - c), where the exponents of the last
    # two cancel for large c: Φ(-x) = e^(-x²/2) erfcx(x/√2)/2 leaves e^(-u²/2) of them.
    u, c = q / deviation, deviation / scale
    density = np.exp(-u * u / 2)
    if u < c:
        above = density * erfcx((c - u) / np.sqrt(2)) / 2
    else:
        above = np.exp(c * (c / 2 - u) + log_ndtr(u - c))
    below = density * erfcx((c + u) / np.sqrt(2)) / 2
    return float(2 * np.exp(log_ndtr(-u)) + above - below)


def _characteristic(
    deviation: float, scales: FloatArray, upper: float
) -> tuple[FloatArray, FloatArray]:
    """Return u and a, so that ``P(|Z| <= q) = sum_k a_k sin(u_k q)`` for q up to `upper`.

    The midpoint rule for ``(2/π) ∫ sin(uq)/u φ(u) du`` with step h is exact up to the probability
    of |Z| beyond 2π/h - q; the variance of Z is 1, as for `upper`.
    """
    step = 2 * np.pi / (upper + _LOG_TAIL + 2)
    end = np.inf
    if deviation > 0:
        end = np.sqrt(2 * _LOG_TAIL) / deviation
    largest = np.sort(scales)[::-1][:8]
    # φ is at most 1/Π (b_g u)²: where that falls below the tail.
    for n_used in range(1, largest.size + 1):
        log_end = _LOG_TAIL / (2 * n_used) - np.log(largest[:n_used]).mean()
        end = min(end, float(np.exp(log_end)))
    n_steps = int(min(np.ceil(end / step), _LONGEST))
    frequencies: FloatArray = step * np.arange(0.5, n_steps, dtype=np.float64)
    log_phi = -(frequencies**2) * deviation**2 / 2
    for scale in scales:
        log_phi -= np.log1p((scale * frequencies) ** 2)
    amplitudes = np.exp(log_phi) * (2 / np.pi) * step / frequencies
    return frequencies, amplitudes
