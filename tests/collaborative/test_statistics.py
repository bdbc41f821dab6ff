"""Statistics of releases and of own data, against scalar formulas and exact expectations."""

import itertools
import math

import numpy as np
import pytest

from skldp.collaborative._grid import STEPS
from skldp.collaborative._noise import NoiseLaw
from skldp.collaborative._releases import Released, make_releases
from skldp.collaborative._statistics import (
    Statistics,
    own_statistics,
    private_variance,
    released_statistics,
    unbiased_variance,
)

LAPLACE = NoiseLaw(kind="laplace", epsilon=1.0, delta=0.0, n_appearances=1, with_squares=True)
GAUSSIAN = NoiseLaw(kind="gaussian", epsilon=0.7, delta=1e-5, n_appearances=1, with_squares=True)
TREE = NoiseLaw(kind="laplace", epsilon=2.0, delta=0.0, n_appearances=6, with_squares=True)
LAWS = {"laplace": LAPLACE, "gaussian": GAUSSIAN, "tree": TREE}


def released_of(sums, sizes, *, squares=None, copies=None):
    sizes = np.atleast_2d(np.asarray(sizes, dtype=np.int64))
    sums = np.broadcast_to(np.asarray(sums, dtype=np.float64), sizes.shape)
    return Released(
        sums=sums,
        squares=np.full(sizes.shape, 0.5) * sizes if squares is None else np.asarray(squares),
        sizes=sizes,
        noise_copies=(sizes > 0).astype(np.int64) if copies is None else np.asarray(copies),
        n_released=(sizes > 0).sum(axis=1),
    )


def random_released(rng, n_agents, n_blocks):
    sizes = rng.integers(0, 200, size=(n_agents, n_blocks))
    sizes[0] = 0  # nothing yet
    sizes[1, :-1] = 0
    return released_of(
        rng.normal(0, 30, size=sizes.shape),
        sizes,
        squares=rng.uniform(0, 1, size=sizes.shape) * sizes + rng.normal(0, 5, size=sizes.shape),
        copies=rng.integers(1, 5, size=sizes.shape),
    )


def scalar_statistic(released, agent, law, width, middle, variance, mean_of_means):
    """FORMULAS, for one agent, in the units of the data."""
    blocks = [
        (s * width, int(n), int(c) * law.mean_variance * width**2)
        for s, n, c in zip(
            released.sums[agent], released.sizes[agent], released.noise_copies[agent], strict=True
        )
        if n > 0
    ]
    if not blocks:
        return math.nan, math.inf, math.inf, 0
    spreads = [variance / n + noise / n**2 for _, n, noise in blocks]
    weights = [1.0 if mean_of_means else 1 / spread for spread in spreads]
    total = sum(weights)
    mean = sum(w * s / n for w, (s, n, _) in zip(weights, blocks, strict=True)) / total
    spread = sum(w**2 * v for w, v in zip(weights, spreads, strict=True)) / total**2
    reach = max(width / 3, law.laplace_scale * width)
    scale = max(w / n for w, (_, n, _) in zip(weights, blocks, strict=True)) / total * reach
    return middle + mean, spread, scale, sum(n for _, n, _ in blocks)


def scalar_variance(released, agent, law):
    """The unbiased estimate of the module docstring, in squared half-widths, and its floor."""
    blocks = [
        (2 * s, q, int(n), 4 * c * law.mean_variance, c * law.square_variance)
        for s, q, n, c in zip(
            released.sums[agent],
            released.squares[agent],
            released.sizes[agent],
            released.noise_copies[agent],
            strict=True,
        )
        if n > 0
    ]
    if sum(n for _, _, n, _, _ in blocks) < 2:
        return math.inf, math.inf
    theta = [1 / (1 / n + noise / n**2) for _, _, n, noise, _ in blocks]
    phi = [1 / (1 / (4 * n) + noise / n**2) for _, _, n, _, noise in blocks]
    theta = [t / sum(theta) for t in theta]
    phi = [p / sum(phi) for p in phi]
    lost = sum(t**2 / n for t, (_, _, n, _, _) in zip(theta, blocks, strict=True))
    noisy = sum(t**2 * v / n**2 for t, (_, _, n, v, _) in zip(theta, blocks, strict=True))
    mean = sum(t * s / n for t, (s, _, n, _, _) in zip(theta, blocks, strict=True))
    square = sum(p * q / n for p, (_, q, n, _, _) in zip(phi, blocks, strict=True))
    noise = sum(p**2 * v / n**2 for p, (_, _, n, _, v) in zip(phi, blocks, strict=True))
    return (square - mean**2 + noisy) / (1 - lost), math.sqrt(noise) / (1 - lost)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("block_weights", ["inverse_variance", "mean_of_means"])
