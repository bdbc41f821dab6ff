"""Bars of estimated frequencies with their intervals and, where known, the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skldp.plotting._input import (
    checked_categories,
    checked_frequencies,
    checked_intervals,
    checked_truth,
    one_attribute,
    selection,
)
from skldp.plotting._style import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches. A bar needs this much to carry a legible label, a figure this much for the rest.
_INCHES_PER_BAR = 0.16
_INCHES_BESIDE_BARS = 1.4
_FIGURE_HEIGHT = 4.8
_FIGURE_WIDTHS = (6.4, 18.0)

# Points: the sizes of bar labels lying flat, of those standing upright, and the distance of
# upright labels where there are too many bars to label each.
_FLAT_SIZES = (8.0, 10.0)
_UPRIGHT_SIZES = (6.5, 10.0)
_SPARSE_DISTANCE = 15.0

# The width of a character and the height of a line, in units of the font size.
_CHARACTER_WIDTH = 0.68
_LINE_HEIGHT = 1.2

# From here on bars are narrower than a few pixels, and gaps between them only flicker.
_MANY_BARS = 200


class FrequencyDisplay:
    """Estimated frequencies as bars, their intervals as whiskers, the truth as markers.

    Create one with :meth:`from_estimator` or :meth:`from_frequencies`; both draw at once.
    Drawing is post-processing of estimates and spends no privacy. The truth does not come
    from reports: show it in simulations, or where the distribution is published anyway.

    Parameters
    ----------
    frequencies : array-like of shape (k,)
        Estimated relative frequencies. They may be negative or sum to something other
        than 1 if no projection was applied.
    categories : array-like of shape (k,), default=None
        Labels of the bars; ``None`` labels them 0 to k - 1.
    intervals : array-like of shape (k, 2), default=None
        Lower and upper ends of an interval for each frequency. An interval need not be
        centred at the bar, nor contain its end.
    truth : array-like of shape (k,) or mapping, default=None
        True relative frequencies: one for each category in the order of `categories`, or
        a mapping (or a pandas Series) from category to frequency, in which a category
        that is missing counts as 0.
    level : float, default=None
        Confidence level of the intervals, shown in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the bars, set by :meth:`plot`.
    figure_ : matplotlib Figure
        Figure that contains the axes, set by :meth:`plot`.
    bars_ : matplotlib BarContainer
        The bars, set by :meth:`plot`.
    intervals_ : matplotlib ErrorbarContainer or None
        The whiskers, set by :meth:`plot`.
    truth_ : matplotlib Line2D or None
        The markers of the truth, set by :meth:`plot`.

    Raises
    ------
    ValueError
        If lengths disagree, an interval is upside down, or `truth` names a category that
        is not among `categories`.

    See Also
    --------
    skldp.frequency.FrequencyEstimator : Estimates frequencies from private reports.

    Examples
    --------
    >>> from skldp.plotting import FrequencyDisplay
    >>> display = FrequencyDisplay.from_frequencies(
    ...     [0.5, 0.3, 0.2],
    ...     categories=["red", "green", "blue"],
    ...     intervals=[[0.45, 0.55], [0.26, 0.34], [0.17, 0.23]],
    ...     truth={"red": 0.48, "green": 0.31, "blue": 0.21},
    ... )
    >>> len(display.bars_)
    3
    >>> display.figure_.savefig("frequencies.png")  # doctest: +SKIP
    """

    def __init__(
        self,
        frequencies: ArrayLike,
        *,
        categories: ArrayLike | None = None,
        intervals: ArrayLike | None = None,
        truth: Any = None,
        level: float | None = None,
    ) -> None:
        self.frequencies = checked_frequencies(frequencies)
        n_categories = len(self.frequencies)
        self.categories = checked_categories(categories, n_categories)
        self.intervals = None if intervals is None else checked_intervals(intervals, n_categories)
        self.truth = None if truth is None else checked_truth(truth, self.categories)
        self.level = level

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        level: float = 0.95,
        truth: Any = None,
        attribute: int | None = None,
        top: int | None = None,
        sort: bool = False,
        ax: Axes | None = None,
        **bar_kwargs: Any,
    ) -> FrequencyDisplay:
        """Draw what a fitted frequency estimator has found.

        Parameters
        ----------
        estimator : FrequencyEstimator or Pipeline
            A fitted estimator with `frequencies_`, `categories_` and
            ``confidence_interval(level=...)``, or a fitted pipeline that ends in one.
        level : float, default=0.95
            Confidence level of the whiskers.
        truth : array-like of shape (k,) or mapping, default=None
            True relative frequencies, see :class:`FrequencyDisplay`.
        attribute : int, default=None
            Which attribute to draw if the reports have several.
        top : int, default=None
            Draw only this many categories, the most frequent by the estimate, in
            descending order.
        sort : bool, default=False
            Draw in descending order of the estimate instead of the alphabet's order.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure that is wide enough for the labels.
        **bar_kwargs : dict
            Passed on to :meth:`matplotlib.axes.Axes.bar`.

        Returns
        -------
        display : FrequencyDisplay
            The display that was drawn.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        ValueError
            If the estimator has several attributes and `attribute` does not select one.
        """
        if isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        check_is_fitted(estimator, "frequencies_")
        frequencies, categories, intervals = one_attribute(
            estimator.frequencies_,
            estimator.categories_,
            estimator.confidence_interval(level=level),
            attribute,
        )
        display = cls(
            frequencies, categories=categories, intervals=intervals, truth=truth, level=level
        )
        return display.plot(ax, top=top, sort=sort, **bar_kwargs)

    @classmethod
    def from_frequencies(
        cls,
        frequencies: ArrayLike,
        *,
        categories: ArrayLike | None = None,
        intervals: ArrayLike | None = None,
        truth: Any = None,
        level: float | None = None,
        top: int | None = None,
        sort: bool = False,
        ax: Axes | None = None,
        **bar_kwargs: Any,
    ) -> FrequencyDisplay:
        """Draw frequencies that are at hand as arrays.

        Parameters
        ----------
        frequencies : array-like of shape (k,)
            Estimated relative frequencies.
        categories : array-like of shape (k,), default=None
            Labels of the bars; ``None`` labels them 0 to k - 1.
        intervals : array-like of shape (k, 2), default=None
            Lower and upper ends of an interval for each frequency.
        truth : array-like of shape (k,) or mapping, default=None
            True relative frequencies, see :class:`FrequencyDisplay`.
        level : float, default=None
            Confidence level of the intervals, shown in the legend.
        top : int, default=None
            Draw only this many categories, the most frequent by the estimate, in
            descending order.
        sort : bool, default=False
            Draw in descending order of the estimate instead of the order given.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure that is wide enough for the labels.
        **bar_kwargs : dict
            Passed on to :meth:`matplotlib.axes.Axes.bar`.

        Returns
        -------
        display : FrequencyDisplay
            The display that was drawn.
        """
        display = cls(
            frequencies, categories=categories, intervals=intervals, truth=truth, level=level
        )
        return display.plot(ax, top=top, sort=sort, **bar_kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        top: int | None = None,
        sort: bool = False,
        **bar_kwargs: Any,
    ) -> FrequencyDisplay:
        """Draw, or draw once more.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure that is wide enough for the labels.
        top : int, default=None
            Draw only this many categories, the most frequent by the estimate, in
            descending order.
        sort : bool, default=False
            Draw in descending order of the estimate instead of the order given.
        **bar_kwargs : dict
            Passed on to :meth:`matplotlib.axes.Axes.bar`.

        Returns
        -------
        display : FrequencyDisplay
            The display itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If `top` is not a positive integer.
        """
        shown = selection(self.frequencies, top=top, sort=sort)
        plt = pyplot(type(self).__name__)
        if ax is None:
            width = np.clip(_INCHES_BESIDE_BARS + _INCHES_PER_BAR * len(shown), *_FIGURE_WIDTHS)
            _, ax = plt.subplots(figsize=(width, _FIGURE_HEIGHT), layout="constrained")

        positions = np.arange(len(shown))
        style: dict[str, Any] = {"color": "#8fb8de", "width": 0.8, "label": "estimate"}
        if len(shown) > _MANY_BARS:
            style |= {"width": 1.0, "linewidth": 0, "snap": False}
        self.bars_ = ax.bar(positions, self.frequencies[shown], **{**style, **bar_kwargs})
        self.intervals_ = self._plot_intervals(ax, positions, shown)
        self.truth_ = self._plot_truth(ax, positions, shown)

        omitted = len(self.frequencies) - len(shown)
        _label_bars(ax, self.categories[shown])
        ax.set_xlabel(f"the {len(shown)} most frequent of {len(self.frequencies)}" * bool(omitted))
        ax.set_ylabel("relative frequency")
        ax.set_axisbelow(True)
        ax.grid(axis="y", color="0.9")
        ax.spines[["top", "right"]].set_visible(False)
        if self.intervals_ is not None or self.truth_ is not None:
            _add_legend(ax)

        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    def _plot_intervals(self, ax: Axes, positions: NDArray[Any], shown: NDArray[Any]) -> Any:
        if self.intervals is None:
            return None
        # Drawn around their own middle: an interval need not contain the end of its bar.
        lower, upper = self.intervals[shown].T
        return ax.errorbar(
            positions,
            (lower + upper) / 2,
            yerr=(upper - lower) / 2,
            fmt="none",
            ecolor="#33475b",
            elinewidth=1.2,
            capsize=3.0 if len(shown) <= 32 else 1.2,
            label="interval" if self.level is None else f"{self.level:.4g} interval",
        )

    def _plot_truth(self, ax: Axes, positions: NDArray[Any], shown: NDArray[Any]) -> Any:
        if self.truth is None:
            return None
        (markers,) = ax.plot(
            positions,
            self.truth[shown],
            linestyle="none",
            marker="D",
            markersize=5.5 if len(shown) <= 32 else 3.5,
            markerfacecolor="#d1495b",
            markeredgecolor="white",
            markeredgewidth=0.6,
            zorder=3,
            label="truth",
        )
        return markers


def _label_bars(ax: Axes, categories: NDArray[Any]) -> None:
    """Label as many bars as stay legible: flat, else upright, else some of them."""
    names = [str(name) for name in categories.tolist()]
    bars = len(names)
    room = _width_in_points(ax) / bars
    flat = room / (_CHARACTER_WIDTH * (1 + max(len(name) for name in names)))
    upright = room / _LINE_HEIGHT
    step = 1
    if flat >= _FLAT_SIZES[0]:
        size, rotation = min(flat, _FLAT_SIZES[1]), 0
    else:
        size, rotation = float(np.clip(upright, *_UPRIGHT_SIZES)), 90
        if upright < _UPRIGHT_SIZES[0]:
            step = int(np.ceil(_SPARSE_DISTANCE / room))
    # Dollar signs in names are no mathematics.
    ax.set_xticks(
        np.arange(0, bars, step), names[::step], rotation=rotation, fontsize=size, parse_math=False
    )
    ax.set_xlim(-0.8, bars - 0.2)


def _width_in_points(ax: Axes) -> float:
    return float(ax.get_window_extent().width / ax.figure.dpi * 72)


def _add_legend(ax: Axes) -> None:
    """Put the legend into one line above the bars, or where it fits in narrow axes."""
    if _width_in_points(ax) < 280:
        ax.legend(frameon=False)
        return
    bottom, top = ax.get_ylim()
    ax.set_ylim(top=top + 0.1 * (top - bottom))
    ax.legend(frameon=False, ncols=3, loc="upper right", borderaxespad=0)
