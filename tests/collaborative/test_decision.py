"""The test of a common mean: threshold, pairs, blocks, and its false alarms."""

import numpy as np
import pytest
from scipy import stats

from skldp.collaborative import _decision
from skldp.collaborative._decision import accepted, compatible, row_blocks, threshold
from skldp.collaborative._statistics import Statistics


def random_statistics(rng, *shape):
    known = rng.random(shape) < 0.9
    return Statistics(
        np.where(known, rng.normal(0, 0.3, shape), np.nan),
        np.where(known, rng.uniform(1e-4, 1e-2, shape), np.inf),
        np.where(known, rng.uniform(0, 0.05, shape), np.inf),
        np.where(known, rng.integers(1, 1000, shape), 0),
    )


@pytest.mark.parametrize("significance", [1e-9, 0.05, 0.5, 0.999])
def test_the_threshold_inverts_the_bound(significance):
    variance, scale = np.meshgrid([1e-12, 1e-3, 1.0, 1e6], [0.0, 1e-6, 0.1, 30.0])
    limit = threshold(variance, scale, np.log(2 / significance))
    bound = 2 * np.exp(-(limit**2) / (2 * (variance + scale * limit)))
    np.testing.assert_allclose(bound, significance, rtol=1e-9)


def test_the_threshold_without_tails_is_that_of_hoeffding():
    assert threshold(2.0, 0.0, 3.0) == pytest.approx(np.sqrt(12.0))
    assert threshold(0.0, 2.0, 3.0) == pytest.approx(12.0)


@pytest.mark.parametrize("significance", [0.05, "1/t"])
def test_pairs_are_tested_as_the_formula_says(significance):
    rng = np.random.default_rng(0)
    own, peers = random_statistics(rng, 30), random_statistics(rng, 30)
    found = compatible(own, peers, significance)
    for a in range(30):
        if own.n_observed[a] == 0 or peers.n_observed[a] == 0:
            assert not found[a]
            continue
        logarithm = np.log(2 / (1 / own.n_observed[a] if significance == "1/t" else significance))
        scale = max(own.scale[a], peers.scale[a])
        variance = own.variance[a] + peers.variance[a]
        limit = scale * logarithm + np.sqrt((scale * logarithm) ** 2 + 2 * variance * logarithm)
        assert found[a] == (abs(own.mean[a] - peers.mean[a]) <= limit)
    assert found.any() and (~found[(own.n_observed > 0) & (peers.n_observed > 0)]).any()


def test_one_over_t_is_that_significance_at_that_count():
    rng = np.random.default_rng(1)
    own, peers = random_statistics(rng, 200), random_statistics(rng, 200)
    own = own._replace(n_observed=np.full(200, 37))
    np.testing.assert_array_equal(compatible(own, peers, "1/t"), compatible(own, peers, 1 / 37))


@pytest.mark.parametrize("n_agents", [1, 2, 17, 150])
@pytest.mark.parametrize("snapshots", [False, True])
def test_blocks_of_rows_give_the_full_matrix(n_agents, snapshots, monkeypatch):
    rng = np.random.default_rng(2)
    own = random_statistics(rng, n_agents)
    peers = random_statistics(rng, *((n_agents, n_agents) if snapshots else (n_agents,)))
    expected = np.eye(n_agents, dtype=bool)
    for a in range(n_agents):
        for b in range(n_agents):
            if a != b:
                one = peers.at((a, b)) if snapshots else peers.at(b)
                expected[a, b] = compatible(own.at(a), one, 0.05)
    for pairs in (1, 40, 10**6):
        monkeypatch.setattr(_decision, "_PAIRS", pairs)
        np.testing.assert_array_equal(accepted(own, peers, 0.05), expected)


@pytest.mark.parametrize("n_agents", [0, 1, 3, 1000, 20_000])
def test_blocks_cover_all_agents_once_and_stay_small(n_agents):
    blocks = row_blocks(n_agents)
    agents = np.arange(n_agents)
    covered = [agents[rows] for rows in blocks]
    np.testing.assert_array_equal(np.concatenate([*covered, agents[:0]]), agents)
    assert all(
        (rows.stop - rows.start) * n_agents <= max(_decision._PAIRS, n_agents) for rows in blocks
    )


def test_nobody_is_accepted_before_it_is_known_but_oneself():
    unknown = Statistics.unknown(3)
    known = Statistics(np.zeros(3), np.ones(3), np.ones(3), np.ones(3, dtype=np.int64))
    for own, peers in ((unknown, known), (known, unknown), (unknown, unknown)):
        np.testing.assert_array_equal(accepted(own, peers, 0.05), np.eye(3, dtype=bool))
    assert accepted(known, known, 0.05).all()


@pytest.mark.statistical
@pytest.mark.parametrize("significance", [0.05, 0.3])
def test_agents_with_the_same_mean_are_seldom_rejected(significance):
    # Bernstein's bound holds for bounded data and for Laplace noise, so rejections are at most
    # `significance`; a one-sided binomial test of 50,000 pairs at 1e-6.
    rng = np.random.default_rng(4)
    n_pairs, n_own, n_peer, width, epsilon = 50_000, 20, 10, 1.0, 2.0
    own = Statistics(
        rng.binomial(n_own, 0.3, n_pairs) / n_own,
        np.full(n_pairs, 0.21 / n_own),
        np.full(n_pairs, width / 3 / n_own),
        np.full(n_pairs, n_own),
    )
    noise = rng.laplace(0, width / epsilon, n_pairs)
    peers = Statistics(
        (rng.binomial(n_peer, 0.3, n_pairs) + noise) / n_peer,
        np.full(n_pairs, 0.21 / n_peer + 2 * (width / epsilon) ** 2 / n_peer**2),
        np.full(n_pairs, width / epsilon / n_peer),
        np.full(n_pairs, n_peer),
    )
    rejected = int(np.count_nonzero(~compatible(own, peers, significance)))
    assert stats.binomtest(rejected, n_pairs, significance, alternative="greater").pvalue > 1e-6
    assert rejected > 0