@pytest.mark.parametrize("variance", ["bound", "own", "private", 0.3])
def test_released_statistics_are_those_of_the_formulas(law, block_weights, variance):
    rng = np.random.default_rng(0)
    released = random_released(rng, 40, 5)
    width, middle = rng.uniform(2, 3, size=40), rng.normal(size=40)
    found = released_statistics(
        released, law, width, middle, variance=variance, block_weights=block_weights
    )
    for agent in range(40):
        half = width[agent] / 2
        if variance == "private":
            estimate, deviation = scalar_variance(released, agent, law)
            data = half**2 * min(max(estimate, deviation / 4), 1.0)
        else:
            data = 0.3 if variance == 0.3 else half**2
        expected = scalar_statistic(
            released,
            agent,
            law,
            width[agent],
            middle[agent],
            data,
            block_weights != "inverse_variance",
        )
        np.testing.assert_allclose([field[agent] for field in found], expected, rtol=1e-11)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_private_variance_is_that_of_the_formula_between_floor_and_bound(law):
    released = random_released(np.random.default_rng(1), 60, 4)
    estimate, deviation = unbiased_variance(released, law)
    expected = np.array([scalar_variance(released, agent, law) for agent in range(60)])
    np.testing.assert_allclose(estimate, expected[:, 0], rtol=1e-9)
    np.testing.assert_allclose(deviation, expected[:, 1], rtol=1e-11)
    found = private_variance(released, law)
    assert ((found > 0) & (found <= 1)).all() and found[0] == 1
    inside = (estimate > deviation / 4) & (estimate < 1)
    assert inside.any() and (~inside).any()
    np.testing.assert_array_equal(found[inside], estimate[inside])
    low = estimate < deviation / 4
    np.testing.assert_allclose(found[low], np.minimum(deviation[low] / 4, 1), rtol=1e-14)


@pytest.mark.parametrize("sizes", [(2,), (1, 2), (2, 3, 1)])
@pytest.mark.parametrize("block_weights", ["inverse_variance", "mean_of_means"])
def test_mean_and_variances_are_exact_in_expectation(sizes, block_weights):
    # All data of two values with unequal chances, and all signs of a noise of two values with the
    # variance of the law: exact expectations, since T is linear in both and the variance estimate
    # quadratic. u is -1/2 with probability .3, else 1.
    chances, values, width, middle = np.array([0.3, 0.7]), np.array([-0.5, 1.0]), 3.0, 10.0
    true_mean = float(chances @ values)
    true_variance = float(chances @ values**2) - true_mean**2
    moments = np.zeros(4)
    noise = math.sqrt(LAPLACE.mean_variance)
    bounds = np.cumsum((0, *sizes))
    for picked in itertools.product((0, 1), repeat=sum(sizes)):
        data = values[list(picked)]
        for signs in itertools.product((-1, 1), repeat=len(sizes)):
            chance = float(np.prod(chances[list(picked)])) / 2 ** len(sizes)
            parts = [data[a:b] for a, b in itertools.pairwise(bounds)]
            released = released_of(
                [p.sum() / 2 + s * noise for p, s in zip(parts, signs, strict=True)],
                sizes,
                squares=[[float((p**2).sum()) for p in parts]],
            )
            known = released_statistics(
                released,
                LAPLACE,
                width,
                middle,
                variance=true_variance * (width / 2) ** 2,
                block_weights=block_weights,
            )
            estimate, _ = unbiased_variance(released, LAPLACE)
            error = known.mean[0] - middle - width / 2 * true_mean
            moments += chance * np.array([error, error**2, known.variance[0], estimate[0]])
    assert moments[0] == pytest.approx(0, abs=1e-12)
    assert moments[1] == pytest.approx(moments[2], rel=1e-12)
    assert moments[3] == pytest.approx(true_variance, rel=1e-10)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("block_weights", ["inverse_variance", "mean_of_means"])
