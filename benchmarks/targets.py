"""The measurements, one function for each name that ``run.py --only`` knows.

A function takes the size factor (1, or less for a quick run) and the number of repeats, and
yields its lines. Arrays are larger than the caches, and what a copy is compared with goes
into memory that was touched before.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from collaborative import collaborative
from measuring import Result, absolute, extra_memory, side_by_side
from noise import noise
from simulation import simulation
from weights import weights

from skldp.channels._counting import count_codes, sum_packed_bits
from skldp.channels._kernels import randomize_codes, randomize_one_hot
from skldp.channels._thresholds import flip_threshold, replacement_threshold
from skldp.random import WordStream

ROOT = Path(__file__).resolve().parents[1]
EPSILON = 1.0


def draw_codes(n: int, n_categories: int, dtype: type) -> np.ndarray:
    return np.random.default_rng(0).integers(0, n_categories, n, dtype=dtype)


def copying(array: np.ndarray) -> Callable[[], object]:
    target = np.ones_like(array)
    return lambda: np.copyto(target, array)


def words(size: float, repeats: int) -> Iterator[Result]:
    n_bytes = 1 << 24
    stream, generator = WordStream(), np.random.PCG64()
    buffer = np.empty(1 << 17, dtype=np.uint8)

    def secure() -> None:
        for _ in range(n_bytes // buffer.size):
            stream.fill(buffer)

    def pcg64() -> None:
        for _ in range(n_bytes // (1 << 15)):
            generator.random_raw(1 << 12)

    yield side_by_side(
        "secure words / PCG64.random_raw",
        secure,
        pcg64,
        target=0.7,
        n=n_bytes,
        unit="ns/byte",
        repeats=3 * repeats,
    )


def _krr(
    n_categories: int, dtype: type, target: float, size: float, repeats: int
) -> Iterator[Result]:
    name = f"k-RR k={n_categories} {np.dtype(dtype)}"
    n = int(size * 10**8) // np.dtype(dtype).itemsize
    codes = draw_codes(n, n_categories, dtype)
    threshold = replacement_threshold(EPSILON, n_categories)
    keep = np.exp(EPSILON) / (np.exp(EPSILON) + n_categories - 1)
    stream, rng = WordStream(), np.random.default_rng(0)

    def privatise(codes: np.ndarray = codes) -> np.ndarray:
        return randomize_codes(codes, n_categories, threshold, stream)

    yield side_by_side(
        f"{name} / memcpy",
        privatise,
        copying(codes),
        target=target,
        n=n,
        unit="ns/code",
        repeats=repeats,
    )
    yield extra_memory(f"{name}, extra memory", privatise, target=2)
    if n_categories & (n_categories - 1):
        return  # the comparison with naive numpy has a target for powers of two only
    few = codes[: 25 * 10**6 // codes.itemsize]  # naive numpy needs 32 bytes a code

    def naive() -> np.ndarray:
        # The definition: the truth with this probability, else one of the other symbols.
        is_kept = rng.random(few.size) < keep
        others = rng.integers(n_categories - 1, size=few.size)
        others += others >= few
        return np.where(is_kept, few, others)

    yield side_by_side(
        f"{name} / naive numpy",
        lambda: privatise(few),
        naive,
        target=1 / 8,
        n=few.size,
        unit="ns/code",
        repeats=repeats,
    )


def krr_power_of_two(size: float, repeats: int) -> Iterator[Result]:
    yield from _krr(256, np.uint8, 10, size, repeats)
    yield from _krr(16, np.uint8, 10, size, repeats)
    yield from _krr(4096, np.uint16, 8, size, repeats)
    yield from _krr(65_536, np.uint32, 6, size, repeats)


def krr_other(size: float, repeats: int) -> Iterator[Result]:
    yield from _krr(3, np.uint8, 14, size, repeats)
    yield from _krr(100, np.uint8, 14, size, repeats)
    yield from _krr(1000, np.uint16, 10, size, repeats)


def rappor(size: float, repeats: int) -> Iterator[Result]:
    n_categories, n = 256, int(size * 4 * 10**6)
    codes = draw_codes(n, n_categories, np.uint8)
    threshold = flip_threshold(EPSILON)
    probability = threshold / 2**64
    stream, rng = WordStream(), np.random.default_rng(0)

    def privatise(codes: np.ndarray = codes) -> np.ndarray:
        return randomize_one_hot(codes, n_categories, threshold, stream)

    name, n_bits = "k-RAPPOR packed k=256", n * n_categories
    yield absolute(name, privatise, target=0.5, n=n_bits, unit="ns/bit", repeats=repeats)
    yield side_by_side(
        f"{name} / memcpy",
        privatise,
        copying(privatise()),
        target=28,
        n=n_bits,
        unit="ns/bit",
        repeats=repeats,
    )
    few = codes[: n // 100]
    yield side_by_side(
        f"{name} / rng.random((n, k)) < p",
        lambda: privatise(few),
        lambda: rng.random((few.size, n_categories)) < probability,
        target=1 / 8,
        n=few.size * n_categories,
        unit="ns/bit",
        repeats=repeats,
    )


def column_sums(size: float, repeats: int) -> Iterator[Result]:
    n_categories, n = 256, int(size * 4 * 10**6)
    packed = np.random.default_rng(0).integers(0, 256, (n, n_categories // 8), dtype=np.uint8)
    name = "column sums of packed bits"
    yield side_by_side(
        f"{name} / memcpy",
        lambda: sum_packed_bits(packed, n_categories),
        copying(packed),
        target=5,
        n=n * n_categories,
        unit="ns/bit",
        repeats=repeats,
    )
    few = packed[: n // 20]
    yield side_by_side(
        f"{name} / unpackbits + sum",
        lambda: sum_packed_bits(few, n_categories),
        lambda: np.unpackbits(few, axis=1, bitorder="little").sum(axis=0),
        target=1 / 8,
        n=few.size * 8,
        unit="ns/bit",
        repeats=repeats,
    )


def counting(size: float, repeats: int) -> Iterator[Result]:
    for n_categories, dtype in ((256, np.uint8), (4096, np.uint16), (65_536, np.uint16)):
        n = int(size * 5 * 10**7)
        codes = draw_codes(n, n_categories, dtype)
        name = f"counting k={n_categories} {np.dtype(dtype)}"

        def count(codes: np.ndarray = codes, n_categories: int = n_categories) -> np.ndarray:
            return count_codes(codes, n_categories)

        def bincount(codes: np.ndarray = codes, n_categories: int = n_categories) -> np.ndarray:
            return np.bincount(codes, minlength=n_categories)

        yield side_by_side(
            f"{name} / np.bincount",
            count,
            bincount,
            target=0.6,
            n=n,
            unit="ns/code",
            repeats=repeats,
        )
        yield extra_memory(f"{name}, extra memory", count, target=1)


def project_by_sorting(values: np.ndarray) -> np.ndarray:
    """Euclidean projection onto the simplex from a full sort."""
    descending = np.sort(values)[::-1]
    shifts = (1 - np.cumsum(descending)) / np.arange(1, values.size + 1)
    n_positive = np.flatnonzero(descending + shifts > 0)[-1]
    return np.maximum(values + shifts[n_positive], 0)


def simplex(size: float, repeats: int) -> Iterator[Result]:
    from skldp.decoding import project_simplex

    n = int(size * 10**7)
    rng = np.random.default_rng(0)
    # Raw estimates of a flat distribution: mostly noise; and dominated by a few symbols.
    noise = rng.normal(1 / n, 1e-3, n)
    inputs = {"noise": noise, "uniform": rng.random(n), "flat": rng.normal(1 / n, 0.1 / n, n)}
    for name, values in inputs.items():
        np.testing.assert_allclose(project_simplex(values), project_by_sorting(values), atol=1e-9)
        yield side_by_side(
            f"simplex projection ({name}) / sorting",
            lambda values=values: project_simplex(values),
            lambda values=values: project_by_sorting(values),
            target=0.5,
            n=n,
            unit="ns/value",
            repeats=max(repeats // 2, 2),
        )


def _import_seconds(modules: str) -> float:
    code = (
        f"import time; t = time.process_time(); import {modules}; print(time.process_time() - t)"
    )
    command = [sys.executable, "-c", code]
    return float(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)


def imports(size: float, repeats: int) -> Iterator[Result]:
    ours, theirs = "skldp", "sklearn.base, scipy.sparse"
    pairs = [(_import_seconds(ours), _import_seconds(theirs)) for _ in range(repeats + 1)][1:]
    measured, reference = np.median(pairs, axis=0) * 1e3
    ratio = float(np.median([first / second for first, second in pairs]))
    yield Result(f"import {ours} / {theirs}", "ms", measured, reference, ratio, 1.3)


MEASUREMENTS: dict[str, Callable[[float, int], Iterator[Result]]] = {
    "words": words,
    "krr-power-of-two": krr_power_of_two,
    "krr-other": krr_other,
    "rappor": rappor,
    "column-sums": column_sums,
    "counting": counting,
    "simplex": simplex,
    "weights": weights,
    "collaborative": collaborative,
    "noise": noise,
    "simulation": simulation,
    "import": imports,
}
