"""The client's side of a stored channel."""

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from skldp.channels import Channel, Codes, CohortChannel, Hashing, RapporChannel, as_channel
from skldp.exceptions import ChannelError
from skldp.mechanisms._base import MechanismTransformer
from skldp.mechanisms._cohort_encoder import CohortHashEncoder
from skldp.mechanisms._krr import KRRTransformer
from skldp.mechanisms._rappor import RapporTransformer

__all__ = ["mechanism_from_channel"]


def mechanism_from_channel(
    channel: Any, *, handle_unknown: str = "error", random_state: Any = None
) -> Any:
    """Return the fitted mechanism that releases reports through a channel.

    A client that got its channel as JSON needs nothing else to privatise its value.

    Parameters
    ----------
    channel : Channel, dict, or list of these
        The channel, its dictionary (``to_dict``), or one for each attribute.
    handle_unknown : {"error", "uniform"}, default="error"
        What `transform` does with values outside the alphabet; see `KRRTransformer`. With cohorts
        they raise in any case where the alphabet is closed, and do not exist where it is open.
    random_state : None, int, Generator or RandomState, default=None
        None is cryptographic. Anything else is for simulations, and protects nobody.

    Returns
    -------
    KRRTransformer, RapporTransformer, or Pipeline
        Fitted; a Pipeline of a `CohortHashEncoder` and a mechanism for a channel with cohorts.
        Its ``transform`` releases reports through exactly this channel.

    Raises
    ------
    ChannelError
        If no mechanism of this package has this channel: attributes of different kinds, with
        different shares of ε, or several with cohorts.

    Examples
    --------
    >>> import json
    >>> from skldp.channels import KRRChannel
    >>> from skldp.mechanisms import mechanism_from_channel
    >>> stored = json.dumps(KRRChannel(1.0, 3, ("bike", "bus", "car")).to_dict())
    >>> client = mechanism_from_channel(json.loads(stored))
    >>> client.transform(["bus"]).channel == KRRChannel(1.0, 3, ("bike", "bus", "car"))
    True
    """
    wanted = as_channel(channel)
    first = wanted.attributes[0]
    bucket: Any = first.bucket if isinstance(first, CohortChannel) else first
    settings = {"handle_unknown": handle_unknown, "random_state": random_state}
    mechanism: MechanismTransformer
    if isinstance(bucket, RapporChannel):
        mechanism = RapporTransformer(wanted.epsilon, packed=bucket.packed, **settings)
    else:
        mechanism = KRRTransformer(wanted.epsilon, **settings)
    if isinstance(first, CohortChannel):
        encoder = _encoder(first.hashing, random_state).fit()
        codes = Codes(np.zeros((1, first.hashing.width), dtype=np.int64), (first.hashing,))
        return Pipeline([("encoder", encoder), ("mechanism", _fitted(mechanism, wanted, codes))])
    alphabets = [one.encoding for one in wanted.attributes]
    values = [list(one.values) for one in alphabets if not isinstance(one, Hashing)]
    if len(values) < len(alphabets):
        raise _no_mechanism(wanted)
    mechanism.set_params(categories=values)
    return _fitted(mechanism, wanted, None)


def _encoder(hashing: Hashing, random_state: Any) -> CohortHashEncoder:
    return CohortHashEncoder(
        hashing.n_buckets,
        hashing.n_cohorts,
        hashing.n_hashes,
        alphabet=None if hashing.alphabet is None else list(hashing.alphabet.values),
        hash_key=hashing.key,
        random_state=random_state,
    )


def _fitted(mechanism: MechanismTransformer, wanted: Channel, codes: Any) -> MechanismTransformer:
    """Fit, and make sure that the channel is the wanted one."""
    fitted: MechanismTransformer = mechanism.fit(codes)
    if fitted.channel_ != wanted:
        raise _no_mechanism(wanted)
    return fitted


def _no_mechanism(channel: Channel) -> ChannelError:
    return ChannelError(
        f"No single mechanism has this channel: {channel}. Attributes must be of one kind and "
        "share epsilon equally, and one with cohorts stands alone; make a mechanism for each of "
        "channel.attributes."
    )
