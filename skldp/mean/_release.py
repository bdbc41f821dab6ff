"""One private release of a weighted sum, in integers from the data to the number that goes out.

Weights are rounded down to multiples of 2^-60, clipped data rounded to 2^40 steps per width of the
bounds (counted from the centre), and their dot product is exact. So is the noise, which comes from
`skldp.random`: integers with probabilities proportional to exp(-|x|/t) or exp(-x²/2V). One user
moves the sum by at most W_i·R, with W_i the integer weight and R = 2^40, hence loses at most

    ε_i = d W_i R / t            (Laplace, d columns, two points of the box)
    ρ_i = (W_i R)² / (2 V)       (Gaussian, two points of the ball)

and `certify` checks in rational numbers that this does not exceed the user's level. The released
number is ``middle + width (T + noise) / (R ΣW)``, a function of the integer T + noise alone, so
nothing about the data is in its low bits.
"""

import sys
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from skldp.mean._problem import MeanProblem
from skldp.random import WordStream, discrete_gaussian, discrete_laplace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = [
    "DATA_STEPS",
    "WEIGHT_STEPS",
    "as_floats",
    "certify",
    "cost_bound",
    "data_on_grid",
    "draw_noise",
    "exact_combination",
    "exact_sum",
    "integer_weights",
    "privacy_losses",
    "relative_noise",
]

DATA_STEPS = 1 << 40
WEIGHT_STEPS = 1 << 60
_LIMB_BITS = 20
_LIMB_MASK = (1 << _LIMB_BITS) - 1
_BLOCK_VALUES = 1 << 15  # values at a time: what is temporary stays in the cache

# Noise is made larger by this share, so that a float comparison can settle the certificate of
# nearly everybody: the ratios compared are off by less than 2^-50 of themselves.
_MARGIN = 2.0**-40
_FLOAT_ERROR = 2.0**-50
# Noise below this many steps is as good as none, and is made larger to keep its sampler simple.
_LEAST_SCALE = Fraction(1, 16)
_LARGE_SCALE = 1 << 60  # from here on rounding the scale up to an integer costs nothing


def integer_weights(weights: FloatArray) -> IntArray:
    """Return the weights as multiples of 2^-60, rounded down.

    Parameters
    ----------
    weights : ndarray of float64 of shape (n,)
        Non-negative, at most 1.

    Returns
    -------
    ndarray of int64 of shape (n,)
        Between 0 and 2^60.
    """
    return (weights * float(WEIGHT_STEPS)).astype(np.int64)


def _costs(problem: MeanProblem, integers: IntArray, levels: FloatArray) -> FloatArray:
    """Return W_i/ε_i or W_i²/(2ρ_i); 0 for public users."""
    costs: FloatArray = np.zeros(integers.shape)
    as_float = integers.astype(np.float64)
    if problem.noise == "gaussian":
        as_float *= as_float
        as_float /= 2
    with np.errstate(divide="ignore"):
        np.divide(as_float, levels, out=costs, where=integers > 0)
    return costs


def cost_bound(problem: MeanProblem, integers: IntArray, levels: FloatArray) -> Fraction:
    """Return a number no smaller than any W_i/ε_i (Laplace) or W_i²/(2ρ_i) (Gaussian).

    Parameters
    ----------
    problem : MeanProblem
        Says which.
    integers : ndarray of int64 of shape (n,)
        Integer weights.
    levels : ndarray of float64 of shape (n,)
        ε or ρ; positive where the weight is.

    Returns
    -------
    Fraction
        0 where all weight is on public users. The Laplace scale is this times d·R, the Gaussian
        variance this times R², both in steps.
    """
    largest = float(_costs(problem, integers, levels).max())
    if largest == 0:
        return Fraction(0)
    bound = Fraction(largest * (1 + _MARGIN))
    if problem.noise == "gaussian":
        return max(bound, _LEAST_SCALE**2 / DATA_STEPS**2)
    return max(bound, _LEAST_SCALE / (DATA_STEPS * problem.n_features))


def certify(problem: MeanProblem, integers: IntArray, levels: FloatArray, bound: Fraction) -> None:
    """Check that no user loses more than their level, exactly.

    Almost everybody is decided by a comparison of floats that leaves more room than its rounding
    errors; whoever is closer to the limit is decided in rational numbers.

    Parameters
    ----------
    problem : MeanProblem
        The kind of noise.
    integers : ndarray of int64 of shape (n,)
        Integer weights W.
    levels : ndarray of float64 of shape (n,)
        ε or ρ.
    bound : Fraction
        What `cost_bound` returned: t/(d R), or V/R².

    Raises
    ------
    RuntimeError
        If a level would be exceeded; nothing has been released then.
    """
    if not bound and np.any((integers > 0) & np.isfinite(levels)):
        raise RuntimeError("A private user has weight, but there is no noise.")
    limit = float(bound) * (1 - 2 * _FLOAT_ERROR)
    close = np.flatnonzero(_costs(problem, integers, levels) > limit)
    for weight, level in zip(integers[close].tolist(), levels[close].tolist(), strict=True):
        cost = weight**2 if problem.noise == "gaussian" else weight
        allowed = (2 if problem.noise == "gaussian" else 1) * bound * Fraction(level)
        if cost > allowed:
            raise RuntimeError("The noise is too small for the level of a user.")


def privacy_losses(
    problem: MeanProblem, integers: IntArray, levels: FloatArray, bound: Fraction
) -> FloatArray:
    """Return what each user really loses: d W_i R/t, or (W_i R)²/(2 V)."""
    losses: FloatArray = integers.astype(np.float64)
    if not bound:
        return np.where(losses > 0, np.inf, 0.0)
    if problem.noise == "gaussian":
        losses *= losses
        losses /= 2
    losses /= float(bound)
    # The exact ones do not exceed the levels; floats might, by a last digit.
    return np.minimum(losses, levels, out=losses)


