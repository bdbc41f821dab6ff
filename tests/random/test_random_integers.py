"""Bounded integers: exactness lane by lane, and the law."""

import hashlib

import numpy as np
import pytest
from recorded_streams import PlannedStream, RecordedStream
from scipy.stats import chi2

from skldp.random import WordStream, _integers, random_integers

ALL_SHORT_LANES = np.arange(1 << 16, dtype=np.uint16)
HIGHS = [*range(2, 300), 1000, 1024, 4095, 4096, 4097, 21_846, 32_767, 32_768, 32_769, 65_535]


def test_every_value_has_equally_many_lanes():
    for high in HIGHS:
        lanes = ALL_SHORT_LANES.copy()
        _integers._reduce_lanes(lanes, high)
        counts = np.bincount(lanes, minlength=high)
        n_rejected = counts[high:].sum()
        assert (counts[:high] == (65_536 - n_rejected) // high).all()
        assert n_rejected < min(high, 65_536 / 2)


def test_full_range_keeps_every_lane():
    lanes = ALL_SHORT_LANES.copy()
    _integers._reduce_lanes(lanes, 1 << 16)
    np.testing.assert_array_equal(lanes, ALL_SHORT_LANES)


def test_rejected_lanes_are_drawn_again_and_only_they(monkeypatch):
    # Lanes of eight bits reject visibly often. Each of the 256 is served once; then the
    # rejected ones get a lane that is rejected again, and then one that is not.
    monkeypatch.setattr(_integers, "_SPARE_BITS", 0)
    for high in range(3, 256):
        quotient = 256 // high
        n_rejected = 256 - quotient * high
        expected = np.arange(256) // quotient
        expected[expected >= high] = 127 // quotient
        again = [np.full(n_rejected, 255), np.full(n_rejected, 127)]
        if high & (high - 1) == 0:
            expected, again = np.arange(256) % high, []
        for dtype in (np.uint8, np.int64):
            stream = PlannedStream(np.arange(256), *again)
            np.testing.assert_array_equal(random_integers(high, 256, stream, dtype), expected)
            assert stream.is_exhausted


@pytest.mark.parametrize(
    "high", [2, 3, 100, 256, 257, 65_535, 65_537, 2**32, 2**32 + 1, 3 << 61, 2**63 - 1, 2**63]
)
def test_values_are_quotients_or_remainders_of_the_lanes(high):
    # An oracle in Python integers over a recorded stream; false if a lane were cut or biased.
    stream = RecordedStream()
    values = random_integers(high, 3000, stream)
    lanes, *again = stream.served
    n_values = 1 << 8 * lanes.itemsize
    if high & (high - 1) == 0:
        assert not again
        assert values.tolist() == [int(lane) % high for lane in lanes]
        return
    results = [int(lane) // (n_values // high) for lane in lanes]
    for more in again:
        rejected = [i for i, result in enumerate(results) if result >= high]
        for i, lane in zip(rejected, more, strict=True):
            results[i] = int(lane) // (n_values // high)
    assert values.tolist() == results
    assert max(results) < high


def test_rejection_is_rare_below_two_to_the_48():
    for high in (3, 255, 65_535, 65_537, 2**40 + 1):
        n_lanes = 1 << 8 * _integers._lane_type(high).itemsize
        assert n_lanes % high / n_lanes < 2**-16


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", ">i4"])
def test_dtype_is_respected_up_to_its_limit(dtype):
    limit = min(int(np.iinfo(dtype).max), 2**63 - 1)
    for high in (limit, limit + 1):
        values = random_integers(high, 1000, WordStream(bytes(32)), dtype=dtype)
        assert values.dtype == dtype
        assert values.min() >= 0
        assert values.max() < high
        # The top half is reached: a miss has probability 2^-1000.
        assert values.max() >= high // 2
    if dtype != "u8":
        with pytest.raises(ValueError, match=r"does not hold|between 1 and"):
            random_integers(limit + 2, 10, WordStream(bytes(32)), dtype=dtype)


@pytest.mark.parametrize("high", [16, 100])
def test_result_is_written_in_place_whatever_the_layout(high):
    expected = random_integers(high, 100_000, WordStream(bytes(32)))
    for out in (
        np.empty(100_000, np.uint8),
        np.empty(100_000, np.uint32),
        np.empty((100_000, 2), np.uint32)[:, 1],
        np.empty(100_000, np.int16)[::-1],
    ):
        assert random_integers(high, 100_000, WordStream(bytes(32)), out=out) is out
        np.testing.assert_array_equal(out, expected)


def test_a_single_value_needs_no_bits():
    np.testing.assert_array_equal(random_integers(1, 5, PlannedStream()), np.zeros(5))
    assert random_integers(7, 0, WordStream(bytes(32))).shape == (0,)


@pytest.mark.parametrize("high", [0, -1, 2**63 + 1])
def test_ranges_out_of_bounds_are_refused(high):
    with pytest.raises(ValueError, match="between 1 and 2"):
        random_integers(high, 1, WordStream(bytes(32)), dtype=np.uint64)


def test_other_results_are_refused():
    with pytest.raises(ValueError, match="shape"):
        random_integers(3, 4, WordStream(bytes(32)), out=np.empty(3, int))
    with pytest.raises(ValueError, match="does not hold"):
        random_integers(3, 4, WordStream(bytes(32)), dtype=float)


def test_draws_stay_the_same_across_versions():
    # Frozen: if this changes, the seeded simulations of every user change.
    stream = WordStream(bytes(32))
    draws = [random_integers(high, 100_000, stream) for high in (10, 64, 70_001, 2**40 - 1)]
    digest = hashlib.sha256(np.concatenate(draws).astype("<i8")).hexdigest()
    assert digest == "b123aa8af01a9be601eae6e23c18a4530f02216fb88d9c9faf12fcc3215d8dc8"


@pytest.mark.statistical
@pytest.mark.parametrize("high", [2, 3, 7, 100, 255, 256, 257, 1000, 4096])
def test_values_are_uniform(high):
    # Chi-square, false-alarm rate 1e-6 per range, fixed key.
    n = 1 << 21
    counts = np.bincount(random_integers(high, n, WordStream(bytes(32))), minlength=high)
    statistic = ((counts - n / high) ** 2 / (n / high)).sum()
    assert statistic < chi2.isf(1e-6, high - 1)


@pytest.mark.statistical
def test_wide_ranges_are_uniform():
    # Chi-square of the leading part over 97 cells of equal size; 1e-6 per range, fixed key.
    n = 1 << 20
    for high in (97 * 2**40, 97 * 2**56):
        draws = random_integers(high, n, WordStream(bytes(32)))
        counts = np.bincount(draws // (high // 97), minlength=97)
        assert ((counts - n / 97) ** 2 / (n / 97)).sum() < chi2.isf(1e-6, 96)
