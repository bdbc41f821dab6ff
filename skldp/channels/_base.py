"""Channels: a mechanism and its public alphabet as one immutable value.

A channel knows everything about one randomization: the exact probabilities it uses, how to draw
reports, count them, turn counts into unbiased frequencies with their covariance, and how much
privacy it really gives. It knows nothing of scikit-learn. Transformers delegate to it on the
client's side, estimators on the server's; what travels between the two is a `Reports` array.

`Channel` is what every channel can do, for one attribute or several; `AttributeChannel` (in
``_attribute``) adds estimation for one attribute.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skldp._validation import check_choice
from skldp.channels._alphabet import Alphabet
from skldp.channels._arrays import Codes, Reports
from skldp.exceptions import ChannelError
from skldp.random import WordStream, random_integers, random_stream

if TYPE_CHECKING:
    from skldp.channels._attribute import AttributeChannel

__all__ = ["Channel"]

FORMAT = 1
"""Version of the dictionary form. A change of any realised probability needs a new one."""


class Channel(ABC):
    """A randomization of rows with a public output domain: the base of all channels.

    Attributes
    ----------
    epsilon : float or Fraction
        Claimed privacy-loss bound for a whole row, in nats.
    attributes : tuple of AttributeChannel
        The channels of the single attributes, in the order of the columns.
    width : int
        Number of columns of a report.
    fingerprint : str
        Digest of the dictionary form: equal channels, and only those, share it.
    """

    mechanism: ClassVar[str]
    _registry: ClassVar[dict[str, type["Channel"]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "mechanism" in cls.__dict__:
            Channel._registry[cls.mechanism] = cls

    epsilon: Any

    @property
    @abstractmethod
    def attributes(self) -> tuple["AttributeChannel", ...]:
        """Channels of the single attributes."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of columns of a report."""

    @abstractmethod
    def max_likelihood_ratio(self) -> Fraction:
        """Return the realised e^ε: the exact maximum of P(report | x) / P(report | x')."""

    @abstractmethod
    def check_reports(self, reports: ArrayLike) -> NDArray[Any]:
        """Return reports as a plain array of the channel's dtype.

        Parameters
        ----------
        reports : array-like of int of shape (n_reports, width), or (n_reports,) if width is 1
            Reports, for example read back from storage; whole floats count as integers.

        Returns
        -------
        ndarray of shape (n_reports, width)
            Unsigned integers.

        Raises
        ------
        ChannelError
            If the channel cannot have released these numbers.
        """

    @abstractmethod
    def _draw(self, codes: Sequence[NDArray[Any]], stream: WordStream) -> NDArray[Any]:
        """Draw reports (n, width) from narrow codes (n, encoding.width) of each attribute."""

    @abstractmethod
    def _parameters(self) -> dict[str, Any]:
        """Return the JSON form of the fields."""

    @classmethod
    @abstractmethod
    def _from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Invert `_parameters`."""

    # -- drawing reports ------------------------------------------------------------------

    def encode(self, *columns: Any) -> Codes:
        """Return the codes of values: not private, and never to leave the client.

        Parameters
        ----------
        *columns : array-like of shape (n_samples,)
            Strings or integers, one array per attribute.

        Returns
        -------
        Codes of shape (n_samples, n_attributes)
            Position in the alphabet, -1 for a value that it does not list.

        Raises
        ------
        TypeError
            If an attribute has cohorts: `CohortHashEncoder` draws them.
        """
        encodings = [attribute.encoding for attribute in self.attributes]
        for encoding in encodings:
            if not isinstance(encoding, Alphabet):
                raise TypeError(
                    "The channel takes hashed values: CohortHashEncoder encodes them into cohorts "
                    "and buckets."
                )
        if len(columns) != len(self.attributes):
            raise ValueError(
                f"The channel has {len(self.attributes)} attribute(s), got {len(columns)} columns."
            )
        codes = [
            cast(Alphabet, one).lookup(column)
            for one, column in zip(encodings, columns, strict=True)
        ]
        return Codes(np.column_stack(codes), encodings)

    def randomize(
        self,
        codes: ArrayLike,
        *,
        handle_unknown: Literal["error", "uniform"] = "error",
        random_state: Any = None,
    ) -> Reports:
        """Release one private report per row of codes.

        Parameters
        ----------
        codes : array-like of int of shape (n_samples, n_columns), or (n_samples,)
            Positions in the alphabet, as `encode` returns them; for cohorts, rows of cohort and
            buckets.
        handle_unknown : {"error", "uniform"}, default="error"
            What to do with the code -1: raise, or put a uniform symbol in its place before
            randomizing.
        random_state : None, int, Generator or RandomState, default=None
            None draws from a cryptographic stream. Everything else is for simulation: whoever
            knows the seed can undo the noise.

        Returns
        -------
        Reports of shape (n_samples, width)
            The reports, with this channel attached.

        Raises
        ------
        ChannelError
            If the codes carry the alphabets of another channel.
        ValueError
            If a code lies outside the alphabet.
        """
        check_choice(handle_unknown, "handle_unknown", ("error", "uniform"))
        parts = self._check_codes(codes)
        has_unknown = any(part.size and part.min() < 0 for part in parts)
        if has_unknown and handle_unknown == "error":
            raise ValueError(
                "Some values are not in the public alphabet. Add them to `categories`, or pass "
                'handle_unknown="uniform" to report a uniform symbol in their place.'
            )
        # Where a code is -1 this copies (unsigned arrays have none), so unknown ones are
        # replaced in the copy.
        narrow = [
            part.astype(one.encoding.code_dtype, copy=False)
            for one, part in zip(self.attributes, parts, strict=True)
        ]
        # Under a seed, what is randomized enters the key: other batches, folds and columns
        # draw other noise, and the same call draws the same.
        content = [part.astype(np.int64) for part in parts] if has_unknown else narrow
        stream = random_stream(random_state, "skldp.channels", self.fingerprint, *content)
        if has_unknown:
            for one, part, codes_of_part in zip(self.attributes, parts, narrow, strict=True):
                if not isinstance(one.encoding, Alphabet):
                    continue
                unknown = np.flatnonzero(part[:, 0] < 0)
                codes_of_part[unknown, 0] = random_integers(
                    one.encoding.n_categories,
                    unknown.size,
                    stream,
                    dtype=codes_of_part.dtype,
                )
        return Reports._describe(self._draw(narrow, stream), self, self.fingerprint)

    def _check_codes(self, codes: ArrayLike) -> list[NDArray[Any]]:
        """Return the codes of each attribute, shape (n, encoding.width), in range."""
        if isinstance(codes, Reports):
            raise ChannelError("These are reports: they are private already.")
        encodings = tuple(attribute.encoding for attribute in self.attributes)
        if isinstance(codes, Codes) and codes.encoding not in (None, encodings):
            raise ChannelError("The codes carry another alphabet than the channel's.")
        table = np.asarray(codes)
        widths = [encoding.width for encoding in encodings]
        if table.ndim == 1 and widths == [1]:
            table = table[:, np.newaxis]
        if table.ndim != 2 or table.shape[1] != sum(widths):
            raise ValueError(f"Expected codes of shape (n, {sum(widths)}), got {table.shape}.")
        if table.dtype.kind not in "iu":
            raise TypeError(f"Codes must be integers, got dtype {table.dtype}.")
        parts = np.split(table, np.cumsum(widths)[:-1], axis=1)
        return [one.check_codes(part) for one, part in zip(encodings, parts, strict=True)]

    def split(self, reports: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the columns of each attribute.

        Parameters
        ----------
        reports : ndarray of shape (n_reports, width)
            Reports of all attributes.

        Returns
        -------
        list of ndarray of shape (n_reports, width of the attribute)
            Views.
        """
        edges = np.cumsum([attribute.width for attribute in self.attributes])
        return np.split(np.asarray(reports), edges[:-1], axis=1)

    # -- privacy --------------------------------------------------------------------------

    @property
    def realized_epsilon(self) -> float:
        """The exact privacy loss ln `max_likelihood_ratio`, rounded to a float; <= epsilon."""
        context = Context(prec=60)
        ratio = self.max_likelihood_ratio()
        quotient = context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
        return float(context.ln(quotient))

    @property
    @abstractmethod
    def is_informative(self) -> bool:
        """Whether reports depend on the values at all; with ε = 0 they do not."""

    # -- the channel as data --------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the channel as a dictionary that JSON can hold, with its format version.

        Returns
        -------
        dict
            Parameters, the mechanism's name, and the version of the format.

        Examples
        --------
        >>> from skldp.channels import Channel, KRRChannel
        >>> channel = KRRChannel(1.0, 3)
        >>> channel.to_dict()
        {'format': 1, 'mechanism': 'krr', 'epsilon': 1.0, 'n_categories': 3, 'categories': None}
        >>> Channel.from_dict(channel.to_dict()) == channel
        True
        """
        return {"format": FORMAT, "mechanism": self.mechanism, **self._parameters()}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> "Channel":
        """Build a channel from `to_dict`.

        Parameters
        ----------
        data : mapping
            As `to_dict` returns it, or read back from JSON.

        Returns
        -------
        Channel
            Equal to the one that was stored.

        Raises
        ------
        ChannelError
            If the version or the mechanism is unknown, or entries are missing, unknown or wrong.
        """
        if not isinstance(data, Mapping):
            raise ChannelError(f"A channel's dictionary is expected, got {type(data).__name__}.")
        version = data.get("format")
        if version != FORMAT or isinstance(version, bool):
            raise ChannelError(
                f"Channel format {version!r} is unknown; this version of skldp reads {FORMAT}."
            )
        mechanism = data.get("mechanism")
        if not isinstance(mechanism, str) or mechanism not in Channel._registry:
            known = ", ".join(sorted(Channel._registry))
            raise ChannelError(f"Mechanism {mechanism!r} is unknown; known are {known}.")
        cls = Channel._registry[mechanism]
        parameters = {key: data[key] for key in data if key not in ("format", "mechanism")}
        expected = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        if parameters.keys() != expected:
            odd = ", ".join(sorted(map(repr, parameters.keys() ^ expected)))
            raise ChannelError(f"Missing or unknown entries in the channel's dictionary: {odd}.")
        try:
            return cls._from_parameters(parameters)
        except ChannelError:
            raise
        except (TypeError, ValueError, ArithmeticError) as error:
            raise ChannelError(f"The channel's dictionary is not valid: {error}") from error

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the dictionary form, 32 hexadecimal digits."""
        canonical = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return sha256(canonical.encode()).hexdigest()[:32]

    def __reduce__(self) -> Any:
        # Fields only: cached values would make equal channels pickle differently, and building
        # anew checks the parameters again.
        values = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return type(self), tuple(values)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # immutable, and alphabets can be long
