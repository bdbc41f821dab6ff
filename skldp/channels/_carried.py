"""Where a channel travels with its reports: `Reports` arrays, and pandas frames.

A frame holds the channel's dictionary in ``attrs`` (so it survives Parquet), with the names and
types of the columns, so that moved or dropped columns and most computations are noticed. pandas
hands ``attrs`` on through nearly every operation, so what keeps names and types and changes
numbers is not: where that may happen, keep reports in `Reports` arrays.
"""

from typing import Any, Self

from skldp.channels._arrays import Codes, Reports
from skldp.channels._base import Channel
from skldp.exceptions import ChannelError

__all__ = ["attach_channel", "carried_channel"]

_KEY = "skldp"


class _Shared(dict[str, Any]):
    """A dictionary that pandas, which deep-copies attrs at every operation, copies for free."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def attach_channel(frame: Any, channel: Channel) -> Any:
    """Store a channel in the ``attrs`` of a pandas frame of reports, and return the frame.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n_reports, channel.width)
        Reports, for example read back from a database.
    channel : Channel
        The channel that released them.

    Returns
    -------
    pandas.DataFrame
        The same object.

    Raises
    ------
    ChannelError
        If the number of columns is not the channel's width.
    """
    columns = [str(name) for name in frame.columns]
    if len(columns) != channel.width:
        raise ChannelError(
            f"The channel's reports have {channel.width} columns, the frame has {len(columns)}."
        )
    dtypes = [str(dtype) for dtype in frame.dtypes]
    frame.attrs[_KEY] = _Shared(channel=channel.to_dict(), columns=columns, dtypes=dtypes)
    return frame


def carried_channel(X: Any) -> Channel | None:
    """Return the channel that X carries, or None if it carries none.

    Parameters
    ----------
    X : object
        `Reports`, a pandas frame or series, or anything else.

    Returns
    -------
    Channel or None
        None for data without a description.

    Raises
    ------
    ChannelError
        If X holds codes, which are not private, or if the columns of a frame are no longer those
        that its channel was stored with.
    """
    if isinstance(X, Reports):
        return X.channel
    if isinstance(X, Codes):
        raise ChannelError(
            "X holds encoded values that no mechanism has randomized: they are not private. Put "
            "a mechanism (KRRTransformer, RapporTransformer) before the estimator."
        )
    stored = getattr(X, "attrs", {}).get(_KEY)
    if stored is None:
        return None
    names, dtypes = (X.columns, X.dtypes) if hasattr(X, "columns") else ([X.name], [X.dtype])
    if [str(name) for name in names] != stored["columns"]:
        raise ChannelError(
            "The columns of this frame are not those its channel was stored with: "
            f"expected {stored['columns'][:5]}... in this order. Reports must reach the estimator "
            "as the mechanism returned them."
        )
    if [str(dtype) for dtype in dtypes] != stored["dtypes"]:
        raise ChannelError(
            "The columns of this frame are of other types than when its channel was stored, so "
            "they were computed from the reports. Reports must reach the estimator as the "
            "mechanism returned them."
        )
    return Channel.from_dict(stored["channel"])