@pytest.mark.parametrize("horizon", [None, 63])
def test_the_variance_of_real_releases_is_v(kind, block_weights, horizon):
    # 20,000 agents with 44 observations each, three blocks or a prefix of three nodes; the mean of
    # T - μ and of (T - μ)²/V - 1 over independent agents, both two-sided z tests at 4.9 (1e-6,
    # and a sample this large has nearly normal means). Fixed seeds.
    law = NoiseLaw(
        kind=kind,
        epsilon=1.0,
        delta=0.0 if kind == "laplace" else 1e-6,
        n_appearances=6 if horizon else 1,
        with_squares=True,
    )
    n_agents, n_rows, width, mean, half = 20_000, 44, 4.0, 0.3, 0.9
    rng = np.random.default_rng(7)
    x = rng.uniform(mean - half, mean + half, size=(n_rows, n_agents))
    releases = make_releases(6, 2.0, horizon, n_quantities=2)
    releases.add_agents(n_agents)
    steps = np.rint(x / width * STEPS).astype(np.int64)
    releases.extend(steps, np.ones(x.shape, dtype=bool), law, b"a key")
    found = released_statistics(
        releases.released(), law, width, variance=half**2 / 3, block_weights=block_weights
    )
    assert (found.n_observed == (44 if horizon else 42)).all()
    errors = found.mean - mean
    assert abs(errors.mean()) < 4.9 * errors.std() / np.sqrt(n_agents)
    ratios = errors**2 / found.variance
    assert abs(ratios.mean() - 1) < 4.9 * ratios.std() / np.sqrt(n_agents)
    # The private variance is unbiased too, in squared half-widths.
    estimate, _ = unbiased_variance(releases.released(), law)
    expected = half**2 / 3 / (width / 2) ** 2
    assert abs(estimate.mean() - expected) < 4.9 * estimate.std() / np.sqrt(n_agents)


def test_statistics_of_a_tree_have_the_closed_form():
    n = np.array([1, 7, 12, 32, 63])
    copies = np.array([1, 3, 2, 1, 6])  # bits of n
    released = released_of(0.1 * n[:, None], n[:, None], copies=copies[:, None])
    found = released_statistics(released, TREE, 5.0, 2.0, variance=0.8)
    node = 2 * (5.0 * 6 / 2.0) ** 2  # Laplace noise of scale w d/ε
    np.testing.assert_allclose(found.mean, 2.0 + 0.1 * 5.0, rtol=1e-14)
    np.testing.assert_allclose(found.variance, 0.8 / n + copies * node / n**2, rtol=1e-6)
    np.testing.assert_allclose(found.scale, 5.0 * 6 / 2.0 / n, rtol=1e-6)


def test_block_weights_do_not_matter_for_one_sum():
    released = released_of([[3.0], [-2.0]], [[7], [40]])
    one, other = (
        released_statistics(released, TREE, 1.0, variance="bound", block_weights=name)
        for name in ("inverse_variance", "mean_of_means")
    )
    for field, same in zip(one, other, strict=True):
        np.testing.assert_allclose(field, same, rtol=1e-15)


def test_a_larger_laplace_scale_than_a_third_of_the_width_sets_the_tail():
    released = released_of([[1.0]], [[10]])
    mild = NoiseLaw(kind="laplace", epsilon=30.0, delta=0.0, n_appearances=1, with_squares=False)
    assert released_statistics(released, mild, 2.0, variance="bound").scale[0] == pytest.approx(
        2 / 30
    )
    assert released_statistics(released, LAPLACE, 2.0, variance="bound").scale[0] == pytest.approx(
        2 / 10, rel=1e-6
    )
    assert released_statistics(released, GAUSSIAN, 2.0, variance="bound").scale[
        0
    ] == pytest.approx(2 / 30)


