"""Measurements of open alphabets: hashing, decoding, and both at a million candidates.

Times are CPU times. ``cohorts-large`` decodes a million candidates in 64 cohorts: minutes.
"""

import math
import resource
from collections.abc import Callable, Iterator

import numpy as np
from measuring import Result, absolute, seconds, side_by_side

from skldp import FrequencyEstimator
from skldp.channels import CohortChannel, Hashing
from skldp.datasets import zipf_distribution
from skldp.decoding import CohortSystem, least_squares, simplex_least_squares


def hashing(size: float, repeats: int) -> Iterator[Result]:
    import pandas as pd

    n = int(size * 10**6)
    rng, family = np.random.default_rng(0), Hashing(256, 64)
    for n_distinct in (10**4, 10**5):
        words = np.array([f"www.example.org/{i}" for i in range(n_distinct)], dtype=object)
        column = words[rng.integers(0, n_distinct, n)]
        yield side_by_side(
            f"factorise + digest, {n_distinct:,} distinct / pandas.factorize",
            lambda column=column: family._distinct_digests(column),
            lambda column=column: pd.factorize(column),
            target=2.0,
            n=n,
            unit="ns/value",
            repeats=max(repeats // 2, 2),
        )
    # Per code: what more cohorts cost, the digests being shared by all of them.
    values, few, many = np.arange(20_000), Hashing(1024, 32), Hashing(1024, 288)
    took = min(
        seconds(lambda: many.table(values)) - seconds(lambda: few.table(values))
        for _ in range(repeats)
    )
    value = took * 1e9 / (256 * len(values))
    yield Result("mixing a code for one more cohort", "ns/code", value, None, value, 6.0)


def _simulated(
    n_candidates: int, n_cohorts: int, n_buckets: int, epsilon: float, n_users: int
) -> tuple[CohortSystem, np.ndarray, np.ndarray]:
    """Return a centred system, its target, and the true frequencies."""
    channel = CohortChannel.for_epsilon(epsilon, Hashing(n_buckets, n_cohorts), "krr")
    values, p = np.arange(n_candidates), zipf_distribution(n_candidates, 1.0)
    counts, totals = channel.simulate_counts(values, p, n_users, random_state=0)
    weights = np.repeat(totals[:, np.newaxis].astype(float), n_buckets, axis=1)
    system = CohortSystem(channel.hashing.table(values), n_buckets, weights, 1.0 / n_buckets)
    return system, channel.rates(counts, totals) - system.centre, p


def decoding(size: float, repeats: int) -> Iterator[Result]:
    n_candidates = int(size * 100_000)
    system, target, p = _simulated(n_candidates, 256, 1024, 6.0, 10**8)
    n_codes = n_candidates * 256
    yield absolute(
        "a decoding pass, H and its transpose",
        lambda: system.normal(p),
        target=6.0,
        n=n_codes,
        unit="ns/code",
        repeats=3,
    )
    fits = []
    took = seconds(lambda: fits.append(least_squares(system, target)))
    root = math.sqrt(system.load)
    predicted = 0.5 * math.log(2 / 1e-10) * (1 + root) / (1 - root)
    n_passes = float(fits[0].n_passes)
    yield Result(
        f"CG, S={n_candidates:,}, {took:.1f} s / predicted + 5",
        "passes",
        n_passes,
        predicted + 5,
        n_passes / (predicted + 5),
        1.0,
    )


def simplex_fit(size: float, repeats: int) -> Iterator[Result]:
    import cvxpy as cp
    from scipy.sparse import csr_array

    system, target, _ = _simulated(4096, 64, 256, 4.0, 10**6)
    fits = []

    def ours() -> None:
        fits.append(simplex_least_squares(system, target))

    ours()
    took = min(seconds(ours) for _ in range(3))
    n_passes = float(fits[0].n_passes)
    yield Result(f"simplex fit, load {system.load:.2f}", "passes", n_passes, None, n_passes, 60.0)
    rows = (np.arange(64)[:, np.newaxis] * 256 + system.table[:, 0]).ravel()
    columns = np.tile(np.arange(4096), 64)
    matrix = csr_array((np.ones(rows.size), (rows, columns)), shape=(64 * 256, 4096))
    q = cp.Variable(4096)
    root = np.sqrt(system.weights.ravel())
    residual = cp.multiply(root, matrix @ q - (target + system.centre).ravel())
    problem = cp.Problem(cp.Minimize(cp.sum_squares(residual)), [q >= 0, cp.sum(q) == 1])
    reference = seconds(lambda: problem.solve(solver=cp.CLARABEL))
    ratio = took / reference
    yield Result("simplex fit / cvxpy with Clarabel", "s", took, reference, ratio, 0.01)


def large(size: float, repeats: int) -> Iterator[Result]:
    n_candidates = int(size * 10**6)
    channel = CohortChannel.for_epsilon(6.0, Hashing(256, 64), "krr")
    values, p = np.arange(n_candidates), zipf_distribution(n_candidates, 1.0)
    counts, totals = channel.simulate_counts(values, p, 10**8, random_state=0)
    estimator = FrequencyEstimator(channel, candidates=values, complete=True)
    took = seconds(lambda: estimator.fit_counts(counts, totals))
    yield Result(f"decode S={n_candidates:,}, C=64, k=256", "s", took, None, took, 90.0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield Result("peak memory of the process", "GiB", peak, None, peak, 4.0)


MEASUREMENTS: dict[str, Callable[[float, int], Iterator[Result]]] = {
    "hashing": hashing,
    "decoding": decoding,
    "simplex-fit": simplex_fit,
    "cohorts-large": large,
}
