"""Optimal weights: the recorded solutions, a convex solver, closed forms and extreme levels."""

import json
from fractions import Fraction
from math import fsum
from pathlib import Path

import numpy as np
import pytest

from skldp.mean import (
    ADPMMeanEstimator,
    AffineMeanEstimator,
    ProportionalMeanEstimator,
    ThresholdMeanEstimator,
    UniformMeanEstimator,
    free_privacy,
)
from skldp.mean._problem import MeanProblem
from skldp.mean._release import cost_bound, integer_weights
from skldp.mean._weights import (
    noise_of_weights,
    optimal_threshold,
    optimal_weights,
    optimal_weights_cvxpy,
    threshold_weights,
)

CASES = json.loads((Path(__file__).parents[1] / "data" / "adpm_cases.json").read_text())["cases"]
FAMILY = [
    ADPMMeanEstimator,
    UniformMeanEstimator,
    ProportionalMeanEstimator,
    ThresholdMeanEstimator,
]


def levels_of(case):
    return np.array([float(level) for level in case["epsilon"]])


def fitted(case, **parameters):
    levels = levels_of(case)
    X = np.full((levels.size, 1), 0.3)
    mean = ADPMMeanEstimator(bounds=(-1, case["width"] - 1), random_state=0, **parameters)
    return mean.fit(X, epsilon=levels)


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
@pytest.mark.parametrize(("solver", "error"), [("exact", 1e-9), ("cvxpy", 1e-5)])
def test_recorded_solutions(case, solver, error):
    mean = fitted(case, solver=solver)
    np.testing.assert_allclose(mean.weights_, case["weights"], rtol=0, atol=error)
    assert mean.noise_scale_ == pytest.approx([case["noise_scale"]], rel=error)
    assert mean.threshold_ == pytest.approx(case["threshold"], rel=error)
    assert mean.mse_bound_ == pytest.approx(case["mse_bound"], rel=error)
    assert mean.n_saturated_ == case["n_saturated"]
    np.testing.assert_allclose(
        mean.effective_epsilon_, np.minimum(levels_of(case), case["threshold"]), rtol=1e-12
    )


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_expected_error_at_the_assumed_variance_is_the_bound(case):
    mean = ADPMMeanEstimator(bounds=(0, case["width"]))
    assert mean.expected_mse(levels_of(case)) == pytest.approx(case["mse_bound"], rel=1e-9)


@pytest.mark.parametrize("ratio", [0.5, 8.0, 32.0, 200.0])
def test_no_perturbation_of_the_weights_is_better(ratio):
    rng = np.random.default_rng(4)
    for n in (1, 2, 7, 40):
        levels = np.exp(rng.uniform(-4, 2, n))
        weights, _ = optimal_weights(levels, ratio)
        best = weights @ weights + ratio * noise_of_weights(weights, levels) ** 2
        for _ in range(200):
            size = 10.0 ** rng.uniform(-6, -1)
            other = np.maximum(weights + size * rng.normal(size=n) * weights.max(), 0)
            other /= other.sum()
            error = other @ other + ratio * noise_of_weights(other, levels) ** 2
            assert error >= best * (1 - 1e-13)


