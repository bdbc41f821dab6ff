"""Monte Carlo without users: losses from simulated counts, and sweeps over many settings.

A mechanism's estimate depends on the reports through their counts alone, and every channel can
draw these with their exact joint law. So `simulate_losses` costs the same for a hundred users and
for a hundred million. `sweep` calls such a function for a whole table of settings: in several
processes, with a progress bar, and resumable from a directory in which every finished call is a
file.

Tables are pandas DataFrames; pandas is imported on first use.
"""

from skldp.simulation._losses import simulate_losses
from skldp.simulation._priors import DirichletPrior
from skldp.simulation._sweep import sweep

__all__ = ["DirichletPrior", "simulate_losses", "sweep"]
