"""CollaborationDisplay runs agents over known streams and draws errors, theory beside them."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from skldp import OnlineCollaborativeMean
from skldp.datasets import sample_agent_streams
from skldp.plotting import CollaborationDisplay

MEANS = np.repeat([0.2, 0.8], [2, 3])
AGENTS = OnlineCollaborativeMean(bounds=(-1, 2), first_block=8, random_state=0)
TIMES = [5, 20, 100]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def streams(*seeds, missing_rate=0.0):
    return [
        sample_agent_streams(MEANS, 100, missing_rate=missing_rate, random_state=seed)
        for seed in seeds
    ]


def test_errors_are_those_of_the_personal_means_averaged_over_agents_and_runs():
    runs = streams(1, 2)
    display = CollaborationDisplay.from_streams(AGENTS, runs, MEANS, times=TIMES)
    generator = np.random.default_rng(0)
    expected = np.zeros(3)
    for X in runs:
        # One stream of noise for both runs, as AGENTS.random_state=0 stands for.
        agents = OnlineCollaborativeMean(bounds=(-1, 2), first_block=8, random_state=generator)
        for number, (start, end) in enumerate([(0, 5), (5, 20), (20, 100)]):
            agents.partial_fit(X[start:end])
            expected[number] += np.mean((agents.means_ - MEANS) ** 2) / 2
    np.testing.assert_allclose(display.errors["private"], expected, rtol=1e-13)
    assert not hasattr(AGENTS, "means_")
    x, y = display.lines_["private"].get_data()
    np.testing.assert_array_equal(x, TIMES)
    np.testing.assert_array_equal(y, display.errors["private"])
    assert display.ax_.get_xscale() == display.ax_.get_yscale() == "log"
    assert display.figure_ is display.ax_.figure


def test_runs_do_not_share_noise():
    # The same data twice: with the same noise the average would be the error of one run.
    (X,) = streams(1)
    once = CollaborationDisplay.from_streams(AGENTS, X, MEANS, times=TIMES)
    twice = CollaborationDisplay.from_streams(AGENTS, [X, X], MEANS, times=TIMES)
    assert twice.errors["private"][2] != once.errors["private"][2]
    # Before the first release there is no noise in a personal mean.
    np.testing.assert_allclose(twice.errors["private"][0], once.errors["private"][0], rtol=1e-13)


def test_measured_baselines_are_raw_means_of_agents_and_of_classes():
    (X,) = streams(3, missing_rate=0.4)
    display = CollaborationDisplay.from_streams(AGENTS, X, MEANS, times=[1, 100])
    assert list(display.errors) == ["local", "ideal", "private"]
    own = np.nanmean(X, axis=0)
    assert display.errors["local"][1] == pytest.approx(np.mean((own - MEANS) ** 2), rel=1e-12)
    pooled = np.repeat([np.nanmean(X[:, :2]), np.nanmean(X[:, 2:])], [2, 3])
    assert display.errors["ideal"][1] == pytest.approx(np.mean((pooled - MEANS) ** 2), rel=1e-12)
    # Agents that have seen nothing yet do not count.
    first = np.nanmean((X[0] - MEANS) ** 2)
    assert np.isnan(X[0]).any() and display.errors["local"][0] == pytest.approx(first, rel=1e-12)
    apart = CollaborationDisplay.from_streams(AGENTS, X, MEANS, classes=range(5), times=[1, 100])
    np.testing.assert_allclose(apart.errors["ideal"], apart.errors["local"], rtol=1e-12)


def test_before_anybody_has_seen_anything_there_is_a_gap():
    (X,) = streams(3)
    X[:2] = np.nan
    display = CollaborationDisplay.from_streams(AGENTS, X, MEANS, times=[2, 3])
    for values in display.errors.values():
        assert np.isnan(values[0]) and np.isfinite(values[1])


def test_theory_is_averaged_over_agents():
    agents = OnlineCollaborativeMean(
        bounds=(-1, 2), first_block=8, growth=1.0, variance=0.25, random_state=0
    )
    display = CollaborationDisplay.from_streams(
        {"known": agents, "other": AGENTS}, streams(1), MEANS, variance=0.25, times=TIMES
    )
    assert list(display.lines_) == ["local", "ideal", "oracle", "known", "other"]
    t = np.array(TIMES)
    np.testing.assert_allclose(display.errors["local"], 0.25 / t, rtol=1e-12)
    # Two agents with a class of 2, three with one of 3.
    np.testing.assert_allclose(display.errors["ideal"], 0.25 / t * 2 / 5, rtol=1e-12)
    # Blocks of 8; discrete Laplace noise of scale 3 in units of the data, which has
    # the variance 2 · 3² but for the grid of 2^18 steps.
    heard = t // 8 / (0.25 / 8 + 18 / 64)
    oracle = sum(size / 5 / (t / 0.25 + (size - 1) * heard) for size in (2, 3))
    np.testing.assert_allclose(display.errors["oracle"], oracle, rtol=1e-9)


def test_theory_of_a_tree_falls_with_its_digits():
    agents = OnlineCollaborativeMean(
        bounds=(-1, 2), release="tree", horizon=127, variance=0.25, random_state=0
    )
    display = CollaborationDisplay.from_streams(
        agents, streams(1), MEANS, variance=0.25, times=[63, 64]
    )
    # Noise of scale 3 · 7 levels in 6 nodes and in 1.
    heard = 1 / (
        0.25 / np.array([63, 64]) + 2 * 21**2 * np.array([6, 1]) / np.array([63, 64]) ** 2
    )
    t = np.array([63, 64])
    oracle = sum(size / 5 / (t / 0.25 + (size - 1) * heard) for size in (2, 3))
    np.testing.assert_allclose(display.errors["oracle"], oracle, rtol=1e-9)


def test_streams_may_come_from_a_generator_and_times_by_default():
    read = []

    def one_by_one():
        for seed in (1, 2):
            read.append(seed)
            yield streams(seed)[0]

    display = CollaborationDisplay.from_streams(AGENTS, one_by_one(), MEANS, linewidth=4)
    assert read == [1, 2]
    assert display.times[0] == 1 and display.times[-1] == 100
    assert np.all(np.diff(display.times) > 0)
    assert display.lines_["local"].get_linewidth() == 4
    _, ax = plt.subplots()
    assert display.plot(ax).ax_ is ax


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"streams": []}, "at least one run"),
        ({"streams": np.zeros((10, 4))}, "shape"),
        ({"streams": np.zeros((0, 5))}, "shape"),
        ({"streams": [np.zeros((10, 5)), np.zeros((11, 5))]}, "same shape"),
        ({"means": [0.2]}, "shape"),
        ({"means": [[0.2] * 5]}, "means"),
        ({"classes": [0, 1]}, "classes"),
        ({"times": [0, 5]}, "ascend"),
        ({"times": [5, 5]}, "ascend"),
        ({"times": [5, 11]}, "10 at most"),
        ({"times": [2.5]}, "integers"),
        ({"estimators": {}}, "at least one"),
        ({"estimators": {"ideal": AGENTS}}, "called"),
        (
            {
                "estimators": OnlineCollaborativeMean(bounds=(0, [1, 1, 1, 1, 2])),
                "variance": 0.25,
            },
            "same width",
        ),
    ],
)
def test_runs_that_do_not_fit_raise(changes, message):
    arguments = {"estimators": AGENTS, "streams": np.zeros((10, 5)), "means": MEANS, **changes}
    with pytest.raises(ValueError, match=message):
        CollaborationDisplay.from_streams(**arguments)


@pytest.mark.parametrize(
    ("times", "errors"),
    [
        ([], {"x": []}),
        ([0, 1], {"x": [1.0, 1.0]}),
        ([2, 1], {"x": [1.0, 1.0]}),
        ([1, 2], {"x": [1.0]}),
        ([1, 2], {}),
    ],
)
def test_curves_that_do_not_fit_raise(times, errors):
    with pytest.raises(ValueError):
        CollaborationDisplay(times, errors)


def test_missing_matplotlib_names_the_extra_for_collaboration():
    program = (
        "import sys\n"
        "sys.modules['matplotlib'] = None\n"
        "from skldp.plotting import ClassRecoveryDisplay, CollaborationDisplay\n"
        "curves = CollaborationDisplay([1], {'x': [1.0]})\n"
        "for display in (curves, ClassRecoveryDisplay([[True]])):\n"
        "    try:\n"
        "        display.plot()\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.count("skldp[plot]") == 2
