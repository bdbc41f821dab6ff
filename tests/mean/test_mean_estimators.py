"""Private means as scikit-learn estimators: input, errors, searches, metadata, pipelines."""

import copy
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skldp.mean import (
    ADPMMeanEstimator,
    AffineMeanEstimator,
    LocalMeanEstimator,
    ProportionalMeanEstimator,
    SamplingMeanEstimator,
    ThresholdMeanEstimator,
    UniformMeanEstimator,
)
from skldp.mean._intervals import central_quantile
from skldp.mean._levels import read_levels

RNG = np.random.default_rng(20)
X = RNG.random((120, 1))
LEVELS = np.repeat([0.1, 0.5, 2.0], 40)
FAMILY = [
    ADPMMeanEstimator(bounds=(0, 1)),
    UniformMeanEstimator(bounds=(0, 1)),
    ProportionalMeanEstimator(bounds=(0, 1)),
    ThresholdMeanEstimator(bounds=(0, 1)),
    AffineMeanEstimator(bounds=(0, 1), weights=np.sqrt),
    SamplingMeanEstimator(bounds=(0, 1)),
    LocalMeanEstimator(bounds=(0, 1)),
]
every_mean = pytest.mark.parametrize("mean", FAMILY, ids=lambda mean: type(mean).__name__)


def scale_to_hours(values):
    """Divide by a public constant."""
    return np.asarray(values) / 60


# -- bounds --------------------------------------------------------------------------------


@every_mean
def test_bounds_are_required_and_the_message_says_why(mean):
    with pytest.raises(ValueError, match=r"bounds is required.*do not come from the data"):
        clone(mean).set_params(bounds=None).fit(X)


@every_mean
@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((1, 0), "lower < upper"),
        ((1, 1), "lower < upper"),
        ((0, np.inf), "finite"),
        ((-np.inf, np.inf), "finite"),
        ((np.nan, 1), "finite"),
        ((0, [1, np.nan]), "finite"),
        ((0, [1, 2]), "shape"),
        (([0, 0, 0], [1, 1]), "lower and"),
        ((0, [[1]]), "shape"),
        ((0, 1e-200), "between"),
        ((-1e200, 1e200), "between"),
        ((-1.7e308, 1.7e308), "between"),
        (([], []), "empty"),
    ],
)
def test_impossible_bounds_raise(mean, bounds, message):
    with (
        sklearn.config_context(assume_finite=True, skip_parameter_validation=True),
        pytest.raises(ValueError, match=message),
    ):
        clone(mean).set_params(bounds=bounds).fit(X)


@every_mean
@pytest.mark.parametrize("bounds", [5, (0,), (0, 1, 2), "ab", (True, False), (0, None), (0, 1j)])
def test_bounds_of_another_kind_raise(mean, bounds):
    with pytest.raises(TypeError, match="bounds"):
        clone(mean).set_params(bounds=bounds).fit(X)


def test_bounds_may_be_lists_arrays_integers_and_fractions():
    rows = np.column_stack([X, 10 * X])
    reference = ADPMMeanEstimator(bounds=(0, [1, 10]), random_state=0).fit(rows).mean_
    for bounds in (
        [np.zeros(2), np.array([1, 10], dtype=np.float32)],
        (np.int64(0), (1, 10)),
        np.array([[0, 0], [1, 10]]),
        ([Fraction(0), 0], [1, Fraction(10)]),
    ):
        mean = ADPMMeanEstimator(bounds=bounds, random_state=0).fit(rows)
        np.testing.assert_array_equal(mean.mean_, reference)
        assert clone(mean).bounds is not None


def test_numbers_of_other_kinds_are_bounds_and_variances():
    reference = ADPMMeanEstimator(bounds=(0, 1), variance=0.125, random_state=0).fit(X)
    fraction = clone(reference).set_params(variance=Fraction(1, 8)).fit(X)
    assert fraction.mean_ == reference.mean_ and fraction.threshold_ == reference.threshold_
    assert clone(reference).set_params(variance=[Fraction(1, 8)]).fit(X).mean_ == reference.mean_
    with pytest.raises(ValueError, match="bounds must be finite"):
        ADPMMeanEstimator(bounds=(0, 10**400)).fit(X)


