"""Online personalised means of many agents, together and in private."""

from skldp.collaborative._noise import NoiseLaw
from skldp.collaborative._online import OnlineCollaborativeMean
from skldp.collaborative._theory import ideal_means, ideal_mse, local_means, local_mse, oracle_mse

__all__ = [
    "NoiseLaw",
    "OnlineCollaborativeMean",
    "ideal_means",
    "ideal_mse",
    "local_means",
    "local_mse",
    "oracle_mse",
]
