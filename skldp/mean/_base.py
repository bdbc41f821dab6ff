"""What the private means share: reading data and levels, predict, score, intervals."""

import numbers
from typing import Any, NamedTuple, Self
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from skldp._validation import (
    check_bounds,
    check_choice,
    check_level,
    finite_floats,
    refuse_unreadable,
    unchanged_on_error,
)
from skldp.mean._intervals import central_quantile
from skldp.mean._levels import read_level, read_levels
from skldp.mean._problem import MeanProblem, read_variance

FloatArray = NDArray[np.float64]

__all__ = ["Fit", "MeanEstimator"]

_DEFAULTS = {"epsilon": 1.0, "rho": 0.5}


class Fit(NamedTuple):
    """What an estimator makes of data and levels."""

    released: FloatArray  # (d,), before clipping
    weights: FloatArray  # (n,)
    noise_scale: FloatArray  # (d,), or (n_groups, d)
    laplace_scales: FloatArray  # (g, d): independent Laplace variables in the released mean
    noise_variance: FloatArray  # (d,): Gaussian noise in the released mean
    sampling_factor: float  # variance of the mean per variance of a value
    threshold: float  # linear
    effective: FloatArray  # (n,), linear
    spent: FloatArray  # (n,), native
    n_saturated: int
    mse_bound: float


