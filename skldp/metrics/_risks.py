"""The losses that theory predicts for the unbiased estimate of a channel."""

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skldp._validation import check_integer

# How far a distribution may be from a sum of 1: what float32 or printed digits lose.
_SUM_TOLERANCE = 1e-6


class SupportsVariance(Protocol):
    """What the risks need to know of a channel of one attribute."""

    def variance(self, p: Any, n_reports: Any, /) -> NDArray[np.float64]:
        """Variance of each entry of the unbiased estimate, where `p` is the truth."""


def expected_l2_loss(channel: SupportsVariance, p: ArrayLike, n_reports: int) -> float:
    """Return the expected squared Euclidean loss of the unbiased estimate.

    Parameters
    ----------
    channel : KRRChannel, RapporChannel, CohortChannel or similar
        A channel of one attribute: has ``variance(p, n_reports)``.
    p : array-like of shape (k,)
        The true distribution over the categories of the channel, or over the candidates for a
        channel with cohorts (whose sum may then be less than 1).
    n_reports : int
        The number of reports, at least 1.

    Returns
    -------
    float
        ``E[l2_loss(p, estimate)]``.

    Raises
    ------
    TypeError
        If `n_reports` is not an integer, or `channel` has several attributes.
    ValueError
        If `p` is not a distribution over ``channel.n_categories`` categories, `n_reports` is
        less than 1, or the channel carries no information (ε = 0).

    See Also
    --------
    l2_loss : The loss.
    expected_l1_loss : The same for absolute differences.

    Notes
    -----
    The estimate is unbiased, so the risk is the sum of its variances: for the k-ary mechanism
    ``(1 - sum(p**2))/n + (k-1)/n (k + 2(E-1))/(E-1)**2`` with ``E = exp(epsilon)``, and for
    RAPPOR ``(1 - sum(p**2))/n + k h/(n (h-1)**2)`` with ``h = exp(epsilon/2)``, the risks of
    [1]_. A channel states its variances at the probabilities it really uses. Projecting the
    estimate onto the simplex usually lowers the risk.

    References
    ----------
    .. [1] P. Kairouz, K. Bonawitz and D. Ramage, "Discrete Distribution Estimation under Local
       Privacy", ICML 2016; arXiv:1602.07387.

    Examples
    --------
    >>> from skldp.channels import KRRChannel
    >>> from skldp.metrics import expected_l2_loss
    >>> round(expected_l2_loss(KRRChannel(1.0, 10), [0.1] * 10, 2000), 7)
    0.0209292
    """
    return float(_variances(channel, p, n_reports).sum())


def expected_l1_loss(channel: SupportsVariance, p: ArrayLike, n_reports: int) -> float:
    """Return the expected sum of absolute errors of the unbiased estimate, for many reports.

    Parameters
    ----------
    channel : KRRChannel, RapporChannel or similar
        A channel of one attribute: has ``n_categories`` and ``variance(p, n_reports)``.
    p : array-like of shape (k,)
        The true distribution over the categories of the channel.
    n_reports : int
        The number of reports, at least 1.

    Returns
    -------
    float
        The limit of ``E[l1_loss(p, estimate)]`` for many reports.

    Raises
    ------
    TypeError
        If `n_reports` is not an integer, or `channel` has several attributes.
    ValueError
        If `p` is not a distribution over ``channel.n_categories`` categories, `n_reports` is
        less than 1, or the channel carries no information (ε = 0).

    See Also
    --------
    l1_loss : The loss.
    expected_l2_loss : The same for squares, without approximation.

    Notes
    -----
    For many reports each entry is normal, and the mean absolute value of a centred normal
    variable of variance v is ``sqrt(2 v / pi)``; their sum is the asymptotic risk of [1]_.

    References
    ----------
    .. [1] P. Kairouz, K. Bonawitz and D. Ramage, "Discrete Distribution Estimation under Local
       Privacy", ICML 2016; arXiv:1602.07387.

    Examples
    --------
    >>> from skldp.channels import KRRChannel
    >>> from skldp.metrics import expected_l1_loss
    >>> round(expected_l1_loss(KRRChannel(1.0, 10), [0.1] * 10, 2000), 6)
    0.365019
    """
    return float(np.sqrt(2.0 * _variances(channel, p, n_reports) / math.pi).sum())


def _variances(channel: SupportsVariance, p: ArrayLike, n_reports: int) -> NDArray[np.float64]:
    """Return the variance of each entry of the estimate, after checking the arguments."""
    if not hasattr(channel, "variance"):
        raise TypeError(
            "channel must be a channel of one attribute, with a method variance; got "
            f"{type(channel).__name__}. For several attributes take each of channel.attributes."
        )
    true = np.asarray(p, dtype=np.float64)
    # A channel with cohorts has no list of its own: any candidates will do.
    n_categories = getattr(channel, "n_categories", None)
    if true.ndim != 1 or (n_categories is not None and len(true) != n_categories):
        raise ValueError(
            f"p must have shape ({n_categories or 'S'},), one frequency per category of the "
            f"channel, got shape {true.shape}."
        )
    if not (np.isfinite(true).all() and (true >= 0).all()):
        raise ValueError("p must be finite and not negative.")
    missing = 1.0 - true.sum()
    if missing < -_SUM_TOLERANCE or (n_categories is not None and missing > _SUM_TOLERANCE):
        raise ValueError(f"p must sum to 1, got a sum of {true.sum()}.")
    n_reports = check_integer(n_reports, "n_reports", minimum=1)
    return np.asarray(channel.variance(true, n_reports), dtype=np.float64)
