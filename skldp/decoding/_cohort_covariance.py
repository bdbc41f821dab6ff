"""Standard errors of the least-squares decoder for cohorts and buckets.

The estimate is p̂ = G⁻¹ Xᵀ W b with G = Xᵀ W X, so its covariance is the sandwich G⁻¹ M G⁻¹,
M = Cov(Xᵀ W b). Two choices of M:

- the sampling one: n_c Cov(b_c) = diag(d_c) - r_c r_cᵀ (plus, with several hashes, what the bits
  of one value have in common);
- the clustered one, Σ_c g_c g_cᵀ with the residual scores g_c of each cohort: it also sees heavy
  strings that the list of candidates lacks, whose error does not shrink with n.

For a few thousand candidates G is inverted. For more, G is nearly diagonal, and the noise that
reaches a candidate from the others is nearly the same for all of them: each variance is its
diagonal term plus a common one, which makes the trace right. The trace comes from a few
random probes, and its relative error shrinks with the number of candidates.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.sparse import diags_array
from scipy.sparse.linalg import LinearOperator, cg

from skldp.decoding._cohort_system import CohortSystem
from skldp.decoding._least_squares import factorise, pseudo_inverse_parts

__all__ = ["SamplingNoise", "least_squares_variances"]

LARGEST_INVERSE = 2048  # candidates whose Gram matrix is inverted
_SHARED_BITS_COST = 2**28  # pairs of pairs of candidates in a bucket that are counted
_N_PROBES = 8
_FEW_COHORTS = 8  # no more than this are probed one by one
_PROBE_SEED = 20160527  # any: the probes are part of the algorithm, not of the data


@dataclass(frozen=True)
class SamplingNoise:
    """The covariance of the bucket shares of each cohort: (diag(d) - r rᵀ) / n_c.

    Attributes
    ----------
    diagonal : ndarray of shape (n_cohorts, n_buckets)
        d.
    rank_one : ndarray of shape (n_cohorts, n_buckets)
        r.
    """

    diagonal: NDArray[np.float64]
    rank_one: NDArray[np.float64]


def least_squares_variances(
    system: CohortSystem,
    noise: SamplingNoise,
    frequencies: NDArray[np.float64],
    residuals: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Return the variances of the least-squares estimates.

    Parameters
    ----------
    system : CohortSystem
        X and the weights n_c; of full column rank.
    noise : SamplingNoise
        Of the bucket shares.
    frequencies : ndarray of shape (S,)
        Estimates, for the sampling of values with several hashes.
    residuals : ndarray of shape (n_cohorts, n_buckets), or None
        Bucket shares minus their fit. Where given, each variance is the larger one of the
        sampling and of the cohort-clustered sandwich, the latter corrected for leverage.

    Returns
    -------
    ndarray of float64 of shape (S,)
        Variances; inf for candidates whose estimate is not unique.
    """
    if system.n_candidates <= LARGEST_INVERSE:
        return _dense_variances(system, noise, frequencies, residuals)
    return _probed_variances(system, noise, frequencies, residuals)


def _leverage_factor(system: CohortSystem) -> float:
    """Return 1 / (1 - leverage) of the rows that a candidate falls into.

    With n_c / Σn ≈ 1/C of its own weight in each of them, and γ from the other candidates, the
    fit takes that share out of the residuals.
    """
    totals = system.weights.max(axis=1)
    own = float((totals**2).sum() / totals.sum() ** 2)
    return 1.0 / max(1.0 - own - system.load * (1.0 - own), 0.05)


