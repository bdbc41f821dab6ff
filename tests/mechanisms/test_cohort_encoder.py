"""CohortHashEncoder in front of both mechanisms: containers, cohorts, and lost encodings.

At ε = 400 a report is the encoded value (an error has probability below 1e-12), so estimates are
exact up to the least-squares solution wherever the candidates are told apart by their buckets.
"""

import copy
import json
import pickle
from fractions import Fraction

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from scipy.stats import chi2
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skldp import (
    ChannelError,
    CohortHashEncoder,
    FrequencyEstimator,
    KRRTransformer,
    PrivacyWarning,
    RapporTransformer,
)
from skldp.channels import (
    Codes,
    CohortChannel,
    Hashing,
    ProductChannel,
    Reports,
    attach_channel,
    carried_encoding,
)

FALSE_ALARM = 1e-6
WORDS = ["pear", "fig", "apple", "fig"] * 8
NUMBERS = [2, 0, 1, 0] * 8
CANDIDATES = ["apple", "fig", "pear", "quince"]
TRUTH = [0.25, 0.5, 0.25, 0.0]

TEXT = {
    "list": WORDS,
    "rows": [[word] for word in WORDS],
    "tuple": tuple(WORDS),
    "str": np.array(WORDS),
    "str column": np.array(WORDS).reshape(-1, 1),
    "object": np.array(WORDS, dtype=object),
    "StringDType": np.array(WORDS, dtype=np.dtypes.StringDType()),
    "pandas series": pd.Series(WORDS, name="fruit"),
    "pandas frame": pd.DataFrame({"fruit": WORDS}),
    "pandas object": pd.Series(WORDS, dtype=object),
    "pandas string": pd.Series(WORDS, dtype="string"),
    "pandas categorical": pd.Series(pd.Categorical(WORDS)),
    "pandas categorical frame": pd.DataFrame({"fruit": pd.Categorical(WORDS)}),
    "polars series": pl.Series("fruit", WORDS),
    "polars frame": pl.DataFrame({"fruit": WORDS}),
    "polars categorical": pl.DataFrame({"fruit": pl.Series(WORDS, dtype=pl.Categorical)}),
    "arrow array": pa.array(WORDS),
    "arrow dictionary": pa.array(WORDS).dictionary_encode(),
    "arrow table": pa.table({"fruit": WORDS}),
}
INTEGERS = {
    "list": NUMBERS,
    "int8": np.array(NUMBERS, dtype=np.int8),
    "uint64": np.array(NUMBERS, dtype=np.uint64),
    "whole floats": np.array(NUMBERS, dtype=np.float32),
    "object": np.array(NUMBERS, dtype=object),
    "pandas": pd.DataFrame({"n": NUMBERS}),
    "pandas nullable": pd.DataFrame({"n": pd.Series(NUMBERS, dtype="Int64")}),
    "polars": pl.DataFrame({"n": NUMBERS}),
    "arrow": pa.table({"n": NUMBERS}),
}


def krr(epsilon=400.0, **parameters):
    return KRRTransformer(epsilon, **parameters)


def rappor(epsilon=400.0, **parameters):
    return RapporTransformer(epsilon, **parameters)


def rappor_packed(epsilon=400.0, **parameters):
    return RapporTransformer(epsilon, packed=True, **parameters)


MECHANISMS = [krr, rappor, rappor_packed]


def pipeline_of(mechanism, candidates=CANDIDATES, **parameters):
    hashes = {} if mechanism is krr else {"n_hashes": 2}
    encoder = CohortHashEncoder(**{"n_buckets": 64, "n_cohorts": 4, **hashes, **parameters})
    server = FrequencyEstimator(candidates=candidates, projection=None)
    return Pipeline([("encoder", encoder), ("mechanism", mechanism()), ("server", server)])


