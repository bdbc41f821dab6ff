"""A cell of Monte Carlo studies: ten thousand surveys of 256 categories, decoded."""

from collections.abc import Iterator

import numpy as np
from measuring import Result, absolute

from skldp.channels import KRRChannel, RapporChannel
from skldp.simulation import DirichletPrior, simulate_losses

N_CATEGORIES, N_TRIALS = 256, 10_000


def simulation(size: float, repeats: int) -> Iterator[Result]:
    """Time a cell with all decoders of the papers, for few users and for very many.

    The seconds are those of ten thousand trials, of which a quick run makes fewer.
    """
    n_trials = int(size * N_TRIALS)
    prior = DirichletPrior(N_CATEGORIES)
    epsilon = np.log(2.0)
    decoders = {
        KRRChannel(epsilon, N_CATEGORIES): ["inversion", "maximum_likelihood"],
        RapporChannel(epsilon, N_CATEGORIES): ["inversion"],
    }
    for n_users in (30_000, 10**9):
        for channel, names in decoders.items():

            def cell(channel=channel, names=names, n_users=n_users) -> object:
                return simulate_losses(
                    channel,
                    prior,
                    n_users,
                    n_trials,
                    decoders=names,
                    projections=["simplex", "normalize", "clip"],
                    random_state=0,
                )

            yield absolute(
                f"Monte Carlo cell, {channel.mechanism}, n = {n_users:.0e}",
                cell,
                target=1.5,
                n=round(1e9 * size),  # nanoseconds to seconds
                unit="s",
                repeats=max(repeats // 2, 2),
            )
