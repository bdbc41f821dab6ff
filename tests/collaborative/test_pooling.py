"""Combining accepted agents, against scalar formulas."""

import math

import numpy as np
import pytest

from skldp.collaborative import _decision
from skldp.collaborative._pooling import combine, variance_between
from skldp.collaborative._statistics import Statistics

WEIGHTS = ("pooled", "inverse_variance", "count")


def random_statistics(rng, *shape, spread=0.05):
    return Statistics(
        rng.normal(0.4, spread, shape),
        rng.uniform(1e-4, 1e-2, shape),
        rng.uniform(0, 0.05, shape),
        rng.integers(1, 1000, shape),
    )


def dersimonian_laird(means, variances):
    """Return the pool of FORMULAS and its variance, and Q and its gate, in plain Python."""
    weights = [1 / v for v in variances]
    total = sum(weights)
    pool = sum(w * t for w, t in zip(weights, means, strict=True)) / total
    disagreement = sum(w * (t - pool) ** 2 for w, t in zip(weights, means, strict=True))
    k = len(means)
    gate = (k - 1) + 2 * math.sqrt(2 * (k - 1))
    between = 0.0
    if disagreement > gate:
        between = (disagreement - (k - 1)) / (total - sum(w**2 for w in weights) / total)
    weights = [1 / (v + between) for v in variances]
    total = sum(weights)
    pool = sum(w * t for w, t in zip(weights, means, strict=True)) / total
    return pool, 1 / total + between, between


def scalar_combine(own, peers, accepted, a, peer_weights):
    others = [b for b in np.flatnonzero(accepted[a]).tolist() if b != a]
    rows = peers if peers.mean.ndim == 1 else peers.at(a)
    t = [float(rows.mean[b]) for b in others]
    v = [float(rows.variance[b]) for b in others]
    mine, mine_variance = float(own.mean[a]), float(own.variance[a])
    if peer_weights == "count":
        n = [int(own.n_observed[a]), *(int(rows.n_observed[b]) for b in others)]
        mean = sum(c * x for c, x in zip(n, [mine, *t], strict=True)) / sum(n)
        spread = sum(c**2 * x for c, x in zip(n, [mine_variance, *v], strict=True)) / sum(n) ** 2
        return mean, spread
    if not others:
        return mine, mine_variance
    if peer_weights == "inverse_variance":
        weights = [1 / x for x in [mine_variance, *v]]
        mean = sum(w * x for w, x in zip(weights, [mine, *t], strict=True)) / sum(weights)
        return mean, 1 / sum(weights)
    pool, pool_variance, _ = dersimonian_laird(t, v)
    information = 1 / mine_variance + 1 / pool_variance
    return (mine / mine_variance + pool / pool_variance) / information, 1 / information


@pytest.mark.parametrize("peer_weights", WEIGHTS)
@pytest.mark.parametrize("snapshots", [False, True])
@pytest.mark.parametrize("n_agents", [1, 2, 3, 40])
def test_combination_is_that_of_the_formulas(peer_weights, snapshots, n_agents, monkeypatch):
    rng = np.random.default_rng(n_agents)
    own = random_statistics(rng, n_agents)
    peers = random_statistics(rng, *((n_agents, n_agents) if snapshots else (n_agents,)))
    accepted = rng.random((n_agents, n_agents)) < 0.4
    accepted[-1] = False
    expected = [scalar_combine(own, peers, accepted, a, peer_weights) for a in range(n_agents)]
    for pairs in (1, 200, 10**6):
        monkeypatch.setattr(_decision, "_PAIRS", pairs)
        found = combine(own, peers, accepted, peer_weights)
        np.testing.assert_allclose(np.transpose(found), expected, rtol=1e-11)


def test_both_sides_of_the_gate_are_tested_above():
    rng = np.random.default_rng(40)
    random_statistics(rng, 40)
    peers = random_statistics(rng, 40)
    accepted = rng.random((40, 40)) < 0.4
    between = [
        dersimonian_laird(peers.mean[row].tolist(), peers.variance[row].tolist())[2] > 0
        for row in accepted
    ]
    assert 0 < sum(between) < 40


