"""Reading per-user privacy levels: what is accepted, and rounding that keeps promises."""

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST_LEVEL", "SMALLEST_LEVEL", "read_level", "read_levels"]

# Beyond these no arithmetic with squares and sums would be safe. A level below the first counts
# as 0 and a finite one above the second as that: both only promise more than was asked for.
SMALLEST_LEVEL = 2.0**-300
LARGEST_LEVEL = 2.0**300
_REAL: tuple[Any, ...] = (numbers.Real,)  # numpy's scalars, int, float, Fraction


def read_level(value: Any, name: str) -> float:
    """Return one level for all users as a float.

    Raises
    ------
    TypeError
        If it is not a real number.
    ValueError
        If it is negative or NaN.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        hint = f" Levels of single users go to fit: fit(X, {name}=levels)." * np.iterable(value)
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}.{hint}")
    return float(read_levels([value], 1, name)[0])


def read_levels(values: Any, n_users: int | None, name: str) -> NDArray[np.float64]:
    """Return one level for every user, rounded down where a float cannot hold it.

    Parameters
    ----------
    values : array-like of shape (n_users,), or a real number
        Levels at least 0; infinity is a public user, 0 one that is not used.
    n_users : int or None
        Number of users; None takes that of `values`, which must not be a number then.
    name : str
        What messages call them.

    Returns
    -------
    ndarray of float64 of shape (n_users,)
        A new array.

    Raises
    ------
    TypeError
        If the levels are not real numbers.
    ValueError
        If one is negative or NaN, or their number is not that of the users.
    """
    array = np.asarray(values)
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries: every user needs a level.")
    if array.ndim == 0 and n_users is not None:
        array = np.full(n_users, array)
    if array.ndim != 1 or (n_users is not None and array.size != n_users):
        expected = "(n_users,)" if n_users is None else f"({n_users},)"
        raise ValueError(
            f"{name} must hold one level for every user, shape {expected}, got shape "
            f"{array.shape}."
        )
    if array.size == 0:
        raise ValueError(f"{name} must not be empty.")
    levels = _floats_below(array, name)
    # NaN fails this comparison too.
    if not levels.min() >= 0:
        raise ValueError(
            f"{name} must be numbers of at least 0 (0: not used, infinity: public); it holds "
            "negative numbers or NaN."
        )
    if levels.min() < SMALLEST_LEVEL:
        levels[levels < SMALLEST_LEVEL] = 0.0
    if levels.max() > LARGEST_LEVEL:
        levels[(levels > LARGEST_LEVEL) & (levels < np.inf)] = LARGEST_LEVEL
    return levels


def _floats_below(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Return the largest floats that do not exceed the numbers: a new array."""
    kind = array.dtype.kind
    if kind in "iu":
        # Larger integers may have no float, and are no sensible levels: 2**53 keeps the promise.
        largest = array.dtype.type(min(2**53, np.iinfo(array.dtype).max))
        integers: NDArray[np.float64] = np.minimum(array, largest).astype(np.float64)
        return integers
    if kind == "f":
        floats: NDArray[np.float64] = array.astype(np.float64)
        if array.dtype.itemsize > 8:
            floats = np.where(floats > array, np.nextafter(floats, 0), floats)
        return floats
    if kind == "O":
        return np.array([_float_below(value, name) for value in array], dtype=np.float64)
    raise TypeError(f"{name} must be real numbers, got dtype {array.dtype}.")


def _float_below(value: Any, name: str) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, _REAL):
        raise TypeError(f"{name} must be real numbers, got {type(value).__name__}.")
    try:
        rounded = float(value)
    except OverflowError:
        return LARGEST_LEVEL if value > 0 else -1.0
    # Comparisons of floats with integers, fractions and extended floats are exact.
    return float(np.nextafter(rounded, -np.inf)) if rounded > value else rounded
