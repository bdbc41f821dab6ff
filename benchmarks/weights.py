"""Optimal weights of a private mean: beside a sort of the levels, and beside cvxpy.

cvxpy gets one variable per distinct level, so all levels are distinct here.
"""

from collections.abc import Iterator

import numpy as np
from measuring import Result, seconds, side_by_side


def weights(size: float, repeats: int) -> Iterator[Result]:
    from skldp.mean._weights import optimal_weights, optimal_weights_cvxpy

    n = 1_000_000
    rng = np.random.default_rng(0)
    spread = {
        "ln ε uniform on -4..2": np.exp(rng.uniform(-4, 2, n)),
        "three levels": rng.choice([0.1, 1.0, 10.0], n),
    }
    for name, levels in spread.items():
        yield side_by_side(
            f"weights, {name} / np.sort",
            lambda levels=levels: optimal_weights(levels, 8.0),
            lambda levels=levels: np.sort(levels),
            target=5,
            n=n,
            unit="ns/user",
            repeats=3 * repeats,
        )
    # Once, because a million variables take the solver a minute; fewer make the ratio worse.
    few = spread["ln ε uniform on -4..2"][: int(size * n / 4)]
    optimal_weights_cvxpy(few[:10], 8.0)
    theirs = seconds(lambda: optimal_weights_cvxpy(few, 8.0))
    ours = float(np.median([seconds(lambda: optimal_weights(few, 8.0)) for _ in range(repeats)]))
    yield Result(
        "weights / cvxpy",
        "ns/user",
        ours * 1e9 / few.size,
        theirs * 1e9 / few.size,
        ours / theirs,
        1 / 500,
    )