def test_the_gate_is_two_standard_deviations_above_the_expectation():
    # Three agents with variance 1 and means -x, 0, x: Q = 2 x², the gate 2 + 4, so x = √3.
    weights = np.ones((2, 3))
    means = np.array([[-1, 0, 1], [-1, 0, 1]]) * np.array([[1.732], [1.733]])
    found = variance_between(means, weights, np.array([3, 3]))
    assert found[0] == 0
    assert found[1] == pytest.approx((2 * 1.733**2 - 2) / (3 - 1))


@pytest.mark.parametrize("peer_weights", WEIGHTS)
def test_who_accepts_nobody_keeps_its_own(peer_weights):
    own = random_statistics(np.random.default_rng(0), 5)
    for accepted in (np.zeros((5, 5), dtype=bool), np.eye(5, dtype=bool)):
        means, variances = combine(own, own, accepted, peer_weights)
        np.testing.assert_array_equal(means, own.mean)
        np.testing.assert_allclose(variances, own.variance, rtol=1e-15)


@pytest.mark.parametrize("peer_weights", WEIGHTS)
def test_who_knows_nothing_of_itself_has_no_mean(peer_weights):
    known = random_statistics(np.random.default_rng(0), 2)
    unknown = Statistics.unknown(3)
    both = Statistics(*map(np.append, known, unknown))
    accepted = np.eye(5, dtype=bool)
    accepted[0, 1] = accepted[1, 0] = True
    means, variances = combine(both, both, accepted, peer_weights)
    assert np.isfinite(means).tolist() == [True, True, False, False, False]
    assert np.isinf(variances).tolist() == [False, False, True, True, True]


@pytest.mark.parametrize("peer_weights", WEIGHTS)
def test_a_common_view_is_the_same_as_equal_rows(peer_weights):
    rng = np.random.default_rng(3)
    own, peers = random_statistics(rng, 30), random_statistics(rng, 30)
    accepted = rng.random((30, 30)) < 0.5
    rows = Statistics(*(np.tile(field, (30, 1)) for field in peers))
    one, other = (
        combine(own, peers, accepted, peer_weights),
        combine(own, rows, accepted, peer_weights),
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("peer_weights", WEIGHTS)
def test_means_far_from_zero_lose_no_digits_in_sums_of_squares(peer_weights):
    # A shift by 2^20 rounds means to 2^-33: what differences keep of it decides all else.
    rng = np.random.default_rng(4)
    own, peers = random_statistics(rng, 30), random_statistics(rng, 30)
    round_off = 2.0**33
    own = own._replace(mean=np.round(own.mean * round_off) / round_off)
    peers = peers._replace(mean=np.round(peers.mean * round_off) / round_off)
    accepted = rng.random((30, 30)) < 0.5
    near, near_variance = combine(own, peers, accepted, peer_weights)
    far, far_variance = combine(
        own._replace(mean=own.mean + 2**20),
        peers._replace(mean=peers.mean + 2**20),
        accepted,
        peer_weights,
    )
    np.testing.assert_allclose(far - 2**20, near, atol=2**-32)
    np.testing.assert_array_equal(far_variance, near_variance)


def test_disagreeing_peers_count_as_one_that_is_unsure():
    # A hundred precise peers, half at 0 and half at 1: τ² is about 1/4, so the pool, at 1/2, has a
    # variance of about 1/4, however many there are, and one's own variance of 1/100 prevails.
    own = Statistics(np.zeros(101), np.full(101, 1e-2), np.zeros(101), np.ones(101, dtype=int))
    peers = Statistics(
        np.arange(101) % 2 * 1.0, np.full(101, 1e-6), np.zeros(101), np.ones(101, dtype=int)
    )
    accepted = np.ones((101, 101), dtype=bool)
    pooled, _ = combine(own, peers, accepted, "pooled")
    hard, _ = combine(own, peers, accepted, "inverse_variance")
    assert np.abs(pooled).max() < 0.03 and hard.min() > 0.48
