"""The likelihood of independent columns: optimality in exact arithmetic, and cvxpy."""

import math
from fractions import Fraction

import cvxpy
import numpy as np
import pytest

from skldp.decoding import independent_bits_maximum_likelihood

FLIPS = [0.0, 1e-18, 1e-6, 0.05, 0.2, 0.27, 0.28, 0.4, 0.49, 0.5 - 1e-6, 0.5 - 1e-12, 0.5 - 2**-54]


def draw_counts(size, n_reports, flip, seed, concentration=1.0):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(size, concentration))
    return rng.binomial(n_reports, flip + (1 - 2 * flip) * truth)


def exact_slopes(frequencies, counts, n_reports, flip):
    """Derivative of each column's log-likelihood per report, divided by 1 - 2q, exactly."""
    flip, keep = Fraction(flip), 1 - 2 * Fraction(flip)
    slopes = []
    for frequency, count in zip(frequencies, counts, strict=True):
        rate = flip + keep * Fraction(float(frequency))
        share = Fraction(int(count), n_reports)
        slopes.append((share - rate) / (rate * (1 - rate)))
    return slopes


def check_optimality(frequencies, counts, n_reports, flip, tolerance=1e-12):
    """Assert that equal slopes hold up to a change of `tolerance` of any frequency."""
    assert frequencies.min() >= 0
    assert abs(math.fsum(frequencies) - 1) <= 1e-12
    slopes = exact_slopes(frequencies, counts, n_reports, flip)
    positive = [slope for slope, p in zip(slopes, frequencies, strict=True) if p > 0]
    multiplier = sorted(positive)[len(positive) // 2]
    keep = 1 - 2 * Fraction(flip)
    for slope, frequency, count in zip(slopes, frequencies, counts, strict=True):
        rate = Fraction(flip) + keep * Fraction(float(frequency))
        share = Fraction(int(count), n_reports)
        # Minus the derivative of the slope: a change of p by c changes the slope by c times it.
        steepness = keep * (share / rate**2 + (1 - share) / (1 - rate) ** 2)
        if frequency > 0:
            assert abs(slope - multiplier) <= tolerance * steepness
        else:
            assert slope - multiplier <= tolerance * steepness


@pytest.mark.parametrize("flip", FLIPS[1:])
@pytest.mark.parametrize("size", [2, 5, 40])
@pytest.mark.parametrize("n_reports", [1, 50, 10**6, 10**12])
def test_conditions_of_optimality(flip, size, n_reports):
    for seed in range(3):
        counts = draw_counts(size, n_reports, flip, seed)
        estimate = independent_bits_maximum_likelihood(counts, n_reports, flip)
        check_optimality(estimate, counts, n_reports, flip)


@pytest.mark.parametrize("flip", [1e-18, 1e-6, 0.2, 0.4])
def test_conditions_of_optimality_for_many_columns(flip):
    counts = draw_counts(20_000, 10**6, flip, seed=0, concentration=0.05)
    estimate = independent_bits_maximum_likelihood(counts, 10**6, flip)
    check_optimality(estimate, counts, 10**6, flip)


@pytest.mark.parametrize("flip", [0.0, 1e-6])
def test_a_million_columns_still_sum_to_one(flip):
    # All but one share .001, with a multiplier near -1, whose last digit counts a million times.
    counts = np.zeros(10**6)
    counts[0] = 999
    estimate = independent_bits_maximum_likelihood(counts, 1000, flip)
    assert abs(math.fsum(estimate) - 1) <= 1e-12
    assert np.ptp(estimate[1:]) == 0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("flip", [1e-18, 0.1, 0.3, 0.45])
def test_agrees_with_cvxpy(seed, flip):
    size, n_reports = 12, 3000
    counts = draw_counts(size, n_reports, flip, seed)
    point = cvxpy.Variable(size)
    rates = flip + (1 - 2 * flip) * point
    likelihood = counts @ cvxpy.log(rates) + (n_reports - counts) @ cvxpy.log(1 - rates)
    problem = cvxpy.Problem(cvxpy.Maximize(likelihood), [point >= 0, cvxpy.sum(point) == 1])
    with np.errstate(invalid="ignore"):  # cvxpy takes the logarithm of -1e-9 when it is done
        problem.solve(solver=cvxpy.CLARABEL)

    def value(frequencies):
        rate = flip + (1 - 2 * flip) * frequencies
        ones = np.where(counts > 0, counts * np.log(np.maximum(rate, 1e-300)), 0.0)
        zeros = np.where(counts < n_reports, (n_reports - counts) * np.log1p(-rate), 0.0)
        return float(np.sum(ones + zeros))

    estimate = independent_bits_maximum_likelihood(counts, n_reports, flip)
    reference = np.maximum(point.value, 0)
    reference /= reference.sum()
    assert value(estimate) >= value(reference) - 1e-7 * abs(value(reference))
    np.testing.assert_allclose(estimate, reference, rtol=0, atol=1e-3)


@pytest.mark.parametrize("flip", [0.0, 1e-9, 0.25, 0.4])
def test_equals_inversion_where_that_is_a_distribution(flip):
    truth = np.array([0.5, 0.25, 0.125, 0.125])
    counts = 10**6 * (flip + (1 - 2 * flip) * truth)  # not rounded: the inverse is the truth
    estimate = independent_bits_maximum_likelihood(counts, 10**6, flip)
    np.testing.assert_allclose(estimate, truth, rtol=0, atol=1e-14)


@pytest.mark.parametrize("flip", FLIPS)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("count", [0, 1, 500, 999, 1000])
def test_equal_counts_share_equally(flip, size, count):
    estimate = independent_bits_maximum_likelihood(np.full(size, count), 1000, flip)
    np.testing.assert_allclose(estimate, np.full(size, 1 / size), rtol=0, atol=1e-15)


@pytest.mark.parametrize("flip", FLIPS)
def test_one_column_always_set_and_the_others_never(flip):
    estimate = independent_bits_maximum_likelihood([0, 1000, 0, 0], 1000, flip)
    np.testing.assert_allclose(estimate, [0, 1, 0, 0], rtol=0, atol=1e-15)


@pytest.mark.parametrize("flip", [0.0, 1e-18, 1e-6])
def test_sums_below_and_above_the_number_of_reports_without_noise(flip):
    # Stationary points of sum T log p + (n - T) log(1 - p): the sums are .5 and 1.5.
    for counts in ([300, 200, 0], [900, 500, 100]):
        estimate = independent_bits_maximum_likelihood(counts, 1000, flip)
        if flip:
            check_optimality(estimate, counts, 1000, flip)
        assert abs(math.fsum(estimate) - 1) <= 1e-12
        assert estimate[0] > estimate[1] > estimate[2]


@pytest.mark.parametrize("flip", [0.5 - 1e-12, 0.5 - 2**-54])
def test_with_hardly_any_information_the_most_frequent_bit_takes_all(flip):
    estimate = independent_bits_maximum_likelihood([501, 500, 499, 501], 1000, flip)
    assert estimate.tolist() == [0.5, 0.0, 0.0, 0.5]


def test_estimates_approach_the_truth():
    # n = 1e14: standard errors near 1e-7, so 1e-5 is a hundred of them.
    truth = np.array([0.6, 0.3, 0.1, 0.0])
    flip, n_reports = 0.3, 10**14
    counts = np.random.default_rng(0).binomial(n_reports, flip + (1 - 2 * flip) * truth)
    estimate = independent_bits_maximum_likelihood(counts, n_reports, flip)
    np.testing.assert_allclose(estimate, truth, rtol=0, atol=1e-5)


def test_input_is_not_touched_and_order_does_not_matter():
    counts = draw_counts(30, 1000, 0.2, seed=5)
    counts.flags.writeable = False
    estimate = independent_bits_maximum_likelihood(counts, 1000, 0.2)
    order = np.random.default_rng(1).permutation(30)
    np.testing.assert_allclose(
        independent_bits_maximum_likelihood(counts[order], 1000, 0.2),
        estimate[order],
        rtol=0,
        atol=1e-14,
    )


def test_vectors_along_the_last_axis_are_decoded_on_their_own():
    counts = np.random.default_rng(2).binomial(200, 0.3, size=(2, 5, 7))
    together = independent_bits_maximum_likelihood(counts, 200, 0.25)
    assert together.shape == counts.shape
    for index in np.ndindex(2, 5):
        alone = independent_bits_maximum_likelihood(counts[index], 200, 0.25)
        np.testing.assert_array_equal(together[index], alone)


@pytest.mark.parametrize(
    ("counts", "n_reports", "flip", "message"),
    [
        ([], 1, 0.1, "non-empty array"),
        (3, 5, 0.1, "non-empty array"),
        ([[1, 2], [1, 6]], 5, 0.1, "not exceed n_reports"),
        ([1, -1], 5, 0.1, "not be negative"),
        ([1, np.nan], 5, 0.1, "finite"),
        ([1, 6], 5, 0.1, "not exceed n_reports"),
        ([0, 0], 0, 0.1, "n_reports must be positive"),
        ([0, 0], -3, 0.1, "n_reports must be positive"),
        ([0, 0], np.inf, 0.1, "n_reports must be positive"),
        ([0, 0], np.nan, 0.1, "n_reports must be positive"),
        ([1, 1], 5, 0.5, "no information"),
        ([1, 1], 5, 0.7, "flip_probability"),
        ([1, 1], 5, -0.1, "flip_probability"),
        ([1, 1], 5, np.nan, "flip_probability"),
    ],
)
def test_bad_arguments_are_refused(counts, n_reports, flip, message):
    with pytest.raises(ValueError, match=message):
        independent_bits_maximum_likelihood(counts, n_reports, flip)
