"""Hashing of values into buckets, differently in every cohort, to the byte.

The specification, so that a client in any language reproduces it:

1. A value is text, encoded as UTF-8; an integer stands for its decimal digits.
2. ``digest = SHA-256(b"skldp-hash-1" + length + key + value)``, where `key` is the UTF-8 of the
   hash key and `length` its number of bytes as 8 bytes, little-endian. The first and second 8
   bytes of the digest, little-endian, are the integers a and b.
3. In cohort c, hash number j (of h) has the word ``mix(a + (c h + j) b)``, modulo 2^64, with

   .. code-block:: text

      mix(x): x ^= x >> 30; x *= 0xBF58476D1CE4E5B9
              x ^= x >> 27; x *= 0x94D049BB133111EB
              x ^= x >> 31

4. Open alphabet: the bucket is ``(word >> 32) * k >> 32``. Of the 2^32 leading halves of a word,
   each bucket has the floor or the ceiling of 2^32 / k: the probabilities of two buckets differ
   by at most a factor of 1 + 1 / floor(2^32 / k).
5. Closed alphabet of S values: the bucket is ``rank mod k``, the rank of the word among the
   words of all S values in that cohort and hash (equal words in the order of the alphabet): a
   pseudo-random permutation of 0..S-1 before the modulus.

One digest per distinct value, and a few multiplications per cohort: a digest for each would cost
fifteen times as much.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import count
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skldp._validation import check_integer
from skldp.channels._alphabet import MAX_CATEGORIES, Alphabet, check_values

__all__ = ["Hashing"]

_DOMAIN = b"skldp-hash-1"
_BLOCK = 1 << 15  # words mixed at a time
MAX_COHORTS = 2**32  # a packed report begins with the cohort as four bytes


@dataclass(frozen=True, repr=False)
class Hashing:
    """A public hash family from values to buckets, one function per cohort and hash.

    Parameters
    ----------
    n_buckets : int
        Number of buckets k, at least 2.
    n_cohorts : int, default=1
        Number of cohorts C.
    n_hashes : int, default=1
        Number of hash functions h of a cohort, at most `n_buckets`.
    key : str, default=""
        Names the family; public. Every character counts.
    alphabet : Alphabet, default=None
        The closed list of values; None leaves the alphabet open.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type or out of range.
    """

    n_buckets: int
    n_cohorts: int = 1
    n_hashes: int = 1
    key: str = ""
    alphabet: Alphabet | None = None

    def __post_init__(self) -> None:
        for name, minimum, maximum in (
            ("n_buckets", 2, MAX_CATEGORIES),
            ("n_cohorts", 1, MAX_COHORTS),
            ("n_hashes", 1, None),
        ):
            checked = check_integer(getattr(self, name), name, minimum=minimum, maximum=maximum)
            object.__setattr__(self, name, checked)
        if self.n_hashes > self.n_buckets:
            raise ValueError(
                f"n_hashes={self.n_hashes} functions cannot set as many of "
                f"n_buckets={self.n_buckets} bits; use fewer hashes or more buckets."
            )
        if not isinstance(self.key, str):
            raise TypeError(f"hash_key must be a string, got {type(self.key).__name__}.")
        object.__setattr__(self, "key", str.__str__(self.key))
        try:
            self.key.encode()
        except UnicodeEncodeError:
            raise ValueError(
                "hash_key holds lone surrogates, which are no Unicode text and cannot be hashed."
            ) from None
        if self.alphabet is not None and not isinstance(self.alphabet, Alphabet):
            raise TypeError(f"alphabet must be an Alphabet, got {type(self.alphabet).__name__}.")

    def __repr__(self) -> str:
        listed = None if self.alphabet is None else f"<{self.alphabet.n_categories} values>"
        return (
            f"Hashing(n_buckets={self.n_buckets}, n_cohorts={self.n_cohorts}, "
            f"n_hashes={self.n_hashes}, key={self.key!r}, alphabet={listed})"
        )

    def __getstate__(self) -> dict[str, Any]:
        names = ("n_buckets", "n_cohorts", "n_hashes", "key", "alphabet")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @property
    def width(self) -> int:
        """Number of columns of encoded values: the cohort and a bucket per hash."""
        return 1 + self.n_hashes

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the parameters, hexadecimal."""
        alphabet = None if self.alphabet is None else self.alphabet.digest
        parameters = [self.n_buckets, self.n_cohorts, self.n_hashes, self.key, alphabet]
        return sha256(json.dumps(parameters).encode()).hexdigest()

    @property
    def collision_probability(self) -> float:
        """P(a bucket of one value is also one of another's), over hash families."""
        k = self.n_buckets
        if self.alphabet is None or self.n_hashes > 1 or self.alphabet.n_categories < 2:
            return float(1.0 - (1.0 - 1.0 / k) ** self.n_hashes)
        size = self.alphabet.n_categories
        each, one_more = divmod(size, k)  # values in each bucket, and buckets with one more
        pairs = one_more * (each + 1) * each + (k - one_more) * each * (each - 1)
        return pairs / (size * (size - 1))

    @property
    def code_dtype(self) -> Any:
        """Narrowest unsigned dtype of a cohort and a bucket."""
        return np.min_scalar_type(max(self.n_cohorts, self.n_buckets) - 1)

    def check_codes(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return codes (cohort, bucket, ...) of shape (n, width) as they are.

        Raises
        ------
        ValueError
            If a cohort or a bucket is out of range.
        """
        if codes.size and (
            codes.min() < 0
            or codes[:, 0].max() >= self.n_cohorts
            or codes[:, 1:].max() >= self.n_buckets
        ):
            raise ValueError(
                f"Encoded rows hold a cohort in 0..{self.n_cohorts - 1} and buckets in "
                f"0..{self.n_buckets - 1}."
            )
        return codes

    def to_dict(self) -> dict[str, Any]:
        """Return the hashing as a dictionary that JSON can hold."""
        return {
            "n_buckets": self.n_buckets,
            "n_cohorts": self.n_cohorts,
            "n_hashes": self.n_hashes,
            "key": self.key,
            "alphabet": None if self.alphabet is None else self.alphabet.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build a hashing from `to_dict`; TypeError or ValueError if it is not one."""
        given = dict(data)
        if given["alphabet"] is not None:
            listed = given["alphabet"]
            categories = listed["categories"]
            if not (categories is None or isinstance(categories, list | tuple)):
                raise TypeError("categories must be a list.")
            given["alphabet"] = Alphabet(
                listed["n_categories"], None if categories is None else tuple(categories)
            )
        return cls(**given)

    # -- digests ----------------------------------------------------------------------------

    @cached_property
    def _prefix(self) -> Any:
        key = self.key.encode()
        return sha256(_DOMAIN + len(key).to_bytes(8, "little") + key)

    def digests(self, distinct: Any) -> NDArray[np.uint64]:
        """Return the integers a and b of each value.

        Parameters
        ----------
        distinct : sequence of str or int
            Values, best without repetition.

        Returns
        -------
        ndarray of uint64 of shape (n, 2)
        """
        start, found = self._prefix.copy, []
        try:
            for value in distinct:
                hasher = start()
                hasher.update(str(value).encode())
                found.append(hasher.digest())
        except UnicodeEncodeError:
            raise ValueError(
                "A value holds lone surrogates, which are no Unicode text and cannot be hashed."
            ) from None
        words = np.frombuffer(b"".join(found), dtype="<u8").reshape(-1, 4)
        return words[:, :2].astype(np.uint64)

    def _words(
        self, digests: NDArray[np.uint64], numbers: NDArray[np.uint64] | np.uint64
    ) -> NDArray[np.uint64]:
        """Return the word of each digest for the function of each number c h + j."""
        words = digests[:, 1] * numbers
        words += digests[:, 0]
        shifted = np.empty_like(words)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            words ^= np.right_shift(words, np.uint64(shift), out=shifted)
            words *= np.uint64(factor)
        words ^= np.right_shift(words, np.uint64(31), out=shifted)
        return words

    def _reduce(self, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the buckets of words, in their place."""
        words >>= np.uint64(32)
        words *= np.uint64(self.n_buckets)
        words >>= np.uint64(32)
        return words

    # -- buckets ----------------------------------------------------------------------------

    @property
    def bucket_dtype(self) -> Any:
        """Narrowest unsigned dtype of a bucket."""
        return np.min_scalar_type(self.n_buckets - 1)

    def table(self, values: Any) -> NDArray[Any]:
        """Return the buckets of each value in every cohort.

        Parameters
        ----------
        values : array-like of shape (S,)
            Strings or integers; for a closed alphabet, of the alphabet.

        Returns
        -------
        ndarray of unsigned integers of shape (n_cohorts, n_hashes, S)
            Cohort by cohort, so that decoding reads it in order.
        """
        column = check_values(values)
        if self.alphabet is not None:
            return self._closed_table[..., self._codes(column)]
        table = np.empty((self.n_cohorts, self.n_hashes, len(column)), dtype=self.bucket_dtype)
        digests = self.digests(column.tolist())
        rows = table.reshape(self.n_cohorts * self.n_hashes, len(column))
        for start in range(0, len(column), _BLOCK):
            block = np.asfortranarray(digests[start : start + _BLOCK])
            for number, row in enumerate(rows):
                row[start : start + len(block)] = self._reduce(
                    self._words(block, np.uint64(number))
                )
        return table

    @cached_property
    def _closed_table(self) -> NDArray[Any]:
        return self._permuted(np.arange(self.n_cohorts))

    def _permuted(self, cohorts: NDArray[Any]) -> NDArray[Any]:
        """Return the buckets of the closed alphabet, (len(cohorts), n_hashes, S)."""
        assert self.alphabet is not None
        size = self.alphabet.n_categories
        table = np.empty((len(cohorts), self.n_hashes, size), dtype=self.bucket_dtype)
        digests = self.digests(self.alphabet.values)
        for cohort, rows in zip(cohorts.tolist(), table, strict=True):
            for j, row in enumerate(rows):
                words = self._words(digests, np.uint64(cohort * self.n_hashes + j))
                order = np.argsort(words, kind="stable")
                row[order] = np.arange(size, dtype=np.uint64) % np.uint64(self.n_buckets)
        return table

    def _codes(self, column: NDArray[Any]) -> NDArray[Any]:
        assert self.alphabet is not None
        codes = self.alphabet.lookup(column)
        if codes.size and codes.min() < 0:
            raise ValueError(
                "Some values are not in the closed alphabet of the encoder. Add them to "
                "`alphabet`, or leave it open (alphabet=None)."
            )
        return codes

    def encode(self, values: Any, cohorts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the buckets of each value in the cohort of its user.

        Parameters
        ----------
        values : array-like of shape (n,)
            Strings or integers.
        cohorts : ndarray of int of shape (n,)
            Cohorts in 0..n_cohorts-1.

        Returns
        -------
        ndarray of int64 of shape (n, n_hashes)
        """
        column = check_values(values)
        if self.alphabet is not None:
            return self._encode_closed(self._codes(column), cohorts)
        digests, positions = self._distinct_digests(column)
        buckets = np.empty((len(column), self.n_hashes), dtype=np.int64)
        first = cohorts.astype(np.uint64) * np.uint64(self.n_hashes)
        for start in range(0, len(column), _BLOCK):
            rows = slice(start, start + _BLOCK)
            block = digests[positions[rows]]
            for j in range(self.n_hashes):
                buckets[rows, j] = self._reduce(self._words(block, first[rows] + np.uint64(j)))
        return buckets

    def _distinct_digests(
        self, column: NDArray[Any]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        if column.dtype != object:
            distinct, positions = np.unique(column, return_inverse=True)
            return self.digests(distinct.tolist()), positions
        # A value that is not there yet is given the next number: one look-up for each value.
        number: defaultdict[Any, int] = defaultdict(count().__next__)
        positions = np.fromiter(map(number.__getitem__, column.tolist()), np.int64, len(column))
        return self.digests(number), positions

    def _encode_closed(self, codes: NDArray[Any], cohorts: NDArray[np.int64]) -> NDArray[np.int64]:
        present, position = np.unique(cohorts, return_inverse=True)
        if len(present) == self.n_cohorts:
            return self._closed_table[cohorts, :, codes].astype(np.int64)
        # One client needs the permutations of its own cohort only.
        return self._permuted(present)[position, :, codes].astype(np.int64)
