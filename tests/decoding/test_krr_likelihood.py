"""The closed form for k-ary randomized response against exact enumeration and cvxpy."""

import itertools
import math
from fractions import Fraction

import cvxpy
import numpy as np
import pytest

from skldp.decoding import krr_maximum_likelihood


def log_likelihood(frequencies, counts, odds_minus_one):
    with np.errstate(divide="ignore"):
        logs = np.log1p(odds_minus_one * np.asarray(frequencies))
    return float(np.sum(np.where(np.asarray(counts) > 0, counts * logs, 0.0)))


def enumerate_supports(counts, odds_minus_one):
    """Maximise in rational arithmetic: the stationary point of every support, the best one."""
    offset = 1 / Fraction(odds_minus_one)
    counts = [Fraction(int(count)) for count in counts]
    best, best_value = None, -math.inf
    indices = range(len(counts))
    for size in range(1, len(counts) + 1):
        for support in itertools.combinations(indices, size):
            total = sum(counts[j] for j in support)
            if total == 0:
                continue
            multiplier = total / (1 + size * offset)
            point = [Fraction(0)] * len(counts)
            for j in support:
                point[j] = counts[j] / multiplier - offset
            if min(point) < 0:
                continue
            # Compared as floats: points whose likelihoods are that close are themselves close.
            value = sum(
                float(count) * math.log(p / offset + 1)
                for count, p in zip(counts, point, strict=True)
            )
            if value > best_value:
                best, best_value = point, value
    return np.array([float(p) for p in best])


def invert(counts, odds_minus_one):
    counts = np.asarray(counts, dtype=float)
    scale = odds_minus_one + len(counts)
    return (scale * counts / counts.sum() - 1) / odds_minus_one


@pytest.mark.parametrize("size", range(1, 7))
@pytest.mark.parametrize("odds_minus_one", [0.05, 0.5, 1.0, 7.0, 1e3])
def test_agrees_with_enumeration_of_supports(size, odds_minus_one):
    rng = np.random.default_rng(size)
    for _ in range(20):
        counts = rng.integers(0, 40, size=size)
        counts[rng.integers(size)] += 1
        np.testing.assert_allclose(
            krr_maximum_likelihood(counts, odds_minus_one),
            enumerate_supports(counts, odds_minus_one),
            rtol=0,
            atol=2e-14,
        )


@pytest.mark.parametrize("size", [2, 10, 60])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_likelihood_is_that_of_cvxpy(size, epsilon):
    rng = np.random.default_rng(size)
    odds_minus_one = math.expm1(epsilon)
    truth = rng.dirichlet(np.ones(size))
    counts = rng.multinomial(2000, (odds_minus_one * truth + 1) / (odds_minus_one + size))
    point = cvxpy.Variable(size)
    likelihood = counts @ cvxpy.log(odds_minus_one * point + 1)
    cvxpy.Problem(cvxpy.Maximize(likelihood), [point >= 0, cvxpy.sum(point) == 1]).solve(
        solver=cvxpy.CLARABEL
    )
    reference = log_likelihood(np.maximum(point.value, 0), counts, odds_minus_one)
    estimate = krr_maximum_likelihood(counts, odds_minus_one)
    assert abs(log_likelihood(estimate, counts, odds_minus_one) / reference - 1) <= 1e-7
    np.testing.assert_allclose(estimate, point.value, rtol=0, atol=1e-3)


@pytest.mark.parametrize("size", [3, 100, 4096])
@pytest.mark.parametrize("odds_minus_one", [1e-3, 0.3, 20.0, 1e6])
def test_conditions_of_optimality(size, odds_minus_one):
    rng = np.random.default_rng(size)
    counts = rng.poisson(rng.gamma(0.3, 300, size=size)) + (np.arange(size) == 0)
    estimate = krr_maximum_likelihood(counts, odds_minus_one)
    assert estimate.min() >= 0
    assert abs(math.fsum(estimate) - 1) <= 1e-12
    slopes = counts * odds_minus_one / (odds_minus_one * estimate + 1)
    positive = estimate > 0
    assert np.ptp(slopes[positive]) <= 1e-12 * slopes.max()
    assert slopes.max() <= slopes[positive].min() * (1 + 1e-12)


@pytest.mark.parametrize("odds_minus_one", [0.5, 3.0, 1e9])
def test_equals_inversion_where_that_is_not_negative(odds_minus_one):
    size = 12
    rates = odds_minus_one * np.linspace(1, 3, size) / np.linspace(1, 3, size).sum() + 1
    counts = np.round(1e6 * rates / rates.sum())
    inverted = invert(counts, odds_minus_one)
    assert inverted.min() >= 0
    np.testing.assert_allclose(
        krr_maximum_likelihood(counts, odds_minus_one), inverted, rtol=0, atol=1e-14
    )


