"""O-RR and O-RAPPOR: exact laws by enumeration, and draws and counts against them.

The definition used here is independent of the channel: Q(report | value) = (1/C) Π over what the
mechanism does to the buckets of the value in the cohort, in fractions. From the channel it takes
only the realised probabilities `offset` and `slope` of its bucket channel.
"""

import copy
import json
import pickle
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import ceil, prod

import numpy as np
import pytest
from auditing import EPSILONS, FALSE_ALARM, exceeds
from scipy.stats import binom, chi2, norm

from skldp.channels import (
    Alphabet,
    Channel,
    CohortChannel,
    Hashing,
    KRRChannel,
    ProductChannel,
    RapporChannel,
    Reports,
    distinct_buckets,
)
from skldp.channels._kernels import randomize_one_hot
from skldp.exceptions import ChannelError
from skldp.utils.estimator_checks import check_loss_bounded

WORDS = [f"w{i}" for i in range(7)]


def make(epsilon, n_buckets, n_cohorts, n_hashes, mechanism, packed=False, alphabet=None):
    hashing = Hashing(n_buckets, n_cohorts, n_hashes, "test", alphabet)
    return CohortChannel.for_epsilon(epsilon, hashing, mechanism, packed=packed)


def buckets_of(channel, value):
    """Return the buckets of a value as a set for each cohort."""
    return [set(rows[:, 0].tolist()) for rows in channel.hashing.table([value])]


# -- the exact law ---------------------------------------------------------------------------


def every_output(channel):
    """Return every (cohort, bucket) or (cohort, bits)."""
    k = channel.hashing.n_buckets
    rest = product((0, 1), repeat=k)
    if isinstance(channel.bucket, KRRChannel):
        rest = [(bucket,) for bucket in range(k)]
    return list(product(range(channel.hashing.n_cohorts), map(tuple, rest)))


def conditional(channel, buckets, output):
    """Return P(output | the set of buckets), exactly, from the definition."""
    offset, slope = channel.bucket.offset, channel.bucket.slope
    if isinstance(channel.bucket, KRRChannel):
        return offset + slope * (output[0] in buckets)
    rates = (offset + slope * (j in buckets) for j in range(len(output)))
    return prod(rate if bit else 1 - rate for rate, bit in zip(rates, output, strict=True))


def exact_law(channel, value):
    """Return Q(report | value) for every report, in fractions."""
    n_cohorts = channel.hashing.n_cohorts
    filters = buckets_of(channel, value)
    return [
        conditional(channel, filters[cohort], rest) / n_cohorts
        for cohort, rest in every_output(channel)
    ]


def as_reports(channel, outputs):
    """Write (cohort, rest) as the channel does: unpacked columns, or bytes by hand."""
    if not channel.packed:
        return channel.check_reports(np.array([[cohort, *rest] for cohort, rest in outputs]))
    rows = []
    for cohort, rest in outputs:
        whole = sum(bit << j for j, bit in enumerate(rest))
        rows.append(
            [*cohort.to_bytes(4, "little"), *whole.to_bytes(ceil(len(rest) / 8), "little")]
        )
    return channel.check_reports(np.array(rows))


SMALL = [
    ("krr", 2, 1, 1, False),
    ("krr", 3, 2, 1, False),
    ("krr", 5, 3, 1, False),
    ("rappor", 2, 3, 1, False),
    ("rappor", 4, 2, 1, True),
    ("rappor", 2, 3, 2, False),
    ("rappor", 3, 3, 2, True),
    ("rappor", 5, 2, 2, False),
    ("rappor", 3, 3, 3, False),
    ("rappor", 5, 2, 3, True),
]


@pytest.mark.parametrize(("mechanism", "k", "n_cohorts", "n_hashes", "packed"), SMALL)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("closed", [False, True])
def test_brute_force_law_equals_the_channel(
    epsilon, mechanism, k, n_cohorts, n_hashes, packed, closed
):
    alphabet = Alphabet(len(WORDS), tuple(WORDS)) if closed else None
    channel = make(epsilon, k, n_cohorts, n_hashes, mechanism, packed, alphabet)
    outputs = every_output(channel)
    laws = [exact_law(channel, word) for word in WORDS]
    assert all(sum(law) == 1 for law in laws)
    # The exact worst ratio never exceeds the claim, and neither does the channel's own figure.
    worst = max(max(column) / min(column) for column in zip(*laws, strict=True))
    ratio = channel.max_likelihood_ratio()
    assert isinstance(ratio, Fraction)
    assert worst <= ratio and not exceeds(ratio, epsilon)
    n_differing = max(
        len(one ^ other)
        for rows in zip(*(buckets_of(channel, word) for word in WORDS), strict=True)
        for one, other in combinations(rows, 2)
    )
    if n_differing == min(2 * n_hashes, k):
        assert worst == ratio
    # The mean count of every cell: (1/C) (offset + slope H), equations (16) and (17).
    table = channel.hashing.table(WORDS)
    reports = as_reports(channel, outputs)
    tallies = [channel.tally(reports[i : i + 1])[0] for i in range(len(reports))]
    for word, law in enumerate(laws):
        means = sum(
            probability * tally.astype(object)
            for probability, tally in zip(law, tallies, strict=True)
        )
        for cohort, bucket in product(range(n_cohorts), range(k)):
            hit = bucket in table[cohort, :, word]
            expected = (channel.bucket.offset + channel.bucket.slope * hit) / n_cohorts
            assert means[cohort, bucket] == expected
    # log_likelihood is the law given the cohort.
    likelihood, other = channel.log_likelihood(reports, distinct_buckets(table, k))
    exact = np.array(laws, dtype=object).T * n_cohorts
    np.testing.assert_allclose(likelihood, np.log(exact.astype(float)), rtol=1e-11, atol=1e-11)
    # Any other value: the average over all hash functions, bits multiplied as if independent.
    for (_cohort, rest), logarithm in zip(outputs, other, strict=True):
        single = [conditional(channel, {j}, rest) for j in range(k)]
        mean = sum(single) / k
        if mechanism == "rappor":
            nothing = conditional(channel, set(), rest)
            mean = nothing * (mean / nothing) ** n_hashes
        assert logarithm == pytest.approx(float(np.log(float(mean))), rel=1e-10, abs=1e-10)


