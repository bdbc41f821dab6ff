"""k-ary randomized response (k-RR).

With probability r = Q / 2^64 a value is replaced by a uniform symbol, itself included; otherwise
it is reported as it is. So P(y|x) = (1 - r) [y = x] + r / k, equation (4) of Kairouz et al.
(2016) with e^ε replaced by the realised 1 + k (2^64 - Q) / Q <= e^ε.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skldp._validation import check_integer
from skldp.channels._attribute import SymbolChannel, check_count_vector, whole_reports
from skldp.channels._counting import count_codes
from skldp.channels._kernels import randomize_codes
from skldp.channels._thresholds import WORD, replacement_threshold
from skldp.decoding import krr_maximum_likelihood
from skldp.exceptions import ChannelError
from skldp.random import WordStream

__all__ = ["KRRChannel"]


@dataclass(frozen=True, repr=False)
class KRRChannel(SymbolChannel):
    """k-ary randomized response over a public alphabet.

    A report is a symbol's code 0..k-1. It satisfies ε-local differential privacy: the
    probability of any report changes by a factor of at most e^ε when the user's value is replaced
    by any other one. The bound holds for the integer probabilities really used, see
    `max_likelihood_ratio`.

    Parameters
    ----------
    epsilon : float or Fraction
        Privacy-loss bound in nats, finite and >= 0.
    n_categories : int
        Number of symbols k, 2 to 2^32.
    categories : sequence of str or of int, default=None
        The symbols; None stands for 0..k-1.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type or out of range.

    References
    ----------
    Kairouz, Bonawitz, Ramage (2016), Discrete distribution estimation under local privacy,
    equations (4) to (6).

    Examples
    --------
    >>> from skldp.channels import KRRChannel
    >>> channel = KRRChannel(1.0, 4)
    >>> reports = channel.randomize([0, 3, 3, 1], random_state=0)
    >>> reports.shape, reports.dtype
    ((4, 1), dtype('uint8'))
    >>> channel.realized_epsilon <= 1.0
    True
    """

    epsilon: Any
    n_categories: int
    categories: tuple[Any, ...] | None = None

    mechanism: ClassVar[str] = "krr"

    def __post_init__(self) -> None:
        self._check_parameters()

    @property
    def width(self) -> int:
        return 1

    @cached_property
    def _threshold(self) -> int:
        return replacement_threshold(self.epsilon, self.n_categories)

    @property
    def offset(self) -> Fraction:
        return Fraction(self._threshold, WORD * self.n_categories)

    @property
    def slope(self) -> Fraction:
        return Fraction(WORD - self._threshold, WORD)

    def max_likelihood_ratio(self) -> Fraction:
        return 1 + Fraction(self.n_categories * (WORD - self._threshold), self._threshold)

    @property
    def _n_outputs(self) -> int:
        return self.n_categories

    def _matrix_rows(self) -> list[list[Fraction]]:
        lie, truth = self.offset, self.offset + self.slope
        symbols = range(self.n_categories)
        return [[truth if y == x else lie for y in symbols] for x in symbols]

    def _draw(self, codes: Sequence[NDArray[Any]], stream: WordStream) -> NDArray[Any]:
        symbols = codes[0][:, 0]
        drawn = randomize_codes(symbols, self.n_categories, self._threshold, stream)
        return drawn[:, np.newaxis]

    def check_reports(self, reports: ArrayLike) -> NDArray[Any]:
        array = whole_reports(reports, 1, "k-RR")
        if array.size and array.max() >= self.n_categories:
            raise ChannelError(
                f"Reports of this k-RR channel are codes in 0..{self.n_categories - 1}; some are "
                "larger, so they come from another channel."
            )
        return array.astype(self.alphabet.code_dtype, copy=False)

    def count(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        return count_codes(reports[:, 0], self.n_categories)

    def check_counts(self, counts: ArrayLike, n_reports: Any = None) -> tuple[NDArray[Any], int]:
        array = check_count_vector(counts, self.n_categories)
        total = int(array.sum())
        if n_reports is not None and check_integer(n_reports, "n_reports", minimum=0) != total:
            raise ChannelError(
                f"k-RR counts sum to the number of reports; these sum to {total}, but "
                f"n_reports is {n_reports}."
            )
        return array, total

    def log_likelihood(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        table = np.full((len(reports), self.n_categories), _log(self.offset))
        table[np.arange(len(reports)), reports[:, 0]] = _log(self.offset + self.slope)
        return table

    def maximum_likelihood(self, counts: ArrayLike, n_reports: int) -> NDArray[np.float64]:
        self._require_information()
        odds_minus_one = float(self.max_likelihood_ratio() - 1)
        return krr_maximum_likelihood(counts, odds_minus_one)

    def covariance(self, frequencies: ArrayLike, n_reports: int) -> NDArray[np.float64]:
        # Counts are multinomial: (diag m - m mᵀ) / (slope² n).
        table = np.diag(self.variance(frequencies, n_reports))
        rates = self._report_rates(frequencies)
        cross = -np.outer(rates, rates) / (float(self.slope) ** 2 * n_reports)
        np.copyto(table, cross, where=~np.eye(self.n_categories, dtype=bool))
        return table

    def _simulate(
        self, true_counts: NDArray[np.int64], n_reports: int, generator: np.random.Generator
    ) -> NDArray[np.int64]:
        kept = generator.binomial(true_counts, float(self.slope))
        replaced = n_reports - kept.sum(axis=1)
        uniform = np.full(self.n_categories, 1.0 / self.n_categories)
        return kept + generator.multinomial(replaced, uniform)


def _log(probability: Fraction) -> float:
    return float(np.log(float(probability)))
