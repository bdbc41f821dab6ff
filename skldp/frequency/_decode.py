"""From the counts of one attribute to its distribution: estimate, project, intervals."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp.channels import AttributeChannel
from skldp.decoding import constrained_least_squares, normalize_simplex, project_simplex

__all__ = ["DECODERS", "PROJECTIONS", "Estimate", "confidence_interval", "decode"]

DECODERS = ("auto", "inversion", "maximum_likelihood")
PROJECTIONS = (None, "normalize", "simplex")


@dataclass(frozen=True)
class Estimate:
    """A decoded distribution.

    Attributes
    ----------
    raw : ndarray of shape (k,)
        Unbiased estimates; they may be negative.
    frequencies : ndarray of shape (k,)
        What is returned to the user.
    standard_errors : ndarray of shape (k,)
        Estimated standard errors of `raw`.
    is_raw : bool
        Whether `frequencies` is `raw`.
    """

    raw: NDArray[np.float64]
    frequencies: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    is_raw: bool


def decode(
    channel: AttributeChannel,
    counts: NDArray[np.int64],
    n_reports: int,
    *,
    decoder: str,
    projection: str | None,
    constraint: Callable[[Any], Any] | None,
) -> Estimate:
    """Estimate the distribution of one attribute."""
    raw = channel.unbias(counts, n_reports)
    variances = channel.variance(raw, n_reports)
    frequencies = raw
    if decoder == "maximum_likelihood":
        frequencies = channel.maximum_likelihood(counts, n_reports)
    if constraint is not None:
        # A count of 0 has an estimated variance of 0: half a report keeps the weights finite.
        floor = 0.5 / (float(channel.slope) * n_reports) ** 2
        weights = 1.0 / np.maximum(variances, floor)
        frequencies = constrained_least_squares(
            frequencies, weights, constraint, simplex=projection == "simplex"
        )
    elif projection == "simplex":
        frequencies = project_simplex(frequencies)
    elif projection == "normalize":
        frequencies = normalize_simplex(frequencies)
    return Estimate(raw, frequencies, np.sqrt(variances), frequencies is raw)


def confidence_interval(
    channel: AttributeChannel,
    counts: NDArray[np.int64],
    n_reports: int,
    estimate: Estimate,
    miss: float,
) -> NDArray[np.float64]:
    """Return intervals of shape (k, 2) that cover the true frequency and hold the estimate.

    A projection moves the estimate, by a shift common to many categories that can exceed its
    standard error; an interval around the moved estimate would not cover. So the interval is the
    exact one from the counts, cut to [0, 1] (which loses no coverage), and extended to the
    returned frequency where that lies outside.
    """
    ends = channel.interval_missing(counts, n_reports, miss)
    if estimate.is_raw:
        return ends
    ends = np.clip(ends, 0.0, 1.0)
    ends[:, 0] = np.minimum(ends[:, 0], estimate.frequencies)
    ends[:, 1] = np.maximum(ends[:, 1], estimate.frequencies)
    return ends
