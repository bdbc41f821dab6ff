"""Least squares for cohorts and buckets on the simplex, or below it."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skldp.decoding._cohort_system import CohortSystem
from skldp.decoding._simplex import project_simplex
from skldp.exceptions import DecodingWarning

__all__ = ["SimplexFit", "project_subsimplex", "simplex_least_squares"]


@dataclass(frozen=True)
class SimplexFit:
    """Solution on the simplex.

    Attributes
    ----------
    p : ndarray of shape (S,)
        Not negative; its sum is 1, or at most 1.
    gap : float
        Duality gap relative to the objective: an upper bound on the relative error. (Relative to
        the sum of squares of the target where there are more candidates than rows, for these may
        fit everything.)
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
    negligible: float = 0.0,
    max_passes: int = 2000,
) -> SimplexFit:
    """Minimise Σ weights (X p - target)² / 2 over p >= 0 with Σp = 1, or Σp <= 1.

    Accelerated projected gradient with restarts. The objective is quadratic, so the gradient at
    an extrapolated point is the extrapolated gradient, and one pass (X and Xᵀ) per iteration also
    gives the exact duality gap at the iterate, which is what stops it. Distances are measured
    by the weights of each candidate's buckets, which makes uneven weights even.

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
    negligible : float, default=0.0
        How far above its minimum the objective may remain in any case. Candidates
        that are more than the rows fit the noise as well, which takes long and makes the estimate
        no better: there, a small part of what noise leaves of the objective.
    max_passes : int, default=2000
        Passes after which it stops with a warning.

    Returns
    -------
    SimplexFit
        The solution.

    Warns
    -----
    DecodingWarning
        If `max_passes` is reached.
    """
    fit = solve_on_simplex(
        system,
        target,
        sum_at_most_one=sum_at_most_one,
        start=start,
        tolerance=tolerance,
        absolute_tolerance=negligible,
        max_passes=max_passes,
    )
    if fit.gap > tolerance and fit.n_passes >= max_passes:
        warnings.warn(
            f"Least squares on the simplex stopped after {fit.n_passes} passes at a relative "
            f"duality gap of {fit.gap:.1e}.",
            DecodingWarning,
            stacklevel=2,
        )
    return fit


def solve_on_simplex(
    system: CohortSystem,
    target: NDArray[np.float64],
    *,
    sum_at_most_one: bool,
    start: NDArray[np.float64] | None,
    tolerance: float,
    absolute_tolerance: float,
    max_passes: int,
) -> SimplexFit:
    """Solve, up to a relative or an absolute gap, and say nothing where passes run out."""
    size = system.n_candidates
    scale = _scale(system)

    def project(values: NDArray[np.float64]) -> NDArray[np.float64]:
        if scale is not None:
            return _project_scaled(values, scale, sum_at_most_one=sum_at_most_one)
        return project_subsimplex(values) if sum_at_most_one else project_simplex(values)

    p = np.full(size, 1.0 / size) if start is None else project(start)
    weighted_target = system.weights * target
    constant = 0.5 * float((weighted_target * target).sum())

    def evaluate(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        image = system.forward(point)
        residual = system.weights * image - weighted_target
        # f = <X p, W X p>/2 - <W t, X p> + constant
        value = 0.5 * float((image * (residual - weighted_target)).sum()) + constant
        return max(value, 0.0), system.adjoint(residual)

    # Exact data leave nothing to be relative to; rounding ends at 1e-15 of the sum of squares.
    # Nor do candidates that are more than the rows: they fit the noise as well.
    smallest = max((1e-8 if system.load < 1.0 else 1.0) * constant, np.finfo(float).tiny)
    unit = np.full(size, system.scale) if scale is None else scale
    # A random table has its largest eigenvalue near (1 + √γ)² units, and fewer are in play on a
    # face of the simplex. Where the quadratic bound fails, the step is shortened.
    lipschitz = (1.0 + np.sqrt(min(system.load, size))) ** 2 / 2.5
    value, gradient = evaluate(p)
    n_passes, momentum = 1, 1.0
    point, point_gradient = p, gradient
    while True:
        slack = gradient.min()
        if sum_at_most_one:
            slack = min(slack, 0.0)
        gap = max(float(gradient @ p) - float(slack), 0.0)
        floor = max(value, smallest)
        if gap <= max(tolerance * floor, absolute_tolerance) or n_passes >= max_passes:
            break
        candidate = project(point - point_gradient / (lipschitz * unit))
        new_value, new_gradient = evaluate(candidate)
        n_passes += 1
        step = candidate - point
        # <step, G step> from gradients, which are linear in the point.
        curvature = float(step @ (new_gradient - point_gradient))
        length = float(step @ (unit * step))
        if curvature > lipschitz * length * (1 + 1e-9):
            lipschitz = max(1.1 * lipschitz, curvature / length)
            continue
        if float((unit * (point - candidate)) @ (candidate - p)) > 0:
            momentum = 1.0  # it points uphill: start again, with a longer step
            lipschitz *= 0.9
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = (momentum - 1.0) / following
        point = candidate + ahead * (candidate - p)
        point_gradient = new_gradient + ahead * (new_gradient - gradient)
        p, value, gradient, momentum = candidate, new_value, new_gradient, following
    return SimplexFit(p, gap / floor, n_passes)


def _scale(system: CohortSystem) -> NDArray[np.float64] | None:
    """Return the diagonal of Xᵀ W X, or None where it is the same for all candidates."""
    weights = system.weights
    if system.table.shape[1] == 1 and (weights == weights[:, :1]).all():
        return None
    own = (1.0 - 2.0 * system.centre) * system.gather(weights)
    own += system.centre**2 * float(weights.sum())
    return own if float(own.min()) > 0.0 else None


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


def _project_scaled(
    values: NDArray[np.float64], scale: NDArray[np.float64], *, sum_at_most_one: bool
) -> NDArray[np.float64]:
    """Minimise Σ scale (p - values)² over the simplex, or below it.

    The solution is max(values - t / scale, 0). The excess of its sum over 1 is convex and falls
    with t, so Newton's method from below the root is monotone and, being piecewise linear, ends.
    """
    clipped = np.maximum(values, 0.0)
    if sum_at_most_one and float(clipped.sum()) <= 1.0:
        return clipped
    inverse = 1.0 / scale
    # Already this one value alone gives a sum of at least 1 there.
    t = float(((values - 1.0) * scale).max())
    while True:
        result = values - t * inverse
        active = result > 0.0
        excess = float(result[active].sum()) - 1.0
        step = excess / float(inverse[active].sum())
        if not t + step > t or excess <= 1e-15:
            break
        t += step
    np.maximum(result, 0.0, out=result)
    result /= result.sum()
    return result
