"""Imports flow downward: every module of skldp imports only from the floors below its own.

The table is the one of the documentation's chapter "Design". The source is parsed, never
imported, so an import inside a function or under ``TYPE_CHECKING`` counts as well.
"""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(importlib.util.find_spec("skldp").origin).parent

FLOORS = {
    "exceptions": 0,
    "_validation": 0,
    "random": 0,
    "_sklearn_compat": 0,
    "channels": 1,
    "decoding": 1,
    "mechanisms": 2,
    "frequency": 2,
    "mean": 2,
    "collaborative": 2,
    "metrics": 3,
    "datasets": 3,
    "simulation": 3,
    "audit": 3,
    "plotting": 3,
    "distributed": 3,
    "utils": 3,
    "reproduction": 4,
    "__init__": 4,
    "cli": 5,
    "__main__": 6,
}

# One floor does not import sideways, but for these (importer, imported). No cycle among them.
SIDEWAYS = {
    ("_validation", "exceptions"),
    ("_sklearn_compat", "exceptions"),
    ("random", "exceptions"),
    ("random", "_validation"),
    ("channels", "decoding"),
    ("plotting", "metrics"),
    ("simulation", "metrics"),
}

MAY_USE_PRIVATE_SKLEARN = {"_sklearn_compat"}

# Importing skldp on a client's device must not load what only a server or a plot needs.
IMPORTED_ON_FIRST_USE = ("cvxpy", "matplotlib", "pandas", "polars", "dask", "pyarrow")


def unit_of(module):
    """Return the table's entry for a dotted name: 'skldp.random._words' -> 'random'."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports_of(tree):
    """Yield (line, module, name) for every import statement; name is None for ``import m``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, None
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.lineno, "." * node.level + (node.module or ""), alias.name


def is_private(dotted):
    """Say whether any component starts with an underscore; dunder names are public."""
    return any(part.startswith("_") and not part.startswith("__") for part in dotted.split("."))


def floor_violations(module, source):
    """List what is wrong with the imports of one module, one readable line each."""
    own = unit_of(module)
    if own not in FLOORS:
        return [f"{module}: '{own}' has no floor; add it to the table"]
    problems = []
    for line, imported, name in imports_of(ast.parse(source)):
        place = f"{module}:{line}"
        if imported.startswith("."):
            problems.append(f"{place}: relative import of '{imported}'; imports are absolute")
            continue
        if imported.split(".")[0] != "skldp":
            continue
        # `from skldp import random` means the subpackage, `from skldp import x` the top floor.
        target = name if imported == "skldp" and name in FLOORS else unit_of(imported)
        if target not in FLOORS:
            problems.append(f"{place}: '{target}' has no floor; add it to the table")
        elif target != own and (own, target) not in SIDEWAYS and FLOORS[target] >= FLOORS[own]:
            problems.append(
                f"{place}: floor {FLOORS[own]} ({own}) imports floor {FLOORS[target]} ({target})"
            )
    return problems


def private_sklearn_uses(module, source):
    """List the private scikit-learn names that one module imports or reaches by attribute."""
    if unit_of(module) in MAY_USE_PRIVATE_SKLEARN:
        return []
    tree = ast.parse(source)
    problems, sklearn_names = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [
                (alias.name, alias.asname or alias.name.split(".")[0]) for alias in node.names
            ]
        elif isinstance(node, ast.ImportFrom):
            found = [
                (f"{node.module}.{alias.name}", alias.asname or alias.name) for alias in node.names
            ]
        else:
            continue
        for dotted, bound in found:
            if dotted.split(".")[0] == "sklearn":
                sklearn_names.add(bound)
                if is_private(dotted):
                    problems.append(
                        f"{module}:{node.lineno}: private scikit-learn name '{dotted}'"
                    )
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not is_private(node.attr):
            continue
        root = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id in sklearn_names:
            problems.append(f"{module}:{node.lineno}: private scikit-learn name '{node.attr}'")
    return problems


