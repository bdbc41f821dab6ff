"""Several attributes, each through a channel of its own."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skldp._validation import check_epsilon
from skldp.channels._attribute import AttributeChannel
from skldp.channels._base import Channel
from skldp.exceptions import ChannelError
from skldp.random import WordStream

__all__ = ["ProductChannel", "as_channel"]


@dataclass(frozen=True)
class ProductChannel(Channel):
    """Several attributes of a row, each randomized independently by its own channel.

    The losses add up: ε of the row is the exact sum of the attributes' ε. Attributes are
    estimated one by one; nothing is assumed about how they depend on each other.

    Parameters
    ----------
    channels : sequence of AttributeChannel
        At least two, in the order of the columns.

    Raises
    ------
    TypeError, ValueError
        If there are fewer than two, or something else is among them.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from skldp.channels import KRRChannel, ProductChannel, RapporChannel
    >>> third = Fraction(1, 3)
    >>> channel = ProductChannel([KRRChannel(third, 4), RapporChannel(2 * third, 8)])
    >>> channel.epsilon, channel.width
    (1.0, 9)
    """

    channels: tuple[AttributeChannel, ...]

    mechanism: ClassVar[str] = "product"

    def __post_init__(self) -> None:
        channels = tuple(self.channels)
        for channel in channels:
            if not isinstance(channel, AttributeChannel):
                raise TypeError(
                    f"A product is made of attribute channels, got {type(channel).__name__}."
                )
        if len(channels) < 2:
            raise ValueError(f"A product needs at least two channels, got {len(channels)}.")
        object.__setattr__(self, "channels", channels)

    @property
    def epsilon(self) -> float | Fraction:
        """Exact sum of the attributes' ε."""
        exact = sum((Fraction(channel.epsilon) for channel in self.channels), Fraction(0))
        return check_epsilon(exact)

    @property
    def attributes(self) -> tuple[AttributeChannel, ...]:
        return self.channels

    @property
    def width(self) -> int:
        return sum(channel.width for channel in self.channels)

    @property
    def is_informative(self) -> bool:
        return all(channel.is_informative for channel in self.channels)

    def max_likelihood_ratio(self) -> Fraction:
        ratios = (channel.max_likelihood_ratio() for channel in self.channels)
        return math.prod(ratios, start=Fraction(1))

    def _draw(self, codes: Sequence[NDArray[Any]], stream: WordStream) -> NDArray[Any]:
        drawn = [
            channel._draw([column], stream)
            for channel, column in zip(self.channels, codes, strict=True)
        ]
        return np.hstack(drawn)

    def check_reports(self, reports: ArrayLike) -> NDArray[Any]:
        array = np.asarray(reports)
        if array.ndim != 2 or array.shape[1] != self.width:
            raise ChannelError(
                f"Reports of this product of {len(self.channels)} channels have {self.width} "
                f"columns, got shape {array.shape}."
            )
        parts = zip(self.channels, self.split(array), strict=True)
        return np.hstack([channel.check_reports(part) for channel, part in parts])

    def _parameters(self) -> dict[str, Any]:
        return {"channels": [channel.to_dict() for channel in self.channels]}

    @classmethod
    def _from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        channels = parameters["channels"]
        if not isinstance(channels, list | tuple):
            raise ChannelError("channels must be a list of channel dictionaries.")
        return cls(tuple(Channel.from_dict(channel) for channel in channels))  # type: ignore[misc]


def as_channel(channel: Any) -> Channel:
    """Return a channel from a Channel, its dictionary, or a list of either (one per attribute).

    Raises
    ------
    ChannelError
        If it is none of these.
    """
    if isinstance(channel, Channel):
        return channel
    if isinstance(channel, Mapping):
        return Channel.from_dict(channel)
    if isinstance(channel, list | tuple) and channel:
        parts = tuple(as_channel(part) for part in channel)
        if len(parts) == 1:
            return parts[0]
        return ProductChannel(tuple(one for part in parts for one in part.attributes))
    raise ChannelError(
        "channel must be a Channel, its dictionary (to_dict) or a list of them, got "
        f"{type(channel).__name__}."
    )
