"""The linear system of cohorts and buckets, without its matrix.

H has a row per cohort c and bucket y and a column per candidate s; H[(c, y), s] = 1 where s falls
into y in cohort c, equation (17) of Kairouz et al. (2016). For S candidates it would be k C × S;
what is stored is the C × S table of buckets. ``H p`` is then a weighted count per cohort, and
``Hᵀ u`` a gather.

A list of candidates that does not cover everybody leaves a share u = 1 - Σp to strings that
fall anywhere: H p + u β, with β = P(bucket | any string) = 1 - (1 - 1/k)^h. So the system that is
solved is the centred one, (H - β) p = b - β; on distributions with Σp = 1 both are the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["CohortSystem"]

_BLOCK = 1 << 15  # codes gathered at a time


@dataclass(frozen=True, eq=False)
class CohortSystem:
    """Candidates' buckets as a linear operator X = H - β, with weights for the rows.

    Parameters
    ----------
    table : ndarray of unsigned integers of shape (n_cohorts, n_hashes, S)
        Buckets; `n_buckets` stands for "none" (a second hash into the same bucket).
    n_buckets : int
        Number of buckets k.
    weights : ndarray of float64 of shape (n_cohorts, n_buckets)
        Weights of the rows, not negative: the number of reports of the cohort.
    centre : float
        β, or 0 for the plain system.
    """

    table: NDArray[np.unsignedinteger]
    n_buckets: int
    weights: NDArray[np.float64]
    centre: float

    @property
    def n_candidates(self) -> int:
        """Number S of columns."""
        return int(self.table.shape[2])

    @property
    def n_cohorts(self) -> int:
        """Number C of cohorts."""
        return int(self.table.shape[0])

    @property
    def max_rank(self) -> int:
        """Upper bound on the rank: each cohort's rows sum to a constant."""
        used = int((self.weights.max(axis=1) > 0).sum())
        return used * (self.n_buckets - 1) + (self.centre == 0.0)

    @property
    def load(self) -> float:
        """γ = S / (C (k - 1)): near 1 the system is ill-conditioned, beyond it singular."""
        used = int((self.weights.max(axis=1) > 0).sum())
        return self.n_candidates / max(used * (self.n_buckets - 1), 1)

    def forward(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return X p, shape (n_cohorts, n_buckets)."""
        result = np.empty((self.n_cohorts, self.n_buckets))
        for cohort, rows in enumerate(self.table):
            total = np.bincount(rows[0], weights=p, minlength=self.n_buckets + 1)
            for row in rows[1:]:
                total += np.bincount(row, weights=p, minlength=self.n_buckets + 1)
            result[cohort] = total[: self.n_buckets]
        if self.centre:
            result -= self.centre * p.sum()
        return result

    def adjoint(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Xᵀ rows, shape (S,)."""
        result = self._gather(rows)
        if self.centre:
            result -= self.centre * rows.sum()
        return result

    def _gather(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        result = np.zeros(self.n_candidates)
        padded = np.zeros((self.n_cohorts, self.n_buckets + 1))
        padded[:, : self.n_buckets] = rows
        gathered = np.empty(min(_BLOCK, self.n_candidates))
        for start, block in self._blocks():
            target = result[start : start + block.shape[2]]
            values = gathered[: block.shape[2]]
            for cohort, functions in enumerate(block):
                for buckets in functions:
                    np.take(padded[cohort], buckets, out=values, mode="clip")
                    target += values
        return result

    def _blocks(self) -> Iterator[tuple[int, NDArray[np.unsignedinteger]]]:
        for start in range(0, self.n_candidates, _BLOCK):
            yield start, self.table[:, :, start : start + _BLOCK]

    def normal(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Xᵀ W X p."""
        return self.adjoint(self.weights * self.forward(p))

    @cached_property
    def scale(self) -> float:
        """Typical diagonal entry of Xᵀ W X: Σ weights over buckets, times β (1 - β)."""
        share = 1.0 / self.n_buckets
        filled: float = 1.0 - (1.0 - share) ** self.table.shape[1]
        total = float(self.weights.sum())
        return total * filled * (1.0 - filled)

    def dense(self) -> NDArray[np.float64]:
        """Return X as a matrix of shape (n_cohorts n_buckets, S); for small systems."""
        matrix = np.zeros((self.n_cohorts, self.n_buckets + 1, self.n_candidates))
        columns = np.arange(self.n_candidates)
        for cohort, functions in enumerate(self.table):
            for buckets in functions:
                matrix[cohort, buckets, columns] = 1.0
        kept: NDArray[np.float64] = matrix[:, : self.n_buckets] - self.centre
        return kept.reshape(-1, self.n_candidates)
