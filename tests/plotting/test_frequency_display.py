"""FrequencyDisplay draws the numbers it was given, for arrays, estimators and pipelines."""

import subprocess
import sys
from itertools import pairwise

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from skldp import FrequencyEstimator, KRRTransformer
from skldp.plotting import FrequencyDisplay

FREQUENCIES = np.array([0.1, 0.5, -0.02, 0.42])
INTERVALS = np.column_stack([FREQUENCIES - 0.05, FREQUENCIES + 0.03])
NAMES = np.array(["a", "b", "c", "d"])


class Fitted(BaseEstimator):
    """What the display reads of an estimator, and no more."""

    def fit(self, X, y=None):
        self.frequencies_, self.categories_ = FREQUENCIES, NAMES
        return self

    def confidence_interval(self, level=0.95):
        return FREQUENCIES[:, None] + [[-level / 10, level / 10]]


class FittedToTwo(BaseEstimator):
    def fit(self, X, y=None):
        self.frequencies_ = [np.array([0.25, 0.75]), np.array([0.2, 0.3, 0.5])]
        self.categories_ = [np.array([0, 1]), np.array(["x", "y", "z"])]
        return self

    def confidence_interval(self, level=0.95):
        middle = np.concatenate(self.frequencies_)
        return np.column_stack([middle - 0.01, middle + 0.01])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def heights(display):
    return [bar.get_height() for bar in display.bars_]


def tick_names(display):
    return [label.get_text() for label in display.ax_.get_xticklabels()]


def whiskers(display):
    (lines,) = display.intervals_.lines[2]
    return np.array([segment[:, 1] for segment in lines.get_segments()])


def test_bars_whiskers_and_markers_are_the_numbers_given():
    truth = [0.12, 0.45, 0.01, 0.42]
    display = FrequencyDisplay.from_frequencies(
        FREQUENCIES, categories=NAMES, intervals=INTERVALS, truth=truth
    )
    np.testing.assert_array_equal(heights(display), FREQUENCIES)
    np.testing.assert_allclose(whiskers(display), INTERVALS, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(display.truth_.get_ydata(), truth)
    assert tick_names(display) == list(NAMES)
    assert display.figure_ is display.ax_.figure


def test_interval_that_misses_its_bar_is_drawn_where_it_is():
    display = FrequencyDisplay.from_frequencies([0.0, 1.0], intervals=[[-0.3, -0.1], [0.7, 0.9]])
    np.testing.assert_allclose(whiskers(display), [[-0.3, -0.1], [0.7, 0.9]], atol=1e-15)


def test_top_keeps_whiskers_and_truth_with_their_bars():
    display = FrequencyDisplay.from_frequencies(
        FREQUENCIES, categories=NAMES, intervals=INTERVALS, truth=[1, 2, 3, 4], top=2
    )
    assert tick_names(display) == ["b", "d"]
    np.testing.assert_array_equal(heights(display), [0.5, 0.42])
    np.testing.assert_allclose(whiskers(display), INTERVALS[[1, 3]], rtol=0, atol=1e-15)
    np.testing.assert_array_equal(display.truth_.get_ydata(), [2, 4])
    assert display.ax_.get_xlabel() == "the 2 most frequent of 4"


def test_top_larger_than_the_alphabet_shows_everything():
    display = FrequencyDisplay.from_frequencies(FREQUENCIES, top=10)
    np.testing.assert_array_equal(heights(display), np.sort(FREQUENCIES)[::-1])
    assert display.ax_.get_xlabel() == ""


def test_sort_orders_by_estimate_and_keeps_the_order_of_ties():
    display = FrequencyDisplay.from_frequencies([0.2, 0.3, 0.2, 0.3], categories=NAMES, sort=True)
    assert tick_names(display) == ["b", "d", "a", "c"]


@pytest.mark.parametrize("as_series", [False, True])
def test_truth_is_matched_by_name_and_absent_names_are_zero(as_series):
    truth = {"d": 0.4, "b": 0.6}
    display = FrequencyDisplay.from_frequencies(
        FREQUENCIES, categories=NAMES, truth=pd.Series(truth) if as_series else truth
    )
    np.testing.assert_array_equal(display.truth_.get_ydata(), [0, 0.6, 0, 0.4])


def test_estimator_and_pipeline_give_the_same_picture():
    plain = FrequencyDisplay.from_estimator(Fitted().fit([[0]]), level=0.9)
    pipeline = make_pipeline(FunctionTransformer(), Fitted()).fit([[0]])
    piped = FrequencyDisplay.from_estimator(pipeline, level=0.9)
    for display in (plain, piped):
        np.testing.assert_array_equal(heights(display), FREQUENCIES)
        np.testing.assert_allclose(
            whiskers(display), FREQUENCIES[:, None] + [[-0.09, 0.09]], rtol=0, atol=1e-15
        )
        labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert sorted(labels) == ["0.9 interval", "estimate"]


def test_attribute_selects_rows_of_the_stacked_intervals():
    display = FrequencyDisplay.from_estimator(FittedToTwo().fit([[0]]), attribute=1)
    assert tick_names(display) == ["x", "y", "z"]
    np.testing.assert_array_equal(heights(display), [0.2, 0.3, 0.5])
    np.testing.assert_allclose(whiskers(display)[:, 0], [0.19, 0.29, 0.49], rtol=0, atol=1e-15)


def test_plot_draws_into_given_axes_and_again():
    figure, (left, right) = plt.subplots(1, 2)
    display = FrequencyDisplay.from_frequencies(FREQUENCIES, ax=left, color="red")
    assert display.ax_ is left
    assert display.bars_[0].get_facecolor() == (1, 0, 0, 1)
    assert display.plot(right, top=1) is display
    assert display.ax_ is right
    assert display.figure_ is figure
    assert len(display.bars_) == 1


@pytest.mark.parametrize("n_categories", [1, 2, 16, 105, 256, 4096])
def test_labels_do_not_overlap(n_categories):
    display = FrequencyDisplay.from_frequencies(
        np.full(n_categories, 1 / n_categories),
        categories=[f"name {i}" for i in range(n_categories)],
    )
    display.figure_.canvas.draw()
    boxes = [label.get_window_extent() for label in display.ax_.get_xticklabels()]
    assert boxes
    for one, following in pairwise(boxes):
        assert one.x1 <= following.x0


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"frequencies": [[0.5, 0.5]]}, r"frequencies must have shape \(k,\)"),
        ({"frequencies": []}, "frequencies must have shape"),
        ({"categories": ["a"]}, r"categories must have shape \(4,\)"),
        ({"intervals": INTERVALS[:2]}, r"intervals must have shape \(4, 2\)"),
        ({"intervals": INTERVALS[:, ::-1]}, "lower ends in the first column"),
        ({"truth": [1.0]}, r"truth must have shape \(4,\)"),
        ({"categories": NAMES, "truth": {"e": 1.0}}, "not estimated: \\['e'\\]"),
        ({"top": 0}, "top must be a positive integer"),
        ({"top": True}, "top must be a positive integer"),
        ({"top": 1.5}, "top must be a positive integer"),
    ],
)
def test_wrong_input_is_refused(keywords, message):
    with pytest.raises(ValueError, match=message):
        FrequencyDisplay.from_frequencies(**{"frequencies": FREQUENCIES, **keywords})