def test_inversion_with_a_negative_entry_is_not_just_clipped():
    counts = [60, 30, 10]
    assert invert(counts, 3.0).min() < 0
    np.testing.assert_allclose(krr_maximum_likelihood(counts, 3.0), [7 / 9, 2 / 9, 0], atol=1e-15)


@pytest.mark.parametrize("odds_minus_one", [1e-300, 1e-9, 1.0, 1e15, 1e300, math.inf])
def test_all_reports_alike(odds_minus_one):
    estimate = krr_maximum_likelihood([0, 1000, 0, 0], odds_minus_one)
    assert estimate.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert krr_maximum_likelihood([3], odds_minus_one).tolist() == [1.0]


@pytest.mark.parametrize("odds_minus_one", [5e-324, 1e-300, 1e-9, 1.0, 1e15, math.inf])
def test_equal_counts_share_equally(odds_minus_one):
    estimate = krr_maximum_likelihood([250, 250, 250, 250], odds_minus_one)
    np.testing.assert_array_equal(estimate, np.full(4, 0.25))


@pytest.mark.parametrize("odds_minus_one", [5e-324, 1e-300, 1e-9])
def test_with_hardly_any_information_the_most_frequent_symbol_takes_all(odds_minus_one):
    estimate = krr_maximum_likelihood([10, 999_999, 1_000_000, 0], odds_minus_one)
    assert estimate.tolist() == [0.0, 0.0, 1.0, 0.0]
    estimate = krr_maximum_likelihood([10, 1_000_000, 1_000_000, 0], odds_minus_one)
    assert estimate.tolist() == [0.0, 0.5, 0.5, 0.0]


def test_tiny_odds_lose_no_digits():
    # Counts so close that the inverse has no negative entry even at E - 1 = 1e-9. They sum to
    # more than 2**53, and E - 1 divides what a float would lose there.
    counts = [10**15 + 10**5 - 12345 * rank for rank in range(12)]
    odds_minus_one = Fraction(1e-9)
    exact = [
        ((odds_minus_one + 12) * Fraction(count, sum(counts)) - 1) / odds_minus_one
        for count in counts
    ]
    assert min(exact) > 0
    estimate = krr_maximum_likelihood(counts, 1e-9)
    np.testing.assert_allclose(estimate, [float(p) for p in exact], rtol=0, atol=1e-15)


@pytest.mark.parametrize("odds_minus_one", [1e15, 1e300, math.inf])
def test_without_noise_the_empirical_frequencies_remain(odds_minus_one):
    counts = np.array([5, 0, 3, 2])
    np.testing.assert_allclose(
        krr_maximum_likelihood(counts, odds_minus_one), counts / 10, rtol=0, atol=1e-14
    )


def test_symbols_never_reported_get_nothing():
    estimate = krr_maximum_likelihood([50, 0, 40, 0], 2.0)
    assert estimate[1] == estimate[3] == 0
    assert estimate[0] > estimate[2] > 0


def test_input_is_not_touched_and_order_does_not_matter():
    counts = np.random.default_rng(0).integers(0, 100, size=50)
    counts.flags.writeable = False
    estimate = krr_maximum_likelihood(counts, 1.5)
    order = np.random.default_rng(1).permutation(50)
    np.testing.assert_allclose(
        krr_maximum_likelihood(counts[order], 1.5), estimate[order], rtol=0, atol=1e-15
    )


@pytest.mark.parametrize("odds_minus_one", [1e-300, 1e-6, 0.3, 5.0, math.inf])
def test_vectors_along_the_last_axis_are_decoded_on_their_own(odds_minus_one):
    counts = np.random.default_rng(2).poisson(3.0, size=(4, 25, 12))
    together = krr_maximum_likelihood(counts, odds_minus_one)
    assert together.shape == counts.shape
    for index in np.ndindex(4, 25):
        alone = krr_maximum_likelihood(counts[index], odds_minus_one)
        np.testing.assert_array_equal(together[index], alone)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([0, 0, 0], "no reports"),
        ([], "non-empty array"),
        (3, "non-empty array"),
        ([[1, 2], [0, 0]], "no reports"),
        ([1, -1], "not be negative"),
        ([1, np.nan], "finite"),
        ([1.7e308, 1.7e308], "must not exceed"),
        (["a"], "real numbers"),
    ],
)
def test_bad_counts_are_refused(counts, message):
    with pytest.raises(ValueError, match=message):
        krr_maximum_likelihood(counts, 1.0)


@pytest.mark.parametrize("odds_minus_one", [0, -1, np.nan, -np.inf])
def test_odds_must_exceed_one(odds_minus_one):
    with pytest.raises(ValueError, match="odds_minus_one must be positive"):
        krr_maximum_likelihood([1, 2], odds_minus_one)
