"""Weights of a mean under heterogeneous privacy, as functions of the levels alone.

An affine estimate ``sum_i w_i x_i + noise`` with noise of scale η (in widths of the bounds) gives
user i the level w_i/η (Lemma 1 of [C23]), so η = max_i w_i/ε_i is the least noise that keeps every
promise. Its squared error is at most ``v ‖w‖² + N η²``, with v the variance of the data and
N η² that of the noise; only the ratio N/v matters for the weights (8 for one column, Laplace noise
and the worst-case variance 1/4).

Levels here are *linear*: ε for Laplace noise, √(2ρ) for Gaussian noise at the zCDP level ρ. They
may hold 0 (not used) and infinity (public).

[C23] Chaudhuri, Courtade, Mean estimation under heterogeneous privacy: some privacy can be free,
ISIT 2023, arXiv 2305.09668. The closed form of the optimum is this project's own (from the
Karush-Kuhn-Tucker conditions).
"""

import importlib
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

__all__ = [
    "noise_of_weights",
    "optimal_threshold",
    "optimal_weights",
    "optimal_weights_cvxpy",
    "proportional_weights",
    "public_weights",
    "threshold_weights",
]


def optimal_threshold(levels: FloatArray, ratio: float) -> float:
    """Return the level s above which a user's budget is not worth using.

    Parameters
    ----------
    levels : ndarray of float64 of shape (n,)
        Linear levels, at least 0, possibly infinite; not all 0.
    ratio : float
        N/v, positive.

    Returns
    -------
    float
        The root of ``sum_i ε_i max(s - ε_i, 0) = N/v``; infinity where no level is both positive
        and finite, so that no noise is needed.
    """
    ascending = np.sort(levels)
    first = int(np.searchsorted(ascending, 0.0, side="right"))
    last = int(np.searchsorted(ascending, np.inf, side="left"))
    private = ascending[first:last]
    if private.size == 0:
        return np.inf
    # Of the k smallest levels, of sum S and sum of squares Q, all are below the root where
    # ε_k S - Q < N/v, ε_k being the next one. Halving adds up each stretch of levels once.
    low, high = 1, private.size
    total, squares = float(private[0]), float(private[0] ** 2)
    while low < high:
        middle = (low + high) // 2
        stretch = private[low:middle]
        total_there = total + float(stretch.sum())
        squares_there = squares + float(np.einsum("i,i", stretch, stretch))
        level = float(private[middle])
        if level * total_there - squares_there < ratio:
            low = middle + 1
            total, squares = total_there + level, squares_there + level * level
        else:
            high = middle
    # The difference above cancels, but near its root s hardly depends on which k was found; what s
    # is computed from are sums of positive numbers.
    return (ratio + squares) / total


def optimal_weights(levels: FloatArray, ratio: float) -> tuple[FloatArray, float]:
    """Return the weights that minimise ``v ‖w‖² + N η²``, and the threshold s.

    They are ``min(ε_i, s) / sum_j min(ε_j, s)``: proportional to the level up to s, equal above.

    Parameters
    ----------
    levels : ndarray of float64 of shape (n,)
        Linear levels; not all 0.
    ratio : float
        N/v, positive.

    Returns
    -------
    weights : ndarray of float64 of shape (n,)
        Non-negative, of sum 1.
    threshold : float
        s.
    """
    threshold = optimal_threshold(levels, ratio)
    if threshold == np.inf:
        return public_weights(levels), threshold
    weights = np.minimum(levels, threshold)
    weights /= weights.sum()
    return weights, threshold