# -- data ----------------------------------------------------------------------------------


@every_mean
def test_values_outside_are_clipped_in_silence(mean):
    wild = X.copy()
    wild[:20], wild[20:40] = -1e9, 1e300
    tame = np.clip(wild, 0, 1)
    seeded = clone(mean).set_params(random_state=np.random.default_rng(3))
    # Public levels where the class allows them: the released mean is that of the clipped values.
    released = seeded.fit(wild, epsilon=np.full(120, 1e9)).mean_
    assert released == pytest.approx(tame.mean(axis=0), abs=1e-5)


@every_mean
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_missing_and_infinite_values_raise_without_echoing_data(mean, bad):
    rows = np.full((5, 1), 0.123456789)
    rows[3] = bad
    fitted = clone(mean).fit(X)
    before = fitted.mean_
    for finite in (False, True):
        with sklearn.config_context(assume_finite=finite):
            for call in (fitted.fit, fitted.predict, fitted.score):
                with pytest.raises(ValueError, match=r"NaN|inf") as caught:
                    call(rows)
                assert "0.123" not in str(caught.value)
    assert fitted.mean_ is before


@every_mean
@pytest.mark.parametrize(
    "rows",
    [
        [0.123456789, 0.5],
        0.123456789,
        [["0.123456789x"], ["0.5"]],
        [[b"0.123456789x"], [b"0.5"]],
        np.array([["0.123456789x"], [1]], dtype=object),
        [[0.123456789 + 1j], [0.5]],
        np.array([["0123-11-11"], ["2020-01-01"]], dtype="datetime64[D]"),
        np.array([[123], [4]], dtype="timedelta64[s]"),
        pd.DataFrame({"x": ["0.123456789x", "0.5"]}),
        pd.DataFrame({"x": pd.Categorical(["0.123456789x", "0.5"])}),
        pd.DataFrame({"x": pd.to_datetime(["2123-01-01", "2020-01-01"])}),
        pd.DataFrame({"x": [0.123456789 + 1j, 0.5]}),
        pl.DataFrame({"x": ["0.123456789x", "0.5"]}),
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_unreadable_values_raise_without_echoing_data(mean, rows):
    """scikit-learn's and numpy's own messages would quote them."""
    fitted = clone(mean).fit(X)
    for call in (fitted.fit, fitted.predict, fitted.score):
        with pytest.raises(ValueError) as caught:
            call(rows)
        error = caught.value
        while error is not None:
            assert "123" not in str(error)
            error = error.__cause__ or error.__context__


@every_mean
def test_other_input_that_cannot_be_used_raises(mean):
    estimator = clone(mean)
    for matrix in (sparse.csr_array(X), sparse.csc_matrix(X)):
        with pytest.raises(TypeError, match="sparse"):
            estimator.fit(matrix)
    with pytest.raises(ValueError, match="Reshape your data"):
        estimator.fit(X.ravel())
    with pytest.raises(ValueError, match="minimum of 1"):
        estimator.fit(np.empty((0, 1)))
    with pytest.raises(ValueError, match="masked"):
        estimator.fit(np.ma.masked_array(X, X > 0.5))
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit(pd.DataFrame({"x": pd.array([1, None], dtype="Int64")}))
    with pytest.raises(NotFittedError):
        estimator.predict(X)


@every_mean
def test_containers_and_types_mean_the_same(mean):
    integers = RNG.integers(0, 4, (60, 2))
    seeded = clone(mean).set_params(bounds=(0, 3), random_state=1)
    reference = seeded.fit(integers.astype(float)).mean_
    for rows in (
        integers,
        integers.astype(np.uint8),
        integers.astype(np.float32),
        np.asfortranarray(integers, dtype=float),
        integers.tolist(),
        pd.DataFrame(integers, columns=["a", "b"]),
        pd.DataFrame(integers, columns=["a", "b"]).convert_dtypes(),
        pl.DataFrame(integers, schema=["a", "b"]),
    ):
        np.testing.assert_array_equal(clone(seeded).fit(rows).mean_, reference)
    named = clone(seeded).fit(pl.DataFrame(integers, schema=["a", "b"]))
    assert list(named.feature_names_in_) == ["a", "b"]
    before = integers.copy()
    seeded.fit(integers)
    np.testing.assert_array_equal(integers, before)


@every_mean
def test_failed_fit_keeps_the_earlier_one(mean):
    fitted = clone(mean).fit(X)
    state = dict(vars(fitted))
    for rows, parameters in (
        (np.column_stack([X, [["a"]] * 120]), {}),
        (np.full((3, 2), np.nan), {}),
        (X, {"epsilon": [1, 2]}),
        (X, {"epsilon": np.full(120, -1.0)}),
    ):
        with pytest.raises(ValueError):
            fitted.fit(rows, **parameters)
        assert vars(fitted) == state


# -- levels --------------------------------------------------------------------------------


@every_mean
def test_levels_of_users_are_taken_from_whatever_holds_them(mean):
    seeded = clone(mean).set_params(random_state=2)
    reference = seeded.fit(X, epsilon=LEVELS)
    for levels in (
        LEVELS.tolist(),
        pd.Series(LEVELS, index=np.arange(120)[::-1]),
        pl.Series(LEVELS),
        LEVELS.astype(object),
        LEVELS.astype(np.longdouble),
    ):
        other = clone(seeded).fit(X, epsilon=levels)
        np.testing.assert_array_equal(other.weights_, reference.weights_)
        np.testing.assert_array_equal(other.mean_, reference.mean_)
    for levels in (2, np.int8(2), Fraction(2), np.full(120, 2, dtype=np.uint16)):
        other = clone(seeded).fit(X, epsilon=levels)
        assert other.mean_ == clone(seeded).set_params(epsilon=2.0).fit(X).mean_


def test_levels_labelled_in_another_order_raise():
    """By position the cautious would get the levels of the careless."""
    rows = pd.DataFrame(X[:4], index=list("abcd"))
    levels = pd.Series([0.01, 0.01, 5, 5], index=list("dcba"))
    for noise, name in (("laplace", "epsilon"), ("gaussian", "rho")):
        mean = ADPMMeanEstimator(bounds=(0, 1), noise=noise)
        with pytest.raises(ValueError, match=rf"{name}.loc\[X.index\]"):
            mean.fit(rows, **{name: levels})
        assert not hasattr(mean, "mean_")
        mean.fit(rows, **{name: levels.loc[rows.index]})
        assert (mean.privacy_spent_ <= [5, 5, 0.01, 0.01]).all()
        mean.fit(rows, **{name: levels.to_numpy()}).fit(rows.to_numpy(), **{name: levels})
    with pytest.raises(ValueError, match="index of weights"):
        AffineMeanEstimator(bounds=(0, 1), weights=levels).fit(rows)
    labelled = pd.Series(LEVELS, index=np.arange(120)[::-1])
    frame = pd.DataFrame(X, index=labelled.index)
    cv = KFold(3, shuffle=True, random_state=0)
    mean = ADPMMeanEstimator(bounds=(0, 1))
    scores = cross_validate(mean, frame, cv=cv, params={"epsilon": labelled}, error_score="raise")
    assert np.isfinite(scores["test_score"]).all()


def test_levels_without_a_float_are_rounded_down():
    third = Fraction(1, 3)
    mean = UniformMeanEstimator(third, bounds=(0, 1)).fit(X)
    assert (mean.privacy_spent_ <= np.float64(1 / 3)).all()
    assert all(Fraction(level) <= third for level in mean.effective_epsilon_.tolist())
    wide = np.nextafter(np.longdouble(1), np.longdouble(0))
    if wide != 1:  # where long doubles are longer
        assert (UniformMeanEstimator(bounds=(0, 1)).fit(X, epsilon=wide).privacy_spent_ < 1).all()
        boxed = np.full(120, wide, dtype=object)
        assert (UniformMeanEstimator(bounds=(0, 1)).fit(X, epsilon=boxed).privacy_spent_ < 1).all()
        assert (read_levels(boxed, 120, "epsilon") < 1).all()
    UniformMeanEstimator(10**400, bounds=(0, 1)).fit(X)


@every_mean
@pytest.mark.parametrize(
    ("levels", "error"),
    [
        (np.full(120, -0.1), ValueError),
        (np.append(LEVELS[1:], np.nan), ValueError),
        (LEVELS[:-1], ValueError),
        (LEVELS[:, np.newaxis], ValueError),
        (np.ma.masked_array(LEVELS, LEVELS > 1), ValueError),
        (LEVELS > 1, TypeError),
        (["1.0"] * 120, TypeError),
        (LEVELS.astype(complex), TypeError),
        ([None] * 120, TypeError),
        ([True] * 119 + [1.0j], TypeError),
    ],
)
def test_levels_that_are_none_raise(mean, levels, error):
    with pytest.raises(error, match="epsilon"):
        clone(mean).fit(X, epsilon=levels)


@every_mean
@pytest.mark.parametrize("epsilon", [-1.0, float("nan"), True, "1", None, 1j, LEVELS, [1.0]])
def test_parameter_that_is_no_level_raises(mean, epsilon):
    with pytest.raises((TypeError, ValueError), match="epsilon") as caught:
        clone(mean).set_params(epsilon=epsilon).fit(X)
    if np.iterable(epsilon) and not isinstance(epsilon, str):
        assert "fit(X, epsilon=levels)" in str(caught.value)


@every_mean
def test_levels_of_users_override_the_parameter_and_say_so(mean):
    seeded = clone(mean).set_params(random_state=0)
    reference = seeded.fit(X, epsilon=LEVELS).weights_
    with pytest.warns(UserWarning, match="parameter epsilon has no effect"):
        other = clone(seeded).set_params(epsilon=7.0).fit(X, epsilon=LEVELS)
    np.testing.assert_array_equal(other.weights_, reference)


def test_grid_over_epsilon_with_levels_given_is_not_silent():
    search = GridSearchCV(ADPMMeanEstimator(bounds=(0, 1)), {"epsilon": [0.5, 2.0]}, cv=3)
    with pytest.warns(UserWarning, match="override"):
        search.fit(X, epsilon=LEVELS)


def test_each_noise_has_levels_of_its_own_name():
    laplace, gaussian = (
        ADPMMeanEstimator(bounds=(0, 1), noise=n) for n in ("laplace", "gaussian")
    )
    with pytest.raises(ValueError, match='choose noise="gaussian"'):
        laplace.fit(X, rho=LEVELS)
    with pytest.raises(ValueError, match="zCDP only"):
        gaussian.fit(X, epsilon=LEVELS)
    with pytest.raises(ValueError, match="zCDP only"):
        clone(gaussian).set_params(epsilon=0.1).fit(X)
    with pytest.raises(ValueError, match="rho is the level of Gaussian"):
        clone(laplace).set_params(rho=0.1).fit(X)
    assert (gaussian.fit(X, rho=LEVELS).privacy_spent_ <= LEVELS).all()
    with pytest.warns(UserWarning, match="parameter rho has no effect"):
        clone(gaussian).set_params(rho=0.1).fit(X, rho=LEVELS)
    # Refitting with the other noise leaves nothing of the first behind.
    laplace.fit(X).set_params(noise="gaussian").fit(X)
    assert hasattr(laplace, "effective_rho_") and not hasattr(laplace, "effective_epsilon_")


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"noise": "uniform"}, ValueError),
        ({"noise": None}, ValueError),
        ({"solver": "fast"}, ValueError),
        ({"clip_output": "yes"}, TypeError),
        ({"variance": "known"}, ValueError),
        ({"variance": 0.0}, ValueError),
        ({"variance": -0.1}, ValueError),
        ({"variance": np.nan}, ValueError),
        ({"variance": 0.3}, ValueError),
        ({"variance": [0.1, 0.1]}, ValueError),
        ({"variance": True}, TypeError),
        ({"random_state": "seed"}, TypeError),
        ({"random_state": -1}, ValueError),
    ],
)
def test_other_wrong_parameters_raise(parameters, error):
    with (
        sklearn.config_context(skip_parameter_validation=True),
        pytest.raises(error, match=next(iter(parameters))),
    ):
        ADPMMeanEstimator(bounds=(0, 1)).set_params(**parameters).fit(X)


