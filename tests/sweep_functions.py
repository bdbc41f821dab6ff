"""Functions for sweeps, which have to be importable by the processes of a sweep."""

import time
from pathlib import Path

import numpy as np
import pandas as pd

from skldp.channels import CohortChannel, Hashing
from skldp.datasets import geometric_distribution
from skldp.simulation import simulate_losses


def draw(size, random_state, log=None, delay=0.0):
    """Return random numbers; note the call in a file."""
    time.sleep(delay)
    rng = np.random.default_rng(random_state)
    if log is not None:
        with Path(log).open("a") as file:
            file.write(f"{size}\n")
    return pd.DataFrame({"name": f"cell {size}", "value": rng.random(2), "whole": [size, -1]})


def cohort_losses(n_values, random_state):
    """Return losses that go through the linear algebra of least squares."""
    channel = CohortChannel.for_epsilon(2.0, Hashing(32, 16), "krr")
    p = geometric_distribution(n_values)
    losses = simulate_losses(channel, p, 10**5, 3, random_state=random_state)
    return losses[["trial", "loss"]]


def not_a_frame(random_state):
    """Return something else."""
    return [random_state]


def odd_objects(random_state):
    """Return a frame that JSON cannot hold."""
    return pd.DataFrame({"value": [{1, 2}]})


def any_arguments(random_state, **arguments):
    """Return the seed of the call, whatever the arguments."""
    return pd.DataFrame({"seed": [str(random_state)]})


def missing_values(random_state):
    """Return a frame with gaps."""
    return pd.DataFrame({"text": ["a", None], "number": [np.nan, np.inf]})
