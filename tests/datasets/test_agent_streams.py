"""Streams of agents: their laws, classes, gaps and seeds."""

import numpy as np
import pytest
from scipy import stats

from skldp.datasets import assign_agents, sample_agent_streams


@pytest.mark.statistical
def test_uniform_data_have_the_given_mean_and_deviation():
    # Kolmogorov-Smirnov against the exact law, for each agent; fixed seed, 1e-6 for each of six.
    means = np.array([-3.0, 0.2, 0.8])
    for deviation, default in ((0.5, None), (2.0, 2.0)):
        X = sample_agent_streams(means, 20_000, standard_deviation=default, random_state=0)
        for mean, column in zip(means, X.T, strict=True):
            law = stats.uniform(mean - np.sqrt(3) * deviation, 2 * np.sqrt(3) * deviation)
            assert law.std() == pytest.approx(deviation)
            assert stats.kstest(column, law.cdf).pvalue > 1e-6


@pytest.mark.statistical
def test_bernoulli_data_have_the_given_mean():
    # Exact binomial tests, 1e-6 for each of three agents, fixed seed.
    X = sample_agent_streams([0.1, 0.5, 0.9], 20_000, distribution="bernoulli", random_state=0)
    assert set(np.unique(X)) == {0.0, 1.0}
    for mean, column in zip((0.1, 0.5, 0.9), X.T, strict=True):
        assert stats.binomtest(int(column.sum()), 20_000, mean).pvalue > 1e-6
    certain = sample_agent_streams([0.0, 1.0], 500, distribution="bernoulli", random_state=0)
    assert (certain == [0.0, 1.0]).all()


@pytest.mark.statistical
@pytest.mark.parametrize("given", [None, [0.1, 0.2, 0.05]])
def test_beta_data_have_the_given_mean_and_deviation(given):
    # Kolmogorov-Smirnov as above, with shapes from moments solved for here by scipy's own.
    means = np.array([0.2, 0.5, 0.9])
    deviations = np.sqrt(means * (1 - means)) / 2 if given is None else np.array(given)
    X = sample_agent_streams(
        means, 20_000, distribution="beta", standard_deviation=given, random_state=0
    )
    for mean, deviation, column in zip(means, deviations, X.T, strict=True):
        total = mean * (1 - mean) / deviation**2 - 1
        law = stats.beta(mean * total, (1 - mean) * total)
        np.testing.assert_allclose((law.mean(), law.std()), (mean, deviation))
        assert stats.kstest(column, law.cdf).pvalue > 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("distribution", ["uniform", "bernoulli", "beta"])
def test_observations_are_missing_at_the_given_rates(distribution):
    # Exact binomial tests at 1e-6, fixed seed; gaps and values are independent by construction.
    rates = [0.0, 0.3, 0.9, 1.0]
    X = sample_agent_streams(
        np.full(4, 0.5), 10_000, distribution=distribution, missing_rate=rates, random_state=0
    )
    missing = np.isnan(X).sum(axis=0)
    assert missing[0] == 0 and missing[3] == 10_000
    for rate, count in zip(rates[1:3], missing[1:3], strict=True):
        assert stats.binomtest(int(count), 10_000, rate).pvalue > 1e-6
    common = sample_agent_streams([0.5, 0.5], 10_000, missing_rate=0.25, random_state=0)
    assert stats.binomtest(int(np.isnan(common).sum()), 20_000, 0.25).pvalue > 1e-6


def test_gaps_do_not_change_the_other_observations():
    full = sample_agent_streams([0.1, 0.2], 300, random_state=3)
    gaps = sample_agent_streams([0.1, 0.2], 300, missing_rate=0.5, random_state=3)
    seen = ~np.isnan(gaps)
    np.testing.assert_array_equal(gaps[seen], full[seen])


def test_a_deviation_of_zero_gives_constant_streams():
    X = sample_agent_streams([0.1, -2.0], 50, standard_deviation=[0.0, 0.0])
    assert (X == [0.1, -2.0]).all()


def test_shapes_and_seeds():
    X = sample_agent_streams([0.1, 0.2, 0.3], 7, random_state=1)
    assert X.shape == (7, 3) and X.dtype == np.float64
    assert sample_agent_streams([0.1], 0).shape == (0, 1)
    np.testing.assert_array_equal(X, sample_agent_streams([0.1, 0.2, 0.3], 7, random_state=1))
    assert (sample_agent_streams([0.1, 0.2, 0.3], 7, random_state=2) != X).any()
    generator = np.random.default_rng(0)
    one, two = (sample_agent_streams([0.1], 5, random_state=generator) for _ in range(2))
    assert (one != two).all()


@pytest.mark.parametrize(("n_agents", "sizes"), [(9, [3, 3, 3]), (11, [4, 4, 3]), (2, [1, 1, 0])])
def test_classes_are_as_even_as_can_be(n_agents, sizes):
    means, classes = assign_agents([0.2, 0.4, 0.8], n_agents, shuffle=False)
    assert np.bincount(classes, minlength=3).tolist() == sizes
    assert (np.diff(classes) >= 0).all()
    np.testing.assert_array_equal(means, np.array([0.2, 0.4, 0.8])[classes])
    shuffled, again = (assign_agents([0.2, 0.4, 0.8], n_agents, random_state=0) for _ in range(2))
    assert sorted(shuffled[1]) == sorted(classes)
    np.testing.assert_array_equal(shuffled, again)


def test_shuffled_agents_are_in_another_order():
    _, classes = assign_agents([0.2, 0.4, 0.8], 60, random_state=0)
    assert (np.diff(classes) < 0).any() and classes.dtype == np.int64


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "message"),
    [
        (([],), {}, ValueError, "non-empty one-dimensional"),
        (([[0.1]],), {}, ValueError, "one-dimensional"),
        (([np.nan],), {}, ValueError, "finite"),
        ((["a"],), {}, ValueError, "real numbers"),
        (([0.1], -1), {}, ValueError, "n_steps"),
        (([0.1], 2.0), {}, TypeError, "n_steps"),
        (([0.1],), {"distribution": "normal"}, ValueError, "distribution must be one of"),
        (([0.1],), {"standard_deviation": -1}, ValueError, "at least 0"),
        (([0.1],), {"standard_deviation": [1, 2]}, ValueError, "one for each agent"),
        (([0.1],), {"missing_rate": 1.5}, ValueError, "within"),
        (([0.1],), {"missing_rate": [0.1, 0.2]}, ValueError, "one for each agent"),
        (([1.1],), {"distribution": "bernoulli"}, ValueError, "within"),
        (([0.1],), {"distribution": "bernoulli", "standard_deviation": 1}, ValueError, "None"),
        (([1.0],), {"distribution": "beta"}, ValueError, "strictly between"),
        (([0.5],), {"distribution": "beta", "standard_deviation": 0.5}, ValueError, "below"),
        (([0.1],), {"random_state": 1.5}, TypeError, "random_state"),
    ],
)
def test_bad_arguments_are_named(arguments, keywords, error, message):
    with pytest.raises(error, match=message):
        sample_agent_streams(*(*arguments, 5)[:2], **keywords)


@pytest.mark.parametrize(
    ("class_means", "n_agents", "error", "message"),
    [
        ([], 3, ValueError, "non-empty"),
        ([np.inf], 3, ValueError, "finite"),
        ([0.1], 0, ValueError, "n_agents"),
        ([0.1], True, TypeError, "n_agents"),
    ],
)
def test_bad_classes_are_named(class_means, n_agents, error, message):
    with pytest.raises(error, match=message):
        assign_agents(class_means, n_agents)
