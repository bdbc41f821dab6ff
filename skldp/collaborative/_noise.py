r"""The noise of released sums, and why it is enough.

Observations are integers g between -R/2 and R/2, with R steps per width. An agent releases sums
of g and, where others want its variance, of g² over the same observations. Replacing g by g'
changes a sum of g by a = abs(g - g') <= R and, since abs(g + g') <= R - a, one of g² by at most
a(R - a). One observation is in at most d sums of each kind: one block, or one node on each level
of a tree.

**Laplace noise** has the scale dR/ε in sums of g and dR²/ε in sums of g². One pair loses at most
(ε/d)(a/R + a(R - a)/R²) <= ε/d, because x + x(1 - x) <= 1 for x in [0, 1]: the sum of g² is free.
(The paper has Laplace noise; this joint release is our own.) The noise is discrete and exact.

**Gaussian noise** has the deviation s in sums of g and sR/(2c) in those of g². In units of these
deviations the squared change of a pair is, with u = 2a/R between 0 and 2,

    (R/(2s))² (u² + c² u²(2 - u)²)  <=  (R/s)²   for   c² <= min (2 + u)/(u²(2 - u)) = 2.7725...

(at u = √5 - 1): again the sum of g² is free (our own). All d pairs together change by at most
√d R/s deviations, and s is calibrated for that.

**Discrete noise in m coordinates.** The analytic calibration is for continuous noise. Rounding
that to integers is post-processing, and the discrete Gaussian is nearly the rounded one: for a
deviation s (at least 16 steps) and abs(y) <= Ks, the logarithm of the ratio of both probabilities
of y is at most κ = (K²/24 + 1/8)/s² in absolute value (average e^(-(2yv + v²)/(2s²)) over v in
[-1/2, 1/2], with sinh(z)/z <= e^(z²/6); the normalizing sums differ by less than e^(-19s²)). Take
K = K' + R/s, so that with probability at least 1 - τ, τ = 2m e^(-K'²/2), all noises are within Ks
of both centres. If continuous noise is (ε', δ')-private, the discrete one is therefore
(ε' + 2mκ, e^(mκ)δ' + τ)-private, and (ε', e^(mκ)δ' + τ + e^ε'(e^(2mκ) - 1))-private, which is
better where ε is nothing beside δ. The margins are below 1e-6 for all but extreme ε.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp._validation import check_choice, check_epsilon, is_real
from skldp.collaborative._grid import STEPS
from skldp.random import (
    WordStream,
    discrete_gaussian,
    discrete_laplace,
    gaussian_delta,
    gaussian_scale,
    random_stream,
)

IntArray = NDArray[np.int64]

__all__ = ["NoiseLaw"]

_KINDS = ("laplace", "gaussian", "gaussian_classic")
_SQUARES = Fraction(277, 100)  # c², below the minimum of (2 + u)/(u²(2 - u))
_TILE = 256  # agents whose simulated noise is drawn together
_CACHED_TILES = 1024
_LARGEST_EPSILON = 1e4  # beyond, Gaussian noise would be no more than a few steps


@dataclass(frozen=True)
class NoiseLaw:
    """The noise of every release of an agent.

    Parameters
    ----------
    kind : {"laplace", "gaussian", "gaussian_classic"}
        The last one has at least the deviation of the paper's Lemma 1, and needs ``epsilon <= 1``.
    epsilon : float or Fraction
        Privacy level of one observation in everything that is released; positive.
    delta : float
        0 for Laplace noise, strictly between 0 and 1 otherwise.
    n_appearances : int
        Sums of each kind that one observation is in, at most.
    with_squares : bool
        Whether sums of squares are released beside the sums.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong.
    """

    kind: str
    epsilon: Any
    delta: Any
    n_appearances: int
    with_squares: bool

    def __post_init__(self) -> None:
        check_choice(self.kind, "noise", _KINDS)
        if check_epsilon(self.epsilon) == 0:
            raise ValueError("epsilon must be positive: with 0 nothing would ever be released.")
        if not is_real(self.delta):
            raise TypeError(f"delta must be a real number, got {type(self.delta).__name__}.")
        if self.is_laplace:
            if self.delta != 0:
                raise ValueError(
                    f"delta={self.delta} has no effect with Laplace noise, which is purely "
                    'epsilon-private. Pass delta=0, or noise="gaussian".'
                )
            if not 2.0**-40 <= self.epsilon <= 1e300:
                raise ValueError("epsilon must lie between 2**-40 and 1e300 with Laplace noise.")
            return
        if not 1e-100 <= self.delta < 1:
            raise ValueError(
                f"noise={self.kind!r} needs delta, at least 1e-100 and below 1, for example 1e-6; "
                f"got {self.delta}."
            )
        if self.kind == "gaussian_classic" and self.epsilon > 1:
            raise ValueError(
                'noise="gaussian_classic" is private for epsilon <= 1 only, got '
                f'{self.epsilon}. Use noise="gaussian", which is calibrated for any epsilon.'
            )
        if not 2.0**-40 <= self.epsilon <= _LARGEST_EPSILON:
            raise ValueError(
                f"epsilon must lie between 2**-40 and {_LARGEST_EPSILON:g} with Gaussian noise."
            )

    @property
    def is_laplace(self) -> bool:
        """Whether the noise is Laplace noise."""
        return self.kind == "laplace"

    @property
    def n_quantities(self) -> int:
        """Number of sums that are released together: 1, or 2 with squares."""
        return 2 if self.with_squares else 1

    @cached_property
    def parameters(self) -> tuple[Fraction | int, ...]:
        """Laplace scales or Gaussian variances, of sums and of sums of squares, in steps."""
        if self.is_laplace:
            scale = self.n_appearances * STEPS / Fraction(self.epsilon)
            return (scale, scale * STEPS)[: self.n_quantities]
        variance = math.ceil(Fraction(self._deviation * STEPS) ** 2)
        squares = math.ceil(variance * STEPS**2 / (4 * _SQUARES))
        return (variance, squares)[: self.n_quantities]

    @cached_property
    def _least(self) -> float:
        """Standard deviation that continuous noise in a sum needs, in widths."""
        epsilon, delta, change = float(self.epsilon), float(self.delta), self._change
        least = gaussian_scale(epsilon, delta, change)
        if self.kind == "gaussian_classic":
            least = max(least, change * math.sqrt(2 * math.log(1.25 / delta)) / epsilon)
        return least

    @property
    def _change(self) -> float:
        """Largest Euclidean change of all sums, in widths."""
        return math.sqrt(self.n_appearances)

    @cached_property
    def _margins(self) -> tuple[float, float]:
        """By how much ε' must be below ε, and what δ' must be: the lemma."""
        epsilon, delta = float(self.epsilon), float(self.delta)
        n_coordinates = self.n_appearances * self.n_quantities
        tail = delta * 2.0**-20
        # A smaller deviation has larger margins, so those of the least one will do.
        reach = math.sqrt(2 * math.log(2 * n_coordinates / tail)) + 1 / self._least
        # Sums of squares have far more steps; of sums, these are the fewest.
        distance = (reach**2 / 24 + 1 / 8) / (self._least * STEPS) ** 2
        margin, left = 2 * n_coordinates * distance, delta - tail
        if margin > epsilon / 2:
            margin, left = 0.0, left - math.exp(epsilon) * math.expm1(margin)
        return margin, left * math.exp(-n_coordinates * distance)

    @cached_property
    def _deviation(self) -> float:
        """Standard deviation of the noise in a sum, in widths."""
        margin, delta = self._margins
        return max(self._least, gaussian_scale(float(self.epsilon) - margin, delta, self._change))

    @property
    def mean_variance(self) -> float:
        """Variance of the noise in a sum of observations, in squared widths."""
        return self._variance(0) / STEPS**2

    @property
    def square_variance(self) -> float:
        """Variance of the noise in a sum of squared half-widths from the middle."""
        return self._variance(1) * (4 / STEPS**2) ** 2

    def _variance(self, quantity: int) -> float:
        parameter = float(self.parameters[quantity])
        return 2 * parameter**2 if self.is_laplace else parameter

    @property
    def laplace_scale(self) -> float:
        """Scale of Laplace noise in a sum of observations, in widths; 0 for Gaussian noise."""
        return float(self.parameters[0]) / STEPS if self.is_laplace else 0.0

    def spent(self, n_appearances: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the ε (at `delta`) of observations that were in so many sums of each kind.

        Parameters
        ----------
        n_appearances : ndarray of int64
            Between 0 and `n_appearances`.

        Returns
        -------
        ndarray of float64 of the same shape
            Between 0 and `epsilon`.
        """
        table = [self._spent(number) for number in range(self.n_appearances + 1)]
        return np.array(table)[n_appearances]

    def _spent(self, number: int) -> float:
        epsilon = float(self.epsilon)
        if number in (0, self.n_appearances):
            return epsilon if number else 0.0
        if self.is_laplace:
            return epsilon * number / self.n_appearances
        # δ falls with ε: bisection from above, so that the result is not too small.
        margin, delta = self._margins
        low, high = 0.0, epsilon - margin
        while high - low > 1e-9 * epsilon:
            middle = (low + high) / 2
            enough = gaussian_delta(middle, self._deviation, math.sqrt(number)) <= delta
            low, high = (low, middle) if enough else (middle, high)
        return min(high + margin, epsilon)

    def draw(self, key: bytes | None, agents: IntArray, indices: IntArray) -> IntArray:
        """Draw the noise of released sums, once for each.

        Parameters
        ----------
        key : bytes or None
            None: cryptographic noise, from a stream that ends with the call. Bytes: a simulation,
            where noise is a function of key, agent and index, however releases come in batches.
        agents, indices : ndarray of int64 of shape (n,)
            Whose releases, and which one of theirs.

        Returns
        -------
        ndarray of int64 or object of shape (n_quantities, n)
            Integers, in steps and squared steps.
        """
        if key is None:
            stream = random_stream(None)
            return np.array([self._sample(one, agents.size, stream) for one in self.parameters])
        tiles, positions = np.divmod(agents, _TILE)
        # Pairs as single integers, which are much faster to sort: indices are below 2^40.
        pairs, which = np.unique(tiles << 40 | indices, return_inverse=True)
        drawn = np.array(
            [_tile(self, key, pair >> 40, pair & ((1 << 40) - 1)) for pair in pairs.tolist()]
        )
        return drawn.reshape(-1, self.n_quantities, _TILE)[which, :, positions].T

    def _sample(self, parameter: Fraction | int, size: int, stream: WordStream) -> NDArray[Any]:
        sampler = discrete_laplace if self.is_laplace else discrete_gaussian
        return sampler(parameter, size, stream)


@lru_cache(maxsize=_CACHED_TILES)
def _tile(law: NoiseLaw, key: bytes, tile: int, index: int) -> NDArray[Any]:
    """Return simulated noise of the releases of one index of agents with consecutive numbers."""
    stream = random_stream(0, "skldp.collaborative", key, tile, index)
    return np.array([law._sample(one, _TILE, stream) for one in law.parameters])
