"""Discrete Gaussian noise: every decision against exact arithmetic, the filter, the law."""

import hashlib
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from exact_noise import BernoulliOracle, chi_square_passes, exponential_floor, replay_laplace
from recorded_streams import PlannedStream, RecordedStream
from scipy.special import logsumexp, ndtr
from scipy.stats import binom

from skldp.random import WordStream, _discrete_gaussian, discrete_gaussian
from skldp.random._discrete_gaussian import _float_exponents, _is_kept, _proposal_scale
from skldp.random._exact import filtered_exponential

VARIANCES = [
    Fraction(1, 10**400),
    Fraction(1, 10**30),
    Fraction(1, 10**8),
    Fraction(1, 100),
    Fraction(1, 3),
    Fraction(1),
    Fraction(2),
    Fraction(15, 2),
    Fraction(10**12) + Fraction(1, 7),
    Fraction(2**80 - 1),
    Fraction(2**80),
    Fraction(10**60),
]


def candidates_around(variance):
    """Numbers whose exponents reach from 0 to beyond the filter, both signs."""
    sigma, scale = math.isqrt(math.floor(variance)), _proposal_scale(variance)
    center = round(variance / scale)
    values = {center + step * (sigma // 30 + 1) for step in range(-30, 360)}
    values |= {center - 1, center + 1, 0, 1, 2, 3, 50 * sigma + 50}
    values = sorted(value for value in values if value >= 0)
    return np.array(values + [-value for value in values], dtype=object)


def exact_exponent(candidate, variance):
    """The difference of x^2/(2 variance) and abs(x)/t, least value subtracted."""
    scale = _proposal_scale(variance)
    loss = Fraction(candidate**2) / (2 * variance) - Fraction(abs(candidate), scale)
    return loss + variance / (2 * scale**2)


@pytest.mark.parametrize("variance", VARIANCES, ids=range(len(VARIANCES)))
def test_filter_stays_within_its_error(variance):
    scale, unit = _proposal_scale(variance), Fraction(1, 2**53)
    assert (scale - 1) ** 2 <= variance < scale**2
    candidates = candidates_around(variance)
    arrays = [candidates]
    if np.abs(candidates).max() < 2**62:
        arrays.append(candidates.astype(np.int64))
    for array in arrays:
        approximations = _float_exponents(array, variance, scale)
        floats = filtered_exponential(approximations)
        for candidate, approximation, value in zip(
            candidates, approximations, floats, strict=True
        ):
            exponent = exact_exponent(candidate, variance)
            if exponent > 64:
                assert approximation == 64 or exponent - Fraction(approximation) < 611 * unit
                continue
            assert abs(Fraction(approximation) - exponent) < 611 * unit
            power = Fraction(exponential_floor(exponent, 160), 2**160)
            assert abs(Fraction(value) / power - 1) < 1000 * unit


def planted_decisions(variance):
    """Candidates and words beside their thresholds, with the right decisions."""
    candidates, words, decisions = [], [], []
    for candidate in candidates_around(variance)[::7]:
        threshold = exponential_floor(exact_exponent(candidate, variance), 64)
        for offset in (-(2**30), -3, -2, -1, 1, 2, 3, 2**30):
            if 0 <= threshold + offset < 2**64:
                candidates.append(candidate)
                words.append(threshold + offset)
                decisions.append(offset < 0)
    return np.array(candidates, dtype=object), np.array(words, dtype=np.uint64), decisions


@pytest.mark.parametrize("variance", VARIANCES[1:], ids=str)
def test_words_beside_the_threshold_are_decided_exactly(variance):
    candidates, words, decisions = planted_decisions(variance)
    stream = PlannedStream(words)
    kept = _is_kept(candidates, variance, _proposal_scale(variance), stream)
    assert kept.tolist() == decisions
    assert stream.is_exhausted


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(15, 2), Fraction(10**60)], ids=str)
def test_a_word_that_ties_gets_further_digits(variance):
    scale = _proposal_scale(variance)
    for candidate in (scale // 2 + scale, -2 * scale):
        exponent = exact_exponent(candidate, variance)
        first = exponential_floor(exponent, 64)
        second, third = (exponential_floor(exponent, n) % 2**64 for n in (128, 192))
        plans = ([second - 1], [second + 1], [second, third - 1], [second, third + 1])
        for plan, expected in zip(plans, (True, False, True, False), strict=True):
            stream = PlannedStream([first], *([word] for word in plan))
            kept = _is_kept(np.array([candidate], dtype=object), variance, scale, stream)
            assert kept.tolist() == [expected]
            assert stream.is_exhausted


def test_ties_with_small_words_get_further_digits():
    # 2^64 e^-γ from 1/30 to 30, where a word and the next differ by more than any margin.
    variance, n_tested = Fraction(10**4), 0
    scale = _proposal_scale(variance)
    for candidate in range(900, 1200):
        exponent = exact_exponent(candidate, variance)
        if not 41 < exponent < 48:
            continue
        first, second = (exponential_floor(exponent, n) % 2**64 for n in (64, 128))
        array = np.array([candidate])
        for word in range(max(first - 2, 0), first + 3):
            for after, is_kept in ((second - 1, True), (second + 1, False)):
                stream = PlannedStream([word], [after])
                expected = word < first or (word == first and is_kept)
                assert _is_kept(array, variance, scale, stream).tolist() == [expected]
                assert stream.is_exhausted == (word == first)
        n_tested += 1
    assert n_tested > 50


def test_a_probability_of_one_keeps_every_word():
    # variance/t = 1, so that candidates 1 and -1 have the exponent 0.
    for word in (0, 2**63, 2**64 - 1):
        kept = _is_kept(np.array([1, -1]), Fraction(2), 2, PlannedStream([word, word]))
        assert kept.all()


@pytest.mark.parametrize("variance", [Fraction(1, 3), 2, Fraction(123, 10), 10**12], ids=str)
def test_exact_arithmetic_alone_gives_the_same_draws(monkeypatch, variance):
    expected = discrete_gaussian(variance, 300, WordStream(bytes(32)))
    monkeypatch.setattr(_discrete_gaussian, "_MARGIN", math.inf)
    calls = []
    decide = _discrete_gaussian.is_below

    def counted(*arguments):
        calls.append(arguments)
        return decide(*arguments)

    monkeypatch.setattr(_discrete_gaussian, "is_below", counted)
    monkeypatch.setattr(_discrete_gaussian, "filtered_exponential", np.ones_like)
    np.testing.assert_array_equal(
        discrete_gaussian(variance, 300, WordStream(bytes(32))), expected
    )
    assert len(calls) >= 300


@pytest.mark.parametrize("variance", VARIANCES[2:], ids=str)
@pytest.mark.parametrize("size", [1, 60])
def test_draws_follow_the_oracle(monkeypatch, variance, size):
    monkeypatch.setattr(_discrete_gaussian, "_BLOCK", 40)
    stream = RecordedStream(size.to_bytes(32, "big"))
    draws = discrete_gaussian(variance, size, stream)
    oracle, expected, scale = BernoulliOracle(stream.served), [], math.isqrt(int(variance)) + 1
    while len(expected) < size:
        n_candidates = min(40, (size - len(expected)) * 3 // 2 + 8)
        candidates = replay_laplace(oracle, scale, n_candidates, 2**40)
        words = next(oracle.served)
        for candidate, word in zip(candidates, words, strict=True):
            if int(word) < exponential_floor(exact_exponent(candidate, variance), 64):
                expected.append(candidate)
    assert draws.tolist() == expected[:size]
    assert next(oracle.served, None) is None


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(2), Fraction(15, 2)], ids=str)
def test_proposal_times_acceptance_is_the_gaussian_weight(variance):
    # abs(x)/t + γ(x) - x^2/(2 variance) is the same for every x, in exact arithmetic.
    scale = _proposal_scale(variance)
    constants = {
        Fraction(abs(x), scale)
        + _discrete_gaussian._exponent(x, variance, scale)
        - Fraction(x * x) / (2 * variance)
        for x in range(-20, 21)
    }
    assert len(constants) == 1


