"""What a display accepts: shapes, names that match, one attribute out of several."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def checked_frequencies(frequencies: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(frequencies, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"frequencies must have shape (k,) with k >= 1, got {values.shape}.")
    return values


def checked_categories(categories: ArrayLike | None, n_categories: int) -> NDArray[Any]:
    labels = np.arange(n_categories) if categories is None else np.asarray(categories)
    if labels.shape != (n_categories,):
        raise ValueError(f"categories must have shape ({n_categories},), got {labels.shape}.")
    return labels


def checked_intervals(intervals: ArrayLike, n_categories: int) -> NDArray[np.float64]:
    ends = np.asarray(intervals, dtype=np.float64)
    if ends.shape != (n_categories, 2):
        raise ValueError(f"intervals must have shape ({n_categories}, 2), got {ends.shape}.")
    if np.any(ends[:, 0] > ends[:, 1]):
        raise ValueError("intervals must have their lower ends in the first column.")
    return ends


def checked_truth(truth: Any, categories: NDArray[Any]) -> NDArray[np.float64]:
    if hasattr(truth, "keys"):  # a mapping or a pandas Series, matched by name, not by order
        known = set(categories.tolist())
        unknown = [key for key in truth.keys() if key not in known]  # noqa: SIM118 (a Series)
        if unknown:
            raise ValueError(f"truth has categories that were not estimated: {unknown[:5]}.")
        return np.array([truth.get(name, 0.0) for name in categories.tolist()], dtype=np.float64)
    values = np.asarray(truth, dtype=np.float64)
    if values.shape != categories.shape:
        raise ValueError(f"truth must have shape {categories.shape}, got {values.shape}.")
    return values


def one_attribute(
    frequencies: Any, categories: Any, intervals: Any, attribute: int | None
) -> tuple[Any, Any, Any]:
    """Select one attribute of what an estimator holds: lists where it has several."""
    if not isinstance(frequencies, list):
        if attribute not in (None, 0):
            raise ValueError(f"attribute={attribute!r}, but the reports have one attribute only.")
        return frequencies, categories, intervals
    n_attributes = len(frequencies)
    if not isinstance(attribute, Integral) or not 0 <= attribute < n_attributes:
        raise ValueError(
            f"The reports have {n_attributes} attributes: choose one with attribute=0 to "
            f"attribute={n_attributes - 1}, got attribute={attribute!r}."
        )
    # Methods return one array for all attributes, their rows one attribute after the other.
    ends = np.cumsum([0, *(len(values) for values in frequencies)])
    rows = slice(ends[attribute], ends[attribute + 1])
    return frequencies[attribute], categories[attribute], intervals[rows]


def selection(frequencies: NDArray[np.float64], *, top: int | None, sort: bool) -> NDArray[Any]:
    """Return the indices of the bars to draw, in order; ties keep the alphabet's order."""
    if top is None and not sort:
        return np.arange(len(frequencies))
    descending = np.argsort(-frequencies, kind="stable")
    if top is None:
        return descending
    if isinstance(top, bool) or not isinstance(top, Integral) or top < 1:
        raise ValueError(f"top must be a positive integer, got {top!r}.")
    return descending[: int(top)]
