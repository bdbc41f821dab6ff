"""Channels as values: validation, equality, dictionaries, pickles, and what they compute."""

import copy
import json
import pickle
from fractions import Fraction

import numpy as np
import pytest

from skldp import ChannelError
from skldp.channels import (
    Alphabet,
    Channel,
    KRRChannel,
    MissingValueError,
    ProductChannel,
    RapporChannel,
    as_channel,
)

CHANNELS = [
    KRRChannel(1.0, 4),
    KRRChannel(Fraction(1, 3), 3, ("a", "b", "ü")),
    KRRChannel(0.1, 3, (5, -2, 9)),
    RapporChannel(2, 300),
    RapporChannel(0.5, 9, packed=True),
    RapporChannel(0.5, 2, ("no", "yes")),
    ProductChannel([KRRChannel(Fraction(1, 3), 4), RapporChannel(1.0, 9, packed=True)]),
]


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_channels_survive_storage(channel):
    stored = json.loads(json.dumps(channel.to_dict()))
    assert Channel.from_dict(stored) == channel
    for twin in (Channel.from_dict(stored), pickle.loads(pickle.dumps(channel))):
        assert twin == channel and hash(twin) == hash(channel)
        assert twin.fingerprint == channel.fingerprint
        assert twin.epsilon == channel.epsilon
    assert copy.deepcopy(channel) == channel
    assert as_channel(stored) == channel


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_use_changes_neither_pickle_nor_hash(channel):
    fresh = pickle.loads(pickle.dumps(channel))
    before = pickle.dumps(fresh)
    for attribute in fresh.attributes:
        attribute.alphabet.lookup(attribute.alphabet.values[:2])
        attribute.unbias(np.ones(attribute.n_categories), 5)
    assert fresh.fingerprint and fresh.realized_epsilon
    assert pickle.dumps(fresh) == before


def test_every_real_number_is_an_epsilon():
    for epsilon in (10**400, Fraction(10**400, 3), 1e308, np.float16(0.5), np.longdouble("0.1")):
        for cls in (KRRChannel, RapporChannel):
            channel = cls(epsilon, 3)
            # Not rounded, and above all not up.
            assert Fraction(channel.epsilon) == Fraction(*epsilon.as_integer_ratio())
            assert Channel.from_dict(json.loads(json.dumps(channel.to_dict()))) == channel
    pair = ProductChannel([KRRChannel(1e308, 3)] * 2)
    assert pair.epsilon == 2 * Fraction(1e308) and repr(pair)


def test_fingerprints_differ_where_channels_do():
    others = [
        KRRChannel(1.0000000000000002, 4),
        KRRChannel(1.0, 5),
        KRRChannel(1.0, 4, ("0", "1", "2", "3")),
        KRRChannel(1.0, 4, (3, 2, 1, 0)),
        RapporChannel(1.0, 4),
        RapporChannel(1.0, 4, packed=True),
        ProductChannel([KRRChannel(1.0, 4)] * 2),
        *CHANNELS,
    ]
    prints = {channel.fingerprint for channel in others}
    assert len(prints) == len(others)
    assert len({*others}) == len(others)


def test_fingerprint_is_frozen():
    # Stored reports are recognised by it: a change needs a new format version.
    assert KRRChannel(1.0, 4).fingerprint == FROZEN


FROZEN = "b8d37692550c55d27547922f5730c1ee"


def test_equal_channels_are_one_value():
    assert KRRChannel(1, 3, [0, 1, 2]) == KRRChannel(1.0, 3)
    assert KRRChannel(np.float32(0.5), np.int64(3)) == KRRChannel(Fraction(1, 2), 3)
    assert KRRChannel(0.5, 2, np.array(["a", "b"])) == KRRChannel(0.5, 2, ("a", "b"))
    assert RapporChannel(1.0, 3, packed=np.True_) == RapporChannel(1.0, 3, packed=True)
    assert isinstance(KRRChannel(np.float64(1), 3).epsilon, float)
    with pytest.raises(AttributeError):
        KRRChannel(1.0, 3).epsilon = 2.0


@pytest.mark.parametrize("cls", [KRRChannel, RapporChannel])
@pytest.mark.parametrize(
    ("epsilon", "error"),
    [
        (-1, ValueError),
        (-1e-300, ValueError),
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        (True, TypeError),
        (np.True_, TypeError),
        ("1", TypeError),
        (None, TypeError),
        (1 + 0j, TypeError),
        ([1.0], TypeError),
        (np.array([1.0]), TypeError),
    ],
)
def test_wrong_epsilon_raises(cls, epsilon, error):
    with pytest.raises(error, match="epsilon must be"):
        cls(epsilon, 3)


