"""Baselines of the affine family: equal, proportional and thresholded weights."""

import numpy as np
from numpy.typing import NDArray

from skldp.mean._affine import BaseAffineMean
from skldp.mean._problem import MeanProblem
from skldp.mean._weights import proportional_weights, threshold_weights

FloatArray = NDArray[np.float64]

__all__ = ["ProportionalMeanEstimator", "ThresholdMeanEstimator", "UniformMeanEstimator"]


class UniformMeanEstimator(BaseAffineMean):
    """The mean with equal weights: everybody gets the privacy of the most cautious user (UNI).

    Whatever users allow beyond the smallest level is not used. A level of 0 is an error.

    Parameters
    ----------
    epsilon : float, default=1.0
        Level of every user with Laplace noise, where `fit` gets none: at least 0, infinity for
        public data. It is for the whole row, whatever the number of columns.
    bounds : (lower, upper), default=None
        Public bounds of the values, each a number or an array-like of shape (d,). Required:
        the default is there for scikit-learn alone, which constructs estimators without arguments.
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

    For one column, widths D and a variance v the error is ``v/n + 2 D²/(n min ε)²``.

    References
    ----------
    Chaudhuri, Courtade (2023), Mean estimation under heterogeneous privacy: some privacy can be
    free, arXiv:2305.09668.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mean import UniformMeanEstimator
    >>> X = np.random.default_rng(0).random((1000, 1))
    >>> levels = np.repeat([0.1, 1.0], 500)
    >>> mean = UniformMeanEstimator(bounds=(0, 1), random_state=0).fit(X, epsilon=levels)
    >>> mean.noise_scale_.round(6)
    array([0.01])
    """

    def _choose_weights(
        self, problem: MeanProblem, levels: FloatArray
    ) -> tuple[FloatArray, float | None]:
        linear = problem.linear(levels)
        smallest = float(linear.min())
        if smallest == 0:
            raise ValueError(
                f"A user has {self._level_name()} = 0, so that equal weights would need infinite "
                "noise. Leave such users out, or use ADPMMeanEstimator, which gives them none."
            )
        return np.full(linear.size, 1 / linear.size), smallest


class ProportionalMeanEstimator(BaseAffineMean):
    """The mean with weights proportional to the levels (PropDPM).

    Every level is used up and the noise is the least possible, but a few users with large levels
    take most of the weight. Public users (level infinity) take all of it, the limit of large
    levels.

    Parameters
    ----------
    epsilon : float, default=1.0
        Level of every user with Laplace noise, where `fit` gets none: at least 0, infinity for
        public data. It is for the whole row, whatever the number of columns.
    bounds : (lower, upper), default=None
        Public bounds of the values, each a number or an array-like of shape (d,). Required:
        the default is there for scikit-learn alone, which constructs estimators without arguments.
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

    For one column, widths D and a variance v the error is ``(v Σ ε² + 2 D²) / (Σ ε)²``.

    References
    ----------
    Chaudhuri, Courtade (2023), Mean estimation under heterogeneous privacy: some privacy can be
    free, arXiv:2305.09668.

    Examples
    --------
    >>> from skldp.mean import ProportionalMeanEstimator
    >>> mean = ProportionalMeanEstimator(bounds=(0, 1), random_state=0)
    >>> mean.fit([[0.3], [0.5], [0.2], [0.9]], epsilon=[0.5, 0.5, 1, 2]).weights_
    array([0.125, 0.125, 0.25 , 0.5 ])
    """

    def _choose_weights(
        self, problem: MeanProblem, levels: FloatArray
    ) -> tuple[FloatArray, float | None]:
        linear = problem.linear(levels)
        return proportional_weights(linear), float(linear.max())


class ThresholdMeanEstimator(BaseAffineMean):
    """The mean of the users at or above one level τ, with equal weights.

    One level for everybody: users with less are left out, users with more get more privacy than
    they asked for. τ minimises the bound on the error and is computed from the levels alone. The
    bound is often 1.4 to 2 times the optimal one for levels that are spread out, up to twice for
    public and private users, up to four times for two levels, and without limit in general (levels
    1/i).

    Parameters
    ----------
    epsilon : float, default=1.0
        Level of every user with Laplace noise, where `fit` gets none: at least 0, infinity for
        public data. It is for the whole row, whatever the number of columns.
    bounds : (lower, upper), default=None
        Public bounds of the values, each a number or an array-like of shape (d,). Required:
        the default is there for scikit-learn alone, which constructs estimators without arguments.
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
        τ.
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

    For one column, widths D, a variance v and m users above τ the error is
    ``v/m + 2 D²/(m τ)²``.

    References
    ----------
    One effective level after Cyffers, Ziani (2026), arXiv:2605.13503; the choice of τ and the
    figures are this project's own.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mean import ThresholdMeanEstimator
    >>> X = np.random.default_rng(0).random((1000, 1))
    >>> levels = np.repeat([0.001, 0.2, 1.0], [100, 400, 500])
    >>> ThresholdMeanEstimator(bounds=(0, 1), random_state=0).fit(X, epsilon=levels).threshold_
    0.2
    """

    def _choose_weights(
        self, problem: MeanProblem, levels: FloatArray
    ) -> tuple[FloatArray, float | None]:
        return threshold_weights(problem.linear(levels), problem.ratio)
