"""Reading reports and counts: which channel they came through, and whether they can have."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from skldp.channels import AttributeChannel, Channel, Hashing, ProductChannel, as_channel
from skldp.exceptions import ChannelError

__all__ = ["check_reports", "count_vector", "resolve_channel"]


def resolve_channel(given: Any, carried: Channel | None, n_columns: int = 1) -> Channel:
    """Return the channel of reports, from the constructor's and the one that they carry.

    Parameters
    ----------
    given : Channel, dict, list of these, or None
        The constructor's ``channel``.
    carried : Channel or None
        The one attached to the reports.
    n_columns : int
        Number of columns of reports that carry none; a given channel with one column applies to
        each of several.

    Raises
    ------
    ChannelError
        If there is none, if there are two different ones, or if it carries no information.
    """
    if given is None and carried is None:
        raise ChannelError(
            "X carries no channel, and none was given: FrequencyEstimator must know how the "
            "reports were randomized. Pass it the output of a mechanism as it is; behind a step "
            "that drops it (ColumnTransformer, FeatureUnion, numpy), put one mechanism after "
            "that step. Reports from storage need channel=."
        )
    channel = carried
    if given is not None:
        channel = as_channel(given)
        n_columns = n_columns if carried is None else carried.width
        if channel.width == 1 and n_columns > 1:
            channel = ProductChannel(channel.attributes * n_columns)
        if carried is not None and carried != channel:
            raise ChannelError(
                "The reports carry another channel than the one given as channel=: "
                f"{carried} and {channel}. Leave channel= at None to use the carried one."
            )
    assert channel is not None
    if not channel.is_informative:
        raise ChannelError(
            f"With epsilon={channel.epsilon} reports do not depend on the values: nothing can be "
            "estimated from them. Use a larger epsilon."
        )
    return channel


def check_reports(estimator: Any, X: Any, channel: Channel, *, reset: bool) -> NDArray[Any]:
    """Return reports as a plain array of shape (n_reports, width) in the channel's domain."""
    if channel.width == 1 and np.ndim(X) == 1:
        X = X.to_frame() if hasattr(X, "to_frame") else np.reshape(np.asarray(X), (-1, 1))
    if np.ma.is_masked(X):
        raise ChannelError("Reports are missing: masked entries cannot be counted. Drop the rows.")
    table = validate_data(estimator, X, reset=reset, dtype="numeric")
    if table.dtype.kind in "if" and table.min() < 0:
        raise ChannelError(
            f"Negative values in data passed to {type(estimator).__name__}: reports are codes or "
            "bits."
        )
    return channel.check_reports(table)


def count_vector(counts: Any, channel: AttributeChannel) -> Any:
    """Return counts by position; a mapping or Series leaves out the codes nobody reported.

    Codes are symbols, or (cohort, bucket) for cohorts.
    """
    if hasattr(counts, "to_dict"):
        counts = counts.to_dict()
    if not isinstance(counts, Mapping):
        return counts
    encoding = channel.encoding
    if isinstance(encoding, Hashing):
        shape: tuple[int, ...] = (encoding.n_cohorts, encoding.n_buckets)
    else:
        shape = (encoding.n_categories,)
    table = np.zeros(shape, dtype=np.int64)
    for key, count in counts.items():
        codes = key if isinstance(key, tuple) else (key,)
        inside = len(codes) == len(shape) and all(
            isinstance(code, int | np.integer) and not isinstance(code, bool) and 0 <= code < size
            for code, size in zip(codes, shape, strict=True)
        )
        if not inside:
            limits = " and ".join(f"0..{size - 1}" for size in shape)
            raise ChannelError(f"Counts are keyed by the codes {limits} of the reports.")
        if not isinstance(count, int | np.integer):
            raise ChannelError("Counts are whole numbers.")
        table[codes] = count
    return table
