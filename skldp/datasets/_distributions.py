"""Distributions over k categories, as arrays of shape (k,) that sum to 1.

Geometric, binomial, Zipf and Dirichlet are those of the experiments of Kairouz, Bonawitz and
Ramage, "Discrete Distribution Estimation under Local Privacy", ICML 2016 (arXiv:1602.07387).
"""

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from skldp._validation import check_integer
from skldp.random import simulation_generator


def geometric_distribution(n_categories: int, mean: float | None = None) -> NDArray[np.float64]:
    """Geometric distribution, cut off after k categories and renormalised.

    Parameters
    ----------
    n_categories : int
        The number k of categories, at least 1.
    mean : float, default=None
        Mean of the geometric distribution before it is cut off; positive. None: k / 5.

    Returns
    -------
    ndarray of shape (n_categories,) and dtype float64
        ``p[i]`` proportional to ``(1 - theta)**i`` with ``theta = 1 / (1 + mean)``.

    Raises
    ------
    TypeError
        If `n_categories` is not an integer or `mean` not a real number.
    ValueError
        If `n_categories` is less than 1, or `mean` is not positive and finite.

    See Also
    --------
    zipf_distribution : A heavier tail.

    Notes
    -----
    The experiments of [1]_ use "a geometric distribution with mean k/5". That this means the
    cut-off and the parameter given above is not stated there; it is the reading under which
    the baselines of their Figure 3 (a uniform guess, a non-private estimate) come out.

    References
    ----------
    .. [1] P. Kairouz, K. Bonawitz and D. Ramage, "Discrete Distribution Estimation under Local
       Privacy", ICML 2016; arXiv:1602.07387.

    Examples
    --------
    >>> from skldp.datasets import geometric_distribution
    >>> geometric_distribution(3, mean=1.0)
    array([0.57142857, 0.28571429, 0.14285714])
    """
    n_categories = check_integer(n_categories, "n_categories", minimum=1)
    mean = n_categories / 5 if mean is None else _check_real(mean, "mean")
    if mean == 0:
        raise ValueError("mean must be positive: a point mass is point_mass_distribution.")
    # -log(1 - theta) = log(1 + 1/mean), without the rounding of 1 - theta.
    decay = math.log1p(min(1.0 / mean, np.finfo(np.float64).max))
    return _normalised(np.exp(-decay * np.arange(n_categories)))


def binomial_distribution(n_categories: int, probability: float = 0.5) -> NDArray[np.float64]:
    """Binomial distribution of k - 1 trials.

    Parameters
    ----------
    n_categories : int
        The number k of categories, at least 1.
    probability : float, default=0.5
        Probability of success of each trial, between 0 and 1.

    Returns
    -------
    ndarray of shape (n_categories,) and dtype float64
        ``p[i]``, the probability of i successes in k - 1 trials.

    Raises
    ------
    TypeError
        If `n_categories` is not an integer or `probability` not a real number.
    ValueError
        If `n_categories` is less than 1, or `probability` is not between 0 and 1.

    See Also
    --------
    geometric_distribution : The largest probability first.

    Examples
    --------
    >>> from skldp.datasets import binomial_distribution
    >>> binomial_distribution(3)
    array([0.25, 0.5 , 0.25])
    """
    n_categories = check_integer(n_categories, "n_categories", minimum=1)
    probability = _check_real(probability, "probability")
    if probability > 1:
        raise ValueError(f"probability must be at most 1, got {probability}.")
    return _normalised(binom.pmf(np.arange(n_categories), n_categories - 1, probability))


def zipf_distribution(n_categories: int, exponent: float = 1.0) -> NDArray[np.float64]:
    """Zipf's law: probabilities that fall with a power of the rank.

    Parameters
    ----------
    n_categories : int
        The number k of categories, at least 1.
    exponent : float, default=1.0
        The power; not negative. 0 is uniform.

    Returns
    -------
    ndarray of shape (n_categories,) and dtype float64
        ``p[i]`` proportional to ``(i + 1)**-exponent``.

    Raises
    ------
    TypeError
        If `n_categories` is not an integer or `exponent` not a real number.
    ValueError
        If `n_categories` is less than 1, or `exponent` is negative or not finite.

    See Also
    --------
    geometric_distribution : A lighter tail.

    Examples
    --------
    >>> from skldp.datasets import zipf_distribution
    >>> zipf_distribution(3)
    array([0.54545455, 0.27272727, 0.18181818])
    """
    n_categories = check_integer(n_categories, "n_categories", minimum=1)
    exponent = _check_real(exponent, "exponent")
    return _normalised(np.arange(1.0, n_categories + 1.0) ** -exponent)


