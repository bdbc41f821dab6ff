"""Alphabets: the public list of values that a channel speaks of, and the way to their codes."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp._validation import check_integer

__all__ = ["Alphabet", "MissingValueError", "check_values"]

_LARGEST = np.iinfo(np.int64).max
MAX_CATEGORIES = 2**32  # codes are at most 32 bits wide

_HOW_TO_CONVERT = (
    "Values are strings or integers; convert them first, for example with astype(str) "
    "or, for measurements, by binning them (KBinsDiscretizer)."
)


class MissingValueError(ValueError):
    """A value is missing (None, NaN or NA)."""

    def __init__(self) -> None:
        super().__init__(
            "The input contains missing values (NaN, None or NA), and a mechanism does not guess "
            "what they mean. Drop them before privatising, or fill them with a category of "
            "their own that is part of the public alphabet."
        )


def check_values(values: Any) -> NDArray[Any]:
    """Return one column of values as integers or as an object array of str.

    Parameters
    ----------
    values : array-like of shape (n,)
        Strings or integers; floats count as integers where every one of them is whole.

    Returns
    -------
    ndarray of shape (n,), any integer dtype or object
        Integers within 64 signed bits, or Python strings.

    Raises
    ------
    MissingValueError
        If a value is None, NaN or NA. The message does not say where.
    TypeError
        If values are of another type, or strings and numbers are mixed.
    ValueError
        If a number is not whole or does not fit 64 bits.
    """
    array = _as_column(values)
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.is_masked(array):
            raise MissingValueError
        array = np.asarray(array)
    if array.ndim != 1:
        raise ValueError(f"Expected one column of values, got an array of shape {array.shape}.")
    kind = array.dtype.kind
    if kind in "iu":  # as they are: columns of bytes need no eight times as much memory
        if array.dtype.itemsize == 8 and kind == "u" and array.size and array.max() > _LARGEST:
            raise ValueError(f"Integers beyond 64 bits are not supported. {_HOW_TO_CONVERT}")
        return array
    if kind == "f":
        return _whole_numbers(array)
    if kind == "c":
        raise ValueError(f"Complex data not supported. {_HOW_TO_CONVERT}")
    if kind == "U":
        return array.astype(object)
    if kind in "OT":
        return _check_objects(array.astype(object))
    raise TypeError(f"Values of dtype {array.dtype} are not supported. {_HOW_TO_CONVERT}")


def _whole_numbers(array: NDArray[Any]) -> NDArray[np.int64]:
    if np.isnan(array).any():
        raise MissingValueError
    if np.isinf(array).any():
        raise ValueError(f"The input contains infinity (inf). {_HOW_TO_CONVERT}")
    if (np.abs(array) >= 2.0**63).any():
        raise ValueError(f"Integers beyond 64 bits are not supported. {_HOW_TO_CONVERT}")
    whole = array.astype(np.int64)
    if (whole != array).any():
        raise ValueError(f"The input contains numbers that are not whole. {_HOW_TO_CONVERT}")
    return whole


def _check_objects(array: NDArray[Any]) -> NDArray[Any]:
    types = set(map(type, array))
    if all(issubclass(kind, str) for kind in types):
        # np.str_ hashes and compares like str; plain str pickles and prints better.
        if types - {str}:
            # (str.__str__: an Enum of strings has a str() of its own, which is not the value.)
            return np.fromiter(map(str.__str__, array), dtype=object, count=array.size)
        return array
    if any(kind is type(None) or kind.__name__ in ("NAType", "NaTType") for kind in types):
        raise MissingValueError
    if any(issubclass(kind, bool | np.bool_) for kind in types):
        raise TypeError(f"Booleans are not supported. {_HOW_TO_CONVERT}")
    if any(issubclass(kind, complex | np.complexfloating) for kind in types):
        raise ValueError(f"Complex data not supported. {_HOW_TO_CONVERT}")
    if all(issubclass(kind, int | np.integer) for kind in types):
        try:
            return array.astype(np.int64)
        except OverflowError:
            raise ValueError(
                f"Integers beyond 64 bits are not supported. {_HOW_TO_CONVERT}"
            ) from None
    numeric = (int, float, np.integer, np.floating)
    if all(issubclass(kind, numeric) for kind in types):
        try:
            whole = _whole_numbers(array.astype(np.float64))
        except OverflowError:
            raise ValueError(
                f"Integers beyond 64 bits are not supported. {_HOW_TO_CONVERT}"
            ) from None
        if (whole != array).any():  # compared as Python numbers, exactly
            raise ValueError(f"Large integers among floats lose digits. {_HOW_TO_CONVERT}")
        return whole
    floats = [value for value in array if isinstance(value, float | np.floating)]
    if any(value != value for value in floats):
        raise MissingValueError
    names = ", ".join(sorted({kind.__name__ for kind in types}))
    raise TypeError(
        f"Every value, as the argument of a mechanism, must be a string or a number; got a "
        f"column of {names}. {_HOW_TO_CONVERT}"
    )


@dataclass(frozen=True)
class Alphabet:
    """The public, ordered list of values of one attribute.

    Parameters
    ----------
    n_categories : int
        Number of symbols; a channel needs at least 2.
    categories : sequence of str or of int, default=None
        The symbols, distinct and of one type; None stands for the integers
        ``0..n_categories - 1``.

    Raises
    ------
    TypeError, ValueError
        If there are no symbols, if they repeat, are missing or of several types, or
        if their number is not `n_categories`.

    Examples
    --------
    >>> from skldp.channels import Alphabet
    >>> Alphabet(3, ("red", "green", "blue")).lookup(["blue", "red", "pink"])
    array([ 2,  0, -1])
    """

    n_categories: int
    categories: tuple[str, ...] | tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        count = check_integer(self.n_categories, "n_categories", minimum=1, maximum=MAX_CATEGORIES)
        object.__setattr__(self, "n_categories", count)
        if self.categories is None:
            return
        if isinstance(self.categories, str | bytes) or not isinstance(self.categories, Iterable):
            raise TypeError("categories must be a list of strings or of integers.")
        symbols = tuple(check_values(_as_column(self.categories)).tolist())
        if len(symbols) != count:
            raise ValueError(f"n_categories is {count}, but {len(symbols)} categories are given.")
        if len(set(symbols)) != len(symbols):
            raise ValueError("categories must be distinct; some are listed more than once.")
        try:
            "".join(str(symbol) for symbol in symbols).encode()
        except UnicodeEncodeError:
            raise ValueError(
                "categories hold lone surrogates, which are no Unicode text and cannot be stored."
            ) from None
        if symbols == tuple(range(count)):
            object.__setattr__(self, "categories", None)  # one way to say it: equality and hash
        else:
            object.__setattr__(self, "categories", symbols)

    @classmethod
    def from_categories(cls, categories: Any) -> "Alphabet":
        """Build an alphabet from what users write.

        Parameters
        ----------
        categories : Alphabet, int, or sequence of str or of int
            An int k stands for 0..k-1.

        Returns
        -------
        Alphabet
            With at least two symbols.

        Raises
        ------
        TypeError, ValueError
            If it is neither, or not a valid alphabet.
        """
        if isinstance(categories, Alphabet):
            return categories
        if isinstance(categories, str | bytes) or not isinstance(categories, Iterable):
            return cls(check_integer(categories, "categories", minimum=2))
        symbols = _as_column(categories)
        if len(symbols) < 2:
            raise ValueError(
                f"An alphabet needs at least two categories, got {len(symbols)}: with fewer "
                "there is nothing to hide."
            )
        return cls(len(symbols), symbols)  # type: ignore[arg-type]

    def __getstate__(self) -> dict[str, Any]:
        return {"n_categories": self.n_categories, "categories": self.categories}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @cached_property
    def values(self) -> NDArray[Any]:
        """The symbols, ndarray of shape (n_categories,): int64, or object with str."""
        if self.categories is None:
            array = np.arange(self.n_categories)
        else:
            is_text = isinstance(self.categories[0], str)
            array = np.array(self.categories, dtype=object if is_text else np.int64)
        array.flags.writeable = False
        return array

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the alphabet, hexadecimal."""
        return sha256(json.dumps([self.n_categories, self.categories]).encode()).hexdigest()

    @cached_property
    def is_non_negative(self) -> bool:
        """Whether all symbols are integers >= 0."""
        return self.categories is None or (not self.is_text and bool(self.values.min() >= 0))

    @property
    def width(self) -> int:
        """Number of columns of encoded values."""
        return 1

    @property
    def code_dtype(self) -> Any:
        """Narrowest unsigned dtype of a code."""
        return np.min_scalar_type(self.n_categories - 1)

    def check_codes(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return codes of shape (n, 1) as they are, -1 for unlisted values included.

        Raises
        ------
        ValueError
            If a code lies outside the alphabet.
        """
        if codes.size and (codes.min() < -1 or codes.max() >= self.n_categories):
            raise ValueError(
                f"Codes must lie in 0..{self.n_categories - 1} (-1 for an unlisted value)."
            )
        return codes

    def to_dict(self) -> dict[str, Any]:
        """Return the alphabet as a dictionary that JSON can hold."""
        listed = None if self.categories is None else list(self.categories)
        return {"n_categories": self.n_categories, "categories": listed}

    @property
    def is_text(self) -> bool:
        """Whether the symbols are strings."""
        return self.categories is not None and isinstance(self.categories[0], str)

    @cached_property
    def _codes_of_text(self) -> dict[Any, int]:
        return {symbol: code for code, symbol in enumerate(self.categories or ())}

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        order = np.argsort(self.values, kind="stable")
        return self.values[order], order

    def lookup(self, values: Any) -> NDArray[Any]:
        """Return the code of every value.

        Parameters
        ----------
        values : array-like of shape (n,)
            Strings or integers (whole floats count as integers).

        Returns
        -------
        ndarray of shape (n,), integer
            Position in the alphabet, -1 for a value that it does not list. Integers 0..k-1 are
            their own codes, and are returned as they are, without a copy.

        Raises
        ------
        MissingValueError, TypeError, ValueError
            If values are missing, neither strings nor integers, or not of the alphabet's type.
        """
        column = check_values(values)
        if column.size == 0:
            return np.empty(0, dtype=np.int64)
        if (column.dtype == object) != self.is_text:
            # Not merely unknown: "3" is never 3, and with unknown values allowed a whole column
            # of the wrong type would turn to noise without a word.
            kinds = ("strings", "integers") if self.is_text else ("integers", "strings")
            raise TypeError(
                f"The alphabet lists {kinds[0]}, but the values are {kinds[1]}; convert one of "
                "them so that both are of one type."
            )
        if self.is_text:
            codes = map(self._codes_of_text.get, column, repeat(-1))
            return np.fromiter(codes, dtype=np.int64, count=column.size)
        if self.categories is None and column.min() >= 0 and column.max() < self.n_categories:
            return column
        column = column.astype(np.int64)  # -1 must fit, and unsigned 64 bits compare as floats
        if self.categories is None:
            return np.where((column >= 0) & (column < self.n_categories), column, -1)
        symbols, order = self._sorted
        position = np.minimum(np.searchsorted(symbols, column), self.n_categories - 1)
        return np.where(symbols[position] == column, order[position], -1)


def _as_column(symbols: Iterable[Any]) -> NDArray[Any]:
    """Return symbols as an array without letting numpy turn a mixture into strings."""
    if isinstance(symbols, np.ndarray):
        return symbols
    if hasattr(symbols, "__array__"):
        return np.asarray(symbols)
    listed = list(symbols)
    column = np.empty(len(listed), dtype=object)
    column[:] = listed
    return column
