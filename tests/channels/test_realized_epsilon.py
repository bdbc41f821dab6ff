"""The delivered ε, computed exactly, never exceeds the claim; planted bugs are caught."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from auditing import EPSILONS, SIZES, decimal, exceeds

from skldp.channels import KRRChannel, ProductChannel, RapporChannel
from skldp.channels._thresholds import (
    WORD,
    exp_lower_bound,
    flip_threshold,
    replacement_threshold,
)
from skldp.utils.estimator_checks import check_loss_bounded


@pytest.mark.parametrize("cls", [KRRChannel, RapporChannel])
@pytest.mark.parametrize("n_categories", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_realized_loss_is_at_most_epsilon(epsilon, n_categories, cls):
    channel = cls(epsilon, n_categories)
    assert not exceeds(channel.max_likelihood_ratio(), epsilon)
    assert channel.realized_epsilon <= epsilon
    check_loss_bounded(channel)


@pytest.mark.parametrize("n_categories", SIZES)
@pytest.mark.parametrize("epsilon", [e for e in EPSILONS if 0 < e <= 40])
def test_thresholds_are_the_smallest_private_ones(epsilon, n_categories):
    # One less would deliver more than ε: nothing is wasted either.
    q = replacement_threshold(epsilon, n_categories)
    assert exceeds(1 + Fraction(n_categories * (WORD - (q - 1)), max(q - 1, 1)), epsilon) or q == 1
    f = flip_threshold(epsilon)
    assert exceeds(Fraction(WORD - (f - 1), f - 1) ** 2, epsilon)


def test_zero_epsilon_hides_everything():
    for channel in (KRRChannel(0, 5), RapporChannel(0, 5)):
        assert channel.max_likelihood_ratio() == 1
        assert channel.slope == 0 and not channel.is_informative
        assert (channel.matrix() == channel.matrix()[0]).all()


@pytest.mark.parametrize("exponent", [0, 1, Fraction(1, 3), 1e-300, 36.5, 800])
def test_exponential_bound_is_below_and_tight(exponent):
    bound = exp_lower_bound(Fraction(exponent))
    assert bound >= 1
    # ln(bound) <= exponent, and within 1e-55 of it.
    difference = decimal(exponent) - decimal(bound).ln(_context())
    assert -(10 ** decimal(-100)) <= difference < 10 ** decimal(-55)


def _context():
    from decimal import Context

    return Context(prec=120, Emax=10**9, Emin=-(10**9))


def test_exponential_bound_refuses_negative_exponents():
    with pytest.raises(ValueError, match="negative"):
        exp_lower_bound(Fraction(-1))


def test_epsilon_is_split_as_a_rational():
    # As floats, three thirds of 0.3 (and five fifths of 1) add up to more than the whole.
    fifth = Fraction(1.0) / 5
    channel = ProductChannel([KRRChannel(fifth, 3)] * 5)
    assert channel.epsilon == 1.0
    assert not exceeds(channel.max_likelihood_ratio(), 1)
    third = Fraction(0.3) / 3
    assert ProductChannel([RapporChannel(third, 4)] * 3).epsilon == 0.3


def test_claims_that_floats_would_break_hold():
    # In floats `random() < p` exceeds the claim in most of these, by .24 at ε = 36.5, k = 2.
    for epsilon in np.linspace(30, 45, 31):
        for n_categories in (2, 3, 16, 1000):
            channel = KRRChannel(epsilon, n_categories)
            assert not exceeds(channel.max_likelihood_ratio(), Fraction(epsilon))


# -- planted bugs: the same check must catch each --------------------------------------------


@dataclass(frozen=True, repr=False)
class _EpsilonPerBit(RapporChannel):
    """Spends ε on each bit, though one-hot rows differ in two: 2ε delivered."""

    mechanism = "planted: epsilon per bit"

    @property
    def _threshold(self):
        return flip_threshold(2 * self.epsilon)


@dataclass(frozen=True, repr=False)
class _FloatThreshold(KRRChannel):
    """Computes the probability in floats, as `random() < p` does."""

    mechanism = "planted: float threshold"

    @property
    def _threshold(self):
        keep = (math.exp(self.epsilon) - 1) / (math.exp(self.epsilon) + self.n_categories - 1)
        return max(1, round((1 - keep) * 2**53) << 11)


@dataclass(frozen=True, repr=False)
class _TruthInTheLie(KRRChannel):
    """Lies with the probability 1 - e^ε/(e^ε+k-1), but the lie may be the truth... and says so."""

    mechanism = "planted: wrong lie branch"

    @property
    def _threshold(self):
        # The replacement includes the true symbol; taking the lie's probability for that of a
        # replacement keeps the truth too often.
        odds = exp_lower_bound(Fraction(self.epsilon))
        return math.ceil(WORD * (self.n_categories - 1) / (self.n_categories - 1 + odds))


@pytest.mark.parametrize(
    "planted",
    [_EpsilonPerBit(1.0, 4), _FloatThreshold(40.0, 2), _TruthInTheLie(1.0, 4)],
    ids=lambda channel: channel.mechanism,
)
def test_planted_bugs_are_caught_exactly(planted):
    assert exceeds(planted.max_likelihood_ratio(), planted.epsilon)
    with pytest.raises(AssertionError, match="delivers"):
        check_loss_bounded(planted)
