"""Where a description travels with its rows: `Reports` and `Codes`, and pandas frames.

A frame holds the dictionary in ``attrs`` (so it survives Parquet), with the names and types of the
columns, so that moved or dropped columns and most computations are noticed. pandas hands ``attrs``
on through nearly every operation, so what keeps names and types and changes numbers is not:
where that may happen, keep reports in `Reports` arrays.
"""

from typing import Any, Self

from skldp.channels._alphabet import Alphabet
from skldp.channels._arrays import Codes, Reports
from skldp.channels._base import Channel
from skldp.channels._hashing import Hashing
from skldp.exceptions import ChannelError

__all__ = ["attach_channel", "attach_encoding", "carried_channel", "carried_encoding"]

_KEY = "skldp"
_NOT_PRIVATE = (
    "X holds encoded values that no mechanism has randomized: they are not private. Put a "
    "mechanism (KRRTransformer, RapporTransformer) before the estimator."
)


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
    if len(frame.columns) != channel.width:
        raise ChannelError(
            f"The channel's reports have {channel.width} columns, the frame has "
            f"{len(frame.columns)}."
        )
    return _attach(frame, channel=channel.to_dict())


def attach_encoding(frame: Any, encoding: tuple[Alphabet | Hashing, ...]) -> Any:
    """Store an encoding in the ``attrs`` of a pandas frame of codes, and return the frame.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n_samples, sum of the widths)
        Encoded values: not private.
    encoding : tuple of Hashing
        One per attribute.

    Returns
    -------
    pandas.DataFrame
        The same object.
    """
    return _attach(frame, encoding=[one.to_dict() for one in encoding])


def _attach(frame: Any, **description: Any) -> Any:
    columns = [str(name) for name in frame.columns]
    dtypes = [str(dtype) for dtype in frame.dtypes]
    frame.attrs[_KEY] = _Shared(**description, columns=columns, dtypes=dtypes)
    return frame


def _stored(X: Any, what: str) -> Any:
    """Return what a frame holds, if it still has the columns that it was stored with."""
    stored = getattr(X, "attrs", {}).get(_KEY)
    if stored is None or what not in stored:
        return None
    names, dtypes = (X.columns, X.dtypes) if hasattr(X, "columns") else ([X.name], [X.dtype])
    if [str(name) for name in names] != stored["columns"]:
        raise ChannelError(
            f"The columns of this frame are not those its {what} was stored with: expected "
            f"{stored['columns'][:5]}... in this order. It must reach the next step as the step "
            "before returned it."
        )
    if [str(dtype) for dtype in dtypes] != stored["dtypes"]:
        raise ChannelError(
            f"The columns of this frame are of other types than when its {what} was stored, so "
            "they were computed from it. It must reach the next step as the step before returned "
            "it."
        )
    return stored[what]


def carried_encoding(X: Any) -> tuple[Alphabet | Hashing, ...] | None:
    """Return the encoding that X carries, or None if it carries none.

    Parameters
    ----------
    X : object
        `Codes`, a pandas frame, or anything else.

    Raises
    ------
    ChannelError
        If the columns of a frame are no longer those that its encoding was stored with.
    """
    if isinstance(X, Codes):
        return X.encoding
    stored = _stored(X, "encoding")
    return None if stored is None else tuple(Hashing.from_dict(one) for one in stored)


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
        raise ChannelError(_NOT_PRIVATE)
    if _stored(X, "encoding") is not None:
        raise ChannelError(_NOT_PRIVATE)
    stored = _stored(X, "channel")
    return None if stored is None else Channel.from_dict(stored)
