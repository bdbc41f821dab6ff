"""Channels: mechanisms with their public alphabet, as immutable values without scikit-learn."""

from skldp.channels._alphabet import Alphabet, MissingValueError, check_values
from skldp.channels._arrays import Codes, Reports
from skldp.channels._attribute import AttributeChannel
from skldp.channels._base import Channel
from skldp.channels._carried import attach_channel, carried_channel
from skldp.channels._krr import KRRChannel
from skldp.channels._product import ProductChannel, as_channel
from skldp.channels._rappor import RapporChannel

__all__ = [
    "Alphabet",
    "AttributeChannel",
    "Channel",
    "Codes",
    "KRRChannel",
    "MissingValueError",
    "ProductChannel",
    "RapporChannel",
    "Reports",
    "as_channel",
    "attach_channel",
    "carried_channel",
    "check_values",
]
