"""Errors of collaborating agents against time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from skldp._validation import check_bounds
from skldp.collaborative import ideal_means, ideal_mse, local_means, local_mse, oracle_mse
from skldp.collaborative._settings import read_settings
from skldp.plotting._style import (
    checked_curves,
    checked_positions,
    draw_curves,
    finish_axes,
    new_axes,
)
from skldp.random import simulation_generator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

__all__ = ["CollaborationDisplay"]

_FIGURE_SIZE = (6.4, 4.6)
_N_TIMES = 80
# What a curve of one of these names is compared with, drawn in grey.
_BASELINES: dict[str, dict[str, Any]] = {
    "local": {"color": "0.35", "linestyle": "--", "linewidth": 1.2},
    "ideal": {"color": "0.35", "linestyle": ":", "linewidth": 1.2},
    "oracle": {"color": "0.35", "linestyle": "-.", "linewidth": 1.2},
}


class CollaborationDisplay:
    """Mean squared error of personal means against time, on logarithmic axes.

    Errors need true means, and personal means are for the eyes of their agents: such a picture is
    one of simulations, or of data that are public anyway.

    Parameters
    ----------
    times : array-like of int of shape (n_times,)
        Numbers of steps, positive and ascending.
    errors : mapping of str to array-like of shape (n_times,)
        Mean squared error of each curve at these times; NaN leaves a gap. The names "local",
        "ideal" and "oracle" are drawn as baselines.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curves, set by :meth:`plot`.
    figure_ : matplotlib Figure
        Figure that contains the axes, set by :meth:`plot`.
    lines_ : dict of str to matplotlib Line2D
        The curves, set by :meth:`plot`.

    Raises
    ------
    ValueError
        If shapes disagree, or times are not positive and ascending.

    See Also
    --------
    skldp.OnlineCollaborativeMean : The estimator whose errors these are.
    ClassRecoveryDisplay : Who is believed to share a mean.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import OnlineCollaborativeMean
    >>> from skldp.datasets import sample_agent_streams
    >>> from skldp.plotting import CollaborationDisplay
    >>> means = np.repeat([0.2, 0.8], 20)
    >>> display = CollaborationDisplay.from_streams(
    ...     OnlineCollaborativeMean(bounds=(-1, 2), random_state=0),
    ...     sample_agent_streams(means, 1000, random_state=0),
    ...     means,
    ...     variance=0.25,
    ... )
    >>> list(display.lines_)
    ['local', 'ideal', 'oracle', 'private']
    >>> bool(display.errors["private"][-1] < display.errors["local"][-1] / 4)
    True
    """

    def __init__(self, times: ArrayLike, errors: Mapping[str, ArrayLike]) -> None:
        self.times = checked_positions(times, "times", 1)
        self.errors = checked_curves(errors, "errors", self.times.size)

    @classmethod
    def from_streams(
        cls,
        estimators: Any,
        streams: Any,
        means: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        variance: float | None = None,
        times: ArrayLike | None = None,
        ax: Axes | None = None,
        **line_kwargs: Any,
    ) -> CollaborationDisplay:
        """Run estimators over streams with known means, and draw their errors.

        Parameters
        ----------
        estimators : OnlineCollaborativeMean, or mapping of str to these
            Cloned for each run, with other noise in each, so these stay as they are. A single one
            is called "private".
        streams : array-like of shape (n_steps, n_agents), or iterable of these
            Observations of one run; NaN where there is none. Of several runs, all of the same
            shape, errors are averaged. A generator is read one run at a time.
        means : array-like of shape (n_agents,)
            True means of the agents.
        classes : array-like of shape (n_agents,), default=None
            Which agents share a mean, for the baselines. None takes agents of equal `means`.
        variance : float, default=None
            Known variance of an observation, of agents that all observe once in every step: then
            the baselines are what theory says, and "oracle" is among them, that of the first
            estimator. It needs bounds of the same width for all. None measures "local" and
            "ideal" in the streams.
        times : array-like of int of shape (n_times,), default=None
            Numbers of steps at which errors are computed, at most n_steps. None takes about 80,
            from n_steps/256.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **line_kwargs : dict
            Passed on to :meth:`matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : CollaborationDisplay
            The display that was drawn.

        Raises
        ------
        ValueError
            If there are no estimators or runs, or shapes or times do not fit.
        """
        named = estimators if isinstance(estimators, Mapping) else {"private": estimators}
        if not named or _BASELINES.keys() & named.keys():
            raise ValueError(
                "estimators must hold at least one, and none may be called "
                f"{', '.join(_BASELINES)}."
            )
        truth = np.asarray(means, dtype=np.float64)
        known = truth if classes is None else np.asarray(classes)
        if truth.ndim != 1 or truth.size == 0 or known.shape != truth.shape:
            raise ValueError(
                "means, and classes if given, must have shape (n_agents,); got shapes "
                f"{truth.shape} and {known.shape}."
            )
        # Other noise in each run: an int would give all of them the same.
        seeds = {
            name: None if one.random_state is None else simulation_generator(one.random_state)
            for name, one in named.items()
        }
        runs: list[dict[str, FloatArray]] = []
        theory: dict[str, FloatArray] = {}
        moments: NDArray[np.int64] | None = None
        shape = None
        for data in _runs(streams):
            if data.ndim != 2 or data.shape[1:] != truth.shape or len(data) == 0:
                raise ValueError(
                    f"Every stream must have shape (n_steps, {truth.size}), got {data.shape}."
                )
            if moments is None:
                shape, moments = data.shape, _checked_times(times, len(data))
                if variance is not None:
                    theory = _theory(next(iter(named.values())), moments, known, variance)
            elif data.shape != shape:
                raise ValueError(f"All streams must have the same shape {shape}.")
            errors = {}
            if variance is None:
                for name, history in (
                    ("local", local_means(data)),
                    ("ideal", ideal_means(data, known)),
                ):
                    errors[name] = _mean_square(history[moments - 1] - truth)
            for name, one in named.items():
                started = clone(one).set_params(random_state=seeds[name])
                errors[name] = _errors(started, data, truth, moments)
            runs.append(errors)
        if moments is None:
            raise ValueError("streams must hold at least one run.")
        averaged = {name: np.mean([run[name] for run in runs], axis=0) for name in runs[0]}
        return cls(moments, {**theory, **averaged}).plot(ax, **line_kwargs)

    def plot(self, ax: Axes | None = None, **line_kwargs: Any) -> CollaborationDisplay:
        """Draw, or draw once more.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **line_kwargs : dict
            Passed on to :meth:`matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : CollaborationDisplay
            The display itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = new_axes(type(self).__name__, ax, _FIGURE_SIZE)
        self.lines_ = draw_curves(ax, self.times, self.errors, line_kwargs, _BASELINES)
        ax.set_xscale("log")
        ax.set_yscale("log")
        finish_axes(ax, "time, in steps", "mean squared error")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


