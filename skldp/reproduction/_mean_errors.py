"""Errors of means under unequal levels: in closed form, and of simulated releases.

The functions behind Table II and Figures 1A and 1B of Chaudhuri and Courtade (2023). Mechanisms
go by their names there; SM is there in the printed form, which keeps no level and exists for
simulations, and in the private one with a public divisor.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp.mean import (
    ADPMMeanEstimator,
    LocalMeanEstimator,
    ProportionalMeanEstimator,
    SamplingMeanEstimator,
    UniformMeanEstimator,
)
from skldp.random import simulation_generator

FloatArray = NDArray[np.float64]

__all__ = [
    "LEVELS",
    "MECHANISMS",
    "N_USERS",
    "exact_error",
    "simulated_errors",
    "table_errors",
    "two_group_errors",
    "two_groups",
]

_COMMON: dict[str, Any] = {"bounds": (-0.5, 0.5), "clip_output": False}
# The printed form wants to know that it is simulated; `simulated_errors` sets the generator.
_ESTIMATORS: dict[str, Callable[[], Any]] = {
    "ADPM": lambda: ADPMMeanEstimator(**_COMMON),
    "PropDPM": lambda: ProportionalMeanEstimator(**_COMMON),
    "SM, printed": lambda: SamplingMeanEstimator(**_COMMON, divisor="kept", random_state=0),
    "SM, private": lambda: SamplingMeanEstimator(**_COMMON),
    "LDPE": lambda: LocalMeanEstimator(**_COMMON),
    "UNI": lambda: UniformMeanEstimator(**_COMMON),
}
MECHANISMS = tuple(_ESTIMATORS)
LEVELS = {"low": (-3.0, -2.0), "high": (-4.0, 2.0)}
N_USERS = 1000
_FIRST_LEVEL = 0.1  # of half of the users, in both figures


@dataclass(frozen=True)
class DataLaw:
    """How the users' values are distributed.

    Parameters
    ----------
    draw : callable
        Takes a generator and a shape.
    mean, variance : float
        Of a value.
    """

    draw: Callable[[np.random.Generator, tuple[int, int]], NDArray[np.floating]]
    mean: float
    variance: float


_LAWS = {
    "beta": DataLaw(lambda rng, shape: rng.beta(2.0, 3.0, shape) - 0.5, -0.1, 0.04),
    "coins": DataLaw(lambda rng, shape: rng.integers(0, 2, shape) - 0.5, 0.0, 0.25),
    "uniform": DataLaw(lambda rng, shape: rng.random(shape) - 0.5, 0.0, 1 / 12),
}


def two_groups(second: float, n_users: int) -> FloatArray:
    """Return the levels of users one half of whom has .1, the other half `second`.

    LDPE takes equal levels for one group; the figures have two, so that equal ones are set apart
    by their last digit.
    """
    second = max(second, math.nextafter(_FIRST_LEVEL, 1.0))
    return np.repeat([_FIRST_LEVEL, second], n_users // 2)


def exact_error(mechanism: str, levels: FloatArray, data: str) -> float:
    """Return the mean squared error in closed form.

    Parameters
    ----------
    mechanism : str
        A name from the table and figures.
    levels : ndarray of float64 of shape (n,)
        Levels of the users.
    data : {"beta", "coins", "uniform"}
        Law of the values.
    """
    law = _LAWS[data]
    known = {"mean": law.mean} if mechanism.startswith("SM") else {}
    error: float = _ESTIMATORS[mechanism]().expected_mse(levels, law.variance, **known)
    return error


def simulated_errors(
    mechanism: str, levels: FloatArray, data: str, n_fits: int, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return squared errors of releases for fresh users, and those of their mean without privacy.

    Parameters
    ----------
    mechanism, levels, data
        As in `exact_error`.
    n_fits : int
        Number of releases.
    generator : Generator
        Of values and noise.

    Returns
    -------
    private, public : ndarray of float64 of shape (n_fits,)
    """
    law = _LAWS[data]
    estimator = _ESTIMATORS[mechanism]().set_params(random_state=generator)
    errors = np.empty((2, n_fits))
    for fit in range(n_fits):
        X = law.draw(generator, (levels.size, 1))
        estimator.fit(X, epsilon=levels)
        errors[:, fit] = estimator.mean_[0], X.mean()
    private, public = (errors - law.mean) ** 2
    return private, public


def table_errors(mechanism: str, levels: str, n_draws: int, n_fits: int, random_state: int) -> Any:
    """Return the error of one mechanism, averaged over draws of the users' levels.

    Parameters
    ----------
    mechanism : str
        A name from the table.
    levels : {"low", "high"}
        Range of ln ε.
    n_draws, n_fits : int
        Draws of the levels, and releases for each.
    random_state : int
        Seed.

    Returns
    -------
    pandas.DataFrame
        One row: ``exact`` and ``simulated``, with the ``deviation_of_draws`` of the first and the
        ``standard_error`` of their difference.
    """
    import pandas as pd

    generator = simulation_generator(random_state)
    exact, simulated = np.empty(n_draws), np.empty(n_draws)
    for draw in range(n_draws):
        epsilon = np.exp(generator.uniform(*LEVELS[levels], N_USERS))
        exact[draw] = exact_error(mechanism, epsilon, "beta")
        simulated[draw] = simulated_errors(mechanism, epsilon, "beta", n_fits, generator)[0].mean()
    return pd.DataFrame(
        {
            "exact": [exact.mean()],
            "deviation_of_draws": exact.std(ddof=1),
            "simulated": simulated.mean(),
            "standard_error": (simulated - exact).std(ddof=1) / math.sqrt(n_draws),
        }
    )


def two_group_errors(
    mechanism: str, data: str, second: float, n_users: int, n_fits: int, random_state: int
) -> Any:
    """Return the simulated error of one mechanism for two groups of users.

    Parameters
    ----------
    mechanism, data : str
        As in `exact_error`.
    second : float
        Level of the second half of the users.
    n_users, n_fits : int
        Users, and releases.
    random_state : int
        Seed.

    Returns
    -------
    pandas.DataFrame
        One row: ``error`` and its ``error_se``, the same of the ``excess`` over the error of the
        mean without privacy, and ``excess_se``.
    """
    import pandas as pd

    private, public = simulated_errors(
        mechanism, two_groups(second, n_users), data, n_fits, simulation_generator(random_state)
    )
    row: dict[str, list[float]] = {}
    # The same users: most of what chance does to the one it does to the other.
    for name, sample in (("error", private), ("excess", private - public)):
        row[name] = [float(sample.mean())]
        row[f"{name}_se"] = [float(sample.std(ddof=1) / math.sqrt(n_fits))]
    return pd.DataFrame(row)