def filters(k, n_hashes):
    """Return every set of buckets that `n_hashes` functions may hit."""
    return [
        set(chosen) for size in range(1, n_hashes + 1) for chosen in combinations(range(k), size)
    ]


def worst_ratio_of_filters(channel):
    """Return the maximum of P(bits | filter) / P(bits | filter') over all filters, exactly.

    Bits are independent given the filter, and the best report takes each differing bit's better
    side, so the maximum over reports is that to the power of the number of differing bits.
    """
    offset, slope = channel.bucket.offset, channel.bucket.slope
    best_bit = max((offset + slope) / offset, (1 - offset) / (1 - offset - slope))
    sets = filters(channel.hashing.n_buckets, channel.hashing.n_hashes)
    return best_bit ** max(len(one ^ other) for one in sets for other in sets)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n_hashes", [1, 2, 3, 4])
def test_delivered_epsilon_of_every_pair_of_filters(n_hashes, epsilon):
    for k in range(max(2, n_hashes), 10):
        channel = make(epsilon, k, 3, n_hashes, "rappor")
        worst = worst_ratio_of_filters(channel)
        assert worst == channel.max_likelihood_ratio()  # tight: disjoint filters exist
        assert not exceeds(worst, epsilon)
        assert channel.epsilon == epsilon
        assert channel.realized_epsilon <= epsilon
        check_loss_bounded(channel)
        if 0 < epsilon <= 36.5:  # one less in 2^64, and it would exceed: nothing is wasted
            flip = channel.bucket.offset - Fraction(1, 2**64)
            assert exceeds(((1 - flip) / flip) ** min(2 * n_hashes, k), epsilon)


@pytest.mark.parametrize(("k", "n_hashes"), [(2, 1), (2, 2), (3, 2), (3, 3), (4, 3), (5, 2)])
def test_the_maximum_over_all_reports_listed(k, n_hashes):
    # The same without the argument above: every report, every pair of filters.
    channel = make(1.0, k, 1, n_hashes, "rappor")
    worst = 0
    for bits in product((0, 1), repeat=k):
        probabilities = [conditional(channel, one, bits) for one in filters(k, n_hashes)]
        worst = max(worst, max(probabilities) / min(probabilities))
    assert worst == channel.max_likelihood_ratio() == worst_ratio_of_filters(channel)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_delivered_epsilon_of_o_rr(epsilon):
    for k in (2, 3, 9, 256, 257):
        channel = make(epsilon, k, 1000, 1, "krr")
        assert not exceeds(channel.max_likelihood_ratio(), epsilon)
        assert channel.max_likelihood_ratio() == KRRChannel(epsilon, k).max_likelihood_ratio()
        assert channel.epsilon == epsilon


def test_odd_shares_of_epsilon_add_up_exactly():
    for n_hashes, epsilon in product(range(1, 8), (0.3, 1.0, 0.1, Fraction(1, 3), 2)):
        channel = make(epsilon, 64, 2, n_hashes, "rappor")
        assert channel.epsilon == epsilon
        assert Channel.from_dict(json.loads(json.dumps(channel.to_dict()))).epsilon == epsilon


@dataclass(frozen=True, repr=False)
class _HashesIgnored(CohortChannel):
    """Spends ε/2 on each bit whatever the number of hashes: h ε delivered."""

    mechanism = "planted: hashes ignored"

    @classmethod
    def for_epsilon(cls, epsilon, hashing, mechanism, *, packed=False):
        return cls(RapporChannel(epsilon, hashing.n_buckets, packed=packed), hashing)

    @property
    def epsilon(self):
        return self.bucket.epsilon


def test_the_planted_bug_is_caught():
    for n_hashes in (2, 3):
        planted = _HashesIgnored.for_epsilon(1.0, Hashing(8, 2, n_hashes), "rappor")
        assert exceeds(worst_ratio_of_filters(planted), 1.0)
        assert planted.realized_epsilon == pytest.approx(n_hashes)
        with pytest.raises(AssertionError, match="delivers"):
            check_loss_bounded(planted)
    harmless = _HashesIgnored.for_epsilon(1.0, Hashing(8, 2, 1), "rappor")
    assert not exceeds(worst_ratio_of_filters(harmless), 1.0)


# -- draws -----------------------------------------------------------------------------------


def codes_of(channel, value, cohorts):
    buckets = channel.hashing.encode([value] * len(cohorts), cohorts)
    return np.column_stack([cohorts, buckets])


@pytest.mark.statistical
@pytest.mark.parametrize(("mechanism", "k", "n_cohorts", "n_hashes", "packed"), SMALL)
@pytest.mark.parametrize("closed", [False, True])
def test_reports_follow_the_exact_law(mechanism, k, n_cohorts, n_hashes, packed, closed):
    # Chi-square over every report, cohorts dealt out evenly; false alarm 1e-6 for all values.
    alphabet = Alphabet(len(WORDS), tuple(WORDS)) if closed else None
    channel = make(1.5, k, n_cohorts, n_hashes, mechanism, packed, alphabet)
    outputs = every_output(channel)
    every = as_reports(channel, outputs)
    n = 12_000
    cohorts = np.arange(n) % n_cohorts
    for number, word in enumerate(WORDS):
        drawn = channel.randomize(codes_of(channel, word, cohorts), random_state=number)
        assert drawn.shape == (n, channel.width) and drawn.channel == channel
        plain = np.asarray(drawn)
        np.testing.assert_array_equal(channel._read_cohorts(plain), cohorts)
        np.testing.assert_array_equal(channel.check_reports(plain), plain)
        observed = (plain[:, np.newaxis] == every).all(axis=2).sum(axis=0)
        assert observed.sum() == n
        expected = n * np.array([float(share) for share in exact_law(channel, word)])
        statistic = ((observed - expected) ** 2 / expected).sum()
        # The size of each cohort is fixed: it has one degree of freedom less.
        assert expected.min() > 5
        freedom = len(outputs) - n_cohorts
        assert statistic < chi2.isf(FALSE_ALARM / len(WORDS), freedom)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.int64])
