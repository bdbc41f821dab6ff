"""Side-by-side timing: what is measured and its reference take turns.

So both see the same machine. Times are CPU times of this process, which has one thread.
"""

import statistics
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Result:
    """One line of the table: a measurement, its reference and the target for their ratio.

    Where there is no reference, the target is for the measurement itself.
    """

    item: str
    unit: str
    measured: float
    reference: float | None
    ratio: float
    target: float

    @property
    def is_met(self) -> bool:
        """Whether the ratio (or the measurement itself) is within the target."""
        return self.ratio <= self.target


def seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def side_by_side(
    item: str,
    measured: Callable[[], object],
    reference: Callable[[], object],
    *,
    target: float,
    n: int,
    unit: str,
    repeats: int,
) -> Result:
    """Median of the ratios of alternating runs; times are medians in nanoseconds per item."""
    measured()
    reference()
    pairs = [(seconds(measured), seconds(reference)) for _ in range(repeats)]
    return Result(
        item=item,
        unit=unit,
        measured=statistics.median(first for first, _ in pairs) * 1e9 / n,
        reference=statistics.median(second for _, second in pairs) * 1e9 / n,
        ratio=statistics.median(first / second for first, second in pairs),
        target=target,
    )


def absolute(
    item: str,
    measured: Callable[[], object],
    *,
    target: float,
    n: int,
    unit: str,
    repeats: int,
) -> Result:
    """Median time in nanoseconds per item, against a target in the same unit."""
    measured()
    value = statistics.median(seconds(measured) for _ in range(repeats)) * 1e9 / n
    return Result(item, unit, value, None, value, target)


def extra_memory(item: str, function: Callable[[], np.ndarray], *, target: float) -> Result:
    """Peak of the memory in use during the call beyond its result, in MiB."""
    function()
    tracemalloc.start()
    result = function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    value = (peak - result.nbytes) / 2**20
    return Result(item, "MiB", value, None, value, target)
