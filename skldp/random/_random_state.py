"""From scikit-learn's `random_state` to a stream of random words."""

import hashlib
from typing import Any, TypeAlias

import numpy as np

from skldp.random._words import WordStream

RandomState: TypeAlias = int | np.integer[Any] | np.random.Generator | np.random.RandomState | None

_DOMAIN = b"skldp.random 1"
_ARRAY_KINDS = "biufcmMSU"


def random_stream(random_state: RandomState, *context: Any) -> WordStream:
    """Build the stream of random words that a `random_state` stands for.

    Parameters
    ----------
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None: a cryptographically secure stream. A non-negative int: a reproducible stream
        for simulations. A Generator or RandomState: 32 bytes are drawn from it (which
        advances it) as the seed of a reproducible stream.
    *context : str, bytes, int, ndarray, or tuples of these
        What the stream is for. Reproducible streams with different contexts are
        unrelated, so that one seed never gives two batches or columns the same noise.
        Ignored where `random_state` is None.

    Returns
    -------
    WordStream
        A new stream.

    Raises
    ------
    TypeError
        If `random_state` or an item of `context` is of another type.
    ValueError
        If `random_state` is a negative int.

    Notes
    -----
    Only ``random_state=None`` protects anybody: whoever knows, or guesses, the seed can
    subtract the noise. The key of a reproducible stream is the SHA-256 digest of the seed and
    of the digests of the items, each with its type and, for arrays, dtype and shape.

    Examples
    --------
    >>> from skldp.random import random_stream
    >>> int(random_stream(0, "a").words(1)[0]) == int(random_stream(0, "a").words(1)[0])
    True
    >>> int(random_stream(0, "a").words(1)[0]) == int(random_stream(0, "b").words(1)[0])
    False
    """
    _check_random_state(random_state)
    if random_state is None:
        return WordStream()
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        seed = _digest(random_state.bytes(32))
    else:
        seed = _digest(random_state)
    return WordStream(_hash(b"key", _DOMAIN, seed, *map(_digest, context)))


def simulation_generator(random_state: RandomState) -> np.random.Generator:
    """Build a NumPy generator for simulations that release nothing private.

    Parameters
    ----------
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None: seeded by the operating system. A non-negative int: the seed. A Generator is
        returned as it is. A RandomState seeds a new generator with 32 bytes drawn from it.

    Returns
    -------
    numpy.random.Generator
        The generator. It is not cryptographic: never privatize with it.

    Raises
    ------
    TypeError
        If `random_state` is of another type.
    ValueError
        If `random_state` is a negative int.
    """
    _check_random_state(random_state)
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(int.from_bytes(random_state.bytes(32), "little"))
    return np.random.default_rng(None if random_state is None else int(random_state))


def _check_random_state(random_state: object) -> None:
    if random_state is None or isinstance(
        random_state, np.random.Generator | np.random.RandomState
    ):
        return
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise TypeError(
            "random_state must be None (secure), a non-negative int, a numpy.random.Generator "
            f"or a numpy.random.RandomState (simulation), got {type(random_state).__name__}."
        )
    if random_state < 0:
        raise ValueError(
            "random_state must be a non-negative int if it is an int, got a negative one."
        )


def _hash(kind: bytes, *parts: Any) -> bytes:
    """SHA-256 of a kind and of parts, none of which can pass for another division of them."""
    digest = hashlib.sha256()
    for part in (kind, *parts):
        view = memoryview(part)
        digest.update(view.nbytes.to_bytes(8, "little"))
        digest.update(view)
    return digest.digest()


def _digest(item: Any) -> bytes:
    """Digest of one context item; different items have different digests."""
    if isinstance(item, str):
        return _hash(b"str", item.encode("utf-8", "surrogatepass"))
    if isinstance(item, bytes):
        return _hash(b"bytes", item)
    if isinstance(item, int | np.integer) and not isinstance(item, bool):
        value = int(item)
        return _hash(b"int", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
    if isinstance(item, tuple):
        return _hash(b"tuple", *map(_digest, item))
    if isinstance(item, np.ndarray) and item.dtype.kind in _ARRAY_KINDS:
        dtype = item.dtype.newbyteorder("<")
        array = np.asarray(item, dtype=dtype, order="C")
        contents = array.reshape(-1).view(np.uint8) if array.nbytes else b""
        return _hash(b"array", dtype.str.encode(), repr(item.shape).encode(), contents)
    raise TypeError(
        "A context item must be a str, bytes, int, numeric or string ndarray, or a tuple of "
        f"these, got {_describe(item)}."
    )


def _describe(item: object) -> str:
    if isinstance(item, np.ndarray):
        return f"an ndarray of dtype {item.dtype}"
    return type(item).__name__
