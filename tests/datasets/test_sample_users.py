"""Simulated users: their law, labels, and seeds."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skldp.datasets import geometric_distribution, sample_users


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(3))
def test_values_follow_the_probabilities(seed):
    # Chi-square test of 200,000 users, fixed seeds; it would fail for one seed in 1e6.
    masses = geometric_distribution(20)
    counts = np.bincount(sample_users(masses, 200_000, random_state=seed), minlength=20)
    assert stats.chisquare(counts, 200_000 * masses).pvalue > 1e-6


@pytest.mark.statistical
def test_users_are_drawn_independently():
    # Neighbours are equal with probability sum(p**2) = .34: a binomial count of 100,000 disjoint
    # pairs, two-sided false alarm 1e-6.
    values = sample_users([0.5, 0.3, 0.0, 0.2], 200_000, random_state=0)
    equal = int((values[::2] == values[1::2]).sum())
    assert stats.binomtest(equal, 100_000, 0.25 + 0.09 + 0.04).pvalue > 1e-6


def test_impossible_categories_never_occur():
    values = sample_users([0.0, 0.5, 0.0, 0.5, 0.0], 10_000, random_state=0)
    assert set(values.tolist()) == {1, 3}
    assert set(sample_users([0, 1.0], 100).tolist()) == {1}


def test_shape_and_dtype():
    values = sample_users([0.5, 0.5], 7, random_state=0)
    assert values.shape == (7,) and values.dtype == np.int64
    assert sample_users([0.5, 0.5], 0).shape == (0,)


@pytest.mark.parametrize(
    "categories",
    [
        ["a", "b", "longer"],
        [10, 20, -30],
        np.array(["a", "b", "c"], dtype=object),
        np.array(["a", "b", "c"], dtype=np.dtypes.StringDType()),
        pd.Series(["x", "y", "z"]),
    ],
)
def test_labels_replace_codes(categories):
    masses = [0.2, 0.3, 0.5]
    codes = sample_users(masses, 50, random_state=3)
    labels = sample_users(masses, 50, categories=categories, random_state=3)
    expected = np.asarray(categories)[codes]
    assert labels.dtype == expected.dtype
    assert labels.tolist() == expected.tolist()


def test_seeds_reproduce_and_generators_advance():
    masses = geometric_distribution(1000)
    first = sample_users(masses, 100, random_state=5)
    np.testing.assert_array_equal(first, sample_users(masses, 100, random_state=5))
    assert (first != sample_users(masses, 100, random_state=6)).any()
    assert (sample_users(masses, 100) != sample_users(masses, 100)).any()
    for random_state in (np.random.default_rng(0), np.random.RandomState(0)):
        one, two = (sample_users(masses, 100, random_state=random_state) for _ in range(2))
        assert (one != two).any()


def test_probabilities_in_single_precision_or_printed_are_accepted():
    masses = geometric_distribution(100).astype(np.float32)
    assert sample_users(masses, 10, random_state=0).shape == (10,)
    assert sample_users([0.3333333, 0.3333333, 0.3333333], 10, random_state=0).shape == (10,)


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "message"),
    [
        (([0.5, 0.6], 5), {}, ValueError, "sum to 1"),
        (([], 5), {}, ValueError, "non-empty one-dimensional"),
        (([[0.5, 0.5]], 5), {}, ValueError, "one-dimensional"),
        (([1.5, -0.5], 5), {}, ValueError, "not negative"),
        (([np.nan, 1], 5), {}, ValueError, "finite"),
        (([1.0], -1), {}, ValueError, "n_users"),
        (([1.0], 2.5), {}, TypeError, "n_users"),
        (([1.0], True), {}, TypeError, "n_users"),
        (([0.5, 0.5], 5), {"categories": ["a"]}, ValueError, "one value per probability"),
        (([0.5, 0.5], 5), {"categories": ["a", "a"]}, ValueError, "different"),
        (([0.5, 0.5], 5), {"categories": [1, "a"]}, ValueError, "mixture"),
        (([1.0], 5), {"random_state": 1.5}, TypeError, "random_state"),
    ],
)
def test_bad_arguments_are_named(arguments, keywords, error, message):
    with pytest.raises(error, match=message):
        sample_users(*arguments, **keywords)