def relative_noise(problem: MeanProblem, bound: Fraction, total: int) -> float:
    """Return η, the noise in units of `problem.unit_scales`, that a bound stands for."""
    if problem.noise == "gaussian":
        return float(np.sqrt(float(bound))) / float(total)
    return float(bound / total)


def data_on_grid(problem: MeanProblem, rows: FloatArray) -> IntArray:
    """Return clipped data in steps of a 2^40-th of the width, counted from the centre.

    Parameters
    ----------
    problem : MeanProblem
        Bounds and shape: a box, or the ellipsoid inside it.
    rows : ndarray of float64 of shape (b, d)
        Finite values.

    Returns
    -------
    ndarray of int64 of shape (b, d)
        Within ±2^39; for a ball, the sum of the squares of a row is at most 2^78. Each row depends
        on that row alone.
    """
    units: FloatArray = np.clip(rows, problem.lower, problem.upper)
    units -= problem.lower
    units /= problem.widths  # at most 1: rounding is monotone
    units *= float(DATA_STEPS)
    half = DATA_STEPS // 2
    if not problem.is_ball:
        steps = np.rint(units, out=units).astype(np.int64)
        steps -= half
        return steps
    units -= float(half)
    # Norms are off by at most (d/2 + 2) 2^-53, and what follows by 4 times 2^-53: the factor below
    # leaves room for twice as much, and truncation goes towards the centre.
    room = 1 - (problem.n_features + 16) * 2.0**-52
    norms = np.sqrt(np.einsum("ij,ij->i", units, units))
    limit = half * room
    outside = norms > limit
    units[outside] *= (limit / norms[outside])[:, np.newaxis]
    return np.trunc(units).astype(np.int64)


def exact_sum(problem: MeanProblem, X: FloatArray, integers: IntArray) -> list[int]:
    """Return ``sum_i W_i g_ij`` for every column j, with g the data in steps.

    Parameters
    ----------
    problem : MeanProblem
        The bounds.
    X : ndarray of float64 of shape (n, d)
        Finite values; clipped here.
    integers : ndarray of int64 of shape (n,)
        Integer weights, between 0 and 2^60.

    Returns
    -------
    list of int, of length d
        Exact.

    Notes
    -----
    Numbers are split into limbs of 20 bits. Products of two limbs, summed over a block of at most
    2^15 rows, are below 2^56.
    """
    d = problem.n_features
    totals = [0] * d
    n_rows = max(_BLOCK_VALUES // d, 1)
    for start in range(0, len(X), n_rows):
        steps = data_on_grid(problem, X[start : start + n_rows])
        weights = integers[start : start + n_rows]
        data_limbs = (steps & _LIMB_MASK, steps >> _LIMB_BITS)
        weight_limbs = (
            weights & _LIMB_MASK,
            (weights >> _LIMB_BITS) & _LIMB_MASK,
            weights >> (2 * _LIMB_BITS),
        )
        for i, weight_limb in enumerate(weight_limbs):
            for j, data_limb in enumerate(data_limbs):
                shift = _LIMB_BITS * (i + j)
                for column, partial in enumerate((weight_limb @ data_limb).tolist()):
                    totals[column] += partial << shift
    return totals


def draw_noise(problem: MeanProblem, bound: Fraction, stream: WordStream) -> list[int]:
    """Return the noise of every column, in steps times weight steps.

    Parameters
    ----------
    problem : MeanProblem
        The kind of noise and the number of columns.
    bound : Fraction
        What `cost_bound` returned; 0 means none.
    stream : WordStream
        Where random bits come from.

    Returns
    -------
    list of int, of length d
    """
    d = problem.n_features
    if not bound:
        return [0] * d
    if problem.noise == "gaussian":
        variance = _simple(bound * DATA_STEPS**2)
        return [int(x) for x in discrete_gaussian(variance, d, stream)]
    scale = _simple(bound * DATA_STEPS * d)
    return [int(x) for x in discrete_laplace(scale, d, stream)]


def _simple(number: Fraction) -> Fraction | int:
    return number if number < _LARGE_SCALE else -(-number.numerator // number.denominator)


def as_floats(problem: MeanProblem, numerators: list[int], denominator: int) -> FloatArray:
    """Return ``middle + width * numerator / (R * denominator)``, rounded once.

    Parameters
    ----------
    problem : MeanProblem
        The bounds.
    numerators : list of int, of length d
        T + noise.
    denominator : int
        The sum of the integer weights, positive.

    Returns
    -------
    ndarray of float64 of shape (d,)
        Beyond the largest float, the largest float.
    """
    return exact_combination(
        problem, [Fraction(one, DATA_STEPS * denominator) for one in numerators]
    )


def exact_combination(problem: MeanProblem, positions: list[Fraction]) -> FloatArray:
    """Return ``middle + width * position``, computed exactly and rounded once.

    Parameters
    ----------
    problem : MeanProblem
        The bounds.
    positions : list of Fraction, of length d
        In widths, counted from the middle.

    Returns
    -------
    ndarray of float64 of shape (d,)
        Beyond the largest float, the largest float.
    """
    largest = Fraction(sys.float_info.max)
    exact = (
        middle + width * position
        for middle, width, position in zip(
            problem.exact_middle(), problem.exact_widths(), positions, strict=True
        )
    )
    return np.array([float(min(max(one, -largest), largest)) for one in exact])
