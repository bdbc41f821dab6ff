"""Computing a figure and writing what comes of it: numbers, picture, comparison."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from skldp.reproduction._drawing import new_figure
from skldp.reproduction._figure import Comparison, Figure, Options
from skldp.simulation._frames import import_pandas

__all__ = ["Outcome", "comparison_table", "reproduce"]

_RESOLUTION = 150  # dots per inch


@dataclass(frozen=True)
class Outcome:
    """What a reproduced figure left behind.

    Attributes
    ----------
    frame : pandas.DataFrame
        The computed numbers.
    comparisons : tuple of Comparison
        How they compare.
    files : tuple of Path
        What was written.
    """

    frame: Any
    comparisons: tuple[Comparison, ...]
    files: tuple[Path, ...]

    @property
    def holds(self) -> bool:
        """Whether every comparison holds."""
        return all(comparison.holds for comparison in self.comparisons)


def reproduce(figure: Figure, options: Options, output: str | os.PathLike[str]) -> Outcome:
    """Compute a figure, and write ``name.csv``, ``name.png`` and ``name-comparison.csv``.

    Parameters
    ----------
    figure : Figure
        What to compute.
    options : Options
        How.
    output : path-like
        Directory of the files, made if it does not exist.

    Returns
    -------
    Outcome
        Numbers, comparisons and files. Without printed numbers there is no comparison file.

    Raises
    ------
    ImportError
        If pandas or matplotlib is not installed.
    OSError
        If the files cannot be written.
    """
    # What is missing, or cannot be written, is said before the work.
    pd = import_pandas("reproduce")
    new_figure()
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    frame = figure.compute(options)
    comparisons = tuple(figure.compare(frame))
    written = [output / f"{figure.name}.csv", output / f"{figure.name}.png"]
    frame.to_csv(written[0], index=False)
    figure.draw(frame).savefig(written[1], dpi=_RESOLUTION)
    if comparisons:
        written.append(output / f"{figure.name}-comparison.csv")
        rows = [{**asdict(one), "holds": one.holds} for one in comparisons]
        pd.DataFrame(rows).to_csv(written[2], index=False)
    return Outcome(frame, comparisons, tuple(written))


def comparison_table(comparisons: Sequence[Comparison]) -> str:
    """Return comparisons as text: a line for each, and what is inferred below."""
    if not comparisons:
        return "no printed numbers to compare with"
    pd = import_pandas("comparison_table")
    notes = list(dict.fromkeys(one.inferred for one in comparisons if one.inferred))
    rows = []
    for one in comparisons:
        shown = "{:.1%}" if one.is_relative else "{:.4f}"
        mark = f" [{notes.index(one.inferred) + 1}]" if one.inferred else ""
        rows.append(
            {
                "panel": one.panel + mark,
                "numbers": one.n_compared,
                "largest": shown.format(one.largest),
                "mean": shown.format(one.mean),
                "allowed": "-" if one.allowed is None else shown.format(one.allowed),
                "": "holds" if one.holds else "DOES NOT HOLD",
            }
        )
        if one.allowed is None and one.holds:
            rows[-1][""] = "reported"
    table = pd.DataFrame(rows)
    width = table["panel"].str.len().max()
    table["panel"] = table["panel"].str.ljust(width)
    lines = [table.to_string(index=False)]
    lines += [f"[{number}] {note}" for number, note in enumerate(notes, start=1)]
    return "\n".join(lines)
