"""A private mean with weights of one's own."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp._validation import finite_floats
from skldp.mean._affine import BaseAffineMean
from skldp.mean._problem import MeanProblem

FloatArray = NDArray[np.float64]

__all__ = ["AffineMeanEstimator"]


class AffineMeanEstimator(BaseAffineMean):
    """The mean with weights of one's own; the noise is what they and the levels need.

    Bring any rule from levels to weights, such as that of Fallah et al. (2022): the noise has the
    scale ``max_i w_i/ε_i`` in widths of the bounds, so every level is kept whatever the weights.

    Parameters
    ----------
    epsilon : float, default=1.0
        Level of every user with Laplace noise, where `fit` gets none: at least 0, infinity for
        public data. It is for the whole row, whatever the number of columns.
    bounds : (lower, upper), default=None
        Public bounds of the values, each a number or an array-like of shape (d,). Required:
        the default is there for scikit-learn alone, which constructs estimators without arguments.
    weights : array-like of shape (n_users,), or callable, default=None
        Non-negative weights, in the order of the users; divided by their sum. A callable gets the
        levels, shape (n_users,), and returns them. Required. They must not depend on the data.
    variance : "worst_case", float or array-like of shape (d,), default="worst_case"
        Public variance of the values in each column, which ``mse_bound_`` and intervals assume;
        at most, and in the worst case, ``(upper - lower)**2 / 4``.
    noise : {"laplace", "gaussian"}, default="laplace"
        Laplace noise on the box of the bounds, ε-DP at levels `epsilon`; or Gaussian noise on the
        ball (for unequal widths the ellipsoid) that touches this box from inside, zCDP at levels
        `rho`. Values outside are clipped.
    rho : float, default=0.5
        Level of every user with Gaussian noise, where `fit` gets none: zCDP.
    clip_output : bool, default=True
        Whether ``mean_`` and intervals are clipped to the bounds, which costs no privacy. Averages
        of several such means should use False, which keeps them unbiased.
    random_state : None, int, Generator or RandomState, default=None
        None: cryptographic noise. Anything else is for simulations, and protects nobody.

    Attributes
    ----------
    mean_ : ndarray of float64 of shape (d,)
        The private mean.
    weights_ : ndarray of float64 of shape (n_users,)
        Weights, of sum 1.
    noise_scale_ : ndarray of float64 of shape (d,)
        Scale of the noise in each column: Laplace scale, or standard deviation.
    threshold_ : float
        The largest level that anybody's weight uses.
    effective_epsilon_ : ndarray of float64 of shape (n_users,)
        The level that the user's weight really uses, at most the user's own. With
        Gaussian noise it is ``effective_rho_``.
    n_saturated_ : int
        Number of users with a larger level than their weight uses.
    privacy_spent_ : ndarray of float64 of shape (n_users,)
        What the release costs each user at most, computed from the integers that it is made of:
        ε, or zCDP ρ. Never above the user's level.
    mse_bound_ : float
        Bound on the mean squared error, summed over the columns, at the variance assumed.
    n_features_in_ : int
        Number of columns d.
    feature_names_in_ : ndarray of str of shape (d,)
        Names of the columns, where `fit` saw string names.

    See Also
    --------
    ADPMMeanEstimator : Optimal weights.

    Notes
    -----
    Neighbouring data differ in one user's whole row; the number of users, their levels and the
    bounds are public, and levels do not depend on the data. Then the output for user i is ε_i-DP
    (or ρ_i-zCDP) towards somebody who knows everything else, everybody else's value included.

    For one column, widths D and a variance v the error is ``v ‖w‖² + 2 D² max(w/ε)²``.

    References
    ----------
    Chaudhuri, Courtade (2023), Mean estimation under heterogeneous privacy: some privacy can be
    free, arXiv:2305.09668.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mean import AffineMeanEstimator
    >>> mean = AffineMeanEstimator(bounds=(0, 1), weights=np.sqrt, random_state=0)
    >>> round(mean.fit([[0.3], [0.5], [0.2], [0.9]], epsilon=[1, 1, 4, 4]).threshold_, 6)
    2.0
    """

    def __init__(
        self,
        epsilon: Any = 1.0,
        *,
        bounds: Any = None,
        weights: Any = None,
        variance: Any = "worst_case",
        noise: str = "laplace",
        rho: Any = 0.5,
        clip_output: bool = True,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon,
            bounds=bounds,
            variance=variance,
            noise=noise,
            rho=rho,
            clip_output=clip_output,
            random_state=random_state,
        )
        self.weights = weights

    def _check_parameters(self) -> None:
        if self.weights is None:
            raise ValueError(
                "weights is required: an array with one weight for every user, or a function of "
                "the levels that returns one."
            )

    def _choose_weights(
        self, problem: MeanProblem, levels: FloatArray
    ) -> tuple[FloatArray, float | None]:
        given = self.weights
        if callable(given):
            # A copy: a function may well scale what it gets in place, and the noise is made for,
            # and certified against, the levels that were given.
            given = given(levels.copy())
        weights = finite_floats(given, "weights")
        if weights.shape != levels.shape:
            raise ValueError(
                f"weights has shape {weights.shape} for {levels.size} users. In cross-validation "
                "pass a function of the levels instead of an array."
            )
        if weights.min() < 0 or not weights.max() > 0:
            raise ValueError("weights must not be negative, and not all 0.")
        if np.any((weights > 0) & (levels == 0)):
            raise ValueError(
                f"A user with {self._level_name()} = 0 has a positive weight; it must be 0."
            )
        weights = weights / weights.max()  # a new array, whose sum is finite
        return weights / weights.sum(), None
