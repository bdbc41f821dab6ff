"""Checks of public parameters that no scikit-learn configuration can skip.

scikit-learn's own parameter validation can be turned off (``skip_parameter_validation``,
``assume_finite``). A privacy parameter that is wrong must raise all the same, so the checks
here are plain functions, called by the channels themselves.
"""

import math
import numbers
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "check_bounds",
    "check_choice",
    "check_epsilon",
    "check_integer",
    "check_level",
    "finite_floats",
    "is_real",
    "real_array",
    "refuse_unreadable",
    "unchanged_on_error",
]

FloatArray = NDArray[np.float64]

_REAL: tuple[Any, ...] = (numbers.Real,)  # numpy's scalars, int, float, Fraction
# Widths of bounds: noise at the smallest level has a variance that is a finite float, and no float
# is denormal.
_WIDTHS = (1e-50, 1e50)


def check_epsilon(epsilon: Any) -> float | Fraction:
    """Return the privacy level as an exact number.

    Parameters
    ----------
    epsilon : real number
        Privacy-loss bound in nats; finite and not negative. `fractions.Fraction` is kept
        exactly, everything else as a float.

    Returns
    -------
    float or fractions.Fraction
        A float where the value has one, so that equal levels compare and serialise alike.

    Raises
    ------
    TypeError
        If `epsilon` is not a real number (booleans and strings are not).
    ValueError
        If it is NaN, infinite or negative.
    """
    if not is_real(epsilon):
        raise TypeError(
            f"epsilon must be a real number, got {type(epsilon).__name__}; "
            "pass for example epsilon=1.0."
        )
    if not isinstance(epsilon, numbers.Rational) and not math.isfinite(epsilon):
        raise ValueError(f"epsilon must be finite, got {epsilon}.")
    if epsilon < 0:
        raise ValueError(f"epsilon must be at least 0, got {epsilon}.")
    # Extended floats too have an exact ratio: rounding to a float could exceed what was asked.
    exact = Fraction(*epsilon.as_integer_ratio())
    try:
        rounded = float(exact)
    except OverflowError:
        return exact
    return rounded if exact == rounded else exact


def check_integer(value: Any, name: str, *, minimum: int, maximum: int | None = None) -> int:
    """Return `value` as a Python int within the bounds; booleans and floats are refused."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer, got a boolean.")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}.") from None
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {number}.")
    if maximum is not None and number > maximum:
        raise ValueError(f"{name} must be at most {maximum}, got {number}.")
    return number


def check_level(level: Any, name: str = "level") -> float:
    """Return a probability strictly between 0 and 1."""
    if not is_real(level):
        raise TypeError(f"{name} must be a real number, got {type(level).__name__}.")
    if not 0 < level < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {level}.")
    return float(level)


def check_choice(value: Any, name: str, choices: tuple[str | None, ...]) -> Any:
    """Return `value` if it is one of `choices`; the error lists them."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}.")
    return value


def finite_floats(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return `values` as a float64 array, not copied where it is one already.

    Parameters
    ----------
    values : array-like of real numbers
        Booleans, integers and floats of any width; any shape.
    name : str
        What the message calls the argument.

    Returns
    -------
    ndarray of float64
        The values. Read-only use only: it may be the caller's own array.

    Raises
    ------
    ValueError
        If the values are no real numbers, or one of them is NaN or infinite.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be an array of real numbers, got dtype {array.dtype}.")
    floats: NDArray[np.float64] = array.astype(np.float64, copy=False)
    # The extremes are NaN where any value is, and no boolean array of the size is needed.
    if floats.size and not (np.isfinite(floats.max()) and np.isfinite(floats.min())):
        raise ValueError(f"{name} must be finite: it contains NaN or infinity.")
    return floats


def check_bounds(bounds: Any, n_features: int | None) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds of each column.

    Parameters
    ----------
    bounds : (lower, upper)
        Each a real number or an array-like of shape (d,).
    n_features : int or None
        d; None takes it from the bounds, and 1 where both are numbers.

    Returns
    -------
    lower, upper : ndarray of float64 of shape (d,)

    Raises
    ------
    TypeError
        If the bounds are not two, or not real numbers.
    ValueError
        If there are none, their shape does not fit, they are not finite, lower is not below
        upper, or widths are not between 1e-50 and 1e50.
    """
    if bounds is None:
        raise ValueError(
            "bounds is required: pass bounds=(lower, upper), public numbers that do not come from "
            "the data. They limit what one user can change, and the noise is made for that; "
            "bounds taken from the data would make their extremes public."
        )
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise TypeError(
            "bounds must be a pair (lower, upper), each a number or an array with one number for "
            "every column."
        ) from None
    lower, upper = _side(low, n_features), _side(high, n_features)
    try:
        lower, upper = (np.array(side) for side in np.broadcast_arrays(lower, upper))
    except ValueError:
        raise ValueError(f"bounds has {lower.size} lower and {upper.size} upper values.") from None
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        raise ValueError("bounds must be finite: they hold NaN or infinity.")
    if not (lower < upper).all():
        raise ValueError("bounds must be (lower, upper) with lower < upper in every column.")
    with np.errstate(over="ignore"):
        widths = upper - lower
    if widths.min() < _WIDTHS[0] or widths.max() > _WIDTHS[1]:
        raise ValueError(
            f"The widths of bounds must lie between {_WIDTHS[0]:g} and {_WIDTHS[1]:g}; choose "
            "another unit for the data."
        )
    return lower, upper


def _side(side: Any, n_features: int | None) -> FloatArray:
    array = real_array(side, "bounds")
    if array.dtype.kind not in "iuf":
        raise TypeError(f"bounds must be real numbers, got dtype {array.dtype}.")
    if array.ndim > 1 or (array.ndim == 1 and n_features not in (None, array.size)):
        expected = "d" if n_features is None else n_features
        raise ValueError(
            f"bounds must be numbers or arrays of shape ({expected},), one number for every "
            f"column of X; got shape {array.shape}."
        )
    if array.size == 0:
        raise ValueError("bounds must not be empty.")
    floats: FloatArray = np.atleast_1d(array).astype(np.float64)
    return np.repeat(floats, n_features) if array.ndim == 0 and n_features else floats


def real_array(values: Any, name: str) -> NDArray[Any]:
    """Return an array, of floats where it held integers beyond 64 bits, or fractions."""
    array = np.asarray(values)
    if array.dtype.kind == "O" and all(is_real(one) for one in array.flat):
        try:
            return array.astype(np.float64)
        except OverflowError:
            raise ValueError(f"{name} must be finite, and this one exceeds all floats.") from None
    return array


def refuse_unreadable(X: Any) -> None:
    """Raise where scikit-learn or numpy would, with a message that quotes the values."""
    array = np.asarray(X)
    if array.ndim < 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: "
            "X.reshape(-1, 1) if there is a single column."
        )
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: values must be real numbers.")
    is_text = array.dtype.kind == "O" and any(isinstance(one, str | bytes) for one in array.flat)
    if is_text or array.dtype.kind not in "biufO":
        raise ValueError(
            "X must hold real numbers, not strings, dates or times: convert them, by a rule that "
            "does not depend on the data."
        )


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Put an estimator's attributes back if the block raises: a bad call costs no earlier fit."""
    before = estimator.__dict__.copy()
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def is_real(value: Any) -> bool:
    """Say whether a value is a real number; booleans are not."""
    return isinstance(value, _REAL) and not isinstance(value, bool | np.bool_)
