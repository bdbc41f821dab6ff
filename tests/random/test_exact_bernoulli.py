"""Bernoulli variables of irrational probability: digits, ties, and the float filter."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from exact_noise import (
    BernoulliOracle,
    exponential_floor,
    exponential_interval,
    logistic_floor,
)
from recorded_streams import PlannedStream, RecordedStream
from scipy.stats import binom

from skldp.random import WordStream
from skldp.random._exact import (
    N_LEADING,
    ExactProbability,
    exact_bernoulli,
    exp_bounds,
    exponential_digits,
    filtered_exponential,
    is_below,
    logistic_digits,
)

EXPONENTS = [
    Fraction(1, 10**30),
    Fraction(1, 10**6),
    Fraction(1, 7),
    Fraction(2, 3),
    Fraction(1),
    Fraction(5, 2),
    Fraction(22, 7),
    Fraction(17),
    Fraction(123_457, 1000),
    Fraction(3000),
]


@pytest.mark.parametrize("exponent", EXPONENTS, ids=str)
@pytest.mark.parametrize("n_digits", [10, 30, 60, 150])
def test_bounds_enclose_the_exponential(exponent, n_digits):
    lower, upper = exp_bounds(exponent, n_digits)
    n_bits = 4 * n_digits + 5 * int(exponent) + 60
    least, most = exponential_interval(exponent, n_bits)
    # The oracle's bounds are the tighter ones, so they must lie inside.
    assert lower < 1 / most <= 1 / least < upper
    assert upper - lower < upper * (exponent + 4) * Fraction(10) ** (1 - n_digits)


@pytest.mark.parametrize("exponent", EXPONENTS, ids=str)
@pytest.mark.parametrize("n", [1, 16, 64, 80, 144, 500])
def test_digits_are_those_of_the_oracle(exponent, n):
    assert exponential_digits(exponent, n) == exponential_floor(exponent, n)
    assert logistic_digits(exponent, n) == logistic_floor(exponent, n)


def test_digits_of_known_numbers():
    # 1/e = 0.36787944117144232159552377016146086744581113103176...
    inverse_e = Fraction("0.36787944117144232159552377016146086744581113103176")
    assert exponential_digits(Fraction(1), 80) == int(inverse_e * 2**80)
    assert exponential_digits(Fraction(0), 80) == 2**80


def test_digits_agree_with_fewer_digits():
    for exponent in EXPONENTS:
        for digits in (exponential_digits, logistic_digits):
            assert digits(exponent, 80) == digits(exponent, 400) >> 320


def test_bounds_that_leave_a_digit_open_are_refined():
    # 2^n / (1 + e^x) for x just above 0 is just below 2^(n-1): 33 decimal digits do not tell.
    exponent = Fraction(1, 10**200)
    assert logistic_digits(exponent, 64) == 2**63 - 1
    assert exponential_digits(exponent, 64) == 2**64 - 1


@pytest.mark.parametrize("digits", [exponential_digits, logistic_digits])
def test_digits_of_hopeless_exponents_are_zero_at_once(digits):
    assert digits(Fraction(10**30), 80) == 0
    assert digits(Fraction(80), 80) == 0
    assert digits(Fraction(50), 80) > 0


@pytest.mark.parametrize("law", [ExactProbability.exponential, ExactProbability.logistic])
@pytest.mark.parametrize("exponent", EXPONENTS, ids=str)
def test_ties_are_settled_by_as_many_digits_as_they_last(law, exponent):
    probability = law(exponent)
    head, tail = divmod(probability.leading, 2**64)
    third, fourth = (probability.digits(n) % 2**64 for n in (144, 208))
    for offsets in ((-1,), (1,), (0, -1), (0, 1), (0, 0, -1), (0, 0, 1), (0, 0, 0, -1)):
        digits = (head, tail, third, fourth)
        planted = [digit + offset for digit, offset in zip(digits, offsets, strict=False)]
        sizes = (2**16, 2**64, 2**64, 2**64)
        if not all(0 <= digit < size for digit, size in zip(planted, sizes, strict=False)):
            continue
        stream = PlannedStream([planted[:1]], *([digit] for digit in planted[1:]))
        assert exact_bernoulli([probability], 1, stream)[0, 0] == (offsets[-1] < 0)
        assert stream.is_exhausted


def test_every_lane_once_makes_the_head_and_a_tie():
    probabilities = [ExactProbability.logistic(Fraction(j, 3)) for j in range(1, 40)]
    lanes = np.tile(np.arange(2**16), (len(probabilities), 1))
    tails = np.array([p.leading % 2**64 for p in probabilities], dtype=np.uint64)
    for words, outcome in ((tails - np.uint64(1), 1), (tails + np.uint64(1), 0)):
        stream = PlannedStream(lanes, words)
        n_successes = exact_bernoulli(probabilities, 2**16, stream).sum(axis=1)
        heads = [(p.leading >> 64) + outcome for p in probabilities]
        assert n_successes.tolist() == heads


def test_ties_of_different_rows_get_their_own_digits():
    # Three rows that all tie on 80 digits at once, in every column.
    probabilities = [ExactProbability.exponential(Fraction(1, j)) for j in (1, 2, 3)]
    heads, tails = zip(*(divmod(p.leading, 2**64) for p in probabilities), strict=True)
    lanes = np.repeat(heads, 2).reshape(3, 2)
    further = [p.digits(144) % 2**64 + sign for p in probabilities for sign in (-1, 1)]
    words = np.repeat(np.array(tails, dtype=np.uint64), 2)
    stream = PlannedStream(lanes, words, *([word] for word in further))
    assert exact_bernoulli(probabilities, 2, stream).tolist() == [[True, False]] * 3
    assert stream.is_exhausted


def test_draws_follow_the_oracle():
    exponents = [Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(3), Fraction(12)]
    for exact, floor in (
        (ExactProbability.logistic, logistic_floor),
        (ExactProbability.exponential, exponential_floor),
    ):
        stream = RecordedStream()
        draws = exact_bernoulli([exact(x) for x in exponents], 40_000, stream)
        oracle = BernoulliOracle(stream.served)
        assert draws.tolist() == oracle.draw([partial(floor, x) for x in exponents], 40_000)
        assert len(stream.served) == 2  # ties on sixteen digits occurred
        assert next(oracle.served, None) is None


def test_a_number_below_one_is_always_below_one():
    assert is_below(partial(exponential_digits, Fraction(0)), 64, 2**64 - 1, PlannedStream())


def test_no_draws_and_no_probabilities():
    stream = WordStream(bytes(32))
    assert exact_bernoulli([ExactProbability.logistic(Fraction(1))], 0, stream).shape == (1, 0)
    assert exact_bernoulli([], 3, stream).shape == (0, 3)


def test_filter_is_as_precise_as_it_claims():
    rng = np.random.default_rng(0)
    edges = np.arange(0, 4097) / 64
    exponents = np.concatenate(
        [
            edges,
            np.nextafter(edges[1:], 0),
            np.nextafter(edges[:-1], 64),
            rng.uniform(0, 64, 2000),
            rng.uniform(0, 1, 1000),
            2.0 ** -np.arange(1, 1075, 25),
        ]
    )
    approximations = filtered_exponential(exponents)
    for exponent, approximation in zip(exponents.tolist(), approximations.tolist(), strict=True):
        lower, upper = exp_bounds(Fraction(exponent), 40)
        error = max(abs(approximation * lower - 1), abs(approximation * upper - 1))
        assert error < Fraction(1, 2**45)


@pytest.mark.statistical
def test_frequencies_of_successes():
    # Binomial, two-sided, false-alarm rate 1e-6 per exponent and law, fixed key.
    n = 1 << 21
    exponents = [Fraction(1, 50), Fraction(1, 2), Fraction(2), Fraction(9)]
    laws = {
        ExactProbability.logistic: lambda x: 1 / (1 + np.exp(x)),
        ExactProbability.exponential: lambda x: np.exp(-x),
    }
    for law, probability in laws.items():
        draws = exact_bernoulli([law(x) for x in exponents], n, WordStream(bytes(32)))
        for exponent, row in zip(exponents, draws, strict=True):
            low, high = binom.ppf([5e-7, 1 - 5e-7], n, probability(float(exponent)))
            assert low <= np.count_nonzero(row) <= high


def test_leading_digits_are_eighty():
    assert N_LEADING == 80
