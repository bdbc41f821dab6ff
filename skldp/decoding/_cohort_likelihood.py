"""Maximum likelihood for cohorts and buckets, by reweighted least squares on the simplex."""

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from skldp.decoding._cohort_system import CohortSystem
from skldp.decoding._simplex_least_squares import solve_on_simplex
from skldp.exceptions import DecodingWarning

__all__ = ["cohort_maximum_likelihood"]

_MAX_ROUNDS = 50
_MAX_PASSES = 300  # of a round
_NEGLIGIBLE = 0.01  # of the deviance that chance alone leaves


def cohort_maximum_likelihood(
    system: CohortSystem,
    shares: NDArray[np.float64],
    n_reports: NDArray[np.int64],
    offset: float,
    slope: float,
    *,
    independent_bits: bool,
    sum_at_most_one: bool,
    start: NDArray[np.float64],
    tolerance: float = 1e-5,
) -> NDArray[np.float64]:
    """Return the most likely frequencies of the candidates.

    The report rates are m = offset + slope (X p + β). Least squares with the weights n_c / m (for
    independent bits n_c / (m (1 - m))) at the current p is a step of Fisher scoring, and its fixed
    point is the maximum: both have the gradient Xᵀ (T / m - n_c) there. The likelihood is concave,
    so the gradient also bounds how much of the log-likelihood is missing, which is what stops it.

    Parameters
    ----------
    system : CohortSystem
        The centred system; its weights are not used.
    shares : ndarray of shape (n_cohorts, n_buckets)
        Unbiased bucket shares b.
    n_reports : ndarray of int of shape (n_cohorts,)
        Reports of each cohort.
    offset, slope : float
        P(bucket reported | not the value's), and its rise when it is.
    independent_bits : bool
        RAPPOR (columns taken as independent binomials) instead of k-RR (multinomial).
    sum_at_most_one : bool
        Whether the candidates leave some of the mass to others.
    start : ndarray of shape (S,)
        Where to start.
    tolerance : float, default=1e-5
        How far below its maximum the log-likelihood may remain, for each candidate (twice its
        distance from the maximum at the truth is about 1 for each).

    Returns
    -------
    ndarray of float64 of shape (S,)
        On the simplex, or below it.

    Warns
    -----
    DecodingWarning
        If it stops short of the tolerance.
    """
    totals = n_reports[:, np.newaxis].astype(np.float64)
    counts = np.maximum((offset + slope * shares) * totals, 0.0)
    counts[counts < 1e-6] = 0.0  # rounding
    misses = np.maximum(totals - counts, 0.0)
    lowest = max(offset, np.finfo(float).tiny)
    one_report = 1.0 / np.maximum(totals, 1.0)

    def rates(p: NDArray[np.float64]) -> NDArray[np.float64]:
        m = offset + slope * (system.forward(p) + system.centre)
        return np.clip(m, lowest, offset + slope)

    def score(m: NDArray[np.float64]) -> NDArray[np.float64]:
        return counts / m - (misses / (1.0 - m) if independent_bits else totals)

    def missing(p: NDArray[np.float64], m: NDArray[np.float64]) -> float:
        """Return an upper bound on the rise of the log-likelihood that is still possible."""
        gradient = slope * system.adjoint(score(m))
        best = float(gradient.max())
        return (max(best, 0.0) if sum_at_most_one else best) - float(gradient @ p)

    def rise(m: NDArray[np.float64], new: NDArray[np.float64]) -> float:
        """Return the rise of the log-likelihood, without the cancellation of two large sums."""
        gain = counts * np.log1p((new - m) / m)
        if independent_bits:
            gain += misses * np.log1p((m - new) / (1.0 - m))
        else:
            gain -= totals * (new - m)
        return float(gain.sum())

    def explains_everything(m: NDArray[np.float64]) -> bool:
        """Say whether the counts are closer to their rates than chance would bring them.

        Half the deviance is half the number of rows, on average, at the truth. Candidates that are
        more than the rows can fit everything, which takes long and makes the estimate no better.
        """
        if system.n_candidates <= system.max_rank:
            return False
        expected = totals * m
        half_deviance = float((xlogy(counts, counts) - xlogy(counts, expected)).sum())
        if independent_bits:
            other = totals - expected
            half_deviance += float((xlogy(misses, misses) - xlogy(misses, other)).sum())
        else:
            half_deviance += float((expected - counts).sum())
        n_rows = int(np.count_nonzero(totals)) * counts.shape[1]
        return bool(half_deviance < 0.5 * _NEGLIGIBLE * n_rows)

    rounding = 1e-13 * float(totals.sum())
    goal = tolerance * system.n_candidates + rounding
    m = rates(start)
    if missing(start, m) <= goal or explains_everything(m):
        return start
    # Inside the simplex, so that no report is as good as impossible.
    p = 0.95 * start + 0.05 / system.n_candidates
    m = rates(p)
    gap = missing(p, m)
    is_slow, accuracy = False, 0.05
    for _ in range(_MAX_ROUNDS):
        if gap <= goal or explains_everything(m):
            return p
        # Where nothing was reported the likelihood is linear in m, and any weight will do: as
        # m goes to 0 that of Fisher scoring would stop all progress.
        spread = np.where(counts == 0.0, np.maximum(m, one_report), m)
        if independent_bits:
            spread *= np.where(misses == 0.0, np.maximum(1.0 - m, one_report), 1.0 - m)
        weights = totals / spread
        if is_slow:  # the counts are far from their expectation: the curvature that they have
            curvature = counts / m**2
            if independent_bits:
                curvature += misses / (1.0 - m) ** 2
            np.maximum(weights, curvature, out=weights)
        aim = m + np.divide(score(m), weights, out=np.zeros_like(m), where=weights > 0.0)
        fit = solve_on_simplex(
            system.reweighted(weights),
            (aim - offset) / slope - system.centre,
            sum_at_most_one=sum_at_most_one,
            start=p,
            tolerance=1e-14,
            absolute_tolerance=accuracy * gap / slope**2,
            max_passes=_MAX_PASSES,
        )
        # Scoring can overshoot; halve the step until the likelihood does not fall.
        candidate = fit.p
        new = rates(candidate)
        for _ in range(20):
            if rise(m, new) > -rounding:
                break
            candidate = 0.5 * (candidate + p)
            new = rates(candidate)
        else:
            # The gap was a loose bound, and the fit is no better than its start: fit closer.
            accuracy *= 0.03
            if accuracy < 1e-7:
                break
            continue
        p, m, before = candidate, new, gap
        gap = missing(p, m)
        is_slow = is_slow or gap > 0.5 * before
    if gap > 10.0 * goal and not explains_everything(m):
        warnings.warn(
            f"Maximum likelihood stopped up to {gap:.2g} below the largest log-likelihood.",
            DecodingWarning,
            stacklevel=2,
        )
    return p
