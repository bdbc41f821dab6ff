"""Weighted least squares under constraints the user writes with cvxpy."""

import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._validation import finite_floats
from skldp.decoding._simplex import FloatArray

# Tolerances for the solver, from the tightest that double precision can be expected to reach.
_SOLVER_TOLERANCES = (1e-12, 1e-10, 1e-8)
# What the returned frequencies may violate a constraint by, relative to its sides' magnitude
# where that exceeds 1.
_FEASIBILITY_TOLERANCE = 1e-7
# Weighted distances from the estimate below this are not refined.
_NEGLIGIBLE_DISTANCE = 1e-9


def constrained_least_squares(
    estimate: npt.ArrayLike,
    weights: npt.ArrayLike,
    constraints: Callable[[Any], Sequence[Any]],
    *,
    simplex: bool,
) -> FloatArray:
    """Find the frequencies closest to an estimate among those that meet the constraints.

    Parameters
    ----------
    estimate : array-like of shape (k,)
        The estimate to stay close to, finite.
    weights : array-like of shape (k,)
        The weight of each squared difference, positive and finite: one over the variance of
        the estimate, or ones. Their common scale does not matter.
    constraints : callable
        ``constraints(p)`` receives a ``cvxpy.Variable`` of shape (k,) and returns a list of
        cvxpy constraints on it, such as ``[p[0] >= p[1], cvxpy.sum(p[:3]) == 0.25]``.
        They must be convex by the rules of cvxpy.
    simplex : bool
        Whether ``p >= 0`` and ``sum(p) == 1`` are required as well.

    Returns
    -------
    ndarray of shape (k,) and dtype float64
        The minimiser of ``sum_j weights_j (p_j - estimate_j)**2``. It meets each constraint up
        to 1e-7, and with ``simplex=True`` is non-negative and sums to 1 up to rounding.

    Raises
    ------
    TypeError
        If `constraints` is not callable, or does not return a list of cvxpy constraints.
    ValueError
        If `estimate` or `weights` are invalid, no frequencies meet the constraints, the
        constraints are not convex, or the solver does not reach the accuracy.

    See Also
    --------
    project_simplex : The same for equal weights and the simplex alone, without a solver.

    Notes
    -----
    cvxpy is imported by the first call. The problem is solved by Clarabel, an interior-point
    solver, with tolerances of 1e-12 where it reaches them and 1e-8 at worst; what is returned
    is checked against the constraints again.

    Examples
    --------
    A published total for the first two categories:

    >>> import numpy as np
    >>> from skldp.decoding import constrained_least_squares
    >>> frequencies = constrained_least_squares(
    ...     [0.5, 0.25, 0.2, 0.05], np.ones(4), lambda p: [p[0] + p[1] == 0.7], simplex=True
    ... )
    >>> frequencies.round(6)
    array([0.475, 0.225, 0.225, 0.075])
    """
    target = finite_floats(estimate, "estimate")
    if target.ndim != 1 or target.size == 0:
        raise ValueError(
            f"estimate must be a non-empty one-dimensional array, got shape {target.shape}."
        )
    weight = finite_floats(weights, "weights")
    if weight.shape != target.shape:
        raise ValueError(
            f"weights must have the shape of estimate, {target.shape}, got {weight.shape}."
        )
    if weight.min() <= 0:
        raise ValueError("weights must be positive.")
    if not callable(constraints):
        raise TypeError(
            "constraints must be a function of a cvxpy variable that returns a list of cvxpy "
            f"constraints, got {type(constraints).__name__}."
        )

    cvxpy = _cvxpy()

    variable = cvxpy.Variable(target.size)
    required = _check_constraints(constraints(variable))
    on_simplex = [variable >= 0, cvxpy.sum(variable) == 1] if simplex else []
    scale = np.sqrt(weight / weight.max())  # At most 1: the solver's tolerances are absolute.
    distance = cvxpy.multiply(scale, variable - target)
    _solve(distance, [*required, *on_simplex])
    frequencies: FloatArray = np.array(variable.value, dtype=np.float64)
    if simplex:
        off = max(-float(frequencies.min()), abs(float(frequencies.sum()) - 1.0))
        if not off <= _FEASIBILITY_TOLERANCE:
            raise ValueError(_inaccurate(f"the simplex is missed by {off:.1e}"))
        np.maximum(frequencies, 0.0, out=frequencies)
        frequencies /= frequencies.sum()
    variable.value = frequencies
    for position, constraint in enumerate(required):
        off = _relative_violation(constraint)
        if not off <= _FEASIBILITY_TOLERANCE:
            raise ValueError(_inaccurate(f"constraint {position} is missed by {off:.1e}"))
    return frequencies


