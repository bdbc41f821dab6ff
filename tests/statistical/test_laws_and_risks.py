"""Reports and simulated counts follow the exact law, and losses meet the risks of the paper.

Every test fails by chance with probability at most 1e-6 (over the seeds, which are fixed).
"""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

from skldp.channels import KRRChannel, RapporChannel
from skldp.datasets import geometric_distribution, uniform_distribution
from skldp.metrics import expected_l1_loss, expected_l2_loss, l1_loss, l2_loss

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6
Z = norm.isf(FALSE_ALARM / 2)

CASES = [
    (4, np.log(2), 1000, geometric_distribution(4)),
    (10, 1.0, 2000, geometric_distribution(10)),
    (10, 1.0, 2000, uniform_distribution(10)),
    (32, np.log(32), 1000, geometric_distribution(32)),
]
CHANNELS = [KRRChannel, RapporChannel]


def _exact_l1_risk(channel, p, n):
    """Mean of the ℓ1 loss from the exact binomial law of every count (de Moivre's formula)."""
    rates = float(channel.offset) + float(channel.slope) * p
    m = np.floor(n * rates)
    deviation = 2 * (m + 1) * (1 - rates) * binom.pmf(m + 1, n, rates)
    # E|T - n r| = 2 (m + 1) (1 - r) P(T = m + 1), with m = floor(n r).
    return deviation.sum() / (n * float(channel.slope))


@pytest.mark.parametrize("cls", CHANNELS)
@pytest.mark.parametrize(("k", "epsilon", "n", "p"), CASES)
def test_losses_meet_the_risks(k, epsilon, n, p, cls):
    channel, n_trials = cls(epsilon, k), 40_000
    counts = channel.simulate_counts(p, n, n_trials, random_state=61)
    estimates = channel.unbias(counts, n)
    truth = np.broadcast_to(p, estimates.shape)
    for losses, exact in (
        (l2_loss(truth, estimates), expected_l2_loss(channel, p, n)),
        (l1_loss(truth, estimates), _exact_l1_risk(channel, p, n)),
    ):
        error = losses.std(ddof=1) / np.sqrt(n_trials)
        assert abs(losses.mean() - exact) < Z * error
    # The paper's ℓ1 risk is asymptotic; the binomial is within 1% of its limit here.
    assert expected_l1_loss(channel, p, n) == pytest.approx(
        _exact_l1_risk(channel, p, n), rel=0.01
    )


@pytest.mark.parametrize("cls", CHANNELS)
@pytest.mark.parametrize(("k", "epsilon", "n", "p"), CASES)
def test_estimates_are_unbiased_with_the_stated_covariance(k, epsilon, n, p, cls):
    channel, n_trials = cls(epsilon, k), 40_000
    estimates = channel.unbias(channel.simulate_counts(p, n, n_trials, random_state=62), n)
    covariance = channel.covariance(p, n)
    spread = np.sqrt(np.diag(covariance) / n_trials)
    assert (np.abs(estimates.mean(axis=0) - p) < norm.isf(FALSE_ALARM / (2 * k)) * spread).all()
    products = (estimates - p)[:, :, np.newaxis] * (estimates - p)[:, np.newaxis, :]
    error = products.std(axis=0, ddof=1) / np.sqrt(n_trials)
    z = norm.isf(FALSE_ALARM / (2 * k * k))
    assert (np.abs(products.mean(axis=0) - covariance) < z * error).all()
    np.testing.assert_allclose(np.diag(covariance), channel.variance(p, n))


def _exact_law_of_counts(channel, values):
    """Return {counts: probability} of the reports of a few users, listing every report."""
    matrix = channel.matrix()
    one_hot = [
        tuple(channel.count(channel.check_reports([row]))) for row in _every_report(channel)
    ]
    law = {(0,) * channel.n_categories: 1}
    for value in values:
        grown = Counter()
        for (counts, chance), report in product(law.items(), range(len(one_hot))):
            total = tuple(np.add(counts, one_hot[report]))
            grown[total] += chance * matrix[value, report]
        law = grown
    return law


def _every_report(channel):
    numbers = np.arange(channel.matrix().shape[1])[:, np.newaxis]
    return numbers if channel.width == 1 else numbers >> np.arange(channel.width) & 1


def _chi_square_fits(observed_rows, law):
    keys = sorted(law)
    expected = len(observed_rows) * np.array([float(law[key]) for key in keys])
    found = Counter(map(tuple, observed_rows))
    assert set(found) <= set(keys)
    observed = np.array([found[key] for key in keys])
    likely = expected >= 5
    assert likely.sum() > 3
    statistic = ((observed - expected)[likely] ** 2 / expected[likely]).sum()
    return statistic < chi2.isf(FALSE_ALARM, likely.sum())


@pytest.mark.parametrize("cls", CHANNELS)
@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_users_and_counts_follow_the_same_exact_law(cls, epsilon):
    channel, values, n_trials = cls(epsilon, 3), [0, 0, 1, 2], 30_000
    law = _exact_law_of_counts(channel, values)
    assert sum(law.values()) == 1
    simulated = channel.simulate_counts(np.bincount(values), None, n_trials, random_state=63)
    assert _chi_square_fits(simulated.tolist(), law)
    reports = channel.randomize(np.tile(values, n_trials), random_state=64)
    users = np.asarray(reports).reshape(n_trials, len(values), channel.width)
    bits = users == np.arange(3) if cls is KRRChannel else users
    drawn = bits.sum(axis=1)
    assert _chi_square_fits(drawn.tolist(), law)


@pytest.mark.parametrize("cls", CHANNELS)
def test_simulation_from_frequencies_draws_new_users_in_every_trial(cls):
    channel, p, n, n_trials = cls(2.0, 4), np.array([0.5, 0.3, 0.2, 0.0]), 50, 60_000
    counts = channel.simulate_counts(p, n, n_trials, random_state=65)
    rates = float(channel.offset) + float(channel.slope) * p
    for j in range(4):
        law = {(t,): binom.pmf(t, n, rates[j]) for t in range(n + 1)}
        assert _chi_square_fits(counts[:, j : j + 1].tolist(), law)


@pytest.mark.parametrize("cls", CHANNELS)
@pytest.mark.parametrize(("epsilon", "k", "n"), [(0.5, 3, 30), (1.0, 20, 300), (4.0, 64, 500)])
def test_intervals_cover_exactly_at_least_at_their_level(cls, epsilon, k, n):
    # The coverage is a finite binomial sum: no simulation, no allowance.
    channel = cls(epsilon, k)
    hits = np.arange(n + 1)
    for level in (0.5, 0.95, 0.999):
        lower, upper = channel.interval(hits, n, level).T
        for p in (0.0, 0.01, 0.2, 0.5, 1.0):
            rate = float(channel.offset) + float(channel.slope) * p
            covered = (lower <= p) & (p <= upper)
            # p on the edge of an interval may round to either side.
            assert binom.pmf(hits[covered], n, rate).sum() >= level - 1e-9
