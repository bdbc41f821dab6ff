"""One step of collaborative online means, row by row: how long two hundred agents take.

Estimates are computed when they are asked for, so a step is checking, summing and releasing. No
reference does the same; the target is for the time itself.
"""

from collections.abc import Iterator

import numpy as np
from measuring import Result, absolute


def collaborative(size: float, repeats: int) -> Iterator[Result]:
    from skldp import OnlineCollaborativeMean

    n_steps, n_agents = int(size * 10_000), 200
    X = np.random.default_rng(0).random((n_steps, n_agents))

    def row_by_row() -> None:
        agents = OnlineCollaborativeMean(bounds=(0, 1))
        for row in X:
            agents.partial_fit(row[np.newaxis])

    def at_once() -> None:
        OnlineCollaborativeMean(bounds=(0, 1)).fit(X)

    agents = OnlineCollaborativeMean(bounds=(0, 1)).fit(X)

    def estimates() -> None:
        agents.partial_fit(X[:1])
        agents.means_  # noqa: B018 - computed here

    for name, function, n, target in (
        ("collaborative step, M = 200", row_by_row, n_steps, 0.5),
        ("collaborative step, M = 200, rows at once", at_once, n_steps, np.inf),
        ("collaborative step, M = 200, with estimates", estimates, 1, np.inf),
    ):
        few = max(1, repeats // 3)
        # Nanoseconds for a million are milliseconds for one.
        yield absolute(name, function, target=target, n=n * 10**6, unit="ms/step", repeats=few)
