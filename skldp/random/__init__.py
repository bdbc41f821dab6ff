"""Random bits: cryptographic by default, reproducible for simulations.

Everything random in skldp comes from a :class:`WordStream`, and every probability is an
integer over 2^64, so that the privacy loss of a mechanism can be computed exactly.
"""

from skldp.random._bernoulli import bernoulli, bernoulli_bits
from skldp.random._integers import random_integers
from skldp.random._random_state import random_stream, simulation_generator
from skldp.random._words import WordStream

__all__ = [
    "WordStream",
    "bernoulli",
    "bernoulli_bits",
    "random_integers",
    "random_stream",
    "simulation_generator",
]
