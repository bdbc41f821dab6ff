"""What agents publish: noised sums of disjoint blocks, or of the nodes of a binary tree.

**Blocks.** Block sizes are fixed beforehand: first, ⌈growth · first⌉, and so on, by counts of
observations alone. At the end of a block its sum is noised and published, once. An observation is
in one sum, whatever the length of the stream: no composition over time. Blocks that do not grow
are kept as the sum of all of them, which tells as much about the mean.

**Tree.** After its n-th observation an agent can publish the sum of all n, as the sum of one
noised node for each binary digit 1 of n: the node that ends at n has 2^j observations, j the
number of zeros at the end of n. For up to 2^d - 1 observations there are d levels, and an
observation is in at most one node of each. Every node is noised once, however many sums it is part
of.

Both keep raw sums of what is not released yet, and released sums; random streams they keep none.
Released sums are functions of the integers that were published.

Rows are taken in as a whole or, where anything raises (an interrupt, no memory), not at all: half
of them released, and all of them given again, would put observations into two sums of a kind. A
shallow copy made before can take the place of what has changed since.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skldp.collaborative._grid import HALF_STEPS, LARGEST_SUM, STEPS
from skldp.collaborative._noise import NoiseLaw

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

__all__ = ["BlockReleases", "Released", "TreeReleases", "block_sizes", "make_releases"]


class Released(NamedTuple):
    """What agents have published so far. Sums that do not exist are 0, with a size of 0.

    Parameters
    ----------
    sums : ndarray of float64 of shape (n_agents, n_sums)
        Noised sums of observations, in widths from the middle.
    squares : ndarray of float64 of shape (n_agents, n_sums), or None
        Noised sums of squares, in squared half-widths from the middle.
    sizes : ndarray of int64 of shape (n_agents, n_sums)
        Observations in each.
    noise_copies : ndarray of int64 of shape (n_agents, n_sums)
        Independent noises in each.
    n_released : ndarray of int64 of shape (n_agents,)
        Number of releases.
    """

    sums: FloatArray
    squares: FloatArray | None
    sizes: IntArray
    noise_copies: IntArray
    n_released: IntArray


def block_sizes(n_observations: int, first_block: int, growth: float) -> IntArray:
    """Return the sizes of the blocks that so many observations fill.

    Parameters
    ----------
    n_observations : int
        Observations of one agent.
    first_block : int
        Size of the first block.
    growth : float
        Factor from block to block, at least 1.

    Returns
    -------
    ndarray of int64
        Sizes; at most 2^28 each, where growth ends.
    """
    sizes, total, size = [], 0, min(first_block, LARGEST_SUM)
    while total + size <= n_observations:
        sizes.append(size)
        total += size
        size = _next_size(size, growth)
    return np.array(sizes, dtype=np.int64)


def _next_size(size: int, growth: float) -> int:
    return math.ceil(min(growth * size, LARGEST_SUM))


class _Chunk:
    """Sums over the first observations of agents within some rows."""

    def __init__(self, steps: IntArray, observed: BoolArray, n_quantities: int) -> None:
        self.counts: IntArray = np.count_nonzero(observed, axis=0)
        # Rows of the observations, agent by agent, and where each agent's begin.
        _, self._rows = np.nonzero(observed.T)
        self._starts = np.concatenate([[0], np.cumsum(self.counts)[:-1]]).astype(np.int64)
        clean = np.where(observed, steps, 0)
        quantities = (clean, clean * clean)[:n_quantities]
        self._sums = np.stack([np.cumsum(one, axis=0) for one in quantities])
        self.totals: IntArray = self._sums[:, -1]

    def up_to(self, agents: IntArray, numbers: IntArray) -> IntArray:
        """Return sums over the first `numbers` observations, shape (n_quantities, n)."""
        some = numbers > 0
        sums = np.zeros((len(self._sums), agents.size), dtype=np.int64)
        rows = self._rows[self._starts[agents[some]] + numbers[some] - 1]
        sums[:, some] = self._sums[:, rows, agents[some]]
        return sums


class BlockReleases:
    """Sums of disjoint blocks, of growing size, without end.

    Parameters
    ----------
    first_block : int
        Observations in the first block.
    growth : float
        Factor from block to block, at least 1.
    n_quantities : int
        1, or 2 with sums of squares.
    """

    def __init__(self, first_block: int, growth: float, n_quantities: int) -> None:
        self.growth = growth
        # Of the blocks, for every agent.
        self.sizes: IntArray = np.array([min(first_block, LARGEST_SUM)], dtype=np.int64)
        self.n_released: IntArray = np.zeros(0, dtype=np.int64)
        self.n_pending: IntArray = np.zeros(0, dtype=np.int64)
        self.pending: IntArray = np.zeros((n_quantities, 0), dtype=np.int64)
        # An agent's blocks; what stands behind its n_released ones means nothing.
        self.noised: FloatArray = np.zeros((n_quantities, 0, 0))

    def add_agents(self, n_agents: int) -> None:
        """Let agents join, who have released nothing."""
        self.n_released = np.append(self.n_released, np.zeros(n_agents, dtype=np.int64))
        self.n_pending = np.append(self.n_pending, np.zeros(n_agents, dtype=np.int64))
        self.pending = np.pad(self.pending, ((0, 0), (0, n_agents)))
        self.noised = np.pad(self.noised, ((0, 0), (0, n_agents), (0, 0)))

    def check(self, counts: IntArray) -> None:
        """Accept any number of observations."""

    def completes(self, counts: IntArray) -> bool:
        """Say whether so many observations of each agent lead to any release."""
        last = self.sizes.size - 1
        missing = self.sizes[np.minimum(self.n_released, last)] - self.n_pending
        # A size that is not there yet is no smaller than the last one.
        return bool(np.any(counts >= missing))

    def extend(
        self, steps: IntArray, observed: BoolArray, law: NoiseLaw, key: bytes | None
    ) -> None:
        """Take in rows of observations, and release the blocks that they complete.

        Parameters
        ----------
        steps : ndarray of int64 of shape (n_rows, n_agents)
            Observations in steps from the middle.
        observed : ndarray of bool of shape (n_rows, n_agents)
            Where there is one.
        law : NoiseLaw
            The noise.
        key : bytes or None
            As in `NoiseLaw.draw`.
        """
        chunk = _Chunk(steps, observed, len(self.pending))
        noised = self.noised if self._is_growing else self.noised.copy()
        n_released, n_pending = self.n_released.copy(), self.n_pending.copy()
        pending = self.pending.copy()
        used = np.zeros_like(chunk.counts)
        taken = np.zeros_like(chunk.totals)
        while True:
            slots = n_released if self._is_growing else np.zeros_like(n_released)
            while self.sizes.size <= slots.max(initial=0):
                following = _next_size(int(self.sizes[-1]), self.growth)
                self.sizes = np.append(self.sizes, following)
            missing = self.sizes[slots] - n_pending
            agents = np.flatnonzero(chunk.counts - used >= missing)
            if not agents.size:
                break
            used[agents] += missing[agents]
            sums = chunk.up_to(agents, used[agents])
            slots = slots[agents]
            noise = law.draw(key, agents, n_released[agents])
            if slots.max() >= noised.shape[2]:
                more = max(8, noised.shape[2] // 2) if self._is_growing else 1
                noised = np.pad(noised, ((0, 0), (0, 0), (0, more)))
            raw = pending[:, agents] + sums - taken[:, agents]
            earlier = 0.0 if self._is_growing else noised[:, agents, slots]
            noised[:, agents, slots] = earlier + (raw + noise).astype(np.float64)
            taken[:, agents] = sums
            pending[:, agents] = 0
            n_pending[agents] = 0
            n_released[agents] += 1
        pending += chunk.totals - taken
        n_pending += chunk.counts - used
        self.n_released, self.n_pending, self.pending = n_released, n_pending, pending
        self.noised = noised

    def released(self) -> Released:
        """Return what was published."""
        n_slots = int(self.n_released.max(initial=0))
        blocks = np.minimum(self.n_released, 1)
        if not self._is_growing:
            n_slots, blocks = min(n_slots, 1), self.n_released
        exists = np.arange(n_slots) < self.n_released[:, np.newaxis]
        copies = np.where(exists, blocks[:, np.newaxis], 0)
        noised = np.where(exists, self.noised[:, :, :n_slots], 0.0)
        return _released(noised, copies * self.sizes[:n_slots], copies, self.n_released)

    @property
    def _is_growing(self) -> bool:
        """Whether each block has a place of its own."""
        return self.growth > 1

    def n_appearances(self) -> IntArray:
        """Return in how many sums the most exposed observation of each agent is."""
        exposed: IntArray = np.minimum(self.n_released, 1)
        return exposed


class TreeReleases:
    """Sums of everything so far, after every observation, from a tree of noised nodes.

    Parameters
    ----------
    horizon : int
        Largest number of observations of an agent.
    n_quantities : int
        1, or 2 with sums of squares.
    """

    def __init__(self, horizon: int, n_quantities: int) -> None:
        self.horizon = horizon
        n_levels = horizon.bit_length()
        self.n_released: IntArray = np.zeros(0, dtype=np.int64)
        # The nodes that make up the present sum, one for each digit 1 of n_released.
        self.raw: IntArray = np.zeros((n_quantities, n_levels, 0), dtype=np.int64)
        self.noised: FloatArray = np.zeros((n_quantities, n_levels, 0))

    def add_agents(self, n_agents: int) -> None:
        """Let agents join, who have released nothing."""
        self.n_released = np.append(self.n_released, np.zeros(n_agents, dtype=np.int64))
        self.raw = np.pad(self.raw, ((0, 0), (0, 0), (0, n_agents)))
        self.noised = np.pad(self.noised, ((0, 0), (0, 0), (0, n_agents)))

    def check(self, counts: IntArray) -> None:
        """Refuse observations beyond the horizon, before anything is released.

        Parameters
        ----------
        counts : ndarray of int64 of shape (n_agents,)
            Observations to come.

        Raises
        ------
        ValueError
            If an agent would have more than the horizon.
        """
        most = int((self.n_released + counts).max(initial=0))
        if most > self.horizon:
            raise ValueError(
                f"The horizon is exhausted: the noise was made for {self.horizon} observations of "
                f"each agent, and with these rows one would have {most}. Nothing was added. Start "
                "again with a larger horizon, which is another release of the data, or use "
                'release="blocks", which has none.'
            )

    def completes(self, counts: IntArray) -> bool:
        """Say whether so many observations of each agent lead to any release."""
        return bool(np.any(counts > 0))

    def extend(
        self, steps: IntArray, observed: BoolArray, law: NoiseLaw, key: bytes | None
    ) -> None:
        """Take in rows of observations, and release the nodes of the sums at their end.

        Sums in between would use further nodes; nobody sees them, and whoever does so row by row
        learns no more than the tree's noise allows.

        Parameters
        ----------
        steps, observed, law, key
            As in `BlockReleases.extend`.
        """
        chunk = _Chunk(steps, observed, len(self.raw))
        before, after = self.n_released, self.n_released + chunk.counts
        levels = np.arange(self.raw.shape[1])[:, np.newaxis]
        present = (after >> levels) & 1 == 1
        ends = (after >> levels) << levels
        fresh = present & (ends > before)
        kept = present & ~fresh
        level, agents = np.nonzero(fresh)
        ends = ends[level, agents]
        raw, noised = np.where(kept, self.raw, 0), np.where(kept, self.noised, 0.0)
        if agents.size:
            sums = self._nodes(chunk, level, agents, ends)
            noise = law.draw(key, agents, ends)
            raw[:, level, agents] = sums
            noised[:, level, agents] = (sums + noise).astype(np.float64)
        self.raw, self.noised, self.n_released = raw, noised, after

    def _nodes(self, chunk: _Chunk, level: IntArray, agents: IntArray, ends: IntArray) -> IntArray:
        """Return raw sums of nodes that end within a chunk, shape (n_quantities, n)."""
        ends = ends - self.n_released[agents]  # counted from the start of the chunk
        begins = ends - (1 << level)
        # From a level on, the present nodes are those of the count with the lower digits cleared.
        # That is where a node of this level begins if it begins before the chunk.
        from_level = np.cumsum(self.raw[:, ::-1], axis=1)[:, ::-1]
        whole = from_level[:, 0, agents]
        before = np.where(
            begins < 0,
            from_level[:, level, agents],
            whole + chunk.up_to(agents, np.maximum(begins, 0)),
        )
        sums: IntArray = whole + chunk.up_to(agents, ends) - before
        return sums

    def released(self) -> Released:
        """Return what was published."""
        digits: IntArray = self.n_released[:, np.newaxis] >> np.arange(self.raw.shape[1]) & 1
        sums = self.noised.sum(axis=1)[:, :, np.newaxis]
        copies = digits.sum(axis=1, keepdims=True)
        return _released(sums, self.n_released[:, np.newaxis], copies, self.n_released)

    def n_appearances(self) -> IntArray:
        """Return in how many sums the most exposed observation, the first, of each agent is."""
        return np.frexp(self.n_released.astype(np.float64))[1].astype(np.int64)


def _released(
    noised: FloatArray, sizes: IntArray, copies: IntArray, n_released: IntArray
) -> Released:
    squares = noised[1] / HALF_STEPS**2 if len(noised) == 2 else None
    return Released(noised[0] / STEPS, squares, sizes.copy(), copies, n_released.copy())


def make_releases(
    first_block: int, growth: float, horizon: int | None, *, n_quantities: int
) -> BlockReleases | TreeReleases:
    """Return a tree where there is a horizon, and blocks otherwise.

    Parameters
    ----------
    first_block, growth, horizon
        As the estimator's parameters.
    n_quantities : int
        1, or 2 with sums of squares.

    Returns
    -------
    BlockReleases or TreeReleases
        Without agents yet.
    """
    if horizon is None:
        return BlockReleases(first_block, growth, n_quantities)
    return TreeReleases(horizon, n_quantities)
