"""A stream of uniform random bytes: AES-256 in counter mode.

The keystream of AES-256-CTR is what AES-256-GCM adds to its plaintext, so encrypting zeros
with GCM yields it: with a nonce of twelve zero bytes the counter starts at 2. It is taken
from GCM because OpenSSL's GCM uses the wide vector AES instructions of current processors and
its plain CTR does not (2.5 times faster where they exist); the authentication tag is unused.

A key serves for 64 MiB. The 32 bytes that follow become the next key and are never output,
so a later look into memory does not reveal what was drawn before. No output is buffered:
every byte is produced straight into the caller's array, hence a forked child has nothing
of its parent's to repeat once it has taken a new key.
"""

import os
import sys
from typing import Any, NoReturn, SupportsIndex, TypeVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

_KEY_BYTES = 32
_BYTES_PER_KEY = 1 << 26
_BLOCK_BYTES = 1 << 17  # stays in the second-level cache together with its target
_SMALL_BYTES = 1 << 12  # below this one allocation is cheaper than a second call
_SLACK_BYTES = 15  # update_into demands room for a block it never writes
_ZEROS = memoryview(bytes(_BLOCK_BYTES))

_Array = TypeVar("_Array", bound=NDArray[Any])


class WordStream:
    """Uniform random bytes from AES-256 in counter mode.

    Without a key the stream is cryptographically secure: its key comes from the operating
    system, and a process that finds itself forked takes a new one before its next byte. With
    a key the stream is a pure function of that key, equal on every platform, for
    simulations and tests; what is drawn from it is not private.

    Parameters
    ----------
    key : bytes of length 32, optional
        Key of a reproducible stream. None (default) makes a secure one.

    Notes
    -----
    A stream cannot be pickled or copied: the copy would repeat its noise. Build one stream
    per call and per thread, with :func:`random_stream`.

    Examples
    --------
    >>> from skldp.random import WordStream
    >>> WordStream().is_secure
    True
    >>> first, second = WordStream(bytes(32)), WordStream(bytes(32))
    >>> bool((first.words(3) == second.words(3)).all())
    True
    """

    def __init__(self, key: bytes | None = None) -> None:
        if key is not None:
            if not isinstance(key, bytes):
                raise TypeError(f"key must be bytes or None, got {type(key).__name__}.")
            if len(key) != _KEY_BYTES:
                raise ValueError(f"key must have {_KEY_BYTES} bytes, got {len(key)}.")
        self._is_secure = key is None
        self._process = os.getpid()
        self._start(os.urandom(_KEY_BYTES) if key is None else key)

    @property
    def is_secure(self) -> bool:
        """Whether the key came from the operating system."""
        return self._is_secure

    def fill(self, out: _Array) -> _Array:
        """Fill an array with uniform random bits.

        Parameters
        ----------
        out : ndarray of any integer dtype
            C-contiguous and writable; overwritten.

        Returns
        -------
        ndarray
            `out` itself.

        Raises
        ------
        TypeError
            If `out` is not an array of integers.
        ValueError
            If `out` is read-only or not C-contiguous.
        """
        if not isinstance(out, np.ndarray) or out.dtype.kind not in "iu":
            raise TypeError("out must be an ndarray of integers.")
        if not (out.flags.c_contiguous and out.flags.writeable):
            raise ValueError("out must be C-contiguous and writable.")
        if out.size == 0:
            return out
        if self._is_secure and os.getpid() != self._process:
            self._process = os.getpid()
            self._start(os.urandom(_KEY_BYTES))
        if out.dtype.isnative:
            self._write(out.data.cast("B"))
        else:
            self._write(np.asarray(out).reshape(-1).view(np.uint8).data)
        if out.dtype.isnative is (sys.byteorder == "big"):
            out.byteswap(inplace=True)  # the stream is little-endian on every platform
        return out

    def words(self, n: int) -> NDArray[np.uint64]:
        """Draw 64-bit words.

        Parameters
        ----------
        n : int
            Number of words.

        Returns
        -------
        ndarray of shape (n,), uint64
            Independent and uniform on 0..2^64-1.
        """
        return self.fill(np.empty(n, dtype=np.uint64))

    def _start(self, key: bytes) -> None:
        self._encryptor = Cipher(algorithms.AES(key), modes.GCM(bytes(12))).encryptor()
        self._left = _BYTES_PER_KEY

    def _write(self, out: memoryview) -> None:
        """Overwrite all bytes of `out`, changing the key wherever its 64 MiB end."""
        position, end = 0, len(out)
        while position < end:
            if self._left == 0:
                self._start(self._encryptor.update(bytes(_KEY_BYTES)))
            n_bytes = min(end - position, self._left, _BLOCK_BYTES)
            if n_bytes > _SMALL_BYTES:
                # Straight into place, but for the last bytes of `out` where the slack is missing.
                room = (end - position - _SLACK_BYTES) & ~15
                n_bytes = min(n_bytes, room)
                self._encryptor.update_into(
                    _ZEROS[:n_bytes], out[position : position + n_bytes + _SLACK_BYTES]
                )
            else:
                out[position : position + n_bytes] = self._encryptor.update(_ZEROS[:n_bytes])
            position += n_bytes
            self._left -= n_bytes

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        # pickle, copy.copy and copy.deepcopy all come through here.
        raise TypeError(
            "A WordStream cannot be pickled or copied, because the copy would repeat its "
            "noise. Build a new one where it is needed, with skldp.random.random_stream."
        )
