"""ClassRecoveryDisplay sorts agents, colours pairs and counts those that are right."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.exceptions import NotFittedError

from skldp import OnlineCollaborativeMean
from skldp.plotting import ClassRecoveryDisplay

# Agents 0 and 2 share a class, and so do 1 and 3. Agent 0 takes 1 for one of its own, 3 misses 1.
CLASSES = ["a", "b", "a", "b"]
BELIEVED = np.array([[1, 1, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [0, 0, 0, 1]], dtype=bool)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def colours(display):
    return [[to_hex(pixel) for pixel in row] for row in display.image_.get_array()]


def labels(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_pairs_are_sorted_by_class_coloured_and_counted():
    display = ClassRecoveryDisplay(BELIEVED, classes=CLASSES).plot()
    assert display.order.tolist() == [0, 2, 1, 3]
    # 12 ordered pairs of different agents, 2 of them wrong.
    assert display.share_right == pytest.approx(10 / 12, rel=1e-15)
    assert "83.33%" in display.ax_.get_title(loc="left")
    yes, no, false, missed = "#8fb8de", "#f4f4f2", "#d1495b", "#e8b27d"
    assert colours(display) == [
        [yes, yes, false, no],
        [yes, yes, no, no],
        [no, no, yes, yes],
        [no, no, missed, yes],
    ]
    assert len(labels(display)) == 4
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["a", "b"]
    assert display.ax_.get_xticks().tolist() == [0.5, 2.5]
    assert display.figure_ is display.ax_.figure


def test_all_right_is_said_without_colours_for_errors():
    truth = np.equal.outer(CLASSES, CLASSES)
    display = ClassRecoveryDisplay(truth, classes=[0.25, 0.5, 0.25, 0.5]).plot()
    assert display.share_right == 1
    assert len(labels(display)) == 2
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["0.25", "0.5"]


def test_unknown_classes_leave_the_order_of_estimates_and_no_share():
    display = ClassRecoveryDisplay(BELIEVED, order_by=[0.3, 0.9, 0.1, 0.8]).plot()
    assert display.order.tolist() == [2, 0, 3, 1]
    assert display.share_right is None and display.ax_.get_title(loc="left") == ""
    assert labels(display) == ["believed", "not believed"]
    shown = np.array(colours(display)) == "#8fb8de"
    np.testing.assert_array_equal(shown, BELIEVED[np.ix_([2, 0, 3, 1], [2, 0, 3, 1])])
    both = ClassRecoveryDisplay(BELIEVED, classes=CLASSES, order_by=[0.3, 0.9, 0.1, 0.8])
    assert both.order.tolist() == [2, 0, 3, 1]
    assert ClassRecoveryDisplay(BELIEVED).order.tolist() == [0, 1, 2, 3]


def test_from_estimator_takes_beliefs_and_means():
    agents = OnlineCollaborativeMean(bounds=(0, 1), first_block=4, random_state=0)
    with pytest.raises(NotFittedError):
        ClassRecoveryDisplay.from_estimator(agents)
    agents.fit(np.tile([0.9, 0.1, 0.5], (20, 1)))
    display = ClassRecoveryDisplay.from_estimator(agents)
    np.testing.assert_array_equal(display.same_class, agents.same_class_)
    assert display.order.tolist() == np.argsort(agents.means_).tolist()
    _, ax = plt.subplots()
    known = ClassRecoveryDisplay.from_estimator(agents, classes=[2, 1, 1], ax=ax)
    assert known.order.tolist() == [1, 2, 0] and known.ax_ is ax


def test_one_agent_and_many_classes_can_be_drawn():
    assert ClassRecoveryDisplay([[True]], classes=["a"]).plot().share_right is None
    many = ClassRecoveryDisplay(np.eye(30, dtype=bool), classes=np.arange(30)).plot()
    assert many.share_right == 1
    assert not many.ax_.get_lines()


@pytest.mark.parametrize(
    "arguments",
    [
        {"same_class": np.ones((2, 3), bool)},
        {"same_class": np.ones((2, 2))},
        {"same_class": np.ones((0, 0), bool)},
        {"same_class": True},
        {"same_class": np.ones((2, 2), bool), "classes": [1]},
        {"same_class": np.ones((2, 2), bool), "order_by": [1, 2, 3]},
    ],
)
def test_beliefs_that_do_not_fit_raise(arguments):
    with pytest.raises(ValueError):
        ClassRecoveryDisplay(**arguments)
