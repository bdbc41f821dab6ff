"""Losses between distributions: values, axes, and no silent broadcasting."""

import math

import numpy as np
import pandas as pd
import pytest

from skldp.metrics import l1_loss, l2_loss, mse_loss, total_variation

LOSSES = [l1_loss, l2_loss, mse_loss, total_variation]


@pytest.mark.parametrize(
    ("loss", "value"),
    [(l1_loss, 1.0), (l2_loss, 0.375), (mse_loss, 0.125), (total_variation, 0.5)],
)
def test_value_by_hand(loss, value):
    result = loss([0.5, 0.5, 0.0], [0.25, 0.25, 0.5])
    assert type(result) is float
    assert result == value


def test_relations_between_the_losses():
    first, second = np.random.default_rng(0).normal(size=(2, 30))
    assert mse_loss(first, second) == pytest.approx(l2_loss(first, second) / 30, rel=1e-15)
    assert total_variation(first, second) == l1_loss(first, second) / 2
    assert math.sqrt(l2_loss(first, second)) == pytest.approx(np.linalg.norm(first - second))


@pytest.mark.parametrize("loss", LOSSES)
def test_zero_where_equal_and_symmetric(loss):
    first, second = np.random.default_rng(1).normal(size=(2, 30))
    assert loss(first, first) == 0
    assert loss(first, second) == loss(second, first) > 0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 5), (0, 4)])
def test_batches_along_leading_axes(loss, shape):
    first, second = np.random.default_rng(2).normal(size=(2, *shape))
    together = loss(first, second)
    assert together.shape == shape[:-1]
    for index in np.ndindex(shape[:-1]):
        assert together[index] == loss(first[index], second[index])


@pytest.mark.parametrize("loss", LOSSES)
def test_total_variation_of_disjoint_distributions_and_others(loss):
    expected = {l1_loss: 2.0, l2_loss: 2.0, mse_loss: 1.0, total_variation: 1.0}
    assert loss([1, 0], [0, 1]) == expected[loss]


@pytest.mark.parametrize("loss", LOSSES)
def test_array_likes(loss):
    reference = loss([0.5, 0.5], [1.0, 0.0])
    assert loss((0.5, 0.5), np.array([1, 0])) == reference
    assert loss(pd.Series([0.5, 0.5]), pd.Series([1.0, 0.0])) == reference
    assert loss(np.float32([0.5, 0.5]), np.array([True, False])) == reference


@pytest.mark.parametrize("loss", LOSSES)
def test_unsigned_integers_do_not_wrap_around(loss):
    assert loss(np.array([0, 3], np.uint8), np.array([1, 2], np.uint8)) == loss([0, 3], [1, 2])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((4,), (3,)),
        ((4,), (4, 1)),
        ((4,), (1, 4)),
        ((4,), (2, 4)),
        ((2, 4), (4,)),
        ((4,), (1,)),
    ],
)
def test_shapes_must_be_equal(loss, first, second):
    with pytest.raises(ValueError, match=r"same shape.*nothing is broadcast"):
        loss(np.ones(first), np.ones(second))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([0.5, np.nan], "must be finite"),
        ([0.5, np.inf], "must be finite"),
        (["a", "b"], "real numbers"),
        ([1j, 0], "real numbers"),
        ([None, 1.0], "real numbers"),
        (0.5, "at least one entry"),
        ([], "at least one entry"),
    ],
)
def test_bad_values_are_named(loss, bad, message):
    with pytest.raises(ValueError, match=f"p_true.*{message}"):
        loss(bad, [0.5, 0.5])
    with pytest.raises(ValueError, match=f"p_estimated.*{message}"):
        loss([0.5, 0.5], bad)


def test_inputs_are_not_touched():
    first, second = np.array([0.5, 0.5]), np.array([0.1, 0.9])
    first.flags.writeable = second.flags.writeable = False
    for loss in LOSSES:
        loss(first, second)
