"""Distributions of distributions: what every trial of a simulation draws its frequencies from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skldp._validation import check_integer, finite_floats

__all__ = ["DirichletPrior"]


@dataclass(frozen=True)
class DirichletPrior:
    """Symmetric Dirichlet distribution over the frequencies of k categories.

    Pass it as the frequencies of a simulation, and every trial has its own.

    Parameters
    ----------
    n_categories : int
        The number k of categories, at least 1.
    concentration : float, default=1.0
        The one parameter for all categories, positive. 1: uniform over the simplex.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type or out of range.

    See Also
    --------
    skldp.datasets.dirichlet_distribution : A single draw.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.simulation import DirichletPrior
    >>> DirichletPrior(4)(3, np.random.default_rng(0)).sum(axis=1)
    array([1., 1., 1.])
    """

    n_categories: int
    concentration: float = 1.0

    def __post_init__(self) -> None:
        size = check_integer(self.n_categories, "n_categories", minimum=1)
        object.__setattr__(self, "n_categories", size)
        given = finite_floats(self.concentration, "concentration")
        if given.shape or not given > 0:
            raise ValueError(f"concentration must be a positive number, got {given}.")
        object.__setattr__(self, "concentration", float(given))

    def __call__(self, n_trials: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """Draw the frequencies of trials, shape (n_trials, n_categories)."""
        return generator.dirichlet(np.full(self.n_categories, self.concentration), n_trials)
