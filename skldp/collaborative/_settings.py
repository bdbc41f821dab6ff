"""The public parameters of a stream, checked once and fixed when it begins."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp._validation import (
    check_choice,
    check_epsilon,
    check_integer,
    check_level,
    is_real,
)
from skldp.collaborative._grid import LARGEST_SUM
from skldp.collaborative._noise import NoiseLaw
from skldp.random import random_stream

FloatArray = NDArray[np.float64]

__all__ = ["Settings", "read_names", "read_settings"]

_RELEASES = ("blocks", "tree")
_SCHEDULES = ("broadcast", "round_robin", "restricted_round_robin")
_BLOCK_WEIGHTS = ("inverse_variance", "mean_of_means")
_PEER_WEIGHTS = ("pooled", "inverse_variance", "count")
_VARIANCES = ("private", "own", "bound")


@dataclass(frozen=True)
class Settings:
    """What a stream is governed by.

    Parameters
    ----------
    law : NoiseLaw
        The noise of every release.
    release, schedule, block_weights, peer_weights : str
        As the estimator's parameters.
    variance : float or str
        The same.
    significance : float or "1/t"
        The same.
    first_block : int
        The same.
    growth : float
        The same.
    horizon : int or None
        The same.
    key : bytes or None
        None: cryptographic noise. Bytes: a simulation.
    given : dict
        The parameters as they were given, for `check_unchanged`.
    """

    law: NoiseLaw
    release: str
    schedule: str
    block_weights: str
    peer_weights: str
    variance: float | str
    significance: float | str
    first_block: int
    growth: float
    horizon: int | None
    key: bytes | None
    given: dict[str, Any]

    def check_unchanged(self, parameters: dict[str, Any]) -> None:
        """Refuse parameters that differ from those that the stream began with.

        Parameters
        ----------
        parameters : dict
            Current parameters of the estimator.

        Raises
        ------
        ValueError
            If one has changed. `random_state` may: it is read only when a stream begins. Bounds
            are compared by value, by the network.
        """
        changed = sorted(
            name for name, value in self.given.items() if not _same(value, parameters[name])
        )
        if changed:
            raise ValueError(
                f"{', '.join(changed)} changed since the stream began: what was released cannot "
                "be released again in another way. Set the old value to go on, or call fit, "
                "which starts again and is another release of the data."
            )


def read_settings(parameters: dict[str, Any]) -> Settings:
    """Check parameters, all but the bounds.

    Parameters
    ----------
    parameters : dict
        Parameters of the estimator, by name.

    Returns
    -------
    Settings
        The checked ones.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong; the message says what to pass instead.
    """
    given = {name: parameters[name] for name in parameters.keys() - {"bounds", "random_state"}}
    release = check_choice(given["release"], "release", _RELEASES)
    variance = _read_variance(given["variance"])
    horizon = given["horizon"]
    if release == "tree":
        if horizon is None:
            raise ValueError(
                'release="tree" needs horizon: the largest number of observations that an agent '
                "will ever have. The noise is made for it."
            )
        horizon = check_integer(horizon, "horizon", minimum=1, maximum=LARGEST_SUM - 1)
    elif horizon is not None:
        raise ValueError(
            'horizon belongs to release="tree"; blocks go on without end. Pass horizon=None.'
        )
    law = NoiseLaw(
        kind=given["noise"],
        epsilon=check_epsilon(given["epsilon"]),
        delta=given["delta"],
        n_appearances=1 if horizon is None else horizon.bit_length(),
        with_squares=variance == "private",
    )
    return Settings(
        law=law,
        release=release,
        schedule=check_choice(given["schedule"], "schedule", _SCHEDULES),
        block_weights=check_choice(given["block_weights"], "block_weights", _BLOCK_WEIGHTS),
        peer_weights=check_choice(given["peer_weights"], "peer_weights", _PEER_WEIGHTS),
        variance=variance,
        significance=_read_significance(given["significance"]),
        first_block=check_integer(
            given["first_block"], "first_block", minimum=1, maximum=LARGEST_SUM
        ),
        growth=_read_growth(given["growth"]),
        horizon=horizon,
        key=_read_key(parameters["random_state"]),
        given=given,
    )


def read_names(agents: Any, known: NDArray[Any] | None) -> tuple[NDArray[np.object_] | None, int]:
    """Return the names of new agents, None where they have none, and how many there are.

    Parameters
    ----------
    agents : int, or iterable of str
        How many, or their names.
    known : ndarray of str, or None
        Names of the present agents; None if they have none.

    Returns
    -------
    names : ndarray of object, or None
    number : int

    Raises
    ------
    TypeError, ValueError
        If `agents` is neither, or names repeat, or are needed, or not possible.
    """
    if isinstance(agents, int | np.integer):
        number = check_integer(agents, "agents", minimum=1)
        if known is not None:
            raise ValueError(
                "The agents have names: pass a list of names for the new ones, not a number."
            )
        return None, number
    listed = list(agents) if np.iterable(agents) and not isinstance(agents, str) else [None]
    if not all(isinstance(name, str) for name in listed):
        raise TypeError("agents must be a number, or a list of names (strings).")
    if known is None:
        raise ValueError("The agents have no names: pass the number of new ones.")
    if len(listed) == 0 or len({*listed, *known}) < len(listed) + len(known):
        raise ValueError("agents must be new names, each one once.")
    return np.array(listed, dtype=object), len(listed)


def _read_variance(variance: Any) -> float | str:
    if isinstance(variance, str) or variance is None:
        checked: str = check_choice(variance, "variance", _VARIANCES)
        return checked
    if not is_real(variance):
        raise TypeError(
            'variance must be "private", "own", "bound" or a number, got '
            f"{type(variance).__name__}."
        )
    # At most a quarter of the squared width; whose, is checked with the bounds.
    if not 0 < variance < np.inf:
        raise ValueError(f"variance must be positive and finite, got {variance}.")
    return float(variance)


def _read_significance(significance: Any) -> float | str:
    if isinstance(significance, str):
        checked: str = check_choice(significance, "significance", ("1/t",))
        return checked
    return check_level(significance, "significance")


def _read_growth(growth: Any) -> float:
    if not is_real(growth):
        raise TypeError(f"growth must be a number, got {type(growth).__name__}.")
    if not 1 <= growth < np.inf:
        raise ValueError(f"growth must be finite and at least 1, got {growth}.")
    return float(growth)


def _read_key(random_state: Any) -> bytes | None:
    stream = random_stream(random_state, "skldp.collaborative")
    return None if stream.is_secure else stream.words(4).tobytes()


def _same(one: Any, other: Any) -> bool:
    """Compare a checked parameter, which is no array, with anything."""
    alike = type(one) is type(other) or (is_real(one) and is_real(other))
    return alike and bool(one == other)
