"""Whether two agents share a mean, tested from two statistics.

A sum of independent deviations that satisfies Bernstein's condition with variance V and scale B
exceeds τ in absolute value with a probability of at most 2 exp(-τ²/(2(V + B τ))). Set equal to
the significance γ and solved for τ,

    τ = B ℓ + √(B² ℓ² + 2 V ℓ),    ℓ = ln(2/γ).

Two agents may share a mean if their estimates differ by at most τ, with V the sum of the two
variances and B the larger scale. That there is a test of this kind, from Bernstein's condition,
stands in the literature; this form of it is this project's own.

Where V is estimated the bound holds only about. Taking V too large is no safe side: an agent that
differs is then accepted, and what it says is averaged in.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skldp.collaborative._statistics import Statistics

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

__all__ = ["accepted", "compatible", "log_two_over", "row_blocks", "threshold"]

# Pairs of agents that are worked on at a time: a dozen arrays of them fit a cache.
_PAIRS = 1 << 14


def threshold(variance: ArrayLike, scale: ArrayLike, logarithm: ArrayLike) -> FloatArray:
    """Return the largest difference that does not reject a common mean.

    Parameters
    ----------
    variance : array-like of float64
        Variance V of the difference.
    scale : array-like of float64
        Scale B of its tails.
    logarithm : array-like of float64
        ℓ = ln(2/γ), see `log_two_over`.

    Returns
    -------
    ndarray of float64
        τ, of the broadcast shape.
    """
    linear = np.multiply(scale, logarithm)
    return np.asarray(linear + np.sqrt(linear * linear + 2 * np.multiply(variance, logarithm)))


def log_two_over(significance: float | str, count: NDArray[np.int64]) -> FloatArray:
    """Return ln(2/γ).

    Parameters
    ----------
    significance : float or "1/t"
        γ, or one over the count.
    count : ndarray of int64
        Observations of the agents that test.

    Returns
    -------
    ndarray of float64 of the shape of `count`
        Where the count is 0, that of one observation.
    """
    if isinstance(significance, str):
        return np.log(2.0 * np.maximum(count, 1))
    return np.full(count.shape, np.log(2 / significance))


def compatible(own: Statistics, peers: Statistics, significance: float | str) -> BoolArray:
    """Test pairs of agents.

    Parameters
    ----------
    own : Statistics
        Of those that test.
    peers : Statistics
        Of those that are tested, of a shape that broadcasts with the first.
    significance : float or "1/t"
        Probability γ of rejecting an agent with the same mean; "1/t" divides 1 by the number of
        observations in the own statistic.

    Returns
    -------
    ndarray of bool of the broadcast shape
        False where either mean is unknown.
    """
    limit = threshold(
        own.variance + peers.variance,
        np.maximum(own.scale, peers.scale),
        log_two_over(significance, own.n_observed),
    )
    # NaN compares as false.
    agree: BoolArray = np.abs(peers.mean - own.mean) <= limit
    return agree


def accepted(own: Statistics, peers: Statistics, significance: float | str) -> BoolArray:
    """Test every agent against every other.

    Parameters
    ----------
    own : Statistics
        Of shape (M,): what each agent tests from.
    peers : Statistics
        Of shape (M,), where all have seen the same of each other, or (M, M) with one row for what
        each agent has seen.
    significance : float or "1/t"
        As in `compatible`.

    Returns
    -------
    ndarray of bool of shape (M, M)
        Row a: whom a accepts. The diagonal is True: an agent believes itself.
    """
    n_agents = own.mean.size
    result = np.empty((n_agents, n_agents), dtype=bool)
    for rows in row_blocks(n_agents):
        seen = peers if peers.mean.ndim == 1 else peers.at(rows)
        result[rows] = compatible(own.at((rows, np.newaxis)), seen, significance)
    np.fill_diagonal(result, True)
    return result


def row_blocks(n_agents: int) -> list[slice]:
    """Return slices of agents, so that a slice times all agents stays in the cache.

    Parameters
    ----------
    n_agents : int
        How many there are.

    Returns
    -------
    list of slice
        In order, together all agents.
    """
    height = max(1, _PAIRS // max(n_agents, 1))
    return [slice(start, start + height) for start in range(0, n_agents, height)]