def uniform_distribution(n_categories: int) -> NDArray[np.float64]:
    """Equal probabilities.

    Parameters
    ----------
    n_categories : int
        The number k of categories, at least 1.

    Returns
    -------
    ndarray of shape (n_categories,) and dtype float64
        1/k everywhere.

    Raises
    ------
    TypeError
        If `n_categories` is not an integer.
    ValueError
        If `n_categories` is less than 1.

    See Also
    --------
    point_mass_distribution : The other extreme.

    Examples
    --------
    >>> from skldp.datasets import uniform_distribution
    >>> uniform_distribution(4)
    array([0.25, 0.25, 0.25, 0.25])
    """
    n_categories = check_integer(n_categories, "n_categories", minimum=1)
    return np.full(n_categories, 1.0 / n_categories)


def dirichlet_distribution(
    n_categories: int, concentration: ArrayLike = 1.0, random_state: Any = None
) -> NDArray[np.float64]:
    """Draw a distribution from a Dirichlet prior.

    Parameters
    ----------
    n_categories : int
        The number k of categories, at least 1.
    concentration : float or array-like of shape (n_categories,), default=1.0
        Parameters of the Dirichlet distribution, positive. All 1: uniform over the simplex.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default=None
        Where the randomness comes from; see `skldp.random.simulation_generator`.

    Returns
    -------
    ndarray of shape (n_categories,) and dtype float64
        One draw: non-negative, sum 1.

    Raises
    ------
    TypeError
        If `n_categories` is not an integer, or `random_state` of another type.
    ValueError
        If `n_categories` is less than 1, or `concentration` has another shape or an entry that
        is not positive and finite.

    See Also
    --------
    uniform_distribution : The mean of the draws with equal concentrations.

    Examples
    --------
    >>> from skldp.datasets import dirichlet_distribution
    >>> dirichlet_distribution(3, random_state=0).shape
    (3,)
    """
    n_categories = check_integer(n_categories, "n_categories", minimum=1)
    parameters = np.asarray(concentration, dtype=np.float64)
    if parameters.shape not in ((), (n_categories,)):
        raise ValueError(
            f"concentration must be a number or have shape ({n_categories},), got shape "
            f"{parameters.shape}."
        )
    if not (np.isfinite(parameters).all() and (parameters > 0).all()):
        raise ValueError("concentration must be positive and finite.")
    generator = simulation_generator(random_state)
    return _normalised(generator.dirichlet(np.broadcast_to(parameters, (n_categories,))))


def point_mass_distribution(n_categories: int, index: int = 0) -> NDArray[np.float64]:
    """All probability on one category.

    Parameters
    ----------
    n_categories : int
        The number k of categories, at least 1.
    index : int, default=0
        Which category, from 0 to k - 1.

    Returns
    -------
    ndarray of shape (n_categories,) and dtype float64
        1 at `index`, 0 elsewhere.

    Raises
    ------
    TypeError
        If `n_categories` or `index` is not an integer.
    ValueError
        If `n_categories` is less than 1, or `index` is not between 0 and k - 1.

    See Also
    --------
    uniform_distribution : The other extreme.

    Examples
    --------
    >>> from skldp.datasets import point_mass_distribution
    >>> point_mass_distribution(3, index=1)
    array([0., 1., 0.])
    """
    n_categories = check_integer(n_categories, "n_categories", minimum=1)
    masses = np.zeros(n_categories)
    masses[check_integer(index, "index", minimum=0, maximum=n_categories - 1)] = 1.0
    return masses


def _check_real(value: Any, name: str) -> float:
    """Return a finite, non-negative real number as a float."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}.")
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{name} must be finite and not negative, got {number}.")
    return number


def _normalised(masses: Any) -> NDArray[np.float64]:
    """Return non-negative masses divided by their sum."""
    array = np.asarray(masses, dtype=np.float64)
    total = float(array.sum())
    return array / total