@pytest.mark.parametrize("attribute", [None, -1, 2, "x", 0.0])
def test_several_attributes_need_a_choice(attribute):
    with pytest.raises(ValueError, match="2 attributes: choose one with attribute=0"):
        FrequencyDisplay.from_estimator(FittedToTwo().fit([[0]]), attribute=attribute)


def test_one_attribute_leaves_no_choice():
    with pytest.raises(ValueError, match="one attribute only"):
        FrequencyDisplay.from_estimator(Fitted().fit([[0]]), attribute=1)


def test_unfitted_estimator_is_refused():
    with pytest.raises(NotFittedError):
        FrequencyDisplay.from_estimator(Fitted())


def test_missing_matplotlib_names_the_extra():
    # A None entry makes `import matplotlib` fail the way an absent package does.
    program = (
        "import sys\n"
        "sys.modules['matplotlib'] = None\n"
        "from skldp.plotting import FrequencyDisplay\n"
        "display = FrequencyDisplay([0.5, 0.5])\n"
        "try:\n"
        "    display.plot()\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "skldp[plot]" in run.stdout


@pytest.mark.parametrize("attribute", [0, 1])
def test_fitted_pipeline_of_two_attributes_is_drawn(attribute):
    rows = np.column_stack([np.tile(["no", "yes"], 300), np.tile(["x", "y", "z"], 200)])
    mechanism = KRRTransformer(8.0, categories=[["no", "yes"], ["x", "y", "z"]], random_state=0)
    pipeline = make_pipeline(mechanism, FrequencyEstimator()).fit(rows)
    server = pipeline[-1]
    display = FrequencyDisplay.from_estimator(pipeline, attribute=attribute, level=0.9)
    np.testing.assert_array_equal(heights(display), server.frequencies_[attribute])
    assert tick_names(display) == [["no", "yes"], ["x", "y", "z"]][attribute]
    intervals = server.confidence_interval(level=0.9)
    expected = intervals[:2] if attribute == 0 else intervals[2:]
    np.testing.assert_allclose(whiskers(display), expected, rtol=0, atol=1e-15)


def test_dollar_signs_in_categories_are_drawn_as_they_are(tmp_path):
    display = FrequencyDisplay.from_frequencies([0.5, 0.5], categories=["a$\\bad$", "b"])
    display.figure_.savefig(tmp_path / "figure.png")
