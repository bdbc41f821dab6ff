"""What errors to expect: an agent on its own, a class whose data are public, and an oracle.

All agents observe once in every step, with the same variance σ², and the classes are known. Then
the squared error of an agent's mean after t steps is

- σ²/t on its own ("local");
- σ²/(c t) where the c agents of its class pool their raw data ("ideal");
- 1/(t/σ² + (c - 1)/V(t)) where it averages its own data and the releases of its class by inverse
  variance ("oracle"), with 1/V(t) = Σ 1/(σ²/n + s²/n²) over the blocks released by then, or over
  the one sum of a tree.

The three baselines stand in the literature; the form of V is this project's own.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skldp.collaborative._noise import NoiseLaw
from skldp.collaborative._releases import block_sizes

FloatArray = NDArray[np.float64]

__all__ = ["ideal_means", "ideal_mse", "local_means", "local_mse", "oracle_mse"]


def local_mse(times: ArrayLike, variance: float) -> FloatArray:
    """Return the squared error of an agent on its own.

    Parameters
    ----------
    times : array-like of int
        Numbers of steps, at least 1.
    variance : float
        Variance of an observation.

    Returns
    -------
    ndarray of float64 of the shape of `times`
        σ²/t.

    Examples
    --------
    >>> local_mse([1, 4], 0.25).tolist()
    [0.25, 0.0625]
    """
    return variance / np.asarray(times, dtype=np.float64)


def ideal_mse(times: ArrayLike, variance: float, class_size: int) -> FloatArray:
    """Return the squared error of an agent whose class pools raw data.

    Parameters
    ----------
    times : array-like of int
        Numbers of steps, at least 1.
    variance : float
        Variance of an observation.
    class_size : int
        Agents in the class.

    Returns
    -------
    ndarray of float64 of the shape of `times`
        σ²/(c t).
    """
    return local_mse(times, variance) / class_size


def oracle_mse(
    times: ArrayLike,
    variance: float,
    class_size: int,
    law: NoiseLaw,
    width: float,
    *,
    first_block: int = 32,
    growth: float = 2.0,
    tree: bool = False,
) -> FloatArray:
    """Return the squared error of an agent that knows its class, and hears its releases.

    Parameters
    ----------
    times : array-like of int
        Numbers of steps, at least 1; for a tree at most its horizon.
    variance : float
        Variance of an observation.
    class_size : int
        Agents in the class.
    law : NoiseLaw
        The noise of the releases.
    width : float
        Width of the bounds.
    first_block : int, default=32
        Observations in the first block.
    growth : float, default=2.0
        Each block is so many times the size of the one before, rounded up.
    tree : bool, default=False
        Whether sums of all observations are released, after each, instead of blocks.

    Returns
    -------
    ndarray of float64 of the shape of `times`
    """
    steps = np.asarray(times, dtype=np.int64)
    noise = law.mean_variance * width**2
    if tree:
        copies = np.bitwise_count(steps)
        heard = 1 / (variance / steps + noise * copies / steps.astype(np.float64) ** 2)
    else:
        sizes = block_sizes(int(steps.max(initial=0)), first_block, growth)
        information = 1 / (variance / sizes + noise / sizes.astype(np.float64) ** 2)
        heard = np.append(0.0, np.cumsum(information))[
            np.searchsorted(np.cumsum(sizes), steps, side="right")
        ]
    return np.asarray(1 / (steps / variance + (class_size - 1) * heard))


def local_means(X: ArrayLike) -> FloatArray:
    """Return the mean of each agent's observations so far.

    Parameters
    ----------
    X : array-like of shape (n_steps, n_agents)
        Observations; NaN where there is none.

    Returns
    -------
    ndarray of float64 of shape (n_steps, n_agents)
        NaN before the first observation.

    Examples
    --------
    >>> local_means([[1.0, 5.0], [3.0, float("nan")]]).tolist()
    [[1.0, 5.0], [2.0, 5.0]]
    """
    data = np.asarray(X, dtype=np.float64)
    return ideal_means(data, np.arange(data.shape[1]))


def ideal_means(X: ArrayLike, classes: ArrayLike) -> FloatArray:
    """Return the mean of all observations so far of each agent's class, from raw data.

    Parameters
    ----------
    X : array-like of shape (n_steps, n_agents)
        Observations; NaN where there is none.
    classes : array-like of shape (n_agents,)
        The class of each agent: labels of any kind, or the true means.

    Returns
    -------
    ndarray of float64 of shape (n_steps, n_agents)
        NaN before the first observation in the class.

    Raises
    ------
    ValueError
        If there is not one class for each agent.

    Examples
    --------
    >>> ideal_means([[1.0, 5.0, 2.0], [3.0, 6.0, 2.0]], ["a", "b", "a"]).tolist()
    [[1.5, 5.0, 1.5], [2.0, 5.5, 2.0]]
    """
    data = np.asarray(X, dtype=np.float64)
    labels, members = np.unique(np.asarray(classes), return_inverse=True)
    if data.ndim != 2 or members.shape != data.shape[1:]:
        raise ValueError(
            f"classes must have shape (n_agents,) for X of shape (n_steps, n_agents), got shapes "
            f"{members.shape} and {data.shape}."
        )
    observed = ~np.isnan(data)
    # From the middle of the data, so that running sums of large numbers lose no digits.
    origin = float(data[observed].mean()) if observed.any() else 0.0
    # Columns of one class side by side, so that each class is one stretch of them.
    order = np.argsort(members, kind="stable")
    starts = np.searchsorted(members[order], np.arange(labels.size))
    centred = np.where(observed, data - origin, 0.0)[:, order]
    sums = np.add.reduceat(centred, starts, axis=1).cumsum(axis=0)
    counts = np.add.reduceat(observed[:, order], starts, axis=1, dtype=np.int64).cumsum(axis=0)
    means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0) + origin
    return np.asarray(means[:, members])
