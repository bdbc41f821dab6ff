"""The release: integers throughout, the sensitivity that is claimed, and a certificate in them."""

from fractions import Fraction

import numpy as np
import pytest

from skldp.mean import (
    ADPMMeanEstimator,
    LocalMeanEstimator,
    SamplingMeanEstimator,
    _affine,
    _local,
    _release,
    _sampling,
)
from skldp.mean._problem import MeanProblem
from skldp.mean._release import (
    DATA_STEPS,
    as_floats,
    certify,
    cost_bound,
    data_on_grid,
    exact_sum,
    integer_weights,
    privacy_losses,
)
from skldp.mean._weights import optimal_weights


def problem_of(lower, upper, noise="laplace"):
    lower, upper = np.broadcast_arrays(np.atleast_1d(lower), np.atleast_1d(upper))
    return MeanProblem(lower.astype(float), upper.astype(float), noise)


BOUNDS = [(0.0, 1.0), (-60.0, 240.0), (2.0**40, 2.0**40 + 1), (-1e-9, 3e-9), (-1e15, 1e-15)]


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_one_user_moves_the_sum_by_exactly_their_weight(low, high):
    rng = np.random.default_rng(0)
    levels = np.exp(rng.uniform(-5, 3, 300))
    weights = integer_weights(optimal_weights(levels, 8.0)[0])
    problem = problem_of(low, high)
    X = rng.uniform(low, high, (300, 1))
    for user in (0, 17, 299):
        at_low, at_high = X.copy(), X.copy()
        at_low[user], at_high[user] = low, high
        (first,), (second,) = (
            exact_sum(problem, at_low, weights),
            exact_sum(problem, at_high, weights),
        )
        assert second - first == int(weights[user]) * DATA_STEPS
        # Far outside the bounds is no more than at the bounds.
        outside = X.copy()
        outside[user] = high + 1e18
        assert exact_sum(problem, outside, weights) == [second]


