"""The error to expect of a channel with cohorts, averaged over hash functions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp.channels._attribute import SymbolChannel
from skldp.channels._hashing import Hashing
from skldp.channels._krr import KRRChannel

__all__ = ["least_squares_variance"]


def least_squares_variance(
    hashing: Hashing, bucket: SymbolChannel, p: NDArray[np.float64], n_reports: int
) -> NDArray[np.float64]:
    """Return the variances of the least-squares estimates; see `CohortChannel.variance`.

    Parameters
    ----------
    hashing : Hashing
        Cohorts and buckets.
    bucket : SymbolChannel
        Channel of a bucket, or of a Bloom filter.
    p : ndarray of float64 of shape (S,)
        Frequencies of the candidates.
    n_reports : int
        Number of reports.

    Returns
    -------
    ndarray of float64 of shape (S,)
        To first order in the sharing of buckets.
    """
    filled = 1.0 - (1.0 - 1.0 / hashing.n_buckets) ** hashing.n_hashes
    shared = hashing.collision_probability
    own = p + (1.0 - p) * shared  # P(a bit of s is set)
    offset, slope = float(bucket.offset), float(bucket.slope)

    def diagonal(share: Any) -> Any:
        rate = offset + slope * share
        if isinstance(bucket, KRRChannel):
            return rate / slope**2
        return rate * (1.0 - rate) / slope**2 + share**2

    n_bits = hashing.n_buckets * filled
    gram = n_bits * (1.0 - shared)
    middle = n_bits * (1.0 - shared) ** 2 * diagonal(own)
    middle += hashing.n_buckets * (1.0 - filled) * shared**2 * diagonal(filled)
    mean = gram * p
    if isinstance(bucket, KRRChannel):
        mean += (n_bits - hashing.n_buckets * shared) * offset / slope
    middle += n_bits * (hashing.n_hashes - 1) * p - mean**2
    # Others in the buckets of s: their spread over the hash functions is no variance of the
    # estimate, and they are estimated themselves, from all C cohorts, this one included.
    overlap = gram * shared * (1.0 - filled) * hashing.n_buckets / (hashing.n_buckets - 1)
    spread = np.square(p).sum() - p**2
    middle -= overlap * (spread + (p.sum() - p - spread) / hashing.n_cohorts)
    first: NDArray[np.float64] = middle / gram**2 / n_reports
    is_closed = hashing.alphabet is not None and hashing.n_hashes == 1
    load = (len(p) - is_closed) / (hashing.n_cohorts * (hashing.n_buckets - 1))
    if shared == 0.0:
        return first
    if load >= 1.0:
        return np.full(len(p), np.inf)
    # The mean inverse eigenvalue of the normal equations: Marchenko-Pastur, and for a closed
    # alphabet that of a sum of C free projections.
    excess = max(load - is_closed / hashing.n_cohorts, 0.0) / (1.0 - load)
    first += first.mean() * excess
    return first