def optimal_weights_cvxpy(levels: FloatArray, ratio: float) -> FloatArray:
    """Return the weights of `optimal_weights` as a convex solver finds them.

    Equal levels share one variable. Solvers may call a solution optimal in which some weight
    exceeds η ε_i by far: what exceeds is cut off, and callers compute η from what is returned.

    Parameters
    ----------
    levels : ndarray of float64 of shape (n,)
        Linear levels; not all 0.
    ratio : float
        N/v, positive.

    Returns
    -------
    ndarray of float64 of shape (n,)
        Non-negative, of sum 1.

    Raises
    ------
    ValueError
        If what the solver finds is worse than the optimum by more than a part in a million.
    """
    if not np.any((levels > 0) & np.isfinite(levels)):
        return public_weights(levels)
    cvxpy: Any = importlib.import_module("cvxpy")  # on first use: it takes half a second
    distinct, group, counts = np.unique(levels, return_inverse=True, return_counts=True)
    used = distinct > 0
    values, sizes = distinct[used], counts[used]
    # In units of 1/n, and with the noise measured by its part of the objective.
    share = sizes / sizes.sum()
    noise_unit = np.sqrt(ratio / sizes.sum())
    weight, noise = cvxpy.Variable(values.size), cvxpy.Variable()
    finite = np.isfinite(values)
    cost = noise_unit / values[finite]
    scale = np.maximum(cost, 1.0)
    constraints = [
        weight >= 0,
        share @ weight == 1,
        cvxpy.multiply(cost / scale, weight[np.flatnonzero(finite)]) <= noise * (1.0 / scale),
    ]
    objective = cvxpy.sum_squares(cvxpy.multiply(np.sqrt(share), weight)) + cvxpy.square(noise)
    problem = cvxpy.Problem(cvxpy.Minimize(objective), constraints)
    try:
        with warnings.catch_warnings():
            # "May be inaccurate": it is compared with the optimum below.
            warnings.simplefilter("ignore", UserWarning)
            problem.solve(
                solver=cvxpy.CLARABEL,
                tol_gap_abs=1e-12,
                tol_gap_rel=1e-12,
                tol_feas=1e-12,
                reduced_tol_gap_abs=1e-8,
                reduced_tol_gap_rel=1e-8,
                reduced_tol_feas=1e-8,
            )
    except cvxpy.error.SolverError as error:
        raise ValueError(_UNSOLVED) from error
    if problem.status not in (cvxpy.OPTIMAL, cvxpy.OPTIMAL_INACCURATE):
        raise ValueError(_UNSOLVED)
    solved = np.maximum(np.asarray(weight.value, dtype=np.float64), 0.0)
    if noise.value > 0:
        solved[finite] = np.minimum(solved[finite], float(noise.value) / cost)
    spread = np.zeros(distinct.size)
    spread[used] = solved
    weights: FloatArray = spread[group]
    total = weights.sum()
    if not (np.isfinite(total) and total > 0):
        raise ValueError(_UNSOLVED)
    weights /= total
    best, _ = optimal_weights(levels, ratio)
    if not _objective(weights, levels, ratio) <= _objective(best, levels, ratio) * (1 + 1e-6):
        raise ValueError(_UNSOLVED)
    return weights


def _objective(weights: FloatArray, levels: FloatArray, ratio: float) -> float:
    return float(np.dot(weights, weights)) + ratio * noise_of_weights(weights, levels) ** 2


_UNSOLVED = (
    "cvxpy found no optimal weights; the levels may be too far apart for a general solver. Use "
    'solver="exact".'
)


def proportional_weights(levels: FloatArray) -> FloatArray:
    """Return weights proportional to the levels; public users take all where there are any."""
    if np.isinf(levels).any():
        return public_weights(levels)
    weights: FloatArray = levels / levels.sum()
    return weights


def public_weights(levels: FloatArray) -> FloatArray:
    """Return equal weights of the users whose level is infinite, 0 for all others."""
    public = np.isinf(levels)
    weights: FloatArray = public / max(np.count_nonzero(public), 1)
    return weights


def threshold_weights(levels: FloatArray, ratio: float) -> tuple[FloatArray, float]:
    """Return equal weights of all users at or above one level τ, and τ.

    τ minimises ``v/m + N/(m τ)²``, with m the number of users whose level is at least τ.

    Parameters
    ----------
    levels : ndarray of float64 of shape (n,)
        Linear levels; not all 0.
    ratio : float
        N/v, positive.

    Returns
    -------
    weights : ndarray of float64 of shape (n,)
        Equal where ``levels >= τ``, else 0.
    threshold : float
        τ, one of the levels.
    """
    descending = np.sort(levels)[::-1]
    descending = descending[: np.count_nonzero(descending > 0)]
    # Of equal levels only the last one: there m counts all of them.
    is_last = np.append(descending[1:] != descending[:-1], True)
    candidates = descending[is_last]
    n_used = np.flatnonzero(is_last) + 1.0
    bounds = 1 / n_used + ratio / (n_used * candidates) ** 2
    threshold = float(candidates[np.argmin(bounds)])
    used = levels >= threshold
    return used / np.count_nonzero(used), threshold


def noise_of_weights(weights: FloatArray, levels: FloatArray) -> float:
    """Return η = max_i w_i/ε_i, the least noise with which every level is kept.

    Infinite where a user of level 0 has a positive weight.
    """
    ratios = np.zeros_like(weights)
    used = weights > 0
    with np.errstate(divide="ignore"):
        np.divide(weights, levels, out=ratios, where=used)
    return float(ratios.max())
