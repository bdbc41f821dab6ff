"""One's own mean combined with those of accepted agents.

An accepted agent whose mean is in truth another one does harm for as long as the test cannot tell
them apart, and most where many such agents are averaged: with weights 1/V alone, errors can be
fifty times those of an agent on its own. "pooled" therefore looks at how much the accepted agents
disagree among themselves. With weights w = 1/V of the k accepted agents, oneself left out,

    Q = Σ w (T - Σ w T/Σ w)²

has the expectation k - 1 and the variance 2(k - 1) where they share a mean (Cochran's Q). Beyond
k - 1 + 2√(2(k - 1)) a variance between agents is estimated from it (DerSimonian and Laird),

    τ² = (Q - (k - 1))/(Σ w - Σ w²/Σ w),

and the pool is the mean with weights 1/(V + τ²), of variance 1/Σ[1/(V + τ²)] + τ²: oneself is one
more draw from the agents, so the τ² of one agent does not average out. At last the pool and one's
own mean are averaged by inverse variance.

What it cannot see: one accepted agent alone does not disagree, so in a network of two or three
agents with different means errors are up to 3.5 times those of an agent on its own until the test
separates them; and differences that are small beside noise, but not beside one's own error, leave
Q below its gate (a tree at ε = 1 with 198 agents: up to 7.5 times early on, .4 times after 4095
steps). Variances taken too large hide disagreement in the same way: with "bound" and 15 agents of
means .2, .4 and .8 errors were up to 13 times those of an agent on its own, with "private" 1.2.

This use of the two formulas is this project's own.
"""

import numpy as np
from numpy.typing import NDArray

from skldp.collaborative._decision import row_blocks
from skldp.collaborative._statistics import Statistics

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

__all__ = ["combine", "variance_between"]


def combine(
    own: Statistics, peers: Statistics, accepted: BoolArray, peer_weights: str
) -> tuple[FloatArray, FloatArray]:
    """Return each agent's estimate from itself and those that it accepts.

    Parameters
    ----------
    own : Statistics
        Of shape (M,).
    peers : Statistics
        Of shape (M,) or (M, M), as in `skldp.collaborative._decision.accepted`.
    accepted : ndarray of bool of shape (M, M)
        Row a: whom a accepts. The diagonal is ignored.
    peer_weights : {"pooled", "inverse_variance", "count"}
        How they are averaged: as above; by inverse variance without τ²; or by numbers of
        observations.

    Returns
    -------
    means : ndarray of float64 of shape (M,)
        NaN where the own mean is unknown.
    variances : ndarray of float64 of shape (M,)
        What the variances V and τ² make of them.
    """
    n_agents = own.mean.size
    shifts, variances = np.empty(n_agents), np.empty(n_agents)
    for rows in row_blocks(n_agents):
        seen = peers if peers.mean.ndim == 1 else peers.at(rows)
        others = accepted[rows].copy()
        others[np.arange(len(others)), np.arange(n_agents)[rows]] = False
        # From oneself, so that large means lose no digits in the sums of squares.
        differences = np.where(others, seen.mean - own.mean[rows, np.newaxis], 0.0)
        if peer_weights == "count":
            shift, variance = _by_count(differences, seen, others, own.at(rows))
        else:
            pool, inverse = _pool(differences, seen, others, peer_weights == "pooled")
            # A variance is infinite where nothing is known.
            information = 1 / own.variance[rows] + inverse
            variance = _divide(1.0, information, fill=np.inf)
            shift = inverse * _divide(pool, information, fill=0.0)
        shifts[rows], variances[rows] = shift, variance
    return own.mean + shifts, variances


def _pool(
    differences: FloatArray, seen: Statistics, others: BoolArray, pooled: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the pool of each row and one over its variance; 0 and 0 for nobody."""
    weights = np.where(others, 1 / seen.variance, 0.0)
    between = np.zeros(len(others))
    if pooled:
        between = variance_between(differences, weights, np.count_nonzero(others, axis=1))
        wide = np.flatnonzero(between)
        if wide.size:
            within = seen.variance if seen.variance.ndim == 1 else seen.variance[wide]
            weights[wide] = np.where(others[wide], 1 / (within + between[wide, np.newaxis]), 0.0)
    total = weights.sum(axis=1)
    pool = _divide(np.einsum("ab,ab->a", weights, differences), total, fill=0.0)
    return pool, total / (1 + between * total)


def variance_between(
    differences: FloatArray, weights: FloatArray, n_accepted: NDArray[np.intp]
) -> FloatArray:
    """Estimate the variance between accepted agents, where they disagree more than by chance.

    Parameters
    ----------
    differences : ndarray of float64 of shape (m, M)
        Means of agents, from any origin; the origin of each row is its own.
    weights : ndarray of float64 of shape (m, M)
        One over their variances; 0 for those that are not accepted.
    n_accepted : ndarray of intp of shape (m,)
        How many are accepted.

    Returns
    -------
    ndarray of float64 of shape (m,)
        τ²; 0 where Q does not exceed its expectation by more than two standard deviations.
    """
    total = weights.sum(axis=1)
    pool = _divide(np.einsum("ab,ab->a", weights, differences), total, fill=0.0)
    deviations = differences - pool[:, np.newaxis]
    disagreement = np.einsum("ab,ab,ab->a", weights, deviations, deviations)
    freedom = np.maximum(n_accepted - 1, 0)
    # 0 where one agent has all the weight.
    left = total - _divide(np.einsum("ab,ab->a", weights, weights), total, fill=0.0)
    exceeds = (disagreement > freedom + 2 * np.sqrt(2 * freedom)) & (freedom > 0)
    return np.where(exceeds, _divide(disagreement - freedom, left, fill=0.0), 0.0)


def _by_count(
    differences: FloatArray, seen: Statistics, others: BoolArray, own: Statistics
) -> tuple[FloatArray, FloatArray]:
    counts = np.where(others, seen.n_observed, 0).astype(np.float64)
    total = own.n_observed + counts.sum(axis=1)
    shift = _divide(np.einsum("ab,ab->a", counts, differences), total, fill=0.0)
    known = own.n_observed > 0
    mine = own.n_observed.astype(np.float64) ** 2 * np.where(known, own.variance, 0.0)
    theirs = np.einsum("ab,ab->a", counts**2, np.where(others, seen.variance, 0.0))
    return shift, np.where(known, _divide(mine + theirs, total**2, fill=np.inf), np.inf)


def _divide(one: FloatArray | float, other: FloatArray, *, fill: float) -> FloatArray:
    """Divide where the divisor is positive."""
    result: FloatArray = np.divide(one, other, out=np.full(other.shape, fill), where=other > 0)
    return result
