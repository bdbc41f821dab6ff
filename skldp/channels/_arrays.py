"""Arrays that describe themselves: `Codes` (not private) and `Reports` (private).

A report is meaningless without the channel it came through, and an estimator that guesses the
channel returns a wrong answer without an error. So the description travels with the array, but
only through operations that keep whole rows as they are: selecting rows, copying, pickling, and
concatenating rows of the same channel. Whatever else touches the numbers (arithmetic, swapping
columns, transposing) returns a plain array, from which an estimator refuses to decode.

The arrays are read-only, for an operation in place could not drop the description. Take
``np.array(reports)`` for a plain, writable copy.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from skldp.channels._alphabet import Alphabet
    from skldp.channels._base import Channel
    from skldp.channels._hashing import Hashing

__all__ = ["Codes", "Reports"]


class _DescribedArray(np.ndarray[Any, Any]):
    """An array of rows with a description that never outlives those rows."""

    _description: Any

    def __array_finalize__(self, obj: Any) -> None:
        # Every view and every result of a numpy operation passes here: start without.
        self._description = None

    @classmethod
    def _describe(cls, array: ArrayLike, description: Any, fingerprint: str) -> Self:
        plain = np.asarray(array)
        # joblib hashes an array by class, dtype and bytes but not by attributes; the fingerprint
        # in the dtype keeps a cache from returning rows of another channel.
        dtype = np.dtype(plain.dtype.str, metadata={"skldp": fingerprint})
        rows = plain.view(dtype).view(cls)
        rows._description = description
        rows.flags.writeable = False
        return rows

    def _like(self, array: Any) -> Self:
        """Describe other rows as these are described."""
        if self._description is None:
            return array.view(type(self))  # type: ignore[no-any-return]
        assert self.dtype.metadata is not None
        fingerprint = self.dtype.metadata["skldp"]
        return self._describe(_plain(array), self._description, fingerprint)

    def __getitem__(self, key: Any) -> Any:
        selected = super().__getitem__(key)
        if not isinstance(selected, _DescribedArray):
            return selected
        if selected.ndim == 2 and _selects_rows(key):
            return self._like(selected)
        return _plain(selected)

    def take(  # type: ignore[override]
        self, indices: ArrayLike, axis: int | None = None, out: Any = None, mode: str = "raise"
    ) -> Any:
        taken = _plain(self).take(indices, axis=axis, out=out, mode=mode)
        return self._like(taken) if axis == 0 and taken.ndim == 2 else taken

    def copy(self, order: Any = "C") -> Self:
        return self._like(_plain(self).copy(order=order))

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any] | None) -> Self:
        return self.copy()  # descriptions are immutable

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "at":
            raise ValueError("Reports and codes are read-only: take np.array(...) for a copy.")
        if kwargs.get("out") is not None:
            kwargs["out"] = tuple(_plain(target) for target in kwargs["out"])
        return getattr(ufunc, method)(*map(_plain, inputs), **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in _KEEPS_ROWS:
            return _KEEPS_ROWS[func](*args, **kwargs)
        return func(*_all_plain(args), **_all_plain(kwargs))

    def __reduce__(self) -> Any:
        fingerprint = (self.dtype.metadata or {}).get("skldp", "")
        return _rebuild, (type(self), _plain(self), self._description, fingerprint)


def _rebuild(cls: type, array: NDArray[Any], description: Any, fingerprint: str) -> Any:
    if description is None:
        return array.view(cls)
    return cls._describe(array, description, fingerprint)  # type: ignore[attr-defined]


def _plain(array: Any) -> Any:
    """Return the same numbers as a base ndarray whose dtype carries nothing."""
    if not isinstance(array, _DescribedArray):
        return array
    return array.view(np.ndarray).view(np.dtype(array.dtype.str))


def _selects_rows(key: Any) -> bool:
    if isinstance(key, tuple):
        if len(key) == 1:
            return _selects_rows(key[0])
        whole = key[1] is Ellipsis or (isinstance(key[1], slice) and key[1] == slice(None))
        return len(key) == 2 and whole and _selects_rows(key[0])
    # The result is known to be 2-D, so a list or an array here is an index of rows (a 2-D mask
    # would give one dimension, a 2-D index three).
    return isinstance(key, slice | list | range) or hasattr(key, "__array__") or key is Ellipsis


def _all_plain(arguments: Any) -> Any:
    """Return arguments with every described array in them, nested ones too, as plain ones."""
    if isinstance(arguments, list | tuple):
        return type(arguments)(_all_plain(one) for one in arguments)
    if isinstance(arguments, dict):
        return {key: _all_plain(one) for key, one in arguments.items()}
    return _plain(arguments)


def _concatenate(
    arrays: Iterable[Any], axis: int | None = 0, out: Any = None, **kwargs: Any
) -> Any:
    parts = list(arrays)
    joined = np.concatenate([_plain(part) for part in parts], axis=axis, out=_plain(out), **kwargs)
    first = parts[0]
    alike = isinstance(first, _DescribedArray) and all(
        type(part) is type(first)
        and part._description is not None
        and part._description == first._description
        for part in parts
    )
    same_rows = axis in (0, -2) and out is None and joined.dtype == first.dtype
    return first._like(joined) if alike and same_rows else joined


def _stack(tup: Any, **kwargs: Any) -> Any:
    described = (
        part if isinstance(part, _DescribedArray) else np.atleast_2d(part) for part in tup
    )
    return _concatenate(described, 0, **kwargs)


def _take(
    a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise"
) -> Any:
    taken = a.take if isinstance(a, _DescribedArray) and out is None else _plain(a).take
    return taken(_plain(indices), axis=axis, out=_plain(out), mode=mode)


def _split(function: Any) -> Any:
    def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
        if axis not in (0, -ary.ndim):
            return function(_plain(ary), indices_or_sections, axis)
        return [ary[rows] for rows in function(np.arange(len(ary)), indices_or_sections)]

    return split


_KEEPS_ROWS = {
    np.concatenate: _concatenate,
    np.vstack: _stack,
    np.take: _take,
    np.split: _split(np.split),
    np.array_split: _split(np.array_split),
}
"""What keeps whole rows as they are. Every other numpy function sees and returns plain arrays."""


class Codes(_DescribedArray):
    """Encoded values that are NOT private, with the alphabets that explain them.

    Parameters
    ----------
    array : array-like of int of shape (n_samples, n_attributes)
        Position of every value in its alphabet, -1 where the alphabet does not list it; for
        cohorts, columns (cohort, bucket, ...) for each attribute.
    encoding : tuple of Alphabet or Hashing
        One per attribute.

    Attributes
    ----------
    encoding : tuple of Alphabet or Hashing, or None
        None after an operation that did not keep whole rows.

    See Also
    --------
    Reports : What a mechanism releases.
    """

    def __new__(cls, array: ArrayLike, encoding: "Iterable[Alphabet | Hashing]") -> Self:
        encodings = tuple(encoding)
        rows = np.asarray(array)
        _check_shape(rows, sum(one.width for one in encodings), "codes")
        listed = "".join(one.digest for one in encodings)
        return cls._describe(rows, encodings, sha256(listed.encode()).hexdigest())

    @property
    def encoding(self) -> "tuple[Alphabet | Hashing, ...] | None":
        """The alphabets or hashings of the attributes."""
        return self._description  # type: ignore[no-any-return]


class Reports(_DescribedArray):
    """Private reports, with the channel that they came through.

    Rows may be selected, copied, pickled and concatenated (with reports of an equal channel) and
    keep their channel; every other operation returns a plain ndarray. Reports are read-only.

    Parameters
    ----------
    array : array-like of int of shape (n_reports, channel.width)
        Reports, for example read back from storage.
    channel : Channel
        The channel that released them.

    Attributes
    ----------
    channel : Channel or None
        None after an operation that did not keep whole rows.

    Raises
    ------
    ChannelError
        If the channel cannot have released these numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.channels import KRRChannel, Reports
    >>> reports = Reports([[0], [2], [1]], KRRChannel(1.0, 3))
    >>> reports[:2].channel
    KRRChannel(epsilon=1.0, n_categories=3, categories=None)
    >>> type(reports + 1).__name__
    'ndarray'
    """

    def __new__(cls, array: ArrayLike, channel: "Channel") -> Self:
        # A copy: the caller may go on to fill the same buffer with other reports.
        reports = np.array(channel.check_reports(array))
        return cls._describe(reports, channel, channel.fingerprint)

    @property
    def channel(self) -> "Channel | None":
        """The channel that released these reports."""
        return self._description  # type: ignore[no-any-return]


def _check_shape(array: NDArray[Any], n_columns: int, what: str) -> None:
    if array.ndim != 2 or array.shape[1] != n_columns:
        raise ValueError(f"Expected {what} of shape (n, {n_columns}), got {array.shape}.")