@pytest.mark.parametrize(
    ("n_categories", "categories", "error"),
    [
        (1, None, ValueError),
        (0, None, ValueError),
        (-3, None, ValueError),
        (2.0, None, TypeError),
        (True, None, TypeError),
        ("3", None, TypeError),
        (2**33, None, ValueError),
        (2, ("a",), ValueError),
        (2, ("a", "a"), ValueError),
        (2, ("a", 1), TypeError),
        (2, ("a", None), MissingValueError),
        (2, (0.5, 1), ValueError),
        (2, (True, False), TypeError),
        (2, "ab", TypeError),
        (2, 5, TypeError),
        (2, ("a", float("nan")), MissingValueError),
        (2, (b"a", b"b"), TypeError),
    ],
)
@pytest.mark.parametrize("cls", [KRRChannel, RapporChannel])
def test_wrong_alphabet_raises(cls, n_categories, categories, error):
    with pytest.raises(error):
        cls(1.0, n_categories, categories)


def test_wrong_dictionaries_raise():
    good = KRRChannel(1.0, 4).to_dict()
    wrong = [
        None,
        [],
        {},
        {**good, "format": 2},
        {**good, "format": True},
        {**good, "format": "1"},
        {**good, "mechanism": "olh"},
        {**good, "mechanism": None},
        {**good, "epsilon": -1},
        {**good, "epsilon": "much"},
        {**good, "epsilon": None},
        {**good, "n_categories": 1},
        {**good, "categories": 7},
        {**good, "categories": "abcd"},
        {**good, "epsilon": "1/0"},
        {**good, "surplus": 1},
        {key: good[key] for key in good if key != "epsilon"},
        {"format": 1, "mechanism": "product", "channels": "krr"},
        {"format": 1, "mechanism": "product", "channels": [good]},
        {"format": 1, "mechanism": "product", "channels": [good, {}]},
    ]
    for data in wrong:
        with pytest.raises(ChannelError):
            Channel.from_dict(data)
    for channel in (7, "krr", [], object()):
        with pytest.raises(ChannelError, match="must be a Channel"):
            as_channel(channel)


def test_products_are_made_of_attributes():
    one = KRRChannel(1.0, 3)
    with pytest.raises(ValueError, match="at least two"):
        ProductChannel([one])
    with pytest.raises(TypeError, match="attribute channels"):
        ProductChannel([one, ProductChannel([one, one])])
    assert as_channel([one]) == one
    assert as_channel([one, [one, one.to_dict()]]) == ProductChannel([one] * 3)


def test_long_alphabets_are_shown_short():
    text = repr(KRRChannel(1.0, 1000, tuple(f"w{i}" for i in range(1000))))
    assert len(text) < 120 and "w999" in text


@pytest.mark.parametrize("cls", [KRRChannel, RapporChannel])
@pytest.mark.parametrize("epsilon", [0.7, 3])
def test_probabilities_are_the_papers_up_to_rounding(cls, epsilon):
    k = 4
    matrix = cls(epsilon, k).matrix().astype(float)
    if cls is KRRChannel:
        expected = np.where(np.eye(k), np.exp(epsilon), 1) / (np.exp(epsilon) + k - 1)
    else:
        keep = 1 / (1 + np.exp(-epsilon / 2))
        bits = np.arange(2**k)[:, np.newaxis] >> np.arange(k) & 1
        same = bits[np.newaxis] == np.eye(k, dtype=int)[:, np.newaxis]
        expected = np.where(same, keep, 1 - keep).prod(axis=2)
    np.testing.assert_allclose(matrix, expected, rtol=1e-14)


def test_large_matrices_are_refused():
    for channel in (KRRChannel(1.0, 4096), RapporChannel(1.0, 64)):
        with pytest.raises(ValueError, match="too large"):
            channel.matrix()


def test_exact_expected_counts_give_back_the_distribution():
    p = np.array([0.5, 0.25, 0.125, 0.125])
    for channel in (KRRChannel(0.3, 4), RapporChannel(0.3, 4)):
        n = 2**40
        rates = float(channel.offset) + float(channel.slope) * p
        np.testing.assert_allclose(channel.unbias(n * rates, n), p, atol=1e-12)


