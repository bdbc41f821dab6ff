"""The risk curves: points against the formulas, marks, and errors."""

import numpy as np
import pytest

from skldp.metrics import compare_mechanisms, expected_l1_loss, expected_l2_loss
from skldp.plotting import RiskCurveDisplay


def test_curves_hold_the_formulas_against_users():
    display = RiskCurveDisplay.from_parameters(2.0, 1000, 16, open_alphabet=False, loss="l2")
    uniform = np.full(16, 1 / 16)
    best = compare_mechanisms(2.0, 1000, 16, open_alphabet=False)
    assert set(display.lines_) == set(best)
    for name, line in display.lines_.items():
        users, losses = line.get_data()
        assert users.min() == 100 and users.max() == 10_000
        expected = [expected_l2_loss(best[name].channel, uniform, int(n)) for n in users]
        np.testing.assert_allclose(losses, expected, rtol=1e-12)
        assert np.all(np.diff(losses) < 0)


def test_curves_hold_the_formulas_against_epsilon():
    levels = [0.5, 1.0, 4.0]
    display = RiskCurveDisplay.from_parameters(1.0, 1000, 8, against="epsilon", positions=levels)
    uniform = np.full(8, 1 / 8)
    for name, line in display.lines_.items():
        expected = [
            expected_l1_loss(compare_mechanisms(level, 1000, 8)[name].channel, uniform, 1000)
            for level in levels
        ]
        np.testing.assert_allclose(line.get_ydata(), expected, rtol=1e-12)
    assert display.ax_.get_xscale() == "log"


def test_the_plan_and_the_target_are_marked():
    display = RiskCurveDisplay.from_parameters(1.0, 1000, 64, target=0.25)
    labels = display.ax_.get_legend_handles_labels()[1]
    assert "planned: 1,000" in labels and "target: 0.25" in labels
    # Losses above 2 at few users: the region where an estimate says nothing is shown.
    assert "no better than a guess" in labels
    few = RiskCurveDisplay.from_parameters(4.0, 10**6, 8)
    assert "no better than a guess" not in few.ax_.get_legend_handles_labels()[1]


def test_one_may_draw_elsewhere_and_again():
    display = RiskCurveDisplay([1, 2], {"a": [1.0, 0.5]})
    first = display.plot(color="red")
    assert first.lines_["a"].get_color() == "red"
    axes = display.figure_.subplots()
    assert display.plot(axes).ax_ is axes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1], {"a": [1]}), "n_positions >= 2"),
        (([2, 1], {"a": [1, 1]}), "positive and ascending"),
        (([0, 1], {"a": [1, 1]}), "positive and ascending"),
        (([1, 2], {}), "at least one curve"),
        (([1, 2], {"a": [1, 2, 3]}), r"losses of a must have shape \(2,\)"),
    ],
)
def test_wrong_curves_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        RiskCurveDisplay(*arguments)


def test_wrong_choices_raise():
    with pytest.raises(ValueError, match="against must be one of"):
        RiskCurveDisplay.from_parameters(1.0, 10, 4, against="k")
    with pytest.raises(ValueError, match="loss must be one of"):
        RiskCurveDisplay.from_parameters(1.0, 10, 4, loss="l3")