def _runs(streams: Any) -> Iterable[FloatArray]:
    """Return the runs one after the other; a single one may be passed as it is."""
    if hasattr(streams, "shape") and len(streams.shape) == 2:
        streams = [streams]
    return (np.asarray(one, dtype=np.float64) for one in streams)


def _checked_times(times: ArrayLike | None, n_steps: int) -> NDArray[np.int64]:
    if times is None:
        first = max(1, n_steps // 256)
        return np.unique(np.geomspace(first, n_steps, _N_TIMES).round().astype(np.int64))
    given = np.asarray(times)
    if given.ndim != 1 or given.size == 0 or not np.issubdtype(given.dtype, np.integer):
        raise ValueError("times must be a non-empty one-dimensional array of integers.")
    if given[0] < 1 or given[-1] > n_steps or np.any(np.diff(given) <= 0):
        raise ValueError(f"times must ascend, from 1 at least to {n_steps} at most.")
    return given.astype(np.int64)


def _errors(
    estimator: Any, data: FloatArray, truth: FloatArray, times: NDArray[np.int64]
) -> FloatArray:
    """Return the mean squared error of personal means at some times of one stream."""
    starts = np.append(0, times[:-1])
    estimates = [
        estimator.partial_fit(data[start:end]).means_
        for start, end in zip(starts, times, strict=True)
    ]
    return _mean_square(np.array(estimates) - truth)


def _mean_square(differences: FloatArray) -> FloatArray:
    """Average over agents; those without an observation yet do not count."""
    counted = ~np.isnan(differences)
    total = np.where(counted, differences, 0.0) ** 2
    number = counted.sum(axis=1)
    empty = np.full(len(number), np.nan)
    result: FloatArray = np.divide(total.sum(axis=1), number, out=empty, where=number > 0)
    return result


def _theory(
    estimator: Any, times: NDArray[np.int64], classes: NDArray[Any], variance: float
) -> dict[str, FloatArray]:
    """Return the errors of the baselines, averaged over agents."""
    settings = read_settings(estimator.get_params(deep=False))
    lower, upper = check_bounds(estimator.bounds, classes.size)
    widths = np.unique(upper - lower)
    if widths.size != 1:
        raise ValueError(
            "The oracle's curve needs bounds of the same width for all agents: pass "
            "variance=None to measure the baselines instead."
        )
    sizes = np.unique(classes, return_counts=True)[1]
    ideal = [ideal_mse(times, variance, size) for size in sizes]
    oracle = [
        oracle_mse(
            times,
            variance,
            size,
            settings.law,
            widths[0],
            first_block=settings.first_block,
            growth=settings.growth,
            tree=settings.release == "tree",
        )
        for size in sizes
    ]
    return {
        "local": local_mse(times, variance),
        "ideal": np.average(ideal, axis=0, weights=sizes),
        "oracle": np.average(oracle, axis=0, weights=sizes),
    }
