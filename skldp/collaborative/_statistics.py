"""What an agent's releases, or its own observations, say about its mean, and how surely.

A statistic is an estimate T of a mean with a variance V and a scale B: T misses the mean by more
than τ with a probability of about 2 exp(-τ²/(2(V + B τ))), as in Bernstein's inequality. The
literature has such a linear statistic, two ways to weight blocks and two to estimate the variance
of the data; the formulas here are this project's own.

**Releases.** The mean of a block of n observations has the variance σ²/n + s²/n², s² that of the
noise in its sum. Blocks have weights ω of one over that, with the σ² that V has
("inverse_variance"), or equal ones ("mean_of_means"). V = Σ ω² (σ²/n + s²/n²)/(Σ ω)², and
B = max(ω/n)/Σ ω times the larger of w/3, for observations within a width w, and the scale of
Laplace noise. A tree has one sum of all observations, with as many noises as its prefix has
nodes.

**Variance from releases.** Beside sums of u, an observation in half-widths from the middle of the
bounds, an agent releases sums of u². With weights θ, φ of sum 1 that do not depend on data,

    E Σ φ mean(u²) = μ² + σ²,    E (Σ θ mean(u))² = μ² + A σ² + N,

A = Σ θ²/n, N = Σ θ² s²/n². So (Σ φ mean(u²) - (Σ θ mean(u))² + N)/(1 - A) is unbiased. It may be
negative, so it is raised to a quarter of the standard deviation of the noise of the sums of
squares, a floor that falls with 1/n. The floor hardly matters where observations fill a good part
of the bounds, since V contains s²/n², which is larger. A floor of a whole deviation or two does
harm: with variances taken too large, agents that differ are accepted and do not seem to disagree.
(In simulations with 198 agents of means .2, .3 and .35, ε = 1, errors after 90 steps were 1.25
times those of an agent on its own with a floor of two deviations, and .66 times with a quarter.)

**Variance of one's own data.** The sample variance of few observations may be 0, and an agent that
believed it would listen to nobody. A tenth of an observation with the largest possible variance is
added: (Σ (x - mean)² + L²/10)/(n - 1 + 1/10) with L half the width, which is L² for n = 1. A whole
one helps newcomers no more, and its L² prevails where data are much narrower than the bounds.
(Where these are a hundred standard deviations wide and all agents share a mean, errors after the
first block of 32 were 1.3 times those of an agent on its own, and 11 times with a whole one.)
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skldp.collaborative._noise import NoiseLaw
from skldp.collaborative._releases import Released

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = [
    "Statistics",
    "own_statistics",
    "private_variance",
    "released_statistics",
    "unbiased_variance",
]

_FLOOR = 0.25  # of the noise's standard deviation in a private variance
_PRIOR = 0.1  # observations of the largest variance that are added to one's own
_LEAST = 1e-12  # squared half-widths: no variance is 0


class Statistics(NamedTuple):
    """Estimates of means, each with what is needed to test and to weight it.

    Where nothing is known the mean is NaN, variance and scale are infinite, and the number of
    observations is 0.

    Parameters
    ----------
    mean : ndarray of float64
        Estimates T, in the units of the data.
    variance : ndarray of float64 of the same shape
        Variances V of T, in squared units.
    scale : ndarray of float64 of the same shape
        Scales B of the tails of T, in the units of the data.
    n_observed : ndarray of int64 of the same shape
        Observations in T.
    """

    mean: FloatArray
    variance: FloatArray
    scale: FloatArray
    n_observed: IntArray

    @classmethod
    def unknown(cls, *shape: int) -> Self:
        """Return statistics of agents of whom nothing is known."""
        return cls(
            np.full(shape, np.nan),
            np.full(shape, np.inf),
            np.full(shape, np.inf),
            np.zeros(shape, dtype=np.int64),
        )

    def at(self, index: Any) -> Self:
        """Return the statistics at an index of the arrays."""
        return type(self)(*(field[index] for field in self))


def released_statistics(
    released: Released,
    law: NoiseLaw,
    width: ArrayLike,
    middle: ArrayLike = 0.0,
    *,
    variance: float | str,
    block_weights: str = "inverse_variance",
) -> Statistics:
    """Return the statistics of agents from what they have released.

    Parameters
    ----------
    released : Released
        Noised sums of M agents.
    law : NoiseLaw
        The noise in them.
    width : float or array-like of shape (M,)
        Widths of the bounds, in the units of the data.
    middle : float or array-like of shape (M,), default=0.0
        Middles of the bounds.
    variance : float or {"bound", "own", "private"}
        Variance of an observation: a number in squared units of the data; the largest that the
        bounds allow ("own" too: an agent's sample variance is for nobody else); or the estimate
        from released sums of squares.
    block_weights : {"inverse_variance", "mean_of_means"}, default="inverse_variance"
        Weights of an agent's blocks. A tree has one sum and no use for them.

    Returns
    -------
    Statistics
        Arrays of shape (M,).
    """
    half = np.broadcast_to(np.asarray(width, dtype=np.float64) / 2, released.sizes.shape[:1])
    # In half-widths until the end: u lies in [-1, 1], and its variance is at most 1.
    present, sizes, noise = _blocks(released, 4 * law.mean_variance)
    data = private_variance(released, law) if variance == "private" else _told(variance, half)
    variances = data[:, np.newaxis] / sizes + noise
    weights = np.where(present, 1.0 if block_weights == "mean_of_means" else 1 / variances, 0.0)
    total = weights.sum(axis=1)
    known = total > 0
    shares = weights / np.where(known, total, 1.0)[:, np.newaxis]
    mean = _dot(shares, 2 * released.sums / sizes)
    # Of one observation within a width of 2, or of the Laplace noise in one sum.
    tail = 2 * max(1 / 3, law.laplace_scale)
    largest = (shares / sizes).max(axis=1, initial=0.0)
    return Statistics(
        np.where(known, np.asarray(middle) + half * mean, np.nan),
        np.where(known, half**2 * _dot(shares**2, variances), np.inf),
        np.where(known, half * tail * largest, np.inf),
        released.sizes.sum(axis=1),
    )


def own_statistics(
    sums: ArrayLike,
    squares: ArrayLike,
    counts: ArrayLike,
    width: ArrayLike,
    middle: ArrayLike = 0.0,
    *,
    variance: float | str,
) -> Statistics:
    """Return the statistics of agents from their own observations: each for the agent's eyes.

    Parameters
    ----------
    sums : array-like of float64 of shape (M,)
        Sums of the observations' distances from the middle of the bounds, in widths.
    squares : array-like of float64 of shape (M,)
        Sums of the squares of these distances, in squared half-widths.
    counts : array-like of int64 of shape (M,)
        Numbers of observations.
    width, middle : float or array-like of shape (M,)
        As in `released_statistics`.
    variance : float or {"bound", "own", "private"}
        Variance of an observation: a number in squared units of the data; the largest that the
        bounds allow; or, for both others, that of the sample.

    Returns
    -------
    Statistics
        Arrays of shape (M,).
    """
    n = np.asarray(counts, dtype=np.int64)
    known, sizes = n > 0, np.maximum(n, 1)
    half = np.broadcast_to(np.asarray(width, dtype=np.float64) / 2, n.shape)
    mean = 2 * np.asarray(sums, dtype=np.float64) / sizes
    if variance in ("own", "private"):
        around = np.maximum(np.asarray(squares, dtype=np.float64) - sizes * mean**2, 0.0)
        data = np.minimum((around + _PRIOR) / (sizes - 1 + _PRIOR), 1.0)
    else:
        data = _told(variance, half)
    return Statistics(
        np.where(known, np.asarray(middle) + half * mean, np.nan),
        np.where(known, half**2 * data / sizes, np.inf),
        np.where(known, half * 2 / 3 / sizes, np.inf),
        n,
    )


def private_variance(released: Released, law: NoiseLaw) -> FloatArray:
    """Estimate the variance of each agent's observations from what it has released.

    Parameters
    ----------
    released : Released
        Noised sums and sums of squares of M agents.
    law : NoiseLaw
        The noise in them.

    Returns
    -------
    ndarray of float64 of shape (M,)
        In squared half-widths, positive and at most 1; 1 where there is no telling.
    """
    estimate, deviation = unbiased_variance(released, law)
    floor = np.maximum(_FLOOR * deviation, _LEAST)
    return np.clip(estimate, np.minimum(floor, 1.0), 1.0)


def unbiased_variance(released: Released, law: NoiseLaw) -> tuple[FloatArray, FloatArray]:
    """Return the unbiased estimate of the variance of observations, and how noisy it is.

    Parameters
    ----------
    released : Released
        Noised sums and sums of squares of M agents.
    law : NoiseLaw
        The noise in them.

    Returns
    -------
    estimate : ndarray of float64 of shape (M,)
        In squared half-widths, of any sign; infinite before there are two observations.
    deviation : ndarray of float64 of shape (M,)
        Standard deviation that the noise of the sums of squares gives it; infinite there too.
    """
    assert released.squares is not None
    present, sizes, noise = _blocks(released, 4 * law.mean_variance)
    _, _, square_noise = _blocks(released, law.square_variance)
    # At most, u has the variance 1 and u², which lies in [0, 1], the variance 1/4.
    mean_weights = _shares(np.where(present, 1 / (1 / sizes + noise), 0.0))
    square_weights = _shares(np.where(present, 1 / (0.25 / sizes + square_noise), 0.0))
    mean = _dot(mean_weights, 2 * released.sums / sizes)
    square = _dot(square_weights, released.squares / sizes)
    lost = _dot(mean_weights**2, 1 / sizes)
    usable = released.sizes.sum(axis=1) > 1
    left = np.where(usable, 1 - lost, 1.0)
    estimate = (square - mean**2 + _dot(mean_weights**2, noise)) / left
    deviation = np.sqrt(_dot(square_weights**2, square_noise)) / left
    return np.where(usable, estimate, np.inf), np.where(usable, deviation, np.inf)


def _told(variance: float | str, half: FloatArray) -> FloatArray:
    """Return a known variance, or the largest one, in squared half-widths."""
    if isinstance(variance, str):
        return np.ones(half.shape)
    return np.clip(variance / half**2, _LEAST, 1.0)


def _blocks(released: Released, unit: float) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
    """Return which blocks there are, their sizes (1 for none), and the noise in their means."""
    present = released.sizes > 0
    sizes = np.where(present, released.sizes, 1).astype(np.float64)
    return present, sizes, np.where(present, unit * released.noise_copies, 0.0) / sizes**2


def _shares(weights: FloatArray) -> FloatArray:
    total = weights.sum(axis=1, keepdims=True)
    return weights / np.where(total > 0, total, 1.0)


def _dot(one: FloatArray, other: FloatArray) -> FloatArray:
    result: FloatArray = np.einsum("ak,ak->a", one, other)
    return result
