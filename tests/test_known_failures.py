"""Failures seen in other packages for local privacy: none of them happens here.

Those with a test elsewhere: ε spent per bit, lies that redraw the truth, float thresholds
(test_realized_epsilon, test_delivered_epsilon); repeated noise (test_noise_and_caches); missing
and unknown values, learned domains (test_mechanism_inputs); reports decoded as another
mechanism's (test_frequency_estimator).
"""

import numpy as np
import pytest
from scipy.stats import chi2

from skldp import FrequencyEstimator, KRRTransformer, RapporTransformer
from skldp.channels import KRRChannel, RapporChannel
from skldp.datasets import geometric_distribution

MECHANISMS = [KRRTransformer, RapporTransformer]


@pytest.mark.parametrize("cls", [KRRChannel, RapporChannel])
def test_epsilon_is_not_rounded_on_the_way(cls):
    # An intermediate parameter rounded to two decimals gave no privacy at all at ε = 12.
    for epsilon in (12.0, 12.0001, 5.004, 0.004):
        assert cls(epsilon, 8).realized_epsilon == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("k", [2, 7, 8, 9, 63, 64, 65, 257])
def test_every_bit_is_randomized_the_last_one_too(k, packed):
    channel, n = RapporChannel(1.0, k, packed=packed), 20_000
    for symbol in (0, k - 1):
        counts = channel.count(
            np.asarray(channel.randomize(np.full(n, symbol), random_state=symbol))
        )
        rates = float(channel.offset) + float(channel.slope) * (np.arange(k) == symbol)
        statistic = ((counts - n * rates) ** 2 / (n * rates * (1 - rates))).sum()
        # Independent bits: chi-square with k degrees of freedom, false alarm 1e-7.
        assert statistic < chi2.isf(1e-7, k)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_shape_of_a_report_does_not_depend_on_the_value(mechanism):
    fitted = mechanism(categories=300).fit()
    shapes = {
        (fitted.transform([value]).shape, fitted.transform([value]).dtype) for value in range(300)
    }
    assert len(shapes) == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_first_category_is_the_first(mechanism):
    # A silent `value - 1` counted the value 0 as the last category.
    fitted = mechanism(200.0, categories=4).fit()
    for value in range(4):
        server = FrequencyEstimator().fit(fitted.transform([value]))
        np.testing.assert_allclose(server.frequencies_, np.arange(4) == value, atol=1e-12)


def test_the_largest_frequency_is_not_biased():
    # Clipping and renormalising as the only decoder lowered the top item by .22.
    k, n, n_trials = 64, 2000, 4000
    channel, p = KRRChannel(np.log(2), k), geometric_distribution(k)
    counts = channel.simulate_counts(p, n, n_trials, random_state=3)
    estimates = channel.unbias(counts, n)[:, 0]
    spread = np.sqrt(channel.variance(p, n)[0] / n_trials)
    assert abs(estimates.mean() - p[0]) < 5 * spread  # false alarm 6e-7
    server = FrequencyEstimator(channel, projection=None).fit_counts(counts[0])
    assert server.frequencies_[0] == estimates[0]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_seeds_are_not_cut_to_32_bits(mechanism):
    zeros = np.zeros(64, dtype=int)
    releases = {
        np.asarray(
            mechanism(0.5, categories=16, random_state=seed).fit().transform(zeros)
        ).tobytes()
        for seed in (0, 1, 2**32, 2**32 + 1, 2**64, 2**200)
    }
    assert len(releases) == 6


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_parameters_of_numpy_types_work(mechanism):
    fitted = mechanism(np.float64(1), categories=np.int64(5), random_state=np.int64(3)).fit()
    again = mechanism(1, categories=5, random_state=3).fit()
    assert fitted.channel_ == again.channel_
    values = np.arange(5, dtype=np.uint8)
    np.testing.assert_array_equal(fitted.transform(values), again.transform(values))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("epsilon", [710.0, 1e4, 1e300])
def test_large_epsilon_does_not_overflow(mechanism, epsilon):
    fitted = mechanism(epsilon, categories=[f"w{i}" for i in range(40)]).fit()
    reports = fitted.transform(["w7"] * 30)
    assert FrequencyEstimator().fit(reports).frequencies_[7] == pytest.approx(1)
    assert fitted.channel_.realized_epsilon <= epsilon


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_all_estimates_near_zero_are_decoded(mechanism):
    # Every symbol equally rare, and noise larger than the signal.
    pipeline = mechanism(0.01, categories=500, random_state=0).fit()
    server = FrequencyEstimator().fit(pipeline.transform(np.arange(500)))
    assert server.frequencies_.sum() == pytest.approx(1)
    counts = np.zeros(500, dtype=int)
    none_set = FrequencyEstimator(RapporChannel(1.0, 500)).fit_counts(counts, 10)
    np.testing.assert_allclose(none_set.frequencies_, 1 / 500)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_thousands_of_categories_work(mechanism):
    fitted = mechanism(12.0, categories=4096, random_state=0).fit()
    values = np.arange(4096).repeat(2)
    server = FrequencyEstimator().fit(fitted.transform(values))
    assert server.frequencies_.shape == (4096,)
    assert server.frequencies_.sum() == pytest.approx(1)
