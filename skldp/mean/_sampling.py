"""SM: keep each user with a probability that grows with their level, then one private sum."""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skldp._validation import check_choice
from skldp.mean._base import Fit, MeanEstimator
from skldp.mean._problem import MeanProblem, read_variance
from skldp.mean._release import DATA_STEPS, draw_noise, exact_combination, exact_sum
from skldp.random import WordStream, random_stream

FloatArray = NDArray[np.float64]

__all__ = ["SamplingMeanEstimator", "keep_thresholds"]

_ONE = 1 << 64
# Room for the rounding of exp and expm1: the exponent is at most 45 where it matters, so the
# computed probability is off by less than 60 times 2^-53.
_ROOM = 1 - 2.0**-45


def keep_thresholds(levels: FloatArray) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the probabilities π_i = (e^ε_i - 1)/(e^t - 1), t = max ε, as integers over 2^64.

    Parameters
    ----------
    levels : ndarray of float64 of shape (n,)
        ε, not all 0; the limit is taken where one is infinite.

    Returns
    -------
    thresholds : ndarray of uint64 of shape (n,)
        2^64 π, rounded down by at most 2^-44 of itself; 0 for those who are always kept.
    always : ndarray of bool of shape (n,)
        Who has the largest level, and π = 1.
    """
    largest = levels.max()
    always: NDArray[np.bool_] = levels == largest
    probabilities = np.zeros(levels.shape)
    if np.isfinite(largest):
        # e^(ε-t) (1 - e^-ε)/(1 - e^-t): no overflow at any level.
        probabilities = np.exp(levels - largest) * (np.expm1(-levels) / np.expm1(-largest))
    thresholds = (probabilities * (_ROOM * 2.0**64) * ~always).astype(np.uint64)
    return thresholds, always


class SamplingMeanEstimator(MeanEstimator):
    """The mean of a random subset, in which users with larger levels are more likely (SM).

    User i is kept with probability ``π_i = (e^ε_i - 1)/(e^t - 1)``, t the largest level, and one
    private sum at level t is released. As printed, the sum is divided by the random number of
    kept users, and that is **not** private at the levels ε_i when a neighbour replaces a value
    (two users at .25 and .5: the first loses .304; the excess tends to a factor 2 for small
    levels). Here the divisor is ``Σ π_j``, which is public, and the values are counted from the
    middle of the bounds; who was kept, and how many, is not exposed.

    Parameters
    ----------
    epsilon : float, default=1.0
        Level of every user where `fit` gets none: at least 0, infinity for public data.
    bounds : (lower, upper), default=None
        Public bounds of the values, each a number or an array-like of shape (d,). Required.
    divisor : {"public", "kept"}, default="public"
        "public": the private form. "kept": the printed form, for simulations; it needs a
        `random_state`, which says that this is one.
    variance : "worst_case", float or array-like of shape (d,), default="worst_case"
        Public variance of the values in each column, which ``mse_bound_`` and intervals assume.
    clip_output : bool, default=True
        Whether ``mean_`` and intervals are clipped to the bounds, which costs no privacy.
    random_state : None, int, Generator or RandomState, default=None
        None: cryptographic noise and choice of users. Anything else is for simulations, and
        protects nobody.

    Attributes
    ----------
    mean_ : ndarray of float64 of shape (d,)
        The private mean.
    weights_ : ndarray of float64 of shape (n_users,)
        Expected weights ``π_i / Σ π_j``.
    noise_scale_ : ndarray of float64 of shape (d,)
        Laplace scale of the noise in each column ("kept": for the expected number of users).
    threshold_ : float
        The largest level t.
    effective_epsilon_ : ndarray of float64 of shape (n_users,)
        What each user loses at most, in closed form; below the level unless that is t. NaN for
        the printed form, which keeps no level.
    n_saturated_ : int
        0: nobody's probability could be larger.
    privacy_spent_ : ndarray of float64 of shape (n_users,)
        ``effective_epsilon_``.
    mse_bound_ : float
        Bound on the mean squared error, summed over the columns.
    n_features_in_ : int
        Number of columns d.
    feature_names_in_ : ndarray of str of shape (d,)
        Names of the columns, where `fit` saw string names.

    See Also
    --------
    ADPMMeanEstimator : Better at every level.

    Notes
    -----
    Neighbouring data differ in one user's whole row; the number of users, their levels and the
    bounds are public, and levels do not depend on the data. With the public divisor the output is
    ε_i-DP for user i: the centres of the noise with and without the user differ by half a width,
    those of two values by one, so with ``a = e^(t/2)`` the likelihood ratio is at most
    ``((1-π) a + π a²)/((1-π) a + π) <= 1 + π (a² - 1) <= e^ε_i``. Probabilities are integers over
    2^64, rounded down.

    For one column, widths D, a variance v and a mean μ, with m the middle, the error is
    ``[Σ π_i (v + (μ-m)²) - Σ π_i² (μ-m)² + 2 D²/t²] / (Σ π_i)²``.

    References
    ----------
    The printed form: Chaudhuri, Courtade (2023), arXiv:2305.09668, after Jorgensen, Yu, Cormode
    (2015). The flaw and the private form are this project's own.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mean import SamplingMeanEstimator
    >>> X = np.random.default_rng(0).random((1000, 1))
    >>> levels = np.repeat([0.1, 1.0], 500)
    >>> mean = SamplingMeanEstimator(bounds=(0, 1), random_state=0).fit(X, epsilon=levels)
    >>> bool((mean.effective_epsilon_ <= levels).all())
    True
    """

    def __init__(
        self,
        epsilon: Any = 1.0,
        *,
        bounds: Any = None,
        divisor: str = "public",
        variance: Any = "worst_case",
        clip_output: bool = True,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.divisor = divisor
        self.variance = variance
        self.clip_output = clip_output
        self.random_state = random_state

    def expected_mse(
        self, epsilon: Any = None, variance: Any = None, *, mean: Any = None, rho: Any = None
    ) -> float:
        """Return the mean squared error for users with these levels; no data are needed.

        Parameters
        ----------
        epsilon : array-like of shape (n_users,)
            Levels.
        variance : float or array-like of shape (n_features,), default=None
            True variance of each column, within the bounds; None takes the one assumed.
        mean : float or array-like of shape (n_features,), default=None
            True mean, within the bounds. None takes the one that is worst at this variance. The
            error of the printed form does not depend on it.
        rho : None
            There is no Gaussian form.

        Returns
        -------
        float
            The error of the mean before clipping, summed over the columns.
        """
        problem = self._public_problem()
        levels = self._read_levels(None, epsilon, rho)
        if not levels.any():
            return float("inf")
        variances = problem.column_variances
        if variance is not None:
            variances = read_variance(variance, problem.widths, allow_zero=True)
        worst = problem.widths**2 / 4 - variances
        squares = np.maximum(worst, 0.0)
        if mean is not None:
            middle = problem.lower + problem.widths / 2
            means = np.asarray(mean, dtype=np.float64)
            if means.ndim > 1 or (means.ndim == 1 and means.size != middle.size):
                raise ValueError(
                    f"mean must be a number or have shape ({middle.size},), got shape "
                    f"{means.shape}."
                )
            squares = (means - middle) ** 2
            if not (squares <= worst + 1e-9 * problem.widths**2).all():
                raise ValueError("No data within bounds have this mean and this variance.")
        return self._error(problem, levels, variances, squares)

    def _check_parameters(self) -> None:
        check_choice(self.divisor, "divisor", ("public", "kept"))
        if self.divisor == "kept" and self.random_state is None:
            raise ValueError(
                'divisor="kept" is the printed form, which is not private at the users\' levels. '
                "It is for simulations: pass a random_state to say that this is one, or use "
                'divisor="public".'
            )

    def _estimate(self, problem: MeanProblem, X: FloatArray, levels: FloatArray) -> Fit:
        thresholds, always = keep_thresholds(levels)
        largest = float(levels.max())
        stream = random_stream(self.random_state, "mean", type(self).__name__, levels, X)
        kept = _draw_kept(thresholds, always, stream)
        # t-DP with weights 1: t = d R/t, a rational number.
        bound = Fraction(0) if np.isinf(largest) else 1 / Fraction(largest)
        noise = draw_noise(problem, bound, stream)
        sums = exact_sum(problem, X, kept.astype(np.int64))
        total = _exact_total(thresholds, always)
        divisor = total if self.divisor == "public" else Fraction(int(np.count_nonzero(kept)))
        released = exact_combination(
            problem,
            [
                Fraction(one + z) / (DATA_STEPS * divisor)
                for one, z in zip(sums, noise, strict=True)
            ],
        )
        probabilities = _as_probabilities(thresholds, always)
        scale = problem.unit_scales * float(bound) / float(total)
        variances = problem.column_variances
        squares = np.maximum(problem.widths**2 / 4 - variances, 0.0)
        error = self._error(problem, levels, variances, squares)
        factor = self._sampling_factor(problem, probabilities, float(total))
        lost = _losses(probabilities, largest)
        lost = np.full_like(lost, np.nan) if self.divisor == "kept" else np.minimum(lost, levels)
        return Fit(
            released=released,
            weights=probabilities / float(total),
            noise_scale=scale,
            laplace_scales=scale[np.newaxis],
            noise_variance=np.zeros_like(scale),
            sampling_factor=factor,
            threshold=largest,
            effective=lost,
            spent=lost.copy(),
            n_saturated=0,
            mse_bound=error,
        )

    def _sampling_factor(
        self, problem: MeanProblem, probabilities: FloatArray, total: float
    ) -> float:
        """Return the factor that turns variances assumed into variances of the mean, at most."""
        if self.divisor == "kept":
            return 1 / total
        # E (x - m)² is at most a quarter of the squared width.
        return float((problem.widths**2 / 4 / problem.column_variances).max()) / total

    def _error(
        self, problem: MeanProblem, levels: FloatArray, variances: FloatArray, squares: FloatArray
    ) -> float:
        probabilities = _as_probabilities(*keep_thresholds(levels))
        noise = problem.noise_constant / float(levels.max()) ** 2
        if self.divisor == "public":
            total = probabilities.sum()
            sampling = total * (variances + squares).sum()
            sampling -= np.dot(probabilities, probabilities) * squares.sum()
            return float((sampling + noise) / total**2)
        law = _law_of_number(probabilities)
        numbers = np.arange(1, law.size + 1)
        return float(variances.sum() * (law @ (1 / numbers)) + noise * (law @ (1 / numbers**2)))


def _draw_kept(
    thresholds: NDArray[np.uint64], always: NDArray[np.bool_], stream: WordStream
) -> NDArray[np.bool_]:
    """Draw who is kept, each with exactly the probability threshold / 2^64."""
    return always | (stream.words(thresholds.size) < thresholds)


def _exact_total(thresholds: NDArray[np.uint64], always: NDArray[np.bool_]) -> Fraction:
    """Return Σ π exactly."""
    halves = (
        int((thresholds >> np.uint64(32)).sum(dtype=np.uint64)),
        int((thresholds & np.uint64(0xFFFFFFFF)).sum(dtype=np.uint64)),
    )
    return int(np.count_nonzero(always)) + Fraction((halves[0] << 32) + halves[1], _ONE)


def _as_probabilities(thresholds: NDArray[np.uint64], always: NDArray[np.bool_]) -> FloatArray:
    probabilities: FloatArray = thresholds / float(_ONE)
    probabilities[always] = 1.0
    return probabilities


def _losses(probabilities: FloatArray, largest: float) -> FloatArray:
    """Return ln ((1-π) a + π a²)/((1-π) a + π) for a = e^(t/2)."""
    if np.isinf(largest):
        return np.where(probabilities == 1, np.inf, 0.0)
    losses = np.where(probabilities == 1, largest, 0.0)
    chosen = (probabilities > 0) & (probabilities < 1)
    chances, half = probabilities[chosen], largest / 2
    # ln(1 + π(a - 1)) - ln(1 + π(1/a - 1)), both exact for small and for large t.
    if half < 1:
        up = np.log1p(chances * np.expm1(half))
    else:
        up = half + np.log(chances + (1 - chances) * np.exp(-half))
    losses[chosen] = up - np.log1p(chances * np.expm1(-half))
    return losses


def _law_of_number(probabilities: FloatArray) -> FloatArray:
    """Return the probabilities that 1, 2, ... users are kept; somebody always is."""
    n_always = int(np.count_nonzero(probabilities == 1))
    chances = probabilities[(probabilities > 0) & (probabilities < 1)]
    # The product of the polynomials 1 - p + p z, as many pairs at a time as there are: n log² n.
    factors = np.ones((1 << max(chances.size - 1, 0).bit_length(), 2))
    factors[:, 1] = 0.0
    factors[: chances.size] = np.column_stack([1 - chances, chances])
    while len(factors) > 1:
        size = 2 * factors.shape[1]
        spectra = np.fft.rfft(factors, size)
        factors = np.fft.irfft(spectra[0::2] * spectra[1::2], size)[:, : size - 1]
    law = np.maximum(factors[0, : chances.size + 1], 0.0)
    return np.concatenate([np.zeros(n_always - 1), law / law.sum()])
