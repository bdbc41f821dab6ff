"""A stored channel is enough to release reports through it."""

import json
import pickle

import numpy as np
import pytest

from skldp import CohortHashEncoder, FrequencyEstimator, KRRTransformer, RapporTransformer
from skldp.channels import (
    Alphabet,
    CohortChannel,
    Hashing,
    KRRChannel,
    ProductChannel,
    RapporChannel,
)
from skldp.exceptions import ChannelError
from skldp.mechanisms import mechanism_from_channel

CLOSED = Hashing(4, 2, key="k", alphabet=Alphabet.from_categories(["a", "b", "c", "d", "e"]))
CHANNELS = [
    (KRRChannel(1.0, 5), [3]),
    (KRRChannel(0.3, 3, ("a", "b", "c")), ["b"]),
    (RapporChannel(2.0, 9), [8]),
    (RapporChannel(2.0, 9, packed=True), [8]),
    (KRRTransformer(1.0, categories=[3, 4, ["x", "y"]]).fit().channel_, [[2, 3, "x"]]),
    (CohortChannel.for_epsilon(0.7, Hashing(8, 4), "krr"), ["https://example.org/"]),
    (CohortChannel.for_epsilon(0.7, Hashing(8, 4, 3, "k"), "rappor"), ["word"]),
    (CohortChannel.for_epsilon(0.7, Hashing(8, 4, 3, "k"), "rappor", packed=True), ["word"]),
    (CohortChannel.for_epsilon(0.7, CLOSED, "krr"), ["e"]),
]


@pytest.mark.parametrize(("channel", "value"), CHANNELS)
def test_reports_go_through_the_stored_channel(channel, value):
    stored = json.loads(json.dumps(channel.to_dict()))
    client = mechanism_from_channel(stored)
    values = np.array(value, dtype=object)
    report = client.transform(values)
    assert report.channel == channel
    assert channel.check_reports(np.asarray(report)).shape == (1, channel.width)
    again = pickle.loads(pickle.dumps(client)).transform(values)
    assert again.channel == channel


@pytest.mark.parametrize("mechanism", [KRRTransformer(2.0), RapporTransformer(2.0, packed=True)])
def test_the_distribution_is_that_of_the_original_client(mechanism):
    """Both clients' reports are decoded alike; equal seeds give equal reports."""
    words = np.repeat(["ant", "bee"], [600, 300])
    encoder = CohortHashEncoder(8, 4, random_state=1)
    codes = encoder.fit_transform(words)
    original = mechanism.set_params(random_state=1).fit_transform(codes)
    client = mechanism_from_channel(original.channel, random_state=1)
    np.testing.assert_array_equal(client.transform(words), original)
    server = FrequencyEstimator(original.channel, candidates=["ant", "bee"], complete=True)
    assert server.fit(np.asarray(client.transform(words))).frequencies_.sum() == pytest.approx(1)


def test_values_outside_the_alphabet_are_handled_as_asked():
    channel = KRRChannel(1.0, 3, ("a", "b", "c"))
    with pytest.raises(ValueError, match="not in the public alphabet"):
        mechanism_from_channel(channel).transform(["z"])
    assert mechanism_from_channel(channel, handle_unknown="uniform").transform(["z"]).shape == (
        1,
        1,
    )
    closed = CohortChannel.for_epsilon(1.0, CLOSED, "krr")
    with pytest.raises(ValueError, match="not in the closed alphabet"):
        mechanism_from_channel(closed).transform(["z"])


@pytest.mark.parametrize(
    "channel",
    [
        ProductChannel((KRRChannel(0.5, 3), KRRChannel(0.6, 4))),
        ProductChannel((KRRChannel(0.5, 3), RapporChannel(0.5, 4))),
        ProductChannel((RapporChannel(0.5, 3), RapporChannel(0.5, 4, packed=True))),
        ProductChannel((CHANNELS[5][0], CHANNELS[5][0])),
        ProductChannel((KRRChannel(0.7, 4), CHANNELS[5][0])),
    ],
)
def test_channels_of_no_mechanism_raise(channel):
    with pytest.raises(ChannelError, match="No single mechanism has this channel"):
        mechanism_from_channel(channel)


def test_what_is_no_channel_raises():
    with pytest.raises(ChannelError, match="channel must be a Channel"):
        mechanism_from_channel("krr")
