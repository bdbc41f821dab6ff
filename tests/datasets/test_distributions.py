"""Distributions of the experiments: definitions, exact values, and the paper's baselines."""

import math
from fractions import Fraction

import numpy as np
import pytest

from skldp import datasets
from skldp.datasets import (
    binomial_distribution,
    dirichlet_distribution,
    geometric_distribution,
    point_mass_distribution,
    uniform_distribution,
    zipf_distribution,
)

ALL = [
    binomial_distribution,
    dirichlet_distribution,
    geometric_distribution,
    point_mass_distribution,
    uniform_distribution,
    zipf_distribution,
]


def test_everything_is_exported():
    samplers = {"sample_users", "assign_agents", "sample_agent_streams"}
    assert {function.__name__ for function in ALL} | samplers == set(datasets.__all__)


@pytest.mark.parametrize("distribution", ALL)
@pytest.mark.parametrize("n_categories", [1, 2, 3, 256, 100_000])
def test_is_a_distribution(distribution, n_categories):
    masses = distribution(n_categories)
    assert masses.shape == (n_categories,) and masses.dtype == np.float64
    assert masses.min() >= 0
    assert abs(math.fsum(masses) - 1) <= 1e-12


@pytest.mark.parametrize("distribution", ALL)
@pytest.mark.parametrize(
    ("n_categories", "error"),
    [(0, ValueError), (-1, ValueError), (2.0, TypeError), (True, TypeError)],
)
def test_number_of_categories_is_checked(distribution, n_categories, error):
    with pytest.raises(error, match="n_categories"):
        distribution(n_categories)


@pytest.mark.parametrize("mean", [0.25, 1.0, 3.0, 1000.0])
def test_geometric_is_that_of_its_mean_cut_off(mean):
    ratio = Fraction(mean) / (1 + Fraction(mean))  # 1 - theta
    powers = [ratio**i for i in range(12)]
    exact = [float(power / sum(powers)) for power in powers]
    np.testing.assert_allclose(geometric_distribution(12, mean), exact, rtol=1e-14)


def test_mean_of_the_geometric_before_it_is_cut_off():
    masses = geometric_distribution(5000, mean=20.0)  # what is cut off is below 1e-100
    assert masses @ np.arange(5000) == pytest.approx(20.0, rel=1e-12)


def test_default_geometric_gives_the_baselines_of_figure_3():
    # S = 256, n = 1e6: the l1 loss of a uniform guess is .9613, that of the non-private
    # empirical frequencies .01051 (Kairouz et al. 2016). Both were read off the figure, so they
    # are good to one unit of their last digit.
    masses = geometric_distribution(256)
    np.testing.assert_array_equal(masses, geometric_distribution(256, mean=51.2))
    assert abs(np.abs(masses - 1 / 256).sum() - 0.9613) <= 1e-4
    assert abs(np.sqrt(2 * masses * (1 - masses) / (math.pi * 1e6)).sum() - 0.01051) <= 1e-5


@pytest.mark.parametrize("mean", [5e-324, 1e-300, 1e300, 1.7e308])
def test_extreme_means_are_the_limits(mean):
    limit = point_mass_distribution(4) if mean < 1 else uniform_distribution(4)
    np.testing.assert_allclose(geometric_distribution(4, mean), limit, rtol=0, atol=1e-15)


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.75, 1.0])
def test_binomial_is_that_of_one_trial_less(probability):
    success = Fraction(probability)
    exact = [float(math.comb(9, i) * success**i * (1 - success) ** (9 - i)) for i in range(10)]
    np.testing.assert_allclose(binomial_distribution(10, probability), exact, rtol=1e-12)


@pytest.mark.parametrize("exponent", [0, 1, 2, 5])
def test_zipf_falls_with_the_rank(exponent):
    weights = [Fraction(1, rank**exponent) for rank in range(1, 11)]
    exact = [float(weight / sum(weights)) for weight in weights]
    np.testing.assert_allclose(zipf_distribution(10, exponent), exact, rtol=1e-14)
    np.testing.assert_array_equal(zipf_distribution(3, 1e6), [1, 0, 0])


def test_uniform_and_point_mass():
    np.testing.assert_array_equal(uniform_distribution(8), np.full(8, 0.125))
    np.testing.assert_array_equal(point_mass_distribution(3), [1, 0, 0])
    np.testing.assert_array_equal(point_mass_distribution(3, index=np.int64(2)), [0, 0, 1])


def test_dirichlet_follows_its_concentration():
    np.testing.assert_array_equal(
        dirichlet_distribution(5, random_state=1), dirichlet_distribution(5, random_state=1)
    )
    generator = np.random.default_rng(0)
    first = dirichlet_distribution(5, random_state=generator)
    assert (first != dirichlet_distribution(5, random_state=generator)).all()
    # Variance of an entry: (1/k)(1 - 1/k)/(k a + 1), here 2.5e-9: 1e-3 is 20 of its roots.
    flat = dirichlet_distribution(4, concentration=1.9e7, random_state=2)
    np.testing.assert_allclose(flat, np.full(4, 0.25), rtol=0, atol=1e-3)
    skewed = dirichlet_distribution(3, concentration=[3e7, 1e7, 6e7], random_state=3)
    np.testing.assert_allclose(skewed, [0.3, 0.1, 0.6], rtol=0, atol=1e-3)
    spiked = dirichlet_distribution(50, concentration=1e-3, random_state=4)
    assert spiked.max() > 0.5 and abs(spiked.sum() - 1) <= 1e-12


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: geometric_distribution(3, mean=0), ValueError, "mean must be positive"),
        (lambda: geometric_distribution(3, mean=-1.0), ValueError, "mean"),
        (lambda: geometric_distribution(3, mean=math.nan), ValueError, "mean"),
        (lambda: geometric_distribution(3, mean=math.inf), ValueError, "mean"),
        (lambda: geometric_distribution(3, mean="1"), TypeError, "mean"),
        (lambda: binomial_distribution(3, probability=1.1), ValueError, "probability"),
        (lambda: binomial_distribution(3, probability=-0.1), ValueError, "probability"),
        (lambda: binomial_distribution(3, probability=True), TypeError, "probability"),
        (lambda: zipf_distribution(3, exponent=-1), ValueError, "exponent"),
        (lambda: zipf_distribution(3, exponent=math.inf), ValueError, "exponent"),
        (lambda: point_mass_distribution(3, index=3), ValueError, "index"),
        (lambda: point_mass_distribution(3, index=-1), ValueError, "index"),
        (lambda: dirichlet_distribution(3, concentration=0.0), ValueError, "concentration"),
        (lambda: dirichlet_distribution(3, concentration=[1, 2]), ValueError, "concentration"),
        (lambda: dirichlet_distribution(3, concentration=math.nan), ValueError, "concentration"),
        (lambda: dirichlet_distribution(3, random_state="seed"), TypeError, "random_state"),
    ],
)
def test_bad_parameters_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
