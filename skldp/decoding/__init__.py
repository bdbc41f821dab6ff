"""From counts to frequencies: projections, likelihood, constraints. Pure functions."""

from skldp.decoding._cohort_covariance import SamplingNoise, least_squares_variances
from skldp.decoding._cohort_likelihood import cohort_maximum_likelihood
from skldp.decoding._cohort_system import CohortSystem
from skldp.decoding._constrained import constrained_least_squares
from skldp.decoding._least_squares import least_squares
from skldp.decoding._maximum_likelihood import (
    independent_bits_maximum_likelihood,
    krr_maximum_likelihood,
)
from skldp.decoding._simplex import normalize_simplex, project_simplex
from skldp.decoding._simplex_least_squares import (
    SimplexFit,
    project_subsimplex,
    simplex_least_squares,
)

__all__ = [
    "CohortSystem",
    "SamplingNoise",
    "SimplexFit",
    "cohort_maximum_likelihood",
    "constrained_least_squares",
    "independent_bits_maximum_likelihood",
    "krr_maximum_likelihood",
    "least_squares",
    "least_squares_variances",
    "normalize_simplex",
    "project_simplex",
    "project_subsimplex",
    "simplex_least_squares",
]
