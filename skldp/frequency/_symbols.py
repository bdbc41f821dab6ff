"""Decoding the counts of a channel over an alphabet."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import binom

from skldp.channels import SymbolChannel
from skldp.decoding import project_simplex

__all__ = ["SymbolProblem"]

_BLOCK = 2**18  # entries of a table of likelihoods that are held at a time


class SymbolProblem:
    """Counts of k-RR or RAPPOR reports; see `DecodingProblem`.

    Parameters
    ----------
    channel : SymbolChannel
        Channel of the reports.
    counts : ndarray of int64 of shape (k,)
        Counts of the reports.
    n_reports : int
        Number of reports.
    """

    decoders = ("inversion", "maximum_likelihood")
    is_complete = True

    def __init__(self, channel: SymbolChannel, counts: NDArray[np.int64], n_reports: int) -> None:
        self.channel = channel
        self.counts = counts
        self.n_reports = n_reports

    @property
    def categories(self) -> NDArray[Any]:
        return self.channel.alphabet.values

    def unbiased(self) -> NDArray[np.float64]:
        return self.channel.unbias(self.counts, self.n_reports)

    def nonlinear(self, decoder: str, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.channel.maximum_likelihood(self.counts, self.n_reports)

    def variances(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.channel.variance(raw, self.n_reports)

    def interval(
        self, raw: NDArray[np.float64], errors: NDArray[np.float64], miss: float
    ) -> NDArray[np.float64]:
        return self.channel.interval_missing(self.counts, self.n_reports, miss)

    def p_values(
        self, raw: NDArray[np.float64], errors: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        # Without anybody a count is exactly Binomial(n, offset).
        tail: NDArray[np.float64] = binom.sf(
            self.counts - 1, self.n_reports, float(self.channel.offset)
        )
        return tail

    def log_joint_blocks(
        self, reports: NDArray[Any], frequencies: NDArray[np.float64]
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        with np.errstate(divide="ignore"):
            log_prior = np.log(project_simplex(frequencies))
        n_rows = max(1, _BLOCK // self.channel.n_categories)
        for start in range(0, len(reports), n_rows):
            joint = self.channel.log_likelihood(reports[start : start + n_rows])
            joint += log_prior
            yield joint, logsumexp(joint, axis=1, keepdims=True)