def test_no_information_raises_and_tiny_information_does_not():
    for cls in (KRRChannel, RapporChannel):
        for call in (
            lambda c: c.unbias([1, 1, 1], 3),
            lambda c: c.variance(np.ones(3) / 3, 3),
            lambda c: c.interval([1, 1, 1], 3),
            lambda c: c.maximum_likelihood([1, 1, 1], 3),
        ):
            with pytest.raises(ChannelError, match="nothing"):
                call(cls(0.0, 3))
            with pytest.raises(ChannelError, match="nothing"):
                call(cls(1e-30, 3))  # rounds to no information, toward privacy
            assert np.isfinite(call(cls(1e-6, 3))).all()
            assert np.isfinite(call(cls(800.0, 3))).all()


def test_counts_that_cannot_be_are_refused():
    krr, rappor = KRRChannel(1.0, 3), RapporChannel(1.0, 3)
    for channel, counts, n in (
        (krr, [1, 2], 3),
        (krr, [1, 2, 3], 7),
        (krr, [1, -2, 3], 2),
        (krr, [1.5, 2, 3], None),
        (krr, [[1, 2, 3]], 6),
        (krr, ["1", "2", "3"], 6),
        (krr, [2**62, 2**62, 2**62], None),
        (rappor, [1, 2, 3], None),
        (rappor, [1, 2, 30], 10),
        (rappor, [1, float("nan"), 3], 10),
    ):
        with pytest.raises(ChannelError):
            channel.check_counts(counts, n)
    with pytest.raises(TypeError):
        rappor.check_counts([1, 2, 3], 3.5)


def test_simulation_checks_its_input():
    channel = KRRChannel(1.0, 3)
    for given, n, error in (
        ([0.5, 0.5, 0.5], 10, ValueError),
        ([0.5, 0.6, -0.1], 10, ValueError),
        ([0.5, np.nan, 0.5], 10, ValueError),
        ([0.5, 0.5], 10, ValueError),
        ([0.5, 0.25, 0.25], None, ValueError),
        ([0.5, 0.25, 0.25], 0, ValueError),
        ([1, 2, 3], 7, ValueError),
        ([0, 0, 0], None, ValueError),
        ([1, 2, -3], None, ValueError),
        (["a", "b", "c"], 3, TypeError),
    ):
        with pytest.raises(error):
            channel.simulate_counts(given, n)
    per_trial = channel.simulate_counts([[5, 0, 0], [0, 5, 0]], n_trials=2, random_state=0)
    assert per_trial.shape == (2, 3) and (per_trial.sum(axis=1) == 5).all()


def test_codes_out_of_range_are_refused():
    channel = KRRChannel(1.0, 3)
    for codes, error in (
        ([3], ValueError),
        ([-2], ValueError),
        ([0.0], TypeError),
        (["a"], TypeError),
        ([[0, 1]], ValueError),
        ([-1], ValueError),
    ):
        with pytest.raises(error):
            channel.randomize(codes)
    assert channel.randomize([-1, 0], handle_unknown="uniform").shape == (2, 1)
    assert channel.randomize(np.empty(0, int)).shape == (0, 1)
    with pytest.raises(ValueError, match="handle_unknown"):
        channel.randomize([0], handle_unknown="drop")
    with pytest.raises(ValueError, match="columns"):
        channel.encode(["a"], ["b"])


def test_narrowest_dtype_is_used():
    sizes = {2: "u1", 256: "u1", 257: "u2", 65536: "u2", 65537: "u4"}
    for k, dtype in sizes.items():
        assert KRRChannel(1.0, k).randomize([0, 1]).dtype == np.dtype(dtype)


def test_lookup_finds_every_symbol():
    words = Alphabet(4, ("b", "a", "", "ä"))
    assert words.lookup(["ä", "", "zz", "b"]).tolist() == [3, 2, -1, 0]
    numbers = Alphabet(3, (7, -4, 2**62))
    assert numbers.lookup([2**62, -4, 5, 7]).tolist() == [2, 1, -1, 0]
    assert Alphabet(3).lookup(np.array([2.0, 5.0])).tolist() == [2, -1]
    for alphabet, values in ((words, [1]), (numbers, ["7"])):
        with pytest.raises(TypeError, match="one type"):
            alphabet.lookup(values)
    with pytest.raises(ValueError, match="one column"):
        words.lookup(np.array([["a"]]))
    with pytest.raises(ValueError, match="lose digits"):
        numbers.lookup([2**60 + 1, 1.0])


def test_information_that_floats_cannot_hold_raises():
    with pytest.raises(ChannelError, match="nothing"):
        RapporChannel(1e-16, 3).maximum_likelihood([1, 1, 1], 3)