@pytest.mark.parametrize("variance", [0.05, 1, 7.5, 100])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_shifts_are_zero_concentrated_private(variance, shift):
    # The Renyi divergence of every order is at most order * shift^2 / (2 variance), up to the
    # rounding of sums of logarithms.
    support = np.arange(-2000, 2001)
    losses = support**2 / (2 * variance)
    moved = (support - shift) ** 2 / (2 * variance)
    total = logsumexp(-losses)
    for order in (1.01, 1.5, 2, 3.3, 10, 40):
        exponents = (order - 1) * moved - order * losses
        divergence = (logsumexp(exponents) - total) / (order - 1)
        assert divergence <= order * shift**2 / (2 * variance) * (1 + 1e-10) + 1e-10


@pytest.mark.parametrize(
    ("variance", "dtype"),
    [(1, np.int64), (2**80 - 1, np.int64), (2**80, object), (10**60, object)],
)
def test_dtype_depends_on_the_variance_alone(variance, dtype):
    for size in (0, 3):
        draws = discrete_gaussian(variance, size, WordStream(bytes(32)))
        assert draws.shape == (size,)
        assert draws.dtype == dtype
        if dtype is object:
            assert {type(draw) for draw in draws} <= {int}


@pytest.mark.parametrize("variance", [0, -1, -0.5, float("nan"), float("inf"), Fraction(-1, 3)])
def test_variances_that_are_no_positive_number_are_refused(variance):
    with pytest.raises(ValueError, match="variance must be"):
        discrete_gaussian(variance, 1, WordStream(bytes(32)))


