"""The link checker of the documentation finds what is dead, and nothing else."""

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "check_links.py"
dead_links = runpy.run_path(str(SCRIPT))["dead_links"]

PAGE = '<a href="{}">x</a><p id="here"></p><a href="https://elsewhere.org/gone#x">y</a>'


@pytest.mark.parametrize(
    ("link", "is_dead"),
    [
        ("#here", False),
        ("#there", True),
        ("other.html", False),
        ("other.html#here", False),
        ("other.html#there", True),
        ("none.html", True),
        ("sub/", False),
        ("empty/", True),
        ("picture%20one.png", False),
    ],
)
def test_internal_links(link, is_dead, tmp_path):
    for name in ("sub", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "picture one.png").write_bytes(b"")
    (tmp_path / "sub" / "index.html").write_text('<a href="../page.html#here">z</a>')
    (tmp_path / "other.html").write_text('<h1 id="here"></h1>')
    (tmp_path / "page.html").write_text(PAGE.format(link))
    dead, n_checked = dead_links(tmp_path)
    assert dead == ([f"page.html: {link}"] if is_dead else [])
    assert n_checked == 2
