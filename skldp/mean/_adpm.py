"""ADPM: the affine private mean with optimal weights, and the privacy that is free."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp._validation import check_bounds, check_choice, check_integer
from skldp.mean._affine import BaseAffineMean
from skldp.mean._levels import read_levels
from skldp.mean._problem import MeanProblem, read_variance
from skldp.mean._weights import optimal_threshold, optimal_weights, optimal_weights_cvxpy

FloatArray = NDArray[np.float64]

__all__ = ["ADPMMeanEstimator", "free_privacy"]


class ADPMMeanEstimator(BaseAffineMean):
    """The private mean with optimal weights when every user sets their own level.

    Weights are proportional to the levels up to a threshold, and equal above. Users above the
    threshold get more privacy than they asked for, at no cost to the estimate: "some privacy can
    be free". The weights minimise the bound on the mean squared error for the worst distribution
    within the bounds (or with a known variance), and depend on the levels alone.

    Parameters
    ----------
    epsilon : float, default=1.0
        Level of every user with Laplace noise, where `fit` gets none: at least 0, infinity for
        public data. It is for the whole row, whatever the number of columns.
    bounds : (lower, upper), default=None
        Public bounds of the values, each a number or an array-like of shape (d,). Required:
        the default is there for scikit-learn alone, which constructs estimators without arguments.
    solver : {"exact", "cvxpy"}, default="exact"
        How the weights are found: by sorting the levels, or by a general convex solver, which is
        slower and less precise. Either way the noise is made for the weights really used.
    variance : "worst_case", float or array-like of shape (d,), default="worst_case"
        Public variance of the values in each column, which the weights are made for; at most, and
        in the worst case, ``(upper - lower)**2 / 4``.
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
        The level s above which nothing of a user's budget is used, in the unit of the levels;
        infinity where there is no noise. It can lie above every level.
    effective_epsilon_ : ndarray of float64 of shape (n_users,)
        ``min(level, threshold_)``: the privacy that each user really gets. With
        Gaussian noise it is ``effective_rho_``.
    n_saturated_ : int
        Number of users above the threshold.
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
    UniformMeanEstimator, ProportionalMeanEstimator, ThresholdMeanEstimator : Other weights.
    AffineMeanEstimator : Weights of one's own.
    SamplingMeanEstimator, LocalMeanEstimator : Estimates of another form.
    skldp.plotting.SaturationDisplay : The error against a group's level.

    Notes
    -----
    Neighbouring data differ in one user's whole row; the number of users, their levels and the
    bounds are public, and levels do not depend on the data. Then the output for user i is ε_i-DP
    (or ρ_i-zCDP) towards somebody who knows everything else, everybody else's value included.

    For one column and widths D the noise is Laplace of scale ``D η``, ``η = max_i w_i/ε_i``, the
    weights minimise ``v ‖w‖² + 2 D² η²``, which is the error for a true variance v. It is solved
    by ``w_i = min(ε_i, s)/Σ_j min(ε_j, s)``, ``η = 1/Σ_j min(ε_j, s)``, with s the root of
    ``Σ_i ε_i max(s - ε_i, 0) = 2 D²/v`` (8 in the worst case, ``8 d²`` for d columns; for Gaussian
    noise on a ball ``4 d``, with ``√(2ρ)`` in place of ε). The problem is that of the paper, this
    form of its solution is not.

    References
    ----------
    Chaudhuri, Courtade (2023), Mean estimation under heterogeneous privacy: some privacy can be
    free, arXiv:2305.09668.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import ADPMMeanEstimator
    >>> X = np.random.default_rng(0).random((1000, 1))
    >>> levels = np.repeat([0.1, 5.0], 500)
    >>> mean = ADPMMeanEstimator(bounds=(0, 1), random_state=0).fit(X, epsilon=levels)
    >>> bool(abs(mean.mean_[0] - 0.5) < 0.1)
    True
    >>> round(mean.threshold_, 9), mean.n_saturated_
    (0.26, 500)
    """

    def __init__(
        self,
        epsilon: Any = 1.0,
        *,
        bounds: Any = None,
        solver: str = "exact",
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
        self.solver = solver

    def _check_parameters(self) -> None:
        check_choice(self.solver, "solver", ("exact", "cvxpy"))

    def _choose_weights(
        self, problem: MeanProblem, levels: FloatArray
    ) -> tuple[FloatArray, float | None]:
        linear = problem.linear(levels)
        if self.solver == "cvxpy":
            return (
                optimal_weights_cvxpy(linear, problem.ratio),
                optimal_threshold(linear, problem.ratio),
            )
        return optimal_weights(linear, problem.ratio)

    def free_privacy(self, epsilon: Any = None, *, rho: Any = None) -> FloatArray:
        """Return what each user's level could be lowered to without changing the estimate.

        Parameters
        ----------
        epsilon : array-like of shape (n_users,)
            Levels with Laplace noise.
        rho : array-like of shape (n_users,)
            Levels with Gaussian noise.

        Returns
        -------
        ndarray of float64 of shape (n_users,)
            ``min(level, threshold)``: with these levels weights and noise are the same, but for
            the rounding of floats.

        Notes
        -----
        The number of columns is that of `fit`, before it that of the bounds. It is public, and so
        is the result.
        """
        problem = self._public_problem()
        return _free(problem, self._read_levels(None, epsilon, rho))


def free_privacy(
    epsilon: Any = None,
    *,
    rho: Any = None,
    n_features: int = 1,
    bounds: Any = (0, 1),
    variance: Any = "worst_case",
) -> FloatArray:
    """Return what each user's level could be lowered to without changing the optimal estimate.

    Parameters
    ----------
    epsilon : array-like of shape (n_users,), default=None
        Levels with Laplace noise; at least 0, possibly infinite.
    rho : array-like of shape (n_users,), default=None
        Levels with Gaussian noise, as zCDP; one of the two is given.
    n_features : int, default=1
        Number of columns.
    bounds : (lower, upper), default=(0, 1)
        Bounds of the values; they matter for a known variance, and where widths are unequal.
    variance : "worst_case", float or array-like of shape (d,), default="worst_case"
        Variance that the weights are made for.

    Returns
    -------
    ndarray of float64 of shape (n_users,)
        ``min(level, threshold)``.

    Examples
    --------
    >>> from skldp.mean import free_privacy
    >>> free_privacy([0.5] * 40 + [1.0] * 40 + [8.0] * 20)[[0, 40, 80]].round(6)
    array([0.5, 0.9, 0.9])
    """
    if (epsilon is None) == (rho is None):
        raise ValueError("Pass either epsilon or rho: one level for every user.")
    n_features = check_integer(n_features, "n_features", minimum=1)
    lower, upper = check_bounds(bounds, n_features)
    known = None
    if not (isinstance(variance, str) and variance == "worst_case"):
        known = read_variance(variance, upper - lower)
    if rho is None:
        return _free(
            MeanProblem(lower, upper, "laplace", known), read_levels(epsilon, None, "epsilon")
        )
    return _free(MeanProblem(lower, upper, "gaussian", known), read_levels(rho, None, "rho"))


def _free(problem: MeanProblem, levels: FloatArray) -> FloatArray:
    if not levels.any():
        return levels
    threshold = optimal_threshold(problem.linear(levels), problem.ratio)
    lowered: FloatArray = np.minimum(levels, problem.native(threshold))
    return lowered