class MeanEstimator(BaseEstimator):
    """Base of the private means; subclasses choose weights and state their error."""

    epsilon: Any
    bounds: Any
    clip_output: Any
    random_state: Any
    n_features_in_: int
    mean_: FloatArray

    # -- what subclasses define -----------------------------------------------------------

    def _estimate(self, problem: MeanProblem, X: FloatArray, levels: FloatArray) -> Fit:
        raise NotImplementedError

    def _squared_error(
        self, problem: MeanProblem, levels: FloatArray, variances: FloatArray
    ) -> float:
        """Return the exact error of the unclipped mean for these column variances."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Check what only the subclass has."""

    # -- fitting --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, epsilon: Any = None, rho: Any = None) -> Self:
        """Release the private mean of X. Every call is another release.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_users, n_features)
            One row per user: real numbers. What lies outside the bounds is clipped in silence.
        y : None
            Ignored.
        epsilon : array-like of shape (n_users,) or float, default=None
            The users' levels with Laplace noise: at least 0, public, and chosen without regard to
            the data. 0 leaves a user out, infinity is a user whose value is public. Overrides the
            parameter `epsilon`; a warning says so where that was set to something.
        rho : array-like of shape (n_users,) or float, default=None
            The same with Gaussian noise, as zCDP levels.

        Returns
        -------
        self : object
            The fitted estimator. If anything raises, nothing was released, and an earlier fit
            is kept.

        Raises
        ------
        TypeError
            If X is sparse, or levels, bounds or variance are not real numbers.
        ValueError
            If bounds are missing or wrong, X holds missing or infinite values, or the levels do
            not fit.
        """
        with unchanged_on_error(self):
            # Public parameters first: a wrong one must not depend on the data.
            noise = self._noise()
            check_choice(noise, "noise", ("laplace", "gaussian"))
            if not isinstance(self.clip_output, bool | np.bool_):
                raise TypeError(
                    f"clip_output must be True or False, got {type(self.clip_output).__name__}."
                )
            self._check_parameters()
            check_bounds(self.bounds, None)
            data = self._read(X, reset=True)
            problem = self._problem(data.shape[1])
            _check_same_users(X, epsilon=epsilon, rho=rho, weights=getattr(self, "weights", None))
            levels = self._read_levels(len(data), epsilon, rho)
            if not levels.any():
                raise ValueError(
                    f"Every {self._level_name()} is 0 (or below 2**-300, which counts as 0): "
                    "nobody's value may be used."
                )
            self._set(problem, levels, self._estimate(problem, data, levels))
        return self

    def _read(self, X: Any, *, reset: bool) -> FloatArray:
        if issparse(X):
            raise TypeError(
                f"{type(self).__name__} takes dense data; sparse input is not supported. Zeros "
                "are values like others: pass X.toarray()."
            )
        if np.ma.is_masked(X):
            raise ValueError("X holds missing values: masked entries. Drop these users.")
        refuse_unreadable(X)
        data = validate_data(self, X, reset=reset, dtype=np.float64)
        # Again, because assume_finite=True makes scikit-learn skip it.
        return finite_floats(data, "X")

    def _problem(self, n_features: int | None) -> MeanProblem:
        lower, upper = check_bounds(self.bounds, n_features)
        given = getattr(self, "variance", "worst_case")
        if isinstance(given, str) or given is None:
            check_choice(given, "variance", ("worst_case",))
            variance = None
        else:
            variance = read_variance(given, upper - lower)
        return MeanProblem(lower, upper, self._noise(), variance)

    def _noise(self) -> Any:
        return getattr(self, "noise", "laplace")

    def _level_name(self) -> str:
        return "rho" if self._noise() == "gaussian" else "epsilon"

    def _read_levels(self, n_users: int | None, epsilon: Any, rho: Any) -> FloatArray:
        """Return the levels of the noise in use; refuse, or warn of, any that have no effect."""
        name = self._level_name()
        given, other_given = (epsilon, rho) if name == "epsilon" else (rho, epsilon)
        other = "rho" if name == "epsilon" else "epsilon"
        if other_given is not None or self._is_set(other):
            raise ValueError(_OTHER_LEVELS[other])
        own = getattr(self, name)
        if given is None:
            level = read_level(own, name)
            if n_users is None:
                raise ValueError(f"{name} is required: one level for every user.")
            return np.full(n_users, level)
        if self._is_set(name):
            warn(
                f"The parameter {name} has no effect: the levels that were passed override it. A "
                f"search over {name} fits the same levels every time; scale the levels instead.",
                UserWarning,
                stacklevel=4,
            )
        return read_levels(given, n_users, name)

    def _is_set(self, name: str) -> bool:
        """Whether a level parameter differs from its default."""
        value = getattr(self, name, _DEFAULTS[name])
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        return not (is_number and value == _DEFAULTS[name])

    def _set(self, problem: MeanProblem, levels: FloatArray, fit: Fit) -> None:
        released = fit.released
        self.mean_ = (
            np.clip(released, problem.lower, problem.upper) if self.clip_output else released
        )
        self.weights_ = fit.weights
        self.noise_scale_ = fit.noise_scale
        self.threshold_ = float(problem.native(fit.threshold))
        for name in ("epsilon", "rho"):
            self.__dict__.pop(f"effective_{name}_", None)
        # Squares of roots may exceed a level by a last digit.
        effective = np.minimum(problem.native(fit.effective), levels)
        setattr(self, f"effective_{self._level_name()}_", effective)
        self.n_saturated_ = fit.n_saturated
        self.mse_bound_ = fit.mse_bound
        self.privacy_spent_ = fit.spent
        # Intervals are about the mean before clipping.
        self._fit = fit
        self._fitted_problem = problem

    # -- results --------------------------------------------------------------------------

    def predict(self, X: Any) -> FloatArray:
        """Return the private mean for every row of X, whose values do not matter.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Anything with the right columns.

        Returns
        -------
        ndarray of float64 of shape (n_samples, n_features)
            ``mean_``, repeated.
        """
        check_is_fitted(self, "mean_")
        data = self._read(X, reset=False)
        return np.tile(self.mean_, (len(data), 1))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the negative mean squared difference between X and the private mean.

        The score is computed from raw values: it is not private, and neither is a model selection
        that uses it. The largest possible score is minus the variance of X.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Values.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
            At most 0; averaged over rows and columns.
        """
        check_is_fitted(self, "mean_")
        errors = ((self._read(X, reset=False) - self.mean_) ** 2).mean(axis=1)
        return -float(np.average(errors, weights=sample_weight))

    def confidence_interval(self, level: float = 0.95) -> FloatArray:
        """Return an interval for the mean of the population that users are drawn from.

        Users count as a random sample of values clipped to the bounds. The interval is made of the
        quantiles of a normal sampling error plus the noise; it is conservative where the variance
        of the data is below the one assumed (``variance``), and asymptotic where a few users have
        most of the weight and the noise is small. It costs no privacy.

        Parameters
        ----------
        level : float, default=0.95
            Coverage for each column, strictly between 0 and 1.

        Returns
        -------
        ndarray of float64 of shape (n_features, 2)
            Lower and upper ends; within the bounds where `clip_output` is True.
        """
        check_is_fitted(self, "mean_")
        level = check_level(level)
        fit, problem = self._fit, self._fitted_problem
        normal = fit.sampling_factor * problem.column_variances + fit.noise_variance
        half = np.array(
            [
                central_quantile(level, float(variance), scales)
                for variance, scales in zip(normal, fit.laplace_scales.T, strict=True)
            ]
        )
        ends = np.column_stack([fit.released - half, fit.released + half])
        if self.clip_output:
            ends = np.clip(ends, problem.lower[:, np.newaxis], problem.upper[:, np.newaxis])
        return ends

    def expected_mse(self, epsilon: Any = None, variance: Any = None, *, rho: Any = None) -> float:
        """Return the mean squared error for users with these levels; no data are needed.

        Parameters
        ----------
        epsilon : array-like of shape (n_users,)
            Levels with Laplace noise.
        variance : float or array-like of shape (n_features,), default=None
            True variance of each column, within the bounds, for identically distributed users;
            at most ``(upper - lower)**2 / 4``. None takes the one that the estimator assumes,
            and the result is then ``mse_bound_``.
        rho : array-like of shape (n_users,)
            Levels with Gaussian noise.

        Returns
        -------
        float
            The error of the mean before clipping, summed over the columns: exact for continuous
            noise, from which the noise of `fit` differs by less than can be seen.
        """
        problem = self._public_problem()
        levels = self._read_levels(None, epsilon, rho)
        if not levels.any():
            return float("inf")
        if variance is None:
            variances = problem.column_variances
            if problem.variance is None and problem.is_ball:
                variances = variances * (problem.data_variance / variances.sum())
        else:
            variances = read_variance(variance, problem.widths, allow_zero=True)
        return self._squared_error(problem, levels, variances)

    def _public_problem(self) -> MeanProblem:
        """Return the problem without data: the columns are those of fit, else of the bounds."""
        self._check_parameters()
        check_choice(self._noise(), "noise", ("laplace", "gaussian"))
        return self._problem(getattr(self, "n_features_in_", None))


def _check_same_users(X: Any, **columns: Any) -> None:
    """Refuse pandas objects with another index: they are read by position, as everywhere."""
    for name, column in columns.items():
        has_labels = hasattr(X, "iloc") and hasattr(column, "iloc")
        if has_labels and len(X) == len(column) and not X.index.equals(column.index):
            raise ValueError(
                f"The index of {name} is not that of X, so users might get the levels of others. "
                f"Pass {name}.loc[X.index], or {name}.to_numpy() if the order is the same."
            )


_OTHER_LEVELS = {
    "rho": (
        "rho is the level of Gaussian noise and has no effect with Laplace noise. Pass epsilon, "
        'or choose noise="gaussian".'
    ),
    "epsilon": (
        'epsilon has no effect with noise="gaussian", which is private in the sense of zCDP only, '
        "at levels rho: pass rho. (Whatever is epsilon-private is zCDP at rho = epsilon**2 / 2, "
        "but not the other way round.) In a search, give each noise a grid of its own."
    ),
}
