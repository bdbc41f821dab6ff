"""Streams for tests: one that remembers what it served, one that serves what it was told."""

import numpy as np

from skldp.random import WordStream


class RecordedStream(WordStream):
    """Serves the bits of a keyed stream and keeps every array it filled."""

    def __init__(self, key=bytes(32)):
        self._stream = WordStream(key)
        self.served = []

    def fill(self, out):
        self.served.append(self._stream.fill(out).copy())
        return out

    def words(self, n):
        return self.fill(np.empty(n, dtype=np.uint64))


class PlannedStream(WordStream):
    """Serves the given arrays one after the other; asks for exactly their sizes."""

    def __init__(self, *arrays):
        self._arrays = list(arrays)

    def fill(self, out):
        planned = np.asarray(self._arrays.pop(0))
        assert planned.shape == out.shape
        out[...] = planned.astype(out.dtype)
        np.testing.assert_array_equal(out.astype(object), planned.astype(object))
        return out

    def words(self, n):
        return self.fill(np.empty(n, dtype=np.uint64))

    @property
    def is_exhausted(self):
        return not self._arrays
