"""What a figure is: computed, drawn, and compared with the printed numbers."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skldp.simulation import sweep

__all__ = ["Comparison", "Figure", "Options", "compare_values", "read_reference"]


@dataclass(frozen=True)
class Options:
    """How to compute a figure.

    Attributes
    ----------
    quick : bool
        Fewer runs and fewer points, in seconds: a test of the machinery more than of the paper.
    n_jobs : int or None
        Processes, as joblib understands it.
    random_state : int
        Seed.
    progress : bool or None
        Whether to show progress bars; None on a terminal.
    cache : path-like or None
        Directory of finished cells.
    """

    quick: bool = False
    n_jobs: int | None = None
    random_state: int = 0
    progress: bool | None = None
    cache: str | os.PathLike[str] | None = None

    def sweep(
        self,
        function: Callable[..., Any],
        cells: Iterable[Mapping[str, Any]],
        description: str | None = None,
    ) -> Any:
        """Run `skldp.simulation.sweep` with these options."""
        return sweep(
            function,
            cells,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            cache=self.cache,
            progress=self.progress,
            description=description,
        )


@dataclass(frozen=True)
class Comparison:
    """How far the computed numbers of a panel or curve are from the printed ones.

    Attributes
    ----------
    panel : str
        Which numbers.
    n_compared : int
        How many.
    largest, mean : float
        Largest and mean absolute deviation; of the ratio from 1 where `is_relative`.
    allowed : float or None
        The largest deviation with which the comparison holds; None where it is only reported.
    is_relative : bool
        Whether deviations are relative to the printed number.
    inferred : str
        What the paper does not say, or says otherwise, and had to be inferred; may be empty.
    """

    panel: str
    n_compared: int
    largest: float
    mean: float
    allowed: float | None
    is_relative: bool = False
    inferred: str = ""

    @property
    def holds(self) -> bool:
        """Whether numbers were compared, and none of them deviates by more than is allowed."""
        return self.n_compared > 0 and (self.allowed is None or self.largest <= self.allowed)


def compare_values(
    panel: str,
    computed: ArrayLike,
    reference: ArrayLike,
    allowed: float | None,
    *,
    is_relative: bool = False,
    inferred: str = "",
) -> Comparison:
    """Compare numbers one by one.

    Parameters
    ----------
    panel : str
        What they are.
    computed, reference : array-like of the same shape
        Computed and printed numbers; entries that are NaN in `reference` were not printed, and are
        left out. A computed NaN is an infinite deviation, and so is a printed infinity.
    allowed : float or None
        Largest deviation with which the comparison holds.
    is_relative : bool, default=False
        Whether deviations are relative to the printed numbers.
    inferred : str, default=""
        See `Comparison`.

    Returns
    -------
    Comparison
        The largest and the mean deviation.

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    ours, printed = np.asarray(computed, dtype=float), np.asarray(reference, dtype=float)
    if ours.shape != printed.shape:
        raise ValueError(
            f"{panel}: {ours.shape} computed numbers for {printed.shape} printed ones."
        )
    is_printed = ~np.isnan(printed)
    ours, printed = ours[is_printed], printed[is_printed]
    with np.errstate(divide="ignore", invalid="ignore"):  # a printed 0 or infinity
        deviations = np.abs(ours - printed)
        if is_relative:
            deviations /= np.abs(printed)
    deviations[np.isnan(deviations)] = np.inf
    largest = float(deviations.max(initial=0.0))
    mean = float(deviations.mean()) if deviations.size else 0.0
    return Comparison(panel, deviations.size, largest, mean, allowed, is_relative, inferred)


class Figure(ABC):
    """A figure or table of a paper.

    Attributes
    ----------
    name : str
        What the command line calls it, and its files: the paper's topic, a hyphen, the number.
    title : str
        What it shows, and where the original stands.
    """

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def compute(self, options: Options) -> Any:
        """Return everything that is drawn and compared as one tidy pandas DataFrame.

        Printed numbers, where there are some, are its column ``reference``.
        """

    @abstractmethod
    def draw(self, frame: Any) -> Any:
        """Return a matplotlib figure of the frame, laid out like the original."""

    def compare(self, frame: Any) -> Sequence[Comparison]:
        """Return the comparisons with the printed numbers; none where none are known."""
        return ()


def read_reference(name: str) -> dict[str, Any]:
    """Read printed numbers that are part of the package.

    Parameters
    ----------
    name : str
        Name of the file without ``.json``.

    Returns
    -------
    dict
        Its content. "source" and "note" tell where the numbers come from.
    """
    path = files("skldp.reproduction") / "reference" / f"{name}.json"
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
