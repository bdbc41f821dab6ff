"""What every reproduced figure has to be, and that a wrong number is noticed."""

import json
import math
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from skldp.reproduction import (
    FIGURES,
    Comparison,
    Figure,
    Options,
    compare_values,
    comparison_table,
    read_reference,
    reproduce,
)
from skldp.reproduction._drawing import new_figure
from skldp.reproduction._kairouz_decoders import mean_losses

REFERENCES = sorted(path.name for path in (files("skldp.reproduction") / "reference").iterdir())


class TwoNumbers(Figure):
    """A figure of the numbers 1 and 2, printed as 1.1 and 2."""

    name = "two-numbers"
    title = "Two numbers"

    def compute(self, options):
        return pd.DataFrame({"value": [1.0, 2.0], "reference": [1.1, 2.0]})

    def compare(self, frame):
        return [
            compare_values("within", frame["value"], frame["reference"], 0.2, inferred="a guess"),
            compare_values("beyond", frame["value"], frame["reference"], 0.05, is_relative=True),
        ]

    def draw(self, frame):
        figure = new_figure()
        figure.subplots().plot(frame["value"])
        return figure


def test_names_and_titles_can_be_printed_anywhere():
    assert list(FIGURES)[:4] == [
        "distribution-1",
        "distribution-2",
        "distribution-3",
        "distribution-3-large",
    ]
    for name, figure in FIGURES.items():
        assert name == figure.name
        assert (name + figure.title).isascii()


def test_the_papers_files_state_their_source():
    assert REFERENCES
    for name in REFERENCES:
        content = read_reference(name.removesuffix(".json"))
        assert content["source"] and content["note"]


def test_all_printed_numbers_are_there():
    cells = read_reference("kairouz_2016_figures_1_and_2")
    assert np.array(list(cells["panels"].values())).shape == (6, 9, 9)
    curves = read_reference("kairouz_2016_figure_3")["curves"]
    assert [len(points) for points in curves.values()] == [17] * 6


def test_deviations_are_counted_by_hand():
    found = compare_values("any", [1.0, 2.0, 5.0], [1.5, 2.0, np.nan], 0.5)
    assert found == Comparison("any", 2, 0.5, 0.25, 0.5)
    assert found.holds
    relative = compare_values("any", [1.0, 3.0], [2.0, 2.0], 0.4, is_relative=True)
    assert (relative.largest, relative.mean) == (0.5, 0.5)
    assert not relative.holds


def test_what_was_not_compared_does_not_hold():
    assert not compare_values("any", [], [], 1.0).holds
    assert not compare_values("any", [1.0], [np.nan], 1.0).holds


def test_a_missing_number_does_not_hold():
    found = compare_values("any", [1.0, np.nan], [1.0, 1.0], 100.0)
    assert math.isinf(found.largest) and not found.holds


@pytest.mark.parametrize("is_relative", [False, True])
@pytest.mark.parametrize("printed", [math.inf, -math.inf, 0.0, -1.0])
def test_an_odd_printed_number_does_not_hold(printed, is_relative):
    found = compare_values("any", [1.0, 1.0], [1.0, printed], 0.5, is_relative=is_relative)
    assert found.n_compared == 2 and not found.holds
    assert not compare_values("any", [math.inf], [math.inf], 0.5, is_relative=is_relative).holds


def test_nothing_to_report_is_not_reported():
    nothing = compare_values("any", [], [], None)
    assert not nothing.holds and "DOES NOT HOLD" in comparison_table([nothing])
    assert comparison_table([]) == "no printed numbers to compare with"


def test_without_an_allowed_deviation_it_is_only_reported():
    found = compare_values("any", [1.0], [9.0], None)
    assert found.holds and found.largest == 8.0
    assert "reported" in comparison_table([found])


def test_numbers_of_another_shape_are_refused():
    with pytest.raises(ValueError, match="computed numbers"):
        compare_values("any", [1.0, 2.0], [[1.0, 2.0]], 1.0)


def test_everything_is_written(tmp_path):
    outcome = reproduce(TwoNumbers(), Options(), tmp_path / "new")
    assert [path.name for path in outcome.files] == [
        "two-numbers.csv",
        "two-numbers.png",
        "two-numbers-comparison.csv",
    ]
    assert not outcome.holds
    pd.testing.assert_frame_equal(pd.read_csv(outcome.files[0]), outcome.frame)
    assert outcome.files[1].read_bytes().startswith(b"\x89PNG")
    written = pd.read_csv(outcome.files[2])
    assert written["holds"].tolist() == [True, False]
    assert written["largest"].tolist() == pytest.approx([0.1, 0.1 / 1.1])
    table = comparison_table(outcome.comparisons)
    assert table.isascii() and "[1] a guess" in table and "DOES NOT HOLD" in table


def test_options_reach_the_sweep(tmp_path):
    cell = {
        "mechanism": "k-RR",
        "distribution": "point mass",
        "n_users": 100,
        "n_categories": 4,
        "exp_epsilon": 2,
        "n_runs": 10,
    }
    options = Options(random_state=5, cache=tmp_path)
    first = options.sweep(mean_losses, [cell])
    assert len(list(tmp_path.iterdir())) == 1
    other = replace(options, random_state=6).sweep(mean_losses, [cell])
    assert len(list(tmp_path.iterdir())) == 2
    assert not first.equals(other)


def test_without_matplotlib_it_says_so_before_the_work(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    monkeypatch.setattr(TwoNumbers, "compute", lambda self, options: pytest.fail("computed"))
    with pytest.raises(ImportError, match=r"skldp\[plot\]"):
        reproduce(TwoNumbers(), Options(), tmp_path)


def test_without_pandas_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"skldp\[simulation\]"):
        reproduce(TwoNumbers(), Options(), tmp_path)


def test_where_nothing_can_be_written_it_says_so_before_the_work(monkeypatch, tmp_path):
    monkeypatch.setattr(TwoNumbers, "compute", lambda self, options: pytest.fail("computed"))
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        reproduce(TwoNumbers(), Options(), str(tmp_path / "file"))


@pytest.mark.parametrize("name", REFERENCES)
def test_references_are_plain_json(name):
    text = (files("skldp.reproduction") / "reference" / name).read_text(encoding="ascii")
    assert isinstance(json.loads(text), dict)
