"""The word stream: known answers, re-keying, forks, copies."""

import copy
import hashlib
import os
import pickle

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from skldp.random import WordStream, random_stream

KEY = bytes(range(32))
BYTES_PER_KEY = 1 << 26


def keystream(key, n_bytes):
    """AES-256-CTR itself: the counter block is 96 zero bits, then the number 2."""
    counter = bytes(12) + (2).to_bytes(4, "big")
    return Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor().update(bytes(n_bytes))


def draw(stream, n_bytes):
    return stream.fill(np.empty(n_bytes, dtype=np.uint8)).tobytes()


def test_known_answer_of_aes_256():
    # NIST's GCM test case 14: key and nonce zero; the ciphertext of one zero block.
    assert draw(WordStream(bytes(32)), 16).hex() == "cea7403d4d606b6e074ec5d3baf39d18"


def test_keyed_stream_is_aes_in_counter_mode_for_every_division_into_requests():
    sizes = [1, 15, 16, 17, 0, 4095, 4096, 4097, 4111, 4112, 70_000]
    sizes += [131_071, 131_072, 131_073, 131_087, 131_088, 300_001]
    stream = WordStream(KEY)
    assert b"".join(draw(stream, size) for size in sizes) == keystream(KEY, sum(sizes))


def test_words_are_little_endian():
    words = WordStream(KEY).words(1000)
    assert words.dtype == np.uint64
    np.testing.assert_array_equal(words, np.frombuffer(keystream(KEY, 8000), dtype="<u8"))


@pytest.mark.parametrize("dtype", ["<u4", ">u4", "<i8", ">i8", "u1", ">u2"])
def test_values_do_not_depend_on_the_byte_order_of_the_array(dtype):
    filled = WordStream(KEY).fill(np.empty(5000, dtype=dtype))
    same = np.frombuffer(keystream(KEY, filled.nbytes), np.dtype(dtype).newbyteorder("<"))
    np.testing.assert_array_equal(filled, same)


def test_fill_returns_its_argument_whatever_the_shape():
    for array in (np.empty((3, 5, 7), np.uint16), np.empty((), np.int64), np.empty((0, 4), int)):
        assert WordStream(KEY).fill(array) is array
    several = WordStream(KEY).fill(np.empty((30, 50), dtype=np.uint16))
    assert several.tobytes() == keystream(KEY, several.nbytes)


@pytest.mark.parametrize("first", [BYTES_PER_KEY - 100_001, BYTES_PER_KEY, BYTES_PER_KEY + 1])
def test_key_changes_after_64_mib_to_bytes_that_are_never_output(first):
    stream = WordStream(KEY)
    total = BYTES_PER_KEY + 200_000
    output = np.concatenate([stream.fill(np.empty(n, np.uint8)) for n in (first, total - first)])
    before = keystream(KEY, BYTES_PER_KEY + 32)
    assert output[:BYTES_PER_KEY].tobytes() == before[:BYTES_PER_KEY]
    assert output[BYTES_PER_KEY:].tobytes() == keystream(before[BYTES_PER_KEY:], 200_000)


def test_secure_stream_changes_its_key_too():
    stream = WordStream()
    first_encryptor = stream._encryptor
    stream.fill(np.empty(BYTES_PER_KEY, dtype=np.uint8))
    stream.words(1)
    assert stream._encryptor is not first_encryptor


def test_stream_stays_the_same_across_versions():
    # Frozen: if this changes, every seeded simulation of every user changes.
    stream = random_stream(2026, "frozen", 7, np.arange(6, dtype=np.int32).reshape(2, 3))
    digest = hashlib.sha256(draw(stream, 1 << 20)).hexdigest()
    assert digest == "6d121445bd8aafd34dde3053114c46e3b5b0073f58a1b86cebc0cf91a22265a1"


def test_secure_streams_differ():
    streams = [WordStream(), WordStream(), random_stream(None), random_stream(None, "a")]
    assert all(stream.is_secure for stream in streams)
    assert len({draw(stream, 32) for stream in streams}) == len(streams)
    assert not WordStream(KEY).is_secure


def in_child(function):
    """Run `function` in a forked child and return the bytes it produced."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write_end, function())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        received = pipe.read()
    os.waitpid(child, 0)
    return received


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("n_bytes_before", [0, 1, 100_000])
def test_secure_stream_does_not_repeat_itself_after_a_fork(n_bytes_before):
    stream = WordStream()
    draw(stream, n_bytes_before)
    children = [in_child(lambda: draw(stream, 4096)) for _ in range(2)]
    parent = draw(stream, 4096)
    assert [len(child) for child in children] == [4096, 4096]
    # No block of one appears in another, at whatever position: the chance is below 1e-30.
    blocks = [
        {output[start : start + 16] for start in range(0, 4096, 16)}
        for output in (parent, *children)
    ]
    assert len(set().union(*blocks)) == 3 * 256


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_keyed_stream_goes_on_after_a_fork():
    stream = WordStream(KEY)
    draw(stream, 100)
    assert in_child(lambda: draw(stream, 64)) == draw(stream, 64) == keystream(KEY, 164)[100:]


@pytest.mark.parametrize("stream", [WordStream(), WordStream(KEY)], ids=["secure", "keyed"])
@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_stream_refuses_to_be_duplicated(stream, duplicate):
    with pytest.raises(TypeError, match="Build a new one"):
        duplicate(stream)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_stream_refuses_every_pickle_protocol(protocol):
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps([WordStream(KEY)], protocol)


def test_invalid_arguments_are_refused():
    with pytest.raises(ValueError, match="32 bytes"):
        WordStream(bytes(16))
    with pytest.raises(TypeError, match="bytes or None"):
        WordStream("0" * 32)
    stream = WordStream(KEY)
    read_only = np.zeros(4, dtype=np.uint8)
    read_only.flags.writeable = False
    for array in (read_only, np.zeros((4, 4), np.uint8)[:, :2], np.zeros((4, 4), np.uint8).T[1:]):
        with pytest.raises(ValueError, match="C-contiguous and writable"):
            stream.fill(array)
    for array in (np.zeros(4), np.zeros(4, bool), np.zeros(4, object), bytearray(4)):
        with pytest.raises(TypeError, match="ndarray of integers"):
            stream.fill(array)


def test_unaligned_arrays_are_filled():
    storage = np.zeros(8001, dtype=np.uint8)
    unaligned = storage[1:].view(np.uint64)
    assert not unaligned.flags.aligned
    assert WordStream(KEY).fill(unaligned).tobytes() == keystream(KEY, 8000)
    assert storage[0] == 0


def test_nothing_is_written_beyond_the_array():
    for size in (1, 4097, 131_073, 262_144):
        storage = np.zeros(size + 64, dtype=np.uint8)
        WordStream(KEY).fill(storage[:size])
        assert not storage[size:].any()


@pytest.mark.statistical
def test_bytes_are_uniform():
    # Chi-square with 255 degrees of freedom; false-alarm rate 1e-6 for a fixed key.
    from scipy.stats import chi2

    counts = np.bincount(WordStream(KEY).fill(np.empty(1 << 22, np.uint8)), minlength=256)
    expected = (1 << 22) / 256
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6, 255)
