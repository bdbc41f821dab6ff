"""LDPE: one private mean for each group of equal levels, combined."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from skldp.mean._affine import CommonParameters
from skldp.mean._base import Fit
from skldp.mean._problem import MeanProblem
from skldp.mean._release import DATA_STEPS, draw_noise, exact_combination, exact_sum
from skldp.random import random_stream

FloatArray = NDArray[np.float64]

__all__ = ["LocalMeanEstimator"]


class LocalMeanEstimator(CommonParameters):
    """A private mean for each group of equal levels, combined by their precision (LDPE).

    Groups are disjoint, so each release costs its own users their level and nobody else anything.
    Each group pays for noise of its own, which is why this is worse than one sum with unequal
    weights unless groups are large. Meant for a handful of levels: time grows with their number.

    Parameters
    ----------
    epsilon : float, default=1.0
        Level of every user with Laplace noise, where `fit` gets none: at least 0, infinity for
        public data. It is for the whole row, whatever the number of columns.
    bounds : (lower, upper), default=None
        Public bounds of the values, each a number or an array-like of shape (d,). Required:
        the default is there for scikit-learn alone, which constructs estimators without arguments.
    variance : "worst_case", float or array-like of shape (d,), default="worst_case"
        Public variance of the values in each column, which the shares of the groups are made for;
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
        Weight of each user in the combination, of sum 1.
    noise_scale_ : ndarray of float64 of shape (n_groups, d)
        Scale of the noise in the mean of each group: Laplace scale, or standard deviation.
    threshold_ : float
        The largest level: each is used up.
    effective_epsilon_ : ndarray of float64 of shape (n_users,)
        The user's level. With
        Gaussian noise it is ``effective_rho_``.
    n_saturated_ : int
        0: nothing is left unused.
    privacy_spent_ : ndarray of float64 of shape (n_users,)
        What the release costs each user at most, computed from the integers that it is made of:
        ε, or zCDP ρ. Never above the user's level.
    mse_bound_ : float
        Bound on the mean squared error, summed over the columns, at the variance assumed.
    n_features_in_ : int
        Number of columns d.
    feature_names_in_ : ndarray of str of shape (d,)
        Names of the columns, where `fit` saw string names.
    levels_ : ndarray of float64 of shape (n_groups,)
        The level of each group, ascending, without 0.

    See Also
    --------
    ADPMMeanEstimator : One sum with optimal weights.

    Notes
    -----
    Neighbouring data differ in one user's whole row; the number of users, their levels and the
    bounds are public, and levels do not depend on the data. Then the output for user i is ε_i-DP
    (or ρ_i-zCDP) towards somebody who knows everything else, everybody else's value included.

    For one column and widths D, group g of n_g users has the error ``q_g = v/n_g + 2 D²/(ε_g
    n_g)²``, and is weighted by 1/q_g at the variance assumed; the error is then ``1/Σ 1/q_g``.
    Users of level 0 are left out.

    References
    ----------
    Chaudhuri, Courtade (2023), Mean estimation under heterogeneous privacy: some privacy can be
    free, arXiv:2305.09668.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mean import LocalMeanEstimator
    >>> X = np.random.default_rng(0).random((1000, 1))
    >>> levels = np.repeat([0.1, 1.0], 500)
    >>> mean = LocalMeanEstimator(bounds=(0, 1), random_state=0).fit(X, epsilon=levels)
    >>> mean.noise_scale_.round(6)
    array([[0.02 ],
           [0.002]])
    """

    def _estimate(self, problem: MeanProblem, X: FloatArray, levels: FloatArray) -> Fit:
        distinct, group, sizes = np.unique(levels, return_inverse=True, return_counts=True)
        shares = _shares(problem, problem.linear(distinct), sizes)
        order = np.argsort(group, kind="stable")
        ends = np.cumsum(sizes)
        stream = random_stream(self.random_state, "mean", type(self).__name__, levels, X)
        ones = np.ones(int(sizes.max()), dtype=np.int64)
        total = Fraction(0)
        sums = [Fraction(0)] * problem.n_features
        for level, share, size, end in zip(
            distinct.tolist(), shares.tolist(), sizes.tolist(), ends.tolist(), strict=True
        ):
            if level == 0:
                continue
            # Weights are 1, so the noise that keeps the level is a rational number: t = d R/ε, or
            # V = R²/(2ρ).
            factor = 2 if problem.noise == "gaussian" else 1
            bound = Fraction(0) if level == np.inf else 1 / (factor * Fraction(level))
            noise = draw_noise(problem, bound, stream)
            members = exact_sum(problem, X[order[end - size : end]], ones[:size])
            total += Fraction(share)
            sums = [
                done + Fraction(share) * (part + z) / size
                for done, part, z in zip(sums, members, noise, strict=True)
            ]
        released = exact_combination(problem, [one / (DATA_STEPS * total) for one in sums])
        used = distinct > 0
        self.levels_ = distinct[used]
        weights = (shares / sizes)[group]
        eta = _group_noise(problem.linear(distinct), sizes)[used]
        scales = eta[:, np.newaxis] * problem.unit_scales
        combined = shares[used][:, np.newaxis] * scales
        is_gaussian = problem.noise == "gaussian"
        return Fit(
            released=released,
            weights=weights,
            noise_scale=scales,
            laplace_scales=np.zeros((1, problem.n_features)) if is_gaussian else combined,
            noise_variance=(combined**2).sum(axis=0) * is_gaussian,
            sampling_factor=float(np.dot(weights, weights)),
            threshold=float(problem.linear(distinct).max()),
            effective=problem.linear(levels),
            spent=levels.copy(),
            n_saturated=0,
            mse_bound=_error(
                problem, problem.linear(distinct), sizes, shares, problem.data_variance
            ),
        )

    def _squared_error(
        self, problem: MeanProblem, levels: FloatArray, variances: FloatArray
    ) -> float:
        # Of the levels, as in fit: square roots of different levels may be equal.
        distinct, sizes = np.unique(levels, return_counts=True)
        linear = problem.linear(distinct)
        shares = _shares(problem, linear, sizes)
        return _error(problem, linear, sizes, shares, float(variances.sum()))


def _group_noise(linear: FloatArray, sizes: NDArray[np.int64]) -> FloatArray:
    """Return η of each group's mean: 1/(ε n), infinite at level 0."""
    with np.errstate(divide="ignore"):
        return 1 / (linear * sizes)


def _shares(problem: MeanProblem, linear: FloatArray, sizes: NDArray[np.int64]) -> FloatArray:
    """Return the weight of each group's mean, proportional to its precision."""
    errors = problem.data_variance / sizes
    errors += problem.noise_constant * _group_noise(linear, sizes) ** 2
    precisions = errors.min() / errors
    shares: FloatArray = precisions / precisions.sum()
    return shares


def _error(
    problem: MeanProblem,
    linear: FloatArray,
    sizes: NDArray[np.int64],
    shares: FloatArray,
    data_variance: float,
) -> float:
    used = linear > 0
    share = shares[used]
    error = share**2 @ (data_variance / sizes[used])
    error += problem.noise_constant * share**2 @ _group_noise(linear, sizes)[used] ** 2
    return float(error)
