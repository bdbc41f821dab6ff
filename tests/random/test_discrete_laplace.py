"""Discrete Laplace noise: every draw against Python integers, the law, exact privacy."""

import hashlib
import tracemalloc
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from exact_noise import (
    BernoulliOracle,
    chi_square_passes,
    exponential_interval,
    logistic_floor,
    replay_laplace,
)
from recorded_streams import PlannedStream, RecordedStream
from scipy.stats import binom

from skldp.random import WordStream, _discrete_laplace, discrete_laplace
from skldp.random._discrete_laplace import _geometric_probabilities

SCALES = [
    Fraction(1, 10**6),
    Fraction(1, 30),
    Fraction(3, 10),
    Fraction(1),
    Fraction(15, 2),
    Fraction(1000, 7),
    10**6,
    2**40,
    2**40 + Fraction(1, 3),
    2**70,
    10**30,
]


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("size", [1, 7, 50])
def test_draws_follow_the_oracle(monkeypatch, scale, size):
    n_probabilities = len(_geometric_probabilities(Fraction(scale)))
    monkeypatch.setattr(_discrete_laplace, "_BLOCK_LANES", 20 * (n_probabilities + 8))
    stream = RecordedStream(size.to_bytes(32, "big"))
    draws = discrete_laplace(scale, size, stream)
    oracle = BernoulliOracle(stream.served)
    assert draws.tolist() == replay_laplace(oracle, scale, size, 20)
    assert next(oracle.served, None) is None


@pytest.mark.parametrize("scale", [Fraction(3, 10), Fraction(1), Fraction(15, 2)], ids=str)
def test_many_draws_follow_the_oracle(monkeypatch, scale):
    # Enough for ties on sixteen digits and for numbers beyond the digits, in one block.
    monkeypatch.setattr(_discrete_laplace, "_BLOCK_LANES", 1 << 40)
    stream = RecordedStream()
    draws = discrete_laplace(scale, 60_000, stream)
    oracle = BernoulliOracle(stream.served)
    assert draws.tolist() == replay_laplace(oracle, scale, 60_000, 2**40)
    assert len(stream.served) >= 2


class Leading:
    """Lanes and words that make `exact_bernoulli` decide as told, from the digits."""

    def __init__(self, scale):
        self.probabilities = _geometric_probabilities(Fraction(scale))
        self.n_digits = len(self.probabilities) - 1

    def lanes(self, *values_and_rest):
        """One column for every (digits, beyond): lane 0 succeeds, the largest one fails."""
        columns = [
            [0 if value >> j & 1 else 65_535 for j in range(self.n_digits)]
            + [0 if rest else 65_535]
            for value, rest in values_and_rest
        ]
        return np.array(columns).T


def test_digits_and_rest_make_the_value():
    plan = Leading(1)
    assert plan.n_digits == 3
    # First of the pair: 5 + 8 * 3; second: 6 + 8 * 1. The rest continues until it fails.
    stream = PlannedStream(plan.lanes((5, True), (6, True)), [[0, 65_535]], [[0]], [[65_535]])
    assert discrete_laplace(1, 1, stream).tolist() == [5 + 24 - (6 + 8)]
    assert stream.is_exhausted


def test_ties_at_every_stage_are_settled_by_further_digits():
    # Digit 1 of the first number ties on 80 digits and the rest of the second on 144.
    plan = Leading(1)
    lanes = plan.lanes((1, False), (0, False))
    tied = plan.probabilities[1], plan.probabilities[3]
    lanes[1, 0], lanes[3, 1] = (p.leading >> 64 for p in tied)
    words = np.array([p.leading % 2**64 for p in tied], dtype=np.uint64)
    third = [p.digits(144) % 2**64 for p in tied]
    fourth = tied[1].digits(208) % 2**64
    for last, expected in ((fourth - 1, 3 - 8), (fourth + 1, 3)):
        after = [[[65_535]]] if last < fourth else []
        stream = PlannedStream(lanes, words, [third[0] - 1], [third[1]], [last], *after)
        assert discrete_laplace(1, 1, stream).tolist() == [expected]
        assert stream.is_exhausted


def test_a_tiny_scale_has_no_digits_and_zeros_for_ties():
    # All 80 leading digits of e^-1000000 are 0: only lanes and words of 0 tie.
    plan = Leading(Fraction(1, 10**6))
    assert plan.n_digits == 0
    assert plan.probabilities[0].leading == 0
    stream = PlannedStream([[0, 1]], [0], [1])
    assert discrete_laplace(Fraction(1, 10**6), 1, stream).tolist() == [0]
    assert stream.is_exhausted