# -- containers ------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("alphabet", [None, CANDIDATES[::-1]], ids=["open", "closed"])
@pytest.mark.parametrize("values", TEXT.values(), ids=TEXT.keys())
def test_text_in_every_container(values, alphabet, mechanism):
    pipeline = pipeline_of(mechanism, alphabet=alphabet)
    cohorts = np.arange(len(WORDS)) // 2 % 4  # every cohort sees the same shares
    reference = pipeline["encoder"].fit_transform(WORDS, cohorts=cohorts)
    encoded = pipeline["encoder"].fit_transform(values, cohorts=cohorts)
    assert isinstance(encoded, Codes)
    np.testing.assert_array_equal(encoded, reference)
    np.testing.assert_array_equal(encoded[:, 0], cohorts)
    server = pipeline.fit(values, encoder__cohorts=np.repeat(np.arange(4), 8))["server"]
    np.testing.assert_allclose(server.raw_frequencies_, TRUTH, atol=1e-9)
    assert list(server.categories_) == CANDIDATES
    assert server.channel_.epsilon == 400.0


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("values", INTEGERS.values(), ids=INTEGERS.keys())
def test_integers_in_every_container(values, mechanism):
    for alphabet in (None, 4):
        pipeline = pipeline_of(mechanism, [0, 1, 2, 3], alphabet=alphabet)
        server = pipeline.fit(values, encoder__cohorts=np.repeat(np.arange(4), 8))["server"]
        np.testing.assert_allclose(server.raw_frequencies_, [0.5, 0.25, 0.25, 0], atol=1e-9)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_columns_have_groups_and_shares_of_epsilon(mechanism, library):
    frame = library({"fruit": WORDS, "number": NUMBERS, "same": WORDS})
    pipeline = pipeline_of(mechanism, [CANDIDATES, [0, 1, 2, 3], CANDIDATES])
    pipeline["mechanism"].set_params(epsilon=1200.0)
    cohorts = np.column_stack([np.repeat(np.arange(4), 8), np.tile(np.arange(4), 8) // 4 % 4] * 2)
    cohorts = np.column_stack([cohorts[:, 0], np.repeat(np.arange(4), 8)[::-1], cohorts[:, 0]])
    server = pipeline.fit(frame, encoder__cohorts=cohorts)["server"]
    for frequencies, truth in zip(
        server.raw_frequencies_, (TRUTH, [0.5, 0.25, 0.25, 0.0], TRUTH), strict=True
    ):
        np.testing.assert_allclose(frequencies, truth, atol=1e-9)
    channel = pipeline["mechanism"].channel_
    assert isinstance(channel, ProductChannel) and channel.epsilon == 1200.0
    assert all(isinstance(one, CohortChannel) for one in channel.attributes)
    assert [one.epsilon for one in channel.attributes] == [400.0] * 3
    codes = pipeline["encoder"].transform(frame, cohorts=cohorts)
    width = 2 if mechanism is krr else 3
    assert codes.shape == (32, 3 * width)
    np.testing.assert_array_equal(np.asarray(codes)[:, ::width], cohorts)
    names = [
        f"{name}_{suffix}"
        for name in ("fruit", "number", "same")
        for suffix in ("cohort", "bucket0", "bucket1")[:width]
    ]
    assert pipeline["encoder"].get_feature_names_out().tolist() == names
    reports = pipeline["mechanism"].transform(codes)
    names = pipeline["mechanism"].get_feature_names_out().tolist()
    assert len(set(names)) == len(names) == reports.shape[1]


def test_epsilon_is_split_exactly_over_columns_and_hashes():
    values = np.zeros((4, 3), dtype=int)
    for n_hashes in (1, 2, 3):
        codes = CohortHashEncoder(16, 2, n_hashes).fit_transform(values)
        channel = RapporTransformer(1.0).fit(codes).channel_
        assert channel.epsilon == 1.0 and channel.realized_epsilon <= 1.0
        assert all(Fraction(one.epsilon) == Fraction(1, 3) for one in channel.attributes)


def test_feature_names():
    encoder = CohortHashEncoder(16, 2, 2).fit([["a", 1]])
    assert encoder.get_feature_names_out(["p", "q"]).tolist() == [
        *("p_cohort", "p_bucket0", "p_bucket1"),
        *("q_cohort", "q_bucket0", "q_bucket1"),
    ]
    assert encoder.get_feature_names_out().tolist()[0] == "x0_cohort"
    with pytest.raises(ValueError, match="number of features"):
        encoder.get_feature_names_out(["p"])
    named = CohortHashEncoder(16).fit(pd.DataFrame({"a": ["x"]}))
    with pytest.raises(ValueError, match="feature_names_in_"):
        named.get_feature_names_out(["b"])
    with pytest.raises(NotFittedError):
        CohortHashEncoder().get_feature_names_out()
    # One fit on nothing is one column, and forgets the names.
    assert named.fit().get_feature_names_out().tolist() == ["x0_cohort", "x0_bucket0"]
    assert not hasattr(named, "feature_names_in_") and named.n_features_in_ == 1


# -- cohorts ---------------------------------------------------------------------------------

COHORTS = np.arange(32) % 4


def cohorts_used(pipeline, values, **parameters):
    """Return the cohorts of the reports that the last step sees."""
    return np.asarray(pipeline.fit(values, **parameters)["server"].n_reports_)


COHORT_CONTAINERS = {
    "list": COHORTS.tolist(),
    "int8": COHORTS.astype(np.int8),
    "uint64": COHORTS.astype(np.uint64),
    "column": COHORTS.reshape(-1, 1),
    "pandas": pd.Series(COHORTS),
    "pandas frame": pd.DataFrame({"c": COHORTS}),
    "polars": pl.Series("c", COHORTS),
    "arrow": pa.array(COHORTS),
    "unmasked": np.ma.masked_array(COHORTS, np.zeros(32, dtype=bool)),
}


@pytest.mark.parametrize("cohorts", COHORT_CONTAINERS.values(), ids=COHORT_CONTAINERS.keys())
def test_cohorts_can_be_given(cohorts):
    encoder = CohortHashEncoder(16, 4).fit(WORDS)
    for codes in (
        encoder.transform(WORDS, cohorts=cohorts),
        clone(encoder).fit_transform(WORDS, cohorts=cohorts),
    ):
        np.testing.assert_array_equal(np.asarray(codes)[:, 0], COHORTS)
        np.testing.assert_array_equal(
            np.asarray(codes)[:, 1:], encoder.hashing_.encode(WORDS, COHORTS)
        )


def test_one_dimension_of_cohorts_serves_every_column():
    table = [["a", "b"], ["c", "d"]]
    codes = CohortHashEncoder(16, 4).fit_transform(table, cohorts=[3, 1])
    assert np.asarray(codes)[:, [0, 2]].tolist() == [[3, 3], [1, 1]]
    codes = CohortHashEncoder(16, 4).fit_transform(table, cohorts=[[3, 0], [1, 2]])
    assert np.asarray(codes)[:, [0, 2]].tolist() == [[3, 0], [1, 2]]


@pytest.mark.parametrize(
    ("cohorts", "message"),
    [
        ([0, 4], "must leave them to be drawn"),
        ([-1, 0], "0..3"),
        (np.array([2**64 - 1, 0], dtype=np.uint64), "0..3"),
        ([0.0, 1.0], "integers"),
        ([True, False], "integers"),
        (["0", "1"], "integers"),
        ([None, 1], "integers"),
        ([0, np.nan], "integers"),
        (pd.Series([0, None], dtype="Int64"), "integers"),
        (np.ma.masked_array([0, 1], [0, 1]), "missing"),
        ([0], "a row per row"),
        ([0, 1, 2], "a row per row"),
        ([[0, 1], [1, 0]], "a row per row"),
        (2, "a row per row"),
        ([[[0]], [[1]]], "a row per row"),
    ],
    ids=str,
)
def test_wrong_cohorts_raise(cohorts, message):
    encoder = CohortHashEncoder(16, 4).fit(["a"])
    for call in (encoder.transform, encoder.fit_transform):
        with pytest.raises((TypeError, ValueError), match=message):
            call(["a", "b"], cohorts=cohorts)


def test_cohorts_without_routing_reach_the_fit_of_a_pipeline():
    for mechanism in MECHANISMS:
        pipeline = pipeline_of(mechanism)
        counts = cohorts_used(pipeline, WORDS, encoder__cohorts=np.full(32, 2))
        assert counts.tolist() == [0, 0, 32, 0]


def test_cohorts_are_routed():
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = pipeline_of(krr)
        pipeline["encoder"].set_transform_request(cohorts=True)
        fitted = pipeline.fit(WORDS, cohorts=np.full(32, 3))
        assert fitted["server"].n_reports_.tolist() == [0, 0, 0, 32]
        # Routing reaches predict too: at ε = 400 the prediction is the value.
        predicted = fitted.predict(WORDS, cohorts=np.full(32, 3))
        assert predicted.tolist() == WORDS
        encoded = fitted[:1].transform(WORDS, cohorts=np.full(32, 1))
        assert (np.asarray(encoded)[:, 0] == 1).all()
        with pytest.raises(TypeError):
            pipeline_of(krr).fit(WORDS, nonsense=np.full(32, 3))
        # Not asked for, and passed: scikit-learn says so.
        with pytest.raises((sklearn.exceptions.UnsetMetadataPassedError, TypeError)):
            pipeline_of(krr).fit(WORDS, cohorts=np.full(32, 3))
        ignoring = pipeline_of(krr, random_state=0)
        ignoring["encoder"].set_transform_request(cohorts=False)
        assert (ignoring.fit(WORDS)["server"].n_reports_ > 0).sum() > 1


class _Spy(TransformerMixin, BaseEstimator):
    """Remembers the cohort and the bucket of every row that passes."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        assert isinstance(X, Codes) and X.encoding is not None
        self.seen.append(np.asarray(X).copy())
        return X


def test_cross_validation_slices_cohorts():
    values = np.array([f"w{i}" for i in range(40)], dtype=object)
    cohorts = np.arange(40) * 7 % 10
    hashing = Hashing(1000, 10)
    whole = {
        (int(cohort), int(bucket))
        for cohort, bucket in zip(cohorts, hashing.encode(values, cohorts)[:, 0], strict=True)
    }
    with sklearn.config_context(enable_metadata_routing=True):
        encoder = CohortHashEncoder(1000, 10).set_transform_request(cohorts=True)
        server = FrequencyEstimator(candidates=values)
        pipeline = make_pipeline(encoder, _Spy(), krr(), server)
        _Spy.seen.clear()
        result = cross_validate(pipeline, values, cv=4, params={"cohorts": cohorts})
        assert np.isfinite(result["test_score"]).all()
    assert sorted(map(len, _Spy.seen)) == [10] * 4 + [30] * 4
    for rows in _Spy.seen:  # each value in its own cohort, in training and in scoring
        assert {tuple(row) for row in rows.tolist()} <= whole


def test_cross_validation_slices_cohorts_without_routing():
    values = np.array([f"w{i}" for i in range(40)], dtype=object)
    cohorts = np.full(40, 2)
    _Spy.seen.clear()
    pipeline = make_pipeline(
        CohortHashEncoder(1000, 10), _Spy(), krr(), FrequencyEstimator(candidates=values)
    )
    cross_validate(
        pipeline,
        values,
        cv=2,
        params={"cohorthashencoder__cohorts": cohorts},
        scoring=lambda estimator, X, y=None: 0.0,
    )
    assert [len(rows) for rows in _Spy.seen] == [20, 20]
    assert all((rows[:, 0] == 2).all() for rows in _Spy.seen)


def test_a_search_over_the_number_of_cohorts_with_cohorts_given_is_explained():
    pipeline = pipeline_of(krr)
    search = GridSearchCV(
        pipeline, {"encoder__n_cohorts": [2]}, cv=2, error_score="raise", refit=False
    )
    with pytest.raises(ValueError, match="must leave them to be drawn"):
        search.fit(WORDS, encoder__cohorts=COHORTS)


def test_grids_over_encoder_and_mechanism_run_in_parallel():
    values = np.array(WORDS * 20)
    pipeline = pipeline_of(krr, random_state=0)
    pipeline["mechanism"].set_params(random_state=0)
    grid = {
        "encoder__n_cohorts": [2, 8],
        "encoder__n_buckets": [16, 64],
        "mechanism__epsilon": [8.0],
    }
    search = GridSearchCV(pipeline, grid, cv=2, n_jobs=2, error_score="raise").fit(values)
    hashing = search.best_estimator_["encoder"].hashing_
    assert (hashing.n_cohorts, hashing.n_buckets) == (
        search.best_params_["encoder__n_cohorts"],
        search.best_params_["encoder__n_buckets"],
    )
    assert search.best_estimator_["server"].channel_.hashing == hashing


# -- random cohorts --------------------------------------------------------------------------


def drawn(encoder, values):
    return np.asarray(encoder.fit(values).transform(values))[:, 0]


@pytest.mark.statistical
@pytest.mark.parametrize("n_cohorts", [2, 3, 10, 256, 1000])
@pytest.mark.parametrize("random_state", [None, 0])
def test_random_cohorts_are_uniform(n_cohorts, random_state):
    # Chi-square at 1e-7 each; the secure ones differ from run to run (1e-6 over all).
    n = 100_000
    for values in (np.zeros(n, dtype=int), np.arange(n)):
        counts = np.bincount(
            drawn(CohortHashEncoder(8, n_cohorts, random_state=random_state), values),
            minlength=n_cohorts,
        )
        assert len(counts) == n_cohorts
        statistic = ((counts - n / n_cohorts) ** 2 / (n / n_cohorts)).sum()
        assert statistic < chi2.isf(FALSE_ALARM / 10, n_cohorts - 1)


@pytest.mark.statistical
def test_cohorts_do_not_depend_on_the_value():
    # The joint table of value and cohort: chi-square, false alarm 1e-6.
    values = np.arange(60_000) % 6
    cohorts = drawn(CohortHashEncoder(8, 10, random_state=3), values)
    cells = np.bincount(values * 10 + cohorts, minlength=60)
    assert ((cells - 1000) ** 2 / 1000).sum() < chi2.isf(FALSE_ALARM, 59)


def test_secure_cohorts_differ_and_seeded_ones_depend_on_the_content():
    values = np.zeros(200, dtype=int)
    secure = CohortHashEncoder(8, 256)
    assert (drawn(secure, values) != drawn(secure, values)).any()
    assert (drawn(pickle.loads(pickle.dumps(secure)), values) != drawn(secure, values)).any()
    seeded = CohortHashEncoder(8, 256, random_state=0)
    first = drawn(seeded, values)
    np.testing.assert_array_equal(first, drawn(clone(seeded), values))
    np.testing.assert_array_equal(first, drawn(seeded, values.astype(np.int16)))
    changed = values.copy()
    changed[-1] = 1
    for other in (
        drawn(seeded, changed)[:-1],
        drawn(seeded, np.zeros(201, dtype=int))[:199],
        drawn(seeded, ["0"] * 200)[:-1],
        drawn(clone(seeded).set_params(random_state=1), values)[:-1],
    ):
        assert (other == first[: len(other)]).mean() < 0.2
    # Text is divided into values, not only joined: ("ab", "c") is not ("a", "bc").
    assert (drawn(seeded, ["ab", "c"] * 50) != drawn(seeded, ["a", "bc"] * 50)).any()
    pair = np.asarray(
        CohortHashEncoder(8, 256, random_state=0).fit_transform(np.zeros((200, 2), int))
    )
    assert (pair[:, 0] == pair[:, 2]).mean() < 0.2
    # The same seed in the mechanism draws other noise than the cohorts.
    generator = CohortHashEncoder(8, 256, random_state=np.random.default_rng(0)).fit(values)
    once, twice = (np.asarray(generator.transform(values))[:, 0] for _ in range(2))
    assert (once != twice).any()


# -- copies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("alphabet", [None, CANDIDATES, 7, np.array(CANDIDATES)], ids=str)
def test_copies_encode_alike(alphabet):
    values = WORDS if not isinstance(alphabet, int) else NUMBERS
    encoder = CohortHashEncoder(16, 4, 2, alphabet=alphabet, hash_key="kéy").fit(values)
    expected = np.asarray(encoder.transform(values, cohorts=COHORTS))
    before = joblib.hash(encoder)
    for copied in (
        pickle.loads(pickle.dumps(encoder)),
        copy.deepcopy(encoder),
        copy.copy(encoder),
        clone(encoder).fit(values),
        clone(encoder).fit(),
        clone(encoder).set_params(alphabet=copy.deepcopy(alphabet)).fit(values),
    ):
        again = copied.transform(values, cohorts=COHORTS)
        np.testing.assert_array_equal(again, expected)
        assert again.encoding == (encoder.hashing_,)
        assert copied.hashing_ == encoder.hashing_
    assert joblib.hash(encoder) == before  # transform leaves nothing behind
    assert clone(encoder).get_params().keys() == encoder.get_params().keys()
    assert not hasattr(clone(encoder), "hashing_")
    with pytest.raises(NotFittedError):
        clone(encoder).transform(values)
    swapped = encoder.set_params(alphabet=copy.deepcopy(alphabet))  # equal, another object
    np.testing.assert_array_equal(swapped.transform(values, cohorts=COHORTS), expected)


def test_joblib_dumps_and_parallel_workers(tmp_path):
    encoder = CohortHashEncoder(16, 4, alphabet=CANDIDATES).fit(WORDS)
    joblib.dump(encoder, tmp_path / "encoder.joblib")
    loaded = joblib.load(tmp_path / "encoder.joblib")
    jobs = (joblib.delayed(one.transform)(WORDS, cohorts=COHORTS) for one in (encoder, loaded) * 2)
    results = joblib.Parallel(n_jobs=2)(jobs)
    for result in results:
        assert isinstance(result, Codes) and result.encoding == (encoder.hashing_,)
        np.testing.assert_array_equal(result, results[0])


def test_codes_keep_the_hashing_with_their_rows():
    codes = CohortHashEncoder(16, 4).fit_transform(WORDS, cohorts=COHORTS)
    for kept in (codes[3:7], codes[[1, 0]], codes.copy(), pickle.loads(pickle.dumps(codes))):
        assert kept.encoding == codes.encoding
    for lost in (codes + 0, codes[:, ::-1], np.hstack([codes, codes]), codes.T):
        assert carried_encoding(lost) is None


# -- changed parameters ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"n_buckets": 32},
        {"n_cohorts": 5},
        {"n_hashes": 2},
        {"hash_key": "other"},
        {"alphabet": None},
        {"alphabet": ["a", "b", "d"]},
        {"alphabet": ["b", "a", "c"]},
        {"alphabet": 3},
        {"n_buckets": "16"},
        {"hash_key": None},
    ],
    ids=str,
)
def test_a_change_after_fit_is_noticed(change):
    encoder = CohortHashEncoder(16, 4, alphabet=["a", "b", "c"]).fit(["a"])
    encoder.set_params(**change)
    with pytest.raises(ChannelError, match="was changed after fit"):
        encoder.transform(["a"])
    opened = CohortHashEncoder(16, 4).fit(["a"]).set_params(alphabet=["a", "b"])
    with pytest.raises(ChannelError, match="alphabet was changed after fit"):
        opened.transform(["a"])


def test_the_seed_may_change_after_fit():
    encoder = CohortHashEncoder(16, 4).fit(["a"]).set_params(random_state=0)
    np.testing.assert_array_equal(encoder.transform(WORDS), encoder.transform(WORDS))


def test_a_refit_is_a_new_hashing():
    encoder = CohortHashEncoder(16, 4).fit(["a"]).set_params(n_buckets=32, n_hashes=2).fit(["a"])
    assert encoder.hashing_ == Hashing(32, 4, 2)
    assert encoder.transform(["a"]).shape == (1, 3)
    with pytest.raises(ValueError):  # a failed fit changes nothing
        encoder.set_params(n_buckets=1).fit([["a", "b"]])
    assert encoder.set_params(n_buckets=32).transform(["a"]).shape == (1, 3)


# -- wrong parameters and values -------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_buckets": 1}, "n_buckets"),
        ({"n_buckets": True}, "n_buckets"),
        ({"n_buckets": 16.0}, "n_buckets"),
        ({"n_cohorts": 0}, "n_cohorts"),
        ({"n_cohorts": 2**33}, "n_cohorts"),
        ({"n_hashes": 0}, "n_hashes"),
        ({"n_buckets": 3, "n_hashes": 4}, "fewer hashes or more buckets"),
        ({"hash_key": 3}, "hash_key"),
        ({"hash_key": b"k"}, "hash_key"),
        ({"alphabet": []}, "two categories"),
        ({"alphabet": ["a"]}, "two categories"),
        ({"alphabet": ["a", "a"]}, "distinct"),
        ({"alphabet": ["a", 1]}, "column of int, str"),
        ({"alphabet": ["a", None]}, "missing"),
        ({"alphabet": "ab"}, "categories must be an integer"),
        ({"alphabet": 1}, "at least 2"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": "0"}, "random_state"),
    ],
    ids=str,
)
def test_wrong_parameters_raise(parameters, message):
    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
        encoder = CohortHashEncoder(**parameters)  # __init__ stores
        with pytest.raises((TypeError, ValueError), match=message):
            encoder.fit_transform(["a", "b"])


@pytest.mark.parametrize(
    "values",
    [
        [["a"], [None]],
        [["a"], [float("nan")]],
        [[0.5]],
        [[True]],
        [["a"], [1]],
        [[["a"]]],
        [b"a"],
        [{"a": 1}],
        np.array([["a"], ["b"]])[:0],
        "a",
        3,
        pd.Series(["a", None]),
        pa.array(["a", None]),
        pl.Series(["a", None]),
        np.ma.masked_array([1, 2], [0, 1]),
        ["secret\udc80"],
    ],
    ids=str,
)
@pytest.mark.parametrize("random_state", [None, 0])
def test_wrong_values_raise_and_are_not_echoed(values, random_state):
    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
        encoder = CohortHashEncoder(16, 4, random_state=random_state)
        with pytest.raises((TypeError, ValueError)) as caught:
            encoder.fit_transform(values)
        assert "secret" not in str(caught.value)
        with pytest.raises((TypeError, ValueError)):
            encoder.fit(["fine"]).transform(values)


def test_unlisted_values_of_a_closed_alphabet_raise_and_are_not_echoed():
    encoder = CohortHashEncoder(16, 4, alphabet=["a", "b"], random_state=0).fit(["a"])
    with pytest.raises(ValueError, match="not in the closed alphabet") as caught:
        encoder.transform(["a", "secret"])
    assert "secret" not in str(caught.value)


def test_other_widths_and_names_raise():
    encoder = CohortHashEncoder(16).fit(pd.DataFrame({"a": ["x"], "b": ["y"]}))
    with pytest.raises(ValueError, match="feature names"):
        encoder.transform(pd.DataFrame({"b": ["x"], "a": ["y"]}))
    with pytest.raises(ValueError, match="Reshape your data"):
        encoder.transform(["x", "y"])


def test_several_hashes_in_front_of_krr_raise():
    with pytest.raises(ValueError, match="n_hashes=1"):
        make_pipeline(CohortHashEncoder(16, 2, 2), KRRTransformer()).fit(WORDS)


# -- frames ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_frames_keep_the_encoding(mechanism):
    pipeline = pipeline_of(mechanism)
    encoder = pipeline["encoder"].set_output(transform="pandas")
    frame = encoder.fit_transform(pd.DataFrame({"fruit": WORDS}), cohorts=COHORTS)
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == encoder.get_feature_names_out().tolist()
    assert carried_encoding(frame) == (encoder.hashing_,)
    assert carried_encoding(frame.iloc[3:9]) == (encoder.hashing_,)
    plain = clone(encoder).set_output(transform="default").fit(WORDS)
    np.testing.assert_array_equal(plain.transform(WORDS, cohorts=COHORTS), frame)
    # Both containers lead to the same channel, and one fitted on the other takes either.
    codes = plain.transform(WORDS, cohorts=COHORTS)
    on_frame = mechanism().fit(frame)
    assert on_frame.channel_ == mechanism().fit(codes).channel_
    server = FrequencyEstimator(candidates=CANDIDATES, projection=None)
    assert server.fit(on_frame.transform(frame)).channel_ == on_frame.channel_
    # Moved columns are noticed.
    with pytest.raises(ChannelError, match="columns"):
        mechanism().fit(frame[frame.columns[::-1]])
    with pytest.raises(ChannelError, match="columns"):
        on_frame.transform(frame[frame.columns[::-1]])
    # Frames of codes survive storage, and are still not private.
    assert json.dumps(frame.attrs)
    with pytest.raises(ChannelError, match="not private"):
        FrequencyEstimator(candidates=CANDIDATES).fit(frame)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_pipeline_works_on_frames_everywhere(mechanism):
    for frame in (pd.DataFrame({"fruit": WORDS}), pd.DataFrame({"a": WORDS, "b": WORDS})):
        d = frame.shape[1]
        cohorts = np.repeat(np.arange(4), 8)
        with sklearn.config_context(transform_output="pandas"):
            pipeline = pipeline_of(mechanism)
            pipeline["mechanism"].set_params(epsilon=400.0 * d)
            pipeline.fit(frame, encoder__cohorts=cohorts)
            reports = pipeline[:-1].transform(frame)
        assert isinstance(reports, pd.DataFrame)
        raw = pipeline["server"].raw_frequencies_
        for frequencies in raw if d == 2 else [raw]:
            np.testing.assert_allclose(frequencies, TRUTH, atol=1e-9)
        assert pipeline["server"].channel_.epsilon == 400.0 * d


def test_polars_output_is_refused():
    with pytest.raises(ValueError, match="Polars"):
        CohortHashEncoder().set_output(transform="polars")
    with (
        sklearn.config_context(transform_output="polars"),
        pytest.raises(ValueError, match="Polars"),
    ):
        CohortHashEncoder().fit_transform(["a"])


# -- codes are not private, and lost encodings are noticed -----------------------------------


def test_codes_are_never_taken_for_reports():
    encoder = CohortHashEncoder(16, 4).fit(WORDS)
    codes = encoder.transform(WORDS)
    channel = KRRTransformer(1.0).fit(codes).channel_
    frame = clone(encoder).set_output(transform="pandas").fit_transform(WORDS)
    for given in (None, channel, channel.to_dict()):
        for private in (codes, codes[:5], frame, frame.iloc[:5], codes.view()):
            server = FrequencyEstimator(given, candidates=CANDIDATES)
            for call in (server.fit, server.partial_fit):
                with pytest.raises(ChannelError, match="not private"):
                    call(private)
    fitted = FrequencyEstimator(candidates=CANDIDATES).fit(
        KRRTransformer(1.0).fit_transform(codes)
    )
    for private in (codes, frame):
        for call in (fitted.predict, fitted.predict_proba, fitted.score, fitted.partial_fit):
            with pytest.raises(ChannelError, match="not private"):
                call(private)
    with pytest.raises(ChannelError, match="not private"):
        make_pipeline(encoder, FrequencyEstimator(candidates=CANDIDATES)).fit(WORDS)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "step",
    [
        FunctionTransformer(np.asarray),
        FunctionTransformer(lambda codes: codes[:, ::-1]),
        FunctionTransformer(lambda codes: codes + 0),
        FunctionTransformer(lambda codes: np.hstack([codes[:, :1] % 2, codes[:, 1:]])),
        FunctionTransformer(lambda codes: pd.DataFrame(np.asarray(codes))),
        FeatureUnion([("one", FunctionTransformer())]),
    ],
    ids=["asarray", "swapped", "computed", "two cohorts", "frame", "union"],
)
def test_an_encoding_lost_on_the_way_never_gives_an_estimate(step, mechanism):
    pipeline = Pipeline(
        [
            ("encoder", CohortHashEncoder(8, 4, random_state=0)),
            ("lossy", step),
            ("mechanism", mechanism()),
            ("server", FrequencyEstimator(candidates=CANDIDATES)),
        ]
    )
    # The mechanism learns an alphabet of cohorts and buckets, and says so; the estimator refuses.
    values = [f"w{i}" for i in range(200)]
    with pytest.warns(PrivacyWarning), pytest.raises(ChannelError, match="lost its description"):
        pipeline.fit(values)


def test_shuffled_rows_of_codes_are_other_users_only():
    # Whole rows may move: users are exchangeable, and the encoding stays.
    codes = CohortHashEncoder(64, 4).fit_transform(WORDS, cohorts=np.repeat(np.arange(4), 8))
    shuffled = codes[np.random.default_rng(0).permutation(32)]
    server = FrequencyEstimator(candidates=CANDIDATES, projection=None)
    server.fit(krr().fit_transform(shuffled))
    np.testing.assert_allclose(server.raw_frequencies_, TRUTH, atol=1e-9)


def test_columns_computed_in_a_frame_are_noticed():
    encoder = CohortHashEncoder(16, 4).set_output(transform="pandas")
    frame = encoder.fit_transform(WORDS)
    for changed in (
        frame.astype(float),
        frame.iloc[:, ::-1],
        frame.iloc[:, :1],
        frame.rename(columns={frame.columns[0]: "other"}),
        frame.assign(more=1),
    ):
        with pytest.raises(ChannelError):
            KRRTransformer().fit(changed)
    out_of_range = frame + 100  # names and types are the same: the domain is not
    with pytest.raises(ValueError, match="cohort in"):
        KRRTransformer().fit(frame).transform(out_of_range)


# (scikit-learn warns where names appear that fit has not seen.)
@pytest.mark.filterwarnings("ignore:X has feature names:UserWarning")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_mechanism_refuses_other_codes_than_it_was_fitted_with(mechanism):
    fitted = mechanism().fit(CohortHashEncoder(16, 4).fit_transform(WORDS))
    with pytest.raises(TypeError, match="CohortHashEncoder"):
        fitted.transform([["a", "b"]])
    with pytest.raises(TypeError, match="CohortHashEncoder"):
        fitted.transform([[0, 1]])  # numbers in the domain are values all the same
    with pytest.raises(ValueError, match="features"):
        fitted.transform([["a"]])
    for other in (
        CohortHashEncoder(32, 4),
        CohortHashEncoder(16, 5),
        CohortHashEncoder(16, 4, hash_key="other"),
        CohortHashEncoder(16, 4, alphabet=CANDIDATES),
    ):
        with pytest.raises(ChannelError, match="another alphabet"):
            fitted.transform(other.fit_transform(WORDS))
        frame = clone(other).set_output(transform="pandas").fit_transform(WORDS)
        with pytest.raises((ChannelError, ValueError)):
            fitted.transform(frame)
    with pytest.raises(ValueError, match="features"):
        fitted.transform(CohortHashEncoder(16, 4).fit_transform([["a", "b"]]))
    with pytest.raises(ChannelError, match="leave categories"):
        mechanism(categories=16).fit(CohortHashEncoder(16, 4).fit_transform(WORDS))
    # And one fitted on values refuses codes.
    plain = mechanism(categories=[list(range(64))] * 2).fit([[0, 1]])
    with pytest.raises(ChannelError, match="another alphabet"):
        plain.transform(CohortHashEncoder(16, 4).fit_transform(WORDS))


def test_values_are_encoded_once_only():
    encoder = CohortHashEncoder(16, 4)
    codes = encoder.fit_transform(WORDS)
    frame = clone(encoder).set_output(transform="pandas").fit_transform(WORDS)
    for twice in (codes, frame):
        with pytest.raises(ChannelError, match="encoded already"):
            CohortHashEncoder(16, 4).fit(twice)
    table = CohortHashEncoder(16, 4).fit([[0, 0]])
    with pytest.raises(ChannelError, match="encoded already"):
        table.transform(codes)
    reports = KRRTransformer().fit_transform(codes)
    for private in (reports, attach_channel(pd.DataFrame(np.asarray(reports)), reports.channel)):
        with pytest.raises(ChannelError, match="private already"):
            CohortHashEncoder().fit(private)
        with pytest.raises(ChannelError, match="private already"):
            table.transform(private)


def test_reports_of_another_hashing_are_refused_by_the_server():
    one, other = (
        KRRTransformer(2.0).fit_transform(
            CohortHashEncoder(16, 4, hash_key=key).fit_transform(WORDS)
        )
        for key in ("a", "b")
    )
    server = FrequencyEstimator(candidates=CANDIDATES).fit(one)
    for call in (server.partial_fit, server.predict, server.score):
        with pytest.raises(ChannelError):
            call(other)
    with pytest.raises(ChannelError):
        server.merge(FrequencyEstimator(candidates=CANDIDATES).fit(other))
    with pytest.raises(ChannelError):
        FrequencyEstimator(other.channel, candidates=CANDIDATES).fit(one)
    assert isinstance(np.concatenate([one, one]), Reports)
    assert not isinstance(np.concatenate([one, other]), Reports)


# -- one client ------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_one_client_reports_alone_and_in_one_format(mechanism):
    # Parameters alone fit the client; the report says nothing of the value by its shape.
    encoder = CohortHashEncoder(300, 1000, alphabet=CANDIDATES).fit()
    client = mechanism(1.0).fit(encoder.transform(["fig"]))
    formats = set()
    for value in CANDIDATES:
        for cohort in (0, 999):
            report = client.transform(encoder.transform([value], cohorts=[cohort]))
            formats.add((report.shape, report.dtype.str))
            assert client.channel_._read_cohorts(np.asarray(report)).tolist() == [cohort]
    assert len(formats) == 1


# -- caches ----------------------------------------------------------------------------------


@pytest.mark.parametrize("random_state", [0, None])
def test_a_pipeline_cache_never_returns_another_hashing(tmp_path, random_state):
    pipeline = pipeline_of(krr, random_state=random_state)
    pipeline.set_params(memory=str(tmp_path))
    pipeline["mechanism"].set_params(random_state=random_state)
    for parameters in (
        {"hash_key": "a"},
        {"hash_key": "b"},
        {"hash_key": "a", "n_buckets": 65},
        {"hash_key": "a"},
        {"alphabet": CANDIDATES},
        {"alphabet": CANDIDATES[::-1]},
    ):
        fitted = clone(pipeline)
        fitted["encoder"].set_params(**parameters)
        fitted.fit(WORDS, encoder__cohorts=np.repeat(np.arange(4), 8))
        assert fitted["server"].channel_.hashing == clone(fitted["encoder"]).fit().hashing_
        assert fitted["encoder"].hashing_ == fitted["server"].channel_.hashing
        np.testing.assert_allclose(fitted["server"].raw_frequencies_, TRUTH, atol=1e-9)
    # With one cohort and huge ε equal bytes come from different hashings: only they differ.
    memory = joblib.Memory(tmp_path / "functions", verbose=0)
    key_of = memory.cache(_hash_key)
    for key in ("a", "b", "a"):
        codes = Codes([[0, 0]], [Hashing(16, key=key)])
        assert key_of(codes) == key


def _hash_key(codes):
    return codes.encoding[0].key
