"""Channels of one attribute, and what k-RR and RAPPOR share.

`AttributeChannel` is any channel of one attribute. In a `SymbolChannel` the values are the
symbols of an alphabet, and each count of reports is binomial with a mean that is linear in a
frequency, T_j ~ Binomial(n, offset + slope p_j), whatever the other counts do. That is enough
for the unbiased estimate, its variances and exact intervals.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, betaincinv

from skldp._validation import check_epsilon, check_integer, check_level
from skldp.channels._alphabet import Alphabet
from skldp.channels._base import Channel
from skldp.channels._hashing import Hashing
from skldp.exceptions import ChannelError
from skldp.random import simulation_generator

__all__ = ["AttributeChannel", "SymbolChannel", "check_count_vector", "whole_reports"]

_LARGEST_MATRIX = 2**20  # entries of an exact matrix; Python fractions cost about 100 bytes each


class AttributeChannel(Channel):
    """A channel for one attribute: what an estimator needs to know to count its reports.

    Attributes
    ----------
    encoding : Alphabet or Hashing
        How values become the codes that are randomized.
    """

    @property
    def attributes(self) -> tuple["AttributeChannel", ...]:
        return (self,)

    @property
    @abstractmethod
    def encoding(self) -> Alphabet | Hashing:
        """How values become the codes that are randomized."""

    @abstractmethod
    def tally(self, reports: NDArray[Any]) -> tuple[NDArray[np.int64], Any]:
        """Return the sufficient statistics of reports: their counts, and how many there are.

        Both add up over batches. The number of reports is an int, or an array with one for each
        cohort.
        """

    @abstractmethod
    def check_counts(self, counts: ArrayLike, n_reports: Any = None) -> tuple[NDArray[Any], Any]:
        """Return counts and numbers of reports as `tally` does.

        Raises
        ------
        ChannelError
            If so many reports of this channel cannot have these counts.
        """

    def _require_information(self) -> None:
        if not self.is_informative:
            raise ChannelError(
                f"With epsilon={self.epsilon} the reports do not depend on the values: nothing "
                "can be estimated from them. Use a larger epsilon."
            )

    def __repr__(self) -> str:
        shown = [
            f"{field.name}={_short(getattr(self, field.name))}"
            for field in fields(self)  # type: ignore[arg-type]
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


class SymbolChannel(AttributeChannel):
    """A channel over an alphabet with binomial counts, T_j ~ Binomial(n, offset + slope p_j).

    Attributes
    ----------
    n_categories : int
        Number of symbols k.
    categories : tuple of str, tuple of int, or None
        The symbols; None stands for 0..k-1.
    alphabet : Alphabet
        The public list of symbols.
    """

    n_categories: int
    categories: tuple[Any, ...] | None

    def _check_parameters(self) -> None:
        """Validate and normalise the common fields; called once, at construction."""
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        check_integer(self.n_categories, "n_categories", minimum=2)
        alphabet = Alphabet(self.n_categories, self.categories)
        object.__setattr__(self, "n_categories", alphabet.n_categories)
        object.__setattr__(self, "categories", alphabet.categories)
        self.__dict__["alphabet"] = alphabet  # spares the cached property the second check

    @cached_property
    def alphabet(self) -> Alphabet:
        """The public list of symbols."""
        return Alphabet(self.n_categories, self.categories)

    @property
    def encoding(self) -> Alphabet:
        return self.alphabet

    def tally(self, reports: NDArray[Any]) -> tuple[NDArray[np.int64], Any]:
        return self.count(reports), len(reports)

    # -- the realised probabilities -------------------------------------------------------

    @property
    @abstractmethod
    def offset(self) -> Fraction:
        """P(T_j counts a report | its value is not j), exactly."""

    @property
    @abstractmethod
    def slope(self) -> Fraction:
        """Rise of that probability when the value is j, exactly."""

    @property
    def is_informative(self) -> bool:
        return self.slope != 0

    @property
    @abstractmethod
    def _n_outputs(self) -> int:
        """Number of different reports."""

    @abstractmethod
    def _matrix_rows(self) -> list[list[Fraction]]:
        """Return P(report | value), a list per value."""

    def matrix(self) -> NDArray[Any]:
        """Return the exact probability of every report given every value.

        Returns
        -------
        ndarray of shape (n_categories, n_outputs), dtype object
            Fractions. Columns are in the order of the reports read as numbers: the symbol for
            k-RR, the bits (first bit lowest) for RAPPOR.

        Raises
        ------
        ValueError
            If the matrix has more than 2^20 entries; `max_likelihood_ratio` needs none.
        """
        if self.n_categories * self._n_outputs > _LARGEST_MATRIX:
            raise ValueError(
                "The exact matrix is too large to list; `max_likelihood_ratio` and "
                "`log_likelihood` do not need it."
            )
        return np.array(self._matrix_rows(), dtype=object)

    # -- estimation -----------------------------------------------------------------------

    @abstractmethod
    def count(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Return the sufficient statistic T of reports: ndarray of int64 of shape (k,)."""

    @abstractmethod
    def log_likelihood(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        """Return ln P(report | symbol): ndarray of shape (n_reports, k).

        Parameters
        ----------
        reports : ndarray of shape (n_reports, width)
            As `check_reports` returns them.
        """

    def unbias(self, counts: ArrayLike, n_reports: int) -> NDArray[np.float64]:
        """Return unbiased estimates of the frequencies.

        Parameters
        ----------
        counts : array-like of int of shape (..., k)
            Counts T as `count` returns them.
        n_reports : int
            Number of reports behind them, at least 1.

        Returns
        -------
        ndarray of float64 of shape (..., k)
            (T/n - offset) / slope: equations (6) and (11) of Kairouz et al. (2016) with the
            probabilities that the channel really uses. Entries may be negative.

        Raises
        ------
        ChannelError
            If the channel carries no information (ε = 0).
        """
        self._require_information()
        n_reports = check_integer(n_reports, "n_reports", minimum=1)
        observed = np.asarray(counts, dtype=np.float64) / n_reports
        return (observed - float(self.offset)) / float(self.slope)

    def _report_rates(self, frequencies: ArrayLike) -> NDArray[np.float64]:
        """Return the means m_j = offset + slope p_j, within [0, 1] up to rounding."""
        p = np.asarray(frequencies, dtype=np.float64)
        if p.ndim == 0 or p.shape[-1] != self.n_categories:
            raise ValueError(
                f"Expected frequencies of shape (..., {self.n_categories}), got {p.shape}."
            )
        return np.clip(float(self.offset) + float(self.slope) * p, 0.0, 1.0)

    def variance(self, frequencies: ArrayLike, n_reports: int) -> NDArray[np.float64]:
        """Return the variances of the unbiased estimates, the diagonal of `covariance`.

        Parameters
        ----------
        frequencies : array-like of shape (..., k)
            Frequencies p.
        n_reports : int
            Number of independent reports.

        Returns
        -------
        ndarray of float64 of shape (..., k)
            m_j (1 - m_j) / (slope² n). Their sum is the exact ℓ2² risk of Kairouz et al. (2016).
        """
        self._require_information()
        n_reports = check_integer(n_reports, "n_reports", minimum=1)
        rates = self._report_rates(frequencies)
        return rates * (1.0 - rates) / (float(self.slope) ** 2 * n_reports)

    @abstractmethod
    def covariance(self, frequencies: ArrayLike, n_reports: int) -> NDArray[np.float64]:
        """Return the covariance matrix of the unbiased estimates, shape (k, k)."""

    @abstractmethod
    def maximum_likelihood(self, counts: ArrayLike, n_reports: int) -> NDArray[np.float64]:
        """Return the most likely frequencies on the simplex.

        Parameters
        ----------
        counts : array-like of int of shape (..., k)
            Counts as `count` returns them.
        n_reports : int
            Number of reports behind them, at least 1.

        Returns
        -------
        ndarray of float64 of shape (..., k)
            Not negative, summing to 1.
        """

    def interval(
        self, counts: ArrayLike, n_reports: int, level: float = 0.95
    ) -> NDArray[np.float64]:
        """Return confidence intervals for every frequency, each at the given level.

        Counts are binomial for every channel of this kind, so the Clopper-Pearson interval for
        the rate m_j, mapped to p_j, covers at least at its level for every n, k and ε.

        Parameters
        ----------
        counts : array-like of int of shape (k,)
            Counts as `count` returns them.
        n_reports : int
            Number of reports behind them.
        level : float, default=0.95
            Coverage of each interval, strictly between 0 and 1.

        Returns
        -------
        ndarray of float64 of shape (k, 2)
            Lower and upper ends; not cut to [0, 1].
        """
        return self.interval_missing(counts, n_reports, 1.0 - check_level(level))

    def interval_missing(
        self, counts: ArrayLike, n_reports: int, miss: float
    ) -> NDArray[np.float64]:
        """Return `interval` for a probability of not covering, however small.

        Parameters
        ----------
        counts : array-like of int of shape (k,)
            Counts as `count` returns them.
        n_reports : int
            Number of reports behind them.
        miss : float
            One minus the level.

        Returns
        -------
        ndarray of float64 of shape (k, 2)
            Lower and upper ends; not cut to [0, 1].
        """
        self._require_information()
        n_reports = check_integer(n_reports, "n_reports", minimum=1)
        tail = miss / 2.0
        hits = np.asarray(counts, dtype=np.float64)
        misses = n_reports - hits
        ends = np.empty((*hits.shape, 2))
        ends[..., 0] = np.where(hits > 0, betaincinv(np.maximum(hits, 1), misses + 1, tail), 0.0)
        ends[..., 1] = np.where(
            misses > 0, betainccinv(hits + 1, np.maximum(misses, 1), tail), 1.0
        )
        return (ends - float(self.offset)) / float(self.slope)

    # -- simulation -----------------------------------------------------------------------

    @abstractmethod
    def _simulate(
        self, true_counts: NDArray[np.int64], n_reports: int, generator: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw counts given the true counts of every trial, both of shape (n_trials, k)."""

    def simulate_counts(
        self,
        counts_or_frequencies: ArrayLike,
        n_reports: int | None = None,
        n_trials: int = 1,
        random_state: Any = None,
    ) -> NDArray[np.int64]:
        """Draw the counts of simulated reports without drawing the reports: O(k) per trial.

        Parameters
        ----------
        counts_or_frequencies : array-like of shape (k,) or (n_trials, k)
            Integers: true counts of the values, the same users in every trial. Floats:
            frequencies that sum to 1, from which every trial draws its users.
        n_reports : int, default=None
            Number of users; may be left out where true counts are given.
        n_trials : int, default=1
            Number of independent trials.
        random_state : None, int, Generator or RandomState, default=None
            Source of the simulation. Nothing private is released here.

        Returns
        -------
        ndarray of int64 of shape (n_trials, k)
            Counts with the exact joint law of `count` applied to `n_reports` reports.
        """
        given = np.asarray(counts_or_frequencies)
        n_trials = check_integer(n_trials, "n_trials", minimum=1)
        shape = (n_trials, self.n_categories)
        if given.shape not in (shape, shape[1:]):
            raise ValueError(
                f"Expected counts or frequencies of shape {shape[1:]} or {shape}, "
                f"got {given.shape}."
            )
        generator = simulation_generator(random_state)
        if given.dtype.kind in "iu":
            totals = given.sum(axis=-1)
            total = int(totals.flat[0])
            if given.min() < 0 or (totals != total).any() or total < 1:
                raise ValueError("True counts must not be negative, and sum to one number >= 1.")
            if n_reports is not None and n_reports != total:
                raise ValueError(f"The true counts sum to {total}, not to n_reports={n_reports}.")
            true_counts = np.broadcast_to(given.astype(np.int64), shape)
        elif given.dtype.kind == "f":
            if n_reports is None:
                raise ValueError("Frequencies need n_reports, the number of users to simulate.")
            total = check_integer(n_reports, "n_reports", minimum=1)
            sums = given.sum(axis=-1, keepdims=True)
            if (
                not (np.isfinite(given).all() and (given >= 0).all())
                or np.abs(sums - 1).max() > 1e-6
            ):
                raise ValueError("Frequencies must not be negative, and sum to 1.")
            true_counts = generator.multinomial(total, given / sums, size=n_trials)
        else:
            raise TypeError("Counts (integers) or frequencies (floats) are expected.")
        return self._simulate(true_counts, total, generator)

    # -- the channel as data --------------------------------------------------------------

    def _parameters(self) -> dict[str, Any]:
        epsilon = self.epsilon
        return {
            "epsilon": str(epsilon) if isinstance(epsilon, Fraction) else epsilon,
            "n_categories": self.n_categories,
            "categories": None if self.categories is None else list(self.categories),
        }

    @classmethod
    def _from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        given = dict(parameters)
        if isinstance(given["epsilon"], str):
            given["epsilon"] = Fraction(given["epsilon"])
        if given["categories"] is not None:
            if not isinstance(given["categories"], list | tuple):
                raise TypeError("categories must be a list.")
            given["categories"] = tuple(given["categories"])
        return cls(**given)


def _short(value: Any) -> str:
    """Return the repr of a parameter, long alphabets shortened."""
    if isinstance(value, tuple) and len(value) > 6:
        first = ", ".join(map(repr, value[:3]))
        return f"({first}, ..., {value[-1]!r})"
    return repr(value)


def whole_reports(reports: ArrayLike, width: int, name: str) -> NDArray[Any]:
    """Return reports as an integer array of shape (n, width), or raise ChannelError."""
    if np.ma.is_masked(reports):
        raise ChannelError("Reports are missing: masked entries cannot be counted. Drop the rows.")
    array = np.asarray(reports)
    if array.ndim == 1 and width == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2 or array.shape[1] != width:
        raise ChannelError(
            f"Reports of this {name} channel have {width} column(s), got shape {array.shape}."
        )
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    elif array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            whole = array.astype(np.int64)
        if (whole != array).any():
            raise ChannelError("Reports are whole numbers; these hold fractions, NaN or infinity.")
        array = whole
    elif array.dtype.kind not in "iu":
        raise ChannelError(f"Reports are whole numbers, got dtype {array.dtype}.")
    if array.size and array.dtype.kind == "i" and array.min() < 0:
        raise ChannelError(f"Negative values in data passed to a {name} channel.")
    return array


def check_count_vector(counts: ArrayLike, n_categories: int) -> NDArray[np.int64]:
    """Return counts as int64 of shape (n_categories,); ChannelError if they are not counts."""
    array = np.asarray(counts)
    if array.shape != (n_categories,):
        raise ChannelError(f"Expected {n_categories} counts, got an array of shape {array.shape}.")
    whole = whole_reports(array, 1, "counts")[:, 0]
    if whole.sum(dtype=np.float64) >= 2.0**62:
        raise ChannelError("The counts are too large for 64 bits.")
    return whole.astype(np.int64)
