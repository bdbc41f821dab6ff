"""The hash, against an independent implementation of its specification in bytes.

The oracle below knows nothing of numpy: hashlib and big integers. Statistical tests are
deterministic (the hash has no seed but its key), with false alarms of 1e-6 each for a random
function in its place.
"""

import copy
import hashlib
import json
import os
import pickle
import subprocess
import sys
from enum import StrEnum

import numpy as np
import pytest
from scipy.stats import binom, chi2

from skldp.channels import Alphabet, Hashing
from skldp.channels._alphabet import MissingValueError

FALSE_ALARM = 1e-6
BUCKETS = (2, 3, 16, 1000, 4096, 2**16 + 1)


# -- the specification -----------------------------------------------------------------------


def oracle_word(value, cohort, j, n_hashes, key=""):
    octets = key.encode("utf-8")
    message = b"skldp-hash-1" + len(octets).to_bytes(8, "little") + octets
    digest = hashlib.sha256(message + str(value).encode("utf-8")).digest()
    a, b = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")
    x = (a + (cohort * n_hashes + j) * b) % 2**64
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 % 2**64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def oracle_bucket(value, cohort, j, n_buckets, n_hashes=1, key=""):
    return (oracle_word(value, cohort, j, n_hashes, key) >> 32) * n_buckets >> 32


