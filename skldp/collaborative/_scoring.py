"""How far observations are from the means that agents have."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp._validation import finite_floats

FloatArray = NDArray[np.float64]

__all__ = ["mean_squared_error"]


def mean_squared_error(data: FloatArray, means: FloatArray, sample_weight: Any = None) -> float:
    """Average over the observations of agents that have a mean.

    Parameters
    ----------
    data : ndarray of float64 of shape (n_steps, n_agents)
        Observations; NaN where there is none.
    means : ndarray of float64 of shape (n_agents,)
        NaN where an agent has none.
    sample_weight : array-like of shape (n_steps,), default=None
        Weights of the steps.

    Returns
    -------
    float
        In squared units of the data; infinite where a float cannot hold it.

    Raises
    ------
    ValueError
        If there is no such observation with a positive weight, or the weights are not one finite
        number for each step, none of them negative.
    """
    weights = finite_floats(
        np.ones(len(data)) if sample_weight is None else sample_weight, "sample_weight"
    )
    if weights.shape != (len(data),) or weights.min() < 0:
        raise ValueError(
            f"sample_weight must have shape ({len(data)},), one weight for each row, and none may "
            "be negative."
        )
    counted = ~np.isnan(data) & ~np.isnan(means) & (weights > 0)[:, np.newaxis]
    rows, agents = np.nonzero(counted)
    if rows.size == 0:
        raise ValueError("X has no observation of an agent that has a mean.")
    with np.errstate(over="ignore"):
        errors = (data[rows, agents] - means[agents]) ** 2
        return float(np.average(errors, weights=weights[rows]))
