"""The distributions of the literature's experiments, and users and streams drawn from them."""

from skldp.datasets._agent_streams import assign_agents, sample_agent_streams
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
    "assign_agents",
    "binomial_distribution",
    "dirichlet_distribution",
    "geometric_distribution",
    "point_mass_distribution",
    "sample_agent_streams",
    "sample_users",
    "uniform_distribution",
    "zipf_distribution",
]