@pytest.mark.parametrize("ratio", [0.5, 8.0, 32.0])
def test_threshold_is_the_root_in_rational_numbers(ratio):
    rng = np.random.default_rng(5)
    for n in (1, 2, 3, 50, 400):
        levels = np.exp(rng.uniform(-8, 4, n))
        levels[: n // 3] = levels[0]
        root = Fraction(optimal_threshold(levels, ratio))
        exact = [Fraction(level) for level in levels.tolist()]
        below = [level for level in exact if level < root]
        closed = (Fraction(ratio) + sum(level**2 for level in below)) / sum(below)
        assert abs(root / closed - 1) < Fraction(1, 10**14)


@pytest.mark.parametrize("solver", [optimal_weights_cvxpy, lambda e, k: optimal_weights(e, k)[0]])
def test_two_groups_in_closed_form(solver):
    # FORMULAS 2: R = 1 + 8/(n f e1²); weights proportional while e2/e1 <= R, then constant.
    for n, f, first in ((1000, 0.5, 0.1), (200, 0.25, 0.3), (40, 0.9, 0.5)):
        n_first = int(n * f)
        largest = 1 + 8 / (n_first * first**2)
        for factor in (1.0, 1.05, (1 + largest) / 2, 1.01 * largest, 40 * largest, np.inf):
            levels = np.repeat([first, factor * first], [n_first, n - n_first])
            weights = solver(levels, 8.0)
            bound = weights @ weights / 4 + 2 * noise_of_weights(weights, levels) ** 2
            if factor <= largest:
                average = levels.mean()
                expected = levels / (n * average)
                error = (levels**2).mean() / (4 * n * average**2) + 2 / (n * average) ** 2
            else:
                small = 1 / (n * (f + (1 - f) * largest))
                expected = np.repeat([small, largest * small], [n_first, n - n_first])
                error = (n_first * first**2 + 8) / (4 * n * (n_first * first**2 + 8 * (1 - f)))
            np.testing.assert_allclose(weights, expected, rtol=1e-5)
            assert bound == pytest.approx(error, rel=1e-5)


def extreme_levels():
    rng = np.random.default_rng(6)
    wide = 10.0 ** rng.uniform(-12, 12, 60)
    yield "wide", wide
    yield "wide, public and unused", np.concatenate([wide, [0.0, np.inf, np.inf, 0.0]])
    yield "repeated", np.repeat([1e-12, 1.0, 1e12], 20)
    yield "one cautious", np.array([1e-12] + [1e12] * 9)
    yield "one careless", np.array([1e-12] * 9 + [1e12])
    yield "one user", np.array([1e-12])
    yield "one generous user", np.array([1e12])
    yield "one public user", np.array([np.inf])
    yield "private and public", np.array([1e-12, np.inf])
    yield "unused and public", np.array([0.0, 0.0, np.inf, np.inf])
    yield "unused and private", np.array([0.0, 1e-3, 0.0, 1e3])
    yield "all equal", np.full(100, 1e-12)


@pytest.mark.parametrize(
    "levels", [pytest.param(levels, id=name) for name, levels in extreme_levels()]
)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("n_features", [1, 3])
def test_no_level_is_ever_exceeded(levels, noise, n_features):
    """The certificate, again, in rational numbers for every user and every member."""
    X = np.linspace(-1, 2, levels.size * n_features).reshape(levels.size, n_features)
    members = [cls(bounds=(0, 1), noise=noise) for cls in FAMILY]
    members.append(ADPMMeanEstimator(bounds=(0, 1), noise=noise, variance=1e-3))
    members.append(AffineMeanEstimator(bounds=(0, 1), noise=noise, weights=np.sign))
    # General solvers stop somewhere: how far from the optimum is not the question here.
    members.append(ADPMMeanEstimator(bounds=(0, 1), noise=noise, solver="cvxpy"))
    for member in members:
        if isinstance(member, UniformMeanEstimator) and levels.min() == 0:
            continue
        name = "epsilon" if noise == "laplace" else "rho"
        try:
            member.fit(X, **{name: levels})
        except ValueError as error:
            assert "cvxpy found no optimal weights" in str(error)
            continue
        assert np.isfinite(member.mean_).all()
        assert (member.privacy_spent_ <= levels).all()
        problem = MeanProblem(np.zeros(n_features), np.ones(n_features), noise)
        integers = integer_weights(member.weights_)
        bound = cost_bound(problem, integers, levels)
        for weight, level in zip(integers.tolist(), levels.tolist(), strict=True):
            if level == np.inf:
                continue
            power, factor = (1, 1) if noise == "laplace" else (2, 2)
            assert weight**power <= factor * bound * Fraction(level)
        is_private = np.isfinite(levels) & (member.weights_ > 0)
        assert (member.noise_scale_ > 0).all() == is_private.any()


def test_public_data_alone_have_their_exact_mean_without_noise():
    X = np.random.default_rng(0).normal(size=(10_001, 2))
    for cls in FAMILY:
        mean = cls(bounds=(-10, 10)).fit(X, epsilon=np.full(10_001, np.inf))
        np.testing.assert_allclose(mean.mean_, X.mean(axis=0), rtol=0, atol=2e-13)
        assert (mean.noise_scale_ == 0).all()
        assert mean.threshold_ == np.inf and mean.n_saturated_ == 0
        assert (mean.privacy_spent_ == np.inf).all()


def test_public_and_unused_users_alone():
    X = np.array([[0.0], [1.0], [0.2], [0.4]])
    mean = ADPMMeanEstimator(bounds=(0, 1)).fit(X, epsilon=[0, 0, np.inf, np.inf])
    np.testing.assert_array_equal(mean.weights_, [0, 0, 0.5, 0.5])
    assert mean.mean_ == pytest.approx([0.3], abs=1e-12)
    np.testing.assert_array_equal(mean.privacy_spent_, [0, 0, np.inf, np.inf])


@pytest.mark.parametrize("cls", FAMILY)
def test_nobody_to_ask_is_an_error(cls):
    for levels in (np.zeros(3), np.full(3, 1e-200)):
        with pytest.raises(ValueError, match="nobody's value may be used"):
            cls(bounds=(0, 1)).fit([[0.1], [0.2], [0.3]], epsilon=levels)


def test_equal_weights_need_positive_levels():
    with pytest.raises(ValueError, match="Leave such users out"):
        UniformMeanEstimator(bounds=(0, 1)).fit([[0.1], [0.2]], epsilon=[0, 1])


def test_nobody_above_the_threshold_makes_weights_proportional():
    levels = np.array([0.1, 0.2, 0.25])
    X = np.zeros((3, 1))
    optimal = ADPMMeanEstimator(bounds=(0, 1)).fit(X, epsilon=levels)
    proportional = ProportionalMeanEstimator(bounds=(0, 1)).fit(X, epsilon=levels)
    assert optimal.threshold_ > levels.max() and optimal.n_saturated_ == 0
    np.testing.assert_allclose(optimal.weights_, proportional.weights_, rtol=1e-14)


def test_threshold_estimator_finds_the_best_subset_by_enumeration():
    rng = np.random.default_rng(7)
    for _ in range(50):
        levels = np.round(np.exp(rng.uniform(-3, 2, 12)), 1)
        levels[rng.integers(12)] = np.inf
        if not levels.any():
            continue
        weights, threshold = threshold_weights(levels, 8.0)
        errors = {}
        for candidate in np.unique(levels[levels > 0]):
            m = (levels >= candidate).sum()
            errors[candidate] = 1 / m + 8 / (m * candidate) ** 2
        assert errors[threshold] == min(errors.values())
        np.testing.assert_array_equal(weights > 0, levels >= threshold)
        assert weights.sum() == pytest.approx(1)


def test_threshold_estimator_is_as_much_worse_as_documented():
    def ratio(levels):
        threshold = ThresholdMeanEstimator(bounds=(0, 1)).expected_mse(levels)
        return threshold / ADPMMeanEstimator(bounds=(0, 1)).expected_mse(levels)

    rng = np.random.default_rng(8)
    assert 1.4 < max(ratio(np.exp(rng.uniform(-3, 1, 500))) for _ in range(20)) < 1.7
    # As much from ten public users as from all private ones: neither half alone is enough.
    public = ratio(np.repeat([np.sqrt(80) / 100_000, np.inf], [100_000, 10]))
    assert 1.95 < public < 2
    pairs = [
        ratio(np.repeat([low, high], [n_low, 1000 - n_low]))
        for low in np.geomspace(1e-3, 1, 12)
        for high in np.geomspace(0.01, 1e3, 14)
        for n_low in (100, 500, 900, 990, 999)
    ]
    assert 2 < max(pairs) < 4
    # As much from one user with a larger level as from all others, and nearly nothing but noise.
    assert 3.99 < ratio(np.repeat([1e-6, 0.1], [100_000, 1])) < 4
    # Levels of Table II, spread over less than a factor e: everybody, or nobody, is left out.
    assert 1.8 < ratio(np.exp(rng.uniform(-3, -2, 1000))) < 2
    harmonic = [ratio(1 / np.arange(1, n + 1)) for n in (10, 1000, 100_000)]
    assert harmonic[0] < harmonic[1] < harmonic[2]


def test_several_columns_split_the_level():
    # 8 d² with levels ε is 8 with levels ε/d; keeping 8 at d = 3 costs 37% of the objective.
    rng = np.random.default_rng(9)
    levels = np.exp(rng.uniform(-2, 2, 100))
    weights, threshold = optimal_weights(levels, 8.0 * 9)
    split, threshold_of_split = optimal_weights(levels / 3, 8.0)
    np.testing.assert_allclose(weights, split, rtol=1e-13)
    assert threshold == pytest.approx(3 * threshold_of_split, rel=1e-13)
    mean = ADPMMeanEstimator(bounds=([0, 10, -1], [1, 12, 3])).fit(
        np.zeros((100, 3)), epsilon=levels
    )
    np.testing.assert_allclose(mean.weights_, weights, atol=1e-15)
    eta = noise_of_weights(weights, levels)
    np.testing.assert_allclose(mean.noise_scale_, 3 * eta * np.array([1, 2, 4]), rtol=1e-11)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_gaussian_noise_has_the_constant_of_the_ball(d):
    rho = np.exp(np.random.default_rng(10).uniform(-3, 1, 200))
    problem = MeanProblem(np.zeros(d), np.full(d, 3.0), "gaussian")
    assert problem.ratio == pytest.approx(4 * d)
    mean = ADPMMeanEstimator(bounds=(0, 3), noise="gaussian").fit(np.ones((200, d)), rho=rho)
    weights, threshold = optimal_weights(np.sqrt(2 * rho), 4.0 * d)
    np.testing.assert_allclose(mean.weights_, weights, atol=1e-15)
    assert mean.threshold_ == pytest.approx(threshold**2 / 2)
    np.testing.assert_allclose(mean.effective_rho_, np.minimum(rho, threshold**2 / 2), rtol=1e-12)
    assert not hasattr(mean, "effective_epsilon_")
    sigma = 3 * (weights / np.sqrt(2 * rho)).max()
    np.testing.assert_allclose(mean.noise_scale_, sigma, rtol=1e-11)


def test_known_variance_replaces_the_worst_case():
    levels = np.exp(np.random.default_rng(11).uniform(-3, 2, 300))
    known = ADPMMeanEstimator(bounds=(0, 10), variance=2.0)
    worst = ADPMMeanEstimator(bounds=(0, 10))
    weights, _ = optimal_weights(levels, 2 * 100 / 2.0)
    np.testing.assert_allclose(
        known.fit(np.zeros((300, 1)), epsilon=levels).weights_, weights, atol=1e-15
    )
    assert known.expected_mse(levels, 2.0) < worst.expected_mse(levels, 2.0)
    assert known.expected_mse(levels, 25.0) > worst.expected_mse(levels, 25.0)


def test_free_privacy_changes_nothing():
    levels = np.concatenate([np.exp(np.random.default_rng(12).uniform(-3, 3, 500)), [np.inf, 0]])
    mean = ADPMMeanEstimator(bounds=(0, 1))
    lowered = mean.free_privacy(levels)
    assert (lowered <= levels).all() and (lowered < levels).sum() > 50
    X = np.zeros((502, 1))
    before, after = mean.fit(X, epsilon=levels), ADPMMeanEstimator(bounds=(0, 1))
    after.fit(X, epsilon=lowered)
    np.testing.assert_allclose(after.weights_, before.weights_, rtol=1e-13)
    np.testing.assert_allclose(after.noise_scale_, before.noise_scale_, rtol=1e-11)
    np.testing.assert_allclose(after.threshold_, before.threshold_, rtol=1e-12)
    np.testing.assert_array_equal(lowered, before.effective_epsilon_)
    # Idempotent, and lowering one of them further costs.
    np.testing.assert_allclose(mean.free_privacy(lowered), lowered, rtol=1e-12)
    further = lowered.copy()
    further[np.argmax(levels)] /= 2
    assert mean.expected_mse(further) > mean.expected_mse(levels) * (1 + 1e-9)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_nobody_is_saturated_at_the_levels_that_are_free(noise):
    """A threshold that differs by rounding is not another one."""
    rng = np.random.default_rng(14)
    name = "rho" if noise == "gaussian" else "epsilon"
    for _ in range(200):
        levels = np.repeat(10.0 ** rng.uniform(-2, 1, 3), 34)
        levels[:10] = np.inf
        mean = ADPMMeanEstimator(bounds=(0, 1), noise=noise)
        lowered = mean.free_privacy(**{name: levels})
        assert mean.fit(np.zeros((102, 1)), **{name: levels}).n_saturated_ >= 10
        assert mean.fit(np.zeros((102, 1)), **{name: lowered}).n_saturated_ == 0


def test_free_privacy_functions_agree():
    levels = np.exp(np.random.default_rng(13).uniform(-3, 3, 50))
    for d in (1, 3):
        mean = ADPMMeanEstimator(bounds=(0, np.full(d, 4.0)), variance=1.5)
        np.testing.assert_array_equal(
            mean.free_privacy(levels),
            free_privacy(levels, n_features=d, bounds=(0, 4), variance=1.5),
        )
        gaussian = ADPMMeanEstimator(bounds=(0, np.full(d, 4.0)), noise="gaussian")
        np.testing.assert_array_equal(
            gaussian.free_privacy(rho=levels), free_privacy(rho=levels, n_features=d)
        )
    np.testing.assert_array_equal(free_privacy([0.0, 0.0]), [0, 0])
    with pytest.raises(ValueError, match="either epsilon or rho"):
        free_privacy()


def test_weights_of_a_million_users_do_not_lose_precision():
    levels = np.exp(np.random.default_rng(14).uniform(-14, 2, 1_000_000))
    weights, threshold = optimal_weights(levels, 8.0)
    below = np.sort(levels[levels < threshold])
    # The equation of the root, with exactly rounded sums.
    left = threshold * fsum(below) - fsum(below * below)
    assert left == pytest.approx(8.0, rel=1e-9)
    assert fsum(weights) == pytest.approx(1, abs=1e-13)
    X = np.zeros((levels.size, 1))
    mean = ADPMMeanEstimator(bounds=(0, 1)).fit(X, epsilon=levels)
    assert mean.noise_scale_[0] == pytest.approx(noise_of_weights(weights, levels), rel=1e-9)
    assert (mean.privacy_spent_ <= levels).all()
    np.testing.assert_allclose(mean.privacy_spent_.max(), threshold, rtol=1e-9)
