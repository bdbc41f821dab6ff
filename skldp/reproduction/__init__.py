"""The figures of the papers, computed again and compared with the printed numbers.

``python -m skldp reproduce`` is the way to run them; `reproduce` does it for one. A figure or
table is a `Figure`, a small object without state:

- ``name``: what the command line calls it, and its files; the paper's topic first, as in
  ``distribution-1``. ``title``: what it shows.
- ``compute(options)`` returns one tidy DataFrame of everything that is drawn or compared, printed
  numbers in its column ``reference``. Monte Carlo goes through ``options.sweep(function, cells)``,
  which takes care of processes, progress, seeds, and of resuming after an interruption: `function`
  is a function of the module that takes plain numbers and strings and returns a small frame, and
  has a ``random_state`` argument. ``options.quick`` asks for a test of seconds.
- ``draw(frame)`` returns a matplotlib figure in the original's layout (`new_figure`).
- ``compare(frame)`` returns a `Comparison` per panel or curve (`compare_values`): the largest and
  mean deviation, what is allowed, and in words what the paper does not say and is inferred.

To add a paper: write a module here with its figures in a tuple ``FIGURES``, put the module into
the tuple below, and printed numbers with their "source" and "note" into ``reference/*.json``,
which `read_reference` reads. Everything else, the command line and its tests included, follows.
Names, titles and notes are printed to terminals: plain ASCII.
"""

from skldp.reproduction import (
    _collaborative,
    _heterogeneous,
    _kairouz_decoders,
    _kairouz_hashing,
)
from skldp.reproduction._figure import (
    Comparison,
    Figure,
    Options,
    compare_values,
    read_reference,
)
from skldp.reproduction._output import Outcome, comparison_table, reproduce

__all__ = [
    "FIGURES",
    "Comparison",
    "Figure",
    "Options",
    "Outcome",
    "compare_values",
    "comparison_table",
    "read_reference",
    "reproduce",
]

_MODULES = (_kairouz_decoders, _kairouz_hashing, _heterogeneous, _collaborative)

FIGURES: dict[str, Figure] = {
    figure.name: figure for module in _MODULES for figure in module.FIGURES
}
"""All figures by name, in the order in which they are reproduced."""
