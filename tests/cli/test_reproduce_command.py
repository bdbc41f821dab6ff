"""`python -m skldp reproduce`: files, exit status, resuming, and errors of one line."""

import subprocess
import sys

import pandas as pd
import pytest

from skldp.cli import main
from skldp.reproduction import FIGURES, Figure, compare_values
from skldp.reproduction._drawing import new_figure

CALLS = []


def one_number(value, random_state):
    CALLS.append(value)
    return pd.DataFrame({"seed": [str(random_state)], "found": [value + 0.25]})


class Fake(Figure):
    name = "fake"
    title = "A figure of two numbers"
    allowed = 0.5

    def compute(self, options):
        cells = [{"value": 1.0}] if options.quick else [{"value": 1.0}, {"value": 2.0}]
        frame = options.sweep(one_number, cells)
        return frame.assign(reference=frame["value"])

    def draw(self, frame):
        figure = new_figure()
        figure.subplots().plot(frame["found"])
        return figure

    def compare(self, frame):
        return [compare_values("numbers", frame["found"], frame["reference"], self.allowed)]


class WrongFake(Fake):
    name = "wrong-fake"
    allowed = 0.2


@pytest.fixture(autouse=True)
def fakes(monkeypatch):
    for figure in (Fake(), WrongFake()):
        monkeypatch.setitem(FIGURES, figure.name, figure)
    CALLS.clear()


def run(tmp_path, *arguments):
    return main(["reproduce", *arguments, "--jobs", "1", "--output", str(tmp_path)])


def test_files_are_written_and_the_comparison_is_shown(tmp_path, capsys):
    assert run(tmp_path / "deep" / "results", "fake") == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "A figure of two numbers" in shown.out and "holds" in shown.out
    names = {path.name for path in (tmp_path / "deep" / "results").iterdir()}
    assert names == {"fake.csv", "fake.png", "fake-comparison.csv", "cells"}
    found = pd.read_csv(tmp_path / "deep" / "results" / "fake.csv")["found"]
    assert found.tolist() == [1.25, 2.25]


def test_a_comparison_that_does_not_hold_is_status_one(tmp_path, capsys):
    assert run(tmp_path, "wrong-fake", "fake") == 1
    out = capsys.readouterr().out
    assert "DOES NOT HOLD" in out and out.rstrip().endswith("does not hold: wrong-fake")
    assert (tmp_path / "fake.csv").exists()  # the others are computed all the same


def test_a_second_run_computes_nothing_again(tmp_path):
    run(tmp_path, "fake", "--quick")
    assert CALLS == [1.0]
    run(tmp_path, "fake")
    assert CALLS == [1.0, 2.0]
    run(tmp_path, "fake", "fake")
    assert CALLS == [1.0, 2.0]


def test_another_seed_is_another_run(tmp_path):
    seeds = set()
    for arguments in ([], ["--seed", "0"], ["--seed", "1"]):
        run(tmp_path, "fake", "--quick", *arguments)
        seeds.add(pd.read_csv(tmp_path / "fake.csv", dtype=str)["seed"][0])
    assert len(seeds) == 2


def test_an_interruption_is_no_traceback(tmp_path, monkeypatch, capsys):
    def interrupted(self, options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Fake, "compute", interrupted)
    assert run(tmp_path, "fake") == 130
    assert "goes on" in capsys.readouterr().out


def test_the_figures_are_listed(tmp_path, capsys):
    assert main(["reproduce", "--list"]) == 0
    listed = capsys.readouterr().out
    assert [line.split()[0] for line in listed.splitlines()] == list(FIGURES)
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert all(name in shown and figure.title in shown for name, figure in FIGURES.items())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure-9"], "unknown figure 'figure-9'; known are distribution-1"),
        (["fake", "--jobs", "0"], "--jobs must not be 0"),
        (["fake", "--seed", "-3"], "--seed must not be negative"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, message, tmp_path, capsys):
    assert main(["reproduce", "--output", str(tmp_path), *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err and shown.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file", "fake") == 2
    shown = capsys.readouterr().err
    assert shown.startswith("skldp: error:") and shown.count("\n") == 1


def test_a_missing_library_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert run(tmp_path, "fake") == 2
    shown = capsys.readouterr().err
    assert "skldp[plot]" in shown and shown.count("\n") == 1


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "skldp", "reproduce"]
    listed = subprocess.run([*command, "--list"], capture_output=True, text=True)
    assert listed.returncode == 0 and "distribution-3-large" in listed.stdout
    wrong = subprocess.run([*command, "nothing"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert wrong.stdout == "" and wrong.stderr.count("\n") == 1
    assert "Traceback" not in wrong.stderr
