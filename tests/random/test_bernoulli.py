"""Bernoulli variables: every decision against integers of all 64 digits."""

import hashlib

import numpy as np
import pytest
from recorded_streams import PlannedStream, RecordedStream
from scipy.stats import binom

from skldp.random import WordStream, _bernoulli, bernoulli, bernoulli_bits

ONE = 1 << 64
# Leading digits only, all digits, runs of either digit, and the neighbours of 0, 1/2 and 1.
THRESHOLDS = [
    1,
    2,
    ONE - 1,
    ONE - 2,
    1 << 63,
    (1 << 63) - 1,
    (1 << 63) + 1,
    3 << 60,
    1 << 55,
    1 << 54,
    (1 << 55) + 1,
    0b111111111 << 55,
    0b101010101 << 55,
    0x5555555555555555,
    0xAAAAAAAAAAAAAAAA,
    0x00FFFF0000FF00FF,
    0x60A6_1C2B_9E7D_0F31,
]


def unpack(words):
    return np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")


class Replay:
    """The 64-digit integers that the recorded bits stand for, one for every variable.

    A bit of a plane says whether the digit agrees with that of the threshold; the digits that
    no plane gave are those of a word of its own, given in the order lowest bit first.
    """

    def __init__(self, threshold, size, served):
        self.digits = f"{threshold:064b}".rstrip("0")[: _bernoulli._N_DENSE]
        self.has_tail = threshold << len(self.digits) & (ONE - 1) != 0
        self.served = iter(served)
        self.integers = []
        while len(self.integers) < 64 * size:
            self._replay_tail_block(min(_bernoulli._TAIL_BLOCK, size - len(self.integers) // 64))

    def _replay_tail_block(self, n_words):
        leading, agrees = [], []
        for start in range(0, n_words, _bernoulli._PLANE_BLOCK):
            planes = np.array([unpack(next(self.served)) for _ in self.digits], dtype=object)
            assert planes.shape[1] == 64 * min(_bernoulli._PLANE_BLOCK, n_words - start)
            number = 0
            for digit, plane in zip(self.digits, planes, strict=True):
                number = 2 * number + (plane if digit == "1" else 1 - plane)
            leading.extend(number)
            agrees.extend(planes.all(axis=0))
        n_missing = 64 - len(self.digits)
        # A decided variable is the same whatever its missing digits are.
        integers = [number << n_missing for number in leading]
        if self.has_tail:
            waiting = [
                [bit for bit in range(64) if agrees[64 * word + bit]] for word in range(n_words)
            ]
            while any(waiting):
                rows = [word for word in range(n_words) if waiting[word]]
                for word, missing in zip(rows, next(self.served), strict=True):
                    integers[64 * word + waiting[word].pop(0)] += int(missing) >> (64 - n_missing)
        self.integers += integers


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(_bernoulli, "_PLANE_BLOCK", 4)
    monkeypatch.setattr(_bernoulli, "_TAIL_BLOCK", 8)


@pytest.mark.parametrize("threshold", THRESHOLDS, ids=hex)
@pytest.mark.parametrize("size", [1, 3, 4, 5, 8, 9, 16, 21])
def test_bits_decide_as_the_full_comparison_does(small_blocks, threshold, size):
    stream = RecordedStream(size.to_bytes(32, "big"))
    bits = unpack(bernoulli_bits(threshold, size, stream))
    replay = Replay(threshold, size, stream.served)
    assert bits.tolist() == [number < threshold for number in replay.integers]
    assert next(replay.served, None) is None


@pytest.mark.parametrize("threshold", [THRESHOLDS[-1], 0xAAAAAAAAAAAAAAAA], ids=hex)
def test_bits_decide_as_the_full_comparison_does_in_blocks_of_full_size(threshold):
    size = 200
    stream = RecordedStream()
    bits = unpack(bernoulli_bits(threshold, size, stream))
    expected = [number < threshold for number in Replay(threshold, size, stream.served).integers]
    assert bits.tolist() == expected


@pytest.mark.parametrize("threshold", [t for t in THRESHOLDS if t % (1 << 55)], ids=hex)
def test_planted_ties_are_settled_by_the_remaining_digits(threshold):
    # Every plane agrees everywhere, so that all 128 variables tie on the leading digits.
    size, n_dense = 2, _bernoulli._N_DENSE
    everywhere = np.full(size, ONE - 1, dtype=np.uint64)
    n_missing = 64 - n_dense
    last_digits = threshold % (1 << n_missing)
    rng = np.random.default_rng(0)
    near = [last_digits - 1, last_digits, min(last_digits + 1, (1 << n_missing) - 1), 0]
    numbers = near * 8 + rng.integers(0, 1 << n_missing, 128 - 32).tolist()
    # Spare low bits of a word must not matter: all clear, all set, and anything.
    spare = [0] * 16 + [(1 << n_dense) - 1] * 16 + rng.integers(1 << n_dense, size=96).tolist()
    tails = [(number << n_dense) + low for number, low in zip(numbers, spare, strict=True)]
    rounds = np.array(tails, dtype=np.uint64).reshape(64, size)
    stream = PlannedStream(*[everywhere] * n_dense, *rounds)
    bits = unpack(bernoulli_bits(threshold, size, stream)).reshape(size, 64)
    expected = np.array([number < last_digits for number in numbers]).reshape(64, size).T
    np.testing.assert_array_equal(bits, expected)
    assert stream.is_exhausted


def test_a_tie_over_all_digits_is_no_success():
    # U == threshold exactly, where no digit is left for the tail.
    threshold = 0b101 << 61
    stream = PlannedStream(*[np.array([ONE - 1], dtype=np.uint64)] * 3)
    assert bernoulli_bits(threshold, 1, stream)[0] == 0
    assert stream.is_exhausted


@pytest.mark.parametrize("function", [bernoulli, bernoulli_bits])
def test_certain_outcomes_need_no_bits(function):
    assert not function(0, 100, PlannedStream()).any()
    certain = function(ONE, 100, PlannedStream())
    assert np.all(certain == (True if function is bernoulli else ONE - 1))


@pytest.mark.parametrize("size", [0, 1, 7, 8, 63, 64, 65, 65_535, 65_536, 65_537, (1 << 21) + 1])
def test_bernoulli_spreads_the_bits(size):
    threshold = THRESHOLDS[-1]
    spread = bernoulli(threshold, size, WordStream(bytes(32)))
    assert spread.dtype == np.bool_
    bits, stream = [], WordStream(bytes(32))
    for start in range(0, size, 1 << 21):
        n_words = -(-min(size - start, 1 << 21) // 64)
        bits.append(unpack(bernoulli_bits(threshold, n_words, stream)))
    np.testing.assert_array_equal(spread, np.concatenate([*bits, []])[:size])


def test_results_can_be_written_in_place():
    threshold = THRESHOLDS[-1]
    words = np.zeros(300, dtype=np.uint64)
    assert bernoulli_bits(threshold, 300, WordStream(bytes(32)), out=words) is words
    np.testing.assert_array_equal(words, bernoulli_bits(threshold, 300, WordStream(bytes(32))))
    strided = np.zeros(200, dtype=np.bool_)[::2]
    assert bernoulli(threshold, 100, WordStream(bytes(32)), out=strided) is strided
    np.testing.assert_array_equal(strided, bernoulli(threshold, 100, WordStream(bytes(32))))


@pytest.mark.parametrize("function", [bernoulli, bernoulli_bits])
def test_invalid_arguments_are_refused(function):
    stream = WordStream(bytes(32))
    for threshold in (-1, ONE + 1):
        with pytest.raises(ValueError, match="between 0 and 2"):
            function(threshold, 1, stream)
    for out in (np.empty(2, np.uint64), np.empty(2, np.bool_), np.empty(3, np.int64)):
        with pytest.raises(ValueError, match="shape"):
            function(1 << 63, 3, stream, out=out)


def test_draws_stay_the_same_across_versions():
    # Frozen: if this changes, the seeded simulations of every user change.
    bits = bernoulli_bits(THRESHOLDS[-1], 40_000, WordStream(bytes(32)))
    digest = hashlib.sha256(bits.astype("<u8")).hexdigest()
    assert digest == "b6161a7892a960ec10a33151384cd8f5735d1c188becf4d29450f40faa0adb8c"


@pytest.mark.statistical
@pytest.mark.parametrize("threshold", THRESHOLDS, ids=hex)
def test_frequency_of_successes(threshold):
    # Binomial, two-sided, false-alarm rate 1e-6 per threshold, fixed key.
    n = 1 << 23
    for draws in (
        unpack(bernoulli_bits(threshold, n // 64, WordStream(bytes(32)))),
        bernoulli(threshold, n, WordStream(bytes(31) + b"1")),
    ):
        low, high = binom.ppf([5e-7, 1 - 5e-7], n, threshold / ONE)
        assert low <= np.count_nonzero(draws) <= high


@pytest.mark.statistical
def test_neighbouring_bits_are_independent():
    # Pairs at lags 1, 64 and 4096: binomial, false-alarm rate 1e-6 in total, fixed key.
    threshold, n = 3 << 61, 1 << 23
    bits = unpack(bernoulli_bits(threshold, n // 64, WordStream(bytes(32)))).astype(bool)
    for lag in (1, 64, 4096):
        # Pairs that do not overlap: every second run of `lag` bits with its successor.
        runs = bits[: n // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
        both = np.count_nonzero(runs[:, 0] & runs[:, 1])
        low, high = binom.ppf([1e-7, 1 - 1e-7], runs.size // 2, (threshold / ONE) ** 2)
        assert low <= both <= high
