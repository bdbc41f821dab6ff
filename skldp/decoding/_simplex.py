"""Onto the probability simplex: Euclidean projection and normalisation.

The projection of ``y`` onto ``{x >= 0, sum(x) = total}`` is ``max(y - t, 0)`` for the one
threshold ``t`` with ``sum(max(y - t, 0)) = total`` (the conditions of Karush, Kuhn and Tucker
for a strictly convex problem). Everything here looks for ``t``, in coordinates shifted so that
the largest value is 0: the result does not depend on the shift, and magnitudes of 1e300 or
values near a large common offset lose nothing that the input still had.

One kernel, :func:`_threshold`, sorts and finds ``t``. Long vectors reach it through a filter
that hands over only the few values for which a comparison could not decide already.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from skldp._validation import finite_floats

FloatArray: TypeAlias = npt.NDArray[np.float64]

# Vectors at least this long are filtered before they are sorted.
_LONG = 1 << 18
# Values per block: two float64 buffers and a mask of it stay in the second-level cache.
_BLOCK = 1 << 14
# Values of a long vector that are sorted to guess the threshold, and how many of the largest
# of them set the cut above which every value is looked at.
_SAMPLE = 1 << 15
_SAMPLE_HEAD = 16
# The sum is corrected when rounding moved it by more than this, relative to the total.
_SUM_TOLERANCE = 1e-13


def project_simplex(values: npt.ArrayLike, total: float = 1.0) -> FloatArray:
    """Project onto the simplex: the closest non-negative vector with the given sum.

    Parameters
    ----------
    values : array-like of shape (..., k)
        Finite real numbers; every vector along the last axis is projected on its own.
    total : float, default=1.0
        The sum of the result, positive.

    Returns
    -------
    ndarray of shape (..., k) and dtype float64
        Non-negative vectors that sum to `total`, up to 1e-12 of it. A new array.

    Raises
    ------
    ValueError
        If `values` has no last axis, an empty one, or a value that is not a finite real
        number; or if `total` is not positive, or so large that sums of k values overflow.

    See Also
    --------
    normalize_simplex : Clip and divide by the sum instead.

    Notes
    -----
    With the values sorted, ``u[0] >= u[1] >= ...``, the number of positive entries is the
    largest j with ``u[j-1] > (u[0] + ... + u[j-1] - total) / j``, and that right-hand side is
    the threshold ``t`` of ``max(values - t, 0)`` [1]_. Vectors of more than 250,000 values are
    filtered first: one pass counts and sums the values that must be positive and collects those
    that could be, so that only a small part is sorted. The result is the same.

    References
    ----------
    .. [1] P. Kairouz, K. Bonawitz and D. Ramage, "Discrete Distribution Estimation under Local
       Privacy", ICML 2016 (the "projected" decoder); arXiv:1602.07387.

    Examples
    --------
    >>> from skldp.decoding import project_simplex
    >>> project_simplex([0.75, 0.5, -0.25])
    array([0.625, 0.375, 0.   ])
    """
    array = finite_floats(values, "values")
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError("values must have at least one entry along the last axis.")
    n_values = array.shape[-1]
    total = float(total)
    if not (total > 0 and np.isfinite(total * n_values)):
        raise ValueError(f"total must be a positive finite number, got {total!r}.")
    out = np.empty(array.shape, dtype=np.float64)
    rows = array.reshape(-1, n_values)
    out_rows = out.reshape(-1, n_values)
    if n_values >= _LONG:
        for row, out_row in zip(rows, out_rows, strict=True):
            _project_long(np.ascontiguousarray(row), total, out_row)
        return out
    n_rows = max(1, _BLOCK // n_values)
    for start in range(0, len(rows), n_rows):
        block = slice(start, start + n_rows)
        _project_rows(rows[block], total, out_rows[block])
    return out


def normalize_simplex(values: npt.ArrayLike) -> FloatArray:
    """Clip at zero and divide by the sum.

    Parameters
    ----------
    values : array-like of shape (..., k)
        Finite real numbers; every vector along the last axis is normalised on its own.

    Returns
    -------
    ndarray of shape (..., k) and dtype float64
        Non-negative vectors that sum to 1; uniform where no value is positive. A new array.

    Raises
    ------
    ValueError
        If `values` has no last axis, an empty one, or a value that is not a finite real number.

    See Also
    --------
    project_simplex : The closest point of the simplex instead.

    Notes
    -----
    The "normalized" decoder of [1]_.

    References
    ----------
    .. [1] P. Kairouz, K. Bonawitz and D. Ramage, "Discrete Distribution Estimation under Local
       Privacy", ICML 2016; arXiv:1602.07387.

    Examples
    --------
    >>> from skldp.decoding import normalize_simplex
    >>> normalize_simplex([0.75, 0.5, -0.25])
    array([0.6, 0.4, 0. ])
    >>> normalize_simplex([-1.0, 0.0])
    array([0.5, 0.5])
    """
    array = finite_floats(values, "values")
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError("values must have at least one entry along the last axis.")
    positive = np.maximum(array, 0.0)
    top = positive.max(axis=-1, keepdims=True)
    # Nothing positive: equal entries, which the division below makes uniform.
    np.copyto(positive, 1.0, where=top == 0.0)
    # Divided by the largest value first, because the plain sum of large values overflows.
    positive /= np.where(top == 0.0, 1.0, top)
    positive /= positive.sum(axis=-1, keepdims=True)
    return positive


def _threshold(
    descending: FloatArray,
    total: float,
    *,
    base_sum: float = 0.0,
    base_count: float = 0.0,
    weight: float = 1.0,
) -> FloatArray:
    """Solve ``base_sum - base_count * t + weight * sum(max(u - t, 0)) = total`` for ``t``.

    Parameters
    ----------
    descending : ndarray of shape (..., k)
        The values ``u``, sorted in descending order along the last axis.
    total : float
        The right-hand side.
    base_sum, base_count : float
        Sum and number of further values, all of them known to be above ``t``.
    weight : float
        How often each value of `descending` counts.

    Returns
    -------
    ndarray of shape (..., 1)
        The threshold of each vector.
    """
    n_values = descending.shape[-1]
    sums = np.zeros((*descending.shape[:-1], n_values + 1))
    np.cumsum(descending, axis=-1, out=sums[..., 1:])
    # Of the base and the first j values, for j = 0, ..., k: the sum to get rid of, the number.
    sums = weight * sums + (base_sum - total)
    counts = base_count + weight * np.arange(n_values + 1.0)
    n_above = np.count_nonzero(descending * counts[1:] > sums[..., 1:], axis=-1, keepdims=True)
    found: FloatArray = np.take_along_axis(sums, n_above, axis=-1) / counts[n_above]
    return found


def _project_rows(rows: FloatArray, total: float, out: FloatArray) -> None:
    """Project each row of a small matrix into `out`, by sorting."""
    with np.errstate(over="ignore"):  # 1e308 - (-1e308): far below the threshold, as is -inf.
        shifted = rows - rows.max(axis=1, keepdims=True)
    # The largest value is 0 now and alone supplies `total` at t = -total: t is not below that.
    np.maximum(shifted, -total, out=shifted)
    threshold = _threshold(np.sort(shifted, axis=1)[:, ::-1], total)
    np.subtract(shifted, threshold, out=out)
    np.maximum(out, 0.0, out=out)
    _correct_sum(out, total, out.sum(axis=1, keepdims=True))


def _correct_sum(out: FloatArray, total: float, sums: FloatArray) -> None:
    """Spread what rounding took from the sum of each row evenly over its positive entries.

    The threshold is a rounded number, and its error counts once per positive entry. Moving the
    positive entries together is the same as correcting the threshold beyond its last digit.
    """
    missing = total - sums
    rows = np.flatnonzero(np.abs(missing[:, 0]) > _SUM_TOLERANCE * total)
    for row in rows:
        positive = out[row] > 0.0
        out[row] += positive * (missing[row, 0] / np.count_nonzero(positive))
        np.maximum(out[row], 0.0, out=out[row])


def _project_long(row: FloatArray, total: float, out: FloatArray) -> None:
    """Project one long contiguous vector into `out`, sorting only what must be sorted."""
    top = float(row.max())
    with np.errstate(over="ignore"):  # As in _project_rows.
        origin, step = _long_threshold(row, top, total)
        sum_out = 0.0
        for start in range(0, row.size, _BLOCK):
            block = out[start : start + _BLOCK]
            np.subtract(row[start : start + _BLOCK], top, out=block)
            # The differences that _split summed, so that their rounding is accounted for.
            np.subtract(block, origin, out=block)
            np.subtract(block, step, out=block)
            np.maximum(block, 0.0, out=block)
            sum_out += float(block.sum())
    _correct_sum(out[np.newaxis], total, np.array([[sum_out]]))


def _long_threshold(row: FloatArray, top: float, total: float) -> tuple[float, float]:
    """Find the threshold of ``row - top`` without sorting all of it.

    A value's place relative to the threshold matters, not its rank. So: guess a narrow interval
    around the threshold from a sample, sum and count the values above the interval, collect
    those inside it, and sort these. The guess needs no luck to be correct, only to be fast:
    the pass over all values proves the interval or refutes it.

    Returns the threshold as a sum of two numbers, of which the second may be so small that
    their rounded sum would lose it.
    """
    sample = np.maximum(row[:: max(1, row.size // _SAMPLE)] - top, -total)
    sample = np.sort(sample)[::-1]
    cut = float(sample[_SAMPLE_HEAD])
    # The few largest values may hold most of the sum, and a sample misses them: take them all.
    head = _above(row, top, cut)
    if float((head - cut).sum()) >= total:  # Then the threshold is not below the cut.
        return 0.0, float(_threshold(np.sort(head)[::-1], total)[0])
    tail = sample[sample <= cut]
    scale = row.size / sample.size
    base = {"base_sum": float(head.sum()), "base_count": float(head.size)}
    guess = float(_threshold(tail, total, weight=scale, **base)[0])
    # The sample's mean excess over the threshold has a relative error of about one over the
    # square root of the number of values that exceed it; six of those, on either side.
    doubt = 6.0 / np.sqrt(1.0 + np.count_nonzero(tail > guess))
    low = float(_threshold(tail, total, weight=scale * max(0.05, 1.0 - doubt), **base)[0])
    high = float(_threshold(tail, total, weight=scale * (1.0 + doubt), **base)[0])
    inside = tail[(tail > low) & (tail <= high)]
    if inside.size and inside[0] == inside[-1]:
        # A value that many entries share, as estimates from counts do: leave it on one side.
        if guess < inside[0]:
            high = (guess + float(inside[0])) / 2
        else:
            low = float(inside[0])

    excess, n_above, between = _split(row, top, low, high)
    if excess <= total:  # The threshold is not above `high`, ...
        base = {"base_sum": excess, "base_count": float(n_above)}
        step = float(_threshold(np.sort(between)[::-1], total, **base)[0])
        if high + step >= low:  # ... and not below `low`: what was left out is not positive.
            return high, step
    # Refuted. Some bounds below hold in any case: -total, since the largest value is 0; and
    # where the excess is too large the next step of Newton's method, which cannot overshoot.
    bound = -total
    if excess > total:
        bound = max(bound, high + (excess - total) / n_above)
    return 0.0, float(_threshold(np.sort(_above(row, top, bound))[::-1], total)[0])


def _above(row: FloatArray, top: float, bound: float) -> FloatArray:
    """Collect the values of ``row - top`` that exceed `bound`."""
    found = []
    buffer = np.empty(_BLOCK)
    for start in range(0, row.size, _BLOCK):
        block = row[start : start + _BLOCK]
        shifted = np.subtract(block, top, out=buffer[: block.size])
        found.append(shifted[shifted > bound])
    return np.concatenate(found)


def _split(row: FloatArray, top: float, low: float, high: float) -> tuple[float, int, FloatArray]:
    """Compare every value of ``row - top`` with an interval.

    Returns the sum of the excesses over `high`, the number of values above `high`, and the
    values in ``(low, high]`` minus `high`.
    """
    excess, n_above, between = 0.0, 0, []
    buffer = np.empty(_BLOCK)
    for start in range(0, row.size, _BLOCK):
        block = row[start : start + _BLOCK]
        shifted = np.subtract(block, top, out=buffer[: block.size])
        # One mask and one count for what is above the interval, one for what is inside it.
        is_above = shifted > high
        n_above += int(np.count_nonzero(is_above))
        between.append(shifted[(shifted > low) & ~is_above] - high)
        np.subtract(shifted, high, out=shifted)
        np.maximum(shifted, 0.0, out=shifted)
        excess += float(shifted.sum())
    return excess, n_above, np.concatenate(between)
