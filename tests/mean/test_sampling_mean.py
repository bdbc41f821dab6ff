"""SM: the ε that it delivers, by enumeration of every subset; the printed form does not pass."""

from decimal import Context, Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

from skldp.mean import SamplingMeanEstimator
from skldp.mean._sampling import _as_probabilities, _exact_total, _law_of_number, keep_thresholds

LEVELS = [
    (0.25, 0.5),
    (0.01, 0.02),
    (1.0, 1.0),
    (0.5, 4.0),
    (0.001, 6.0),
    (0.25, 0.5, 0.75),
    (0.3, 0.3, 2.0),
    (0.02, 0.04, 0.04),
]


def log_densities(divisor, levels, values, outputs):
    """Return the log density of the release at `outputs`: a mixture over who is kept.

    Values are in widths, counted from the middle.
    """
    probabilities = _as_probabilities(*keep_thresholds(np.array(levels)))
    largest, terms = max(levels), []
    for kept in product([False, True], repeat=len(levels)):
        chance = np.prod(np.where(kept, probabilities, 1 - probabilities))
        if chance == 0:
            continue
        number = probabilities.sum() if divisor == "public" else sum(kept)
        centre = np.dot(kept, values) / number
        scale = 1 / (largest * number)
        terms.append(np.log(chance / (2 * scale)) - np.abs(outputs - centre) / scale)
    return logsumexp(terms, axis=0)


def delivered(divisor, levels):
    """Return the largest loss of each user, over all neighbouring data at the bounds.

    With the public divisor every component has the same scale, so between two centres a likelihood
    ratio is monotone: its extremes are at centres and at infinity. The printed form has several
    scales; a grid then gives a lower bound.
    """
    n = len(levels)
    extremes = [-0.5, 0.0, 0.5]
    probabilities = _as_probabilities(*keep_thresholds(np.array(levels)))
    losses = np.zeros(n)
    for user in range(n):
        for others in product(extremes, repeat=n - 1):
            for own, other in product(extremes, repeat=2):
                pair = [np.insert(np.array(others), user, value) for value in (own, other)]
                if divisor == "public":
                    outputs = np.array(
                        [
                            np.dot(kept, values) / probabilities.sum()
                            for kept in product([0, 1], repeat=n)
                            for values in pair
                        ]
                        + [-3.0, 3.0]
                    )
                else:
                    outputs = np.linspace(-3, 3, 1201)
                first, second = (
                    log_densities(divisor, levels, values, outputs) for values in pair
                )
                losses[user] = max(losses[user], np.abs(first - second).max())
    return losses


@pytest.mark.parametrize("levels", LEVELS)
def test_public_divisor_keeps_every_level(levels):
    losses = delivered("public", levels)
    assert (losses <= np.array(levels) * (1 + 1e-12)).all()
    mean = SamplingMeanEstimator(bounds=(0, 1), random_state=0)
    mean.fit(np.zeros((len(levels), 1)), epsilon=levels)
    assert (mean.effective_epsilon_ <= levels).all()
    # What is stated is a bound, and nearly reached where others can hide whether a user is kept.
    assert (losses <= mean.effective_epsilon_ * (1 + 1e-9)).all()
    np.testing.assert_array_equal(mean.privacy_spent_, mean.effective_epsilon_)


@pytest.mark.parametrize("levels", [(0.25, 0.5), (0.01, 0.02), (0.25, 0.5, 0.75)])
def test_printed_form_is_caught(levels):
    losses = delivered("kept", levels)
    assert losses[0] > levels[0] * 1.05


def test_printed_form_delivers_what_was_derived():
    assert delivered("kept", (0.25, 0.5))[0] == pytest.approx(0.304, abs=5e-4)
    # The excess tends to a factor 2 for tiny levels: π = ε/t, and revealing who was kept costs t.
    tiny = delivered("kept", (1e-4, 1.0))[0] / 1e-4
    assert tiny > 1


@pytest.mark.parametrize(
    "levels",
    [
        (0.25, 0.5),
        (1e-12, 1e-3, 0.7),
        (1e-9, 700.0, 720.0, 750.0),
        (1e-300, 1.0),
        (40.0, 80.0),
        (9999.0, 10_000.0),
        (1e6, 1e12),
    ],
)
def test_probabilities_are_below_the_exact_ones_by_next_to_nothing(levels):
    context = Context(prec=80, Emax=10**17, Emin=-(10**17))
    levels = np.array(levels)
    thresholds, always = keep_thresholds(levels)
    if levels.max() - levels.min() > 1e5:
        assert thresholds.max() == 0
        return
    np.testing.assert_array_equal(always, levels == levels.max())

    def odds(level):
        return context.subtract(context.exp(Decimal(level)), Decimal(1))

    for level, threshold, whole in zip(levels, thresholds.tolist(), always, strict=True):
        if whole:
            continue
        # e^(ε-t) (1 - e^-ε)/(1 - e^-t), so that the largest levels do not overflow.
        t = Decimal(float(levels.max()))
        decayed = context.exp(context.subtract(Decimal(float(level)), t))
        up = context.subtract(Decimal(1), context.exp(-Decimal(float(level))))
        down = context.subtract(Decimal(1), context.exp(-t))
        exact = Fraction(context.divide(context.multiply(decayed, up), down)) * 2**64
        assert threshold <= exact
        assert threshold >= exact * (1 - Fraction(1, 2**43)) - 1


