"""Kernels: every report and every count against a plain replay in Python."""

import hashlib
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from recorded_streams import PlannedStream, RecordedStream
from scipy.stats import chi2

from skldp.channels import _counting, _kernels
from skldp.channels._counting import count_codes, sum_bits, sum_packed_bits
from skldp.channels._kernels import _share_lanes, randomize_codes, randomize_one_hot
from skldp.random import WordStream, bernoulli_bits

ONE = 1 << 64
KEY = bytes(32)
SIZES = [0, 1, 7, 63, 64, 65]
CATEGORIES = [2, 3, 7, 8, 9, 255, 256, 257, 4096, 65_536, 65_537]
THRESHOLDS = [0, 1, 1 << 62, 0x60A6_1C2B_9E7D_0F31, ONE - 1, ONE]


def code_type(n_categories):
    return np.min_scalar_type(n_categories - 1)


def draw_codes(n, n_categories, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_categories, n, dtype=code_type(n_categories))


def unpack(packed, n_bits=None):
    return np.unpackbits(packed, axis=-1, count=n_bits, bitorder="little")


# k-ary randomized response


def replay_mask(codes, n_categories, threshold, stream):
    """Randomize for a power of two, one code after the other."""
    block_size, bits_size = _kernels._BLOCK_SIZE, _kernels._BITS_SIZE
    reports, decisions = [], iter(())
    for start in range(0, len(codes), block_size):
        if start % bits_size == 0:
            n_words = -(-min(len(codes) - start, bits_size) // 64)
            octets = bernoulli_bits(threshold, n_words, stream).astype("<u8").view(np.uint8)
            decisions = iter(np.unpackbits(octets).tolist())
        block = codes[start : start + block_size].tolist()
        lanes = stream.fill(np.empty(len(block), dtype=code_type(n_categories))).tolist()
        for code, lane in zip(block, lanes, strict=True):
            reports.append(code ^ (lane % n_categories) if next(decisions) else code)
    return reports


def replay_inversion(codes, n_categories, threshold, served, block_size):
    """Randomize for other numbers of categories, one code after the other."""
    n_bits = 32 if n_categories <= 65_536 else 64
    share, n_last, missing = _share_lanes(n_categories, threshold, n_bits)
    served, reports = iter(served), []
    for start in range(0, len(codes), block_size):
        block = codes[start : start + block_size].tolist()
        lanes = next(served).tolist()
        last = [i for i, lane in enumerate(lanes) if lane >= (1 << n_bits) - n_last]
        results = {}
        if last:
            draws = uniform(n_last << (64 - n_bits), len(last), served)
            symbols = uniform(n_categories, len(last), served)
            for i, draw, symbol in zip(last, draws, symbols, strict=True):
                results[i] = symbol if draw < missing else block[i]
        for i, (code, lane) in enumerate(zip(block, lanes, strict=True)):
            replaced = lane < share * n_categories
            reports.append(results.get(i, lane // share if replaced else code))
    return reports


def uniform(high, size, served):
    """Bounded integers from the lanes that were served for them."""
    pending, values = list(range(size)), [0] * size
    while pending:
        lanes = next(served)
        n_lanes, again = 1 << 8 * lanes.itemsize, []
        for i, lane in zip(pending, lanes.tolist(), strict=True):
            values[i] = lane % high if high & (high - 1) == 0 else lane // (n_lanes // high)
            if values[i] >= high:
                again.append(i)
        pending = again
    return values


def check_against_replay(codes, n_categories, threshold):
    stream = RecordedStream(KEY)
    reports = randomize_codes(codes, n_categories, threshold, stream)
    assert reports.dtype == codes.dtype
    assert reports.shape == codes.shape
    if n_categories & (n_categories - 1) == 0:
        expected = replay_mask(codes, n_categories, threshold, WordStream(KEY))
    else:
        block_size = _kernels._LANE_BYTES // (4 if n_categories <= 65_536 else 8)
        expected = replay_inversion(codes, n_categories, threshold, stream.served, block_size)
    assert reports.tolist() == expected


@pytest.fixture
def small_blocks(monkeypatch):
    # 32 codes; 32 or 16 lanes by their width; decisions for 128 codes.
    monkeypatch.setattr(_kernels, "_BLOCK_SIZE", 32)
    monkeypatch.setattr(_kernels, "_LANE_BYTES", 128)
    monkeypatch.setattr(_kernels, "_BITS_SIZE", 128)
    monkeypatch.setattr(_kernels, "_ROW_BLOCK_BYTES", 128)


@pytest.mark.parametrize("threshold", THRESHOLDS, ids=hex)
@pytest.mark.parametrize("n_categories", CATEGORIES)
def test_codes_are_randomized_as_in_the_replay(small_blocks, n_categories, threshold):
    for n in (*SIZES, 31, 33, 127, 128, 129, 300):
        check_against_replay(draw_codes(n, n_categories), n_categories, threshold)


@pytest.mark.parametrize("n_categories", [3, 256, 257, 4096, 65_536, 65_537])
@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_codes_are_randomized_as_in_the_replay_around_blocks_of_full_size(n_categories, offset):
    block_size = _kernels._BLOCK_SIZE
    if n_categories & (n_categories - 1):
        block_size = _kernels._LANE_BYTES // (4 if n_categories <= 65_536 else 8)
    n = block_size + offset
    check_against_replay(draw_codes(n, n_categories), n_categories, 0x60A6_1C2B_9E7D_0F31)


@pytest.mark.parametrize("n_categories", CATEGORIES)
def test_threshold_zero_keeps_every_code(n_categories):
    codes = draw_codes(1000, n_categories)
    reports = randomize_codes(codes, n_categories, 0, WordStream())
    np.testing.assert_array_equal(reports, codes)
    assert not np.shares_memory(reports, codes)


@pytest.mark.parametrize("n_categories", CATEGORIES)
def test_full_threshold_makes_reports_independent_of_the_codes(n_categories):
    # The mask form xors the code in, so that the same bits give shifted reports.
    n = 1000
    ends = [
        randomize_codes(
            np.full(n, code, dtype=code_type(n_categories)), n_categories, ONE, WordStream(KEY)
        )
        for code in (0, n_categories - 1)
    ]
    if n_categories & (n_categories - 1) == 0:
        ends[1] ^= code_type(n_categories).type(n_categories - 1)
    np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize(
    ("n_categories", "n_bits"),
    [(k, 32) for k in (3, 7, 100, 255, 257, 65_535)]
    + [(k, 64) for k in (3, 100, 65_537, 10**6 + 1, 2**32 - 1)],
)
def test_lanes_are_shared_so_that_the_law_is_exact(n_categories, n_bits):
    rng = np.random.default_rng(n_categories)
    coarse = n_categories << (64 - n_bits)
    thresholds = [0, 1, 2, ONE, ONE - 1, ONE - coarse, ONE - coarse - 1, ONE - 2 * coarse + 1]
    thresholds += [
        coarse - 1,
        coarse,
        coarse + 1,
        ONE // 2,
        *map(int, rng.integers(2**63, size=50)),
    ]
    for threshold in thresholds:
        share, n_last, missing = _share_lanes(n_categories, threshold, n_bits)
        # The three ranges of lanes do not overlap, and the second draw is a probability.
        assert share >= 0
        assert n_categories <= n_last < 2 * n_categories
        assert share * n_categories + n_last <= 1 << n_bits
        assert 0 <= missing <= n_last << (64 - n_bits)
        # Probability of one given symbol that is not the true one.
        second = Fraction(missing, n_last << (64 - n_bits))
        law = Fraction(share, 1 << n_bits) + Fraction(n_last, 1 << n_bits) * second / n_categories
        assert law == Fraction(threshold, n_categories << 64)


@pytest.mark.parametrize("n_categories", [3, 100, 65_537])
def test_planted_lanes_reach_every_range(n_categories):
    threshold = 0x60A6_1C2B_9E7D_0F31
    n_bits = 32 if n_categories <= 65_536 else 64
    share, n_last, missing = _share_lanes(n_categories, threshold, n_bits)
    end = 1 << n_bits
    # First and last lane of: symbol 0, the last symbol, the kept ones, the last ones (twice).
    lanes = [0, share - 1, share * (n_categories - 1), share * n_categories - 1]
    lanes += [share * n_categories, end - n_last - 1, end - n_last, end - 1, end - n_last, end - 1]
    top = n_categories - 1
    expected = [0, 0, top, top, 1, 1, 2, 2, 1, 1]
    codes = np.ones(len(lanes), dtype=code_type(n_categories))
    # The second draw: just below what is missing, and just not; then the symbol 2.
    n_draws = n_last << (64 - n_bits)
    per_draw = 1 if n_draws & (n_draws - 1) == 0 else ONE // n_draws
    draws = [(missing - 1) * per_draw] * 2 + [missing * per_draw] * 2
    symbols = [2 * (end // n_categories)] * 4
    stream = PlannedStream(
        np.array(lanes, dtype=f"u{n_bits // 8}"),
        np.array(draws, dtype=np.uint64),
        np.array(symbols, dtype=f"u{n_bits // 8}"),
    )
    assert 0 < missing < n_draws
    assert randomize_codes(codes, n_categories, threshold, stream).tolist() == expected
    assert stream.is_exhausted


@pytest.mark.parametrize("n_categories", [3, 100])
def test_thresholds_too_small_for_a_lane_replace_on_the_last_lanes_only(n_categories):
    share, n_last, missing = _share_lanes(n_categories, 5, 32)
    assert (share, missing) == (0, 5)
    lanes = [0, 1, n_categories, (1 << 32) - n_last - 1, (1 << 32) - 1]
    n_draws = n_last << 32
    draw = 4 * (1 if n_draws & (n_draws - 1) == 0 else ONE // n_draws)
    stream = PlannedStream(
        np.array(lanes, dtype=np.uint32),
        np.array([draw], dtype=np.uint64),
        np.array([2 * ((1 << 32) // n_categories)], dtype=np.uint32),
    )
    codes = np.ones(len(lanes), dtype=np.uint8)
    assert randomize_codes(codes, n_categories, 5, stream).tolist() == [1, 1, 1, 1, 2]
    assert stream.is_exhausted


@pytest.mark.statistical
@pytest.mark.parametrize("n_categories", [2, 3, 7, 8, 255, 256, 257, 1000])
@pytest.mark.parametrize("threshold", [1 << 62, 0x60A6_1C2B_9E7D_0F31, ONE - (ONE >> 5), ONE])
def test_law_of_randomized_codes(n_categories, threshold):
    # Chi-square over all symbols given one code; false-alarm rate 1e-6 each, fixed key.
    n, code = 1 << 20, n_categories // 3
    codes = np.full(n, code, dtype=code_type(n_categories))
    reports = randomize_codes(codes, n_categories, threshold, WordStream(KEY))
    counts = np.bincount(reports, minlength=n_categories)
    replaced = threshold / ONE
    expected = np.full(n_categories, n * replaced / n_categories)
    expected[code] += n * (1 - replaced)
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(1e-6, n_categories - 1)


# k-RAPPOR


@pytest.mark.parametrize("threshold", THRESHOLDS, ids=hex)
@pytest.mark.parametrize("n_categories", CATEGORIES)
@pytest.mark.parametrize("n", SIZES)
def test_one_hot_rows_are_flipped_as_in_the_replay(small_blocks, n, n_categories, threshold):
    codes = draw_codes(n, n_categories)
    reports = randomize_one_hot(codes, n_categories, threshold, WordStream(KEY))
    n_bytes = -(-n_categories // 8)
    assert reports.shape == (n, n_bytes)
    assert reports.dtype == np.uint8
    words = bernoulli_bits(threshold, -(-n * n_bytes // 8), WordStream(KEY))
    flips = unpack(words.astype("<u8").view(np.uint8))
    for i, code in enumerate(codes.tolist()):
        row = flips[8 * n_bytes * i : 8 * n_bytes * i + n_categories].copy()
        row[code] ^= 1
        np.testing.assert_array_equal(unpack(reports[i], n_categories), row)


@pytest.mark.parametrize("n_categories", [2, 3, 7, 9, 255, 257, 65_537])
@pytest.mark.parametrize("threshold", [1 << 63, ONE])
def test_padding_bits_are_zero(n_categories, threshold):
    reports = randomize_one_hot(
        draw_codes(200, n_categories), n_categories, threshold, WordStream()
    )
    assert not unpack(reports)[:, n_categories:].any()


@pytest.mark.parametrize("n_categories", [8, 100, 256])
@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_one_hot_rows_around_blocks_of_full_size(n_categories, offset):
    n_bytes = -(-n_categories // 8)
    n = (1 << 18) // n_bytes + offset
    codes = draw_codes(n, n_categories)
    threshold = 0x60A6_1C2B_9E7D_0F31
    reports = unpack(randomize_one_hot(codes, n_categories, threshold, WordStream(KEY)))
    words = bernoulli_bits(threshold, -(-n * n_bytes // 8), WordStream(KEY))
    expected = unpack(words.astype("<u8").view(np.uint8)[: n * n_bytes].reshape(n, n_bytes))
    expected[np.arange(n), codes] ^= 1
    expected[:, n_categories:] = 0
    np.testing.assert_array_equal(reports, expected)


@pytest.mark.parametrize("n_categories", CATEGORIES)
def test_one_hot_rows_without_and_with_certain_flips(n_categories):
    codes = draw_codes(50, n_categories)
    one_hot = np.zeros((50, n_categories), dtype=np.uint8)
    one_hot[np.arange(50), codes] = 1
    for threshold, expected in ((0, one_hot), (ONE, 1 - one_hot)):
        reports = randomize_one_hot(codes, n_categories, threshold, WordStream())
        np.testing.assert_array_equal(unpack(reports, n_categories), expected)


@pytest.mark.statistical
@pytest.mark.parametrize("n_categories", [2, 9, 64, 257])
def test_law_of_flipped_bits(n_categories):
    # Each column is binomial: chi-square over the columns, false-alarm rate 1e-6, fixed key.
    n, code, threshold = 1 << 18, n_categories // 2, 0x60A6_1C2B_9E7D_0F31
    codes = np.full(n, code, dtype=code_type(n_categories))
    reports = randomize_one_hot(codes, n_categories, threshold, WordStream(KEY))
    flips = unpack(reports, n_categories).sum(axis=0, dtype=np.int64)
    flips[code] = n - flips[code]
    p = threshold / ONE
    assert ((flips - n * p) ** 2 / (n * p * (1 - p))).sum() < chi2.isf(1e-6, n_categories)


# Both mechanisms


@pytest.mark.parametrize("randomize", [randomize_codes, randomize_one_hot])
@pytest.mark.parametrize("n_categories", [8, 100, 256, 300, 4096, 70_000])
def test_inputs_of_any_layout_are_accepted_and_left_alone(randomize, n_categories):
    codes = draw_codes(501, n_categories)
    kept = codes.copy()
    expected = randomize(codes, n_categories, 1 << 63, WordStream(KEY))
    np.testing.assert_array_equal(codes, kept)
    read_only = codes.copy()
    read_only.flags.writeable = False
    strided = np.repeat(codes, 3)[1::3]
    reversed_ = codes[::-1].copy()[::-1]
    column = np.column_stack([codes, codes])[:, 1]
    for same in (read_only, strided, reversed_, column):
        np.testing.assert_array_equal(
            randomize(same, n_categories, 1 << 63, WordStream(KEY)), expected
        )


def test_reports_stay_the_same_across_versions():
    # Frozen: if this changes, the seeded simulations of every user change.
    digest = hashlib.sha256()
    for n_categories in (8, 100, 256, 300, 4096, 65_537):
        codes = draw_codes(3000, n_categories)
        stream = WordStream(KEY)
        digest.update(randomize_codes(codes, n_categories, 1 << 62, stream).astype("<u4"))
        digest.update(randomize_one_hot(codes[:100], n_categories, 1 << 62, stream))
    assert digest.hexdigest() == "d5ac6907b45bd852bc2590b4223c3cec9e8c34f3c7864e5433d247651d3685ea"


def extra_bytes(function, *args):
    """Peak of the memory traced during the call, less the result."""
    function(*args)
    tracemalloc.start()
    try:
        result = function(*args)
        return tracemalloc.get_traced_memory()[1] - result.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("n_categories", [256, 100])
def test_memory_of_randomizing_is_flat(n_categories):
    codes = np.zeros(10**7, dtype=np.uint8)
    assert extra_bytes(randomize_codes, codes, n_categories, 1 << 62, WordStream()) <= 2 << 20
    codes = np.zeros(10**6, dtype=np.uint8)
    assert extra_bytes(randomize_one_hot, codes, n_categories, 1 << 62, WordStream()) <= 2 << 20


# Counting


@pytest.fixture
def small_counting_blocks(monkeypatch):
    monkeypatch.setattr(_counting, "_CODE_BLOCK", 64)
    monkeypatch.setattr(_counting, "_MIN_PAIRED", 100)
    monkeypatch.setattr(_counting, "_SLAB_BYTES", 64)
    monkeypatch.setattr(_counting, "_BIT_BLOCK_BYTES", 1024)


@pytest.mark.parametrize("n_categories", CATEGORIES)
def test_counts_equal_bincount(small_counting_blocks, n_categories):
    for n in (*SIZES, 99, 100, 101, 127, 128, 129, 1000, 1001):
        codes = draw_codes(n, n_categories)
        expected = np.bincount(codes, minlength=n_categories)
        for dtype in (codes.dtype, np.int32, np.uint64, np.intp):
            counts = count_codes(codes.astype(dtype), n_categories)
            assert counts.dtype == np.int64
            np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int64])
@pytest.mark.parametrize("n", [(1 << 18) - 1, 1 << 18, (1 << 18) + 1])
def test_counts_equal_bincount_in_blocks_of_full_size(dtype, n):
    codes = np.random.default_rng(0).geometric(0.1, n).clip(0, 99).astype(dtype)
    np.testing.assert_array_equal(count_codes(codes, 100), np.bincount(codes, minlength=100))
    strided = np.repeat(codes, 2)[::2]
    strided.flags.writeable = False
    np.testing.assert_array_equal(count_codes(strided, 100), np.bincount(codes, minlength=100))


BIT_SHAPES = [(n, k) for n in (0, 1, 7, 63, 64, 65, 1000) for k in (1, 2, 7, 8, 9, 255, 256, 257)]
BIT_SHAPES += [(300, 4096), (9, 65_536), (20, 65_537), (5000, 3), (20_001, 64)]


@pytest.mark.parametrize("fraction", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("shape", BIT_SHAPES, ids=str)
def test_column_sums_equal_unpacking(small_counting_blocks, shape, fraction):
    bits = (np.random.default_rng(1).random(shape) < fraction).astype(np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    expected = bits.sum(axis=0, dtype=np.int64)
    for sums in (sum_packed_bits(packed, shape[1]), sum_bits(bits), sum_bits(bits.astype(bool))):
        assert sums.dtype == np.int64
        np.testing.assert_array_equal(sums, expected)


@pytest.mark.parametrize("n_bits", [5, 100, 256, 1000])
def test_column_sums_in_blocks_of_full_size(n_bits):
    n_bytes = -(-n_bits // 8)
    slab_rows = _counting._SLAB_BYTES // n_bytes
    for n in (2 * slab_rows - 1, 2 * slab_rows, 2 * slab_rows + 1, 14 * slab_rows + 3):
        rng = np.random.default_rng(n)
        packed = rng.integers(0, 256, (n, n_bytes), dtype=np.uint8)
        bits = unpack(packed, n_bits)
        expected = bits.sum(axis=0, dtype=np.int64)
        # The padding bits are random here: they must not matter.
        np.testing.assert_array_equal(sum_packed_bits(packed, n_bits), expected)
        np.testing.assert_array_equal(sum_bits(bits), expected)


def test_column_sums_accept_any_layout_and_leave_the_input_alone():
    packed = np.random.default_rng(0).integers(0, 256, (5000, 32), dtype=np.uint8)
    bits = unpack(packed)
    expected = bits.sum(axis=0, dtype=np.int64)
    kept = packed.copy()
    for same in (packed, np.asfortranarray(packed), np.repeat(packed, 2, axis=0)[::2]):
        same.flags.writeable = False
        np.testing.assert_array_equal(sum_packed_bits(same, 256), expected)
    for same in (np.asfortranarray(bits), np.repeat(bits, 2, axis=1)[:, ::2], bits.astype(int)):
        np.testing.assert_array_equal(sum_bits(same), expected)
    np.testing.assert_array_equal(packed, kept)


def test_all_ones_overflow_no_accumulator():
    # More rows than bytes, slabs and planes can count without carrying.
    packed = np.full((300_000, 2), 255, dtype=np.uint8)
    np.testing.assert_array_equal(sum_packed_bits(packed, 16), np.full(16, 300_000))
    np.testing.assert_array_equal(sum_bits(unpack(packed)), np.full(16, 300_000))
    ones = np.full(1 << 19, 255, dtype=np.uint8)
    assert count_codes(ones, 256)[255] == 1 << 19


def test_memory_of_counting_is_flat():
    codes = np.zeros(10**7, dtype=np.uint8)
    assert extra_bytes(count_codes, codes, 256) <= 1 << 20
    assert extra_bytes(count_codes, codes.view(np.uint16), 65_536) <= 1 << 20
    assert extra_bytes(sum_packed_bits, codes.reshape(-1, 32), 256) <= 2 << 20
    assert extra_bytes(sum_bits, codes.reshape(-1, 100)) <= 2 << 20
    assert extra_bytes(sum_bits, codes.reshape(-1, 100).view(bool)) <= 2 << 20
