"""Least squares for cohorts and buckets, without constraints."""

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.linalg.lapack import dpocon
from scipy.sparse.linalg import LinearOperator, cg

from skldp.decoding._cohort_system import CohortSystem
from skldp.exceptions import DecodingWarning

__all__ = ["LinearFit", "least_squares"]

LARGEST_DENSE = 1024  # candidates whose Gram matrix is factorised
_RELATIVE_TOLERANCE = 1e-10
_MAX_ITERATIONS = 2000
_SINGULAR = 1e-11  # eigenvalues (relative to the largest) that count as zero


class LinearFit(NamedTuple):
    """Solution of an unconstrained system.

    Attributes
    ----------
    p : ndarray of shape (S,)
        The (minimum-norm) least-squares solution.
    n_passes : int
        Multiplications by Xᵀ W X; 0 for a dense factorisation.
    """

    p: NDArray[np.float64]
    n_passes: int


def factorise(gram: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool] | None:
    """Return the Cholesky factor of a Gram matrix, or None where it is singular.

    Rounding can let the factorisation of a singular matrix pass, so the reciprocal condition
    number is looked at too.
    """
    try:
        factor = cho_factor(gram, lower=True)
    except LinAlgError:
        return None
    reciprocal, _ = dpocon(factor[0], np.abs(gram).sum(axis=0).max(), uplo="L")
    return factor if reciprocal > _SINGULAR else None


def pseudo_inverse_parts(
    gram: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Split a singular Gram matrix.

    Returns
    -------
    values : ndarray of shape (r,)
        Eigenvalues that are not zero.
    vectors : ndarray of shape (S, r)
        Their eigenvectors.
    is_identified : ndarray of bool of shape (S,)
        Whether all solutions agree on a candidate.
    """
    values, vectors = eigh(gram)
    kept = values > _SINGULAR * values[-1]
    free = vectors[:, ~kept]
    is_identified = np.einsum("ij,ij->i", free, free) < 1e-8
    return values[kept], vectors[:, kept], is_identified


def least_squares(system: CohortSystem, target: NDArray[np.float64]) -> LinearFit:
    """Minimise Σ weights (X p - target)², equation (18) of Kairouz et al. (2016).

    Parameters
    ----------
    system : CohortSystem
        X and the weights.
    target : ndarray of shape (n_cohorts, n_buckets)
        Unbiased bucket shares, centred like X.

    Returns
    -------
    LinearFit
        Dense Cholesky for few candidates, conjugate gradients on the normal equations otherwise;
        the solution of least norm where it is not unique.

    Warns
    -----
    DecodingWarning
        If the candidates' buckets are dependent although there are enough of them, or if the
        iteration does not converge.
    """
    right = system.adjoint(system.weights * target)
    size = system.n_candidates
    if size <= LARGEST_DENSE:
        gram = system.gram(system.weights)
        factor = factorise(gram) if size <= system.max_rank else None
        if factor is not None:
            return LinearFit(cho_solve(factor, right), 0)
        values, vectors, is_identified = pseudo_inverse_parts(gram)
        if size <= system.max_rank:
            warnings.warn(
                f"{size - is_identified.sum()} of {size} candidates share buckets with each other "
                "in every cohort, and cannot be told apart: their estimates are those of least "
                "norm, without standard errors. Use more cohorts or buckets.",
                DecodingWarning,
                stacklevel=2,
            )
        return LinearFit(vectors @ ((vectors.T @ right) / values), 0)
    n_passes = 0

    def normal(p: NDArray[np.float64]) -> NDArray[np.float64]:
        nonlocal n_passes
        n_passes += 1
        return system.normal(p)

    operator = LinearOperator((size, size), matvec=normal, dtype=np.float64)
    # From a point of the row space the iterates stay in it: the limit has the least norm. In the
    # plain system nearly all of the right-hand side is the total, along the one eigenvector of
    # a large eigenvalue: start at the uniform distribution, and scale that direction down.
    start, shrunk = np.zeros(size), None
    if system.centre == 0.0:
        start = system.adjoint((system.weights > 0.0).astype(np.float64))
        start /= start.sum()
        image = normal(start)
        right = right - image
        excess = 1.0 - system.scale * float(start @ start) / float(start @ image)
        if excess > 0.0:
            total = excess / float(start @ start) * start
            shrunk = LinearOperator(
                (size, size), matvec=lambda p: p - float(total @ p) * start, dtype=np.float64
            )
    p, failed = cg(operator, right, rtol=_RELATIVE_TOLERANCE, maxiter=_MAX_ITERATIONS, M=shrunk)
    p += start
    if failed:
        warnings.warn(
            f"The least-squares decoder stopped after {n_passes} iterations without reaching its "
            f"tolerance: with S / (C (k - 1)) = {system.load:.2f} and {system.n_cohorts} cohorts, "
            "the candidates' buckets are nearly dependent. Use more cohorts or buckets, or "
            'decoder="constrained_least_squares".',
            DecodingWarning,
            stacklevel=2,
        )
    return LinearFit(p, n_passes)
