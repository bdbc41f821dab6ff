"""What the README and the pages of the documentation say runs, and says what is true."""

import doctest
import importlib
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").glob("*.rst"))
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def fenced(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def test_readme_example_runs(capsys):
    (example,) = fenced((ROOT / "README.md").read_text(encoding="utf-8"), "python")
    assert len([line for line in example.splitlines() if line]) <= 12
    names = {}
    exec(compile(example, "README.md", "exec"), names)
    estimator = names["survey"]["estimator"]
    frequencies = dict(zip(estimator.categories_, estimator.frequencies_, strict=True))
    assert frequencies.keys() == {"bike", "bus", "car", "walk"}
    # The default stream cannot be seeded. At epsilon 1, four categories and 10,000 users the
    # standard error is below .016; .1 is 6 of them: a false alarm has probability < 2e-9.
    assert abs(frequencies["bus"] - 0.5) < 0.1
    assert abs(frequencies["walk"]) < 0.1
    assert "bus" in capsys.readouterr().out


def test_readme_has_one_command_for_the_quickstart_and_one_for_the_tests():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if line.startswith("python3 -m venv .venv && ")]
    assert [line.rsplit(" ", 1)[-1] for line in commands] == ["examples/quickstart.py", "pytest"]


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_to_files_are_not_dead(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_examples_of_a_page_run(page):
    result = doctest.testfile(
        str(page), module_relative=False, optionflags=OPTIONS, encoding="utf-8"
    )
    assert result.failed == 0


def python_blocks(page):
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text, re.MULTILINE)
    return [textwrap.dedent(block) for block in blocks]


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_python_blocks_of_a_page_run(page, capsys):
    for block in python_blocks(page):
        exec(compile(block, str(page), "exec"), {})


def test_the_landing_page_has_a_result_in_ten_lines(capsys):
    (block,) = python_blocks(ROOT / "docs" / "index.rst")
    assert len([line for line in block.splitlines() if line]) <= 10
    names = {}
    exec(compile(block, "index.rst", "exec"), names)
    # A standard error below .016, as in the README's example.
    assert abs(names["server"].frequencies_[1] - 0.5) < 0.1
    assert "bus" in capsys.readouterr().out


PUBLIC_MODULES = [
    "skldp.channels",
    "skldp.collaborative",
    "skldp.datasets",
    "skldp.decoding",
    "skldp.exceptions",
    "skldp.frequency",
    "skldp.mean",
    "skldp.mechanisms",
    "skldp.metrics",
    "skldp.plotting",
    "skldp.random",
    "skldp.reproduction",
    "skldp.simulation",
    "skldp.utils.estimator_checks",
]


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_reference_lists_every_public_name(module):
    reference = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    _, section = reference.split(f".. automodule:: {module}\n")
    section = section.split(".. automodule::")[0]
    listed = set(re.findall(r"^(?:   |\.\. autodata:: )(\w+)$", section, flags=re.MULTILINE))
    assert listed == set(importlib.import_module(module).__all__)
