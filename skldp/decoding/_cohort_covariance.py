"""Standard errors of the least-squares decoder for cohorts and buckets.

The estimate is p̂ = G⁻¹ Xᵀ W b with G = Xᵀ W X, so its covariance is the sandwich G⁻¹ M G⁻¹,
M = Cov(Xᵀ W b). Two choices of M:

- the sampling one: n_c Cov(b_c) = diag(d_c) - r_c r_cᵀ (plus, with several hashes, what the bits
  of one value have in common);
- the clustered one, Σ_c g_c g_cᵀ with the residual scores g_c of each cohort: it also sees heavy
  strings that the list of candidates lacks, whose error does not shrink with n.

Small systems are inverted. In large ones G is nearly G_ss on the diagonal, and the noise that
reaches a candidate from the others is nearly the same for all of them: each variance is its
diagonal term plus a common one, which makes the trace right. The trace comes from a few
random probes, and its relative error shrinks with the number of candidates.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from skldp.decoding._cohort_system import CohortSystem
from skldp.decoding._least_squares import is_small

__all__ = ["SamplingNoise", "least_squares_variances"]

_N_PROBES = 8
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
        Variances; inf where the system has no inverse.
    """
    if is_small(system):
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
    size, shape = system.n_candidates, (system.n_cohorts, system.n_buckets, -1)
    matrix = system.dense()
    gram = matrix.T @ (system.weights.reshape(-1, 1) * matrix)
    try:
        inverse = cho_solve(cho_factor(gram), np.eye(size))
    except np.linalg.LinAlgError:
        return np.full(size, np.inf)
    weighted = system.weights * noise.diagonal
    middle = matrix.T @ (weighted.reshape(-1, 1) * matrix)
    by_cohort = matrix.reshape(shape)
    roots = np.sqrt(system.weights)
    scores = np.einsum("cys,cy->cs", by_cohort, roots * noise.rank_one)
    middle -= scores.T @ scores
    if system.table.shape[1] > 1:
        middle += _shared_bits(system, by_cohort, frequencies)
    variances: NDArray[np.float64] = np.einsum("ij,ij->i", inverse @ middle, inverse)
    if residuals is None:
        return np.maximum(variances, 0.0)
    scores = np.einsum("cys,cy->cs", by_cohort, system.weights * residuals)
    clustered = ((scores @ inverse) ** 2).sum(axis=0)
    clustered *= _leverage_factor(system)
    larger: NDArray[np.float64] = np.maximum(variances, clustered)
    return larger


def _shared_bits(
    system: CohortSystem, by_cohort: NDArray[np.float64], frequencies: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return Σ n_c X_cᵀ (H_c diag(p) H_cᵀ off its diagonal) X_c."""
    p = np.maximum(frequencies, 0.0)
    total = np.zeros((system.n_candidates,) * 2)
    for centred, weights in zip(by_cohort, system.weights.max(axis=1), strict=True):
        plain = centred + system.centre
        common = centred.T @ plain
        total += weights * ((common * p) @ common.T - (centred.T * (plain @ p)) @ centred)
    return total


def _probed_variances(
    system: CohortSystem,
    noise: SamplingNoise,
    frequencies: NDArray[np.float64],
    residuals: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    size, n_hashes = system.n_candidates, system.table.shape[1]
    weights = system.weights
    bits = system._gather(weights)  # Σ n_c over own buckets
    gram = (1.0 - 2.0 * system.centre) * bits + system.centre**2 * weights.sum()
    weighted = weights * noise.diagonal
    middle = (1.0 - 2.0 * system.centre) * system._gather(weighted)
    middle += system.centre**2 * weighted.sum()
    middle -= _sum_of_squares(system, np.sqrt(weights) * noise.rank_one)
    # The bits of one value share its sampling noise.
    middle += np.maximum(frequencies, 0.0) * (n_hashes - 1) * bits
    own = np.maximum(middle, 0.0) / gram**2
    probes = np.random.default_rng(_PROBE_SEED).choice([-1.0, 1.0], size=(_N_PROBES, size))
    operator = LinearOperator((size, size), matvec=system.normal, dtype=np.float64)
    solved = [cg(operator, probe, rtol=1e-4, maxiter=500)[0] for probe in probes]
    images = [system.forward(one) for one in solved]

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
    own = _sum_of_squares(system, scored) / gram**2
    traces = [float(((scored * image).sum(axis=1) ** 2).sum()) for image in images]
    return np.maximum(variances, with_common(own, traces) * _leverage_factor(system))


def _sum_of_squares(system: CohortSystem, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Σ_c (X_cᵀ rows_c)² for every candidate."""
    total = np.zeros(system.n_candidates)
    for cohort in range(system.n_cohorts):
        alone = CohortSystem(
            system.table[cohort : cohort + 1],
            system.n_buckets,
            system.weights[cohort : cohort + 1],
            system.centre,
        )
        total += alone.adjoint(rows[cohort : cohort + 1]) ** 2
    return total
