"""Picture of whom collaborating agents believe to share their mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from skldp.plotting._style import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ClassRecoveryDisplay"]

_FIGURE_SIZE = (5.4, 5.6)
# Beyond, lines between classes and their names are only clutter.
_MOST_NAMED_CLASSES = 12
# Believed and right, not believed and right, believed and wrong, not believed and wrong.
_COLOURS = ("#8fb8de", "#f4f4f2", "#d1495b", "#e8b27d")
_KNOWN_LABELS = (
    "same, believed",
    "different, not believed",
    "different, believed",
    "same, not believed",
)
_UNKNOWN_LABELS = ("believed", "not believed")


class ClassRecoveryDisplay:
    """Picture of who believes whom to share a mean: one row and one column for each agent.

    Every row is for the eyes of its agent, so all of them together are a picture of simulations,
    or of data that are public anyway.

    Parameters
    ----------
    same_class : array-like of bool of shape (n_agents, n_agents)
        Row a: whom a believes to share its mean, as in ``same_class_``.
    classes : array-like of shape (n_agents,), default=None
        Known classes: labels of any kind, or true means. Agents are sorted by them.
    order_by : array-like of shape (n_agents,), default=None
        What agents are sorted by, estimated means for example; within classes where these are
        known. None keeps the order of agents.

    Attributes
    ----------
    order : ndarray of int of shape (n_agents,)
        Agents in the order of rows and columns.
    share_right : float or None
        Share of ordered pairs of different agents, "a believes b", that are right; None where
        classes are unknown or there is one agent only.
    ax_ : matplotlib Axes
        Axes with the picture, set by :meth:`plot`.
    figure_ : matplotlib Figure
        Figure that contains the axes, set by :meth:`plot`.
    image_ : matplotlib AxesImage
        The picture, set by :meth:`plot`.

    Raises
    ------
    ValueError
        If shapes disagree.

    See Also
    --------
    skldp.OnlineCollaborativeMean : The estimator with `same_class_`.

    Examples
    --------
    >>> from skldp.plotting import ClassRecoveryDisplay
    >>> believed = [[True, False, True], [False, True, False], [False, False, True]]
    >>> display = ClassRecoveryDisplay(believed, classes=["a", "b", "a"]).plot()
    >>> display.order.tolist(), round(display.share_right, 3)  # agent 2 misses agent 0
    ([0, 2, 1], 0.833)
    """

    def __init__(
        self,
        same_class: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        order_by: ArrayLike | None = None,
    ) -> None:
        self.same_class = np.asarray(same_class)
        n_agents = len(self.same_class) if self.same_class.ndim else 0
        if self.same_class.shape != (n_agents, n_agents) or self.same_class.dtype != np.bool_:
            raise ValueError("same_class must be bool of shape (n_agents, n_agents).")
        if n_agents == 0:
            raise ValueError("same_class must hold at least one agent.")
        self.classes = _per_agent(classes, "classes", n_agents)
        values = _per_agent(order_by, "order_by", n_agents)
        self.order = np.arange(n_agents) if values is None else np.argsort(values, kind="stable")
        self.share_right: float | None = None
        self._members: NDArray[np.intp] | None = None
        if self.classes is not None:
            self._members = np.unique(self.classes, return_inverse=True)[1]
            self.order = self.order[np.argsort(self._members[self.order], kind="stable")]
            right = self.same_class == (self._members[:, np.newaxis] == self._members)
            others = ~np.eye(n_agents, dtype=bool)
            if n_agents > 1:
                self.share_right = float(right[others].mean())

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        classes: ArrayLike | None = None,
        ax: Axes | None = None,
    ) -> ClassRecoveryDisplay:
        """Draw what the agents of a fitted estimator believe.

        Parameters
        ----------
        estimator : OnlineCollaborativeMean
            A fitted one.
        classes : array-like of shape (n_agents,), default=None
            Known classes, labels of any kind or true means; None sorts agents by ``means_``.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : ClassRecoveryDisplay
            The display that was drawn.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        ValueError
            If there is not one class for each agent.
        """
        check_is_fitted(estimator)
        display = cls(
            estimator.same_class_,
            classes=classes,
            order_by=estimator.means_ if classes is None else None,
        )
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> ClassRecoveryDisplay:
        """Draw, or draw once more.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : ClassRecoveryDisplay
            The display itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        plt = pyplot(type(self).__name__)
        from matplotlib.colors import to_rgb
        from matplotlib.patches import Patch

        if ax is None:
            _, ax = plt.subplots(figsize=_FIGURE_SIZE, layout="compressed")
        colours = np.array([to_rgb(colour) for colour in _COLOURS])
        believed = self.same_class[np.ix_(self.order, self.order)]
        kinds = np.where(believed, 0, 1)
        labels: tuple[str, ...] = _UNKNOWN_LABELS
        if self._members is not None:
            sorted_members = self._members[self.order]
            same = sorted_members[:, np.newaxis] == sorted_members
            kinds[believed & ~same] = 2
            kinds[~believed & same] = 3
            labels = _KNOWN_LABELS
        # Colours instead of numbers, so that shrinking many agents mixes what is seen.
        self.image_ = ax.imshow(colours[kinds])
        if self._members is not None:
            self._mark_classes(ax)
        else:
            ax.set_xlabel("agent, in order")
            ax.set_ylabel("agent that believes")
        if self.share_right is not None:
            ax.set_title(f"{self.share_right:.2%} of pairs are right", loc="left")
        present = [
            number for number in range(len(labels)) if number < 2 or (kinds == number).any()
        ]
        ax.legend(
            handles=[
                Patch(facecolor=_COLOURS[number], edgecolor="0.7", label=labels[number])
                for number in present
            ],
            frameon=False,
            ncols=2,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.12),
        )
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    def _mark_classes(self, ax: Axes) -> None:
        """Draw lines between classes, and name them where there are few."""
        assert self.classes is not None
        names, sizes = np.unique(self.classes, return_counts=True)
        ends = np.cumsum(sizes)
        if len(names) <= _MOST_NAMED_CLASSES:
            for end in ends[:-1] - 0.5:
                ax.axhline(end, color="0.5", linewidth=0.6)
                ax.axvline(end, color="0.5", linewidth=0.6)
            middles = ends - sizes / 2 - 0.5
            shown = [f"{name:.4g}" if isinstance(name, float) else str(name) for name in names]
            ax.set_xticks(middles, shown, parse_math=False)
            ax.set_yticks(middles, shown, parse_math=False)
            ax.tick_params(length=0)
        ax.set_xlabel("agents, by class")
        ax.set_ylabel("agents that believe, by class")


def _per_agent(values: ArrayLike | None, name: str, n_agents: int) -> NDArray[Any] | None:
    if values is None:
        return None
    array = np.asarray(values)
    if array.shape != (n_agents,):
        raise ValueError(f"{name} must have shape ({n_agents},), got {array.shape}.")
    return array
