"""The error of private means against the level of one group of users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skldp.mean import ADPMMeanEstimator, free_privacy
from skldp.plotting._style import (
    checked_curves,
    checked_positions,
    draw_curves,
    finish_axes,
    new_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FIGURE_SIZE = (6.4, 4.4)
_N_LEVELS = 100


class SaturationDisplay:
    """Error against the level ε2 of a group of users, with the threshold marked.

    Beyond the threshold the error of :class:`~skldp.mean.ADPMMeanEstimator` stays the same: a
    larger ε2 buys nothing, and the privacy up to there is free. Everything is computed from public
    levels and formulas; there are no data in it.

    Parameters
    ----------
    levels : array-like of shape (n_levels,)
        Levels of the group, ascending and positive.
    errors : mapping of str to array-like of shape (n_levels,)
        Mean squared error of each estimator at these levels.
    threshold : float, default=None
        The level beyond which nothing is gained; None or infinity marks none.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curves, set by :meth:`plot`.
    figure_ : matplotlib Figure
        Figure that contains the axes, set by :meth:`plot`.
    lines_ : dict of str to matplotlib Line2D
        The curves, set by :meth:`plot`.
    threshold_line_ : matplotlib Line2D or None
        The mark of the threshold, set by :meth:`plot`.

    Raises
    ------
    ValueError
        If shapes disagree, or levels are not positive and ascending.

    See Also
    --------
    skldp.mean.free_privacy : What each user's level could be lowered to.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import ADPMMeanEstimator, UniformMeanEstimator
    >>> from skldp.plotting import SaturationDisplay
    >>> display = SaturationDisplay.from_estimators(
    ...     [ADPMMeanEstimator(bounds=(0, 1)), UniformMeanEstimator(bounds=(0, 1))],
    ...     np.repeat([0.1, 1.0], 500),
    ... )
    >>> round(display.threshold, 6)
    0.26
    >>> sorted(display.lines_)
    ['ADPM', 'Uniform']
    """

    def __init__(
        self,
        levels: ArrayLike,
        errors: Mapping[str, ArrayLike],
        *,
        threshold: float | None = None,
    ) -> None:
        self.levels = checked_positions(levels, "levels", 2)
        self.errors = checked_curves(errors, "errors", self.levels.size)
        self.threshold = threshold

    @classmethod
    def from_estimators(
        cls,
        estimators: Any,
        epsilon: ArrayLike,
        *,
        group: ArrayLike | None = None,
        levels: ArrayLike | None = None,
        variance: Any = None,
        ax: Axes | None = None,
        **line_kwargs: Any,
    ) -> SaturationDisplay:
        """Compute and draw the errors of estimators while one group's level varies.

        Parameters
        ----------
        estimators : private mean with Laplace noise, list of these, or mapping of str to these
            Not necessarily fitted: ``expected_mse`` is all that is used.
        epsilon : array-like of shape (n_users,)
            Levels of all users.
        group : array-like of bool of shape (n_users,), default=None
            The users whose common level varies; None takes those with the largest one.
        levels : array-like of shape (n_levels,), default=None
            Values of their level; None takes a range around the threshold, from the smallest
            positive level of the others.
        variance : float or array-like of shape (n_features,), default=None
            True variance of the data, see ``expected_mse``.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **line_kwargs : dict
            Passed on to :meth:`matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : SaturationDisplay
            The display that was drawn.

        Raises
        ------
        ValueError
            If the group is empty or everybody, or there are no estimators, or two without a name
            of the same class.
        """
        if not isinstance(estimators, Mapping):
            listed = estimators if isinstance(estimators, list | tuple) else [estimators]
            names = [
                type(one).__name__.removesuffix("Estimator").removesuffix("Mean") for one in listed
            ]
            if len(set(names)) < len(names):
                raise ValueError(
                    "Two of the estimators are of the same class and would have the same name: "
                    "pass a dict of names and estimators."
                )
            estimators = dict(zip(names, listed, strict=True))
        if not estimators:
            raise ValueError("estimators must hold at least one.")
        users: NDArray[np.float64] = np.asarray(epsilon, dtype=np.float64)
        members = users == users.max() if group is None else np.asarray(group)
        if members.shape != users.shape or members.dtype != np.bool_:
            raise ValueError(f"group must be bool of shape {users.shape}.")
        if members.all() or not members.any():
            raise ValueError("group must be some of the users, not all and not none of them.")
        # The mark is that of optimal weights: the first ADPM's where there is one.
        means = list(estimators.values())
        optimal = [one for one in means if isinstance(one, ADPMMeanEstimator)]
        threshold = cls._threshold((optimal or means)[0], users, members)
        if levels is None:
            others = users[~members & (users > 0)]
            low = others.min() if others.size and np.isfinite(others.min()) else 0.01
            end = threshold if np.isfinite(threshold) else 100 * low
            levels = np.geomspace(low, max(20 * low, 8 * end), _N_LEVELS)
        positions = np.asarray(levels, dtype=np.float64)
        errors = {
            name: [
                one.expected_mse(np.where(members, level, users), variance) for level in positions
            ]
            for name, one in estimators.items()
        }
        return cls(positions, errors, threshold=threshold).plot(ax, **line_kwargs)

    @staticmethod
    def _threshold(
        estimator: Any, users: NDArray[np.float64], members: NDArray[np.bool_]
    ) -> float:
        """Return where the optimal estimate stops to use a larger level of the members."""
        public = np.where(members, np.inf, users)
        bounds = estimator.bounds
        n_features = max((np.size(side) for side in (() if bounds is None else bounds)), default=1)
        n_features = getattr(estimator, "n_features_in_", n_features)
        lowered = free_privacy(
            public, n_features=n_features, bounds=bounds, variance=estimator.variance
        )
        return float(lowered[members].max())

    def plot(self, ax: Axes | None = None, **line_kwargs: Any) -> SaturationDisplay:
        """Draw, or draw once more.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **line_kwargs : dict
            Passed on to :meth:`matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : SaturationDisplay
            The display itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = new_axes(type(self).__name__, ax, _FIGURE_SIZE)
        self.lines_ = draw_curves(ax, self.levels, self.errors, line_kwargs)
        self.threshold_line_ = None
        if self.threshold is not None and np.isfinite(self.threshold):
            self.threshold_line_ = ax.axvline(
                self.threshold,
                color="0.45",
                linewidth=1.0,
                linestyle=(0, (2, 2)),
                zorder=1,
                label=f"threshold {self.threshold:.3g}",
            )
        ax.set_xscale("log")
        everything = np.concatenate(list(self.errors.values()))
        finite = everything[np.isfinite(everything)]
        # Ticks of a logarithmic scale are too few on less than a decade.
        if finite.size and finite.min() > 0 and finite.max() > 20 * finite.min():
            ax.set_yscale("log")
        finish_axes(ax, "level of the group, ε₂", "mean squared error")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self
