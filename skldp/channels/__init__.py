"""Channels: mechanisms with their public alphabet, as immutable values without scikit-learn."""

from skldp.channels._alphabet import Alphabet, MissingValueError, check_values
from skldp.channels._arrays import Codes, Reports
from skldp.channels._attribute import AttributeChannel, SymbolChannel
from skldp.channels._base import Channel
from skldp.channels._carried import (
    attach_channel,
    attach_encoding,
    carried_channel,
    carried_encoding,
)
from skldp.channels._cohorts import CohortChannel, distinct_buckets
from skldp.channels._hashing import Hashing
from skldp.channels._krr import KRRChannel
from skldp.channels._product import ProductChannel, as_channel
from skldp.channels._rappor import RapporChannel

__all__ = [
    "Alphabet",
    "AttributeChannel",
    "Channel",
    "Codes",
    "CohortChannel",
    "Hashing",
    "KRRChannel",
    "MissingValueError",
    "ProductChannel",
    "RapporChannel",
    "Reports",
    "SymbolChannel",
    "as_channel",
    "attach_channel",
    "attach_encoding",
    "carried_channel",
    "carried_encoding",
    "check_values",
    "distinct_buckets",
]
