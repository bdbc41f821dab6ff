"""The public side of a mean: bounds, noise and variance, and the constants that follow from them.

Laplace noise protects a point of the box ``lower <= x <= upper``: two points differ by at most one
width in each of d coordinates, so coordinate j gets Laplace noise of scale d η D_j, D_j its width.
Gaussian noise protects a point of the ellipsoid that touches the box from inside, a ball of radius
r for equal widths 2r: two points differ by at most 2 in units of the half-widths, so coordinate j
gets Gaussian noise of standard deviation η D_j. In one dimension both are the interval.

Summed over the coordinates, the noise has the variance N η² with N = 2 d² Σ D_j² (Laplace) or
Σ D_j² (Gaussian), and the data at worst v = Σ D_j²/4 (box) or max_j D_j²/4 (ellipsoid). So N/v is
8 d² on a box and, for equal widths, 4 d on a ball.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp._validation import real_array

FloatArray = NDArray[np.float64]

__all__ = ["MeanProblem", "read_variance"]

# Least variance in squared widths: the threshold stays a finite float at every level.
_LEAST_VARIANCE = 2.0**-190


@dataclass(frozen=True, eq=False)
class MeanProblem:
    """Bounds, noise and variance of a mean of d columns.

    Parameters
    ----------
    lower, upper : ndarray of float64 of shape (d,)
        Public bounds.
    noise : {"laplace", "gaussian"}
        The kind of noise.
    variance : ndarray of float64 of shape (d,), or None
        Known variance of each column; None for the worst case.
    """

    lower: FloatArray
    upper: FloatArray
    noise: str = "laplace"
    variance: FloatArray | None = None

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        return self.lower.size

    @property
    def widths(self) -> FloatArray:
        """Widths D of the bounds, shape (d,)."""
        return self.upper - self.lower

    @property
    def is_ball(self) -> bool:
        """Whether data are clipped to the ellipsoid inside the box."""
        return self.noise == "gaussian" and self.n_features > 1

    @property
    def column_variances(self) -> FloatArray:
        """Variance of each column that errors are computed for, shape (d,)."""
        return self.widths**2 / 4 if self.variance is None else self.variance

    @property
    def data_variance(self) -> float:
        """Variance v of one user's value, summed over the columns."""
        if self.variance is None and self.is_ball:
            return float(self.column_variances.max())
        return float(self.column_variances.sum())

    @property
    def noise_constant(self) -> float:
        """N, where N η² is the variance of the noise, summed over the columns."""
        squares = float((self.widths**2).sum())
        return squares if self.noise == "gaussian" else 2 * self.n_features**2 * squares

    @property
    def ratio(self) -> float:
        """N/v."""
        return self.noise_constant / self.data_variance

    @property
    def unit_scales(self) -> FloatArray:
        """Scale of the noise in each column for η = 1: Laplace scale or deviation, shape (d,)."""
        return self.widths if self.noise == "gaussian" else self.n_features * self.widths

    def linear(self, levels: FloatArray) -> FloatArray:
        """Return linear levels: ε itself, or √(2ρ)."""
        return np.sqrt(2 * levels) if self.noise == "gaussian" else levels

    def native(self, linear: Any) -> Any:
        """Return levels in the unit of the noise: ε, or ρ."""
        return linear**2 / 2 if self.noise == "gaussian" else linear

    def squared_error(self, weights: FloatArray, eta: float, data_variance: float) -> float:
        """Return v ‖w‖² + N η²."""
        return data_variance * float(np.dot(weights, weights)) + self.noise_constant * eta**2

    def exact_middle(self) -> list[Fraction]:
        """Return the centre of the bounds, exactly."""
        return [
            (Fraction(low) + Fraction(high)) / 2
            for low, high in zip(self.lower.tolist(), self.upper.tolist(), strict=True)
        ]

    def exact_widths(self) -> list[Fraction]:
        """Return the widths, exactly."""
        return [
            Fraction(high) - Fraction(low)
            for low, high in zip(self.lower.tolist(), self.upper.tolist(), strict=True)
        ]


def read_variance(variance: Any, widths: FloatArray, *, allow_zero: bool = False) -> FloatArray:
    """Return the variance of each column.

    Parameters
    ----------
    variance : real number or array-like of shape (d,)
        At most ``widths**2 / 4``, the largest variance within bounds.
    widths : ndarray of float64 of shape (d,)
        Widths of the bounds.
    allow_zero : bool
        Whether 0 is a variance too.

    Returns
    -------
    ndarray of float64 of shape (d,)

    Raises
    ------
    TypeError
        If it is not real numbers.
    ValueError
        If its shape does not fit, or a variance is not possible.
    """
    array = real_array(variance, "variance")
    if array.dtype.kind not in "iuf":
        raise TypeError(
            'variance must be "worst_case", a real number, or an array with one number for every '
            f"column; got {variance!r}."
        )
    if array.ndim > 1 or (array.ndim == 1 and array.size != widths.size):
        raise ValueError(
            f"variance must be a number or have shape ({widths.size},), got shape {array.shape}."
        )
    values: FloatArray = np.broadcast_to(array.astype(np.float64), widths.shape).copy()
    relative = values / widths**2
    # The largest one may come from a computation with rounding errors of its own.
    if not (relative <= 0.25 * (1 + 1e-9)).all():
        raise ValueError(
            "variance exceeds (upper - lower)**2 / 4, which no data within bounds have, or is NaN."
        )
    if not (relative >= (0.0 if allow_zero else _LEAST_VARIANCE)).all():
        raise ValueError("variance must be positive, and not negligible beside the bounds.")
    return values
