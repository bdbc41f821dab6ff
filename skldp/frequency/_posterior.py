"""What a report says about the value behind it, given the estimated distribution."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from skldp.channels import AttributeChannel
from skldp.decoding import project_simplex

__all__ = ["log_joint_blocks"]

_BLOCK = 2**18  # entries of a table of likelihoods that are held at a time


def log_joint_blocks(
    channel: AttributeChannel, reports: NDArray[Any], frequencies: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Yield, for blocks of reports, ln P(value, report) and ln P(report).

    Parameters
    ----------
    channel : AttributeChannel
        Channel of the reports.
    reports : ndarray of shape (n_reports, channel.width)
        Checked reports.
    frequencies : ndarray of shape (k,)
        Distribution of the values; projected onto the simplex if it is not on it.

    Yields
    ------
    joint : ndarray of shape (n_block, k)
        Log-probabilities, -inf where the frequency is 0.
    total : ndarray of shape (n_block, 1)
        Their log sum.
    """
    with np.errstate(divide="ignore"):
        log_prior = np.log(project_simplex(frequencies))
    n_rows = max(1, _BLOCK // channel.n_categories)
    for start in range(0, len(reports), n_rows):
        joint = channel.log_likelihood(reports[start : start + n_rows])
        joint += log_prior
        yield joint, logsumexp(joint, axis=1, keepdims=True)
