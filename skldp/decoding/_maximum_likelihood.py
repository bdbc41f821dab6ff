"""Maximum likelihood over the simplex, for k-ary randomized response and for RAPPOR's columns.

Both problems maximise a concave function of the frequencies ``p`` that is a sum over symbols,
``sum_j f_j(p_j)``, subject to ``p >= 0`` and ``sum(p) = 1``. So there is one multiplier ``v``
with ``f_j'(p_j) = v`` where ``p_j > 0`` and ``f_j'(0) <= v`` elsewhere (Karush, Kuhn, Tucker),
each ``p_j`` is a decreasing function of ``v``, and what remains is to find the ``v`` at which
they sum to one. For k-ary randomized response that takes one sort; for RAPPOR, one root.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from skldp._validation import finite_floats
from skldp.decoding._simplex import FloatArray

# Sums and products of counts stay far from overflow.
_LARGEST_COUNT = 1e100
# The root finder stops when its bracket is this small, absolute and relative ...
_ROOT_ABSOLUTE = 1e-15
_ROOT_RELATIVE = 4 * np.finfo(np.float64).eps
# ... and corrections of first order follow until the sum is 1 up to this.
_SUM_TOLERANCE = 1e-14


def krr_maximum_likelihood(counts: npt.ArrayLike, odds_minus_one: float) -> FloatArray:
    """Maximum-likelihood frequencies from reports of k-ary randomized response.

    Parameters
    ----------
    counts : array-like of shape (..., k)
        How often each symbol was reported; non-negative, at least one report in all. Every
        vector along the last axis is decoded on its own.
    odds_minus_one : float
        E - 1, where E is the odds of the channel: the probability of reporting the true
        symbol divided by that of any one other. It is ``exp(epsilon) - 1`` for the realised
        epsilon. Positive; infinity stands for reports without noise.

    Returns
    -------
    ndarray of shape (..., k) and dtype float64
        Non-negative frequencies that sum to 1.

    Raises
    ------
    ValueError
        If `counts` has no last axis, an empty one, or entries that are not finite non-negative
        numbers, or all entries of a vector are zero, or `odds_minus_one` is not positive.

    See Also
    --------
    independent_bits_maximum_likelihood : The same for RAPPOR.
    project_simplex : Onto the simplex without a likelihood.

    Notes
    -----
    A report is symbol j with probability proportional to ``(E - 1) p_j + 1`` (equation 5 of
    [1]_), so the estimate maximises ``sum_j counts_j log((E - 1) p_j + 1)`` over the simplex.
    It is ``max(counts_j / v - 1 / (E - 1), 0)`` for one ``v``, found by sorting. Where the
    unbiased estimate (equation 6) has no negative entry, the two agree. The paper has no closed
    form for this estimate; the one here is derived in the source.

    References
    ----------
    .. [1] P. Kairouz, K. Bonawitz and D. Ramage, "Discrete Distribution Estimation under Local
       Privacy", ICML 2016; arXiv:1602.07387.

    Examples
    --------
    >>> from skldp.decoding import krr_maximum_likelihood
    >>> krr_maximum_likelihood([60, 30, 10], odds_minus_one=3.0)
    array([0.77777778, 0.22222222, 0.        ])
    """
    reported = _check_counts(counts)
    if not reported.any(axis=-1).all():
        raise ValueError("counts must not be all zero: there are no reports to estimate from.")
    if not odds_minus_one > 0:
        raise ValueError(
            f"odds_minus_one must be positive, got {odds_minus_one!r}: without any privacy loss "
            "the reports carry no information."
        )
    # With d = 1/(E-1) the likelihood is sum_j T_j log(p_j + d) + constant, so p_j > 0 has
    # T_j / (p_j + d) = v, that is p_j = T_j / v - d, and p_j = 0 has T_j <= v d. If A is the set
    # of positive entries, a their number and S = sum_A T, then sum_A p = 1 gives
    # v = S / (1 + a d). A holds the largest counts, so it is one of k prefixes of the sorted
    # counts: the longest whose smallest entry T_a is positive, T_a > v d. Inserting v:
    #     T_a > d (S - a T_a)   and   p_j = (T_j + d (a T_j - S)) / S.
    # a T_j - S is a difference of large numbers that d, up to 1e300, magnifies. From the gaps
    # g_j = T_1 - T_j to the largest count it is G - a g_j, G = sum_A g: exact for integers.
    descending = np.sort(reported, axis=-1)[..., ::-1]
    top = descending[..., :1]
    # At the smallest normal number d is still finite; below it nothing would change.
    spread = 1.0 / max(float(odds_minus_one), np.finfo(np.float64).tiny)
    gaps = top - descending
    sums = np.cumsum(gaps, axis=-1)
    n_first = np.arange(1.0, reported.shape[-1] + 1.0)
    with np.errstate(over="ignore"):  # An infinite requirement is one that is not met.
        is_positive = descending > spread * (n_first * gaps - sums)
    last = np.count_nonzero(is_positive, axis=-1, keepdims=True) - 1
    gap_sum = np.take_along_axis(sums, last, axis=-1)
    smallest = np.take_along_axis(descending, last, axis=-1)
    in_support = reported >= smallest
    # Outside the support the value is not used; its product with 1e300 may overflow.
    gaps = np.where(in_support, top - reported, 0.0)
    frequencies = reported + spread * (gap_sum - (last + 1.0) * gaps)
    np.maximum(frequencies, 0.0, out=frequencies)
    frequencies *= in_support
    frequencies /= np.where(in_support, reported, 0.0).sum(axis=-1, keepdims=True)
    frequencies /= frequencies.sum(axis=-1, keepdims=True)
    return frequencies


def independent_bits_maximum_likelihood(
    counts: npt.ArrayLike, n_reports: float, flip_probability: float
) -> FloatArray:
    """Maximum-likelihood frequencies from the column sums of RAPPOR reports.

    Parameters
    ----------
    counts : array-like of shape (..., k)
        In how many reports each bit is set; between 0 and `n_reports`. Every vector along the
        last axis is decoded on its own, one after the other.
    n_reports : float
        The number of reports, positive.
    flip_probability : float
        The probability q with which each bit of the one-hot code was flipped, 0 <= q < 1/2.

    Returns
    -------
    ndarray of shape (..., k) and dtype float64
        Non-negative frequencies that sum to 1.

    Raises
    ------
    ValueError
        If `counts` has no last axis, an empty one, or entries that are not numbers between 0
        and `n_reports`, `n_reports` is not positive and finite, or `flip_probability` is not in
        [0, 1/2).

    See Also
    --------
    krr_maximum_likelihood : The same for k-ary randomized response.

    Notes
    -----
    Bit j of a report is set with probability ``m_j = q + (1 - 2 q) p_j`` (equation 10 of [1]_).
    With T the counts and n the number of reports, the estimate maximises ``sum_j T_j log(m_j) +
    (n - T_j) log(1 - m_j)`` over the simplex: the likelihood of the column sums as if the columns
    were independent. They are, given the values of the users, but each user has only one
    value, which correlates the columns a little. This composite likelihood ignores that; it is
    consistent and needs nothing but the sums. The paper decodes RAPPOR by inversion, and this
    decoder is derived in the source. Where the unbiased estimate (equation 11) lies in the
    simplex, the two agree.

    For a given multiplier each ``m_j`` solves a quadratic equation. The multiplier is the root
    of a monotone function, found by Brent's method inside a bracket known in advance.

    References
    ----------
    .. [1] P. Kairouz, K. Bonawitz and D. Ramage, "Discrete Distribution Estimation under Local
       Privacy", ICML 2016; arXiv:1602.07387.

    Examples
    --------
    >>> from skldp.decoding import independent_bits_maximum_likelihood
    >>> independent_bits_maximum_likelihood([70, 40, 20], 100, flip_probability=0.25).round(6)
    array([0.8, 0.2, 0. ])
    """
    reported = _check_counts(counts)
    if not (n_reports > 0 and math.isfinite(n_reports)):
        raise ValueError(f"n_reports must be positive and finite, got {n_reports!r}.")
    if reported.max() > n_reports:
        raise ValueError("counts must not exceed n_reports: every report sets a bit once.")
    if not 0 <= flip_probability < 0.5:
        raise ValueError(
            f"flip_probability must be at least 0 and less than 1/2, got {flip_probability!r}: "
            "at 1/2 the reports carry no information."
        )
    if reported.shape[-1] == 1:
        return np.ones(reported.shape)
    share = reported / n_reports
    rest = (n_reports - reported) / n_reports
    gaps = (reported.max(axis=-1, keepdims=True) - reported) / n_reports
    frequencies = np.empty(reported.shape)
    for row in np.ndindex(reported.shape[:-1]):
        frequencies[row] = _solve_columns(share[row], rest[row], gaps[row], flip_probability)
    return frequencies


# Independent columns. With t = T/n, q the flip probability and s = 1 - 2q, a positive p_j has
# the derivative t/m - (1-t)/(1-m) = v, that is t - m = v m (1-m). As m = q + s p, that is
#
#     r - p = w (c + p (1-p)),    r = (t - q)/s,    w = s v,    c = q (1-q)/s**2,
#
# a quadratic w p**2 - (1+w) p + (r - w c) = 0. Its discriminant is that of the quadratic in m,
# (1+v)**2 - 4 v t = (1-v)**2 + 4 v (1-t): for either sign of v one of the two forms adds only
# non-negative terms. The root p whose m lies in [0, 1] is
#
#     2 (r - w c) / (1 + w + sqrt(discriminant))     for w >= -1,
#     (sqrt(discriminant) - (1 + w)) / (-2 w)        for w < -1,
#
# where nothing cancels but r - w c. That matters near q = 1/2, where both are huge. There, put
# r_j - w c = x - g_j, with x the value for the largest count and g_j = (T_1 - T_j)/(n s) the gap
# to it, known to the last digit, and solve for x: p_1 = 0 at x = 0 and p_1 = 1 at x = 1. For
# smaller q, where a tiny c makes x insensitive to w, solve for v.


def _solve_columns(
    share: FloatArray, rest: FloatArray, gaps: FloatArray, flip: float
) -> FloatArray:
    """Maximise the likelihood of independent columns over the simplex.

    Parameters
    ----------
    share, rest, gaps : ndarray of shape (k,), k >= 2
        T/n, (n - T)/n and (max(T) - T)/n, each with full relative precision.
    flip : float
        The flip probability.
    """
    keep = 1.0 - 2.0 * flip
    flip_variance = flip * (1.0 - flip)
    inverted = (share - flip) / keep
    top = float(share.max())

    def at_common(common: float) -> tuple[FloatArray, FloatArray]:
        multiplier = (top - flip - keep * common) / flip_variance
        return _columns_at(common - gaps / keep, multiplier, keep, share, rest)

    def at_multiplier(multiplier: float) -> tuple[FloatArray, FloatArray]:
        numerators = inverted - multiplier * (flip_variance / keep)
        return _columns_at(numerators, multiplier, keep, share, rest)

    # The brackets are proved in the comments; each end has some slack for rounding.
    columns: Callable[[float], tuple[FloatArray, FloatArray]]
    if flip_variance >= keep**2:
        columns, low, high = at_common, 0.0, 2.0
    elif float(at_multiplier(0.0)[0].sum()) < 1.0:
        # At v = -3 the quadratic for 1 - m gives 1 - m <= 2 (1-t)/(1+3) <= 1/2, so p >= 1/2
        # in each of at least two columns.
        columns, low, high = at_multiplier, -4.0, 0.0
    else:
        # The root is m = 2 t/(1 + v + sqrt(...)) <= 2 t/(1+v), and p <= m/s. Also, no p is
        # positive where v c s >= r for the largest count.
        columns, low, high = at_multiplier, 0.0, 1.0 + 2.0 * float(share.sum()) / keep
        high = min(high, (top - flip) / max(flip_variance, np.finfo(np.float64).tiny))
    solution = brentq(
        lambda unknown: float(columns(unknown)[0].sum()) - 1.0,
        low,
        high,
        xtol=_ROOT_ABSOLUTE,
        rtol=_ROOT_RELATIVE,
    )
    frequencies, root = columns(solution)
    # What the last digit of the unknown left over. From the quadratic, dp/dw is
    # -(c + p (1-p))/sqrt(discriminant): distributed in these proportions the rest of the sum
    # changes the multiplier of all positive entries alike.
    change = flip_variance + keep**2 * frequencies * (1.0 - frequencies)
    change /= np.maximum(root, np.finfo(np.float64).tiny)
    for _ in range(3):
        missing = 1.0 - float(frequencies.sum())
        change[frequencies <= 0.0] = 0.0
        if abs(missing) <= _SUM_TOLERANCE or not change.any():
            break
        frequencies = np.maximum(frequencies + change * (missing / change.sum()), 0.0)
    return frequencies


def _columns_at(
    numerators: FloatArray, multiplier: float, keep: float, share: FloatArray, rest: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Solve the quadratic of every column for a given multiplier.

    `numerators` are the r - w c of the comment above. Returns the frequencies, clipped to
    [0, 1], and the square roots of the discriminants.
    """
    slope = keep * multiplier
    if multiplier >= 0:
        root = np.sqrt((1.0 - multiplier) ** 2 + 4.0 * multiplier * rest)
    else:
        root = np.sqrt((1.0 + multiplier) ** 2 - 4.0 * multiplier * share)
    if slope >= -1:
        # Zero only for a count of zero without noise, whose numerator is zero, too.
        denominators = np.maximum(1.0 + slope + root, np.finfo(np.float64).tiny)
        frequencies = 2.0 * numerators / denominators
    else:
        frequencies = (root - (1.0 + slope)) / (-2.0 * slope)
    return np.clip(frequencies, 0.0, 1.0), root


def _check_counts(counts: npt.ArrayLike) -> FloatArray:
    """Return `counts` as finite non-negative floats with a last axis that is not empty."""
    reported = finite_floats(counts, "counts")
    if reported.ndim == 0 or reported.size == 0:
        raise ValueError(
            f"counts must be a non-empty array of shape (..., k), got shape {reported.shape}."
        )
    if reported.min() < 0:
        raise ValueError("counts must not be negative.")
    if reported.max() > _LARGEST_COUNT:
        raise ValueError(f"counts must not exceed {_LARGEST_COUNT:.0e}.")
    return reported