def _dense_variances(
    system: CohortSystem,
    noise: SamplingNoise,
    frequencies: NDArray[np.float64],
    residuals: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    size, weights = system.n_candidates, system.weights
    gram = system.gram(weights)
    factor = factorise(gram)
    unknown = np.zeros(size, dtype=bool)
    if factor is not None:
        inverse = cho_solve(factor, np.eye(size))
    else:
        values, vectors, is_identified = pseudo_inverse_parts(gram)
        inverse = (vectors / values) @ vectors.T
        unknown = ~is_identified
    middle = system.gram(weights * noise.diagonal)
    for scores in _stacked(system, np.sqrt(weights) * noise.rank_one):
        middle -= scores.T @ scores
    if system.table.shape[1] > 1:
        middle += _shared_bits(system, np.maximum(frequencies, 0.0))
    variances: NDArray[np.float64] = np.einsum("ij,ij->i", inverse @ middle, inverse)
    np.maximum(variances, 0.0, out=variances)
    if residuals is not None:
        clustered = np.zeros(size)
        for scores in _stacked(system, weights * residuals):
            clustered += ((scores @ inverse) ** 2).sum(axis=0)
        clustered *= _leverage_factor(system)
        np.maximum(variances, clustered, out=variances)
    variances[unknown] = np.inf
    return variances


def _stacked(system: CohortSystem, rows: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """Yield the scores of a few hundred cohorts at a time, shape (n, S)."""
    scores = system.cohort_scores(rows)
    while some := list(islice(scores, 256)):
        yield np.stack(some)


def _shared_bits(system: CohortSystem, p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Σ n_c X_cᵀ (H_c diag(p) H_cᵀ off its diagonal) X_c: a value's bits come together.

    Where this would take long, only the bits of the candidate itself are counted: two candidates
    seldom share more than one bit, and one in common contributes nothing.
    """
    size, n_hashes, centre = system.n_candidates, system.table.shape[1], system.centre
    totals = system.weights.max(axis=1)
    if system.n_cohorts * size * _pairs_in_bucket(system) ** 2 > _SHARED_BITS_COST:
        return np.diag(p * (n_hashes - 1) * system.gather(system.weights))
    total = -system.gram(system.weights * system.scatter(p))
    for cohort, weight in enumerate(totals):
        plain = system.incidence(cohort, cohort + 1)
        plain.data[plain.indices == system.n_buckets] = 0.0
        common = plain @ plain.T
        scaled = common @ diags_array(p)
        n_bits = np.asarray(plain.sum(axis=1))
        column = centre * (scaled @ n_bits)
        total += weight * (scaled @ common).toarray()
        total -= weight * (column + column[:, np.newaxis])
        total += weight * centre**2 * float(p @ n_bits**2)
    return total


def _pairs_in_bucket(system: CohortSystem) -> float:
    """Return how many candidates share a bucket with a given one in a cohort."""
    n_hashes = int(system.table.shape[1])
    return 1.0 + system.n_candidates * n_hashes**2 / system.n_buckets


def _probed_variances(
    system: CohortSystem,
    noise: SamplingNoise,
    frequencies: NDArray[np.float64],
    residuals: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    size, n_hashes = system.n_candidates, system.table.shape[1]
    weights = system.weights
    bits = system.gather(weights)  # Σ n_c over own buckets
    gram = (1.0 - 2.0 * system.centre) * bits + system.centre**2 * weights.sum()
    weighted = weights * noise.diagonal
    middle = (1.0 - 2.0 * system.centre) * system.gather(weighted)
    middle += system.centre**2 * weighted.sum()
    middle -= _sum_of_squares(system, np.sqrt(weights) * noise.rank_one)
    # The bits of one value share its sampling noise.
    middle += np.maximum(frequencies, 0.0) * (n_hashes - 1) * bits
    own = np.maximum(middle, 0.0) / gram**2
    # Enough probes for a relative error of the trace of 1% or so.
    n_probes = int(np.clip(2**15 // size, 1, _N_PROBES)) if residuals is None else _N_PROBES
    probes = np.random.default_rng(_PROBE_SEED).choice([-1.0, 1.0], size=(n_probes, size))
    operator = LinearOperator((size, size), matvec=system.normal, dtype=np.float64)

    def solve(right: NDArray[np.float64]) -> NDArray[np.float64]:
        solution, failed = cg(operator, right, rtol=1e-4, maxiter=500)
        # Nearly dependent candidates: no variance is better than a wrong one.
        return np.full(size, np.inf) if failed else solution

    images = []
    for probe in probes:
        solved = solve(probe)
        if not np.isfinite(solved[0]):
            return np.full(size, np.inf)
        images.append(system.forward(solved))

    def with_common(own: NDArray[np.float64], traces: list[float]) -> NDArray[np.float64]:
        return own + max(float(np.mean(traces)) / size - float(own.mean()), 0.0)

    variances = with_common(
        own,
        [
            float((weighted * image**2).sum())
            - float(((np.sqrt(weights) * noise.rank_one * image).sum(axis=1) ** 2).sum())
            for image in images
        ],
    )
    if residuals is None:
        return variances
    scored = weights * residuals
    if system.n_cohorts <= _FEW_COHORTS:  # the trace of so few terms is too uncertain
        clustered = np.zeros(size)
        for scores in system.cohort_scores(scored):
            clustered += solve(scores) ** 2
    else:
        own = _sum_of_squares(system, scored) / gram**2
        clustered = with_common(
            own, [float(((scored * image).sum(axis=1) ** 2).sum()) for image in images]
        )
    return np.maximum(variances, clustered * _leverage_factor(system))


def _sum_of_squares(system: CohortSystem, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Σ_c (X_cᵀ rows_c)² for every candidate."""
    total = np.zeros(system.n_candidates)
    for scores in system.cohort_scores(rows):
        scores *= scores
        total += scores
    return total
