"""A decoded set of counts: everything that an estimator can be asked about them.

A `Decoding` is made in one go from a channel, its counts and the settings of that moment, and is
never changed: what an estimator shows always belongs together, whatever is set on it afterwards.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from skldp._validation import check_choice
from skldp.channels import Channel, CohortChannel, SymbolChannel
from skldp.frequency._candidates import Candidates, read_candidates
from skldp.frequency._cohorts import CohortProblem
from skldp.frequency._decode import PROJECTIONS, DecodingProblem, decode, interval
from skldp.frequency._symbols import SymbolProblem

__all__ = ["Decoding", "Settings", "read_settings"]


class Settings(NamedTuple):
    """Checked parameters of the decoding.

    Attributes
    ----------
    decoder : str
        Name of the decoder, or "auto".
    projection : str or None
        Name of the projection.
    candidates : list of Candidates
        One per attribute.
    constraints : list of callable or None
        One per attribute.
    """

    decoder: str
    projection: str | None
    candidates: list[Candidates]
    constraints: list[Callable[[Any], Any] | None]


def read_settings(estimator: Any, channel: Channel) -> Settings:
    """Return the decoding parameters of an estimator, checked against a channel.

    Raises
    ------
    ChannelError, TypeError, ValueError
        If a parameter is wrong, or does not fit the channel.
    """
    check_choice(estimator.projection, "projection", PROJECTIONS)
    candidates = read_candidates(estimator, channel)
    for attribute, listed in zip(channel.attributes, candidates, strict=True):
        cohorts = isinstance(attribute, CohortChannel)
        decoders = CohortProblem.decoders if cohorts else SymbolProblem.decoders
        check_choice(estimator.decoder, "decoder", ("auto", *decoders))
        if estimator.projection in ("simplex", "normalize") and not listed.is_complete:
            raise ValueError(
                f'projection="{estimator.projection}" would hand the frequencies of values that '
                'the candidates lack to the candidates. Use "subsimplex" (or "auto"), or declare '
                "the list complete: complete=True."
            )
    constraints = _read_constraints(estimator.constraints, len(channel.attributes))
    if any(one is not None for one in constraints) and estimator.projection == "normalize":
        raise ValueError(
            'projection="normalize" would break the constraints; use "simplex" or None.'
        )
    return Settings(estimator.decoder, estimator.projection, candidates, constraints)


def _read_constraints(given: Any, n_attributes: int) -> list[Callable[[Any], Any] | None]:
    if given is None:
        return [None] * n_attributes
    listed = list(given) if isinstance(given, list | tuple) else [given]
    if len(listed) != n_attributes:
        raise ValueError(
            f"The reports have {n_attributes} attribute(s): constraints must be a callable for "
            "one, or a list with a callable or None for each of several."
        )
    if not all(one is None or callable(one) for one in listed):
        raise TypeError("constraints must be callable: p -> a list of cvxpy constraints on p.")
    return listed


class Decoding:
    """Counts of all attributes, decoded.

    Parameters
    ----------
    channel : Channel
        Channel of the reports.
    counts, n_reports : list
        Sufficient statistics of each attribute, as `AttributeChannel.tally` returns them.
    settings : Settings
        Parameters of the decoding.
    """

    def __init__(
        self, channel: Channel, counts: list[Any], n_reports: list[Any], settings: Settings
    ) -> None:
        self._channel = channel
        self._counts = counts
        self._n_reports = n_reports
        self._candidates = settings.candidates
        self.estimates = [
            decode(
                problem,
                decoder=settings.decoder,
                projection=settings.projection,
                constraint=constraint,
            )
            for problem, constraint in zip(self._problems, settings.constraints, strict=True)
        ]

    def __getstate__(self) -> dict[str, Any]:
        # The problems hold tables of buckets that are quickly made again.
        return {name: value for name, value in self.__dict__.items() if name != "_problems"}

    @cached_property
    def _problems(self) -> list[DecodingProblem]:
        parts = zip(
            self._channel.attributes, self._candidates, self._counts, self._n_reports, strict=True
        )
        return [
            CohortProblem(channel, counts, n_reports, candidates.values, candidates.is_complete)
            if isinstance(channel, CohortChannel)
            else SymbolProblem(cast(SymbolChannel, channel), counts, n_reports)
            for channel, candidates, counts, n_reports in parts
        ]

    @property
    def categories(self) -> list[NDArray[Any]]:
        """Values whose frequencies are estimated, for each attribute."""
        return [one.values for one in self._candidates]

    @property
    def unexplained(self) -> list[float]:
        """Share of values that the categories do not list, for each attribute."""
        return [
            0.0 if listed.is_complete else float(np.clip(1.0 - estimate.raw.sum(), 0.0, 1.0))
            for listed, estimate in zip(self._candidates, self.estimates, strict=True)
        ]

    @cached_property
    def errors(self) -> list[NDArray[np.float64]]:
        """Standard errors of the raw estimates. They can cost more than the estimates."""
        return [
            np.sqrt(problem.variances(estimate.raw))
            for problem, estimate in zip(self._problems, self.estimates, strict=True)
        ]

    def intervals(self, miss: float) -> list[NDArray[np.float64]]:
        """Return intervals that each miss the truth with this probability, shapes (k, 2)."""
        parts = zip(self._problems, self.estimates, self.errors, strict=True)
        return [interval(*part, miss) for part in parts]

    def p_values(self) -> list[NDArray[np.float64]]:
        """Return p-values of "nobody has this value"; NaN where there is no standard error."""
        parts = zip(self._problems, self.estimates, self.errors, strict=True)
        return [problem.p_values(estimate.raw, errors) for problem, estimate, errors in parts]

    def log_joint(self, reports: NDArray[Any]) -> list[Iterator[tuple[Any, Any]]]:
        """Return, for each attribute, blocks of ln P(value, report) and ln P(report)."""
        parts = zip(self._problems, self._channel.split(reports), self.estimates, strict=True)
        return [
            problem.log_joint_blocks(part, estimate.frequencies)
            for problem, part, estimate in parts
        ]

    def tables(self) -> list[dict[str, Any]]:
        """Return the columns of a table for each attribute."""
        tables = []
        for number, (values, counts, estimate, errors) in enumerate(
            zip(self.categories, self._counts, self.estimates, self.errors, strict=True)
        ):
            table: dict[str, Any] = {"attribute": number, "category": values}
            if counts.ndim == 1:  # cohorts count buckets, not categories
                table["count"] = counts
            table["frequency"] = estimate.frequencies
            table["raw_frequency"] = estimate.raw
            table["standard_error"] = errors
            tables.append(table)
        return tables
