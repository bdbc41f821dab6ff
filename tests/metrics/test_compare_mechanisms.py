"""The comparison of mechanisms, and the users that a target needs."""

import numpy as np
import pytest

from skldp.channels import CohortChannel, KRRChannel, RapporChannel
from skldp.metrics import (
    compare_mechanisms,
    expected_l1_loss,
    expected_l2_loss,
    suggest_parameters,
    users_needed,
)


@pytest.mark.parametrize("open_alphabet", [False, True])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_suggestion_is_the_best_of_the_comparison(epsilon, open_alphabet):
    best = compare_mechanisms(epsilon, 5000, 40, open_alphabet)
    losses = {name: one.expected_l2_loss for name, one in best.items()}
    suggestion = suggest_parameters(epsilon, 5000, 40, open_alphabet)
    assert suggestion.expected_l2_loss == min(losses.values())
    for name, one in best.items():
        asked = suggest_parameters(epsilon, 5000, 40, open_alphabet, mechanism=name)
        assert asked.channel == one.channel
        assert type(one.channel) is {"k-RR": KRRChannel, "k-RAPPOR": RapporChannel}.get(
            name, CohortChannel
        )


def test_fixed_mechanisms_have_the_closed_forms():
    """ℓ2² risks of Kairouz et al. for uniform frequencies, up to the thresholds' 2^-64."""
    k, n, epsilon = 10, 2000, 1.0
    best = compare_mechanisms(epsilon, n, k, open_alphabet=False)
    e, h = np.exp(epsilon), np.exp(epsilon / 2)
    krr = (1 - 1 / k) / n + (k - 1) / n * (k + 2 * (e - 1)) / (e - 1) ** 2
    rappor = (1 - 1 / k) / n + k * h / (n * (h - 1) ** 2)
    assert best["k-RR"].expected_l2_loss == pytest.approx(krr, rel=1e-12)
    assert best["k-RAPPOR"].expected_l2_loss == pytest.approx(rappor, rel=1e-12)


def test_an_open_alphabet_rules_fixed_mechanisms_out():
    assert set(compare_mechanisms(1.0, 100, 10)) == {"O-RR", "O-RAPPOR"}
    with pytest.raises(ValueError, match="k-RR needs an alphabet that lists every value"):
        suggest_parameters(1.0, 100, 10, mechanism="k-RR")
    with pytest.raises(ValueError, match="mechanism must be one of"):
        suggest_parameters(1.0, 100, 10, mechanism="OUE")


@pytest.mark.parametrize("target", [2.0, 0.3, 0.011])
@pytest.mark.parametrize("loss", ["l1", "l2"])
def test_one_user_less_is_not_enough(target, loss):
    expected = expected_l1_loss if loss == "l1" else expected_l2_loss
    uniform = np.full(12, 1 / 12)
    for channel in (KRRChannel(1.5, 12), RapporChannel(1.5, 12)):
        n_users = users_needed(channel, 12, target, loss)
        assert expected(channel, uniform, n_users) <= target
        assert n_users == 1 or expected(channel, uniform, n_users - 1) > target


def test_a_table_that_no_server_holds_is_refused():
    with pytest.raises(ValueError, match="candidates are too many"):
        compare_mechanisms(1.0, 100, 10**8)
    # A closed alphabet leaves the mechanisms without a table.
    assert "k-RAPPOR" in compare_mechanisms(8.0, 100, 10**6, open_alphabet=False)


def test_wrong_targets_raise():
    channel = KRRChannel(1.0, 4)
    for target in (0.0, -1.0, float("nan"), True):
        with pytest.raises(ValueError, match="target must be positive"):
            users_needed(channel, 4, target)
    with pytest.raises(ValueError, match="needs more than"):
        users_needed(channel, 4, 1e-12)
    with pytest.raises(ValueError, match="loss must be one of"):
        users_needed(channel, 4, 0.1, "l3")
