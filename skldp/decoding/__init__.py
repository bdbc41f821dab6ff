"""From counts to frequencies: projections, likelihood, constraints. Pure functions."""

from skldp.decoding._constrained import constrained_least_squares
from skldp.decoding._maximum_likelihood import (
    independent_bits_maximum_likelihood,
    krr_maximum_likelihood,
)
from skldp.decoding._simplex import normalize_simplex, project_simplex

__all__ = [
    "constrained_least_squares",
    "independent_bits_maximum_likelihood",
    "krr_maximum_likelihood",
    "normalize_simplex",
    "project_simplex",
]
