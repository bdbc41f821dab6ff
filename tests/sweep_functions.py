"""Functions for sweeps, which have to be importable by the processes of a sweep."""

import functools
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


def named_index(random_state):
    """Return a frame whose labels are its index."""
    return pd.DataFrame({"way": ["a", "b"], "value": [1.0, 2.0]}).set_index("way")


def numbered_columns(random_state):
    """Return a frame whose columns would be one in JSON."""
    return pd.DataFrame([[1, 2]], columns=[1, "1"])


def multiplied(factor):
    """Return `draw` times a number: a function that bears the name of another."""

    @functools.wraps(draw)
    def function(size, random_state):
        return draw(size, random_state)[["value"]] * factor

    return function


class Drawer:
    """An object whose method depends on it."""

    def __init__(self, factor):
        self.factor = factor

    def draw(self, size, random_state):
        """Return a random number times a factor."""
        return draw(size, random_state)[["value"]] * self.factor