def test_weights_of_ones_own_as_array_and_callable():
    given = RNG.random(120)
    mean = AffineMeanEstimator(bounds=(0, 1), weights=given).fit(X, epsilon=LEVELS)
    np.testing.assert_allclose(mean.weights_, given / given.sum(), rtol=1e-12)
    eta = (mean.weights_ / LEVELS).max()
    assert mean.noise_scale_ == pytest.approx([eta], rel=1e-11)
    np.testing.assert_allclose(mean.privacy_spent_, mean.weights_ / eta, rtol=1e-11)
    seen = []

    def rule(levels):
        seen.append(levels)
        return np.minimum(levels, 0.7)

    by_rule = AffineMeanEstimator(bounds=(0, 1), weights=rule).fit(X, epsilon=LEVELS)
    np.testing.assert_array_equal(seen[0], LEVELS)
    np.testing.assert_allclose(by_rule.effective_epsilon_, np.minimum(LEVELS, 0.7), rtol=1e-9)
    assert by_rule.n_saturated_ == 40
    for weights, message in (
        (None, "required"),
        (given[:5], "pass a function"),
        (-given, "negative"),
        (0 * given, "all 0"),
        (given * np.nan, "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            AffineMeanEstimator(bounds=(0, 1), weights=weights).fit(X, epsilon=LEVELS)
    with pytest.raises(ValueError, match="must be 0"):
        AffineMeanEstimator(bounds=(0, 1), weights=given).fit(X, epsilon=np.append(LEVELS[1:], 0))


# -- results -------------------------------------------------------------------------------


@every_mean
def test_prediction_score_and_clipping(mean):
    rows = np.column_stack([X, X**2])
    fitted = clone(mean).set_params(random_state=0).fit(rows, epsilon=LEVELS)
    assert fitted.mean_.shape == (2,)
    np.testing.assert_array_equal(fitted.predict(rows[:7]), np.tile(fitted.mean_, (7, 1)))
    expected = -((rows - fitted.mean_) ** 2).mean()
    assert fitted.score(rows) == pytest.approx(expected, rel=1e-12)
    weights = RNG.random(120)
    weighted = -np.average(((rows - fitted.mean_) ** 2).mean(axis=1), weights=weights)
    assert fitted.score(rows, sample_weight=weights) == pytest.approx(weighted, rel=1e-12)
    free = clone(mean).set_params(clip_output=False, random_state=0)
    noisy = [free.set_params(random_state=i).fit(rows, epsilon=1e-4).mean_ for i in range(4)]
    assert (np.abs(noisy) > 1).any()
    clipped = clone(mean).set_params(random_state=0).fit(rows, epsilon=1e-4)
    assert ((clipped.mean_ >= 0) & (clipped.mean_ <= 1)).all()
    ends = clipped.confidence_interval()
    assert ends.shape == (2, 2) and ((ends >= 0) & (ends <= 1)).all()
    with pytest.raises(ValueError, match="level"):
        clipped.confidence_interval(1.0)


@every_mean
def test_bound_and_expected_error_agree(mean):
    fitted = clone(mean).fit(X, epsilon=LEVELS)
    assert mean.expected_mse(LEVELS) == pytest.approx(fitted.mse_bound_, rel=1e-10)
    assert mean.expected_mse(LEVELS, 0.01) < fitted.mse_bound_
    assert mean.expected_mse(np.zeros(3)) == np.inf
    for levels in (None, 1.0):
        with pytest.raises(ValueError, match="one level for every user"):
            mean.expected_mse(levels)
    with pytest.raises(ValueError, match="variance exceeds"):
        mean.expected_mse(LEVELS, 0.26)
    assert mean.expected_mse(LEVELS, 0.0) > 0


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_function_that_changes_the_levels_does_not_change_what_is_promised(noise):
    name = "rho" if noise == "gaussian" else "epsilon"
    levels = np.array([0.01, 0.02, 0.3, 1.0])
    seen = []

    def relative(given):
        seen.append(given.copy())
        given /= given.min()
        return given

    mean = AffineMeanEstimator(bounds=(0, 1), weights=relative, noise=noise)
    for _ in range(2):
        mean.fit(X[:4], **{name: levels})
        assert (mean.privacy_spent_ <= levels).all()
        eta = (mean.weights_ / (np.sqrt(2 * levels) if noise == "gaussian" else levels)).max()
        assert mean.noise_scale_[0] == pytest.approx(eta, rel=1e-9)
        error = mean.expected_mse(**{name: levels})
        assert error == pytest.approx(mean.mse_bound_, rel=1e-9)
    # The function gets the levels themselves, not the squares of their roots.
    for given in seen:
        np.testing.assert_array_equal(given, levels)

    def use_all(given):
        given[given == 0] = 1
        return given

    with pytest.raises(ValueError, match="= 0 has a positive weight"):
        AffineMeanEstimator(bounds=(0, 1), weights=use_all, noise=noise).fit(
            X[:4], **{name: [0, 1, 1, 1]}
        )


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_levels_that_differ_in_the_last_bit_are_groups_everywhere(noise):
    """Their square roots may be equal."""
    name = "rho" if noise == "gaussian" else "epsilon"
    levels = np.repeat([2.9, np.nextafter(2.9, 3.0)], 4)
    assert np.unique(np.sqrt(2 * levels)).size == 1
    mean = LocalMeanEstimator(bounds=(0, 1), noise=noise).fit(X[:8], **{name: levels})
    assert mean.levels_.size == 2
    assert mean.expected_mse(**{name: levels}) == pytest.approx(mean.mse_bound_, rel=1e-12)


@every_mean
def test_extreme_bounds_and_levels_give_finite_errors(mean):
    """Warnings, of overflow say, are errors here."""
    for bounds in ((-5e49, 5e49), (0, 1), (0, 1e-50)):
        for levels in ([1e-90, 1e-90], [1e-89, 1.0], [1e90, 1e89], [1.0, 80.0], [1.0, 2000.0]):
            wide = clone(mean).set_params(bounds=bounds).fit(X[:2], epsilon=levels)
            assert np.isfinite(wide.mse_bound_) and np.isfinite(wide.weights_).all()
            assert np.isfinite(wide.confidence_interval()).all()


@every_mean
def test_pickles_copies_and_clones(mean):
    fitted = clone(mean).fit(X, epsilon=LEVELS)
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(other.mean_, fitted.mean_)
        np.testing.assert_array_equal(other.confidence_interval(), fitted.confidence_interval())
    assert not hasattr(clone(fitted), "mean_")


@pytest.mark.parametrize(
    ("variance", "scales"),
    [
        (1.0, [0.0]),
        (0.0, [1.0]),
        (1e-12, [1.0]),
        (1.0, [1e-3]),
        (1.0, [3.0]),
        (0.3, [0.5, 0.5]),
        (1e-6, [0.5, 0.2, 1e-5]),
        (2.0, [0.1, 0.2, 0.3, 0.4]),
        (0.0, [1.0, 1.0]),
    ],
)
def test_quantiles_against_numerical_convolution(variance, scales):
    """The distribution function on a fine grid, by the fast Fourier transform."""
    unit = np.sqrt(variance + 2 * np.square(scales).sum())
    # φ sampled densely enough for a period of 160 deviations, and far enough for steps of 1e-3.
    n, period = 2**18, 160 * unit
    frequencies = 2 * np.pi * np.fft.fftfreq(n, period / n)
    log_phi = -variance * frequencies**2 / 2
    for scale in scales:
        log_phi -= np.log1p((scale * frequencies) ** 2)
    density = np.fft.fftshift(np.fft.ifft(np.exp(log_phi)).real) * n / period
    grid = (np.arange(n) - n // 2) * period / n
    for level in (0.1, 0.5, 0.9, 0.95, 0.999):
        q = central_quantile(level, variance, np.array(scales))
        inside = np.abs(grid) <= q
        probability = density[inside].sum() * period / n
        # One grid step at each end.
        assert probability == pytest.approx(level, abs=3 * density.max() * period / n)
    assert central_quantile(0.0001, variance, np.array(scales)) < 1e-3 * unit


@pytest.mark.parametrize("ratio", [1e3, 1e6, 1e7, 1e8, 3e8, 9.9e8, 1.1e9])
def test_quantiles_with_next_to_no_noise_are_those_of_the_normal(ratio):
    """Laplace noise of scale b adds b² to half the variance: the quantile moves by about b² q."""
    for level in (0.5, 0.95, 1 - 1e-12):
        exact = -ndtri((1 - level) / 2)
        found = central_quantile(level, 1.0, np.array([1 / ratio]))
        assert found == pytest.approx(exact, rel=exact**2 * 10 / ratio**2 + 1e-12)


@pytest.mark.parametrize("scales", [[0.0], [1.0], [1.0, 1.0], [0.1, 1e-5, 3.0]])
def test_quantiles_at_the_largest_level_below_one(scales):
    level = 1 - 2.0**-53
    for variance in (1e-30, 1.0, 1e30):
        deviation = np.sqrt(variance + 2 * np.square(scales).sum())
        assert 8 * deviation < central_quantile(level, variance, np.array(scales)) < 50 * deviation


# -- searches, metadata and pipelines --------------------------------------------------------


def test_grid_search_over_solver_noise_and_level():
    grid = [
        {"noise": ["laplace"], "solver": ["exact", "cvxpy"], "epsilon": [0.05, 5.0]},
        {"noise": ["gaussian"], "solver": ["exact", "cvxpy"], "rho": [0.001, 5.0]},
    ]
    search = GridSearchCV(ADPMMeanEstimator(bounds=(0, 1), random_state=0), grid, cv=4).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_params_
    assert best.get("epsilon", best.get("rho")) == 5.0
    assert search.best_estimator_.mean_[0] == pytest.approx(X.mean(), abs=0.05)


class Recording(ADPMMeanEstimator):
    """Keeps what fit was called with."""

    calls = []  # noqa: RUF012

    def fit(self, X, y=None, *, epsilon=None, rho=None):
        Recording.calls.append((X, epsilon))
        return super().fit(X, y, epsilon=epsilon, rho=rho)


def test_levels_are_routed_and_sliced_by_cross_validation():
    Recording.calls.clear()
    levels = np.linspace(0.1, 4, 120)
    with sklearn.config_context(enable_metadata_routing=True):
        mean = Recording(bounds=(0, 1)).set_fit_request(epsilon=True)
        cv = KFold(4, shuffle=True, random_state=0)
        result = cross_validate(mean, X, cv=cv, params={"epsilon": levels})
        assert np.isfinite(result["test_score"]).all()
        for (train, _), (rows, given) in zip(cv.split(X), Recording.calls, strict=True):
            np.testing.assert_array_equal(rows, X[train])
            np.testing.assert_array_equal(given, levels[train])
        search = GridSearchCV(mean, {"solver": ["exact", "cvxpy"]}, cv=3)
        search.fit(X, epsilon=pd.Series(levels))
        np.testing.assert_allclose(
            search.best_estimator_.weights_,
            ADPMMeanEstimator(bounds=(0, 1)).fit(X, epsilon=levels).weights_,
            rtol=1e-5,
        )


def test_levels_pass_through_a_pipeline_with_public_constants():
    minutes = X * 300 - 60
    scaler = FunctionTransformer(scale_to_hours)
    mean = ADPMMeanEstimator(bounds=(-1, 4), random_state=0)
    pipeline = make_pipeline(scaler, mean)
    pipeline.fit(minutes, adpmmeanestimator__epsilon=LEVELS)
    direct = clone(mean).fit(minutes / 60, epsilon=LEVELS)
    np.testing.assert_array_equal(pipeline[-1].mean_, direct.mean_)
    np.testing.assert_array_equal(pipeline.predict(minutes), direct.predict(minutes / 60))
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(scaler, clone(mean).set_fit_request(epsilon=True))
        result = cross_validate(routed, minutes, cv=3, params={"epsilon": LEVELS})
        assert np.isfinite(result["test_score"]).all()
        search = GridSearchCV(routed, {"adpmmeanestimator__solver": ["exact", "cvxpy"]}, cv=3)
        search.fit(minutes, epsilon=LEVELS)
        assert search.best_estimator_[-1].weights_.shape == (120,)


def test_nothing_is_said_when_nothing_is_wrong():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for mean in FAMILY:
            fitted = clone(mean).fit(X, epsilon=LEVELS)
            fitted.confidence_interval()
            repr(fitted)
