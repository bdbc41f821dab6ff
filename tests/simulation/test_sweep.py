"""Sweeps: the same numbers however they come about, and nothing computed twice."""

import json
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from sweep_functions import (
    Drawer,
    any_arguments,
    cohort_losses,
    draw,
    missing_values,
    multiplied,
    named_index,
    not_a_frame,
    numbered_columns,
    odd_objects,
)

from skldp.channels import KRRChannel, RapporChannel
from skldp.simulation import DirichletPrior, sweep

CELLS = [{"size": size} for size in range(6)]


def calls(log):
    return sorted(map(int, log.read_text().split())) if log.exists() else []


def test_rows_are_those_of_the_cells_in_their_order():
    frame = sweep(draw, CELLS, random_state=0)
    assert frame.columns.tolist() == ["size", "name", "value", "whole"]
    assert frame["size"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert frame["name"][2] == "cell 1" and frame["whole"].tolist()[:4] == [0, -1, 1, -1]
    assert frame["value"].nunique() == 12


@pytest.mark.parametrize(
    ("function", "cells"), [(draw, CELLS), (cohort_losses, [{"n_values": s} for s in (20, 200)])]
)
def test_processes_and_files_change_nothing(function, cells, tmp_path):
    alone = sweep(function, cells, random_state=3)
    assert_frame_equal(sweep(function, cells, random_state=3, n_jobs=2), alone, check_exact=True)
    for _ in range(2):  # computed and stored, then read
        stored = sweep(function, cells, random_state=3, cache=tmp_path)
        assert_frame_equal(stored, alone, check_exact=True)


def test_a_cell_does_not_depend_on_the_others():
    alone = sweep(draw, [{"size": 4}], random_state=0)
    among = sweep(draw, CELLS, random_state=0)
    chosen = among[among["size"] == 4].reset_index(drop=True)
    assert_frame_equal(chosen, alone, check_exact=True)


def test_another_seed_is_another_result():
    one, other = (sweep(draw, CELLS, random_state=seed) for seed in (0, 1))
    assert not (one["value"] == other["value"]).any()


def test_equal_cells_are_computed_once(tmp_path):
    log = tmp_path / "log"
    cell = {"size": 3, "log": str(log)}
    frame = sweep(draw, [cell, dict(cell)], random_state=0)
    assert calls(log) == [3]
    assert frame["value"].tolist()[:2] == frame["value"].tolist()[2:]


def test_finished_cells_are_not_computed_again(tmp_path):
    log = tmp_path / "log"
    cells = [{"size": size, "log": str(log)} for size in range(4)]
    first = sweep(draw, cells[:3], random_state=0, cache=tmp_path / "cells")
    assert calls(log) == [0, 1, 2]
    both = sweep(draw, cells, random_state=0, cache=tmp_path / "cells")
    assert calls(log) == [0, 1, 2, 3]
    assert_frame_equal(both[:6], first, check_exact=True)


@pytest.mark.parametrize(
    "change", [{"random_state": 1}, {"size": 8}, {"size": 7.0}, {"delay": 1e-9}]
)
def test_a_changed_argument_is_another_cell(change, tmp_path):
    log = tmp_path / "log"
    arguments = {"size": 7, "log": str(log), "random_state": 0}

    def run(arguments):
        seed = arguments.pop("random_state")
        return sweep(draw, [arguments], random_state=seed, cache=tmp_path / "cells")

    before = run(dict(arguments))
    after = run({**arguments, **change})
    assert len(log.read_text().split()) == 2
    assert before["value"].tolist() != after["value"].tolist()


def test_a_killed_sweep_goes_on(tmp_path):
    log, cache = tmp_path / "log", tmp_path / "cells"
    cells = [{"size": size, "log": str(log), "delay": 0.1} for size in range(40)]
    program = f"""
        import json, sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from sweep_functions import draw
        from skldp.simulation import sweep
        sweep(draw, json.loads({json.dumps(cells)!r}), random_state=0, cache={str(cache)!r})
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)])
    deadline = time.monotonic() + 30
    while len(list(cache.glob("*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    n_stored = len(list(cache.glob("*.json")))
    assert 3 <= n_stored < 40
    # (A call that was noted but not stored was under way; it is made again.)
    n_called = len(calls(log))
    assert n_stored <= n_called <= n_stored + 1
    resumed = sweep(draw, cells, random_state=0, cache=cache, n_jobs=2)
    assert len(calls(log)) == n_called + 40 - n_stored
    assert len(list(cache.glob("*.json"))) == 40
    assert resumed["value"].nunique() == 80
    untouched = sweep(draw, cells[:2], random_state=0)
    assert_frame_equal(resumed[:4], untouched, check_exact=True)


def damage_truncate(path):
    path.write_bytes(path.read_bytes()[:-30])


def damage_number(path):
    record = json.loads(path.read_text())
    record["columns"] = record["columns"].replace("cell", "sell")
    path.write_text(json.dumps(record))


def damage_other_cell(path):
    record = json.loads(path.read_text())
    record["cell"]["seed"] = 99
    path.write_text(json.dumps(record))


def damage_bytes(path):
    path.write_bytes(b"\xff\x00" * 20)


def damage_kind(path):
    path.write_text("[1, 2]")


@pytest.mark.parametrize(
    "damage", [damage_truncate, damage_number, damage_other_cell, damage_bytes, damage_kind]
)
def test_a_damaged_file_is_noticed_and_replaced(damage, tmp_path):
    log, cache = tmp_path / "log", tmp_path / "cells"
    cells = [{"size": size, "log": str(log)} for size in range(2)]
    first = sweep(draw, cells, random_state=0, cache=cache)
    damage(sorted(cache.iterdir())[0])
    with pytest.warns(UserWarning, match="damaged"):
        second = sweep(draw, cells, random_state=0, cache=cache)
    assert len(calls(log)) == 3
    assert_frame_equal(second, first, check_exact=True)
    assert_frame_equal(sweep(draw, cells, random_state=0, cache=cache), first)
    assert len(calls(log)) == 3


def test_only_whole_files_are_left(tmp_path):
    sweep(draw, CELLS, random_state=0, cache=tmp_path / "new" / "cells")
    names = [path.suffix for path in (tmp_path / "new" / "cells").iterdir()]
    assert names == [".json"] * len(CELLS)


def test_threads_may_write_the_same_cells(tmp_path):
    expected = sweep(draw, CELLS, random_state=0)
    for attempt in range(10):
        errors, start = [], threading.Barrier(4)

        def run(cache=tmp_path / str(attempt), errors=errors, start=start):
            start.wait()
            try:
                assert_frame_equal(sweep(draw, CELLS, random_state=0, cache=cache), expected)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert len(list((tmp_path / str(attempt)).iterdir())) == len(CELLS)


def seed_of(**arguments):
    return sweep(any_arguments, [arguments], random_state=0)["seed"][0]


def test_equal_arguments_are_recognised():
    array = np.arange(6.0).reshape(2, 3)
    assert seed_of(a=3) == seed_of(a=np.int64(3))
    assert seed_of(a=(1, "x", None)) == seed_of(a=[1, "x", None])
    assert seed_of(a=array) == seed_of(a=array.copy(order="F"))
    assert seed_of(a=KRRChannel(1.0, 4)) == seed_of(a=KRRChannel(1.0, 4))
    assert seed_of(a=DirichletPrior(3)) == seed_of(a=DirichletPrior(3, 1.0))
    assert seed_of(a={"b": 1, "c": 2}) == seed_of(a={"c": 2, "b": 1})
    assert seed_of(a=1, b=2) == seed_of(b=2, a=1)


def test_different_arguments_are_told_apart():
    array = np.arange(6.0)
    arguments = [
        *(3, 3.0, "3", True, 1, None, "None", [3], [[3]], ["3"], {"a": 3}, {}, []),
        *(array, array.reshape(2, 3), array.astype(np.float32), array.astype(int), [0.0, 1.0]),
        *(KRRChannel(1.0, 4), RapporChannel(1.0, 4), KRRChannel(1.5, 4)),
        *(DirichletPrior(3), DirichletPrior(3, 2.0), DirichletPrior(4)),
        *(draw, cohort_losses, DirichletPrior),
    ]
    seeds = [seed_of(a=argument) for argument in arguments]
    assert len(set(seeds)) == len(seeds)
    assert len({seed_of(a=1), seed_of(b=1), seed_of(a=1, b=None)}) == 3


def test_only_arguments_that_fit_into_a_table_become_columns():
    cell = {
        "number": 2,
        "text": "x",
        "flag": True,
        "channel": KRRChannel(1.0, 4),
        "prior": DirichletPrior(3),
        "array": np.zeros(3),
        "listed": [1, 2],
        "nothing": None,
    }
    frame = sweep(any_arguments, [cell], random_state=0)
    assert frame.columns.tolist() == ["number", "text", "flag", "channel", "prior", "seed"]
    assert frame["channel"][0] == repr(KRRChannel(1.0, 4))


def test_gaps_survive_the_file(tmp_path):
    for _ in range(2):
        frame = sweep(missing_values, [{}], random_state=0, cache=tmp_path)
        assert frame["text"].isna().tolist() == [False, True]
        assert np.isnan(frame["number"][0]) and frame["number"][1] == np.inf


@pytest.mark.parametrize(
    ("function", "cells", "seed", "error", "message"),
    [
        (draw, [], 0, ValueError, "empty"),
        (draw, CELLS, -1, ValueError, "random_state"),
        (draw, CELLS, None, TypeError, "random_state"),
        (draw, CELLS, 0.5, TypeError, "random_state"),
        (lambda random_state: None, [{}], 0, TypeError, "top level of a module"),
        (draw, [{"size": {1, 2}}], 0, TypeError, "type set"),
        (draw, [{"size": {1: 2}}], 0, TypeError, "strings"),
        (draw, [{"size": lambda: 0}], 0, TypeError, "top level of a module"),
        (any_arguments, [{"seed": 1}], 0, ValueError, "seed"),
        (not_a_frame, [{}], 0, TypeError, "DataFrame"),
        (odd_objects, [{}], 0, TypeError, "DataFrame of numbers and strings"),
        (named_index, [{}], 0, ValueError, "reset_index"),
        (numbered_columns, [{}], 0, TypeError, "names of columns"),
        (draw, {"size": 1}, 0, TypeError, "list of dictionaries"),
        (draw, [1], 0, TypeError, "list of dictionaries"),
        (draw, [{"size": 1, "random_state": 2}], 0, ValueError, "argument of a cell"),
        # What is known by a name that it shares would share its cells too.
        (multiplied(2), CELLS, 0, TypeError, "top level of a module"),
        (Drawer(2).draw, CELLS, 0, TypeError, "top level of a module"),
        (any_arguments, [{"a": Drawer(2).draw}], 0, TypeError, "top level of a module"),
        (any_arguments, [{"a": multiplied(2)}], 0, TypeError, "top level of a module"),
        # The bytes, and the mask, of these are those of a list, a number and an array.
        (any_arguments, [{"a": b"ab"}], 0, TypeError, "type bytes"),
        (any_arguments, [{"a": np.datetime64(1, "ns")}], 0, TypeError, "type datetime64"),
        (any_arguments, [{"a": np.ma.array([1, 2], mask=[0, 1])}], 0, TypeError, "MaskedArray"),
    ],
)
def test_what_cannot_be_swept_is_refused(function, cells, seed, error, message):
    with pytest.raises(error, match=message):
        sweep(function, cells, random_state=seed)


def test_an_error_of_the_function_is_its_own_and_keeps_what_is_finished(tmp_path):
    cells = [{"size": 1}, {"size": 2, "delay": -1.0}]
    with pytest.raises(ValueError, match="sleep"):
        sweep(draw, cells, random_state=0, cache=tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 1


def test_a_progress_bar_counts_cells(tmp_path, capsys):
    pytest.importorskip("tqdm")
    sweep(draw, CELLS[:4], random_state=0, cache=tmp_path, progress=False)
    assert capsys.readouterr().err == ""
    sweep(draw, CELLS, random_state=0, cache=tmp_path, progress=True, description="figure")
    shown = capsys.readouterr().err
    assert "figure" in shown and "4/6" in shown and "6/6" in shown
    sweep(draw, CELLS, random_state=0)  # not a terminal
    assert capsys.readouterr().err == ""


def test_without_tqdm_there_is_no_bar(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    frame = sweep(draw, CELLS, random_state=0, progress=True)
    assert isinstance(frame, pd.DataFrame) and capsys.readouterr().err == ""


def test_without_pandas_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"skldp\[simulation\]"):
        sweep(draw, CELLS, random_state=0)
