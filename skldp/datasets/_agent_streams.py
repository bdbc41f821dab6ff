"""Streams of observations of many agents, some of which share a mean."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skldp._validation import check_choice, check_integer, finite_floats
from skldp.random import simulation_generator

FloatArray = NDArray[np.float64]

_DISTRIBUTIONS = ("uniform", "bernoulli", "beta")


def assign_agents(
    class_means: ArrayLike, n_agents: int, *, shuffle: bool = True, random_state: Any = None
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Divide agents among classes that share a mean, as evenly as possible.

    Parameters
    ----------
    class_means : array-like of shape (n_classes,)
        Mean of each class.
    n_agents : int
        How many agents, at least 1.
    shuffle : bool, default=True
        False: the first agents belong to the first class, and so on. In a round robin the order
        of agents is the order in which they ask each other.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default=None
        Where the order comes from; see `skldp.random.simulation_generator`.

    Returns
    -------
    means : ndarray of float64 of shape (n_agents,)
        Mean of each agent.
    classes : ndarray of int64 of shape (n_agents,)
        Class of each agent, an index of `class_means`. Class sizes differ by at most one.

    Raises
    ------
    TypeError
        If `n_agents` is not an integer.
    ValueError
        If `class_means` are not finite numbers in one dimension, or there are none.

    See Also
    --------
    sample_agent_streams : Observations with these means.

    Examples
    --------
    >>> from skldp.datasets import assign_agents
    >>> means, classes = assign_agents([0.2, 0.8], 5, shuffle=False)
    >>> means.tolist(), classes.tolist()
    ([0.2, 0.2, 0.2, 0.8, 0.8], [0, 0, 0, 1, 1])
    """
    of_class = finite_floats(class_means, "class_means")
    if of_class.ndim != 1 or of_class.size == 0:
        raise ValueError(
            f"class_means must be a non-empty one-dimensional array, got shape {of_class.shape}."
        )
    n_agents = check_integer(n_agents, "n_agents", minimum=1)
    classes = np.arange(n_agents, dtype=np.int64) % of_class.size
    classes.sort()
    if shuffle:
        simulation_generator(random_state).shuffle(classes)
    return of_class[classes], classes


def sample_agent_streams(
    means: ArrayLike,
    n_steps: int,
    *,
    distribution: str = "uniform",
    standard_deviation: ArrayLike | None = None,
    missing_rate: ArrayLike = 0.0,
    random_state: Any = None,
) -> FloatArray:
    """Draw observations of agents, independent of each other and over time.

    Parameters
    ----------
    means : array-like of shape (n_agents,)
        Mean of each agent; within [0, 1] for "bernoulli", strictly between for "beta".
    n_steps : int
        How many steps, at least 0.
    distribution : {"uniform", "bernoulli", "beta"}, default="uniform"
        "uniform": on an interval around the mean, of half-width √3 standard deviations.
        "bernoulli": 0 or 1. "beta": on [0, 1].
    standard_deviation : float or array-like of shape (n_agents,), default=None
        Of an observation. None: 1/2 for "uniform"; half the largest possible, √(m(1 - m))/2, for
        "beta"; for "bernoulli" it follows from the mean, so nothing else can be passed.
    missing_rate : float or array-like of shape (n_agents,), default=0.0
        Probability that an agent observes nothing in a step, within [0, 1].
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default=None
        Where the randomness comes from; see `skldp.random.simulation_generator`.

    Returns
    -------
    ndarray of float64 of shape (n_steps, n_agents)
        Observations; NaN where an agent observes nothing.

    Raises
    ------
    TypeError
        If `n_steps` is not an integer, or `random_state` of another type.
    ValueError
        If an array does not fit, or a mean, deviation or rate is not possible.

    See Also
    --------
    assign_agents : Means of agents in classes.
    skldp.OnlineCollaborativeMean : The estimator that these are for.

    Notes
    -----
    These are raw, private values. Uniform data with a standard deviation of 1/2 are those of the
    experiments of [1]_. Public bounds for them should hold for all agents: bounds centred on an
    agent's mean would publish it.

    References
    ----------
    .. [1] Yakimenka, Weng, Lin, Rosnes, Kliewer (2024), Differentially-private collaborative
       online personalized mean estimation, arXiv:2411.07094.

    Examples
    --------
    >>> from skldp.datasets import sample_agent_streams
    >>> X = sample_agent_streams([0.2, 0.8], 1000, missing_rate=[0, 0.5], random_state=0)
    >>> X.shape, bool(abs(X[:, 0].mean() - 0.2) < 0.1)
    ((1000, 2), True)
    """
    check_choice(distribution, "distribution", _DISTRIBUTIONS)
    centres = finite_floats(means, "means")
    if centres.ndim != 1 or centres.size == 0:
        raise ValueError(
            f"means must be a non-empty one-dimensional array, got shape {centres.shape}."
        )
    n_steps = check_integer(n_steps, "n_steps", minimum=0)
    rates = _per_agent(missing_rate, "missing_rate", centres.size)
    if not ((rates >= 0) & (rates <= 1)).all():
        raise ValueError("missing_rate must lie within [0, 1].")
    generator = simulation_generator(random_state)
    shape = (n_steps, centres.size)
    if distribution == "bernoulli":
        probabilities = _check_bernoulli(centres, standard_deviation)
        observations = (generator.random(shape) < probabilities).astype(np.float64)
    elif distribution == "beta":
        observations = generator.beta(*_beta_shapes(centres, standard_deviation), size=shape)
    else:
        spread = 0.5 if standard_deviation is None else standard_deviation
        deviations = _per_agent(spread, "standard_deviation", centres.size)
        if not (deviations >= 0).all():
            raise ValueError("standard_deviation must be at least 0.")
        half = np.sqrt(3) * deviations
        observations = centres + half * generator.uniform(-1.0, 1.0, size=shape)
    if rates.any():
        observations[generator.random(shape) < rates] = np.nan
    return observations


def _per_agent(values: ArrayLike, name: str, n_agents: int) -> FloatArray:
    array = finite_floats(values, name)
    if array.ndim and array.shape != (n_agents,):
        raise ValueError(
            f"{name} must be a number or have shape ({n_agents},), one for each agent; got shape "
            f"{array.shape}."
        )
    return np.broadcast_to(array, (n_agents,))


def _check_bernoulli(centres: FloatArray, standard_deviation: ArrayLike | None) -> FloatArray:
    if standard_deviation is not None:
        raise ValueError(
            'standard_deviation must be None with distribution="bernoulli": it follows from the '
            "mean."
        )
    if not ((centres >= 0) & (centres <= 1)).all():
        raise ValueError('means must lie within [0, 1] for distribution="bernoulli".')
    return centres


def _beta_shapes(
    centres: FloatArray, standard_deviation: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Return the two shape parameters, from m(1 - m) = s² (α + β + 1) and m = α/(α + β)."""
    if not ((centres > 0) & (centres < 1)).all():
        raise ValueError('means must lie strictly between 0 and 1 for distribution="beta".')
    largest = np.sqrt(centres * (1 - centres))
    spread = largest / 2 if standard_deviation is None else standard_deviation
    deviations = _per_agent(spread, "standard_deviation", centres.size)
    if not ((deviations > 0) & (deviations < largest)).all():
        raise ValueError(
            "standard_deviation must be positive and below √(m(1 - m)), the deviation of a "
            'Bernoulli variable of the same mean m, for distribution="beta".'
        )
    total = (largest / deviations) ** 2 - 1
    return centres * total, (1 - centres) * total