def oracle_table(values, hashing):
    """Return the table as nested lists: cohorts, hashes, values."""
    alphabet = hashing.alphabet
    rows = []
    for cohort in range(hashing.n_cohorts):
        rows.append([])
        for j in range(hashing.n_hashes):
            where = (cohort, j, hashing.n_hashes, hashing.key)
            if alphabet is None:
                k = hashing.n_buckets
                buckets = [oracle_word(value, *where) // 2**32 * k // 2**32 for value in values]
            else:
                listed = [str(value) for value in alphabet.values]
                ranked = sorted(listed, key=lambda v: oracle_word(v, *where))
                rank = {value: i for i, value in enumerate(ranked)}
                buckets = [rank[str(value)] % hashing.n_buckets for value in values]
            rows[-1].append(buckets)
    return rows


# value, cohort, hash number, n_hashes, n_buckets, key -> bucket. Frozen: written down once from
# the oracle above, so that other languages and later versions can be checked against them.
VECTORS = [
    ("", 0, 0, 1, 4096, "", 3402),
    ("a", 0, 0, 1, 4096, "", 1180),
    ("a", 1, 0, 1, 4096, "", 1417),
    ("a", 0, 1, 2, 4096, "", 1417),
    ("a", 3, 1, 2, 4096, "", 2936),
    ("N14228", 0, 0, 1, 64, "", 8),
    ("N14228", 63, 0, 1, 64, "", 0),
    ("http://example.org/", 7, 0, 1, 256, "flights", 106),
    ("Zürich", 2, 0, 1, 1000, "flights", 195),
    ("東京", 2, 0, 1, 1000, "flights", 993),
    ("😀", 0, 2, 3, 65537, "ключ", 11869),
    ("42", 5, 0, 1, 16, "", 15),
    (42, 5, 0, 1, 16, "", 15),
    (-42, 5, 0, 1, 16, "", 12),
    (9223372036854775807, 1023, 0, 1, 3, "k", 0),
    ("yes", 0, 0, 1, 2, "", 0),
    ("no", 0, 0, 1, 2, "", 1),
]

# The alphabet ("a", "b", "c", "d", "e"), n_hashes = 1, key "": cohort, n_buckets -> buckets.
CLOSED_VECTORS = [
    (0, 5, [0, 4, 2, 3, 1]),
    (0, 2, [0, 0, 0, 1, 1]),
    (1, 5, [1, 3, 2, 0, 4]),
    (1, 2, [1, 1, 0, 0, 0]),
    (6, 5, [3, 0, 4, 2, 1]),
    (6, 2, [1, 0, 0, 0, 1]),
]


@pytest.mark.parametrize(
    ("value", "cohort", "j", "n_hashes", "n_buckets", "key", "bucket"), VECTORS
)
def test_frozen_vectors(value, cohort, j, n_hashes, n_buckets, key, bucket):
    assert oracle_bucket(value, cohort, j, n_buckets, n_hashes, key) == bucket
    hashing = Hashing(n_buckets, cohort + 1, n_hashes, key)
    assert hashing.encode([value], np.array([cohort]))[0, j] == bucket


@pytest.mark.parametrize(("cohort", "n_buckets", "buckets"), CLOSED_VECTORS)
def test_frozen_closed_vectors(cohort, n_buckets, buckets):
    alphabet = Alphabet(5, ("a", "b", "c", "d", "e"))
    hashing = Hashing(n_buckets, cohort + 1, alphabet=alphabet)
    assert oracle_table(list("abcde"), hashing)[cohort][0] == buckets
    assert hashing.table(list("abcde"))[cohort, 0].tolist() == buckets
    encoded = hashing.encode(list("abcde"), np.full(5, cohort))
    assert encoded[:, 0].tolist() == buckets


def random_values(seed=0):
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcXYZ019 .-_/\0\n\té\u00dfñ中\U0001f600\u0301"))
    words = ["".join(rng.choice(letters, size)) for size in rng.integers(0, 40, 60)]
    return ["", "a", "\0", "long " * 5000, *words]


@pytest.mark.parametrize("n_buckets", BUCKETS)
@pytest.mark.parametrize(("n_cohorts", "n_hashes"), [(1, 1), (1, 2), (5, 1), (4, 2), (3, 3)])
def test_tables_follow_the_specification(n_buckets, n_cohorts, n_hashes):
    n_hashes = min(n_hashes, n_buckets)
    for key in ("", "köy", "k" * 10_000):
        hashing = Hashing(n_buckets, n_cohorts, n_hashes, key)
        for values in (random_values(), [0, 1, -1, 10, 2**63 - 1, -(2**63), 42]):
            table = hashing.table(values)
            assert table.shape == (n_cohorts, n_hashes, len(values))
            assert table.dtype == np.min_scalar_type(n_buckets - 1)
            assert table.tolist() == oracle_table(values, hashing)


def test_many_cohorts_wrap_around_64_bits_and_large_numbers_work():
    values, n_cohorts, n_hashes = ["x", "y", ""], 2**32, 5
    for n_buckets in (6, 2**31 + 1, 2**32):
        hashing = Hashing(n_buckets, n_cohorts, n_hashes)
        for cohort in (0, 255, 2**31, 2**32 - 1):
            encoded = hashing.encode(values, np.full(3, cohort))
            for value, row in zip(values, encoded.tolist(), strict=True):
                assert row == [
                    oracle_bucket(value, cohort, j, n_buckets, n_hashes) for j in range(n_hashes)
                ]


def test_columns_longer_than_a_block_follow_the_specification():
    values = np.arange(70_001)
    hashing = Hashing(1000, 2, 2)
    table = hashing.table(values)
    cohorts = np.arange(len(values)) % 2
    encoded = hashing.encode(values, cohorts)
    picked = [0, 1, 32767, 32768, 65535, 65536, 70_000]
    expected = oracle_table(picked, hashing)
    assert table[..., picked].tolist() == expected
    for position, value in enumerate(picked):
        cohort = value % 2
        assert encoded[value].tolist() == [expected[cohort][j][position] for j in range(2)]


_SCRIPT = """
import numpy as np
from skldp.channels import Alphabet, Hashing
open_one = Hashing(1000, 5, 2, "key")
closed = Hashing(7, 3, 1, "key", Alphabet(20, tuple(f"v{i}" for i in range(20))))
print(open_one.table(["é", "", "abc"]).tolist(), closed.table(["v3", "v19"]).tolist())
print(open_one.encode(["é", "", "é"], np.array([4, 0, 1])).tolist(), closed.digest)
"""


def test_other_processes_hash_alike():
    # Python's own hash of a string differs between these.
    outputs = set()
    for seed in ("0", "1", "4711"):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        ran = subprocess.run(
            [sys.executable, "-c", _SCRIPT], env=environment, capture_output=True, check=True
        )
        outputs.add(ran.stdout)
    (output,) = outputs
    assert str(oracle_table(["é", "", "abc"], Hashing(1000, 5, 2, "key"))).encode() in output


def test_keys_count_in_full():
    # No truncation, no padding, no ambiguity between the end of the key and the value.
    long = "k" * 9_999
    keys = [
        *("", "0", "00", "a", "ab", "a\0", "a\0\0", "\0", "A", " a", "a "),
        *(long, long + "k", long + "l", "l" + long, long + "\0", "1", "01", "0x1", "1.0"),
        *(str(2**32 + 1), str(2**64 + 1), "ä", "a\u0308"),
    ]
    tables = {Hashing(4096, 8, key=key).table(["x", "y"]).tobytes() for key in keys}
    assert len(tables) == len(set(keys)) == len(keys)
    assert len({Hashing(4, key=key).digest for key in keys}) == len(keys)
    assert (
        Hashing(4096, 8, key="ab").table(["c"]).tobytes()
        != Hashing(4096, 8, key="a").table(["bc"]).tobytes()
    )


def test_integers_hash_as_their_decimal_digits():
    hashing = Hashing(4096, 8)
    digits = hashing.table(["-7", "0", "12", "300"])
    for numbers in (
        [-7, 0, 12, 300],
        np.array([-7, 0, 12, 300], dtype=np.int16),
        np.array([-7.0, 0.0, 12.0, 300.0]),
        np.array([-7, -0.0, 12, 300]),
        np.array([-7, 0, 12, np.int8(100) + np.int64(200)], dtype=object),
    ):
        np.testing.assert_array_equal(hashing.table(numbers), digits)
        encoded = hashing.encode(numbers, np.arange(4))
        np.testing.assert_array_equal(encoded[:, 0], digits[np.arange(4), 0, np.arange(4)])
    np.testing.assert_array_equal(
        hashing.table(np.array([12, 44], dtype=np.uint8)), hashing.table(["12", "44"])
    )
    huge = np.array([2**63 - 1], dtype=np.uint64)
    np.testing.assert_array_equal(hashing.table(huge), hashing.table([str(2**63 - 1)]))


class Colour(StrEnum):
    RED = "red"


class Odd(str):
    def __str__(self):
        return "something else"


def test_strings_of_every_kind_hash_as_their_characters():
    hashing = Hashing(4096, 4)
    expected = hashing.table(["red", "green"])
    for values in (
        np.array(["red", "green"]),
        np.array(["red", "green"], dtype="U40"),
        np.array(["red", "green"], dtype=object),
        np.array(["red", "green"], dtype=np.dtypes.StringDType()),
        [np.str_("red"), "green"],
        [Colour.RED, "green"],
        [Odd("red"), "green"],
        ("red", "green"),
    ):
        np.testing.assert_array_equal(hashing.table(values), expected)
        np.testing.assert_array_equal(
            hashing.encode(values, np.array([1, 3]))[:, 0], expected[[1, 3], 0, [0, 1]]
        )
    assert Hashing(16, key=Odd("red")) == Hashing(16, key="red")
    assert type(Hashing(16, key=np.str_("red")).key) is str
    np.testing.assert_array_equal(
        Hashing(16, key=Odd("red")).table(["a"]), Hashing(16, key="red").table(["a"])
    )


def test_composed_and_decomposed_characters_are_different_text():
    table = Hashing(2**16, 1).table(["é", "e\u0301", "É"])
    assert len(set(table[0, 0].tolist())) == 3


# -- encode and table ------------------------------------------------------------------------

ALPHABETS = {
    "open": None,
    "closed text": Alphabet(26, tuple("zyxwvutsrqponmlkjihgfedcba")),
    "closed small": Alphabet(3, ("z", "b", "x")),
}


@pytest.mark.parametrize("name", ALPHABETS)
@pytest.mark.parametrize("n_buckets", [2, 5, 26, 40, 300])
@pytest.mark.parametrize("n_hashes", [1, 2])
@pytest.mark.parametrize("some", ["all cohorts", "some cohorts", "one cohort"])
def test_encode_equals_the_table(name, n_buckets, n_hashes, some):
    alphabet, n_cohorts = ALPHABETS[name], 6
    hashing = Hashing(n_buckets, n_cohorts, n_hashes, "key", alphabet)
    rng = np.random.default_rng(3)
    values = np.array(list("zbxzzbx" * 20), dtype=object)
    rng.shuffle(values)
    chosen = {"all cohorts": range(6), "some cohorts": (5, 2), "one cohort": (3,)}[some]
    cohorts = rng.choice(list(chosen), len(values))
    assert set(cohorts) == set(chosen)
    encoded = hashing.encode(values, cohorts)
    assert encoded.shape == (len(values), n_hashes) and encoded.dtype == np.int64
    symbols = ["z", "b", "x"]
    table = hashing.table(symbols)
    assert table.tolist() == oracle_table(symbols, hashing)
    position = np.array([symbols.index(value) for value in values])
    np.testing.assert_array_equal(encoded, table[cohorts, :, position])
    # Repetition, order and the rest of the batch do not matter.
    for row in range(0, len(values), 17):
        alone = hashing.encode(values[row : row + 1], cohorts[row : row + 1])
        np.testing.assert_array_equal(alone, encoded[row : row + 1])


def test_a_closed_alphabet_of_integers_is_hashed_by_digits():
    hashing = Hashing(50, 3, alphabet=Alphabet(50))
    text = Hashing(50, 3, alphabet=Alphabet(50, tuple(map(str, range(50)))))
    np.testing.assert_array_equal(hashing.table(range(50)), text.table(list(map(str, range(50)))))
    encoded = hashing.encode(np.arange(50, dtype=np.uint8), np.arange(50) % 3)
    table = hashing.table(np.arange(50))
    np.testing.assert_array_equal(encoded[:, 0], table[np.arange(50) % 3, 0, np.arange(50)])
    shifted = Hashing(5, 2, alphabet=Alphabet(4, (-3, 10, 7, 0)))
    assert shifted.table([7, -3]).tolist() == oracle_table([7, -3], shifted)


@pytest.mark.parametrize("size", [2, 3, 16, 100, 257])
@pytest.mark.parametrize("n_buckets", [2, 3, 16, 100, 300])
def test_closed_alphabets_are_permutations_before_the_modulus(size, n_buckets):
    n_hashes = 2
    hashing = Hashing(n_buckets, 4, n_hashes, alphabet=Alphabet(size))
    table = hashing.table(np.arange(size))
    for buckets in table.reshape(-1, size):
        counts = np.bincount(buckets, minlength=n_buckets)
        if n_buckets >= size:
            assert sorted(buckets) == list(range(size))
        else:
            assert counts.max() - counts.min() <= 1 and counts.sum() == size
    # One bucket per value lists the permutation itself: the ranks are 0..S-1 whatever k is.
    ranks = Hashing(max(size, 2), 4, n_hashes, alphabet=Alphabet(size)).table(np.arange(size))
    assert (np.sort(ranks, axis=2) == np.arange(size)).all()
    np.testing.assert_array_equal(table, ranks.astype(int) % n_buckets)
    if size >= 100:  # other cohorts and hashes, other permutations
        assert len({row.tobytes() for row in ranks.reshape(-1, size)}) == 4 * n_hashes


def test_permutations_are_uniform():
    # All 24 orders of four values over 24,000 cohorts: chi-square, false alarm 1e-6.
    hashing = Hashing(4, 24_000, alphabet=Alphabet(4, ("a", "b", "c", "d")))
    orders = hashing.table(list("abcd"))[:, 0].astype(int) @ [64, 16, 4, 1]
    _, counts = np.unique(orders, return_counts=True)
    assert len(counts) == 24
    assert ((counts - 1000) ** 2 / 1000).sum() < chi2.isf(FALSE_ALARM, 23)


@pytest.mark.parametrize(("size", "k"), [(2, 2), (7, 3), (7, 7), (5, 9), (100, 16)])
def test_collision_probability_is_that_of_the_buckets(size, k):
    hashing = Hashing(k, 3, alphabet=Alphabet(size))
    for buckets in hashing.table(np.arange(size))[:, 0]:
        pairs = (buckets[:, np.newaxis] == buckets).sum() - size
        assert hashing.collision_probability == pairs / (size * (size - 1))
    assert Hashing(k, 3).collision_probability == pytest.approx(1 / k)
    assert Hashing(k, 3, 2).collision_probability == pytest.approx(1 - (1 - 1 / k) ** 2)


def test_equal_words_keep_the_order_of_the_alphabet(monkeypatch):
    # Words of 64 bits do not collide in practice, so they are made to.
    words = np.arange(300, dtype=np.uint64) * np.uint64(7) % np.uint64(5)
    hashing = Hashing(300, 2, alphabet=Alphabet(300, tuple(range(1, 301))))
    monkeypatch.setattr(Hashing, "_words", lambda self, digests, number: words.copy())
    rank = {i: rank for rank, i in enumerate(sorted(range(300), key=lambda i: (words[i], i)))}
    expected = [rank[i] for i in range(300)]
    assert hashing.table(np.arange(1, 301))[:, 0].tolist() == [expected] * 2


# -- the bias of the reduction ---------------------------------------------------------------


@pytest.mark.parametrize("n_buckets", [2, 3, 5, 7, 1000, 4096, 2**16 + 1, 2**31 + 1, 2**32 - 1])
def test_the_reduction_is_as_biased_as_stated(n_buckets):
    # Bucket i is given by the leading halves w with i 2^32 <= w k < (i+1) 2^32: their number in
    # closed form is ceil((i+1) 2^32 / k) - ceil(i 2^32 / k), the floor or the ceiling of 2^32/k.
    hashing = Hashing(n_buckets)
    full = 2**32
    picked = set(range(min(n_buckets, 5000))) | set(range(max(0, n_buckets - 5000), n_buckets))
    counts = set()
    for i in picked:
        first, last = -(-i * full // n_buckets), -(-(i + 1) * full // n_buckets) - 1
        counts.add(last - first + 1)
        # The lower half of the word does not matter; neighbours belong to other buckets.
        if i % 499 == 0 or i == n_buckets - 1:
            ends = np.array(
                [first << 32, (first << 32) + full - 1, (last << 32) + full - 1], dtype=np.uint64
            )
            assert hashing._reduce(ends).tolist() == [i] * 3
            if first:
                below = np.array([(first << 32) - 1], dtype=np.uint64)
                assert hashing._reduce(below).tolist() == [i - 1]
    floor = full // n_buckets
    assert counts <= {floor, -(-full // n_buckets)}
    assert max(counts) / min(counts) <= 1 + 1 / floor


@pytest.mark.parametrize("n_buckets", [2, 3, 10, 37, 255, 256])
def test_the_reduction_over_fewer_bits_counted_out(n_buckets):
    # The same formula over every half of 2^16 values (leading bits of the leading half).
    words = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
    counts = np.bincount(Hashing(n_buckets)._reduce(words).astype(int), minlength=n_buckets)
    assert len(counts) == n_buckets
    assert set(counts) <= {2**16 // n_buckets, -(-(2**16) // n_buckets)}


# -- quality ---------------------------------------------------------------------------------

N_COHORTS = 24
SEQUENTIAL = {
    "integers": np.arange(20_000),
    "strings": np.array([f"user-{i:07d}" for i in range(20_000)], dtype=object),
    "urls": np.array([f"http://example.org/?page={i}" for i in range(20_000)], dtype=object),
}
QUALITY_BUCKETS = (2, 3, 16, 1000, 4096)


@pytest.mark.statistical
@pytest.mark.parametrize("n_buckets", QUALITY_BUCKETS)
@pytest.mark.parametrize("kind", SEQUENTIAL)
def test_buckets_are_uniform_in_every_cohort(kind, n_buckets):
    # Chi-square for each cohort, both tails, Bonferroni: false alarm 1e-6 for all of them.
    values = SEQUENTIAL[kind]
    expected = len(values) / n_buckets  # at least 4.9
    tail = FALSE_ALARM / (2 * N_COHORTS)
    statistics = []
    for buckets in Hashing(n_buckets, N_COHORTS).table(values)[:, 0]:
        counts = np.bincount(buckets, minlength=n_buckets)
        statistics.append(((counts - expected) ** 2 / expected).sum())
    assert max(statistics) < chi2.isf(tail, n_buckets - 1)
    assert min(statistics) > chi2.ppf(tail, n_buckets - 1)


def _within(hits, n, rate, n_tests):
    tail = FALSE_ALARM / (2 * n_tests)
    return binom.ppf(tail, n, rate) <= hits <= binom.isf(tail, n, rate)


@pytest.mark.statistical
@pytest.mark.parametrize("n_buckets", QUALITY_BUCKETS)
@pytest.mark.parametrize("kind", SEQUENTIAL)
def test_pairs_of_values_collide_at_the_rate_of_chance(kind, n_buckets):
    # Disjoint pairs (neighbours, and values half the list apart) collide independently of each
    # other: exact binomials. Within a cohort at the rate 1/k; in another cohort given a
    # collision in this one, still at 1/k; and so for the two hashes of a cohort.
    values = SEQUENTIAL[kind]
    half = len(values) // 2
    table = Hashing(n_buckets, N_COHORTS, 2).table(values)
    for left, right in (
        (table[..., 0::2], table[..., 1::2]),
        (table[..., :half], table[..., half:]),
    ):
        collide = (left == right).reshape(-1, half)  # a row per function c h + j
        hits = collide.sum(axis=1)
        for number in range(len(collide)):
            assert _within(hits[number], half, 1 / n_buckets, 2 * len(collide))
        # Pooled over the functions the rate is known 7 times as well.
        assert _within(collide.sum(), collide.size, 1 / n_buckets, 2)
        for gap in (1, 2, 7):
            given, also = collide[:-gap], collide[gap:]
            both = (given & also).sum(axis=1)
            for number in range(len(given)):
                n_given = int(given[number].sum())
                assert _within(both[number], n_given, 1 / n_buckets, 6 * len(given))


@pytest.mark.statistical
@pytest.mark.parametrize("n_buckets", [2, 3, 16])
def test_cohorts_are_independent(n_buckets):
    # The joint table of a value's buckets in two functions: chi-square, false alarm 1e-6.
    table = Hashing(n_buckets, 12, 2).table(SEQUENTIAL["integers"]).reshape(24, -1).astype(int)
    pairs = [(0, 1), (0, 2), (1, 2), (3, 19), (0, 23), (8, 16)]
    expected = table.shape[1] / n_buckets**2
    for one, other in pairs:
        cells = np.bincount(table[one] * n_buckets + table[other], minlength=n_buckets**2)
        statistic = ((cells - expected) ** 2 / expected).sum()
        assert statistic < chi2.isf(FALSE_ALARM / len(pairs), n_buckets**2 - 1)


@pytest.mark.statistical
def test_one_value_spreads_over_cohorts():
    # A single value's buckets over 20,000 cohorts: chi-square, false alarm 1e-6.
    for value in ("", "a", 0, 1):
        buckets = Hashing(16, 20_000).table([value])[:, 0, 0]
        counts = np.bincount(buckets, minlength=16)
        assert ((counts - 1250) ** 2 / 1250).sum() < chi2.isf(FALSE_ALARM / 4, 15)


@pytest.mark.statistical
def test_keys_give_independent_families():
    values = np.arange(20_000)
    one, other = (Hashing(16, 1, key=key).table(values)[0, 0].astype(int) for key in ("1", "2"))
    cells = np.bincount(one * 16 + other, minlength=256)
    expected = len(values) / 256
    assert ((cells - expected) ** 2 / expected).sum() < chi2.isf(FALSE_ALARM, 255)


# -- the value -------------------------------------------------------------------------------

HASHINGS = [
    Hashing(16),
    Hashing(16, 8, 2, "kéy"),
    Hashing(5, 3, alphabet=Alphabet(7)),
    Hashing(5, 3, 2, "k", Alphabet(3, ("é", "b", ""))),
    Hashing(5, 3, 1, "k", Alphabet(3, (10, -3, 2))),
]


@pytest.mark.parametrize("hashing", HASHINGS, ids=repr)
def test_hashings_are_values(hashing):
    before = pickle.dumps(hashing), hash(hashing)
    symbols = hashing.alphabet.values if hashing.alphabet else ["a", "b"]
    hashing.table(symbols)
    hashing.encode(symbols, np.arange(len(symbols)) % hashing.n_cohorts)
    assert hashing.digest
    assert (pickle.dumps(hashing), hash(hashing)) == before  # no caches inside
    for same in (
        pickle.loads(before[0]),
        copy.copy(hashing),
        copy.deepcopy(hashing),
        Hashing.from_dict(hashing.to_dict()),
        Hashing.from_dict(json.loads(json.dumps(hashing.to_dict()))),
    ):
        assert same == hashing and hash(same) == hash(hashing)
        assert same.digest == hashing.digest
        np.testing.assert_array_equal(same.table(symbols), hashing.table(symbols))
    assert len({one.digest for one in HASHINGS}) == len(HASHINGS) == len(set(HASHINGS))


def test_parameters_of_numpy_types_are_plain():
    hashing = Hashing(np.int64(16), np.uint8(3), np.int32(2))
    assert hashing == Hashing(16, 3, 2)
    assert all(type(getattr(hashing, n)) is int for n in ("n_buckets", "n_cohorts", "n_hashes"))


def test_a_long_alphabet_does_not_fill_the_screen():
    hashing = Hashing(4, alphabet=Alphabet(100_000, tuple(f"w{i}" for i in range(100_000))))
    assert len(repr(hashing)) < 200 and "100000 values" in repr(hashing)


@pytest.mark.parametrize("name", ["n_buckets", "n_cohorts", "n_hashes"])
@pytest.mark.parametrize("wrong", [True, np.True_, 2.0, "2", None, -1, 0, 2**40, [2]])
def test_wrong_parameters_raise(name, wrong):
    with pytest.raises((TypeError, ValueError), match=name):
        Hashing(**{"n_buckets": 4, name: wrong})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_buckets": 1}, "n_buckets must be at least 2"),
        ({"n_buckets": 4, "n_hashes": 5}, "use fewer hashes or more buckets"),
        ({"n_buckets": 4, "key": b"bytes"}, "hash_key must be a string, got bytes"),
        ({"n_buckets": 4, "key": 3}, "hash_key must be a string, got int"),
        ({"n_buckets": 4, "key": None}, "hash_key must be a string"),
        ({"n_buckets": 4, "key": "\udc80"}, "hash_key holds lone surrogates"),
        ({"n_buckets": 4, "alphabet": ("a", "b")}, "alphabet must be an Alphabet"),
    ],
)
def test_wrong_parameters_say_what_is_wrong(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Hashing(**parameters)


@pytest.mark.parametrize("alphabet", [None, Alphabet(3, ("a", "b", "c"))], ids=["open", "closed"])
@pytest.mark.parametrize(
    "values",
    [
        ["a", None],
        ["a", float("nan")],
        ["a", ["b"]],
        ["a", {"b": 1}],
        ["a", b"b"],
        ["a", 1],
        ["a", True],
        [True, False],
        [0.5, 1.0],
        [2**64, 1],
        [["a", "b"], ["a", "c"]],
    ],
    ids=repr,
)
def test_values_that_cannot_be_hashed_raise(alphabet, values):
    hashing = Hashing(4, 2, alphabet=alphabet)
    cohorts = np.zeros(2, dtype=int)
    for call in (lambda: hashing.table(values), lambda: hashing.encode(values, cohorts)):
        with pytest.raises((TypeError, ValueError)):
            call()


def test_missing_values_are_named_as_missing():
    for values in (["a", None], [1.0, np.nan], np.ma.masked_array([1, 2], [0, 1])):
        with pytest.raises(MissingValueError):
            Hashing(4).encode(values, np.zeros(2, dtype=int))


def test_lone_surrogates_raise_and_are_not_echoed():
    for call in (
        lambda: Hashing(4).table(["fine", "secret\udc80"]),
        lambda: Hashing(4).encode(["fine", "secret\udc80"], np.zeros(2, dtype=int)),
    ):
        with pytest.raises(ValueError, match="lone surrogates") as caught:
            call()
        assert "secret" not in str(caught.value) and caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("alphabet", "values"),
    [(Alphabet(2, ("a", "b")), ["a", "secret"]), (Alphabet(3), [0, 4711]), (Alphabet(3), [-4711])],
)
def test_values_outside_a_closed_alphabet_raise_and_are_not_echoed(alphabet, values):
    hashing = Hashing(4, 2, alphabet=alphabet)
    cohorts = np.zeros(len(values), dtype=int)
    for call in (lambda: hashing.table(values), lambda: hashing.encode(values, cohorts)):
        with pytest.raises(ValueError, match="not in the closed alphabet") as caught:
            call()
        assert "secret" not in str(caught.value) and "4711" not in str(caught.value)
    with pytest.raises(TypeError, match="of one type"):
        hashing.table([1, 2] if alphabet.is_text else ["0", "1"])


@pytest.mark.parametrize(
    "damage",
    [
        {"n_buckets": 4.0},
        {"n_cohorts": 0},
        {"key": None},
        {"alphabet": "abc"},
        {"alphabet": {"n_categories": 3, "categories": "abc"}},
        {"alphabet": {"n_categories": 3, "categories": ["a", "b"]}},
        {"further": 1},
    ],
    ids=str,
)
def test_damaged_dictionaries_raise(damage):
    with pytest.raises((TypeError, ValueError)):
        Hashing.from_dict({**Hashing(4, 2).to_dict(), **damage})


def test_codes_are_checked():
    hashing = Hashing(300, 5, 2)
    assert hashing.width == 3 and hashing.code_dtype == np.uint16
    assert Hashing(3, 300).code_dtype == np.uint16 and Hashing(3, 256).code_dtype == np.uint8
    good = np.array([[0, 299, 0], [4, 0, 299]])
    assert hashing.check_codes(good) is good
    assert hashing.check_codes(np.empty((0, 3), dtype=int)).shape == (0, 3)
    for bad in ([5, 0, 0], [0, 300, 0], [0, 0, 300], [-1, 0, 0], [0, -1, 0]):
        with pytest.raises(ValueError, match=r"cohort in 0..4 and buckets in 0..299"):
            hashing.check_codes(np.array([bad]))


def test_no_values_have_no_buckets():
    for alphabet in (None, Alphabet(3)):
        hashing = Hashing(4, 2, 2, alphabet=alphabet)
        assert hashing.table(np.empty(0, dtype=int)).shape == (2, 2, 0)
        assert hashing.encode(np.empty(0, dtype=int), np.empty(0, dtype=int)).shape == (0, 2)