@pytest.mark.parametrize("k", [2, 7, 8, 9, 64, 255, 256, 257])
def test_colliding_hashes_set_one_bit_and_never_cancel(k, dtype):
    # At a huge ε nothing is flipped: the report is the filter itself.
    rng = np.random.default_rng(k)
    for n_hashes in range(1, min(k, 5) + 1):
        for packed in (False, True):
            channel = make(4000.0, k, 1, n_hashes, "rappor", packed)
            if k > np.iinfo(dtype).max:
                continue
            buckets = rng.integers(0, k, (200, n_hashes))
            buckets[:20] = buckets[:20, :1]  # all alike
            buckets[20:40, -1] = buckets[20:40, 0]
            codes = np.column_stack([np.zeros(200, int), buckets]).astype(dtype)
            counts, totals = channel.tally(np.asarray(channel.randomize(codes)))
            filters_ = np.zeros((200, k), dtype=int)
            np.put_along_axis(filters_, buckets, 1, axis=1)
            np.testing.assert_array_equal(counts[0], filters_.sum(axis=0))
            assert totals.tolist() == [200]


def test_kernel_takes_one_column_or_several():
    class Zeros:
        def fill(self, out):
            out[...] = 0
            return out

        def words(self, n):
            return np.zeros(n, dtype=np.uint64)

    codes = np.array([[3, 3, 3], [0, 8, 3], [8, 0, 8], [8, 8, 0]], dtype=np.uint8)
    before = codes.copy()
    rows = randomize_one_hot(codes, 9, 0, Zeros())
    bits = np.unpackbits(rows, axis=1, count=9, bitorder="little")
    assert [set(np.flatnonzero(row).tolist()) for row in bits] == [{3}, {0, 3, 8}, {0, 8}, {0, 8}]
    np.testing.assert_array_equal(
        randomize_one_hot(codes[:, :1], 9, 0, Zeros()),
        randomize_one_hot(codes[:, 0], 9, 0, Zeros()),
    )
    np.testing.assert_array_equal(codes, before)


