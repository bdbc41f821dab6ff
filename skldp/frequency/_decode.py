"""From a decoding problem to a distribution: estimate, constrain or project, intervals."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skldp.decoding import (
    constrained_least_squares,
    normalize_simplex,
    project_simplex,
    project_subsimplex,
)

__all__ = ["PROJECTIONS", "DecodingProblem", "Estimate", "decode", "interval"]

PROJECTIONS = ("auto", "simplex", "subsimplex", "normalize", None)


class DecodingProblem(Protocol):
    """The counts of one attribute, and what can be done with them.

    There is one class for channels over an alphabet and one for cohorts; everything else in
    this package works with either.
    """

    @property
    def decoders(self) -> tuple[str, ...]:
        """Names of the decoders that apply; the first one is linear and unbiased."""

    @property
    def is_complete(self) -> bool:
        """Whether the categories cover every value."""

    @property
    def categories(self) -> NDArray[Any]:
        """Values whose frequencies are estimated, shape (k,)."""

    def unbiased(self) -> NDArray[np.float64]:
        """Return the linear estimate, shape (k,)."""

    def nonlinear(self, decoder: str, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the result of one of the other decoders."""

    def variances(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variances of the linear estimate; NaN where there are none."""

    def interval(
        self, raw: NDArray[np.float64], errors: NDArray[np.float64], miss: float
    ) -> NDArray[np.float64]:
        """Return intervals that miss with this probability each, shape (k, 2)."""

    def p_values(
        self, raw: NDArray[np.float64], errors: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return p-values of "nobody has this value"."""

    def log_joint_blocks(
        self, reports: NDArray[Any], frequencies: NDArray[np.float64]
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Yield, for blocks of reports, ln P(value, report) and ln P(report)."""


@dataclass(frozen=True)
class Estimate:
    """A decoded distribution.

    Attributes
    ----------
    raw : ndarray of shape (k,)
        Linear, unbiased estimates; they may be negative.
    frequencies : ndarray of shape (k,)
        What is returned to the user.
    is_raw : bool
        Whether `frequencies` is `raw`.
    """

    raw: NDArray[np.float64]
    frequencies: NDArray[np.float64]
    is_raw: bool


def decode(
    problem: DecodingProblem,
    *,
    decoder: str,
    projection: str | None,
    constraint: Callable[[Any], Any] | None,
) -> Estimate:
    """Estimate the distribution of one attribute."""
    raw = problem.unbiased()
    if decoder == "auto":
        decoder = problem.decoders[0]
    frequencies = raw if decoder == problem.decoders[0] else problem.nonlinear(decoder, raw)
    if projection == "auto":
        projection = "simplex" if problem.is_complete else "subsimplex"
    if constraint is not None:
        frequencies = _constrain(problem, frequencies, raw, projection, constraint)
    elif projection == "simplex":
        frequencies = project_simplex(frequencies)
    elif projection == "subsimplex":
        frequencies = project_subsimplex(frequencies)
    elif projection == "normalize":
        frequencies = normalize_simplex(frequencies)
    return Estimate(raw, frequencies, frequencies is raw)


def _constrain(
    problem: DecodingProblem,
    frequencies: NDArray[np.float64],
    raw: NDArray[np.float64],
    projection: str | None,
    constraint: Callable[[Any], Any],
) -> NDArray[np.float64]:
    variances = problem.variances(raw)
    if not np.isfinite(variances).all():
        raise ValueError(
            "constraints need the variances of the estimate, and there are none: more candidates "
            "than the cohorts can tell apart. Use more cohorts or buckets."
        )
    # A count of 0 has an estimated variance of 0: half of the smallest other one, or of the
    # mean, keeps the weights finite.
    positive = variances[variances > 0]
    floor = 0.5 * positive.min() if positive.size else 1.0

    def with_share(p: Any) -> list[Any]:
        import cvxpy as cp

        return [*constraint(p), p >= 0, cp.sum(p) <= 1]  # type: ignore[attr-defined]

    return constrained_least_squares(
        frequencies,
        1.0 / np.maximum(variances, floor),
        with_share if projection == "subsimplex" else constraint,
        simplex=projection == "simplex",
    )


def interval(
    problem: DecodingProblem, estimate: Estimate, errors: NDArray[np.float64], miss: float
) -> NDArray[np.float64]:
    """Return intervals of shape (k, 2) that cover the true frequency and hold the estimate.

    A projection moves the estimate, by a shift common to many categories that can exceed its
    standard error; an interval around the moved estimate would not cover. So the interval is the
    one from the counts, cut to [0, 1] (which loses no coverage), and extended to the returned
    frequency where that lies outside.
    """
    ends = problem.interval(estimate.raw, errors, miss)
    if estimate.is_raw:
        return ends
    ends = np.clip(ends, 0.0, 1.0)
    ends[:, 0] = np.minimum(ends[:, 0], estimate.frequencies)
    ends[:, 1] = np.maximum(ends[:, 1], estimate.frequencies)
    return ends
