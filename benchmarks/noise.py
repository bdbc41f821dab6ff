"""Exact noise beside numpy's: for information, without targets."""

from collections.abc import Iterator

import numpy as np
from measuring import Result, side_by_side

from skldp.random import WordStream, discrete_gaussian, discrete_laplace


def noise(size: float, repeats: int) -> Iterator[Result]:
    n = int(size * (1 << 20))
    stream, rng = WordStream(), np.random.default_rng(0)
    for scale in (1, 10**3, 10**9):
        yield side_by_side(
            f"discrete Laplace, scale {scale:.0e} / rng.laplace",
            lambda scale=scale: discrete_laplace(scale, n, stream),
            lambda scale=scale: rng.laplace(0, scale, n),
            target=float("inf"),
            n=n,
            unit="ns/draw",
            repeats=repeats,
        )
    for scale in (1, 10**3, 10**9):
        yield side_by_side(
            f"discrete Gaussian, sigma {scale:.0e} / rng.normal",
            lambda scale=scale: discrete_gaussian(scale**2, n, stream),
            lambda scale=scale: rng.normal(0, scale, n),
            target=float("inf"),
            n=n,
            unit="ns/draw",
            repeats=repeats,
        )