@pytest.mark.statistical
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("n_hashes", [1, 2, 3])
def test_every_bit_has_its_exact_rate_in_blocks_too(n_hashes, packed):
    # 40,000 reports of 100 bits need several blocks; each count is binomial. False alarm 1e-6.
    k, n = 100, 40_000
    channel = make(2.0, k, 2, n_hashes, "rappor", packed)
    for seed, word in enumerate(("a", "b")):
        cohorts = np.arange(n) % 2
        reports = channel.randomize(codes_of(channel, word, cohorts), random_state=seed)
        counts, totals = channel.tally(np.asarray(reports))
        assert totals.tolist() == [n // 2, n // 2]
        for cohort, inside in enumerate(buckets_of(channel, word)):
            offset, slope = float(channel.bucket.offset), float(channel.bucket.slope)
            rates = offset + slope * np.isin(np.arange(k), list(inside))
            tails = np.minimum(
                binom.cdf(counts[cohort], n // 2, rates),
                binom.sf(counts[cohort] - 1, n // 2, rates),
            )
            assert tails.min() > FALSE_ALARM / (8 * k)


def test_the_packed_layout():
    channel = make(4000.0, 11, 2**32, 2, "rappor", packed=True)
    assert channel.width == 4 + 2
    cohort = 0x01_02_03_FE
    report = np.asarray(channel.randomize([[cohort, 0, 10]]))
    assert report.dtype == np.uint8
    assert report.tolist() == [[0xFE, 3, 2, 1, 0b1, 0b100]]
    assert channel._read_cohorts(report).tolist() == [cohort]
    unpacked = make(4000.0, 11, 2**32, 2, "rappor")
    wide = np.asarray(unpacked.randomize([[cohort, 0, 10]]))
    assert wide.dtype == np.uint32
    assert wide.tolist() == [[cohort, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]]
    last = np.asarray(channel.randomize([[2**32 - 1, 3, 3]]))
    assert last.tolist() == [[255, 255, 255, 255, 8, 0]]
    assert channel.check_reports(last).tolist() == last.tolist()


# -- reports and counts ----------------------------------------------------------------------

CHANNELS = [
    make(1.0, 2, 1, 1, "krr"),
    make(1.0, 16, 8, 1, "krr"),
    make(1.0, 300, 3, 1, "krr"),
    make(1.0, 5, 300, 1, "krr"),
    make(1.0, 5, 70_000, 1, "krr"),
    make(1.0, 13, 4, 1, "rappor"),
    make(1.0, 13, 4, 2, "rappor", packed=True),
    make(1.0, 16, 300, 3, "rappor"),
    make(1.0, 257, 2, 2, "rappor", packed=True),
    make(Fraction(1, 3), 13, 4, 3, "rappor", alphabet=Alphabet(7, tuple(WORDS))),
    make(Fraction(1, 3), 3, 4, 1, "krr", alphabet=Alphabet(9)),
]
CHANNEL_NAMES = [f"{c.bucket.mechanism}{c.width}-{i}" for i, c in enumerate(CHANNELS)]


def some_reports(channel, n, seed=0):
    rng = np.random.default_rng(seed)
    hashing = channel.hashing
    words = hashing.alphabet.values if hashing.alphabet else WORDS
    values = rng.choice(words, n)
    cohorts = rng.integers(0, hashing.n_cohorts, n)
    codes = np.column_stack([cohorts, hashing.encode(values, cohorts)])
    return channel.randomize(codes, random_state=seed)


@pytest.mark.parametrize("channel", CHANNELS, ids=CHANNEL_NAMES)
def test_tallies_equal_counting_one_by_one_and_merge(channel):
    k, n_cohorts = channel.hashing.n_buckets, channel.hashing.n_cohorts
    for n in (0, 1, 2, 7, 64, 65, 500, 1031):
        reports = np.asarray(some_reports(channel, n, seed=n))
        counts, totals = channel.tally(reports)
        assert counts.shape == (n_cohorts, k) and counts.dtype == np.int64
        assert totals.shape == (n_cohorts,) and totals.dtype == np.int64
        expected = {}
        for row in reports.tolist():
            if channel.packed:
                cohort = int.from_bytes(bytes(row[:4]), "little")
                whole = int.from_bytes(bytes(row[4:]), "little")
                hits = [j for j in range(k) if whole >> j & 1]
            else:
                cohort, *rest = row
                is_krr = isinstance(channel.bucket, KRRChannel)
                hits = rest if is_krr else [j for j, bit in enumerate(rest) if bit]
            for cell in [(cohort, j) for j in hits] + [cohort]:
                expected[cell] = expected.get(cell, 0) + 1
        cells = {
            (int(c), int(j)): int(counts[c, j]) for c, j in zip(*np.nonzero(counts), strict=True)
        }
        cells |= {int(c): int(totals[c]) for c in np.flatnonzero(totals)}
        assert cells == expected
        parts = [channel.tally(part) for part in np.array_split(reports, 3)]
        np.testing.assert_array_equal(sum(part[0] for part in parts), counts)
        np.testing.assert_array_equal(sum(part[1] for part in parts), totals)
        checked, checked_totals = channel.check_counts(counts, totals)
        np.testing.assert_array_equal(checked, counts)
        np.testing.assert_array_equal(checked_totals, totals)


@pytest.mark.parametrize("channel", CHANNELS, ids=CHANNEL_NAMES)
def test_channels_are_values(channel):
    before = pickle.dumps(channel)
    reports = some_reports(channel, 20)
    np.asarray(reports)
    assert channel.fingerprint and pickle.dumps(channel) == before
    stored = json.loads(json.dumps(channel.to_dict()))
    for same in (
        pickle.loads(before),
        copy.copy(channel),
        copy.deepcopy(channel),
        Channel.from_dict(channel.to_dict()),
        Channel.from_dict(stored),
        CohortChannel(channel.bucket, channel.hashing),
    ):
        assert same == channel and hash(same) == hash(channel)
        assert same.fingerprint == channel.fingerprint and same.epsilon == channel.epsilon
    # Reports keep it, and a channel read back draws the same under one seed.
    again = Channel.from_dict(stored)
    np.testing.assert_array_equal(some_reports(again, 20), reports)
    assert pickle.loads(pickle.dumps(reports)).channel == channel
    assert reports[3:5].channel == channel
    assert (reports + 0).__class__ is np.ndarray
    assert Reports(np.asarray(reports), channel).channel == channel


def test_channels_differ_in_everything_that_matters():
    different = [
        make(1.0, 16, 8, 2, "rappor"),
        make(1.0, 16, 8, 2, "rappor", packed=True),
        make(1.1, 16, 8, 2, "rappor"),
        make(1.0, 17, 8, 2, "rappor"),
        make(1.0, 16, 9, 2, "rappor"),
        make(1.0, 16, 8, 1, "rappor"),
        make(1.0, 16, 8, 1, "krr"),
        make(1.0, 16, 8, 1, "krr", alphabet=Alphabet(7, tuple(WORDS))),
        make(1.0, 16, 8, 1, "krr", alphabet=Alphabet(7)),
        CohortChannel.for_epsilon(1.0, Hashing(16, 8, 1, "other"), "krr"),
        KRRChannel(1.0, 16),
    ]
    assert len(set(different)) == len({one.fingerprint for one in different}) == len(different)


@pytest.mark.parametrize(
    ("channel", "reports", "message"),
    [
        (CHANNELS[1], [[8, 0]], "cohort in 0..7"),
        (CHANNELS[1], [[0, 16]], "codes in 0..15"),
        (CHANNELS[1], [[0, 3, 1]], "2 column"),
        (CHANNELS[1], [[0]], "2 column"),
        (CHANNELS[1], [0, 1], "2 column"),
        (CHANNELS[1], [[-1, 0]], "Negative"),
        (CHANNELS[1], [[0, -1]], "Negative"),
        (CHANNELS[1], [[0.5, 1.0]], "fractions"),
        (CHANNELS[1], [[np.nan, 1.0]], "NaN"),
        (CHANNELS[1], [["0", "1"]], "whole numbers"),
        (CHANNELS[1], np.array([[2**63, 0]], dtype=np.uint64), "cohort in 0..7"),
        (CHANNELS[1], np.array([[2**64 - 1, 0]], dtype=np.uint64), "cohort in 0..7"),
        (CHANNELS[1], np.array([[0, 2**64 - 1]], dtype=np.uint64), "codes in 0..15"),
        (CHANNELS[1], np.ma.masked_array([[0, 1]], [[0, 1]]), "missing"),
        (CHANNELS[5], [[4, *[0] * 13]], "cohort in 0..3"),
        (CHANNELS[5], [[0, 2, *[0] * 12]], "larger than 1"),
        (CHANNELS[5], [[0, *[0] * 12]], "14 column"),
        (CHANNELS[5], [[0, 0, 0, 0, 1, 1]], "14 column"),  # the same, packed
        (CHANNELS[6], [[4, 0, 0, 0, 0, 0]], "cohort in 0..3"),
        (CHANNELS[6], [[0, 0, 0, 1, 0, 0]], "cohort in 0..3"),
        (CHANNELS[6], [[256, 0, 0, 0, 0, 0]], "exceed 255"),
        (CHANNELS[6], [[0, 0, 0, 0, 256, 0]], "exceed 255"),
        (CHANNELS[6], [[0, 0, 0, 0, 0, 0b100000]], "Bits beyond the 13 symbols"),
        (CHANNELS[6], [[0, *[0] * 13]], "6 column"),  # the same, unpacked
        (CHANNELS[6], np.array([[2**64 - 252, 0, 0, 0, 0, 0]], dtype=np.uint64), "exceed 255"),
    ],
)
def test_reports_outside_the_domain_raise(channel, reports, message):
    with pytest.raises(ChannelError, match=message):
        channel.check_reports(reports)


@pytest.mark.parametrize("channel", CHANNELS, ids=CHANNEL_NAMES)
def test_reports_from_storage_are_read_back(channel):
    reports = np.asarray(some_reports(channel, 50))
    for stored in (
        reports.tolist(),
        reports.astype(float),
        reports.astype(np.int64),
        reports.astype(np.uint64),
        np.asfortranarray(reports),
        np.hstack([reports, reports])[:, : reports.shape[1]],
        reports[::-1][::-1],
    ):
        read = channel.check_reports(stored)
        np.testing.assert_array_equal(read, reports)
        assert read.dtype == reports.dtype
        np.testing.assert_array_equal(channel.tally(read)[0], channel.tally(reports)[0])
    assert channel.check_reports(reports[:0]).shape == (0, channel.width)


@pytest.mark.parametrize(
    ("channel", "counts", "n_reports", "message"),
    [
        (CHANNELS[1], np.ones((8, 15), int), None, "shape"),
        (CHANNELS[1], np.ones(16, int), None, "shape"),
        (CHANNELS[1], -np.ones((8, 16), int), None, "Negative"),
        (CHANNELS[1], np.ones((8, 16), int), [16] * 7, "each of 8 cohorts"),
        (CHANNELS[1], np.ones((8, 16), int), 128, "each of 8 cohorts"),
        (CHANNELS[1], np.ones((8, 16), int), [17] * 8, "sum to the number of reports"),
        (CHANNELS[5], np.ones((4, 13), int), None, "pass n_reports"),
        (CHANNELS[5], np.ones((4, 13), int), [0, 1, 1, 1], "cannot count more"),
        (CHANNELS[5], np.ones((4, 13), int), 4, "each of 4 cohorts"),
    ],
)
def test_impossible_counts_raise(channel, counts, n_reports, message):
    with pytest.raises(ChannelError, match=message):
        channel.check_counts(counts, n_reports)


# -- construction ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((KRRChannel(1.0, 16), Hashing(16, 2, 2)), "n_hashes=1"),
        ((KRRChannel(1.0, 16), Hashing(15)), "16 symbols, the hashing 15"),
        ((RapporChannel(1.0, 16), Hashing(17)), "16 symbols, the hashing 17"),
        ((KRRChannel(1.0, 2, ("a", "b")), Hashing(2)), "must be 0..n_buckets"),
        ((RapporChannel(1.0, 2, (1, 0)), Hashing(2)), "must be 0..n_buckets"),
        ((Hashing(2), KRRChannel(1.0, 2)), "bucket must be"),
        ((KRRChannel(1.0, 2), Alphabet(2)), "hashing must be"),
        ((ProductChannel([KRRChannel(1.0, 2)] * 2), Hashing(2)), "bucket must be"),
        ((make(1.0, 2, 1, 1, "krr"), Hashing(2)), "bucket must be"),
    ],
)
def test_wrong_parts_raise(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        CohortChannel(*arguments)


@pytest.mark.parametrize("epsilon", [-1, True, "1", None, float("nan"), float("inf"), 1j])
def test_wrong_epsilons_raise(epsilon):
    for mechanism in ("krr", "rappor"):
        with pytest.raises((TypeError, ValueError), match="epsilon"):
            make(epsilon, 8, 2, 1, mechanism)
    with pytest.raises(ValueError, match="mechanism"):
        make(1.0, 8, 2, 1, "rr")
    with pytest.raises(ValueError, match="n_hashes=1"):
        make(1.0, 8, 2, 2, "krr")


@pytest.mark.parametrize(
    "damage",
    [
        {"hashing": None},
        {"hashing": {}},
        {"hashing": {**Hashing(16).to_dict(), "n_buckets": 15}},
        {"hashing": {**Hashing(16).to_dict(), "n_hashes": 17}},
        {"hashing": {**Hashing(16).to_dict(), "key": 3}},
        {"hashing": {**Hashing(16).to_dict(), "salt": ""}},
        {"hashing": {**Hashing(16).to_dict(), "alphabet": {}}},
        {"hashing": {**Hashing(16).to_dict(), "alphabet": "ab"}},
        {"hashing": "no"},
        {"bucket": None},
        {"bucket": {}},
        {"bucket": KRRChannel(1.0, 15).to_dict()},
        {"bucket": KRRChannel(1.0, 16, tuple("abcdefghijklmnop")).to_dict()},
        {"bucket": CHANNELS[1].to_dict()},
        {"bucket": ProductChannel([KRRChannel(1.0, 16)] * 2).to_dict()},
        {"bucket": KRRChannel(1.0, 16)},
        {"epsilon": 1.0},
    ],
    ids=lambda damage: str(damage)[:70],
)
def test_damaged_dictionaries_raise(damage):
    good = CHANNELS[1].to_dict()
    Channel.from_dict(good)
    with pytest.raises(ChannelError):
        Channel.from_dict({**good, **damage})


def test_values_need_the_encoder():
    for channel in (CHANNELS[1], ProductChannel([KRRChannel(1.0, 2), CHANNELS[1]])):
        with pytest.raises(TypeError, match="CohortHashEncoder"):
            channel.encode(*[["a"]] * len(channel.attributes))


@pytest.mark.parametrize("channel", [CHANNELS[1], CHANNELS[6]], ids=["krr", "rappor"])
def test_codes_outside_the_domain_raise(channel):
    width = channel.hashing.width
    row = [0] * width
    for position, number in ((0, channel.hashing.n_cohorts), (1, 16), (0, -1), (1, -1)):
        bad = row.copy()
        bad[position] = number
        for policy in ("error", "uniform"):
            with pytest.raises(ValueError):
                channel.randomize([bad], handle_unknown=policy)
    for wrong in ([[*row, 0]], [row[:-1]], row, [[0.0] * width], [["0"] * width]):
        with pytest.raises((TypeError, ValueError)):
            channel.randomize(wrong)
    with pytest.raises(ChannelError, match="private already"):
        channel.randomize(channel.randomize([row]))


def test_no_information_is_refused():
    for mechanism in ("krr", "rappor"):
        channel = make(0, 8, 2, 1, mechanism)
        assert not channel.is_informative and channel.max_likelihood_ratio() == 1
        counts, totals = channel.tally(np.asarray(some_reports(channel, 10)))
        for call in (
            lambda c=channel, t=counts, n=totals: c.rates(t, n),
            lambda c=channel: c.variance([0.5, 0.5], 10),
        ):
            with pytest.raises(ChannelError, match="epsilon"):
                call()


# -- closed alphabets ------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 7, 40])
@pytest.mark.parametrize("mechanism", ["krr", "rappor"])
def test_variance_is_that_of_the_symbol_channel_without_collisions(mechanism, size):
    cls = KRRChannel if mechanism == "krr" else RapporChannel
    p = np.arange(1, size + 1) / np.arange(1, size + 1).sum()
    for n_cohorts in (1, 2, 50):
        channel = make(1.3, size, n_cohorts, 1, mechanism, alphabet=Alphabet(size))
        np.testing.assert_allclose(channel.variance(p, 100), cls(1.3, size).variance(p, 100))
        wide = make(1.3, size + 5, n_cohorts, 1, mechanism, alphabet=Alphabet(size))
        expected = cls(1.3, size + 5).variance(np.append(p, np.zeros(5)), 100)[:size]
        np.testing.assert_allclose(wide.variance(p, 100), expected)


@pytest.mark.parametrize("size", [2, 3, 7])
@pytest.mark.parametrize("mechanism", ["krr", "rappor"])
def test_one_cohort_and_a_bucket_for_each_value_is_the_symbol_channel(mechanism, size):
    channel = make(1.3, size, 1, 1, mechanism, alphabet=Alphabet(size))
    permutation = channel.hashing.table(np.arange(size))[0, 0]
    assert sorted(permutation) == list(range(size))
    cls = KRRChannel if mechanism == "krr" else RapporChannel
    symbols = cls(1.3, size)
    assert channel.max_likelihood_ratio() == symbols.max_likelihood_ratio()
    assert channel.epsilon == symbols.epsilon
    reports = as_reports(channel, every_output(channel))
    likelihood, _ = channel.log_likelihood(reports, channel.hashing.table(np.arange(size)))
    np.testing.assert_allclose(
        likelihood, symbols.log_likelihood(reports[:, 1:])[:, permutation], rtol=1e-13
    )
    laws = np.array([exact_law(channel, value) for value in range(size)], dtype=object)
    matrix = symbols.matrix()
    if mechanism == "rappor":  # columns in the order of the reports read as numbers
        order = [sum(bit << j for j, bit in enumerate(rest)) for _, rest in every_output(channel)]
        matrix = matrix[:, order]
    assert (laws == matrix[permutation]).all()
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 50, size)
    totals = np.array([counts.sum() if mechanism == "krr" else 60])
    np.testing.assert_allclose(
        channel.rates(counts[np.newaxis], totals)[0], symbols.unbias(counts, int(totals[0]))
    )


def test_rates_are_unbiased_and_empty_cohorts_are_zero():
    channel = make(1.0, 3, 2, 1, "krr")
    law = {word: exact_law(channel, word) for word in WORDS}
    reports = as_reports(channel, every_output(channel))
    # The rates of one report are linear in it: their mean is 1{the bucket of the value}.
    for word in WORDS:
        mean = np.zeros(3)
        for probability, row in zip(law[word], reports, strict=True):
            if row[0] == 0:
                counts, totals = channel.tally(row[np.newaxis])
                rates = channel.rates(counts, totals)
                assert (rates[1] == 0).all()
                mean += float(probability * 2) * rates[0]
        np.testing.assert_allclose(
            mean, np.isin(range(3), list(buckets_of(channel, word)[0])), atol=1e-12
        )


# -- simulation ------------------------------------------------------------------------------

SIMULATED = [
    make(1.0, 4, 3, 1, "krr"),
    make(1.0, 5, 3, 1, "rappor"),
    make(2.0, 5, 2, 2, "rappor", packed=True),
    make(2.0, 3, 2, 3, "rappor"),
    make(1.0, 3, 2, 1, "krr", alphabet=Alphabet(4, ("a", "b", "c", "d"))),
]
SIMULATED_NAMES = ["krr", "rappor", "rappor-h2-packed", "rappor-h3", "krr-closed"]


@pytest.mark.statistical
@pytest.mark.parametrize("channel", SIMULATED, ids=SIMULATED_NAMES)
@pytest.mark.parametrize("given", ["counts", "frequencies"])
def test_simulated_counts_have_the_exact_moments(channel, given):
    # Means and covariances of every cell and cohort total: z-tests over 20,000 trials, false
    # alarm 1e-6 for all of them. Cells of the same and of other cohorts covary as users do.
    values, n_trials = ["a", "b", "c"], 20_000
    counts = np.array([5, 0, 3])
    n = int(counts.sum())
    p = counts / n
    rng = np.random.default_rng(5)
    arguments = (counts,) if given == "counts" else (p, n)
    trials = [
        channel.simulate_counts(values, *arguments, random_state=rng) for _ in range(n_trials)
    ]
    n_cohorts, k = channel.hashing.n_cohorts, channel.hashing.n_buckets
    drawn = np.array([np.concatenate([c.ravel(), t]) for c, t in trials]).astype(float)
    # One report as a vector: indicators of its cells and its cohort. Law by enumeration.
    outputs = every_output(channel)
    vectors = []
    for cohort, rest in outputs:
        row = np.zeros((n_cohorts, k))
        row[cohort] = np.eye(k)[rest[0]] if isinstance(channel.bucket, KRRChannel) else rest
        vectors.append(np.concatenate([row.ravel(), np.arange(n_cohorts) == cohort]))
    vectors = np.array(vectors, dtype=float)
    laws = np.array([[float(q) for q in exact_law(channel, value)] for value in values])
    means = laws @ vectors
    seconds = np.einsum("vo,oi,oj->vij", laws, vectors, vectors)
    if given == "counts":
        mean = counts @ means
        covariance = np.einsum("v,vij->ij", counts, seconds - means[:, :, None] * means[:, None])
    else:
        mean = n * (p @ means)
        covariance = n * (np.einsum("v,vij->ij", p, seconds) - np.outer(p @ means, p @ means))
    size = len(mean)
    reach = norm.isf(FALSE_ALARM / (2 * (size + size * (size + 1) // 2)))
    spread = np.sqrt(np.diag(covariance) / n_trials)
    assert (np.abs(drawn.mean(axis=0) - mean) <= reach * spread + 1e-12).all()
    centred = drawn - mean
    products = centred[:, :, None] * centred[:, None]
    errors = products.std(axis=0) / np.sqrt(n_trials)
    # 1 in 10 more: sample covariances are only nearly normal.
    assert (np.abs(products.mean(axis=0) - covariance) <= 1.1 * reach * errors + 1e-12).all()


@pytest.mark.statistical
@pytest.mark.parametrize("channel", SIMULATED[:3], ids=SIMULATED_NAMES[:3])
def test_simulation_and_reports_agree(channel):
    # One user: the counts are a report, and follow the exact law. Chi-square, false alarm 1e-6.
    outputs = every_output(channel)
    rng = np.random.default_rng(6)
    n_trials = 12_000
    observed = dict.fromkeys(outputs, 0)
    for _ in range(n_trials):
        counts, totals = channel.simulate_counts(["b", "a"], [1, 0], random_state=rng)
        (cohort,) = np.flatnonzero(totals)
        rest = counts[cohort]
        hit = (
            (int(rest.argmax()),)
            if isinstance(channel.bucket, KRRChannel)
            else tuple(rest.tolist())
        )
        assert counts.sum() == rest.sum()
        observed[int(cohort), hit] += 1
    expected = n_trials * np.array([float(q) for q in exact_law(channel, "b")])
    assert expected.min() > 5
    statistic = ((np.array(list(observed.values())) - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(FALSE_ALARM, len(outputs) - 1)


def test_simulation_is_reproducible_and_adds_up():
    channel = CHANNELS[1]
    one = channel.simulate_counts(WORDS, np.arange(7), random_state=3)
    other = channel.simulate_counts(WORDS, np.arange(7), 21, random_state=3)
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[0].sum(axis=1), one[1])
    assert one[1].sum() == 21
    counts, totals = channel.simulate_counts(WORDS, np.full(7, 1 / 7), 1000, random_state=0)
    assert totals.sum() == 1000 and counts.dtype == totals.dtype == np.int64


@pytest.mark.parametrize(
    ("given", "n_reports", "message"),
    [
        ([1, -1], None, "negative"),
        ([1, 2, 3], None, "each of 2 values"),
        ([[1, 2]], None, "each of 2 values"),
        (3, None, "each of 2 values"),
        (["1", "2"], None, "each of 2 values"),
        ([True, False], None, "each of 2 values"),
        ([1, 2], 4, "sum to 3"),
        ([0.5, 0.5], None, "n_reports"),
        ([0.5, 0.5], 0, "n_reports"),
        ([0.5, 0.6], 10, "sum to 1"),
        ([1.5, -0.5], 10, "negative"),
        ([np.nan, 1.0], 10, "sum to 1"),
    ],
)
def test_simulations_of_nonsense_raise(given, n_reports, message):
    with pytest.raises((TypeError, ValueError), match=message):
        CHANNELS[1].simulate_counts(["a", "b"], given, n_reports)


# -- variance --------------------------------------------------------------------------------


def least_squares_errors(parameters, epsilon, mechanism, p, n, n_keys, n_draws, closed=False):
    """Return squared errors (n_keys, S) of least-squares fits, averaged over draws.

    The centred fit of an incomplete list; for a closed alphabet the plain one.
    """
    k, n_cohorts, n_hashes = parameters
    values = np.arange(len(p))
    rng = np.random.default_rng(8)
    filled = 0 if closed else 1 - (1 - 1 / k) ** n_hashes
    alphabet = Alphabet(len(p)) if closed else None
    squares = np.empty((n_keys, len(p)))
    for key in range(n_keys):
        channel = CohortChannel.for_epsilon(
            epsilon, Hashing(k, n_cohorts, n_hashes, str(key), alphabet), mechanism
        )
        table = channel.hashing.table(values)
        design = np.zeros((n_cohorts, k, len(p)))
        for cohort, rows in enumerate(table):
            for row in rows:
                design[cohort, row, values] = 1
        flat = design.reshape(-1, len(p)) - filled
        inverse = np.linalg.pinv(flat)
        errors = []
        for _ in range(n_draws):
            counts, totals = channel.simulate_counts(values, p, n, random_state=rng)
            shares = channel.rates(counts, totals)
            errors.append((inverse @ (shares.ravel() - filled) - p) ** 2)
        squares[key] = np.mean(errors, axis=0)
    return channel, squares


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "k", "n_cohorts", "n_hashes", "epsilon"),
    [
        ("krr", 8, 16, 1, 1.0),
        ("krr", 32, 8, 1, 3.0),
        ("rappor", 64, 4, 1, 2.0),
        ("rappor", 32, 8, 2, 3.0),
        ("rappor", 64, 8, 3, 6.0),
        ("krr", 64, 8, 1, 6.0),
        ("krr", 64, 64, 1, 6.0),
    ],
)
def test_variance_is_that_of_the_decoder_over_random_keys(
    mechanism, k, n_cohorts, n_hashes, epsilon
):
    # 250 random keys, 8 draws each. First order in the sharing of buckets: within 5 percent in
    # total (10 for a candidate) plus what 250 keys leave uncertain (false alarm 1e-6).
    p = np.array([0.4, 0.25, 0.15, 0.1, *[0.02] * 5])
    parameters = (k, n_cohorts, n_hashes)
    n = 20_000
    channel, squares = least_squares_errors(parameters, epsilon, mechanism, p, n, 250, 8)
    claimed = channel.variance(p, n)
    total = squares.sum(axis=1)
    error = total.std(ddof=1) / np.sqrt(len(total))
    assert abs(total.mean() - claimed.sum()) < 0.05 * claimed.sum() + 4.9 * error
    each = squares.std(axis=0, ddof=1) / np.sqrt(len(squares))
    assert (np.abs(squares.mean(axis=0) - claimed) < 0.1 * claimed + 5.4 * each).all()


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "k", "n_cohorts", "epsilon"),
    [("krr", 16, 8, 3.0), ("krr", 16, 1, 3.0), ("rappor", 32, 3, 2.0), ("krr", 8, 12, 2.0)],
)
def test_variance_of_closed_alphabets_is_that_of_the_decoder(mechanism, k, n_cohorts, epsilon):
    # As above, with permutations: buckets are shared less, or by nobody.
    p = np.array([0.3, 0.2, 0.15, 0.1, 0.05, *[0.02] * 10])
    n = 20_000
    if n_cohorts == 1:
        k = len(p)
    channel, squares = least_squares_errors(
        (k, n_cohorts, 1), epsilon, mechanism, p, n, 250, 8, closed=True
    )
    claimed, total = channel.variance(p, n), squares.sum(axis=1)
    error = total.std(ddof=1) / np.sqrt(len(total))
    assert abs(total.mean() - claimed.sum()) < 0.05 * claimed.sum() + 4.9 * error
    each = squares.std(axis=0, ddof=1) / np.sqrt(len(squares))
    assert (np.abs(squares.mean(axis=0) - claimed) < 0.1 * claimed + 5.6 * each).all()


def test_variance_scales_with_reports_and_ends_where_candidates_cannot_be_told_apart():
    channel = make(1.0, 5, 3, 1, "krr")  # 3 * 4 = 12
    assert np.isinf(channel.variance(np.full(12, 1 / 12), 10)).all()
    fine = channel.variance(np.full(11, 1 / 11), 10)
    assert np.isfinite(fine).all()
    np.testing.assert_allclose(channel.variance(np.full(11, 1 / 11), 1000), fine / 100)
    with pytest.raises((TypeError, ValueError), match="n_reports"):
        channel.variance([1.0, 0.0], 0)


# -- products --------------------------------------------------------------------------------


def test_products_of_cohorts_and_symbols_work():
    parts = [
        make(0.5, 16, 300, 1, "krr"),
        KRRChannel(0.25, 3, ("a", "b", "c")),
        make(1.0, 9, 2, 2, "rappor", packed=True),
        RapporChannel(0.25, 4),
    ]
    channel = ProductChannel(parts)
    assert channel.epsilon == 2.0
    assert channel.width == 2 + 1 + (4 + 2) + 4
    assert channel.max_likelihood_ratio() == prod(one.max_likelihood_ratio() for one in parts)
    assert not exceeds(channel.max_likelihood_ratio(), 2)
    rng = np.random.default_rng(0)
    n = 500
    codes = np.column_stack(
        [
            rng.integers(0, 300, n),
            rng.integers(0, 16, n),
            rng.integers(0, 3, n),
            rng.integers(0, 2, n),
            *rng.integers(0, 9, (2, n)),
            rng.integers(0, 4, n),
        ]
    )
    reports = channel.randomize(codes, random_state=0)
    assert reports.shape == (n, channel.width) and reports.channel == channel
    split = channel.split(reports)
    assert [part.shape[1] for part in split] == [2, 1, 6, 4]
    np.testing.assert_array_equal(split[0][:, 0], codes[:, 0])
    np.testing.assert_array_equal(parts[2]._read_cohorts(split[2]), codes[:, 3])
    for part, one in zip(split, parts, strict=True):
        checked = one.check_reports(part)
        np.testing.assert_array_equal(checked, part)
        counts, totals = one.tally(checked)
        direct = one.tally(part)  # of whatever dtype the product has
        np.testing.assert_array_equal(counts, direct[0])
        assert np.sum(totals) == n
    stored = json.loads(json.dumps(channel.to_dict()))
    assert Channel.from_dict(stored) == channel
    assert pickle.loads(pickle.dumps(channel)) == channel
    np.testing.assert_array_equal(channel.check_reports(np.asarray(reports).tolist()), reports)
    bad = codes.copy()
    bad[0, 3] = 2
    with pytest.raises(ValueError, match=r"cohort in 0..1"):
        channel.randomize(bad)


def test_unlisted_values_beside_cohorts_are_uniform():
    channel = ProductChannel([make(0.5, 16, 300, 1, "krr"), KRRChannel(400.0, 3)])
    codes = np.column_stack([np.arange(200), np.arange(200) % 16, np.full(200, -1)])
    reports = channel.randomize(codes, handle_unknown="uniform", random_state=0)
    np.testing.assert_array_equal(np.asarray(reports)[:, 0], codes[:, 0])
    assert set(np.asarray(reports)[:, 2].tolist()) == {0, 1, 2}
