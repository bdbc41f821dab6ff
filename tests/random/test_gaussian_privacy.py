"""(ε, δ) of Gaussian noise: by definition, by integrals, at extremes."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from skldp.random import _gaussian_privacy as module
from skldp.random import discrete_gaussian_delta, gaussian_delta, gaussian_scale


def delta_by_definition(epsilon, variance, change):
    """Σ max(P(y) - e^ε P(y + Δ), 0) over all integers, normalized by their own sums."""
    reach = int(40 * math.sqrt(variance)) + change + 10
    y = np.arange(-reach, reach + 1)
    here = np.exp(-(y**2) / (2 * variance))
    there = np.exp(-((y + change) ** 2) / (2 * variance))
    total = math.fsum(here)
    return math.fsum(np.maximum(here - np.exp(epsilon) * there, 0)) / total


CASES = [
    (0.3, 1, 2.0),
    (1, 1, 1.0),
    (2.5, 1, 0.3),
    (4, 3, 0.0),
    (17, 4, 0.01),
    (100, 10, 1.0),
    (100, 30, 12.0),
    (1000, 1, 0.0),
    (9, 1, 5.0),
    (40_000, 90, 2.0),
]


@pytest.mark.parametrize(("variance", "change", "epsilon"), CASES)
def test_the_discrete_delta_is_that_of_its_definition(variance, change, epsilon):
    found = discrete_gaussian_delta(epsilon, variance, change)
    assert found == pytest.approx(delta_by_definition(epsilon, variance, change), rel=1e-10)


@pytest.mark.parametrize(
    ("variance", "change", "epsilon"),
    [
        (Fraction(1, 4), 1, 1e-6),
        (Fraction(1, 4), 1, 30.0),
        (2, 1, 5.0),
        (2, 50, 600.0),
        (3, 80, 1000.0),
        (9, 1, 3.5),
        (25, 2, 4.5),
    ],
)
def test_the_discrete_delta_is_exact_at_extremes(variance, change, epsilon):
    """60 digits, so that nothing cancels, where δ is from 2e-56 to .93."""
    with localcontext() as context:
        context.prec = 60
        level = Decimal(epsilon).exp()
        twice = Decimal(2 * Fraction(variance).numerator) / Fraction(variance).denominator
        reach = int(60 * math.sqrt(variance)) + change + 10
        weights = {y: (-Decimal(y * y) / twice).exp() for y in range(-reach, reach + change + 1)}
        terms = (weights[y] - level * weights[y + change] for y in range(-reach, reach + 1))
        expected = sum(max(term, Decimal(0)) for term in terms) / sum(weights.values())
    found = discrete_gaussian_delta(epsilon, variance, change)
    assert found == pytest.approx(float(expected), rel=1e-11)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 4.0])
@pytest.mark.parametrize("change", [1, 700, 4000])
def test_beyond_the_sums_there_is_a_bound_close_above(epsilon, change, monkeypatch):
    """At σ = 2^12 both are possible; the remainder falls with σ², to 1e-8 where it is used."""
    epsilon *= change / 2**12
    exact = discrete_gaussian_delta(epsilon, 2**24, change)
    monkeypatch.setattr(module, "_LARGEST_SUMMED", 1.0)
    bound = discrete_gaussian_delta(epsilon, 2**24, change)
    assert exact <= bound <= exact * (1 + 1e-5)


def test_a_large_discrete_deviation_is_continuous():
    exact = discrete_gaussian_delta(1.0, Fraction(2) ** 80, 2**38)
    assert exact == pytest.approx(gaussian_delta(1.0, 2.0**40, 2.0**38), rel=1e-6)


@pytest.mark.parametrize("scale", [0.4, 1.0, 7.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 3.0])
def test_the_continuous_delta_is_an_integral(scale, epsilon):
    def excess(x):
        return max(norm.pdf(x, scale=scale) - math.exp(epsilon) * norm.pdf(x + 1, scale=scale), 0)

    threshold = epsilon * scale**2 - 0.5
    expected, _ = quad(
        excess, threshold, threshold + 40 * scale, epsabs=0, epsrel=1e-10, limit=500
    )
    assert gaussian_delta(epsilon, scale) == pytest.approx(expected, rel=1e-7)


def test_the_calibration_of_the_formula_sheet():
    """σ/w = 4.225 at ε = 1, δ = 1e-6, where the classical condition asks for 5.299."""
    assert gaussian_scale(1.0, 1e-6) == pytest.approx(4.225, abs=5e-4)
    assert math.sqrt(2 * math.log(1.25e6)) == pytest.approx(5.299, abs=5e-4)


@pytest.mark.parametrize(("change", "excess"), [(1, 0.0197), (10, 0.00048)])
def test_the_continuous_delta_is_too_small_for_discrete_noise(change, excess):
    """By 2% where one user moves the integer by one, and by 5e-4 where by ten."""
    scale = gaussian_scale(1.0, 1e-6, change)
    discrete = discrete_gaussian_delta(1.0, Fraction(scale) ** 2, change)
    assert discrete / gaussian_delta(1.0, scale, change) - 1 == pytest.approx(excess, rel=0.01)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 10.0, 1e3])
@pytest.mark.parametrize("delta", [1e-30, 1e-6, 0.1, 0.5])
def test_the_calibrated_scale_is_enough_and_hardly_more(epsilon, delta):
    scale = gaussian_scale(epsilon, delta)
    assert gaussian_delta(epsilon, scale) <= delta
    # 1e-8 less noise is too little: δ is steep enough everywhere.
    assert gaussian_delta(epsilon, scale * (1 - 1e-8)) > delta


@pytest.mark.parametrize("epsilon", [2.0**-40, 2.0**-20, 1e-3, 1.0, 50.0])
@pytest.mark.parametrize("delta", [1e-100, 1e-30, 1e-6, 0.1])
def test_small_levels_lose_no_digits(epsilon, delta):
    """δ as an integral of positive terms, φ(x) (1 - e^(-r(x - a))) beyond a: nothing cancels."""
    scale = gaussian_scale(epsilon, delta)
    ratio = 1 / scale
    start = epsilon / ratio - ratio / 2

    def term(above):
        return math.exp(-above * (above / 2 + start)) * -math.expm1(-ratio * above)

    integral, _ = quad(term, 0, 40, epsabs=0, epsrel=1e-11, limit=500, points=[0.1, 1, 5])
    exact = integral * norm.pdf(start)
    assert delta * (1 - 1e-5) < exact <= delta
    assert gaussian_delta(epsilon, scale) == pytest.approx(exact, rel=1e-9)
    # In steps so fine that the sum of the discrete noise becomes an integral.
    fine = Fraction(scale * 2**40) ** 2
    assert exact * (1 - 1e-9) <= discrete_gaussian_delta(epsilon, fine, 2**40)
    assert discrete_gaussian_delta(epsilon, fine, 2**40) <= exact * (1 + 1e-6)


def test_delta_falls_with_epsilon_and_noise_and_rises_with_sensitivity():
    for function in (gaussian_delta, lambda e, s, c: discrete_gaussian_delta(e, s**2, c)):
        assert np.all(np.diff([function(e, 5.0, 3) for e in np.linspace(0, 4, 30)]) < 0)
        assert np.all(np.diff([function(0.5, s, 3) for s in np.linspace(1, 30, 30)]) < 0)
        assert np.all(np.diff([function(0.5, 5.0, c) for c in range(1, 30)]) > 0)


def test_sensitivity_is_a_unit():
    assert gaussian_delta(0.7, 6.0, 2.0) == pytest.approx(gaussian_delta(0.7, 3.0), rel=1e-12)
    assert gaussian_scale(0.7, 1e-5, 2.0) == pytest.approx(
        2 * gaussian_scale(0.7, 1e-5), rel=1e-12
    )


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: gaussian_delta(-1.0, 1.0), ValueError),
        (lambda: gaussian_delta(1.0, 0.0), ValueError),
        (lambda: gaussian_delta(1.0, math.nan), ValueError),
        (lambda: gaussian_delta(1.0, 1.0, math.inf), ValueError),
        (lambda: gaussian_delta(True, 1.0), TypeError),
        (lambda: gaussian_delta(1.0, "1"), TypeError),
        (lambda: gaussian_scale(0.0, 0.1), ValueError),
        (lambda: gaussian_scale(1.0, 0.0), ValueError),
        (lambda: gaussian_scale(1.0, 1.0), ValueError),
        (lambda: discrete_gaussian_delta(1.0, 0), ValueError),
        (lambda: discrete_gaussian_delta(1.0, 1, 0), ValueError),
        (lambda: discrete_gaussian_delta(1.0, 1, 1.5), TypeError),
    ],
)
def test_wrong_parameters_raise(call, error):
    with pytest.raises(error):
        call()
