"""Everything that agents have observed, released and heard: the state of one stream.

Rows of observations go through it in one direction: to the agents' own sums, to their releases, to
whoever hears them. Estimates are computed when they are asked for, and kept until the next row.
What is released, and whom an agent asks, depends on released quantities alone.
"""

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp.collaborative._decision import accepted
from skldp.collaborative._grid import to_steps
from skldp.collaborative._pooling import combine
from skldp.collaborative._releases import make_releases
from skldp.collaborative._schedules import make_schedule
from skldp.collaborative._settings import Settings
from skldp.collaborative._statistics import Statistics, own_statistics, released_statistics

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

__all__ = ["Network"]

_BLOCK = 1 << 18  # observations that are worked on at a time


class Network:
    """Agents and what they know.

    Parameters
    ----------
    settings : Settings
        The public parameters of the stream.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.lower = np.zeros(0)
        self.upper = np.zeros(0)
        # An agent's own: sums and sums of squares, in half-widths from the middle.
        self.counts = np.zeros(0, dtype=np.int64)
        self.sums = np.zeros(0)
        self.squares = np.zeros(0)
        self.releases = make_releases(
            settings.first_block,
            settings.growth,
            settings.horizon,
            n_quantities=settings.law.n_quantities,
        )
        self.schedule = make_schedule(settings.schedule)
        # Kept until the next row.
        self._means: FloatArray | None = None
        self._statistics: Statistics | None = None

    @property
    def n_agents(self) -> int:
        """How many there are."""
        return self.lower.size

    def add_agents(self, lower: FloatArray, upper: FloatArray) -> None:
        """Let agents join.

        Parameters
        ----------
        lower, upper : ndarray of float64 of shape (n_agents,)
            Public bounds of all agents, those that are there already included.

        Raises
        ------
        ValueError
            If bounds of an agent that is there have changed, or a known variance is larger than
            the new bounds allow. Nothing has changed then.
        """
        n_old = self.n_agents
        self.check_bounds(lower[:n_old], upper[:n_old])
        limit = ((upper - lower) ** 2).min() / 4
        known = self.settings.variance
        # The largest one may come from a computation with rounding errors of its own.
        if not isinstance(known, str) and known > limit * (1 + 1e-9):
            raise ValueError(
                f"variance={known:g} exceeds (upper - lower)**2 / 4 = {limit:g}, the largest that "
                "observations within the bounds can have."
            )
        n_new = lower.size - n_old
        self.lower, self.upper = lower, upper
        self.counts = np.append(self.counts, np.zeros(n_new, dtype=np.int64))
        self.sums = np.append(self.sums, np.zeros(n_new))
        self.squares = np.append(self.squares, np.zeros(n_new))
        self.releases.add_agents(n_new)
        self.schedule.add_agents(n_new)
        self._means = self._statistics = None

    def check_bounds(self, lower: FloatArray, upper: FloatArray) -> None:
        """Refuse other bounds than those that noise was made for.

        Parameters
        ----------
        lower, upper : ndarray of float64 of shape (n_agents,)
            Bounds of the agents that are there.

        Raises
        ------
        ValueError
            If one has changed.
        """
        if not (np.array_equal(lower, self.lower) and np.array_equal(upper, self.upper)):
            raise ValueError(
                "bounds of agents that are there already cannot change: their noise was made for "
                "the old ones. Set those to go on, with the bounds of new agents behind them; or "
                "call fit, which starts again and is another release of the data."
            )

    def extend(self, rows: FloatArray) -> None:
        """Let time pass: for all of the rows or, if anything raises, for none.

        Half of them taken in, and all of them given again, would put observations into two sums.

        Parameters
        ----------
        rows : ndarray of float64 of shape (n_steps, n_agents)
            Observations; NaN where there is none.

        Raises
        ------
        ValueError
            If there are more observations than a tree's horizon. Nothing has changed then.
        """
        counts = np.count_nonzero(~np.isnan(rows), axis=0)
        self.releases.check(counts)
        self._means = self._statistics = None
        # All but a schedule replaces arrays, and does not change them. What a schedule hears needs
        # no undoing where it was released before.
        copied = copy.deepcopy if self.releases.completes(counts) else copy.copy
        before = self.__dict__ | {
            "releases": copy.copy(self.releases),
            "schedule": copied(self.schedule),
        }
        try:
            n_rows = 1 if self.schedule.needs_rows else max(1, _BLOCK // self.n_agents)
            for start in range(0, len(rows), n_rows):
                self._extend_block(rows[start : start + n_rows])
        except BaseException:
            self.__dict__.update(before)
            raise

    def _extend_block(self, rows: FloatArray) -> None:
        observed = ~np.isnan(rows)
        units = (np.clip(rows, self.lower, self.upper) - self._middle) / (self._width / 2)
        units[~observed] = 0.0
        self.counts = self.counts + np.count_nonzero(observed, axis=0)
        self.sums = self.sums + units.sum(axis=0)
        self.squares = self.squares + np.einsum("ij,ij->j", units, units)
        before = self.releases.n_released
        self.releases.extend(to_steps(units), observed, self.settings.law, self.settings.key)
        if self.schedule.needs_rows:
            if not np.array_equal(before, self.releases.n_released):
                self._statistics = None
            self.schedule.step(self._released_statistics(), self.settings.significance)

    @property
    def _middle(self) -> FloatArray:
        return self.lower / 2 + self.upper / 2

    @property
    def _width(self) -> FloatArray:
        return self.upper - self.lower

    # -- results --------------------------------------------------------------------------

    def n_observed(self) -> NDArray[np.int64]:
        """Return numbers of observations, shape (n_agents,)."""
        return self.counts.copy()

    def n_released(self) -> NDArray[np.int64]:
        """Return numbers of releases, shape (n_agents,)."""
        return self.releases.n_released.copy()

    def privacy_spent(self) -> FloatArray:
        """Return what the most exposed observation of each agent has spent, shape (n_agents,)."""
        return self.settings.law.spent(self.releases.n_appearances())

    def local_means(self) -> FloatArray:
        """Return means of the agents' own observations, shape (n_agents,)."""
        return self._own_statistics().mean

    def same_class(self) -> BoolArray:
        """Return whom each agent accepts, shape (n_agents, n_agents)."""
        return accepted(self._own_statistics(), self._heard(), self.settings.significance)

    def means(self) -> FloatArray:
        """Return personal means, shape (n_agents,)."""
        if self._means is None:
            self._means = self._combined(self._own_statistics(), self._heard())
        return self._means.copy()

    def public_means(self) -> FloatArray:
        """Return means from releases alone, shape (n_agents,)."""
        released = self._released_statistics()
        return self._combined(released, released)

    def _combined(self, own: Statistics, peers: Statistics) -> FloatArray:
        agree = accepted(own, peers, self.settings.significance)
        means, _ = combine(own, peers, agree, self.settings.peer_weights)
        # Bounds are public: an estimate outside them is noise.
        return np.clip(means, self.lower, self.upper)

    def _heard(self) -> Statistics:
        return self.schedule.heard(self._released_statistics())

    def _released_statistics(self) -> Statistics:
        if self._statistics is None:
            self._statistics = released_statistics(
                self.releases.released(),
                self.settings.law,
                self._width,
                self._middle,
                variance=self.settings.variance,
                block_weights=self.settings.block_weights,
            )
        return self._statistics

    def _own_statistics(self) -> Statistics:
        return own_statistics(
            self.sums / 2,
            self.squares,
            self.counts,
            self._width,
            self._middle,
            variance=self.settings.variance,
        )

    def __getstate__(self) -> dict[str, Any]:
        # Estimates are computed again; what was released never is.
        return {**self.__dict__, "_means": None, "_statistics": None}
