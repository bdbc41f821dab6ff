"""Baselines against their definitions, and curves against simulation."""

import numpy as np
import pytest

from skldp.collaborative._noise import NoiseLaw
from skldp.collaborative._pooling import combine
from skldp.collaborative._releases import Released
from skldp.collaborative._statistics import own_statistics, released_statistics
from skldp.collaborative._theory import (
    ideal_means,
    ideal_mse,
    local_means,
    local_mse,
    oracle_mse,
)

LAW = NoiseLaw(kind="laplace", epsilon=1.0, delta=0.0, n_appearances=1, with_squares=False)


def test_local_and_ideal_errors():
    np.testing.assert_array_equal(local_mse([1, 2, 50], 0.5), [0.5, 0.25, 0.01])
    np.testing.assert_allclose(ideal_mse([[1, 2]], 0.5, 5), [[0.1, 0.05]], rtol=1e-15)


def test_the_oracle_adds_up_blocks_as_they_are_released():
    # Blocks of 4, 6 and 9 end at 4, 10 and 19; width 2, so that the noise of a sum is 4 s².
    s = 4 * LAW.mean_variance
    parts = [1 / (0.3 / n + s / n**2) for n in (4, 6, 9)]
    times = [3, 4, 9, 10, 18, 19, 32]
    heard = [0, parts[0], parts[0], sum(parts[:2]), sum(parts[:2]), sum(parts), sum(parts)]
    expected = [1 / (t / 0.3 + 6 * h) for t, h in zip(times, heard, strict=True)]
    found = oracle_mse(times, 0.3, 7, LAW, 2.0, first_block=4, growth=1.5)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_the_oracle_of_a_tree_counts_nodes():
    law = NoiseLaw(kind="laplace", epsilon=1.0, delta=0.0, n_appearances=5, with_squares=False)
    s = 4 * law.mean_variance
    found = oracle_mse([1, 12, 31], 0.3, 7, law, 2.0, tree=True)
    for mse, n, nodes in zip(found, (1, 12, 31), (1, 2, 5), strict=True):
        assert mse == pytest.approx(1 / (n / 0.3 + 6 / (0.3 / n + nodes * s / n**2)))


def test_an_agent_alone_in_its_class_is_local_and_without_noise_all_are_ideal():
    times = np.array([1, 32, 100, 4064])
    np.testing.assert_allclose(
        oracle_mse(times, 0.25, 1, LAW, 2.0), local_mse(times, 0.25), rtol=1e-14
    )
    mild = NoiseLaw(kind="laplace", epsilon=1e4, delta=0.0, n_appearances=1, with_squares=False)
    # At the end of a block everything is released.
    np.testing.assert_allclose(
        oracle_mse([32, 96, 4064], 0.25, 8, mild, 2.0),
        ideal_mse([32, 96, 4064], 0.25, 8),
        rtol=1e-6,
    )


@pytest.mark.statistical
@pytest.mark.parametrize("t", [32, 95, 96, 480])
def test_the_oracle_curve_is_the_error_of_an_agent_that_knows_its_class(t):
    # 400 classes of 5 agents; errors of one class are dependent, so classes are the sample: the
    # mean of 400 is normal enough for a two-sided z of 4.9 (1e-6). Fixed seed.
    rng = np.random.default_rng(t)
    n_classes, size, width, middle = 400, 5, 3.0, 0.0
    n_agents = n_classes * size
    half = np.sqrt(3) / 2  # a standard deviation of 1/2
    sizes = [n for n, end in ((32, 32), (64, 96), (128, 224), (256, 480)) if end <= t]
    sums = np.array([rng.uniform(-half, half, size=(n, n_agents)).sum(axis=0) for n in sizes]).T
    rest = rng.uniform(-half, half, size=(t - sum(sizes), n_agents)).sum(axis=0)
    noise = rng.laplace(0, np.sqrt(LAW.mean_variance / 2), size=sums.shape)
    shape = (n_agents, len(sizes))
    released = Released(
        sums=sums / width + noise,
        squares=None,
        sizes=np.broadcast_to(np.array(sizes, dtype=np.int64), shape),
        noise_copies=np.ones(shape, dtype=np.int64),
        n_released=np.full(n_agents, len(sizes)),
    )
    own = own_statistics(
        (sums.sum(axis=1) + rest) / width,
        np.zeros(n_agents),
        np.full(n_agents, t),
        width,
        middle,
        variance=0.25,
    )
    peers = released_statistics(released, LAW, width, middle, variance=0.25)
    classes = np.arange(n_agents) // size
    means, variances = combine(own, peers, classes[:, None] == classes, "inverse_variance")
    expected = oracle_mse(t, 0.25, size, LAW, width)
    np.testing.assert_allclose(variances, expected, rtol=1e-12)
    errors = (means**2).reshape(n_classes, size).mean(axis=1)
    assert abs(errors.mean() - expected) < 4.9 * errors.std() / np.sqrt(n_classes)


def test_ideal_means_are_running_means_of_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 6))
    X[rng.random(X.shape) < 0.4] = np.nan
    X[:3, [1, 4]] = np.nan
    classes = np.array(["b", "a", "b", "c", "a", "b"])
    found = ideal_means(X, classes)
    assert np.isnan(found[:3, [1, 4]]).all()
    for t in range(20):
        for a in range(6):
            seen = X[: t + 1, classes == classes[a]]
            seen = seen[~np.isnan(seen)]
            if seen.size:
                assert found[t, a] == pytest.approx(seen.mean(), abs=1e-14)


def test_local_means_are_running_means_of_agents():
    X = np.array([[np.nan, 1e9], [2.0, 1e9 + 1], [4.0, np.nan]])
    np.testing.assert_allclose(
        local_means(X), [[np.nan, 1e9], [2.0, 1e9 + 0.5], [3.0, 1e9 + 0.5]], rtol=1e-15
    )


def test_streams_that_are_empty_or_missing_have_no_means():
    assert ideal_means(np.zeros((0, 3)), [0, 1, 0]).shape == (0, 3)
    assert np.isnan(local_means(np.full((2, 3), np.nan))).all()


def test_classes_must_fit_the_agents():
    with pytest.raises(ValueError, match="classes must have shape"):
        ideal_means(np.zeros((4, 3)), [0, 1])
