"""Shared by all tests: the folder of helper modules, and matplotlib without a screen."""

import sys
from pathlib import Path

import matplotlib

sys.path.insert(0, str(Path(__file__).parent))
matplotlib.use("Agg")
