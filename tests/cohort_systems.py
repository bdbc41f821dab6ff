"""Random cohort systems and their reports, with explicit matrices beside them."""

from typing import NamedTuple

import numpy as np

from skldp.channels import distinct_buckets
from skldp.decoding import CohortSystem


def random_table(rng, size, n_cohorts, n_buckets, n_hashes=1):
    dtype = np.min_scalar_type(n_buckets - 1)
    table = rng.integers(0, n_buckets, (n_cohorts, n_hashes, size), dtype=dtype)
    return distinct_buckets(table, n_buckets)


def filled(n_buckets, n_hashes=1):
    return 1 - (1 - 1 / n_buckets) ** n_hashes


def system_of(table, n_buckets, n_reports, *, centred=True):
    weights = np.repeat(np.asarray(n_reports, dtype=float)[:, np.newaxis], n_buckets, axis=1)
    centre = filled(n_buckets, table.shape[1]) if centred else 0.0
    return CohortSystem(table, n_buckets, weights, centre)


def explicit_matrix(table, n_buckets, centre=0.0):
    """X by its definition, with loops: a row per cohort and bucket, a column per candidate."""
    n_cohorts, _, size = table.shape
    matrix = np.zeros((n_cohorts, n_buckets, size))
    for cohort in range(n_cohorts):
        for candidate in range(size):
            for bucket in table[cohort, :, candidate]:
                if bucket < n_buckets:
                    matrix[cohort, bucket, candidate] = 1.0
    return matrix.reshape(n_cohorts * n_buckets, size) - centre


class Simulated(NamedTuple):
    system: CohortSystem
    shares: np.ndarray  # unbiased bucket shares
    n_reports: np.ndarray
    offset: float
    slope: float

    @property
    def target(self):
        return self.shares - self.system.centre

    @property
    def rates(self):
        return self.offset + self.slope * self.shares


def simulate(rng, table, n_buckets, p, n_reports, epsilon, *, bits=False, rest=0.0, centred=True):
    """Reports of O-RR, or of O-RAPPOR (`bits`; one hash, or bits drawn as if independent)."""
    n_hashes = table.shape[1]
    system = system_of(table, n_buckets, n_reports, centred=centred)
    shares = system.scatter(p) + rest * filled(n_buckets, n_hashes)
    if bits:
        offset = 1 / (1 + np.exp(epsilon / (2 * n_hashes)))
        slope = 1 - 2 * offset
        counts = rng.binomial(n_reports[:, np.newaxis], offset + slope * shares)
    else:
        offset = 1 / (np.exp(epsilon) + n_buckets - 1)
        slope = np.expm1(epsilon) * offset
        rates = offset + slope * shares
        counts = np.array(
            [rng.multinomial(n, r / r.sum()) for n, r in zip(n_reports, rates, strict=True)]
        )
    shares = (counts / np.maximum(n_reports, 1)[:, np.newaxis] - offset) / slope
    shares[n_reports == 0] = 0.0
    return Simulated(system, shares, n_reports, offset, slope)


def zipf(size):
    p = 1.0 / np.arange(1, size + 1)
    return p / p.sum()
