"""Losses between a true and an estimated distribution.

All four take arrays of shape (..., k), compare along the last axis, and never broadcast: a
vector compared with a column is the classic way to a plausible, wrong number. The estimates
need not be distributions: an unprojected estimate may have negative entries and any sum.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skldp._validation import finite_floats

Loss: TypeAlias = float | NDArray[np.float64]


def l1_loss(p_true: ArrayLike, p_estimated: ArrayLike) -> Loss:
    """Sum of absolute differences.

    Parameters
    ----------
    p_true, p_estimated : array-like of shape (..., k)
        Frequencies, finite; the two shapes must be equal.

    Returns
    -------
    float or ndarray of shape (...)
        The loss along the last axis: a float for two vectors, otherwise one per leading index.

    Raises
    ------
    ValueError
        If the shapes differ, are empty, or a value is not a finite real number.

    See Also
    --------
    total_variation : Half of it.
    expected_l1_loss : What to expect from a mechanism.

    Examples
    --------
    >>> from skldp.metrics import l1_loss
    >>> l1_loss([0.5, 0.5], [0.75, 0.25])
    0.5
    """
    return _value(np.abs(_difference(p_true, p_estimated)).sum(axis=-1))


def l2_loss(p_true: ArrayLike, p_estimated: ArrayLike) -> Loss:
    """Sum of squared differences: the SQUARED Euclidean distance.

    Parameters
    ----------
    p_true, p_estimated : array-like of shape (..., k)
        Frequencies, finite; the two shapes must be equal.

    Returns
    -------
    float or ndarray of shape (...)
        The loss along the last axis: a float for two vectors, otherwise one per leading index.

    Raises
    ------
    ValueError
        If the shapes differ, are empty, or a value is not a finite real number.

    See Also
    --------
    mse_loss : Divided by the number of categories.
    expected_l2_loss : What to expect from a mechanism.

    Examples
    --------
    >>> from skldp.metrics import l2_loss
    >>> l2_loss([0.5, 0.5], [0.75, 0.25])
    0.125
    """
    return _value(np.square(_difference(p_true, p_estimated)).sum(axis=-1))


def mse_loss(p_true: ArrayLike, p_estimated: ArrayLike) -> Loss:
    """Mean of squared differences over the categories.

    Parameters
    ----------
    p_true, p_estimated : array-like of shape (..., k)
        Frequencies, finite; the two shapes must be equal.

    Returns
    -------
    float or ndarray of shape (...)
        The loss along the last axis: a float for two vectors, otherwise one per leading index.

    Raises
    ------
    ValueError
        If the shapes differ, are empty, or a value is not a finite real number.

    See Also
    --------
    l2_loss : The sum instead of the mean.

    Examples
    --------
    >>> from skldp.metrics import mse_loss
    >>> mse_loss([0.5, 0.5], [0.75, 0.25])
    0.0625
    """
    return _value(np.square(_difference(p_true, p_estimated)).mean(axis=-1))


def total_variation(p_true: ArrayLike, p_estimated: ArrayLike) -> Loss:
    """Half the sum of absolute differences.

    For two distributions this is the largest difference between their probabilities of any
    event, between 0 and 1.

    Parameters
    ----------
    p_true, p_estimated : array-like of shape (..., k)
        Frequencies, finite; the two shapes must be equal.

    Returns
    -------
    float or ndarray of shape (...)
        The distance along the last axis: a float for two vectors, otherwise one per leading
        index.

    Raises
    ------
    ValueError
        If the shapes differ, are empty, or a value is not a finite real number.

    See Also
    --------
    l1_loss : Twice it.

    Examples
    --------
    >>> from skldp.metrics import total_variation
    >>> total_variation([0.5, 0.5], [0.75, 0.25])
    0.25
    """
    return _value(0.5 * np.abs(_difference(p_true, p_estimated)).sum(axis=-1))


def _difference(p_true: ArrayLike, p_estimated: ArrayLike) -> NDArray[np.float64]:
    """Subtract two arrays of equal, non-empty shape and finite numbers."""
    true = _as_floats(p_true, "p_true")
    estimated = _as_floats(p_estimated, "p_estimated")
    if true.shape != estimated.shape:
        raise ValueError(
            f"p_true and p_estimated must have the same shape, got {true.shape} and "
            f"{estimated.shape}; nothing is broadcast."
        )
    return estimated - true


def _as_floats(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = finite_floats(values, name)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"{name} must have at least one entry along the last axis.")
    return array


def _value(loss: NDArray[np.float64]) -> Loss:
    """Return a Python float for a single loss, so that it prints and serialises as one."""
    return loss if np.ndim(loss) else float(loss)