def source_files():
    """Return (dotted name, path) of every module of the package."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found.append((".".join(("skldp", *parts)), path))
    return found


SOURCES = source_files()


def test_the_walk_sees_the_package():
    names = {name for name, _ in SOURCES}
    assert {"skldp.__init__", "skldp.exceptions", "skldp.random.__init__"} <= names


@pytest.mark.parametrize(("module", "path"), SOURCES, ids=[name for name, _ in SOURCES])
def test_module_imports_only_from_lower_floors(module, path):
    assert floor_violations(module, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(("module", "path"), SOURCES, ids=[name for name, _ in SOURCES])
def test_module_uses_no_private_sklearn_name(module, path):
    assert private_sklearn_uses(module, path.read_text(encoding="utf-8")) == []


def test_sideways_exceptions_stay_on_one_floor():
    assert all(FLOORS[importer] == FLOORS[imported] for importer, imported in SIDEWAYS)
    assert not SIDEWAYS & {(imported, importer) for importer, imported in SIDEWAYS}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("skldp.random._words", "from skldp.channels import KRRChannel"),
        ("skldp.random._words", "import skldp.frequency._estimator"),
        ("skldp.random._words", "def late():\n    from skldp import decoding"),
        ("skldp.exceptions", "from skldp._validation import check_epsilon"),
        ("skldp.decoding._simplex", "from skldp.channels._base import Channel"),
        ("skldp.mechanisms._krr", "from skldp.frequency import FrequencyEstimator"),
        ("skldp.mechanisms._krr", "from skldp.metrics import l1_loss"),
        ("skldp.metrics._losses", "from skldp.plotting import FrequencyDisplay"),
        ("skldp.mean._base", "from skldp.frequency import FrequencyEstimator"),
        ("skldp.mean._adpm", "from skldp.plotting import SaturationDisplay"),
        ("skldp.metrics._losses", "from skldp import __version__"),
        ("skldp.channels._krr", "from ._base import Channel"),
        ("skldp.channels._krr", "import skldp.basement"),
        ("skldp.basement", "import numpy"),
        (
            "skldp.channels._krr",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import skldp.mechanisms",
        ),
    ],
)
def test_walker_reports_a_planted_violation(module, source):
    assert len(floor_violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("skldp.random._bernoulli", "from skldp.random._words import WordStream"),
        ("skldp.random._random_state", "from skldp._validation import check_epsilon"),
        ("skldp.channels._krr", "from skldp.decoding import krr_maximum_likelihood"),
        ("skldp.frequency._estimator", "from skldp import decoding\nfrom skldp import channels"),
        ("skldp.plotting._frequency", "import numpy as np\nfrom sklearn.pipeline import Pipeline"),
        ("skldp.__init__", "from skldp.plotting import FrequencyDisplay"),
    ],
)
def test_walker_accepts_downward_imports(module, source):
    assert floor_violations(module, source) == []


@pytest.mark.parametrize(
    "source",
    [
        "from sklearn.utils._tags import Tags",
        "from sklearn.utils import _safe_indexing",
        "import sklearn.utils._set_output",
        "import sklearn.utils\nsklearn.utils._safe_indexing(1, 2)",
        "from sklearn import utils as u\nu._safe_indexing(1, 2)",
    ],
)
def test_walker_reports_a_planted_private_name(source):
    assert len(private_sklearn_uses("skldp.frequency._estimator", source)) == 1
    assert private_sklearn_uses("skldp._sklearn_compat", source) == []


def test_walker_accepts_public_sklearn_names():
    source = (
        "import sklearn\nfrom sklearn.base import BaseEstimator\nsklearn.__version__\n"
        "class A(BaseEstimator):\n    def f(self):\n        return self._private\n"
    )
    assert private_sklearn_uses("skldp.frequency._estimator", source) == []


def import_without(names, modules):
    """Import modules in a new interpreter in which the named libraries cannot be imported.

    Looking into ``sys.modules`` would not do: scikit-learn itself imports pandas where it is
    installed. A None entry makes an import fail as it does where it is not.
    """
    program = (
        "import sys, importlib\n"
        f"sys.modules.update(dict.fromkeys({names!r}))\n"
        f"for module in {modules!r}: importlib.import_module(module)\n"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_importing_skldp_needs_no_heavy_library():
    modules = [
        "skldp",
        "skldp.mean",
        "skldp.metrics",
        "skldp.datasets",
        "skldp.plotting",
        "skldp.simulation",
        "skldp.reproduction",
        "skldp.cli",
        "skldp.utils",
    ]
    run = import_without(IMPORTED_ON_FIRST_USE, modules)
    assert run.returncode == 0, run.stderr


def test_a_library_that_is_imported_at_once_is_noticed():
    run = import_without(["scipy"], ["skldp"])
    assert run.returncode != 0
    assert "scipy" in run.stderr