def test_values_beyond_int64_are_refused_not_wrapped(monkeypatch):
    monkeypatch.setattr(_discrete_laplace, "_LARGEST_INT64_SCALE", 1 << 62)
    scale = 2**58
    plan = Leading(scale)
    assert plan.n_digits == 61
    low, high = (0, False), (2**61 - 1, True)
    three = [[[0]], [[0]], [[65_535]]]
    draws = discrete_laplace(scale, 1, PlannedStream(plan.lanes(high, low), *three))
    assert draws.tolist() == [2**63 - 1]
    draws = discrete_laplace(scale, 1, PlannedStream(plan.lanes(low, high), *three))
    assert draws.tolist() == [1 - 2**63]
    stream = PlannedStream(plan.lanes(high, low), [[0]], [[0]], [[0]])
    with pytest.raises(OverflowError, match="64 bits"):
        discrete_laplace(scale, 1, stream)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_digits_have_the_probabilities_of_a_geometric_variable(scale):
    *digits, rest = _geometric_probabilities(Fraction(scale))
    for j, probability in enumerate(digits):
        assert probability.leading == logistic_floor(Fraction(2**j) / scale, 80)
    # The rest has probability e^-8 or less, and half the digits would not do.
    assert rest.leading <= exponential_interval(8, 100)[1] * 2**80
    assert 2 ** len(digits) < 16 * scale or not digits


@pytest.mark.parametrize("ratio", [Fraction(1, 5), Fraction(1, 2), Fraction(9, 10)], ids=str)
def test_independent_digits_and_a_count_are_geometric(ratio):
    # The algebra in exact arithmetic, with a rational q in the place of e^(-1/t).
    n_digits = 3

    def by_digits(value):
        probability = Fraction(1)
        for j in range(n_digits):
            weight = ratio ** (2**j)
            probability *= (weight if value >> j & 1 else 1) / (1 + weight)
        rest = ratio ** (2**n_digits)
        return probability * rest ** (value >> n_digits) * (1 - rest)

    geometric = [by_digits(value) for value in range(60)]
    assert geometric == [(1 - ratio) * ratio**value for value in range(60)]
    # The difference: partial sums of P(g + x) P(g) and the tail of a geometric series.
    n_terms = 30
    tail = ratio ** (2 * n_terms)
    laplace = [
        sum(geometric[g + x] * geometric[g] for g in range(n_terms)) / (1 - tail)
        for x in range(30)
    ]
    assert laplace == [(1 - ratio) / (1 + ratio) * ratio**x for x in range(30)]
    # So the privacy loss of one step is 1/t exactly: the ratio is q wherever it is taken.
    assert {after / before for before, after in pairwise(laplace)} == {ratio}


def test_equal_scales_of_any_type_give_equal_draws():
    draws = [
        discrete_laplace(scale, 100, WordStream(bytes(32)))
        for scale in (2, 2.0, Fraction(2), np.int8(2), np.float32(2), np.float64(2))
    ]
    for other in draws[1:]:
        np.testing.assert_array_equal(other, draws[0])
    # A float is taken as what it is, not as the decimal number it was written as.
    assert _discrete_laplace.check_positive_rational(0.1, "scale") == Fraction(0.1)
    assert _discrete_laplace.check_positive_rational(np.longdouble(3) / 7, "scale") != 3 / 7


@pytest.mark.parametrize(
    ("scale", "dtype"), [(1, np.int64), (2**40, np.int64), (2**40 + 1, object), (10**30, object)]
)
def test_dtype_depends_on_the_scale_alone(scale, dtype):
    for size in (0, 3):
        draws = discrete_laplace(scale, size, WordStream(bytes(32)))
        assert draws.shape == (size,)
        assert draws.dtype == dtype
        if dtype is object:
            assert {type(draw) for draw in draws} <= {int}


@pytest.mark.parametrize("scale", [0, -1, 0.0, -0.5, float("nan"), float("inf"), Fraction(-1, 3)])
def test_scales_that_are_no_positive_number_are_refused(scale):
    with pytest.raises(ValueError, match="scale must be"):
        discrete_laplace(scale, 1, WordStream(bytes(32)))


@pytest.mark.parametrize("scale", [True, np.True_, "1", None, 1j, np.ones(1), [1]])
def test_scales_of_other_types_are_refused(scale):
    with pytest.raises(TypeError, match="scale must be"):
        discrete_laplace(scale, 1, WordStream(bytes(32)))


@pytest.mark.parametrize("stream", [None, 0, np.random.default_rng(0), np.random.RandomState(0)])
def test_only_word_streams_serve(stream):
    with pytest.raises(TypeError, match="random_stream"):
        discrete_laplace(1, 1, stream)


