"""The commands of the documentation print what the documentation says."""

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skldp import KRRTransformer
from skldp.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "command_line.rst"
PROMPT = "   $ python -m skldp "


def documented():
    """Return (command, printed lines) of every console block."""
    found = []
    for block in PAGE.read_text(encoding="utf-8").split(".. code-block:: console\n")[1:]:
        lines = []
        for line in block.splitlines():
            if line and not line.startswith("   "):
                break
            lines.append(line)
        text = "\n".join(lines).strip("\n")
        command, _, printed = text.partition("\n")
        assert command.startswith(PROMPT)
        found.append((command.removeprefix(PROMPT), [line[3:] for line in printed.splitlines()]))
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Ten thousand reports and their channel, as the page has them."""
    choices = ["bike", "bus", "car", "walk"]
    values = np.repeat(choices, [2000, 5000, 2500, 500])
    reports = KRRTransformer(2.0, categories=choices, random_state=0).fit_transform(values)
    frame = pd.DataFrame(np.asarray(reports), columns=["report"])
    frame.to_parquet(tmp_path / "reports.parquet")
    (tmp_path / "channel.json").write_text(json.dumps(reports.channel.to_dict()))
    monkeypatch.chdir(tmp_path)


def test_the_page_has_commands():
    assert {command.split()[0] for command, _ in documented()} == {"plan", "estimate"}


@pytest.mark.parametrize(("command", "printed"), documented())
def test_documented_commands_print_what_is_documented(command, printed, folder, capsys):
    assert main(shlex.split(command)) == 0
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == printed
