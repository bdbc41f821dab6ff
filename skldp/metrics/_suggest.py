"""Which mechanism, and how many buckets and cohorts: the smallest expected loss."""

from typing import Any, NamedTuple

import numpy as np

from skldp._validation import check_choice, check_epsilon, check_integer
from skldp.channels import AttributeChannel, CohortChannel, Hashing, KRRChannel, RapporChannel
from skldp.metrics._risks import expected_l1_loss, expected_l2_loss

__all__ = ["Suggestion", "compare_mechanisms", "suggest_parameters", "users_needed"]

MECHANISMS = ("k-RR", "k-RAPPOR", "O-RR", "O-RAPPOR")

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
    epsilon: Any,
    n_users: int,
    n_categories: int,
    open_alphabet: bool = True,
    *,
    mechanism: str | None = None,
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
    mechanism : {"k-RR", "k-RAPPOR", "O-RR", "O-RAPPOR"}, default=None
        The only mechanism to consider; None compares them all.

    Returns
    -------
    Suggestion
        The channel with the smallest expected loss, and that loss.

    Raises
    ------
    ChannelError
        If ε is so small that reports carry no information.
    TypeError, ValueError
        If a parameter is wrong, or the mechanism is not for an open alphabet.

    See Also
    --------
    compare_mechanisms : The best channel of every mechanism.

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
    check_choice(mechanism, "mechanism", (None, *MECHANISMS))
    suggestions = compare_mechanisms(epsilon, n_users, n_categories, open_alphabet)
    if mechanism is None:
        return min(suggestions.values(), key=lambda one: one.expected_l2_loss)
    if mechanism not in suggestions:
        raise ValueError(
            f"{mechanism} needs an alphabet that lists every value: pass open_alphabet=False, or "
            f"choose among {', '.join(suggestions)}."
        )
    return suggestions[mechanism]


def compare_mechanisms(
    epsilon: Any, n_users: int, n_categories: int, open_alphabet: bool = True
) -> dict[str, Suggestion]:
    """Return the best channel of every mechanism, by expected ℓ2² loss for uniform frequencies.

    Parameters
    ----------
    epsilon, n_users, n_categories, open_alphabet : float, int, int, bool
        As in `suggest_parameters`.

    Returns
    -------
    dict of str to Suggestion
        "k-RR" and "k-RAPPOR" (closed alphabets only), "O-RR" and "O-RAPPOR" (where the server's
        table of buckets stays below 2^30).

    Raises
    ------
    ChannelError, TypeError, ValueError
        As in `suggest_parameters`.

    Examples
    --------
    >>> from skldp.metrics import compare_mechanisms
    >>> for name, (channel, loss) in compare_mechanisms(1.0, 10**6, 64, False).items():
    ...     print(f"{name:9}{loss:.2e}")
    k-RR     1.44e-03
    k-RAPPOR 2.52e-04
    O-RR     2.71e-04
    O-RAPPOR 2.52e-04
    """
    epsilon = check_epsilon(epsilon)
    n_users = check_integer(n_users, "n_users", minimum=1)
    n_categories = check_integer(n_categories, "n_categories", minimum=2)
    alphabet = None if open_alphabet else KRRChannel(epsilon, n_categories).alphabet
    # Near e^ε + 1, and powers of two around it; beyond 2^16 buckets there is nothing to gain.
    centre = round(np.log2(np.exp(min(float(epsilon), 9.7)) + 1.0))
    krr_buckets = (2**exponent for exponent in range(max(centre - 2, 1), centre + 3))
    channels: dict[str, list[Any]] = {
        "k-RR": [],
        "k-RAPPOR": [],
        "O-RR": [
            CohortChannel.for_epsilon(
                epsilon, _with_cohorts(n_buckets, n_categories, alphabet), "krr"
            )
            for n_buckets in krr_buckets
        ],
        "O-RAPPOR": [
            CohortChannel.for_epsilon(
                epsilon, _with_cohorts(n_buckets, n_categories, alphabet), "rappor", packed=True
            )
            for n_buckets in _RAPPOR_BUCKETS
        ],
    }
    if not open_alphabet:
        channels["k-RR"].append(KRRChannel(epsilon, n_categories))
        channels["k-RAPPOR"].append(RapporChannel(epsilon, n_categories))
    uniform = np.full(n_categories, 1.0 / n_categories)
    best: dict[str, Suggestion] = {}
    for name in MECHANISMS:
        found = [
            Suggestion(channel, expected_l2_loss(channel, uniform, n_users))
            for channel in channels[name]
            if _table_size(channel, n_categories) <= _LARGEST_TABLE
        ]
        if found:
            best[name] = min(found, key=lambda one: one.expected_l2_loss)
    if not best:
        raise ValueError(
            f"{n_categories} candidates are too many: hashing them into enough cohorts takes a "
            "table of more than 2^30 buckets. Ask for fewer candidates at a time."
        )
    return best


def users_needed(channel: Any, n_categories: int, target: float, loss: str = "l1") -> int:
    """Return how many users bring the expected loss for uniform frequencies below a target.

    Parameters
    ----------
    channel : AttributeChannel
        The channel of the reports.
    n_categories : int
        Number of categories whose frequencies are wanted.
    target : float
        Loss that must not be exceeded; positive.
    loss : {"l1", "l2"}, default="l1"
        Sum of absolute errors (asymptotic), or of squared errors (exact), of the unbiased
        estimate.

    Returns
    -------
    int
        The smallest number of users.

    Raises
    ------
    ValueError
        If the target is not positive, or there are so many users that their number has more than
        18 digits.

    Examples
    --------
    >>> from skldp.channels import KRRChannel
    >>> from skldp.metrics import expected_l1_loss, users_needed
    >>> channel = KRRChannel(1.0, 10)
    >>> n_users = users_needed(channel, 10, 0.1)
    >>> n_users
    26648
    >>> expected_l1_loss(channel, [0.1] * 10, n_users) <= 0.1
    True
    """
    check_choice(loss, "loss", ("l1", "l2"))
    if isinstance(target, bool) or not target > 0:
        raise ValueError(f"target must be positive, got {target!r}.")
    expected = expected_l1_loss if loss == "l1" else expected_l2_loss
    uniform = np.full(n_categories, 1.0 / n_categories)
    low, high = 0, 1
    while expected(channel, uniform, high) > target:
        low, high = high, 2 * high
        if high > 10**18:
            raise ValueError(f"An expected loss of {target} needs more than 10**18 users.")
    while high - low > 1:  # the loss falls with the number of users
        middle = (low + high) // 2
        low, high = (
            (low, middle) if expected(channel, uniform, middle) <= target else (middle, high)
        )
    return high


def _table_size(channel: Any, n_categories: int) -> int:
    if not isinstance(channel, CohortChannel):
        return 0
    return channel.hashing.n_cohorts * n_categories


def _with_cohorts(n_buckets: int, n_categories: int, alphabet: Any) -> Hashing:
    needed = n_categories / (_LARGEST_LOAD * (n_buckets - 1))
    n_cohorts = max(2, 2 ** int(np.ceil(np.log2(needed))))
    return Hashing(n_buckets, n_cohorts, alphabet=alphabet)