@pytest.mark.parametrize("variance", ["bound", "private", 0.1])
def test_before_any_release_nothing_is_known(variance):
    released = released_of(np.zeros((3, 0)), np.zeros((3, 0)))
    found = released_statistics(released, LAPLACE, 1.0, variance=variance)
    for field, unknown in zip(found, Statistics.unknown(3), strict=True):
        np.testing.assert_array_equal(field, unknown)


def test_one_released_observation_leaves_the_largest_variance():
    released = released_of([[0.1], [0.1]], [[1], [2]], squares=[[0.04], [0.08]])
    assert private_variance(released, LAPLACE)[0] == 1
    assert np.isinf(unbiased_variance(released, LAPLACE)[0]).tolist() == [True, False]


def test_private_variance_finds_the_variance_of_long_streams():
    # Without any noise in the sums: what is left is the bound's and the weights' effect, none.
    sizes = 1000 * 2 ** np.arange(8)
    u = np.linspace(-0.6, 0.2, 101)
    released = released_of(u.mean() / 2 * sizes, sizes, squares=[(u**2).mean() * sizes])
    found = private_variance(released, LAPLACE)[0]
    # The correction for noise and lost observations remains: N = 4.5e-10, A = 4e-6.
    assert found == pytest.approx(u.var(), rel=1e-4)


@pytest.mark.parametrize("variance", ["bound", "own", "private", 0.4])
def test_statistics_move_with_the_units_of_the_data(variance):
    rng = np.random.default_rng(2)
    released = random_released(rng, 10, 3)
    in_units = variance if isinstance(variance, str) else variance * 1000.0**2
    one = released_statistics(released, LAPLACE, 2.0, 0.5, variance=variance)
    other = released_statistics(released, LAPLACE, 2000.0, 500.0, variance=in_units)
    own = own_statistics(
        rng.normal(size=4), [5, 5, 5, 5], [9, 8, 7, 0], 2.0, 0.5, variance=variance
    )
    assert np.isnan(own.mean[3])
    np.testing.assert_allclose(other.mean, 1000 * one.mean, rtol=1e-13)
    np.testing.assert_allclose(other.variance, 1000**2 * one.variance, rtol=1e-13)
    np.testing.assert_allclose(other.scale, 1000 * one.scale, rtol=1e-13)


@pytest.mark.parametrize(("variance", "data"), [("bound", 1.5**2), (0.2, 0.2), (9.0, 1.5**2)])
def test_own_statistics_with_a_told_variance(variance, data):
    x = np.array([0.5, 1.0, 2.5, 3.0])
    width, middle = 3.0, 1.5
    sums, squares = ((x - middle) / width).sum(), (((x - middle) / 1.5) ** 2).sum()
    found = own_statistics([sums, 0.0], [squares, 0.0], [4, 0], width, middle, variance=variance)
    np.testing.assert_allclose([field[0] for field in found], [x.mean(), data / 4, 0.25, 4])
    np.testing.assert_array_equal([field[1] for field in found], [np.nan, np.inf, np.inf, 0])


@pytest.mark.parametrize("variance", ["own", "private"])
def test_own_variance_is_the_sample_variance_with_a_tenth_of_an_observation_more(variance):
    rng = np.random.default_rng(3)
    counts = np.array([1, 2, 5, 1000])
    samples = [rng.uniform(-1, 1, size=n) for n in counts]  # half-widths
    found = own_statistics(
        [u.sum() / 2 for u in samples],
        [(u**2).sum() for u in samples],
        counts,
        4.0,
        variance=variance,
    )
    expected = [
        (((u - u.mean()) ** 2).sum() + 0.1) / (u.size - 1 + 0.1) * 4.0 / u.size for u in samples
    ]
    np.testing.assert_allclose(found.variance, expected, rtol=1e-12)
    assert found.variance[0] == pytest.approx(4.0)  # of one observation: the largest


def test_identical_observations_have_a_positive_variance():
    n = 10**9
    found = own_statistics([0.3 * n / 2], [0.09 * n], [n], 2.0, variance="own")
    assert 0 < found.variance[0] < 1e-15
