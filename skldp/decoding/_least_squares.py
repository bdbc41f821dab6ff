"""Least squares for cohorts and buckets: on all of space, and on the simplex."""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, lstsq
from scipy.sparse.linalg import LinearOperator, cg

from skldp.decoding._cohort_system import CohortSystem
from skldp.decoding._simplex import project_simplex
from skldp.exceptions import DecodingWarning

__all__ = ["SimplexFit", "least_squares", "simplex_least_squares"]

LARGEST_DENSE = 2**24  # entries of X that are formed: 128 MiB
_RELATIVE_TOLERANCE = 1e-10


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


def is_small(system: CohortSystem) -> bool:
    """Whether forming X costs little."""
    rows = system.n_cohorts * system.n_buckets
    return rows * system.n_candidates <= LARGEST_DENSE and system.n_candidates <= 2048


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
        Dense Cholesky for small systems, conjugate gradients on the normal equations otherwise;
        the solution of least norm where it is not unique.
    """
    right = system.adjoint(system.weights * target)
    size = system.n_candidates
    singular = size > system.max_rank
    if is_small(system):
        matrix = system.dense()
        root = np.sqrt(system.weights).reshape(-1, 1)
        matrix *= root
        if not singular:
            gram = matrix.T @ matrix
            try:
                factor = cho_factor(gram)
            except np.linalg.LinAlgError:
                pass  # two candidates in the same bucket of every cohort
            else:
                return LinearFit(cho_solve(factor, right), 0)
        scaled = root[:, 0] * target.reshape(-1)
        return LinearFit(lstsq(matrix, scaled, cond=1e-12)[0], 0)
    n_passes = 0

    def normal(p: NDArray[np.float64]) -> NDArray[np.float64]:
        nonlocal n_passes
        n_passes += 1
        return system.normal(p)

    operator = LinearOperator((size, size), matvec=normal, dtype=np.float64)
    # From zero, the iterates stay in the row space: the limit has the least norm.
    p, failed = cg(operator, right, rtol=_RELATIVE_TOLERANCE, maxiter=2000)
    if failed:
        warnings.warn(
            f"The least-squares decoder stopped after {n_passes} iterations without reaching its "
            f"tolerance: S / (C (k - 1)) = {system.load:.2f} is too close to 1. Use more cohorts "
            'or buckets, or decoder="constrained_least_squares".',
            DecodingWarning,
            stacklevel=2,
        )
    return LinearFit(p, n_passes)


@dataclass(frozen=True)
class SimplexFit:
    """Solution on the simplex.

    Attributes
    ----------
    p : ndarray of shape (S,)
        Not negative; its sum is 1, or at most 1.
    gap : float
        Duality gap relative to the objective: an upper bound on the relative error.
    n_passes : int
        Multiplications by Xᵀ W X.
    """

    p: NDArray[np.float64]
    gap: float
    n_passes: int


def simplex_least_squares(
    system: CohortSystem,
    target: NDArray[np.float64],
    *,
    sum_at_most_one: bool = False,
    start: NDArray[np.float64] | None = None,
    tolerance: float = 1e-6,
    max_passes: int = 2000,
) -> SimplexFit:
    """Minimise Σ weights (X p - target)² / 2 over p >= 0 with Σp = 1, or Σp <= 1.

    Accelerated projected gradient with restarts. The objective is quadratic, so the gradient at
    an extrapolated point is the extrapolated gradient, and one pass (X and Xᵀ) per iteration also
    gives the exact duality gap at the iterate, which is what stops it.

    Parameters
    ----------
    system : CohortSystem
        X (centred) and the weights.
    target : ndarray of shape (n_cohorts, n_buckets)
        Unbiased bucket shares, centred like X.
    sum_at_most_one : bool, default=False
        Whether candidates may leave some of the mass to others.
    start : ndarray of shape (S,), default=None
        Where to start; the uniform distribution by default.
    tolerance : float, default=1e-6
        Relative duality gap to reach.
    max_passes : int, default=2000
        Passes after which it stops with a warning.

    Returns
    -------
    SimplexFit
        The solution.
    """
    project = project_subsimplex if sum_at_most_one else project_simplex
    size = system.n_candidates
    p = np.full(size, 1.0 / size) if start is None else project(start)
    weighted_target = system.weights * target
    constant = 0.5 * float((weighted_target * target).sum())

    def evaluate(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        image = system.forward(point)
        residual = system.weights * image - weighted_target
        # f = <X p, W X p>/2 - <W t, X p> + constant
        value = 0.5 * float((image * (residual - weighted_target)).sum()) + constant
        return max(value, 0.0), system.adjoint(residual)

    # A random table has its largest eigenvalue near scale (1 + √γ)²; where that is too small the
    # quadratic bound fails, and the step is halved.
    lipschitz = system.scale * (1.0 + np.sqrt(min(system.load, size))) ** 2 / 1.5
    value, gradient = evaluate(p)
    n_passes, momentum = 1, 1.0
    point, point_gradient = p, gradient
    while True:
        slack = gradient.min()
        if sum_at_most_one:
            slack = min(slack, 0.0)
        gap = max(float(gradient @ p) - float(slack), 0.0)
        # Exact data leave nothing to be relative to; rounding ends at 1e-15 of the constant.
        floor = max(value, 1e-8 * constant, np.finfo(float).tiny)
        if gap <= tolerance * floor:
            break
        if n_passes >= max_passes:
            warnings.warn(
                f"Least squares on the simplex stopped after {n_passes} passes at a relative "
                f"duality gap of {gap / floor:.1e}.",
                DecodingWarning,
                stacklevel=2,
            )
            break
        candidate = project(point - point_gradient / lipschitz)
        new_value, new_gradient = evaluate(candidate)
        n_passes += 1
        step = candidate - point
        # <step, G step> from gradients, which are linear in the point.
        curvature = float(step @ (new_gradient - point_gradient))
        if curvature > lipschitz * float(step @ step) * (1 + 1e-9):
            lipschitz *= 1.5
            point, point_gradient, momentum = p, gradient, 1.0
            continue
        if float((point - candidate) @ (candidate - p)) > 0:  # the momentum points uphill
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = (momentum - 1.0) / following
        point = candidate + ahead * (candidate - p)
        point_gradient = new_gradient + ahead * (new_gradient - gradient)
        p, value, gradient, momentum = candidate, new_value, new_gradient, following
    return SimplexFit(p, gap / floor, n_passes)


def project_subsimplex(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Project onto {p >= 0, Σp <= 1}: clip at zero, and onto the simplex if that is too much.

    Parameters
    ----------
    values : array-like of shape (..., S)
        Finite numbers.

    Returns
    -------
    ndarray of float64 of the same shape
        The nearest point in the Euclidean norm.
    """
    array = np.asarray(values, dtype=np.float64)
    clipped = np.maximum(array, 0.0)
    heavy = clipped.sum(axis=-1) > 1.0
    if array.ndim == 1:
        return project_simplex(array) if heavy else clipped
    clipped[heavy] = project_simplex(array[heavy])
    return clipped
