"""Users whose values follow a given distribution."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skldp._validation import check_integer
from skldp.random import simulation_generator

# How far probabilities may be from a sum of 1: what float32 or printed digits lose.
_SUM_TOLERANCE = 1e-6


def sample_users(
    probabilities: ArrayLike,
    n_users: int,
    *,
    categories: ArrayLike | None = None,
    random_state: Any = None,
) -> NDArray[Any]:
    """Draw the true values of users, independently from one distribution.

    Parameters
    ----------
    probabilities : array-like of shape (k,)
        Probability of each category: finite, not negative, sum 1 (up to 1e-6; what is left is
        divided out).
    n_users : int
        How many users, at least 0.
    categories : array-like of shape (k,), default=None
        The values, k different ones, in the order of `probabilities`. None: 0, ..., k - 1.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default=None
        Where the randomness comes from; see `skldp.random.simulation_generator`.

    Returns
    -------
    ndarray of shape (n_users,)
        One value per user: int64 where `categories` is None, otherwise of its dtype.

    Raises
    ------
    TypeError
        If `n_users` is not an integer, or `random_state` of another type.
    ValueError
        If `probabilities` is not a distribution, or `categories` does not hold k different
        values of one kind.

    See Also
    --------
    geometric_distribution : A distribution to draw from.

    Notes
    -----
    These are the raw, private values of a simulated population, the input of a mechanism.

    Examples
    --------
    >>> from skldp.datasets import sample_users
    >>> values = sample_users([0.5, 0.5, 0.0], 100, categories=["a", "b", "c"], random_state=0)
    >>> values.shape, sorted(set(values.tolist()))
    ((100,), ['a', 'b'])
    """
    masses = np.asarray(probabilities, dtype=np.float64)
    if masses.ndim != 1 or masses.size == 0:
        raise ValueError(
            f"probabilities must be a non-empty one-dimensional array, got shape {masses.shape}."
        )
    if not (np.isfinite(masses).all() and (masses >= 0).all()):
        raise ValueError("probabilities must be finite and not negative.")
    if abs(masses.sum() - 1.0) > _SUM_TOLERANCE:
        raise ValueError(f"probabilities must sum to 1, got a sum of {masses.sum()}.")
    n_users = check_integer(n_users, "n_users", minimum=0)
    labels = None if categories is None else _check_categories(categories, masses.size)
    generator = simulation_generator(random_state)
    codes = generator.choice(masses.size, size=n_users, p=masses / masses.sum())
    codes = codes.astype(np.int64, copy=False)
    return codes if labels is None else labels[codes]


def _check_categories(categories: ArrayLike, n_categories: int) -> NDArray[Any]:
    """Return `categories` as an array of different values, one per probability."""
    labels = np.asarray(categories)
    if labels.shape != (n_categories,):
        raise ValueError(
            f"categories must have shape ({n_categories},), one value per probability, got "
            f"shape {labels.shape}."
        )
    listed = labels.tolist()
    # NumPy turns [1, "a"] into ["1", "a"] without a word.
    given = np.asarray(categories, dtype=object)
    if labels.dtype.kind == "U" and not all(isinstance(value, str) for value in given):
        raise ValueError("categories must be all strings or all numbers, not a mixture.")
    if len(set(listed)) != n_categories:
        raise ValueError("categories must be different from each other.")
    return labels
