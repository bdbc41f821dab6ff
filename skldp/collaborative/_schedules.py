"""Who asks whom, and what each agent has heard.

"broadcast": everybody hears every release, at once. In a "round_robin" each agent asks one other
in every step: agent a of M asks agent (a + 1 + (t - 1) mod (M - 1)) mod M in step t, and hears its
current statistic. In a "restricted_round_robin" it asks the next one, in the order of agents, that
may still share its mean as far as it has heard; if there is none, the next one of all, so that an
agent that was separated by bad luck finds back.

That there are a round robin and a restricted one stands in the literature. Here whom an agent asks
depends on released statistics alone, those of the agent itself included: questions are seen by
others, and must not tell anything about observations that have not been released. An agent of whom
nothing was heard may share one's mean, and so may all, as long as one has released nothing.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from skldp.collaborative._decision import compatible
from skldp.collaborative._statistics import Statistics

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

__all__ = ["Broadcast", "RestrictedRoundRobin", "RoundRobin", "Schedule", "make_schedule"]

# Agents in the order of asking that are tested first; mostly one of them will do.
_FIRST_TESTS = 8
_NOBODY = -1


class Schedule(Protocol):
    """Who asks whom: a small state that can be pickled."""

    needs_rows: bool

    def add_agents(self, n_agents: int) -> None:
        """Let agents join."""

    def step(self, released: Statistics, significance: float | str) -> IntArray:
        """Let everybody ask; return whom."""

    def heard(self, released: Statistics) -> Statistics:
        """Return what agents know of each other."""


class Broadcast:
    """Everybody hears every release."""

    needs_rows = False

    def __init__(self) -> None:
        self.n_agents = 0

    def add_agents(self, n_agents: int) -> None:
        """Let agents join.

        Parameters
        ----------
        n_agents : int
            How many.
        """
        self.n_agents += n_agents

    def step(self, released: Statistics, significance: float | str) -> IntArray:
        """Do nothing: nobody has to ask.

        Parameters
        ----------
        released : Statistics
            Of shape (M,).
        significance : float or "1/t"
            Not used.

        Returns
        -------
        ndarray of int64 of shape (M,)
            -1 for all.
        """
        return np.full(self.n_agents, _NOBODY, dtype=np.int64)

    def heard(self, released: Statistics) -> Statistics:
        """Return what every agent knows of the others.

        Parameters
        ----------
        released : Statistics
            Of shape (M,).

        Returns
        -------
        Statistics
            The same.
        """
        return released


class RoundRobin:
    """Each agent asks one other in every step, one after the other."""

    needs_rows = True

    def __init__(self) -> None:
        self.n_agents = 0
        self.n_steps = 0
        self._heard = Statistics.unknown(0, 0)

    def add_agents(self, n_agents: int) -> None:
        """Let agents join, who have heard nothing and of whom nothing was heard.

        Parameters
        ----------
        n_agents : int
            How many.
        """
        old, self.n_agents = self.n_agents, self.n_agents + n_agents
        heard = Statistics.unknown(self.n_agents, self.n_agents)
        for field, known in zip(heard, self._heard, strict=True):
            field[:old, :old] = known
        self._heard = heard

    def step(self, released: Statistics, significance: float | str) -> IntArray:
        """Let each agent ask one other, and hear its released statistic.

        Parameters
        ----------
        released : Statistics
            Of shape (M,): current ones, with what was released in this step.
        significance : float or "1/t"
            Of the test in a restricted round robin.

        Returns
        -------
        ndarray of int64 of shape (M,)
            Whom each agent asks; -1 where there is nobody else.
        """
        agents = np.arange(self.n_agents)
        if self.n_agents < 2:
            return np.full(self.n_agents, _NOBODY, dtype=np.int64)
        queries = self._queries(agents, released, significance)
        for field, current in zip(self._heard, released, strict=True):
            field[agents, queries] = current[queries]
        self.n_steps += 1
        return queries

    def _queries(
        self, agents: IntArray, released: Statistics, significance: float | str
    ) -> IntArray:
        return (agents + 1 + self.n_steps % (self.n_agents - 1)) % self.n_agents

    def heard(self, released: Statistics) -> Statistics:
        """Return what agents know of each other.

        Parameters
        ----------
        released : Statistics
            Of shape (M,). Not used: a release is heard when its agent is asked.

        Returns
        -------
        Statistics
            Of shape (M, M): row a for what a heard last; unknown on the diagonal.
        """
        return self._heard


class RestrictedRoundRobin(RoundRobin):
    """Each agent asks, one after the other, those that may still share its mean."""

    def __init__(self) -> None:
        super().__init__()
        self._last = np.zeros(0, dtype=np.int64)  # whom each asked last; itself at first
        # Who found nobody, and with how many observations released: it need not look again before
        # it releases, or whom it asked last has something new to say.
        self._alone = np.zeros(0, dtype=bool)
        self._counts = np.zeros(0, dtype=np.int64)

    def add_agents(self, n_agents: int) -> None:
        """Let agents join, who have heard nothing and of whom nothing was heard.

        Parameters
        ----------
        n_agents : int
            How many.
        """
        super().add_agents(n_agents)
        self._last = np.append(self._last, np.arange(self._last.size, self.n_agents))
        self._alone = np.zeros(self.n_agents, dtype=bool)
        self._counts = np.zeros(self.n_agents, dtype=np.int64)

    def _queries(
        self, agents: IntArray, released: Statistics, significance: float | str
    ) -> IntArray:
        alone = np.flatnonzero(self._alone & (released.n_observed == self._counts))
        alone = alone[~self._possible(alone, self._last[alone], released, significance)]
        is_alone = np.zeros(self.n_agents, dtype=bool)
        is_alone[alone] = True
        waiting = np.flatnonzero(~is_alone)
        # Once around from whoever was asked last, oneself left out.
        following = (self._last + 1) % self.n_agents
        queries = np.where(following == agents, (following + 1) % self.n_agents, following)
        start, stop = 0, min(_FIRST_TESTS, self.n_agents)
        while waiting.size and start < self.n_agents:
            around = np.arange(start + 1, stop + 1)
            asked = (self._last[waiting, np.newaxis] + around) % self.n_agents
            possible = self._possible(waiting[:, np.newaxis], asked, released, significance)
            found = possible.any(axis=1)
            queries[waiting[found]] = asked[found, possible[found].argmax(axis=1)]
            waiting = waiting[~found]
            start, stop = stop, min(4 * stop, self.n_agents)
        is_alone[waiting] = True
        self._last, self._alone, self._counts = queries, is_alone, released.n_observed.copy()
        return queries

    def _possible(
        self, agents: IntArray, asked: IntArray, released: Statistics, significance: float | str
    ) -> BoolArray:
        own, peers = released.at(agents), self._heard.at((agents, asked))
        unknown = (own.n_observed == 0) | (peers.n_observed == 0)
        possible: BoolArray = (agents != asked) & (unknown | compatible(own, peers, significance))
        return possible


_SCHEDULES: dict[str, type[Broadcast] | type[RoundRobin]] = {
    "broadcast": Broadcast,
    "round_robin": RoundRobin,
    "restricted_round_robin": RestrictedRoundRobin,
}


def make_schedule(name: str) -> Schedule:
    """Return a schedule without agents.

    Parameters
    ----------
    name : {"broadcast", "round_robin", "restricted_round_robin"}
        Which one.

    Returns
    -------
    Schedule
        Agents join with `add_agents`.
    """
    return _SCHEDULES[name]()
