"""What becomes of a command whose output nobody takes, and of one that is interrupted."""

import os
import subprocess
import sys

import pytest

from skldp.cli import main

LIST = [sys.executable, "-m", "skldp", "reproduce", "--list"]
PLAN = ["plan", "--epsilon", "1", "--users", "10", "--categories", "4"]


def test_a_reader_that_leaves_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as closed:
        ended = subprocess.run(LIST, stdout=closed, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_one_line():
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(LIST, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("skldp: error:") and ended.stderr.count("\n") == 1


def test_an_interruption_is_one_line(monkeypatch, capsys):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("skldp.cli._plan.compare_mechanisms", interrupted)
    assert main(PLAN) == 130
    assert capsys.readouterr() == ("", "skldp: interrupted\n")