def _cvxpy() -> Any:
    """Import cvxpy: on first use, because it takes half a second. It is only partly typed."""
    return importlib.import_module("cvxpy")


def _check_constraints(returned: Any) -> list[Any]:
    """Return what the user's function returned, if it is a list of cvxpy constraints."""
    cvxpy = _cvxpy()

    advice = "return a list of cvxpy constraints, for example [p[0] >= p[1]]"
    if not isinstance(returned, list | tuple):
        raise TypeError(f"constraints(p) returned {type(returned).__name__}: {advice}.")
    for position, item in enumerate(returned):
        if not isinstance(item, cvxpy.Constraint):
            raise TypeError(
                f"constraints(p) returned {type(item).__name__} in position {position}: "
                f"{advice}, built with ==, <= or >= from the argument p."
            )
    return list(returned)


def _solve(distance: Any, constraints: list[Any]) -> None:
    """Minimise the norm of `distance` and leave the solution in the variables."""
    cvxpy = _cvxpy()

    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(distance)), constraints)
    if not problem.is_dcp():
        raise ValueError(
            "the constraints are not convex by cvxpy's rules, so there is no guarantee to "
            "find the best frequencies; rewrite them as ==, <= or >= between expressions "
            "that are affine in p, or as the convex forms of cvxpy's tutorial."
        )
    if problem.is_mixed_integer():
        raise ValueError(
            "the constraints use integer or boolean variables, which the solver cannot treat; "
            "state them with continuous variables."
        )
    status = _attempt(problem)
    if status == cvxpy.INFEASIBLE:
        raise ValueError(
            "no frequencies meet the constraints: they contradict each other, or the "
            "requirement that frequencies are non-negative and sum to 1. Check published "
            "totals for rounding, and replace equalities by small intervals."
        )
    if status == cvxpy.UNBOUNDED:
        raise ValueError(
            "the problem is unbounded: check the constraints for variables other than p."
        )
    if status != cvxpy.OPTIMAL:
        raise ValueError(_inaccurate(f"the solver ended with status {status!r}"))
    # The solver's tolerances are absolute, and small differences (many reports) make a small
    # objective: once its size is known, solve again with an optimum of 1.
    size = float(np.linalg.norm(distance.value))
    if size < _NEGLIGIBLE_DISTANCE:
        return
    found = [(variable, variable.value) for variable in problem.variables()]
    rescaled = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(distance / size)), constraints)
    if _attempt(rescaled) != cvxpy.OPTIMAL:
        for variable, value in found:
            variable.save_value(value)


def _attempt(problem: Any) -> str | None:
    """Solve with the tightest tolerance that leads to an answer; return the last status."""
    cvxpy = _cvxpy()

    answers = (cvxpy.OPTIMAL, cvxpy.INFEASIBLE, cvxpy.UNBOUNDED)
    for tolerance in _SOLVER_TOLERANCES:
        try:
            with warnings.catch_warnings():
                # An inaccurate solution is not used: the next tolerance is tried.
                warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
                problem.solve(
                    solver=cvxpy.CLARABEL,
                    tol_feas=tolerance,
                    tol_gap_abs=tolerance,
                    tol_gap_rel=tolerance,
                )
        except cvxpy.error.SolverError:
            continue
        if problem.status in answers:
            break
    return str(problem.status)


def _inaccurate(reason: str) -> str:
    return (
        f"the constrained frequencies could not be found accurately: {reason}. Constraints that "
        "almost contradict each other, or whose coefficients differ by many orders of "
        "magnitude, cause this; drop redundant ones and state them in units of frequencies."
    )


def _relative_violation(constraint: Any) -> float:
    """How far the current values violate a constraint, relative to its sides where they > 1."""
    sides = [np.max(np.abs(side.value), initial=0.0) for side in constraint.args]
    violation = np.max(np.abs(constraint.violation()), initial=0.0)
    return float(violation / max(1.0, *sides))