def test_the_sum_is_exact():
    rng = np.random.default_rng(1)
    for d, n in ((1, 70_000), (3, 25_000), (40_000, 3)):
        problem = problem_of(np.zeros(d), np.ones(d))
        weights = integer_weights(rng.dirichlet(np.full(n, 0.1)))
        weights[0] = 1 << 60
        X = rng.uniform(-0.2, 1.2, (n, d))
        X[0] = 1.0
        steps = data_on_grid(problem, X)
        some = [0, d - 1]
        sums = exact_sum(problem, X, weights)
        for column in some:
            expected = sum(
                w * g for w, g in zip(weights.tolist(), steps[:, column].tolist(), strict=True)
            )
            assert sums[column] == expected


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_data_stay_on_the_grid_within_the_bounds(low, high):
    rng = np.random.default_rng(2)
    problem = problem_of(low, high)
    X = np.concatenate([rng.uniform(low, high, 5000), [low, high, -1e300, 1e300, 0.0, -0.0]])
    steps = data_on_grid(problem, X[:, np.newaxis])
    assert steps.dtype == np.int64
    assert steps.min() == -(DATA_STEPS // 2) and steps.max() == DATA_STEPS // 2
    # A row's place depends on that row alone.
    np.testing.assert_array_equal(steps[7:9], data_on_grid(problem, X[7:9, np.newaxis]))
    middle, width = problem.exact_middle()[0], problem.exact_widths()[0]
    for x, step in zip(X[:50].tolist(), steps[:50, 0].tolist(), strict=True):
        assert abs((Fraction(x) - middle) / width - Fraction(step, DATA_STEPS)) < Fraction(
            1, DATA_STEPS
        )


@pytest.mark.parametrize("d", [2, 3, 50, 1000])
def test_gaussian_data_lie_in_the_ball_in_integers(d):
    rng = np.random.default_rng(3)
    lower, upper = np.full(d, -1.0), np.linspace(1, 3, d)
    problem = problem_of(lower, upper, "gaussian")
    directions = rng.normal(size=(60, d))
    directions /= np.linalg.norm(directions, axis=1)[:, np.newaxis]
    # On the surface, just about, inside, at corners, far outside.
    radii = np.repeat([1.0, 1 + 1e-15, 1 - 1e-15, 0.7, 5.0, 1e12], 10)[:, np.newaxis]
    X = (lower + upper) / 2 + directions * radii * (upper - lower) / 2
    X = np.vstack([X, lower, upper, np.full(d, 1e300)])
    steps = data_on_grid(problem, X)
    for row in steps.tolist():
        assert sum(g * g for g in row) <= (DATA_STEPS // 2) ** 2
    inside = slice(30, 40)
    expected = directions[inside] * 0.7 * (DATA_STEPS // 2)
    np.testing.assert_allclose(steps[inside], expected, rtol=0, atol=2**-10 * DATA_STEPS**0.5 * 32)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_certificate_refuses_noise_that_is_too_small_by_anything(noise):
    problem = problem_of(0.0, 1.0, noise)
    levels = np.array([0.3, 1.7, np.inf])
    integers = integer_weights(np.array([0.2, 0.5, 0.3]))
    power, factor = (1, 1) if noise == "laplace" else (2, 2)
    exact = max(
        Fraction(int(w) ** power) / (factor * Fraction(level))
        for w, level in zip(integers[:2], levels[:2].tolist(), strict=True)
    )
    certify(problem, integers, levels, exact)
    certify(problem, integers, levels, cost_bound(problem, integers, levels))
    with pytest.raises(RuntimeError, match="too small"):
        certify(problem, integers, levels, exact * (1 - Fraction(1, 10**30)))
    with pytest.raises(RuntimeError, match="no noise"):
        certify(problem, integers, levels, Fraction(0))
    certify(problem, np.array([0, 0, 1]), levels, Fraction(0))


def test_noise_exceeds_what_is_needed_by_less_than_a_part_in_a_trillion():
    rng = np.random.default_rng(4)
    levels = np.exp(rng.uniform(-5, 3, 1000))
    integers = integer_weights(optimal_weights(levels, 8.0)[0])
    problem = problem_of(0.0, 1.0)
    bound = cost_bound(problem, integers, levels)
    exact = max(
        Fraction(w) / Fraction(e) for w, e in zip(integers.tolist(), levels.tolist(), strict=True)
    )
    assert 1 <= bound / exact < 1 + Fraction(1, 10**12)
    losses = privacy_losses(problem, integers, levels, bound)
    assert (losses <= levels).all() and losses.max() > 0


class Recorder:
    """Stands for a sampler of noise: returns integers chosen here, and keeps the scale."""

    def __init__(self, values):
        self.values, self.scales = list(values), []

    def __call__(self, scale, size, stream):
        self.scales.append(scale)
        return np.array([self.values[i % len(self.values)] for i in range(size)], dtype=object)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_released_mean_is_the_rational_number_of_sum_and_noise(monkeypatch, noise):
    z = 987_654_321_987_654_321_987
    recorder = Recorder([z])
    monkeypatch.setattr(_release, f"discrete_{noise}", recorder)
    X = np.random.default_rng(5).uniform(-60, 240, (100, 1))
    levels = np.linspace(0.1, 2, 100)
    name = "epsilon" if noise == "laplace" else "rho"
    mean = ADPMMeanEstimator(bounds=(-60, 240), noise=noise, clip_output=False)
    mean.fit(X, **{name: levels})
    problem = problem_of(-60, 240, noise)
    integers = integer_weights(optimal_weights(problem.linear(levels), problem.ratio)[0])
    (total,) = exact_sum(problem, X, integers)
    weight = int(integers.sum())
    exact = 90 + 300 * Fraction(total + z, DATA_STEPS * weight)
    assert mean.mean_[0] == float(exact)
    # The scale that was asked for: t >= W R/ε for everybody, or V >= (W R)²/(2ρ).
    (scale,) = recorder.scales
    for w, level in zip(integers.tolist(), levels.tolist(), strict=True):
        if noise == "laplace":
            assert w * DATA_STEPS <= scale * Fraction(level)
        else:
            assert (w * DATA_STEPS) ** 2 <= 2 * scale * Fraction(level)
    in_data_units = 300 / (DATA_STEPS * weight)
    claimed = (
        float(scale) * in_data_units
        if noise == "laplace"
        else np.sqrt(float(scale)) * in_data_units
    )
    assert mean.noise_scale_[0] == pytest.approx(claimed, rel=1e-11)


def test_neighbours_release_the_same_set_of_numbers(monkeypatch):
    """The low bits of an output say nothing: neighbours with noise moved by W R agree exactly.

    Floating-point noise fails here, since the outputs that are possible depend on the data.
    """
    levels = np.array([0.2, 0.9, 3.0])
    X, other = np.array([[0.1], [0.7], [0.0]]), np.array([[0.1], [0.7], [1.0]])
    integers = integer_weights(optimal_weights(levels, 8.0)[0])
    rng = np.random.default_rng(6)
    for z in [int(z) for z in rng.integers(-(2**62), 2**62, 200)]:
        z *= 2**37
        outputs = []
        for data, shift in ((X, int(integers[2]) * DATA_STEPS), (other, 0)):
            monkeypatch.setattr(_release, "discrete_laplace", Recorder([z + shift]))
            mean = ADPMMeanEstimator(bounds=(0, 1), clip_output=False).fit(data, epsilon=levels)
            outputs.append(mean.mean_[0])
        assert outputs[0] == outputs[1]


@pytest.mark.parametrize("epsilon", [1e-12, 1e-80, 1e12, 1e80])
@pytest.mark.parametrize("cls", [ADPMMeanEstimator, LocalMeanEstimator, SamplingMeanEstimator])
def test_extreme_noise_overflows_nowhere(cls, epsilon):
    X = np.full((5, 1), 0.75)
    mean = cls(epsilon, bounds=(0, 1), random_state=0).fit(X)
    assert 0 <= mean.mean_[0] <= 1
    raw = cls(epsilon, bounds=(0, 1), random_state=0, clip_output=False).fit(X)
    assert np.isfinite(raw.mean_).all()
    if epsilon > 1:
        assert raw.mean_ == pytest.approx([0.75], abs=1e-9)
    else:
        assert abs(raw.mean_[0]) > 1e3
    ends = raw.confidence_interval()
    assert np.isfinite(ends).all() and ends[0, 0] < ends[0, 1]


def test_a_number_beyond_the_floats_becomes_the_largest_one():
    problem = problem_of(0.0, 1e150)
    (value,) = as_floats(problem, [10**400], 1)
    assert value == np.finfo(float).max


def test_huge_offsets_keep_the_true_sensitivity():
    # In floats the sum of such values would move by more than the width of the bounds.
    low, high = 2.0**40, 2.0**40 + 1
    X = np.repeat([[low], [high]], 500, axis=0)
    mean = ADPMMeanEstimator(bounds=(low, high), clip_output=False, random_state=0).fit(X)
    assert mean.noise_scale_ == pytest.approx([1 / 1000], rel=1e-9)
    assert abs(mean.mean_[0] - (low + 0.5)) < 0.02
    assert low < mean.confidence_interval()[0, 0] < low + 0.5 < mean.confidence_interval()[0, 1]


def test_equal_seeds_agree_and_other_data_get_other_noise():
    X = np.random.default_rng(7).random((50, 1))
    other = X.copy()
    other[0] = 1 - other[0]
    for cls in (ADPMMeanEstimator, LocalMeanEstimator, SamplingMeanEstimator):
        mean = cls(bounds=(0, 1), clip_output=False, random_state=0)
        first, again = mean.fit(X).mean_[0], mean.fit(X).mean_[0]
        assert first == again
        # With the noise of X the difference would be exactly the change of one value.
        second = mean.fit(other).mean_[0]
        assert abs((second - first) - (other[0, 0] - X[0, 0]) / 50) > 1e-6
        secure = cls(bounds=(0, 1), clip_output=False)
        assert secure.fit(X).mean_[0] != secure.fit(X).mean_[0]


@pytest.mark.parametrize("module", [_affine, _local, _sampling])
def test_no_module_draws_numbers_by_itself(module):
    names = set(vars(module))
    assert "random_stream" in names and "simulation_generator" not in names


def test_noise_of_columns_and_groups_is_independent(monkeypatch):
    recorder = Recorder([1, -5, 11])
    monkeypatch.setattr(_release, "discrete_laplace", recorder)
    X = np.zeros((6, 3))
    LocalMeanEstimator(bounds=(0, 1)).fit(X, epsilon=[1, 1, 2, 2, 0, np.inf])
    assert recorder.scales == [3 * DATA_STEPS, Fraction(3 * DATA_STEPS, 2)]
