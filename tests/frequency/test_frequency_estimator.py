"""FrequencyEstimator: channels, statistics, decoders, intervals, predictions."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.stats import binom
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from skldp import ChannelError, FrequencyEstimator, KRRTransformer, RapporTransformer
from skldp.channels import KRRChannel, ProductChannel, RapporChannel, Reports, attach_channel
from skldp.datasets import geometric_distribution, sample_users
from skldp.decoding import normalize_simplex, project_simplex
from skldp.exceptions import DecodingError

WORDS = ("apple", "fig", "pear")
CHANNELS = [
    KRRChannel(1.0, 3, WORDS),
    RapporChannel(1.0, 3, WORDS),
    RapporChannel(1.0, 3, WORDS, packed=True),
    KRRChannel(0.5, 300),
    ProductChannel([KRRChannel(1.0, 3, WORDS), RapporChannel(2.0, 9, packed=True)]),
]


def _reports(channel, n=500, seed=0):
    rng = np.random.default_rng(seed)
    codes = [rng.binomial(one.n_categories - 1, 0.3, n) for one in channel.attributes]
    return channel.randomize(np.column_stack(codes), random_state=seed)


def _lists(value):
    return value if isinstance(value, list) else [value]


# -- which channel ---------------------------------------------------------------------------


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_given_and_carried_channels_mean_the_same(channel):
    reports = _reports(channel)
    plain = np.asarray(reports)
    carried = FrequencyEstimator().fit(reports)
    for given in (channel, channel.to_dict(), list(channel.attributes)):
        for X in (plain, plain.tolist(), plain.astype(float), reports, pd.DataFrame(plain)):
            other = FrequencyEstimator(channel=given).fit(X)
            assert other.channel_ == channel
            for one, two in zip(
                _lists(carried.frequencies_), _lists(other.frequencies_), strict=True
            ):
                np.testing.assert_array_equal(one, two)


def test_without_a_channel_nothing_is_decoded():
    with pytest.raises(ChannelError, match="put one mechanism after that step"):
        FrequencyEstimator().fit(np.zeros((10, 1), int))
    with pytest.raises(ChannelError, match="pass channel="):
        FrequencyEstimator().fit_counts([1, 2, 3])


def test_two_different_channels_raise():
    reports = _reports(KRRChannel(1.0, 3))
    for other in (KRRChannel(2.0, 3), KRRChannel(1.0, 4), RapporChannel(1.0, 3)):
        with pytest.raises(ChannelError, match="another channel"):
            FrequencyEstimator(channel=other).fit(reports)
        fitted = FrequencyEstimator().fit(reports)
        with pytest.raises(ChannelError):
            fitted.predict(_reports(other))
        with pytest.raises(ChannelError):
            fitted.partial_fit(_reports(other))
        with pytest.raises(ChannelError):
            fitted.merge(FrequencyEstimator().fit(_reports(other)))
        with pytest.raises(ChannelError, match="another channel"):
            FrequencyEstimator(channel=KRRChannel(1.0, 3)).merge(
                FrequencyEstimator().fit(_reports(other))
            )
        with pytest.raises(ChannelError, match="another channel"):
            FrequencyEstimator(channel=KRRChannel(1.0, 3)).fit_counts(
                [1, 2, 3], 6, channel=KRRChannel(2.0, 3)
            )
        assert fitted.n_reports_ == 500 and fitted.counts_.sum() == 500


def test_a_one_column_channel_applies_to_every_column():
    one = KRRChannel(0.5, 4)
    table = np.column_stack([_reports(one, seed=1), _reports(one, seed=2)])
    fitted = FrequencyEstimator(channel=one).fit(table)
    assert fitted.channel_ == ProductChannel([one, one]) and fitted.channel_.epsilon == 1.0
    assert len(fitted.frequencies_) == 2
    # A mechanism on two columns spends ε/2 on each, and may be named by one column's channel.
    carried = KRRTransformer(1.0, categories=4).fit_transform(table)
    assert FrequencyEstimator(channel=one).fit(carried).channel_ == fitted.channel_


def test_one_dimension_is_one_column():
    channel = KRRChannel(1.0, 3)
    column = np.asarray(_reports(channel))[:, 0]
    reference = FrequencyEstimator(channel=channel).fit(column.reshape(-1, 1))
    for X in (column, column.tolist(), pd.Series(column, name="answer")):
        fitted = FrequencyEstimator(channel=channel).fit(X)
        np.testing.assert_array_equal(fitted.counts_, reference.counts_)
        np.testing.assert_array_equal(fitted.predict(X), reference.predict(column))
    with pytest.raises((ChannelError, ValueError)):
        FrequencyEstimator(channel=RapporChannel(1.0, 3)).fit(column)


@pytest.mark.parametrize(
    ("channel", "X", "message"),
    [
        (KRRChannel(1.0, 3), [[3]], "larger"),
        (KRRChannel(1.0, 3), [[-1]], "Negative values in data passed to FrequencyEstimator"),
        (KRRChannel(1.0, 3), [[0.5]], "whole numbers"),
        (KRRChannel(1.0, 3), [["a"]], "string"),
        (KRRChannel(1.0, 3), [[np.nan]], "NaN"),
        (KRRChannel(1.0, 3), [[None]], "NaN|object"),
        (KRRChannel(1.0, 3), np.empty((0, 1)), "0 sample"),
        (RapporChannel(1.0, 3), [[0, 1]], "3 column"),
        (RapporChannel(1.0, 3), [[0, 1, 1, 1]], "3 column"),
        (RapporChannel(1.0, 3), [[0, 1, 2]], "larger than 1"),
        (RapporChannel(1.0, 3, packed=True), [[8]], "beyond the 3 symbols"),
        (RapporChannel(1.0, 16, packed=True), [[256, 0]], "exceed 255"),
        (RapporChannel(1.0, 16, packed=True), [[0, 0, 0]], "2 column"),
        (ProductChannel([KRRChannel(1.0, 3)] * 2), [[0]], "2 columns"),
        (ProductChannel([KRRChannel(1.0, 3)] * 2), [[0, 3]], "larger"),
    ],
)
def test_reports_of_other_channels_are_refused(channel, X, message):
    for assume_finite in (False, True):
        match = None if assume_finite and message in ("NaN", "string") else message
        with (
            sklearn.config_context(assume_finite=assume_finite),
            pytest.raises(ValueError, match=match),
        ):
            FrequencyEstimator(channel=channel).fit(X)


def test_zero_epsilon_is_refused_before_anything_is_counted():
    for mechanism in (KRRTransformer, RapporTransformer):
        reports = mechanism(0.0, categories=3).fit_transform([0, 1, 2, 2])
        for fit in (FrequencyEstimator().fit, FrequencyEstimator().partial_fit):
            with pytest.raises(ChannelError, match="larger epsilon"):
                fit(reports)
    with pytest.raises(ChannelError, match="larger epsilon"):
        FrequencyEstimator().fit_counts([1, 2], 3, channel=KRRChannel(0, 2))


# -- frames ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [KRRTransformer, RapporTransformer])
def test_pandas_output_keeps_the_channel(mechanism, tmp_path):
    frame = pd.DataFrame({"a": [0, 1, 2, 1], "b": [1, 1, 0, 0]}, index=list("wxyz"))
    fitted = mechanism(40.0, categories=3).set_output(transform="pandas").fit(frame)
    reports = fitted.transform(frame)
    assert isinstance(reports, pd.DataFrame) and reports.index.tolist() == list("wxyz")
    assert reports.columns.tolist() == fitted.get_feature_names_out().tolist()
    reference = FrequencyEstimator().fit(fitted.set_output(transform="default").transform(frame))
    reports.to_parquet(tmp_path / "reports.parquet")
    for kept in (
        reports,
        reports.copy(),
        reports.iloc[[0, 1, 2, 3]],
        pd.concat([reports.iloc[:2], reports.iloc[2:]]),
        pickle.loads(pickle.dumps(reports)),
        pd.read_parquet(tmp_path / "reports.parquet"),
    ):
        fitted_again = FrequencyEstimator().fit(kept)
        assert fitted_again.channel_ == reference.channel_
        np.testing.assert_allclose(fitted_again.frequencies_, reference.frequencies_)
        assert fitted_again.feature_names_in_.tolist() == reports.columns.tolist()
    values = frame.set_axis(reports.columns[:2], axis=1) if reports.shape[1] == 2 else None
    for broken in (
        *([reports.assign(**values)] if values is not None else []),
        reports == 1,
        reports.isin([1]),
        reports.astype(int),
        reports / 2,
        reports.rank(),
        reports[reports.columns[::-1]],
        reports.rename(columns={reports.columns[0]: "z"}),
        reports.drop(columns=reports.columns[0]),
        reports.assign(extra=0),
    ):
        with pytest.raises(ChannelError, match="columns of this frame"):
            FrequencyEstimator().fit(broken)
    with pytest.raises(ChannelError, match="carries no channel"):
        FrequencyEstimator().fit(pd.DataFrame(reports.to_numpy()))


def test_a_series_of_reports_keeps_the_channel():
    fitted = KRRTransformer(categories=3).set_output(transform="pandas")
    frame = fitted.fit_transform(pd.DataFrame({"a": [0, 1, 2]}))
    server = FrequencyEstimator().fit(frame["a"])
    assert server.channel_ == fitted.channel_


def test_global_pandas_output_keeps_the_channel_and_polars_is_refused():
    with sklearn.config_context(transform_output="pandas"):
        pipe = make_pipeline(KRRTransformer(2.0, categories=3), FrequencyEstimator())
        assert pipe.fit([[0], [1]])[-1].channel_ == KRRChannel(2.0, 3)
    mechanism = KRRTransformer(categories=3)
    with pytest.raises(ValueError, match="Polars"):
        mechanism.set_output(transform="polars")
    with (
        sklearn.config_context(transform_output="polars"),
        pytest.raises(ValueError, match="Polars"),
    ):
        mechanism.fit([[0]]).transform([[0]])


def test_channels_are_attached_by_hand_too():
    channel = KRRChannel(1.0, 3)
    frame = pd.DataFrame({"report": [0, 1, 2, 2]})
    assert FrequencyEstimator().fit(attach_channel(frame, channel)).channel_ == channel
    with pytest.raises(ChannelError, match="has 2"):
        attach_channel(pd.DataFrame({"a": [0], "b": [1]}), channel)


def test_attrs_are_cheap_to_copy():
    # pandas deep-copies attrs at every operation: long alphabets must be shared.
    channel = KRRChannel(1.0, 1000, tuple(f"word {i}" for i in range(1000)))
    frame = attach_channel(pd.DataFrame({"report": [1, 2, 3]}), channel)
    assert copy.deepcopy(frame.attrs)["skldp"] is frame.attrs["skldp"]


# -- statistics ------------------------------------------------------------------------------


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_batches_merge_and_counts_agree(channel):
    reports = _reports(channel)
    whole = FrequencyEstimator().fit(reports)
    streamed = FrequencyEstimator()
    for batch in np.array_split(reports, 7):
        streamed.partial_fit(batch)
        assert streamed._decoding is None  # decoded when asked for, not at every batch
    merged = FrequencyEstimator()
    for batch in np.array_split(reports, 3):
        merged.merge(FrequencyEstimator().partial_fit(batch))
    counted = FrequencyEstimator().fit_counts(whole.counts_, whole.n_reports_, channel=channel)
    resumed = pickle.loads(pickle.dumps(FrequencyEstimator().partial_fit(reports[:99])))
    resumed.partial_fit(reports[99:])
    for other in (streamed, merged, counted, resumed):
        assert other.n_features_in_ == whole.n_features_in_ == channel.width
        for name in ("counts_", "n_reports_", "frequencies_", "raw_frequencies_"):
            for one, two in zip(
                _lists(getattr(whole, name)), _lists(getattr(other, name)), strict=True
            ):
                np.testing.assert_array_equal(one, two)
    assert _lists(whole.n_reports_) == [500] * len(channel.attributes)


def test_fit_forgets_and_merge_leaves_the_other_alone():
    a, b = _reports(KRRChannel(1.0, 3), 100, 1), _reports(KRRChannel(1.0, 3), 50, 2)
    fitted = FrequencyEstimator().fit(a).fit(b)
    assert fitted.n_reports_ == 50
    other = FrequencyEstimator().fit(a)
    empty = FrequencyEstimator().merge(other)
    empty.partial_fit(b)
    assert (other.n_reports_, empty.n_reports_) == (100, 150)
    assert FrequencyEstimator().fit(a).merge(fitted).n_reports_ == 150
    assert fitted.fit(_reports(KRRChannel(2.0, 5), 60)).n_reports_ == 60
    with pytest.raises(NotFittedError):
        fitted.merge(FrequencyEstimator())
    with pytest.raises(TypeError, match="merge"):
        fitted.merge([1, 2])


def test_feature_names_follow_the_reports():
    named = KRRTransformer(categories=3).set_output(transform="pandas")
    reports = named.fit_transform(pd.DataFrame({"answer": [0, 1, 2]}))
    fitted = FrequencyEstimator().fit(reports)
    assert FrequencyEstimator().merge(fitted).feature_names_in_.tolist() == ["answer"]
    fitted.fit_counts([1, 2, 3], channel=KRRChannel(2.0, 3))
    assert not hasattr(fitted, "feature_names_in_")
    with pytest.raises(ValueError, match="itself"):
        fitted.merge(fitted)


def test_failed_fits_leave_the_estimator_as_it_was():
    channel = KRRChannel(1.0, 3)
    fitted = FrequencyEstimator(channel=channel).fit(_reports(channel))
    before = pickle.dumps(fitted)
    wrong = (
        lambda: fitted.fit(np.full((10, 3), 7)),
        lambda: fitted.fit([["x"]]),
        lambda: fitted.partial_fit(np.zeros((10, 3))),
        lambda: fitted.fit_counts([1, 2], channel=channel),
    )
    for call in wrong:
        with pytest.raises(ValueError):
            call()
        assert pickle.dumps(fitted) == before
    fitted.set_params(constraints=_impossible)
    changed = pickle.dumps(fitted)
    for call in (lambda: fitted.fit([[1]]), lambda: fitted.fit_counts([1, 2, 3])):
        with pytest.raises(ValueError, match="no frequencies"):
            call()
        assert pickle.dumps(fitted) == changed


def test_what_cannot_be_decoded_can_still_be_displayed():
    stale = FrequencyEstimator(channel=KRRChannel(1.0, 3), constraints=_impossible)
    stale.partial_fit([[0], [1]])
    assert not hasattr(stale, "frequencies_")
    with pytest.raises(DecodingError, match="no frequencies meet"):
        stale.frequencies_  # noqa: B018
    with pytest.raises(DecodingError):
        stale.confidence_interval()
    assert "FrequencyEstimator" in stale._repr_html_()


def test_failed_batches_add_nothing():
    channel = KRRChannel(1.0, 3)
    fitted = FrequencyEstimator(channel=channel).fit(_reports(channel))
    before = fitted.counts_.copy()
    for bad in ([[7]], [[np.nan]], np.empty((0, 1)), [["x"]]):
        with pytest.raises(ValueError):
            fitted.partial_fit(bad)
    fitted.set_params(projection="none")
    with pytest.raises(ValueError, match="projection"):
        fitted.partial_fit([[1]])
    np.testing.assert_array_equal(fitted.counts_, before)


def test_group_by_is_enough():
    # SELECT report, COUNT(*) ... GROUP BY report: codes that nobody reported are absent.
    channel = KRRChannel(1.0, 5)
    for counts in ({0: 70, 4: 30}, pd.Series({0: 70, 4: 30}), [70, 0, 0, 0, 30]):
        fitted = FrequencyEstimator(channel=channel).fit_counts(counts)
        assert fitted.counts_.tolist() == [70, 0, 0, 0, 30] and fitted.n_reports_ == 100
    bits = FrequencyEstimator().fit_counts([40, 50], 100, channel=RapporChannel(1.0, 2))
    assert bits.n_reports_ == 100
    pair = ProductChannel([channel, RapporChannel(1.0, 2)])
    both = FrequencyEstimator().fit_counts([{0: 70, 4: 30}, [40, 50]], 100, channel=pair)
    assert both.n_reports_ == [100, 100]
    uneven = FrequencyEstimator().fit_counts([{0: 7}, [4, 5]], [7, 10], channel=pair)
    assert uneven.n_reports_ == [7, 10]
    for counts, n in (
        ({5: 1}, None),
        ({"0": 1}, None),
        ({True: 1}, None),
        ({0: 1.5}, None),
        ([0, 0, 0, 0, 0], None),
        ([1, 2, 3, 4, 5], 16),
    ):
        with pytest.raises(ChannelError):
            FrequencyEstimator(channel=channel).fit_counts(counts, n)
    with pytest.raises(ChannelError, match="pass n_reports"):
        FrequencyEstimator(channel=RapporChannel(1.0, 2)).fit_counts([1, 2])
    with pytest.raises(ChannelError, match="2 attributes"):
        FrequencyEstimator(channel=pair).fit_counts([[1, 1, 1, 1, 1]], 5)


def test_reports_are_not_mutated():
    channel = RapporChannel(1.0, 9, packed=True)
    plain = np.array(_reports(channel))
    before = plain.copy()
    fitted = FrequencyEstimator(channel=channel).fit(plain)
    fitted.predict_proba(plain)
    fitted.score(plain)
    np.testing.assert_array_equal(plain, before)


# -- decoding --------------------------------------------------------------------------------


@pytest.mark.parametrize("channel", CHANNELS[:4], ids=repr)
def test_decoders_and_projections(channel):
    reports = _reports(channel, 80)
    raw = FrequencyEstimator(projection=None).fit(reports)
    np.testing.assert_array_equal(raw.frequencies_, raw.raw_frequencies_)
    np.testing.assert_allclose(
        raw.frequencies_,
        (raw.counts_ / 80 - float(channel.offset)) / float(channel.slope),
    )
    np.testing.assert_allclose(
        raw.standard_errors_, np.sqrt(np.diag(channel.covariance(raw.frequencies_, 80)))
    )
    simplex = FrequencyEstimator(decoder="inversion").fit(reports)
    np.testing.assert_array_equal(simplex.frequencies_, project_simplex(raw.frequencies_))
    normalized = FrequencyEstimator(projection="normalize").fit(reports)
    np.testing.assert_array_equal(normalized.frequencies_, normalize_simplex(raw.frequencies_))
    likely = FrequencyEstimator(decoder="maximum_likelihood").fit(reports)
    np.testing.assert_allclose(
        likely.frequencies_, channel.maximum_likelihood(likely.counts_, 80), atol=1e-12
    )
    for fitted in (simplex, normalized, likely):
        assert fitted.frequencies_.min() >= 0
        assert fitted.frequencies_.sum() == pytest.approx(1, abs=1e-12)
        np.testing.assert_array_equal(fitted.raw_frequencies_, raw.raw_frequencies_)


def _second_is_quarter(p):
    return [p[1] == 0.25]


def _first_is_tenth(p):
    return [p[0] == 0.1]


def _decreasing(p):
    return [p[:-1] >= p[1:]]


def _impossible(p):
    return [p[0] >= 2]


@pytest.mark.parametrize("decoder", ["inversion", "maximum_likelihood"])
@pytest.mark.parametrize("channel", CHANNELS[:3], ids=repr)
def test_constraints_hold_and_help(channel, decoder):
    reports = _reports(channel, 200)
    fitted = FrequencyEstimator(decoder=decoder, constraints=_second_is_quarter).fit(reports)
    p = fitted.frequencies_
    assert p[1] == pytest.approx(0.25, abs=1e-6)
    assert p.min() >= 0 and p.sum() == pytest.approx(1, abs=1e-6)
    free = FrequencyEstimator(projection=None, constraints=_second_is_quarter).fit(reports)
    assert free.frequencies_[1] == pytest.approx(0.25, abs=1e-6)
    np.testing.assert_allclose(free.frequencies_[[0, 2]], free.raw_frequencies_[[0, 2]], atol=1e-6)
    assert pickle.loads(pickle.dumps(clone(fitted))).constraints is _second_is_quarter


def test_constraints_are_the_weighted_least_squares_fit():
    channel = KRRChannel(2.0, 4)
    fitted = FrequencyEstimator(projection=None, constraints=_decreasing)
    fitted.fit_counts([10, 30, 25, 35], channel=channel)
    # Isotonic regression is the same problem; scikit-learn solves it exactly.
    from sklearn.isotonic import isotonic_regression

    expected = isotonic_regression(
        fitted.raw_frequencies_,
        sample_weight=1 / fitted.standard_errors_**2,
        increasing=False,
    )
    np.testing.assert_allclose(fitted.frequencies_, expected, atol=1e-6)


def test_constraints_work_where_nothing_was_counted():
    # A count of 0 has no estimated variance, which must not be an infinite weight.
    fitted = FrequencyEstimator(constraints=_second_is_quarter)
    fitted.fit_counts([70, 30, 0], channel=KRRChannel(20.0, 3))
    np.testing.assert_allclose(fitted.frequencies_, [0.75, 0.25, 0], atol=0.02)


def test_constraints_that_cannot_hold_raise():
    channel = KRRChannel(1.0, 3)
    estimator = FrequencyEstimator(channel=channel, constraints=_impossible)
    with pytest.raises(ValueError, match="no frequencies meet the constraints"):
        estimator.fit_counts([1, 2, 3])
    for constraints, error in (
        ("p >= 0", TypeError),
        ([None, None], ValueError),
        ([3], TypeError),
    ):
        with pytest.raises(error):
            FrequencyEstimator(channel=channel, constraints=constraints).fit([[1]])
    with pytest.raises(ValueError, match="normalize"):
        FrequencyEstimator(channel=channel, constraints=_decreasing, projection="normalize").fit(
            [[1]]
        )
    pair = ProductChannel([channel, channel])
    with pytest.raises(ValueError, match="2 attribute"):
        FrequencyEstimator(channel=pair, constraints=_decreasing).fit([[1, 1]])
    fitted = FrequencyEstimator(channel=pair, constraints=[None, _first_is_tenth])
    fitted.fit([[1, 1], [0, 2]])
    assert fitted.frequencies_[1][0] == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize(
    "parameters", [{"decoder": "em"}, {"decoder": None}, {"projection": "clip"}], ids=repr
)
def test_unknown_options_raise_at_fit(parameters):
    with (
        sklearn.config_context(skip_parameter_validation=True),
        pytest.raises(ValueError, match="must be one of"),
    ):
        FrequencyEstimator(channel=KRRChannel(1.0, 3), **parameters).fit([[1]])


# -- intervals -------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("decoder", ["inversion", "maximum_likelihood"])
@pytest.mark.parametrize("projection", [None, "simplex", "normalize"])
@pytest.mark.parametrize("cls", [KRRChannel, RapporChannel])
def test_intervals_cover_the_truth_and_hold_the_estimate(cls, projection, decoder):
    # k = 40 at ε = ln 2 and n = 2000: projections move the estimate by several standard errors.
    k, n, n_trials, level = 40, 2000, 1000, 0.9
    channel, p = cls(np.log(2), k), geometric_distribution(k)
    estimator = FrequencyEstimator(channel=channel, projection=projection, decoder=decoder)
    covered, together = np.zeros(k), 0
    for counts in channel.simulate_counts(p, n, n_trials, random_state=71):
        fitted = estimator.fit_counts(counts, n)
        lower, upper = fitted.confidence_interval(level).T
        assert (lower <= fitted.frequencies_).all() and (fitted.frequencies_ <= upper).all()
        covered += (lower <= p) & (p <= upper)
        lower, upper = fitted.confidence_interval(level, simultaneous=True).T
        together += ((lower <= p) & (p <= upper)).all()
    # Coverage is at least the level: fewer hits than this happen with probability 1e-6 in all.
    assert covered.min() >= binom.ppf(1e-6 / (k + 1), n_trials, level)
    assert together >= binom.ppf(1e-6 / (k + 1), n_trials, level)
    # ... and not vacuous: intervals twice as short would fail.
    assert covered.mean() < n_trials * 0.99


def test_simultaneous_intervals_count_every_attribute():
    channel = ProductChannel([KRRChannel(1.0, 3), KRRChannel(1.0, 5)])
    fitted = FrequencyEstimator(projection=None).fit(_reports(channel))
    np.testing.assert_allclose(
        fitted.confidence_interval(0.9, simultaneous=True),
        fitted.confidence_interval(1 - 0.1 / 8),
        rtol=1e-12,
    )


def test_levels_next_to_one_work():
    channel = KRRChannel(1.0, 4096)
    counts = np.zeros(4096, dtype=int)
    counts[0] = 50
    fitted = FrequencyEstimator(channel, projection=None).fit_counts(counts)
    wide = fitted.confidence_interval(1 - 1e-15, simultaneous=True)
    narrow = fitted.confidence_interval(1 - 1e-13, simultaneous=True)
    assert np.isfinite(wide).all() and (wide[:, 1] > narrow[:, 1])[1:].all()
    # Exactly: the upper end for no hits solves (1 - m)^n = tail.
    tail = (1.0 - (1.0 - 1e-15)) / 4096 / 2
    expected = (-np.expm1(np.log(tail) / 50) - float(channel.offset)) / float(channel.slope)
    np.testing.assert_allclose(wide[1:, 1], expected, rtol=1e-9)


def test_raw_intervals_are_not_cut_and_others_are():
    channel = KRRChannel(0.5, 10)
    counts = [5, 15, 10, 10, 10, 10, 10, 10, 10, 10]
    raw = FrequencyEstimator(channel, projection=None).fit_counts(counts)
    cut = FrequencyEstimator(channel).fit_counts(counts)
    assert raw.confidence_interval().min() < 0
    interval = cut.confidence_interval()
    assert interval.shape == (10, 2) and interval.min() >= 0 and interval.max() <= 1
    wide = cut.confidence_interval(simultaneous=True)
    assert (wide[:, 0] <= interval[:, 0]).all() and (wide[:, 1] >= interval[:, 1]).all()
    for level in (0, 1, -1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="level"):
            cut.confidence_interval(level)
    with pytest.raises(TypeError, match="level"):
        cut.confidence_interval("95%")


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_frame_shows_everything(channel):
    fitted = FrequencyEstimator().fit(_reports(channel))
    frame = fitted.to_frame(level=0.8)
    intervals = fitted.confidence_interval(0.8)
    assert len(frame) == len(intervals) == sum(c.n_categories for c in channel.attributes)
    np.testing.assert_array_equal(frame[["lower", "upper"]].to_numpy(), intervals)
    np.testing.assert_array_equal(frame["frequency"], np.concatenate(_lists(fitted.frequencies_)))
    assert ("attribute" in frame) == (len(channel.attributes) > 1)
    assert frame["category"].tolist()[:3] == ["apple", "fig", "pear"] or frame["category"][2] == 2


# -- predictions -----------------------------------------------------------------------------


@pytest.mark.parametrize("channel", CHANNELS[:3], ids=repr)
@pytest.mark.parametrize("projection", [None, "simplex"])
def test_posterior_is_bayes_rule(channel, projection):
    reports = _reports(channel, 60)
    fitted = FrequencyEstimator(projection=projection).fit(reports)
    prior = project_simplex(fitted.frequencies_)
    likelihood = np.exp(channel.log_likelihood(np.asarray(reports)))
    joint = prior * likelihood
    proba = fitted.predict_proba(reports)
    np.testing.assert_allclose(proba, joint / joint.sum(axis=1, keepdims=True), atol=1e-12)
    assert fitted.predict(reports).tolist() == [WORDS[j] for j in joint.argmax(axis=1)]
    assert fitted.score(reports) == pytest.approx(np.log(joint.sum(axis=1)).mean())
    weights = np.arange(60)
    assert fitted.score(reports, sample_weight=weights) == pytest.approx(
        np.average(np.log(joint.sum(axis=1)), weights=weights)
    )


def test_predictions_of_several_attributes_are_one_array():
    channel = CHANNELS[-1]
    reports = _reports(channel, 300)
    fitted = FrequencyEstimator().fit(reports)
    proba = fitted.predict_proba(reports)
    assert proba.shape == (300, 12)
    np.testing.assert_allclose(proba[:, :3].sum(axis=1), 1)
    np.testing.assert_allclose(proba[:, 3:].sum(axis=1), 1)
    assert fitted.predict(reports).shape == (300, 2)
    alone = [
        FrequencyEstimator(one).fit(part)
        for one, part in zip(channel.attributes, channel.split(reports), strict=True)
    ]
    parts = channel.split(reports)
    assert fitted.score(reports) == pytest.approx(
        sum(one.score(part) for one, part in zip(alone, parts, strict=True))
    )


def test_posterior_does_not_depend_on_blocks(monkeypatch):
    reports = _reports(KRRChannel(1.0, 30), 100)
    fitted = FrequencyEstimator().fit(reports)
    whole = fitted.predict_proba(reports)
    monkeypatch.setattr("skldp.frequency._symbols._BLOCK", 70)
    np.testing.assert_array_equal(fitted.predict_proba(reports), whole)


def test_unfitted_estimators_say_so():
    fitted = FrequencyEstimator(channel=KRRChannel(1.0, 3))
    for call in (
        lambda: fitted.frequencies_,
        lambda: fitted.categories_,
        lambda: fitted.confidence_interval(),
        lambda: fitted.to_frame(),
        lambda: fitted.predict([[0]]),
    ):
        with pytest.raises(NotFittedError):
            call()
    assert not hasattr(fitted, "frequencies_")


def test_huge_and_tiny_epsilon_give_finite_answers():
    for cls in (KRRChannel, RapporChannel):
        for epsilon in (1e-6, 100, 800):
            channel = cls(epsilon, 4)
            counts = channel.simulate_counts([10, 20, 30, 40], random_state=0)[0]
            for decoder in ("inversion", "maximum_likelihood"):
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    fitted = FrequencyEstimator(channel, decoder=decoder).fit_counts(counts, 100)
                    assert np.isfinite(fitted.frequencies_).all()
                    assert np.isfinite(fitted.standard_errors_).all()
                    assert np.isfinite(fitted.confidence_interval()).all()
                    reports = channel.randomize([0, 1, 2, 3])
                    assert np.isfinite(fitted.predict_proba(reports)).all()
                    assert np.isfinite(fitted.score(reports))
            if epsilon >= 100:
                np.testing.assert_allclose(fitted.frequencies_, [0.1, 0.2, 0.3, 0.4], atol=1e-6)


def test_sampled_users_come_back():
    p = geometric_distribution(5)
    users = sample_users(p, 200_000, random_state=0)
    for mechanism in (KRRTransformer, RapporTransformer):
        pipe = make_pipeline(mechanism(3.0, categories=5, random_state=1), FrequencyEstimator())
        server = pipe.fit(users)[-1]
        # Six standard errors: a false alarm in 10⁸.
        assert (np.abs(server.raw_frequencies_ - p) < 6 * server.standard_errors_).all()


def test_storage_round_trip_of_plain_reports():
    channel = KRRChannel(1.0, 3, WORDS)
    reports = _reports(channel)
    rebuilt = Reports(np.asarray(reports), channel)
    assert FrequencyEstimator().fit(rebuilt).frequencies_.tolist() == (
        FrequencyEstimator().fit(reports).frequencies_.tolist()
    )
