"""Checks of public parameters that no scikit-learn configuration can skip.

scikit-learn's own parameter validation can be turned off (``skip_parameter_validation``,
``assume_finite``). A privacy parameter that is wrong must raise all the same, so the checks
here are plain functions, called by the channels themselves.
"""

import math
import numbers
import operator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["check_choice", "check_epsilon", "check_integer", "check_level", "finite_floats"]

_REAL: tuple[Any, ...] = (numbers.Real,)  # numpy's scalars, int, float, Fraction


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
    if isinstance(epsilon, bool | np.bool_) or not isinstance(epsilon, _REAL):
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
    if isinstance(level, bool | np.bool_) or not isinstance(level, _REAL):
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
