"""Reading columns of values from whatever holds them: arrays, lists, dataframes, series."""

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from skldp.channels import (
    Codes,
    MissingValueError,
    carried_channel,
    carried_encoding,
    check_values,
)
from skldp.exceptions import ChannelError

__all__ = ["input_names", "read_columns"]


def read_columns(estimator: Any, X: Any, *, reset: bool) -> list[NDArray[Any]]:
    """Return the columns of X one by one, each with its own type.

    Converting a frame to one array first would turn integers next to strings into objects, and
    categories into whatever numpy makes of them.

    Parameters
    ----------
    estimator : estimator
        For the checks of the number and the names of the features.
    X : array-like or dataframe of shape (n_samples, n_features), or (n_samples,)
        numpy, pandas, polars, pyarrow, or lists. One dimension means one column.
    reset : bool
        Whether to set ``n_features_in_`` and ``feature_names_in_`` (fit) or to compare with them.

    Returns
    -------
    list of ndarray of shape (n_samples,), any integer dtype or object (str)
        One per feature.

    Raises
    ------
    ChannelError
        If X holds reports: they are private already.
    TypeError, ValueError
        If X is sparse, empty, not of one or two dimensions, or holds values that are missing or
        neither strings nor integers.
    """
    name = type(estimator).__name__
    is_encoded = isinstance(X, Codes) or carried_encoding(X) is not None
    if not is_encoded and carried_channel(X) is not None:
        raise ChannelError(
            f"{name} got reports that are private already; randomizing them again would only "
            "add noise. Use one mechanism per pipeline."
        )
    if issparse(X):
        raise TypeError(f"{name} takes a dense array of values; sparse input is not supported.")
    table, columns = _as_table(X)
    n_samples = len(columns[0]) if columns else len(table)
    if not reset and len(columns) != estimator.n_features_in_ and np.ndim(X) == 1:
        raise ValueError(
            f"{name} was fitted with {estimator.n_features_in_} columns and got one dimension. "
            "Reshape your data: X.reshape(1, -1) if it is a single row."
        )
    shape = (n_samples, len(columns))
    if not columns:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required "
            f"by {name}."
        )
    if n_samples == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required "
            f"by {name}."
        )
    values = [check_values(column) for column in columns]
    validate_data(estimator, table, skip_check_array=True, reset=reset)
    return values


def _as_table(X: Any) -> tuple[Any, list[Any]]:
    """Return X as something with two dimensions, and its columns."""
    if isinstance(X, Codes):
        X = np.asarray(X)
    if hasattr(X, "iloc"):  # pandas
        frame = X.to_frame() if X.ndim == 1 else X
        return frame, [_values(frame.iloc[:, i]) for i in range(frame.shape[1])]
    if hasattr(X, "to_series"):  # polars.DataFrame
        return X, [X.to_series(i).to_numpy() for i in range(X.width)]
    if hasattr(X, "itercolumns"):  # pyarrow.Table, RecordBatch
        return X, [_values(column) for column in X.itercolumns()]
    if isinstance(X, Mapping | Set):
        raise TypeError(
            f"A {type(X).__name__} is no table of values: pass a list, an array or a dataframe."
        )
    if hasattr(X, "__array__") and not isinstance(X, np.ndarray):
        X = _values(X)
    if isinstance(X, str | bytes) or not hasattr(X, "__len__"):
        raise ValueError(
            f"Expected a 2D array, got a scalar of type {type(X).__name__} instead. Reshape your "
            "data: [[value]] is one row of one column."
        )
    if not isinstance(X, np.ndarray):
        X = _from_list(list(X))
    if X.ndim == 1:
        X = X[:, np.newaxis]
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead. Reshape your data.")
    return X, [X[:, i] for i in range(X.shape[1])]


def _values(column: Any) -> Any:
    """Return a column of a dataframe library as an array, missing values kept visible."""
    # Arrow fills the nulls of a dictionary with whatever is at hand; elsewhere missing values
    # arrive as None, NaN or NA, and are refused later.
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    n_missing = getattr(column, "null_count", 0)
    if isinstance(n_missing, int) and n_missing > 0:
        raise MissingValueError
    return np.asarray(column)


def _from_list(rows: list[Any]) -> np.ndarray:
    """Return nested or flat lists as an object array, so that every value keeps its type."""
    nested = [isinstance(row, list | tuple) or np.ndim(row) > 0 for row in rows]
    if any(nested) and not (all(nested) and len({len(row) for row in rows}) == 1):
        raise ValueError("Rows of different lengths: X must be a table or one column of values.")
    if rows and all(nested):
        table = np.empty((len(rows), len(rows[0])), dtype=object)
        for i, row in enumerate(rows):
            table[i, :] = row
        return table
    column = np.empty(len(rows), dtype=object)
    column[:] = rows
    return column


def input_names(estimator: Any, input_features: Any) -> Any:
    """Return the names of the input columns, checked like scikit-learn does."""
    known = getattr(estimator, "feature_names_in_", None)
    if input_features is None:
        return known if known is not None else [f"x{i}" for i in range(estimator.n_features_in_)]
    names = np.asarray(input_features, dtype=object)
    if known is not None and not np.array_equal(names, known):
        raise ValueError("input_features is not equal to feature_names_in_")
    if len(names) != estimator.n_features_in_:
        raise ValueError(
            "input_features should have length equal to number of features "
            f"({estimator.n_features_in_}), got {len(names)}"
        )
    return names
