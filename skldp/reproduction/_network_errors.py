"""Errors of online personal means against time, from one run and in theory.

The functions behind the figures of Yakimenka et al. (2024). Uniform data of standard deviation
σ = 1/2, three classes, and bounds of half-width L = σ√3 around each agent's mean.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from skldp.collaborative import (
    NoiseLaw,
    OnlineCollaborativeMean,
    ideal_means,
    ideal_mse,
    local_means,
    local_mse,
    oracle_mse,
)
from skldp.datasets import assign_agents, sample_agent_streams
from skldp.random import simulation_generator

FloatArray = NDArray[np.float64]
Curves: TypeAlias = Mapping[str, Mapping[str, Any]]

__all__ = [
    "CLASS_MEANS",
    "ORACLE",
    "VARIANCE",
    "WIDTH",
    "Curves",
    "one_run",
    "theoretical_errors",
    "with_oracles",
]

CLASS_MEANS = (0.2, 0.4, 0.8)
VARIANCE = 0.25
WIDTH = math.sqrt(3)  # of the bounds: 2 L
ORACLE = "oracle, "  # before the name of a curve: the same releases with known classes
_EPSILON = 1.0
# How far apart the oracle sees the classes: beyond all that its test accepts.
_FAR = 1e4


def one_run(
    n_agents: int,
    times: Sequence[int],
    curves: Curves,
    run: int,
    random_state: int,
) -> Any:
    """Return the errors of one run at some times, for every curve.

    Parameters
    ----------
    n_agents : int
        Agents, in three classes.
    times : sequence of int
        When errors are taken, ascending; the last is the end.
    curves : mapping of str to mapping
        Parameters of `OnlineCollaborativeMean` of each curve.
    run : int
        Number of the run, which makes its seed another one.
    random_state : int
        Seed.

    Returns
    -------
    pandas.DataFrame
        Columns ``curve``, ``time``, ``mse``, and ``missed`` and ``mixed``, the shares of pairs of
        agents in one class and in two that are taken for the opposite; NaN for baselines.
    """
    import pandas as pd

    generator = simulation_generator(random_state)
    means, classes = assign_agents(CLASS_MEANS, n_agents, random_state=generator)
    X = sample_agent_streams(means, times[-1], random_state=generator)
    rows = []
    at = np.asarray(times) - 1
    for name, estimates in (("local", local_means(X)), ("ideal", ideal_means(X, classes))):
        errors = ((estimates[at] - means) ** 2).mean(axis=1)
        rows += [
            (name, time, mse, math.nan, math.nan) for time, mse in zip(times, errors, strict=True)
        ]
    own_bounds = np.array([means - WIDTH / 2, means + WIDTH / 2])
    seed = int(generator.integers(2**31))  # one for all: the same noise where the law is the same
    for name, given in curves.items():
        apart = _FAR * classes if name.startswith(ORACLE) else np.zeros(n_agents)
        parameters = {"bounds": own_bounds + apart, **given, "random_state": seed}
        if parameters["release"] == "tree":
            parameters["horizon"] = times[-1]
        rows += [(name, *row) for row in _errors(X + apart, times, means + apart, parameters)]
    return pd.DataFrame(rows, columns=["curve", "time", "mse", "missed", "mixed"])


def _errors(
    X: FloatArray, times: Sequence[int], means: FloatArray, parameters: dict[str, Any]
) -> list[tuple[int, float, float, float]]:
    """Return time, mean squared error, and shares of missed and mixed pairs, for every time."""
    agents = OnlineCollaborativeMean(epsilon=_EPSILON, **parameters)
    same = means[:, np.newaxis] == means
    n_same = int(np.count_nonzero(same)) - means.size  # nobody is a pair with oneself
    n_other = int(np.count_nonzero(~same))
    rows = []
    for start, end in zip((0, *times), times, strict=False):
        agents.partial_fit(X[start:end])
        found = agents.same_class_
        rows.append(
            (
                end,
                float(((agents.means_ - means) ** 2).mean()),
                int(np.count_nonzero(same & ~found)) / n_same,
                int(np.count_nonzero(found & ~same)) / n_other,
            )
        )
    return rows


def with_oracles(curves: Curves) -> dict[str, Mapping[str, Any]]:
    """Return the curves, and for each of them the one of the oracle.

    Parameters
    ----------
    curves : mapping of str to mapping
        Parameters of `OnlineCollaborativeMean` of each curve.
    """
    # All agents of a class accept each other.
    surely = {"significance": 1e-12, "peer_weights": "inverse_variance"}
    return {**curves, **{ORACLE + name: {**one, **surely} for name, one in curves.items()}}


def theoretical_errors(
    name: str, times: NDArray[np.int64], n_agents: int, curves: Curves
) -> FloatArray:
    """Return expected squared errors, averaged over agents; those of the oracle for a curve.

    Parameters
    ----------
    name : str
        "local", "ideal", or the name of a curve.
    times : ndarray of int64 of shape (n_times,)
        Numbers of steps; the last is the end of the run.
    n_agents : int
        Agents of all classes.
    curves : mapping of str to mapping
        As in `one_run`.

    Returns
    -------
    ndarray of float64 of shape (n_times,)
        NaN for a curve without an oracle.
    """
    if name == "local":
        return local_mse(times, VARIANCE)
    if name == "ideal":
        # Whatever the sizes c of the classes, the average of 1/c is their number over n.
        return ideal_mse(times, VARIANCE, 1) * len(CLASS_MEANS) / n_agents
    if not name.startswith(ORACLE) and ORACLE + name not in curves:
        return np.full(times.shape, math.nan)
    parameters = curves[name]
    is_tree = parameters["release"] == "tree"
    law = NoiseLaw(
        kind=parameters["noise"],
        epsilon=_EPSILON,
        delta=parameters.get("delta", 0.0),
        n_appearances=int(times.max()).bit_length() if is_tree else 1,
        with_squares=False,
    )
    _, classes = assign_agents(CLASS_MEANS, n_agents, shuffle=False)
    sizes = np.bincount(classes)
    errors = [oracle_mse(times, VARIANCE, size, law, WIDTH, tree=is_tree) for size in sizes]
    return np.asarray(np.average(errors, axis=0, weights=sizes))
