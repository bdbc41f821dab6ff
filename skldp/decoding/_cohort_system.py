"""The linear system of cohorts and buckets, without its matrix.

H has a row per cohort c and bucket y and a column per candidate s; H[(c, y), s] = 1 where s falls
into y in cohort c, equation (17) of Kairouz et al. (2016). For S candidates it would be k C × S;
what is stored is the C × S table of buckets. ``H p`` is then a weighted count per cohort, and
``Hᵀ u`` a gather. (Only where many cohorts have a few candidates each is H kept as a sparse
matrix: calls per cohort would cost more than the numbers.)

A list of candidates that does not cover everybody leaves a share u = 1 - Σp to strings that
fall anywhere: H p + u β, with β = P(bucket | any string) = 1 - (1 - 1/k)^h. So the system that is
solved is the centred one, (H - β) p = b - β; on distributions with Σp = 1 both are the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

__all__ = ["CohortSystem"]

_BLOCK = 1 << 15  # codes gathered at a time
_FEW_CANDIDATES = 1 << 11  # with fewer, H is kept as a sparse matrix of
_MOST_CODES = 1 << 21  # ... at most so many codes (12 bytes each)
_DENSE_ROWS = 1 << 21  # entries of X that are formed at a time


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

    @cached_property
    def _n_used(self) -> int:
        return int((self.weights.max(axis=1) > 0).sum())

    @property
    def max_rank(self) -> int:
        """Upper bound on the rank that counts: the rows of each cohort sum to a constant.

        (Two hashes in the same bucket are an exception; it adds at most C to the rank, in
        directions of hardly any weight.)
        """
        constant_is_zero = self.centre != 0.0 and self.table.shape[1] == 1
        rank = self._n_used * (self.n_buckets - 1)
        return rank + (rank > 0 and not constant_is_zero)

    @property
    def load(self) -> float:
        """γ = S / (C (k - 1)): near 1 the system is ill-conditioned, beyond it singular."""
        return self.n_candidates / max(self._n_used * (self.n_buckets - 1), 1)

    def reweighted(self, weights: NDArray[np.float64]) -> "CohortSystem":
        """Return the system of the same rows with other weights."""
        other = replace(self, weights=weights)
        if "_sparse" in self.__dict__:
            other.__dict__["_sparse"] = self._sparse
        return other

    def forward(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return X p, shape (n_cohorts, n_buckets)."""
        result = self.scatter(p)
        if self.centre:
            result -= self.centre * p.sum()
        return result

    def scatter(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return H p, shape (n_cohorts, n_buckets): the mass in every bucket."""
        if self._sparse is not None:
            summed: NDArray[np.float64] = self._sparse.T @ p
            return summed.reshape(self.n_cohorts, -1)[:, : self.n_buckets].copy()
        result = np.empty((self.n_cohorts, self.n_buckets))
        for cohort, rows in enumerate(self.table):
            total = np.bincount(rows[0], weights=p, minlength=self.n_buckets + 1)
            for row in rows[1:]:
                total += np.bincount(row, weights=p, minlength=self.n_buckets + 1)
            result[cohort] = total[: self.n_buckets]
        return result

    def adjoint(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Xᵀ rows, shape (S,)."""
        result = self.gather(rows)
        if self.centre:
            result -= self.centre * rows.sum()
        return result

    def gather(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Hᵀ rows, shape (S,): the sum over the buckets of each candidate."""
        padded = self._padded(rows)
        if self._sparse is not None:
            collected: NDArray[np.float64] = self._sparse @ padded.reshape(-1)
            return collected
        result = np.zeros(self.n_candidates)
        gathered = np.empty(min(_BLOCK, self.n_candidates))
        for start, block in self._blocks():
            target = result[start : start + block.shape[2]]
            values = gathered[: block.shape[2]]
            for cohort, functions in enumerate(block):
                for buckets in functions:
                    np.take(padded[cohort], buckets, out=values, mode="clip")
                    target += values
        return result

    def cohort_scores(self, rows: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield X_cᵀ rows_c, shape (S,), for every cohort."""
        padded = self._padded(rows)
        shifts = self.centre * rows.sum(axis=1)
        for values, shift, functions in zip(padded, shifts, self.table, strict=True):
            scores = values[functions[0]]
            for buckets in functions[1:]:
                scores += values[buckets]
            scores -= shift
            yield scores

    def _padded(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return rows with a further bucket, the one that stands for "none", which holds 0."""
        padded = np.zeros((self.n_cohorts, self.n_buckets + 1))
        padded[:, : self.n_buckets] = rows
        return padded

    def _blocks(self) -> Iterator[tuple[int, NDArray[np.unsignedinteger]]]:
        for start in range(0, self.n_candidates, _BLOCK):
            yield start, self.table[:, :, start : start + _BLOCK]

    @cached_property
    def _sparse(self) -> Any:
        """Hᵀ with an empty row per cohort for "none", or None where blocks are better."""
        if self.n_candidates >= _FEW_CANDIDATES or self.table.size > _MOST_CODES:
            return None
        return self.incidence(0, self.n_cohorts)

    def incidence(self, first: int, last: int) -> Any:
        """Return Hᵀ for cohorts first..last-1, a sparse matrix.

        Its shape is (S, (last - first) (n_buckets + 1)): the last bucket of a cohort is "none".
        """
        part = self.table[first:last]
        n_rows = (last - first) * (self.n_buckets + 1)
        offsets = np.arange(0, n_rows, self.n_buckets + 1).reshape(-1, 1, 1)
        wide = np.int64 if n_rows >= 2**31 else np.int32
        codes = np.ascontiguousarray((part + offsets).astype(wide).reshape(-1, part.shape[2]).T)
        ends = np.arange(0, codes.size + 1, codes.shape[1], dtype=wide)
        return csr_array((np.ones(codes.size), codes.reshape(-1), ends), (len(codes), n_rows))

    def normal(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Xᵀ W X p."""
        return self.adjoint(self.weights * self.forward(p))

    def gram(self, diagonal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Xᵀ diag(diagonal) X, shape (S, S); for few candidates.

        Parameters
        ----------
        diagonal : ndarray of shape (n_cohorts, n_buckets)
            A factor for each row.
        """
        size, n_hashes = self.n_candidates, self.table.shape[1]
        total = np.zeros((size, size))
        # Candidates share few of many buckets: a sparse product; few buckets: a dense one.
        is_sparse = self.n_buckets > 8 * n_hashes
        entries = size * (n_hashes if is_sparse else self.n_buckets)
        step = max(1, _DENSE_ROWS // entries)
        padded = self._padded(diagonal)
        for first in range(0, self.n_cohorts, step):
            last = min(first + step, self.n_cohorts)
            plain = self.incidence(first, last)
            factors = padded[first:last].reshape(-1)
            if is_sparse:
                scaled = plain.copy()
                scaled.data = factors[plain.indices]
                total += (scaled @ plain.T).toarray()
            else:
                matrix = plain.toarray()
                total += (matrix * factors) @ matrix.T
        if self.centre:
            column = self.centre * self.gather(diagonal)
            total -= column
            total -= column[:, np.newaxis]
            total += self.centre**2 * diagonal.sum()
        return total

    @cached_property
    def scale(self) -> float:
        """Typical diagonal entry of Xᵀ W X: Σ weights over buckets, times β (1 - β)."""
        share = 1.0 / self.n_buckets
        filled: float = 1.0 - (1.0 - share) ** self.table.shape[1]
        total = float(self.weights.sum())
        return total * filled * (1.0 - filled)