@pytest.mark.parametrize("variance", [True, "1", None, np.ones(1)])
def test_variances_of_other_types_are_refused(variance):
    with pytest.raises(TypeError, match="variance must be"):
        discrete_gaussian(variance, 1, WordStream(bytes(32)))


@pytest.mark.parametrize("stream", [None, 0, np.random.default_rng(0)])
def test_only_word_streams_serve(stream):
    with pytest.raises(TypeError, match="random_stream"):
        discrete_gaussian(1, 1, stream)


def test_negative_sizes_are_refused():
    with pytest.raises(ValueError, match="negative"):
        discrete_gaussian(1, -1, WordStream(bytes(32)))


@pytest.mark.parametrize("variance", [Fraction(1, 10), 10**6])
def test_memory_is_flat(variance):
    peaks = []
    for size in (200_000, 600_000):
        stream = WordStream(bytes(32))
        discrete_gaussian(variance, 1, stream)
        tracemalloc.start()
        draws = discrete_gaussian(variance, size, stream)
        peaks.append(tracemalloc.get_traced_memory()[1] - draws.nbytes)
        tracemalloc.stop()
    assert max(peaks) < 8 * 2**20
    assert peaks[1] < 1.1 * peaks[0]


def test_draws_stay_the_same_across_versions():
    # Frozen: if this changes, the seeded simulations of every user change.
    stream = WordStream(bytes(32))
    draws = [discrete_gaussian(v, 50_000, stream) for v in (Fraction(1, 3), 1, 12.5, 10**18)]
    digest = hashlib.sha256(np.concatenate(draws).astype("<i8")).hexdigest()
    assert digest == "8c52397d732dc27e71d702cae985c6c20d384b791ed7346cec2119093f946676"


@pytest.mark.statistical
@pytest.mark.parametrize("variance", [0.05, 0.1, Fraction(1, 3), 1, 2, 7.5, 100, 5000])
def test_small_variances_have_the_exact_law(variance):
    n, limit = 1 << 20, int(20 * max(math.sqrt(variance), 1))
    draws = discrete_gaussian(variance, n, WordStream(bytes(32)))
    assert np.abs(draws).max() < limit  # beyond it lies less than e^-150
    counts = np.bincount(draws + limit, minlength=2 * limit + 1)
    weights = np.exp(-(np.arange(-limit, limit + 1) ** 2) / (2 * float(variance)))
    assert chi_square_passes(counts, weights / weights.sum())


@pytest.mark.statistical
@pytest.mark.parametrize("variance", [10**8, 10**14 + Fraction(1, 3), 2**80 - 1, 10**60], ids=str)
def test_large_variances_have_the_law_of_leading_and_last_digits(variance):
    # Sixty cells of equal probability of the continuous law, which is the discrete one's up
    # to 1e-4; and the last five binary digits, uniform up to less. Two tests at 1e-6.
    n, sigma = 1 << (18 if variance < 2**80 else 15), math.isqrt(int(variance))
    draws = discrete_gaussian(variance, n, WordStream(bytes(32)))
    relative = np.array([draw / sigma for draw in draws.tolist()])
    cells = np.minimum((60 * ndtr(relative)).astype(int), 59)
    assert chi_square_passes(np.bincount(cells, minlength=60), np.full(60, 1 / 60))
    last = np.array([int(draw) % 32 for draw in draws.tolist()])
    assert chi_square_passes(np.bincount(last, minlength=32), np.full(32, 1 / 32))


@pytest.mark.statistical
@pytest.mark.parametrize("variance", [0.3, 1, 7.5, 10**6])
def test_moments(variance):
    # Mean and variance within 5.1 standard errors (3.4e-7 each), signs balanced by an exact
    # binomial test at 1e-6; fixed key.
    n = 1 << 20
    draws = discrete_gaussian(variance, n, WordStream(bytes(32))).astype(float)
    support = np.arange(-20_000, 20_001)
    weights = np.exp(-(support**2) / (2 * float(variance)))
    second, fourth = ((weights * support.astype(float) ** k).sum() / weights.sum() for k in (2, 4))
    assert second <= variance * (1 + 1e-12)
    assert abs(draws.mean()) < 5.1 * np.sqrt(second / n)
    assert abs((draws**2).mean() - second) < 5.1 * np.sqrt((fourth - second**2) / n)
    n_positive, n_negative = np.count_nonzero(draws > 0), np.count_nonzero(draws < 0)
    low, high = binom.ppf([5e-7, 1 - 5e-7], n_positive + n_negative, 0.5)
    assert low <= n_positive <= high
