"""Decoding the counts of cohorts and buckets for a list of candidates."""

import warnings
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

from skldp.channels import CohortChannel, KRRChannel, distinct_buckets
from skldp.decoding import (
    CohortSystem,
    SamplingNoise,
    cohort_maximum_likelihood,
    least_squares,
    least_squares_variances,
    project_simplex,
    project_subsimplex,
    simplex_least_squares,
)
from skldp.exceptions import DecodingWarning

__all__ = ["CohortProblem"]

_BLOCK = 2**18  # entries of a table of likelihoods that are held at a time
_NEGLIGIBLE = 0.01  # of the objective that noise leaves: what is below fits noise
_ILL_CONDITIONED = 0.8  # γ beyond which the unconstrained solution is mostly noise


class CohortProblem:
    """Counts of O-RR or O-RAPPOR reports; see `DecodingProblem`.

    Parameters
    ----------
    channel : CohortChannel
        Channel of the reports.
    counts : ndarray of int64 of shape (n_cohorts, n_buckets)
        Counts of each cohort.
    n_reports : ndarray of int64 of shape (n_cohorts,)
        Reports of each cohort.
    candidates : ndarray of shape (S,)
        Distinct values whose frequencies are wanted.
    is_complete : bool
        Whether they cover every value.
    """

    decoders = ("least_squares", "constrained_least_squares", "maximum_likelihood")

    def __init__(
        self,
        channel: CohortChannel,
        counts: NDArray[np.int64],
        n_reports: NDArray[np.int64],
        candidates: NDArray[Any],
        is_complete: bool,
    ) -> None:
        self.channel = channel
        self.n_reports = n_reports
        self.categories = candidates
        self.is_complete = is_complete
        self.shares = channel.rates(counts, n_reports)

    @property
    def _filled(self) -> float:
        """P(a given bit is set | any value): 1/k for one hash."""
        hashing = self.channel.hashing
        return 1.0 - (1.0 - 1.0 / hashing.n_buckets) ** hashing.n_hashes

    @cached_property
    def _table(self) -> NDArray[Any]:
        hashing = self.channel.hashing
        return distinct_buckets(hashing.table(self.categories), hashing.n_buckets)

    def _system(self, centre: float) -> CohortSystem:
        hashing = self.channel.hashing
        weights = np.repeat(self.n_reports[:, np.newaxis].astype(float), hashing.n_buckets, axis=1)
        return CohortSystem(self._table, hashing.n_buckets, weights, centre)

    @cached_property
    def _linear_system(self) -> CohortSystem:
        # Complete: the total of the list is 1, so the plain system says more than the centred.
        return self._system(0.0 if self.is_complete else self._filled)

    @cached_property
    def _centred_system(self) -> CohortSystem:
        return self._system(self._filled)

    @property
    def _load(self) -> float:
        """γ; permutations of a closed alphabet take one dimension less, or separate everything."""
        load, hashing = self._linear_system.load, self.channel.hashing
        if hashing.alphabet is None or hashing.n_hashes > 1:
            return load
        size = hashing.alphabet.n_categories
        return 0.0 if size <= hashing.n_buckets else load * (size - 1) / size

    def unbiased(self) -> NDArray[np.float64]:
        system = self._linear_system
        hashing = self.channel.hashing
        size, limit = system.n_candidates, system.max_rank
        advice = (
            "Use more cohorts or buckets, or fewer candidates; the decoder "
            '"constrained_least_squares" copes better.'
        )
        if size > limit:
            warnings.warn(
                f"{size} candidates are more than C={hashing.n_cohorts} cohorts of "
                f"k={hashing.n_buckets} buckets can tell apart (at most {limit}): the estimate "
                f"is the one of least norm, and has no standard errors. {advice}",
                DecodingWarning,
                stacklevel=2,
            )
        elif self._load > _ILL_CONDITIONED:
            warnings.warn(
                f"S / (C (k - 1)) = {self._load:.2f} is near 1: the candidates' buckets are "
                f"nearly dependent, and noise is amplified. {advice}",
                DecodingWarning,
                stacklevel=2,
            )
        return least_squares(system, self.shares - system.centre).p

    def nonlinear(self, decoder: str, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        system = self._centred_system
        project = project_simplex if self.is_complete else project_subsimplex
        fit = simplex_least_squares(
            system,
            self.shares - system.centre,
            sum_at_most_one=not self.is_complete,
            start=project(raw),
            negligible=self._negligible_objective(),
        )
        if decoder == "constrained_least_squares":
            return fit.p
        bucket = self.channel.bucket
        return cohort_maximum_likelihood(
            system,
            self.shares,
            self.n_reports,
            float(bucket.offset),
            float(bucket.slope),
            independent_bits=not isinstance(bucket, KRRChannel),
            sum_at_most_one=not self.is_complete,
            start=fit.p,
        )

    def _negligible_objective(self) -> float:
        """Return a small part of what least squares leaves at the truth, or 0 where it matters."""
        system = self._centred_system
        if system.n_candidates <= system.max_rank:
            return 0.0
        noise = self._noise()
        variances = np.maximum(noise.diagonal - noise.rank_one**2, 0.0)
        return _NEGLIGIBLE * 0.5 * float(variances[self.n_reports > 0].sum())

    def variances(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        system = self._linear_system
        if system.n_candidates > system.max_rank:
            return np.full(len(raw), np.nan)
        residuals = None
        if not self.is_complete:
            residuals = self.shares - system.centre - system.forward(raw)
        variances = least_squares_variances(system, self._noise(), raw, residuals)
        return np.where(np.isfinite(variances), variances, np.nan)

    def _noise(self) -> SamplingNoise:
        bucket = self.channel.bucket
        offset, slope = float(bucket.offset), float(bucket.slope)
        rates = np.clip(offset + slope * self.shares, 0.0, 1.0)
        if isinstance(bucket, KRRChannel):  # multinomial
            return SamplingNoise(rates / slope**2, rates / slope)
        inside = np.clip(self.shares, 0.0, 1.0)  # independent flips of the sampled values' bits
        return SamplingNoise(rates * (1.0 - rates) / slope**2 + inside**2, inside)

    def interval(
        self, raw: NDArray[np.float64], errors: NDArray[np.float64], miss: float
    ) -> NDArray[np.float64]:
        reach = norm.isf(miss / 2.0) * errors
        return np.column_stack([raw - reach, raw + reach])

    def p_values(
        self, raw: NDArray[np.float64], errors: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        tail: NDArray[np.float64] = norm.sf(raw / errors)
        return tail

    def log_joint_blocks(
        self, reports: NDArray[Any], frequencies: NDArray[np.float64]
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        project = project_simplex if self.is_complete else project_subsimplex
        prior = project(frequencies)
        with np.errstate(divide="ignore"):
            log_prior = np.log(prior)
            log_rest = np.log(max(1.0 - prior.sum(), 0.0)) if not self.is_complete else -np.inf
        n_rows = max(1, _BLOCK // len(prior))
        for start in range(0, len(reports), n_rows):
            joint, other = self.channel.log_likelihood(
                reports[start : start + n_rows], self._table
            )
            joint += log_prior
            total = logsumexp(joint, axis=1, keepdims=True)
            yield joint, np.logaddexp(total, (other + log_rest)[:, np.newaxis])
