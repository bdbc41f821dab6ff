"""The distributions of the literature's experiments, and users drawn from them."""

from skldp.datasets._distributions import (
    binomial_distribution,
    dirichlet_distribution,
    geometric_distribution,
    point_mass_distribution,
    uniform_distribution,
    zipf_distribution,
)
from skldp.datasets._samplers import sample_users

__all__ = [
    "binomial_distribution",
    "dirichlet_distribution",
    "geometric_distribution",
    "point_mass_distribution",
    "sample_users",
    "uniform_distribution",
    "zipf_distribution",
]
