"""What theory expects of each mechanism, against the number of users or the privacy level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from skldp._validation import check_choice
from skldp.metrics import compare_mechanisms, expected_l1_loss, expected_l2_loss
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
_N_POINTS = 41
_X_LABELS = {"users": "number of users", "epsilon": "privacy level of a report, ε"}
_Y_LABELS = {"l1": r"expected $\ell_1$ loss", "l2": r"expected squared $\ell_2$ loss"}
# Two distributions are never farther apart: an unbiased estimate that is expected to miss by more
# says less than any guess.
_LARGEST_LOSS = 2.0


class RiskCurveDisplay:
    """Expected loss of each mechanism's best channel, on logarithmic axes.

    Everything is computed from public numbers and formulas; there are no data in it.

    Parameters
    ----------
    positions : array-like of shape (n_points,)
        Numbers of users, or levels; ascending and positive.
    losses : mapping of str to array-like of shape (n_points,)
        Expected loss of each mechanism there. NaN where there is none.
    against : {"users", "epsilon"}, default="users"
        What the positions are.
    loss : {"l1", "l2"}, default="l1"
        What the losses are.
    target : float, default=None
        A loss to mark.
    position : float, default=None
        A position to mark: the one that is planned.

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
        If shapes disagree, or positions are not positive and ascending.

    See Also
    --------
    skldp.metrics.compare_mechanisms : The channels that are compared.

    Examples
    --------
    >>> from skldp.plotting import RiskCurveDisplay
    >>> display = RiskCurveDisplay.from_parameters(
    ...     epsilon=1.0, n_users=100_000, n_categories=256, open_alphabet=False
    ... )
    >>> sorted(display.lines_)
    ['O-RAPPOR', 'O-RR', 'k-RAPPOR', 'k-RR']
    """

    def __init__(
        self,
        positions: ArrayLike,
        losses: Mapping[str, ArrayLike],
        *,
        against: str = "users",
        loss: str = "l1",
        target: float | None = None,
        position: float | None = None,
    ) -> None:
        self.positions = checked_positions(positions, "positions", 2)
        self.losses = checked_curves(losses, "losses", self.positions.size)
        self.against = check_choice(against, "against", tuple(_X_LABELS))
        self.loss = check_choice(loss, "loss", tuple(_Y_LABELS))
        self.target = target
        self.position = position

    @classmethod
    def from_parameters(
        cls,
        epsilon: float,
        n_users: int,
        n_categories: int,
        *,
        open_alphabet: bool = True,
        against: str = "users",
        positions: ArrayLike | None = None,
        loss: str = "l1",
        target: float | None = None,
        ax: Axes | None = None,
        **line_kwargs: Any,
    ) -> RiskCurveDisplay:
        """Compute and draw the curves around a plan.

        Parameters
        ----------
        epsilon : float
            Privacy level of a report.
        n_users : int
            Number of reports.
        n_categories : int
            Number of categories, or of candidates.
        open_alphabet : bool, default=True
            Whether values outside the list can occur, which leaves k-RR and k-RAPPOR out.
        against : {"users", "epsilon"}, default="users"
            What varies; the other one stays as given.
        positions : array-like of shape (n_points,), default=None
            Its values; None takes two decades of users, or a factor of eight of ε, around it.
        loss : {"l1", "l2"}, default="l1"
            The loss of the unbiased estimate for uniform frequencies.
        target : float, default=None
            A loss to mark.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **line_kwargs : dict
            Passed on to :meth:`matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : RiskCurveDisplay
            The display that was drawn.

        Raises
        ------
        ChannelError, TypeError, ValueError
            If a parameter is wrong.
        """
        check_choice(against, "against", tuple(_X_LABELS))
        check_choice(loss, "loss", tuple(_Y_LABELS))
        expected: Any = expected_l1_loss if loss == "l1" else expected_l2_loss
        uniform = np.full(n_categories, 1.0 / n_categories)
        planned = compare_mechanisms(epsilon, n_users, n_categories, open_alphabet)
        plan = float(n_users if against == "users" else epsilon)
        if positions is None:
            reach = 10.0 if against == "users" else np.sqrt(8.0)
            positions = np.geomspace(plan / reach, plan * reach, _N_POINTS)
        points = np.asarray(positions, dtype=np.float64)
        if against == "users":
            points = np.unique(np.maximum(np.rint(points), 1.0))
        losses: dict[str, list[float]] = {name: [] for name in planned}
        for point in points.tolist():
            # The best channel does not depend on the number of users.
            best, users = planned, n_users
            if against == "users":
                users = int(point)
            else:
                best = compare_mechanisms(point, n_users, n_categories, open_alphabet)
            for name, values in losses.items():
                found = best.get(name)
                values.append(np.nan if found is None else expected(found.channel, uniform, users))
        display = cls(points, losses, against=against, loss=loss, target=target, position=plan)
        return display.plot(ax, **line_kwargs)

    def plot(self, ax: Axes | None = None, **line_kwargs: Any) -> RiskCurveDisplay:
        """Draw, or draw once more.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **line_kwargs : dict
            Passed on to :meth:`matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : RiskCurveDisplay
            The display itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = new_axes(type(self).__name__, ax, _FIGURE_SIZE)
        self.lines_ = draw_curves(ax, self.positions, self.losses, line_kwargs)
        mark: dict[str, Any] = {
            "color": "0.45",
            "linewidth": 1.0,
            "linestyle": (0, (2, 2)),
            "zorder": 1,
        }
        if self.position is not None:
            ax.axvline(self.position, **mark, label=f"planned: {self.position:,.6g}")
        if self.target is not None:
            ax.axhline(self.target, **{**mark, "linestyle": "-"}, label=f"target: {self.target:g}")
        ax.set_xscale("log")
        ax.set_yscale("log")
        if self.loss == "l1" and max(map(np.nanmax, self.losses.values())) > _LARGEST_LOSS:
            low, high = ax.get_ylim()
            ax.axhspan(_LARGEST_LOSS, high, color="0.93", zorder=0, label="no better than a guess")
            ax.set_ylim(low, high)
        finish_axes(ax, _X_LABELS[self.against], _Y_LABELS[self.loss])
        self.ax_ = ax
        self.figure_ = ax.figure
        return self
