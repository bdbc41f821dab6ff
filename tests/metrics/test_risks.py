"""The risks of Kairouz et al. (2016): printed values, closed forms, and arguments."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from skldp.channels import KRRChannel, ProductChannel, RapporChannel
from skldp.datasets import dirichlet_distribution, geometric_distribution, uniform_distribution
from skldp.exceptions import ChannelError
from skldp.metrics import expected_l1_loss, expected_l2_loss

# k, epsilon, n, distribution, channel: l2 squared and l1, rounded to the digits given.
TABLE = [
    (4, math.log(2), 1000, geometric_distribution, KRRChannel, ".0185842", ".217259"),
    (4, math.log(2), 1000, geometric_distribution, RapporChannel, ".0335547", ".292309"),
    (10, 1.0, 2000, geometric_distribution, KRRChannel, ".0208756", ".363806"),
    (10, 1.0, 2000, geometric_distribution, RapporChannel, ".019985", ".356677"),
    (10, 1.0, 2000, uniform_distribution, KRRChannel, ".0209292", ".365019"),
    (10, 1.0, 2000, uniform_distribution, RapporChannel, ".0200385", ".357168"),
    (32, math.log(32), 1000, geometric_distribution, KRRChannel, ".00395839", ".275197"),
    (32, math.log(32), 1000, geometric_distribution, RapporChannel, ".00927331", ".434007"),
]


@pytest.mark.parametrize(("k", "epsilon", "n", "distribution", "channel", "l2", "l1"), TABLE)
def test_printed_values(k, epsilon, n, distribution, channel, l2, l1):
    masses = distribution(k)
    built = channel(epsilon, k)
    for risk, printed in ((expected_l2_loss, l2), (expected_l1_loss, l1)):
        value = risk(built, masses, n)
        assert type(value) is float
        # Six significant digits: half a unit of the sixth (some end in a zero not written).
        digits = 6 - (len(printed[1:]) - len(printed[1:].lstrip("0")))
        assert abs(value - float(printed)) <= 0.5 * 10.0 ** -(6 + 6 - digits)


@pytest.mark.parametrize("k", [2, 7, 256])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, math.log(2), 3.0, 8.0])
def test_closed_forms(k, epsilon, n=12345):
    p = dirichlet_distribution(k, random_state=k)
    spread = 1 - np.square(p).sum()

    odds = math.expm1(epsilon)  # E - 1
    l2 = spread / n + (k - 1) / n * (k + 2 * odds) / odds**2
    l1 = np.sqrt(2 * (odds * p + 1) * (odds * (1 - p) + k - 1) / (math.pi * n * odds**2)).sum()
    channel = KRRChannel(epsilon, k)
    assert expected_l2_loss(channel, p, n) == pytest.approx(l2, rel=1e-12)
    assert expected_l1_loss(channel, p, n) == pytest.approx(l1, rel=1e-12)

    half = math.expm1(epsilon / 2)  # h - 1
    l2 = spread / n + k * (half + 1) / (n * half**2)
    l1 = np.sqrt(2 * (half * p + 1) * (half * (1 - p) + 1) / (math.pi * n * half**2)).sum()
    channel = RapporChannel(epsilon, k)
    assert expected_l2_loss(channel, p, n) == pytest.approx(l2, rel=1e-12)
    assert expected_l1_loss(channel, p, n) == pytest.approx(l1, rel=1e-12)


def test_any_object_with_variances_will_do():
    channel = SimpleNamespace(n_categories=2, variance=lambda p, n: np.array([0.5, 1.5]) / n)
    assert expected_l2_loss(channel, [0.5, 0.5], 10) == pytest.approx(0.2, rel=1e-15)
    expected = math.sqrt(0.1 / math.pi) + math.sqrt(0.3 / math.pi)
    assert expected_l1_loss(channel, [0.5, 0.5], 10) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("risk", [expected_l1_loss, expected_l2_loss])
@pytest.mark.parametrize(
    ("p", "n_reports", "error", "message"),
    [
        ([0.5, 0.5], 10, ValueError, "p must have shape"),
        ([[0.5, 0.25, 0.25]], 10, ValueError, "p must have shape"),
        ([0.5, 0.6, -0.1], 10, ValueError, "not negative"),
        ([0.5, np.nan, 0.5], 10, ValueError, "finite"),
        ([0.5, 0.5, 0.5], 10, ValueError, "sum to 1"),
        ([0.5, 0.25, 0.25], 0, ValueError, "n_reports"),
        ([0.5, 0.25, 0.25], 1.5, TypeError, "n_reports"),
        ([0.5, 0.25, 0.25], True, TypeError, "n_reports"),
    ],
)
def test_bad_arguments_are_named(risk, p, n_reports, error, message):
    with pytest.raises(error, match=message):
        risk(KRRChannel(1.0, 3), p, n_reports)


@pytest.mark.parametrize("risk", [expected_l1_loss, expected_l2_loss])
def test_channels_of_several_attributes_are_refused(risk):
    product = ProductChannel([KRRChannel(1.0, 3), KRRChannel(1.0, 4)])
    with pytest.raises(TypeError, match=r"channel.attributes"):
        risk(product, [0.5, 0.25, 0.25], 10)


@pytest.mark.parametrize("risk", [expected_l1_loss, expected_l2_loss])
def test_without_information_there_is_no_risk_to_state(risk):
    with pytest.raises(ChannelError):
        risk(KRRChannel(0.0, 3), [0.5, 0.25, 0.25], 10)
