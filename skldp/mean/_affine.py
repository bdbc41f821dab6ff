"""Affine private means: weights from the levels, one noise variable for the whole sum."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp.mean._base import Fit, MeanEstimator
from skldp.mean._problem import MeanProblem
from skldp.mean._release import (
    as_floats,
    certify,
    cost_bound,
    draw_noise,
    exact_sum,
    integer_weights,
    privacy_losses,
    relative_noise,
)
from skldp.mean._weights import noise_of_weights
from skldp.random import random_stream

FloatArray = NDArray[np.float64]

# A level that exceeds the one used by less than this share of it is used up.
_ROUNDING = 1e-9

__all__ = ["BaseAffineMean", "CommonParameters"]


class CommonParameters(MeanEstimator):
    """The parameters that most private means share."""

    def __init__(
        self,
        epsilon: Any = 1.0,
        *,
        bounds: Any = None,
        variance: Any = "worst_case",
        noise: str = "laplace",
        rho: Any = 0.5,
        clip_output: bool = True,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.variance = variance
        self.noise = noise
        self.rho = rho
        self.clip_output = clip_output
        self.random_state = random_state


class BaseAffineMean(CommonParameters):
    """An affine mean. Subclasses turn levels into weights and a threshold."""

    def _choose_weights(
        self, problem: MeanProblem, levels: FloatArray
    ) -> tuple[FloatArray, float | None]:
        """Return weights of sum 1, and the linear level above which nothing is used.

        None stands for weights that follow no threshold. Levels are not to be changed: the
        certificate compares with them.
        """
        raise NotImplementedError

    def _estimate(self, problem: MeanProblem, X: FloatArray, levels: FloatArray) -> Fit:
        linear = problem.linear(levels)
        wished, threshold = self._choose_weights(problem, levels)
        integers = integer_weights(wished)
        total = int(integers.sum())
        bound = cost_bound(problem, integers, levels)
        certify(problem, integers, levels, bound)
        stream = random_stream(self.random_state, "mean", type(self).__name__, integers, levels, X)
        noise = draw_noise(problem, bound, stream)
        sums = exact_sum(problem, X, integers)
        weights = integers / float(total)
        eta = relative_noise(problem, bound, total)
        scale = eta * problem.unit_scales
        is_gaussian = problem.noise == "gaussian"
        if threshold is None:
            used = _levels_of_weights(weights, linear, eta)
            threshold = float(used.max())
        else:
            used = np.minimum(linear, threshold)
            used[wished == 0] = 0.0
        return Fit(
            released=as_floats(
                problem, [one + z for one, z in zip(sums, noise, strict=True)], total
            ),
            weights=weights,
            noise_scale=scale,
            laplace_scales=np.zeros((1, scale.size)) if is_gaussian else scale[np.newaxis],
            noise_variance=scale**2 * is_gaussian,
            sampling_factor=float(np.dot(weights, weights)),
            threshold=threshold,
            effective=used,
            spent=privacy_losses(problem, integers, levels, bound),
            n_saturated=int(np.count_nonzero(used < linear * (1 - _ROUNDING))),
            mse_bound=problem.squared_error(weights, eta, problem.data_variance),
        )

    def _squared_error(
        self, problem: MeanProblem, levels: FloatArray, variances: FloatArray
    ) -> float:
        weights, _ = self._choose_weights(problem, levels)
        eta = noise_of_weights(weights, problem.linear(levels))
        return problem.squared_error(weights, eta, float(variances.sum()))


def _levels_of_weights(weights: FloatArray, linear: FloatArray, eta: float) -> FloatArray:
    """Return the level that each weight uses; the user's own where it is used up."""
    if eta == 0:
        return np.where(weights > 0, np.inf, 0.0)
    used = weights / eta
    # The noise is larger than needed by 2^-40: not a reason to call a level unused.
    return np.where(used > linear * (1 - _ROUNDING), linear, used)
