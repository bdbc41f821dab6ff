"""Random bits: cryptographic by default, reproducible for simulations.

Everything random in skldp comes from a :class:`WordStream`. Probabilities are met exactly:
they are integers over 2^64 or, for :func:`discrete_laplace` and :func:`discrete_gaussian`, the
irrational numbers of the definition, so that a privacy loss can be computed exactly.
"""

from skldp.random._bernoulli import bernoulli, bernoulli_bits
from skldp.random._discrete_gaussian import discrete_gaussian
from skldp.random._discrete_laplace import discrete_laplace
from skldp.random._gaussian_privacy import (
    discrete_gaussian_delta,
    gaussian_delta,
    gaussian_scale,
)
from skldp.random._integers import random_integers
from skldp.random._random_state import random_stream, simulation_generator
from skldp.random._words import WordStream

__all__ = [
    "WordStream",
    "bernoulli",
    "bernoulli_bits",
    "discrete_gaussian",
    "discrete_gaussian_delta",
    "discrete_laplace",
    "gaussian_delta",
    "gaussian_scale",
    "random_integers",
    "random_stream",
    "simulation_generator",
]
