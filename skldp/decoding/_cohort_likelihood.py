"""Maximum likelihood for cohorts and buckets, by reweighted least squares on the simplex."""

import numpy as np
from numpy.typing import NDArray

from skldp.decoding._cohort_system import CohortSystem
from skldp.decoding._least_squares import simplex_least_squares

__all__ = ["cohort_maximum_likelihood"]

_MAX_ROUNDS = 30


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
    tolerance: float = 1e-9,
) -> NDArray[np.float64]:
    """Return the most likely frequencies of the candidates.

    The report rates are m = offset + slope (X p + β). Least squares with the weights n_c / m (for
    independent bits n_c / (m (1 - m))) at the current p is a step of Fisher scoring, and its fixed
    point is the maximum: both have the gradient Xᵀ (T / m - n_c) there.

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
    tolerance : float, default=1e-9
        Gain in log-likelihood per report at which it stops.

    Returns
    -------
    ndarray of float64 of shape (S,)
        On the simplex, or below it.
    """
    target = shares - system.centre
    observed = offset + slope * shares
    counts = observed * n_reports[:, np.newaxis]
    misses = n_reports[:, np.newaxis] - counts

    def rates(p: NDArray[np.float64]) -> NDArray[np.float64]:
        low = np.nextafter(0.0, 1.0) if offset == 0 else offset
        high = offset + slope
        return np.clip(offset + slope * (system.forward(p) + system.centre), low, high)

    def log_likelihood(m: NDArray[np.float64]) -> float:
        value = float((counts * np.log(m)).sum())
        return value + float((misses * np.log1p(-m)).sum()) if independent_bits else value

    p = start
    m = rates(p)
    best = log_likelihood(m)
    total = float(n_reports.sum())
    for _ in range(_MAX_ROUNDS):
        weights = n_reports[:, np.newaxis] / (m * (1.0 - m) if independent_bits else m)
        reweighted = CohortSystem(system.table, system.n_buckets, weights, system.centre)
        fit = simplex_least_squares(
            reweighted, target, sum_at_most_one=sum_at_most_one, start=p, tolerance=1e-7
        )
        new_m = rates(fit.p)
        value = log_likelihood(new_m)
        # Fisher scoring can overshoot; halve the step until the likelihood does not fall.
        candidate, halvings = fit.p, 0
        while value < best and halvings < 20:
            candidate = 0.5 * (candidate + p)
            new_m = rates(candidate)
            value = log_likelihood(new_m)
            halvings += 1
        if value <= best:
            break
        gain, p, m, best = value - best, candidate, new_m, value
        if gain <= tolerance * total:
            break
    return p