def test_negative_sizes_are_refused():
    with pytest.raises(ValueError, match="negative"):
        discrete_laplace(1, -1, WordStream(bytes(32)))


@pytest.mark.parametrize("scale", [Fraction(1, 10), 1000, 2**40])
def test_memory_is_flat(scale):
    # Beyond the result, whatever its size.
    peaks = []
    for size in (300_000, 900_000):
        stream = WordStream(bytes(32))
        discrete_laplace(scale, 1, stream)
        tracemalloc.start()
        draws = discrete_laplace(scale, size, stream)
        peaks.append(tracemalloc.get_traced_memory()[1] - draws.nbytes)
        tracemalloc.stop()
    assert max(peaks) < 16 * 2**20
    assert peaks[1] < 1.1 * peaks[0]


def test_draws_stay_the_same_across_versions():
    # Frozen: if this changes, the seeded simulations of every user change.
    stream = WordStream(bytes(32))
    scales = (Fraction(1, 3), 1, 12.5, 10**9)
    draws = [discrete_laplace(scale, 50_000, stream) for scale in scales]
    digest = hashlib.sha256(np.concatenate(draws).astype("<i8")).hexdigest()
    assert digest == "90532c6c8b3b7d67b333579853f2f839eb55b87d3f6026674bb8032a7216781b"
    draws = [str(draw) for draw in discrete_laplace(10**30, 1000, stream)]
    assert (
        hashlib.sha256(" ".join(draws).encode()).hexdigest()
        == "217bfe4cd40a7fa2966e923095298dca92e6074d27d2df59df39623f1df4d82f"
    )


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.1, 0.3, 0.9, 1, Fraction(7, 3), 7.5, 40])
def test_small_scales_have_the_exact_law(scale):
    n, limit = 1 << 20, int(30 * max(scale, 1))
    draws = discrete_laplace(scale, n, WordStream(bytes(32)))
    counts = np.bincount(np.clip(draws, -limit, limit) + limit, minlength=2 * limit + 1)
    ratio = np.exp(-1 / float(scale))
    probabilities = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-limit, limit + 1))
    probabilities[[0, -1]] /= 1 - ratio
    assert chi_square_passes(counts, probabilities)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [10**4, 10**6 + Fraction(1, 3), 2**40, 2**41, 10**20, 10**30])
def test_large_scales_have_the_law_of_leading_and_last_digits(scale):
    # Sixty cells of equal probability of the continuous law, which is the discrete one's up
    # to 1e-4; and the last six binary digits, uniform up to 1e-5. Two tests at 1e-6.
    n = 1 << (18 if scale <= 2**40 else 15)
    draws = discrete_laplace(scale, n, WordStream(bytes(32)))
    relative = np.array([float(Fraction(int(draw)) / scale) for draw in draws.tolist()])
    below = np.where(relative < 0, np.exp(relative) / 2, 1 - np.exp(-relative) / 2)
    cells = np.minimum((60 * below).astype(int), 59)
    assert chi_square_passes(np.bincount(cells, minlength=60), np.full(60, 1 / 60))
    last = np.array([int(draw) % 64 for draw in draws.tolist()])
    assert chi_square_passes(np.bincount(last, minlength=64), np.full(64, 1 / 64))


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.3, 1, 7.5, 10**6])
def test_moments(scale):
    # Normal approximation: mean and variance within 5.1 standard errors (3.4e-7 each), signs
    # balanced by an exact binomial test at 1e-6; fixed key.
    n = 1 << 20
    draws = discrete_laplace(scale, n, WordStream(bytes(32))).astype(float)
    q = np.exp(-1 / scale)
    variance = 2 * q / (1 - q) ** 2
    fourth = 2 * q * (1 + 10 * q + q * q) / (1 - q) ** 4
    assert abs(draws.mean()) < 5.1 * np.sqrt(variance / n)
    assert abs((draws**2).mean() - variance) < 5.1 * np.sqrt((fourth - variance**2) / n)
    n_positive, n_negative = np.count_nonzero(draws > 0), np.count_nonzero(draws < 0)
    low, high = binom.ppf([5e-7, 1 - 5e-7], n_positive + n_negative, 0.5)
    assert low <= n_positive <= high


@pytest.mark.statistical
def test_neighbouring_draws_are_uncorrelated():
    # Of a block and across its border: 5.1 standard errors, 3.4e-7 per lag, fixed key.
    draws = discrete_laplace(3, 1 << 20, WordStream(bytes(32))).astype(float)
    for lag in (1, 2, 64):
        products = draws[lag:] * draws[:-lag]
        assert abs(products.mean()) < 5.1 * draws.var() / np.sqrt(products.size)
