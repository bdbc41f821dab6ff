"""SaturationDisplay draws the errors that estimators state, and marks where they become flat."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from skldp.mean import ADPMMeanEstimator, SamplingMeanEstimator, UniformMeanEstimator
from skldp.plotting import SaturationDisplay

LEVELS = np.repeat([0.1, 1.0], 500)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_curves_are_the_expected_errors():
    means = {"a": ADPMMeanEstimator(bounds=(0, 4)), "b": UniformMeanEstimator(bounds=(0, 4))}
    chosen = [0.1, 0.2, 0.5, 3.0]
    display = SaturationDisplay.from_estimators(means, LEVELS, levels=chosen, variance=1.0)
    for name, mean in means.items():
        x, y = display.lines_[name].get_data()
        np.testing.assert_array_equal(x, chosen)
        expected = [mean.expected_mse(np.repeat([0.1, level], 500), 1.0) for level in chosen]
        np.testing.assert_array_equal(y, expected)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["a", "b", "threshold 0.26"]
    assert display.figure_ is display.ax_.figure


def test_the_error_is_flat_beyond_the_mark_and_not_before():
    display = SaturationDisplay.from_estimators(ADPMMeanEstimator(bounds=(0, 1)), LEVELS)
    # R ε1 with R = 1 + 8/(n f ε1²).
    assert display.threshold == pytest.approx(0.26, rel=1e-12)
    assert display.threshold_line_.get_xdata()[0] == display.threshold
    (errors,) = display.errors.values()
    beyond = display.levels >= display.threshold
    assert 10 < beyond.sum() < 90
    np.testing.assert_allclose(errors[beyond], errors[-1], rtol=1e-12)
    assert np.all(np.diff(errors[~beyond]) < 0) and errors[~beyond].min() > errors[-1]


def test_group_estimators_and_columns_may_be_chosen():
    members = np.arange(1000) < 100
    mean = ADPMMeanEstimator(bounds=(0, [1.0, 1.0]))
    display = SaturationDisplay.from_estimators(
        [mean, SamplingMeanEstimator(bounds=(0, [1.0, 1.0]))], LEVELS, group=members
    )
    assert list(display.lines_) == ["ADPM", "Sampling"]
    public = mean.free_privacy(np.where(members, np.inf, LEVELS))
    assert display.threshold == public[0]
    _, ax = plt.subplots()
    assert display.plot(ax, linewidth=4).lines_["ADPM"].get_linewidth() == 4
    assert display.ax_ is ax


def test_no_estimator_is_lost_and_the_mark_is_that_of_optimal_weights():
    worst, known = ADPMMeanEstimator(bounds=(0, 1)), ADPMMeanEstimator(bounds=(0, 1), variance=0.1)
    with pytest.raises(ValueError, match="same name"):
        SaturationDisplay.from_estimators([worst, known], LEVELS)
    for nobody in ([], {}):
        with pytest.raises(ValueError, match="at least one"):
            SaturationDisplay.from_estimators(nobody, LEVELS)
    with pytest.raises(ValueError, match="bounds is required"):
        SaturationDisplay.from_estimators(ADPMMeanEstimator(), LEVELS)
    for means in ({"u": UniformMeanEstimator(bounds=(0, 1)), "a": known}, {"a": known}):
        display = SaturationDisplay.from_estimators(means, LEVELS)
        # R ε1 with R = 1 + 2/(v n f ε1²).
        assert display.threshold == pytest.approx(0.1 * (1 + 2 / (0.1 * 500 * 0.01)), rel=1e-12)


def test_without_a_finite_threshold_there_is_no_mark():
    display = SaturationDisplay([0.1, 1.0], {"x": [2.0, 1.0]}, threshold=np.inf).plot()
    assert display.threshold_line_ is None


@pytest.mark.parametrize(
    ("levels", "errors"),
    [
        ([1.0], {"x": [1.0]}),
        ([1.0, 0.5], {"x": [1.0, 1.0]}),
        ([0.0, 0.5], {"x": [1.0, 1.0]}),
        ([0.1, 0.5], {"x": [1.0]}),
        ([0.1, 0.5], {}),
    ],
)
def test_what_does_not_fit_raises(levels, errors):
    with pytest.raises(ValueError):
        SaturationDisplay(levels, errors)


def test_group_must_be_some_of_the_users():
    mean = ADPMMeanEstimator(bounds=(0, 1))
    for group in (np.zeros(1000, bool), np.ones(1000, bool), np.ones(3, bool), LEVELS):
        with pytest.raises(ValueError, match="group"):
            SaturationDisplay.from_estimators(mean, LEVELS, group=group)


def test_missing_matplotlib_names_the_extra_for_saturation():
    program = (
        "import sys\n"
        "sys.modules['matplotlib'] = None\n"
        "from skldp.plotting import SaturationDisplay\n"
        "try:\n"
        "    SaturationDisplay([0.1, 1.0], {'x': [2.0, 1.0]}).plot()\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "skldp[plot]" in run.stdout