@pytest.mark.parametrize(
    "levels",
    [
        (0.1, 0.2),
        (1e-10, 2e-10),
        (1.0, np.nextafter(1.0, 2.0)),
        (3.0, 50.0),
        (40.0, 72.0),
        (31.0, 74.0),
        (60.0, 100.0),
        (1.0, 80.0),
        (200.0, 230.0),
        (700.0, 710.0),
        (1.0, 2000.0),
        (1960.0, 2000.0),
    ],
)
def test_stated_losses_are_the_formula_to_120_digits(levels):
    """At large levels too, where 1 - π and e^(-t/2) are lost beside 1."""
    levels = np.array(levels)
    mean = SamplingMeanEstimator(bounds=(0, 1)).fit([[0.0], [1.0]], epsilon=levels)
    context = Context(prec=120, Emax=10**6, Emin=-(10**6))
    a = context.exp(context.divide(Decimal(levels.max()), Decimal(2)))
    thresholds, always = keep_thresholds(levels)
    for stated, threshold, is_always in zip(mean.privacy_spent_, thresholds, always, strict=True):
        kept = Decimal(1) if is_always else context.divide(Decimal(int(threshold)), Decimal(2**64))
        left = context.multiply(context.subtract(Decimal(1), kept), a)
        larger = context.add(left, context.multiply(kept, context.multiply(a, a)))
        exact = context.ln(context.divide(larger, context.add(left, kept)))
        assert stated == pytest.approx(float(exact), rel=1e-12, abs=0)


def test_public_users_leave_all_others_out():
    X = np.array([[0.0], [1.0], [0.5], [0.25]])
    mean = SamplingMeanEstimator(bounds=(0, 1)).fit(X, epsilon=[1.0, 800.0, np.inf, np.inf])
    assert mean.mean_ == pytest.approx([0.375], abs=1e-12)
    np.testing.assert_array_equal(mean.privacy_spent_, [0, 0, np.inf, np.inf])
    np.testing.assert_array_equal(mean.noise_scale_, [0])


def test_true_mean_has_one_number_for_every_column():
    mean = SamplingMeanEstimator(bounds=(0, 1))
    errors = [mean.expected_mse([0.1, 0.5], 0.01, mean=value) for value in (0.3, [0.3])]
    assert errors[0] == errors[1]
    for wrong in ([0.3, 0.3], [[0.3]]):
        with pytest.raises(ValueError, match="mean must be a number or have shape"):
            mean.expected_mse([0.1, 0.5], 0.01, mean=wrong)


def test_printed_form_needs_a_seed():
    X = np.zeros((4, 1))
    with pytest.raises(ValueError, match="random_state"):
        SamplingMeanEstimator(bounds=(0, 1), divisor="kept").fit(X)
    mean = SamplingMeanEstimator(bounds=(0, 1), divisor="kept", random_state=0).fit(X)
    assert np.isnan(mean.privacy_spent_).all() and np.isnan(mean.effective_epsilon_).all()


def test_neither_the_number_nor_the_names_of_the_kept_are_exposed():
    rng = np.random.default_rng(0)
    X = rng.random((100, 1))
    levels = np.repeat([0.01, 1.0], [99, 1])
    first, second = (SamplingMeanEstimator(bounds=(0, 1)).fit(X, epsilon=levels) for _ in range(2))
    # Everything but the released number is the same, whoever was kept.
    for name, value in vars(first).items():
        if name in ("mean_", "_fit", "_fitted_problem"):
            continue
        assert np.array_equal(value, vars(second)[name]), name
    for name in first._fit._fields:
        if name != "released":
            assert np.array_equal(getattr(first._fit, name), getattr(second._fit, name)), name


def test_total_and_law_of_the_number_kept_are_exact():
    levels = np.array([0.1, 0.5, 0.5, 2.0, 3.0, 3.0])
    thresholds, always = keep_thresholds(levels)
    exact = sum(
        (Fraction(1) if whole else Fraction(t, 2**64))
        for t, whole in zip(thresholds.tolist(), always, strict=True)
    )
    assert _exact_total(thresholds, always) == exact
    probabilities = _as_probabilities(thresholds, always)
    expected = np.zeros(levels.size + 1)
    for kept in product([0, 1], repeat=levels.size):
        expected[sum(kept)] += np.prod(np.where(kept, probabilities, 1 - probabilities))
    law = _law_of_number(probabilities)
    np.testing.assert_allclose(law, expected[1 : law.size + 1], atol=1e-15)
    assert law.size == 6


def test_expected_error_of_both_forms_by_enumeration():
    """Against the mixture over all subsets and a two-point distribution."""
    levels = np.array([0.3, 0.8, 0.8, 2.0])
    probabilities = _as_probabilities(*keep_thresholds(levels))
    chance_of_high, low, high = 0.3, 0.2, 0.9
    variance = chance_of_high * (1 - chance_of_high) * (high - low) ** 2
    truth = low + chance_of_high * (high - low)
    for divisor in ("public", "kept"):
        error = 0.0
        for kept in product([0, 1], repeat=4):
            if not kept[3]:
                continue  # the last one always is
            for is_high in product([0, 1], repeat=4):
                chance = np.prod(np.where(kept, probabilities, 1 - probabilities))
                chance *= np.prod(np.where(is_high, chance_of_high, 1 - chance_of_high))
                number = probabilities.sum() if divisor == "public" else sum(kept)
                values = np.where(is_high, high, low) - 0.5
                centre = 0.5 + np.dot(kept, values) / number
                error += chance * ((centre - truth) ** 2 + 2 / (2.0 * number) ** 2)
        mean = SamplingMeanEstimator(bounds=(0, 1), divisor=divisor, random_state=0)
        assert mean.expected_mse(levels, variance, mean=truth) == pytest.approx(error, rel=1e-12)
        assert mean.expected_mse(levels, variance) >= error * (1 - 1e-12)
    with pytest.raises(ValueError, match="this mean and this variance"):
        mean.expected_mse(levels, 0.25, mean=0.9)
