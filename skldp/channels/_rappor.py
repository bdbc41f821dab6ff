"""k-RAPPOR: basic one-time RAPPOR, one flipped bit vector per value.

The value becomes a one-hot row of k bits, and every bit is flipped with probability
q = F / 2^64. Rows of two values differ in two bits, so the loss is 2 ln((1 - q) / q) <= ε:
a per-bit ε instead of ε/2 would deliver twice the claim. Equations (10) and (11) of Kairouz et
al. (2016) with e^(ε/2) replaced by the realised (2^64 - F) / F.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skldp._validation import check_integer
from skldp.channels._attribute import SymbolChannel, check_count_vector, whole_reports
from skldp.channels._counting import sum_bits, sum_packed_bits
from skldp.channels._kernels import randomize_one_hot
from skldp.channels._thresholds import WORD, flip_threshold
from skldp.decoding import independent_bits_maximum_likelihood
from skldp.exceptions import ChannelError
from skldp.random import WordStream

__all__ = ["RapporChannel"]


@dataclass(frozen=True, repr=False)
class RapporChannel(SymbolChannel):
    """k-RAPPOR (basic one-time RAPPOR) over a public alphabet.

    A report is a row of k bits. It satisfies ε-local differential privacy: the probability of
    any row changes by a factor of at most e^ε when the user's value is replaced by any other one.
    The bound holds for the integer probabilities really used, see `max_likelihood_ratio`.

    Parameters
    ----------
    epsilon : float or Fraction
        Privacy-loss bound in nats, finite and >= 0; each bit spends ε/2.
    n_categories : int
        Number of symbols k, 2 to 2^32.
    categories : sequence of str or of int, default=None
        The symbols; None stands for 0..k-1.
    packed : bool, default=False
        False: k columns of 0 and 1. True: ⌈k/8⌉ columns of bytes; the bit of symbol j is bit
        j mod 8 (lowest first) of byte j // 8, and the bits after the last symbol are 0.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type or out of range.

    References
    ----------
    Kairouz, Bonawitz, Ramage (2016), Discrete distribution estimation under local privacy,
    equations (10) and (11); Erlingsson, Pihur, Korolova (2014), RAPPOR.

    Examples
    --------
    >>> from skldp.channels import RapporChannel
    >>> channel = RapporChannel(1.0, 4)
    >>> channel.randomize([0, 3, 3], random_state=0).shape
    (3, 4)
    >>> RapporChannel(1.0, 12, packed=True).width
    2
    """

    epsilon: Any
    n_categories: int
    categories: tuple[Any, ...] | None = None
    packed: bool = False

    mechanism: ClassVar[str] = "rappor"

    def __post_init__(self) -> None:
        self._check_parameters()
        if not isinstance(self.packed, bool | np.bool_):
            raise TypeError(f"packed must be a boolean, got {type(self.packed).__name__}.")
        object.__setattr__(self, "packed", bool(self.packed))

    @property
    def width(self) -> int:
        return math.ceil(self.n_categories / 8) if self.packed else self.n_categories

    @cached_property
    def _threshold(self) -> int:
        return flip_threshold(self.epsilon)

    @property
    def offset(self) -> Fraction:
        return Fraction(self._threshold, WORD)

    @property
    def slope(self) -> Fraction:
        return Fraction(WORD - 2 * self._threshold, WORD)

    def max_likelihood_ratio(self) -> Fraction:
        return Fraction(WORD - self._threshold, self._threshold) ** 2

    @property
    def _n_outputs(self) -> int:
        return 1 << self.n_categories

    def _matrix_rows(self) -> list[list[Fraction]]:
        flip, symbols = self.offset, range(self.n_categories)

        def probability(symbol: int, report: int) -> Fraction:
            flips = (report ^ (1 << symbol)).bit_count()
            return flip**flips * (1 - flip) ** (self.n_categories - flips)

        return [[probability(x, y) for y in range(self._n_outputs)] for x in symbols]

    def _draw(self, codes: Sequence[NDArray[Any]], stream: WordStream) -> NDArray[Any]:
        packed = randomize_one_hot(codes[0][:, 0], self.n_categories, self._threshold, stream)
        return packed if self.packed else self._unpack(packed)

    def _unpack(self, packed: NDArray[Any]) -> NDArray[Any]:
        return np.unpackbits(packed, axis=1, count=self.n_categories, bitorder="little")

    def check_reports(self, reports: ArrayLike) -> NDArray[Any]:
        array = whole_reports(reports, self.width, "RAPPOR")
        if not array.size:
            return array.astype(np.uint8)
        if not self.packed:
            if array.max() > 1:
                raise ChannelError(
                    "Reports of this RAPPOR channel are bits; some numbers are larger than 1, so "
                    "they come from another channel (or are packed: packed=True)."
                )
            return array.astype(np.uint8, copy=False)
        if array.max() > 255:
            raise ChannelError("Packed RAPPOR reports are bytes; some numbers exceed 255.")
        array = array.astype(np.uint8, copy=False)
        if self.n_categories % 8 and (array[:, -1] >> self.n_categories % 8).any():
            raise ChannelError(
                f"Bits beyond the {self.n_categories} symbols of this RAPPOR channel are set: "
                "the reports come from another channel."
            )
        return array

    def count(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        return sum_packed_bits(reports, self.n_categories) if self.packed else sum_bits(reports)

    def check_counts(self, counts: ArrayLike, n_reports: Any = None) -> tuple[NDArray[Any], int]:
        array = check_count_vector(counts, self.n_categories)
        if n_reports is None:
            raise ChannelError(
                "RAPPOR's counts do not tell the number of reports: pass n_reports."
            )
        total = check_integer(n_reports, "n_reports", minimum=0)
        if array.max() > total:
            raise ChannelError(f"A column of {total} reports cannot count more than {total} bits.")
        return array, total

    def log_likelihood(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        # One-hot rows differ from a row of zeros in one bit: ln P(r|j) is that of the zero row,
        # plus (2 r_j - 1) times the log odds of a bit.
        bits = self._unpack(reports) if self.packed else reports
        flip = float(self.offset)
        log_flip, log_keep = np.log(flip), np.log1p(-flip)
        ones = bits.sum(axis=1, dtype=np.int64)
        zero_row = ones * log_flip + (self.n_categories - ones) * log_keep
        odds = log_keep - log_flip
        return zero_row[:, np.newaxis] + odds * (2.0 * bits - 1.0)  # type: ignore[no-any-return]

    def maximum_likelihood(self, counts: ArrayLike, n_reports: int) -> NDArray[np.float64]:
        # The joint law of the columns has 2^k terms; this is the likelihood of the k columns as
        # if they were independent, whose maximum is consistent all the same.
        self._require_information()
        flip = float(self.offset)
        if flip == 0.5:  # an ε below 1e-15, where the float no longer tells it from none
            raise ChannelError(f"With epsilon={self.epsilon} nothing can be estimated.")
        return independent_bits_maximum_likelihood(counts, n_reports, flip)

    def covariance(self, frequencies: ArrayLike, n_reports: int) -> NDArray[np.float64]:
        # Bits are independent given the value; values make them covary: -p_i p_j / n.
        p = np.asarray(frequencies, dtype=np.float64)
        table = np.diag(self.variance(p, n_reports))
        np.copyto(table, -np.outer(p, p) / n_reports, where=~np.eye(len(p), dtype=bool))
        return table

    def _simulate(
        self, true_counts: NDArray[np.int64], n_reports: int, generator: np.random.Generator
    ) -> NDArray[np.int64]:
        flip = float(self.offset)
        kept = generator.binomial(true_counts, 1.0 - flip)
        return kept + generator.binomial(n_reports - true_counts, flip)

    def _parameters(self) -> dict[str, Any]:
        return {**super()._parameters(), "packed": self.packed}
