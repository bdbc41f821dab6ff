"""From `random_state` and context to streams and generators."""

from itertools import combinations

import numpy as np
import pytest

from skldp.random import random_stream, simulation_generator

INVALID_TYPES = [True, False, np.True_, 1.5, np.float64(2), "x", b"x", [1], (1,), np.random]


def first_words(random_state, *context):
    return random_stream(random_state, *context).words(4).tobytes()


def test_equal_seed_and_context_give_the_same_stream():
    context = ("a", b"b", -3, np.arange(4), ("c", (1, np.ones(2))))
    assert first_words(0, *context) == first_words(0, *context)
    assert first_words(0) == first_words(np.int64(0)) == first_words(np.uint8(0))
    assert not random_stream(0).is_secure


def test_none_is_secure_and_does_not_repeat():
    assert random_stream(None, "a").is_secure
    assert first_words(None, "a") != first_words(None, "a")


@pytest.mark.parametrize("seed", [0, np.random.default_rng(0).integers(2**62)])
def test_contexts_never_collide(seed):
    six = np.arange(6)
    contexts = [
        (),
        ("",),
        (b"",),
        ((),),
        ((), ()),
        (((),),),
        ("", ""),
        ("a", "bc"),
        ("ab", "c"),
        ("abc",),
        (("a", "bc"),),
        (("a",), "bc"),
        ("1",),
        (b"1",),
        (1,),
        (-1,),
        (255,),
        (256,),
        (0,),
        (2**64,),
        (np.array(1),),
        (np.array([1]),),
        (np.array([1], dtype=np.int32),),
        (np.array([1], dtype=np.uint64),),
        (np.array([1.0]),),
        (np.array(["1"]),),
        (np.array([b"1"]),),
        (six.reshape(2, 3),),
        (six.reshape(3, 2),),
        (six,),
        (six, six),
        (np.concatenate([six, six]),),
        (tuple(range(6)),),
        tuple(range(6)),
        (np.empty((0, 2)),),
        (np.empty((2, 0)),),
        (np.array(["2020-01-01"], dtype="M8[D]"),),
        (np.array(["2020-01-01"], dtype="M8[s]"),),
    ]
    outputs = [first_words(seed, *context) for context in contexts]
    collisions = [
        (contexts[i], contexts[j])
        for i, j in combinations(range(len(contexts)), 2)
        if outputs[i] == outputs[j]
    ]
    assert not collisions


def test_seeds_of_any_size_differ():
    seeds = [0, 1, 2**31, 2**32, 2**32 + 1, 2**64, 2**64 + 1, 2**5000]
    assert len({first_words(seed) for seed in seeds}) == len(seeds)


def test_arrays_count_by_value_not_by_layout():
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert first_words(0, array) == first_words(0, np.asfortranarray(array))
    assert first_words(0, array) == first_words(0, array.astype(">i4"))
    assert first_words(0, array[:, ::2]) == first_words(0, array[:, ::2].copy())
    text = np.array(["ab", "c"])
    assert first_words(0, text) == first_words(0, text.astype(text.dtype.newbyteorder(">")))


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_seed_the_stream_and_advance(make):
    generator, twin = make(5), make(5)
    first, second = first_words(generator, "a"), first_words(generator, "a")
    assert first != second
    assert first == first_words(twin, "a")
    assert first_words(make(5), "b") != first
    reference = make(5)
    reference.bytes(32)
    reference.bytes(32)
    assert reference.bytes(8) == generator.bytes(8)


def test_int_and_generator_of_the_same_bytes_are_unrelated():
    assert first_words(5) != first_words(np.random.default_rng(5))


@pytest.mark.parametrize("build", [random_stream, simulation_generator])
@pytest.mark.parametrize("random_state", INVALID_TYPES, ids=lambda value: type(value).__name__)
def test_other_types_are_refused_with_the_accepted_ones_named(build, random_state):
    with pytest.raises(TypeError, match=r"None \(secure\), a non-negative int") as caught:
        build(random_state)
    assert "Generator" in str(caught.value)
    assert "RandomState" in str(caught.value)


@pytest.mark.parametrize("build", [random_stream, simulation_generator])
@pytest.mark.parametrize("random_state", [-1, np.int8(-1)])
def test_negative_seeds_are_refused(build, random_state):
    with pytest.raises(ValueError, match="non-negative"):
        build(random_state)


@pytest.mark.parametrize(
    "item",
    [1.5, None, True, [1], {1: 2}, np.array([None]), ("a", None)],
    ids=repr,
)
def test_other_context_items_are_refused(item):
    with pytest.raises(TypeError, match="context item"):
        random_stream(0, item)


def test_structured_arrays_are_refused_in_a_context():
    with pytest.raises(TypeError, match="context item"):
        random_stream(0, np.zeros(2, dtype=[("a", int), ("b", float)]))


def test_simulation_generator():
    generator = np.random.default_rng(1)
    assert simulation_generator(generator) is generator
    expected = np.random.default_rng(3).integers(10**9)
    assert simulation_generator(3).integers(10**9) == expected
    assert simulation_generator(np.int32(3)).integers(10**9) == expected
    assert simulation_generator(None).integers(2**62) != simulation_generator(None).integers(2**62)
    legacy, twin = np.random.RandomState(4), np.random.RandomState(4)
    first = simulation_generator(legacy).integers(2**62)
    assert first == simulation_generator(twin).integers(2**62)
    assert first != simulation_generator(legacy).integers(2**62)
