"""Open alphabets: a user reports a public cohort and a randomized bucket (O-RR, O-RAPPOR).

The cohort is drawn independently of the value, so it may be public. Within a cohort the value
is hashed to a bucket, which goes through k-RR, or to a Bloom filter of h bits, every bit of which
is flipped. Two filters differ in at most min(2h, k) bits, so a bit may spend ε / min(2h, k):
ignoring the number of hashes would deliver h times the claim.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skldp._validation import check_choice, check_epsilon, check_integer
from skldp.channels._attribute import AttributeChannel, whole_reports
from skldp.channels._base import Channel
from skldp.channels._cohort_variance import least_squares_variance
from skldp.channels._hashing import Hashing
from skldp.channels._kernels import randomize_codes, randomize_one_hot
from skldp.channels._krr import KRRChannel
from skldp.channels._rappor import RapporChannel
from skldp.exceptions import ChannelError
from skldp.random import WordStream, simulation_generator

__all__ = ["CohortChannel"]

_COHORT_BYTES = 4  # of a packed report, little-endian


@dataclass(frozen=True, repr=False)
class CohortChannel(AttributeChannel):
    """Hashing into cohorts and buckets, followed by k-RR (O-RR) or RAPPOR (O-RAPPOR).

    A report is (cohort, bucket) or (cohort, bits). It satisfies ε-local differential privacy for
    the value: given the cohort, which is independent of the value and public, the probability of
    any report changes by a factor of at most e^ε when the value is replaced by any other.

    Parameters
    ----------
    bucket : KRRChannel or RapporChannel
        The randomization of buckets ``0..n_buckets - 1``. With h hashes in front of RAPPOR its own
        ε (two bits) is that of the report times 2 / min(2h, k); `for_epsilon` computes it.
    hashing : Hashing
        From values to buckets.

    Attributes
    ----------
    epsilon : float or Fraction
        Privacy-loss bound of a report.

    References
    ----------
    Kairouz, Bonawitz, Ramage (2016), Discrete distribution estimation under local privacy,
    equations (15) to (18); Erlingsson, Pihur, Korolova (2014), RAPPOR. The loss for h hashes is
    our own derivation.

    Examples
    --------
    >>> from skldp.channels import CohortChannel, Hashing
    >>> channel = CohortChannel.for_epsilon(1.0, Hashing(16, n_cohorts=8), "krr")
    >>> channel.epsilon, channel.width
    (1.0, 2)
    """

    bucket: KRRChannel | RapporChannel
    hashing: Hashing

    mechanism: ClassVar[str] = "cohorts"

    def __post_init__(self) -> None:
        if not isinstance(self.bucket, KRRChannel | RapporChannel):
            raise TypeError(
                f"bucket must be a KRRChannel or RapporChannel, got {type(self.bucket).__name__}."
            )
        if not isinstance(self.hashing, Hashing):
            raise TypeError(f"hashing must be a Hashing, got {type(self.hashing).__name__}.")
        if self.bucket.categories is not None:
            raise ValueError("The bucket channel's alphabet must be 0..n_buckets - 1.")
        if self.bucket.n_categories != self.hashing.n_buckets:
            raise ValueError(
                f"The bucket channel has {self.bucket.n_categories} symbols, the hashing "
                f"{self.hashing.n_buckets} buckets."
            )
        if isinstance(self.bucket, KRRChannel) and self.hashing.n_hashes != 1:
            raise ValueError(
                f"k-RR reports one bucket: it needs n_hashes=1, got {self.hashing.n_hashes}. Use "
                "RapporTransformer behind several hashes."
            )

    @classmethod
    def for_epsilon(
        cls, epsilon: Any, hashing: Hashing, mechanism: str, *, packed: bool = False
    ) -> Self:
        """Build the channel that spends ε on a report.

        Parameters
        ----------
        epsilon : float or Fraction
            Privacy-loss bound of a report.
        hashing : Hashing
            From values to buckets.
        mechanism : {"krr", "rappor"}
            O-RR or O-RAPPOR.
        packed : bool, default=False
            For RAPPOR: the cohort as 4 bytes, little-endian, and ⌈k/8⌉ bytes of bits.
        """
        check_choice(mechanism, "mechanism", ("krr", "rappor"))
        if mechanism == "krr":
            return cls(KRRChannel(epsilon, hashing.n_buckets), hashing)
        share = Fraction(check_epsilon(epsilon)) * 2 / _n_differing_bits(hashing)
        return cls(RapporChannel(share, hashing.n_buckets, packed=packed), hashing)

    @property
    def epsilon(self) -> float | Fraction:
        """Privacy-loss bound of a report."""
        if isinstance(self.bucket, KRRChannel):
            return check_epsilon(self.bucket.epsilon)
        whole = Fraction(self.bucket.epsilon) * _n_differing_bits(self.hashing) / 2
        return check_epsilon(whole)

    @property
    def encoding(self) -> Hashing:
        return self.hashing

    @property
    def packed(self) -> bool:
        """Whether a report is a row of bytes."""
        return isinstance(self.bucket, RapporChannel) and self.bucket.packed

    @property
    def _cohort_width(self) -> int:
        return _COHORT_BYTES if self.packed else 1

    @property
    def width(self) -> int:
        return self._cohort_width + self.bucket.width

    @property
    def is_informative(self) -> bool:
        return self.bucket.is_informative

    def max_likelihood_ratio(self) -> Fraction:
        if isinstance(self.bucket, KRRChannel):
            return self.bucket.max_likelihood_ratio()
        keep = 1 - self.bucket.offset
        return (keep / self.bucket.offset) ** _n_differing_bits(self.hashing)

    def _draw(self, codes: Sequence[NDArray[Any]], stream: WordStream) -> NDArray[Any]:
        cohorts, buckets = codes[0][:, 0], codes[0][:, 1:]
        dtype = self.hashing.bucket_dtype
        if isinstance(self.bucket, KRRChannel):
            symbols = buckets[:, 0].astype(dtype, copy=False)
            drawn = randomize_codes(
                symbols, self.bucket.n_categories, self.bucket._threshold, stream
            )[:, np.newaxis]
        else:
            packed = randomize_one_hot(
                buckets.astype(dtype, copy=False),
                self.bucket.n_categories,
                self.bucket._threshold,
                stream,
            )
            drawn = packed if self.bucket.packed else self.bucket._unpack(packed)
        return np.hstack([self._write_cohorts(cohorts), drawn])

    def _write_cohorts(self, cohorts: NDArray[Any]) -> NDArray[Any]:
        if not self.packed:
            narrow = np.min_scalar_type(self.hashing.n_cohorts - 1)
            return cohorts.astype(narrow)[:, np.newaxis]
        return cohorts.astype("<u4").view(np.uint8).reshape(-1, _COHORT_BYTES)

    def _read_cohorts(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        columns = reports[:, : self._cohort_width]
        if not self.packed:
            return columns[:, 0].astype(np.int64)
        octets = np.ascontiguousarray(columns, dtype=np.uint8)
        return octets.view("<u4")[:, 0].astype(np.int64)

    def check_reports(self, reports: ArrayLike) -> NDArray[Any]:
        array = whole_reports(reports, self.width, "cohort")
        if self.packed and array.size and array.max() > 255:
            raise ChannelError("Packed reports are bytes; some numbers exceed 255.")
        # (Before the cast to signed integers: 2^64 - 1 would become -1.)
        cohorts = self._read_cohorts(array) if self.packed else array[:, 0]
        if cohorts.size and cohorts.max() >= self.hashing.n_cohorts:
            raise ChannelError(
                f"Reports of this channel begin with a cohort in 0..{self.hashing.n_cohorts - 1}; "
                "some are larger, so they come from another channel."
            )
        rest = self.bucket.check_reports(array[:, self._cohort_width :])
        return np.hstack([self._write_cohorts(cohorts), rest])

    def tally(self, reports: NDArray[Any]) -> tuple[NDArray[np.int64], Any]:
        """Return counts of shape (n_cohorts, n_buckets), and reports of shape (n_cohorts,)."""
        cohorts = self._read_cohorts(reports)
        n_cohorts, n_buckets = self.hashing.n_cohorts, self.hashing.n_buckets
        totals = np.bincount(cohorts, minlength=n_cohorts).astype(np.int64)
        rows = reports[:, self._cohort_width :]
        if isinstance(self.bucket, KRRChannel):
            cells = np.zeros(n_cohorts * n_buckets, dtype=np.int64)
            np.add.at(cells, cohorts * n_buckets + rows[:, 0], 1)
            return cells.reshape(n_cohorts, n_buckets), totals
        counts = np.zeros((n_cohorts, n_buckets), dtype=np.int64)
        # Cohort by cohort, in the order of a radix sort; the rows are copied a cohort at a time.
        order = np.argsort(cohorts, kind="stable")
        ends = np.cumsum(totals)
        for cohort in np.flatnonzero(totals):
            members = order[ends[cohort] - totals[cohort] : ends[cohort]]
            counts[cohort] = self.bucket.count(rows[members].astype(np.uint8, copy=False))
        return counts, totals

    def check_counts(self, counts: ArrayLike, n_reports: Any = None) -> tuple[NDArray[Any], Any]:
        shape = (self.hashing.n_cohorts, self.hashing.n_buckets)
        table = np.asarray(counts)
        if table.shape != shape:
            raise ChannelError(
                f"Expected counts of shape (n_cohorts, n_buckets) = {shape}, got {table.shape}."
            )
        totals = [None] * len(table) if n_reports is None else np.asarray(n_reports).tolist()
        if not isinstance(totals, list) or len(totals) != len(table):
            raise ChannelError(f"Expected n_reports for each of {len(table)} cohorts.")
        rows = [
            self.bucket.check_counts(row, total) for row, total in zip(table, totals, strict=True)
        ]
        return np.array([row for row, _ in rows]), np.array([total for _, total in rows])

    def rates(self, counts: NDArray[Any], n_reports: NDArray[Any]) -> NDArray[np.float64]:
        """Return unbiased estimates of the share of each cohort's users in each bucket.

        Equation (18) with the total n_c of each cohort in place of n/C; rows of cohorts without
        reports are 0.
        """
        self._require_information()
        totals = np.maximum(n_reports, 1)[:, np.newaxis]
        estimates = (counts / totals - float(self.bucket.offset)) / float(self.bucket.slope)
        estimates[np.asarray(n_reports) == 0] = 0.0
        return estimates  # type: ignore[no-any-return]

    def log_likelihood(
        self, reports: NDArray[Any], table: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return ln P(bucket or bits | candidate, cohort), and the same for any other value.

        Parameters
        ----------
        reports : ndarray of shape (n, width)
            As `check_reports` returns them.
        table : ndarray of shape (n_cohorts, n_hashes, S)
            The candidates' buckets, each once (`distinct_buckets`).

        Returns
        -------
        candidates : ndarray of float64 of shape (n, S)
            Log-likelihoods.
        other : ndarray of float64 of shape (n,)
            Averaged over the buckets that an unlisted value may fall into (its bits taken as
            independent).
        """
        cohorts = self._read_cohorts(reports)
        rows = reports[:, self._cohort_width :]
        offset, slope = float(self.bucket.offset), float(self.bucket.slope)
        if isinstance(self.bucket, KRRChannel):
            hits = table[cohorts, 0] == rows[:, :1]
            likelihood = np.full(hits.shape, np.log(offset))
            likelihood[hits] = np.log(offset + slope)
            mean = np.log(offset + slope / self.bucket.n_categories)
            return likelihood, np.full(len(rows), float(mean))
        bits = self.bucket._unpack(rows.astype(np.uint8)) if self.packed else rows
        log_flip, log_keep = np.log(offset), np.log1p(-offset)
        ones = bits.sum(axis=1, dtype=np.int64)
        zero_row = ones * log_flip + (bits.shape[1] - ones) * log_keep
        gains = np.zeros((len(bits), bits.shape[1] + 1))  # the last one: no further bit
        gains[:, :-1] = (log_keep - log_flip) * (2.0 * bits - 1.0)
        likelihood = np.repeat(zero_row[:, np.newaxis], table.shape[2], axis=1)
        for j in range(self.hashing.n_hashes):
            likelihood += np.take_along_axis(gains, table[cohorts, j].astype(np.intp), axis=1)
        mean = np.log(np.exp(gains[:, :-1] - log_keep + log_flip).mean(axis=1))
        other = zero_row + self.hashing.n_hashes * (mean + log_keep - log_flip)
        return likelihood, other

    def variance(self, frequencies: ArrayLike, n_reports: int) -> NDArray[np.float64]:
        """Return the variances of the least-squares estimates, averaged over hash families.

        Parameters
        ----------
        frequencies : array-like of shape (S,)
            Frequencies p of the candidates.
        n_reports : int
            Number of reports, spread evenly over the cohorts.

        Returns
        -------
        ndarray of float64 of shape (S,)
            Variances for randomly hashed candidates, to first order in their sharing of buckets:
            the diagonal of the sandwich, plus γ / (1 - γ) times its mean, γ = S / (C (k - 1)), or
            (γ - 1/C) / (1 - γ) times for a closed alphabet, with S - 1 for S; inf where there are
            more candidates than the cohorts can tell apart. Our own derivation. A closed alphabet
            behind several hashes is taken for an open one.

        Notes
        -----
        Candidates that share their buckets in every cohort, which two of an open alphabet do with
        probability ``n_buckets**-n_cohorts`` (one hash), cannot be told apart by any number of
        reports. That error is not in these variances. It matters with one cohort, and hardly with
        two.
        """
        self._require_information()
        n_reports = check_integer(n_reports, "n_reports", minimum=1)
        p = np.asarray(frequencies, dtype=np.float64)
        return least_squares_variance(self.hashing, self.bucket, p, n_reports)

    def simulate_counts(
        self,
        values: Any,
        counts_or_frequencies: ArrayLike,
        n_reports: int | None = None,
        random_state: Any = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw the counts of simulated reports without drawing the reports.

        Parameters
        ----------
        values : array-like of shape (S,)
            Distinct values of the users.
        counts_or_frequencies : array-like of shape (S,)
            Integers: how many users have each value. Floats: frequencies that sum to 1.
        n_reports : int, default=None
            Number of users; may be left out where counts are given.
        random_state : None, int, Generator or RandomState, default=None
            Source of the simulation. Nothing private is released here.

        Returns
        -------
        counts : ndarray of int64 of shape (n_cohorts, n_buckets)
            With the exact joint law of `tally`, in O(C (S + k)).
        n_reports : ndarray of int64 of shape (n_cohorts,)
            Users of each cohort.

        Raises
        ------
        TypeError, ValueError
            If counts or frequencies are not one for each value, negative, or of another sum.
        """
        generator = simulation_generator(random_state)
        table = self.hashing.table(values)
        given = np.asarray(counts_or_frequencies)
        is_count = given.dtype.kind in "iu"
        if given.shape != table.shape[2:] or not (is_count or given.dtype.kind == "f"):
            raise ValueError(
                "Expected a count (integer) or a frequency (float) for each of "
                f"{table.shape[2]} values, got shape {given.shape} and dtype {given.dtype}."
            )
        if not (given >= 0).all() or not (is_count or abs(given.sum() - 1.0) <= 1e-6):
            raise ValueError("Counts must not be negative; frequencies neither, and sum to 1.")
        if is_count and n_reports not in (None, given.sum()):
            raise ValueError(f"The counts sum to {given.sum()}, not to n_reports={n_reports}.")
        if not is_count:
            total = check_integer(n_reports, "n_reports", minimum=1)
            given = generator.multinomial(total, given / given.sum())
        n_cohorts, n_buckets = self.hashing.n_cohorts, self.hashing.n_buckets
        counts = np.zeros((n_cohorts, n_buckets), dtype=np.int64)
        totals = np.zeros(n_cohorts, dtype=np.int64)
        left = given.astype(np.int64)
        for cohort, rows in enumerate(distinct_buckets(table, n_buckets)):
            # The users of each value are split over cohorts: a multinomial, one cohort at a time.
            members = generator.binomial(left, 1.0 / (n_cohorts - cohort))
            left = left - members
            totals[cohort] = members.sum()
            inside = np.zeros(n_buckets + 1, dtype=np.int64)
            for row in rows:
                np.add.at(inside, row, members)
            counts[cohort] = self.bucket._simulate(
                inside[np.newaxis, :n_buckets], int(totals[cohort]), generator
            )[0]
        return counts, totals

    # -- the channel as data --------------------------------------------------------------

    def _parameters(self) -> dict[str, Any]:
        return {"bucket": self.bucket.to_dict(), "hashing": self.hashing.to_dict()}

    @classmethod
    def _from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        try:
            hashing = Hashing.from_dict(parameters["hashing"])
        except (KeyError, TypeError) as error:
            raise ChannelError(f"The channel's hashing is not valid: {error}") from error
        return cls(Channel.from_dict(parameters["bucket"]), hashing)  # type: ignore[arg-type]


def distinct_buckets(table: NDArray[Any], n_buckets: int) -> NDArray[Any]:
    """Return a bucket table in which a bucket hit twice by one value stands once.

    Parameters
    ----------
    table : ndarray of shape (n_cohorts, n_hashes, S)
        As `Hashing.table` returns it.

    Returns
    -------
    ndarray of the same shape
        Repetitions are replaced by `n_buckets`: a filter is a set of bits.
    """
    if table.shape[1] == 1:
        return table
    wide = table.astype(np.min_scalar_type(n_buckets))
    for j in range(1, table.shape[1]):
        repeated = (table[:, :j] == table[:, j : j + 1]).any(axis=1)
        wide[:, j][repeated] = n_buckets
    return wide


def _n_differing_bits(hashing: Hashing) -> int:
    """Return in how many bits two filters can differ."""
    return min(2 * hashing.n_hashes, hashing.n_buckets)
