"""Which mechanism, and how many buckets and cohorts: the smallest expected loss."""

from typing import Any, NamedTuple

import numpy as np

from skldp._validation import check_epsilon, check_integer
from skldp.channels import AttributeChannel, CohortChannel, Hashing, KRRChannel, RapporChannel

__all__ = ["Suggestion", "suggest_parameters"]

_LARGEST_LOAD = 0.25  # S / (C (k - 1)): beyond it the candidates' shared buckets cost a third
_LARGEST_TABLE = 2**30  # buckets of all candidates in all cohorts that a server should hold
_RAPPOR_BUCKETS = tuple(2**i for i in range(3, 13))


class Suggestion(NamedTuple):
    """A channel and its expected loss.

    Attributes
    ----------
    channel : AttributeChannel
        KRRChannel, RapporChannel, or CohortChannel.
    expected_l2_loss : float
        Expected squared ℓ2 distance between the unbiased estimate and the frequencies.
    """

    channel: AttributeChannel
    expected_l2_loss: float


def suggest_parameters(
    epsilon: Any, n_users: int, n_categories: int, open_alphabet: bool = True
) -> Suggestion:
    """Suggest a mechanism by its expected ℓ2² loss for uniform frequencies.

    Parameters
    ----------
    epsilon : float
        Privacy-loss bound of a report, greater than 0.
    n_users : int
        Number of reports.
    n_categories : int
        Number of categories whose frequencies are wanted: the alphabet, or the candidates.
    open_alphabet : bool, default=True
        Whether values outside the list can occur: O-RR and O-RAPPOR with one hash. If not, k-RR
        and k-RAPPOR are compared too, and the hashing is of the closed alphabet 0..k-1.

    Returns
    -------
    Suggestion
        The channel with the smallest expected loss, and that loss.

    Raises
    ------
    ChannelError
        If ε is so small that reports carry no information.
    TypeError, ValueError
        If a parameter is wrong.

    Notes
    -----
    For k-RR and k-RAPPOR the risks of Kairouz et al. (2016). For cohorts our own first-order
    formula, `CohortChannel.variance`: buckets in powers of two, and the smallest power of two of
    cohorts for which candidates share few buckets, S / (C (k - 1)) <= 1/4, as long as the server's
    table of S C buckets stays below 2^30. The loss is that of
    the unbiased estimate; a projection lowers it, more so where the noise is large.

    Examples
    --------
    >>> from skldp.metrics import suggest_parameters
    >>> channel, loss = suggest_parameters(4.0, 100_000, 1000)
    >>> type(channel.bucket).__name__, channel.hashing.n_buckets, channel.hashing.n_cohorts
    ('KRRChannel', 32, 256)
    """
    epsilon = check_epsilon(epsilon)
    n_users = check_integer(n_users, "n_users", minimum=1)
    n_categories = check_integer(n_categories, "n_categories", minimum=2)
    channels: list[Any] = []
    if not open_alphabet:
        channels += [KRRChannel(epsilon, n_categories), RapporChannel(epsilon, n_categories)]
    alphabet = None if open_alphabet else KRRChannel(epsilon, n_categories).alphabet
    # Near e^ε + 1, and powers of two around it.
    centre = round(np.log2(np.exp(min(float(epsilon), 20.0)) + 1.0))
    for exponent in range(max(centre - 2, 1), centre + 3):
        hashing = _with_cohorts(2**exponent, n_categories, alphabet)
        channels.append(CohortChannel.for_epsilon(epsilon, hashing, "krr"))
    for n_buckets in _RAPPOR_BUCKETS:
        hashing = _with_cohorts(n_buckets, n_categories, alphabet)
        channels.append(CohortChannel.for_epsilon(epsilon, hashing, "rappor", packed=True))
    channels = [one for one in channels if _table_size(one, n_categories) <= _LARGEST_TABLE]
    uniform = np.full(n_categories, 1.0 / n_categories)
    losses = [float(channel.variance(uniform, n_users).sum()) for channel in channels]
    best = int(np.argmin(losses))
    return Suggestion(channels[best], losses[best])


def _table_size(channel: Any, n_categories: int) -> int:
    if not isinstance(channel, CohortChannel):
        return 0
    return channel.hashing.n_cohorts * n_categories


def _with_cohorts(n_buckets: int, n_categories: int, alphabet: Any) -> Hashing:
    needed = n_categories / (_LARGEST_LOAD * (n_buckets - 1))
    n_cohorts = max(2, 2 ** int(np.ceil(np.log2(needed))))
    return Hashing(n_buckets, n_cohorts, alphabet=alphabet)
