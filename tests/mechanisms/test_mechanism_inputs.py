"""Every container of values works, and every wrong value raises before anything is released."""

import copy
import pickle
from enum import Enum

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import sklearn
from sklearn.pipeline import Pipeline, make_pipeline

from skldp import (
    ChannelError,
    FrequencyEstimator,
    KRRTransformer,
    PrivacyWarning,
    RapporTransformer,
)
from skldp.channels import KRRChannel, ProductChannel, RapporChannel

WORDS = ["pear", "fig", "apple", "fig"]
ALPHABET = ["apple", "fig", "pear"]
NUMBERS = [2, 0, 1, 0]
MECHANISMS = [KRRTransformer, RapporTransformer]

TEXT = {
    "list": WORDS,
    "list of rows": [[word] for word in WORDS],
    "tuple": tuple(WORDS),
    "object": np.array(WORDS, dtype=object),
    "object column": np.array(WORDS, dtype=object).reshape(-1, 1),
    "str": np.array(WORDS),
    "str column": np.array(WORDS).reshape(-1, 1),
    "StringDType": np.array(WORDS, dtype=np.dtypes.StringDType()),
    "pandas series": pd.Series(WORDS, name="fruit"),
    "pandas object series": pd.Series(WORDS, dtype=object),
    "pandas string series": pd.Series(WORDS, dtype="string"),
    "pandas categorical": pd.Series(pd.Categorical(WORDS)),
    "pandas frame": pd.DataFrame({"fruit": WORDS}),
    "pandas categorical frame": pd.DataFrame({"fruit": pd.Categorical(WORDS)}),
    "pandas arrow frame": pd.DataFrame({"fruit": pd.Series(WORDS, dtype="string[pyarrow]")}),
    "polars series": pl.Series("fruit", WORDS),
    "polars frame": pl.DataFrame({"fruit": WORDS}),
    "polars categorical": pl.DataFrame({"fruit": pl.Series(WORDS, dtype=pl.Categorical)}),
    "arrow array": pa.array(WORDS),
    "arrow chunked array": pa.chunked_array([WORDS[:2], WORDS[2:]]),
    "arrow dictionary": pa.array(WORDS).dictionary_encode(),
    "arrow table": pa.table({"fruit": WORDS}),
    "arrow batch": pa.record_batch({"fruit": WORDS}),
}
INTEGERS = {
    "list": NUMBERS,
    "rows": [[number] for number in NUMBERS],
    "numpy integers": [np.int64(number) for number in NUMBERS],
    "int8": np.array(NUMBERS, dtype=np.int8),
    "uint64": np.array(NUMBERS, dtype=np.uint64),
    "whole floats": np.array(NUMBERS, dtype=np.float32),
    "object": np.array(NUMBERS, dtype=object),
    "big endian": np.array(NUMBERS, dtype=">i4"),
    "not contiguous": np.array([NUMBERS, NUMBERS]).T[:, :1],
    "pandas": pd.DataFrame({"n": NUMBERS}),
    "pandas nullable": pd.DataFrame({"n": pd.Series(NUMBERS, dtype="Int64")}),
    "polars": pl.DataFrame({"n": NUMBERS}),
    "polars series": pl.Series("n", NUMBERS),
    "arrow": pa.table({"n": NUMBERS}),
    "arrow array": pa.array(NUMBERS),
}


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("values", TEXT.values(), ids=TEXT.keys())
def test_text_in_every_container(values, mechanism):
    # At ε = 200 a report is the value (an error has probability below 1e-12).
    fitted = mechanism(200.0, categories=ALPHABET).fit(values)
    server = FrequencyEstimator().fit(fitted.transform(values))
    np.testing.assert_allclose(server.frequencies_, [0.25, 0.5, 0.25], atol=1e-12)
    assert server.predict(fitted.transform(values)).tolist() == WORDS


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("values", INTEGERS.values(), ids=INTEGERS.keys())
def test_integers_in_every_container(values, mechanism):
    fitted = mechanism(200.0, categories=3).fit(values)
    server = FrequencyEstimator().fit(fitted.transform(values))
    np.testing.assert_allclose(server.frequencies_, [0.5, 0.25, 0.25], atol=1e-12)
    assert server.predict(fitted.transform(values)).tolist() == NUMBERS


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_columns_of_several_types_keep_theirs(mechanism, library):
    frame = library({"fruit": WORDS, "number": NUMBERS})
    fitted = mechanism(400.0, categories=[ALPHABET, 3]).fit(frame)
    assert fitted.channel_.epsilon == 400.0 and len(fitted.channel_.attributes) == 2
    assert all(channel.epsilon == 200.0 for channel in fitted.channel_.attributes)
    server = FrequencyEstimator().fit(fitted.transform(frame))
    np.testing.assert_allclose(server.frequencies_[0], [0.25, 0.5, 0.25], atol=1e-12)
    np.testing.assert_allclose(server.frequencies_[1], [0.5, 0.25, 0.25], atol=1e-12)
    rows = server.predict(fitted.transform(frame)).tolist()
    assert rows == [list(row) for row in zip(WORDS, NUMBERS, strict=True)]
    names = ["fruit", "number"] if mechanism is KRRTransformer else None
    if names:
        assert fitted.get_feature_names_out().tolist() == names


def test_one_alphabet_serves_every_column():
    fitted = KRRTransformer(3.0, categories=["no", "yes"]).fit([["no", "yes", "no"]])
    assert fitted.channel_ == ProductChannel([KRRChannel(1.0, 2, ("no", "yes"))] * 3)


def test_alphabets_can_be_numbers_of_categories():
    fitted = RapporTransformer(2.0, categories=[4, ["a", "b"]], packed=True).fit()
    assert fitted.channel_ == ProductChannel(
        [RapporChannel(1.0, 4, packed=True), RapporChannel(1.0, 2, ("a", "b"), packed=True)]
    )
    assert fitted.get_feature_names_out().tolist() == ["x0_byte0", "x1_byte0"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "values",
    [
        ["fig", None],
        ["fig", float("nan")],
        ["fig", np.nan, 3],
        ["fig", pd.NA],
        pd.Series(["fig", None]),
        pd.Series(["fig", None], dtype="string"),
        pd.Series(["fig", None], dtype="category"),
        pd.DataFrame({"n": pd.Series([1, None], dtype="Int64")}),
        pl.Series(["fig", None]),
        pl.DataFrame({"n": [1, None]}),
        pa.array(["fig", None]),
        pa.array(["fig", None, "pear"]).dictionary_encode(),
        pa.chunked_array([pa.array(["fig", None, "pear"]).dictionary_encode()]),
        pa.table({"a": pa.array(["fig", None, "pear"]).dictionary_encode()}),
        pa.table({"a": pa.array([None, 2, 1]).dictionary_encode()}),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["fig", None])),
        np.ma.masked_array([0, 1, 2], mask=[False, True, False]),
        np.ma.masked_array(["fig", "pear"], mask=[True, False]),
        np.ma.masked_array([["fig"], ["pear"]], mask=[[True], [False]], dtype=object),
        pa.table({"n": [1, None]}),
        np.array([1.0, np.nan]),
        np.array(["fig", None], dtype=object),
    ],
)
def test_missing_values_raise_without_echo(mechanism, values):
    for categories in (ALPHABET, 3):
        for unknown in ("error", "uniform"):
            estimator = mechanism(categories=categories, handle_unknown=unknown)
            with (
                sklearn.config_context(assume_finite=True),
                pytest.raises(ValueError, match="missing values") as caught,
            ):
                estimator.fit(values)
            assert "fig" not in str(caught.value)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([True, False], "Booleans"),
        (np.array([True, False]), "bool"),
        ([0.5, 1.0], "not whole"),
        (np.array([0.5]), "not whole"),
        ([1, "a"], "column of int, str"),
        ([b"a", b"b"], "bytes"),
        (np.array([b"a"]), "not supported"),
        ([1 + 0j], "Complex"),
        (np.array([1j]), "Complex"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "not supported"),
        (pd.to_datetime(pd.Series(["2020-01-01"])), "not supported"),
        ([float("inf")], "inf"),
        ([2**70], "64 bits"),
        ([{"a": 1}], "column of dict"),
        ([["a"], ["a", "b"]], "different lengths"),
        ([["a"], "b"], "different lengths"),
        (scipy.sparse.csr_array([[1, 0]]), "sparse"),
        (np.zeros((2, 2, 2)), "2D"),
        ("apple", "scalar"),
        (3, "scalar"),
        ([], "0 sample"),
        (np.empty((0, 2)), "0 sample"),
        (np.empty((3, 0)), "0 feature"),
        (pd.DataFrame(), "0 feature"),
        (pd.DataFrame({"a": []}), "0 sample"),
        ([10**400, 1.0], "64 bits"),
        ([10**400], "64 bits"),
        ({0: 1, 2: 3}, "dict is no table"),
        ({0, 1}, "set is no table"),
        (np.array(3), "2D|scalar|0D"),
        ([np.array(1), np.array(0)], "column of ndarray"),
    ],
    ids=repr,
)
def test_wrong_values_raise(mechanism, values, message):
    with pytest.raises((TypeError, ValueError), match=message):
        mechanism(categories=64).fit(values)
    fitted = mechanism(categories=64).fit()
    with pytest.raises((TypeError, ValueError)):
        fitted.transform(values)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_unknown_values_raise_without_echo(mechanism):
    fitted = mechanism(categories=ALPHABET).fit()
    with pytest.raises(ValueError, match="not in the public alphabet") as caught:
        fitted.transform(["fig", "durian"])
    assert "durian" not in str(caught.value)
    with pytest.raises(ValueError, match="Negative values"):
        mechanism(categories=4).fit([[1], [-1]])
    with pytest.raises(TypeError, match="one type"):
        mechanism(categories=ALPHABET, handle_unknown="uniform").fit().transform([3])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_learned_alphabets_warn_and_name_the_way_out(mechanism):
    with pytest.warns(PrivacyWarning, match=r"categories=\[") as caught:
        fitted = mechanism().fit([["b", 3], ["a", 1]])
    assert len(caught) == 1
    assert [one.alphabet.values.tolist() for one in fitted.channel_.attributes] == [
        ["a", "b"],
        [1, 3],
    ]
    with pytest.raises(ValueError, match="n_samples="):
        mechanism().fit([["a"], ["a"]])
    with pytest.raises(ValueError, match="needs data"):
        mechanism().fit()
    with pytest.raises(ValueError, match="cross-validation"):
        fitted.transform([["c", 1]])


def test_public_alphabets_do_not_warn(recwarn):
    KRRTransformer(categories=ALPHABET).fit_transform(WORDS)
    assert not recwarn.list


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_wrong_parameters_raise_at_fit(mechanism):
    for parameters in (
        {"categories": None},
        {"categories": "everything"},
        {"categories": [["a", "b"], ["a", "b"]]},
        {"categories": [2.5, 3]},
        {"handle_unknown": "ignore"},
        {"handle_unknown": None},
        {"epsilon": np.array(1.0)},
    ):
        with pytest.raises((TypeError, ValueError)):
            mechanism(**{"categories": 3, **parameters}).fit([[0]])
    for random_state in (-1, 1.5, "seed", True, object()):
        fitted = mechanism(categories=3, random_state=random_state).fit()
        with pytest.raises((TypeError, ValueError)):
            fitted.transform([[0]])
    with pytest.raises(TypeError, match="packed"):
        RapporTransformer(categories=3, packed="yes").fit()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_shape_must_be_that_of_fit(mechanism):
    two = mechanism(categories=3).fit([[0, 1]])
    with pytest.raises(ValueError, match="Reshape your data"):
        two.transform([1, 2])
    with pytest.raises(ValueError, match="features"):
        two.transform([[1, 2, 0]])
    named = mechanism(categories=3).fit(pd.DataFrame({"a": [1]}))
    with pytest.raises(ValueError, match="feature names"):
        named.transform(pd.DataFrame({"b": [1]}))
    assert not hasattr(named.fit(), "feature_names_in_")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "change", [{"epsilon": 0.5}, {"categories": 4}, {"categories": ["a", "b"]}], ids=repr
)
def test_changed_parameters_never_keep_a_stale_channel(mechanism, change):
    fitted = mechanism(1.0, categories=3).fit()
    fitted.transform([1])
    fitted.set_params(**change)
    with pytest.raises(ChannelError, match="call fit again"):
        fitted.transform([1])
    fitted.fit().transform(fitted.channel_.alphabet.values)
    packed = RapporTransformer(categories=3).fit().set_params(packed=True)
    with pytest.raises(ChannelError, match="packed was changed"):
        packed.transform([1])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_input_is_left_alone(mechanism):
    values, categories = np.array(WORDS, dtype=object), list(ALPHABET)
    fitted = mechanism(categories=categories, random_state=0).fit(values)
    fitted.transform(values)
    assert values.tolist() == WORDS and categories == ALPHABET
    frozen = np.array(NUMBERS)
    frozen.flags.writeable = False
    mechanism(categories=3).fit_transform(frozen)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_reports_of_one_mechanism_are_refused_by_another(mechanism):
    reports = KRRTransformer(categories=3).fit_transform([0, 1])
    with pytest.raises(ChannelError, match="private already"):
        mechanism(categories=3).fit(reports)


def test_enumerations_of_strings_mean_their_values():
    class Colour(str, Enum):  # noqa: UP042 (a StrEnum prints as its value; this one does not)
        RED = "red"
        BLUE = "blue"

    fitted = KRRTransformer(200.0, categories=[Colour.RED, Colour.BLUE]).fit()
    assert fitted.channel_.categories == ("red", "blue")
    assert fitted.transform([Colour.BLUE, "red"]).tolist() == [[1], [0]]


def test_surrogates_are_no_text():
    for word in ("\ud800", "\ud800\udc00"):
        with pytest.raises(ValueError, match="surrogates"):
            KRRTransformer(categories=["a", word]).fit()
    with pytest.raises(ValueError, match="not in the public alphabet"):
        KRRTransformer(categories=["a", "b"]).fit().transform(["\ud800"])


def test_two_mechanisms_are_refused_in_frames_too():
    frame = pd.DataFrame({"a": [0, 1, 2]})
    reports = KRRTransformer(categories=3).set_output(transform="pandas").fit_transform(frame)
    for mechanism in (KRRTransformer(categories=3), RapporTransformer(categories=3)):
        with pytest.raises(ChannelError, match="private already"):
            mechanism.fit(reports)
    with sklearn.config_context(transform_output="pandas"), pytest.raises(ChannelError):
        make_pipeline(mechanism, KRRTransformer(categories=3), FrequencyEstimator()).fit(frame)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "categories",
    [
        np.array(["a", "b"]),
        np.array(["a", "b"], dtype=object),
        pd.Series(["a", "b"]),
        pd.Index(["a", "b"]),
        pl.Series(["a", "b"]),
        ["a", "b"],
        ("a", "b"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_alphabets_in_any_container_survive_storage(mechanism, categories, tmp_path):
    fitted = mechanism(categories=categories).fit()
    joblib.dump(fitted, tmp_path / "fitted")
    for twin in (
        joblib.load(tmp_path / "fitted"),
        pickle.loads(pickle.dumps(fitted)),
        copy.deepcopy(fitted),
        fitted.set_params(categories=copy.copy(categories)),
    ):
        assert twin.transform(["a", "b"]).channel == fitted.channel_
        twin.set_params(categories=["b", "a"])
        with pytest.raises(ChannelError, match="categories was changed"):
            twin.transform(["a"])
        twin.set_params(categories=categories)


def test_a_memory_hit_with_an_array_of_categories_still_releases(tmp_path):
    pipeline = Pipeline(
        [
            ("mechanism", KRRTransformer(50.0, categories=np.array(["a", "b"]))),
            ("estimator", FrequencyEstimator()),
        ],
        memory=str(tmp_path),
    )
    for _ in range(2):
        assert pipeline.fit(["a", "b", "b"]).predict(["a"]).tolist() == ["a"]


def test_the_largest_alphabet_costs_nothing_to_speak_of():
    fitted = KRRTransformer(30.0, categories=2**32).fit()
    assert fitted.transform([2**32 - 1]).dtype == np.uint32
    assert fitted.__sklearn_tags__().input_tags.positive_only
    with pytest.raises(ValueError, match="Negative"):
        fitted.transform([-1])


def test_codes_bring_their_alphabet():
    codes = KRRChannel(1.0, 3, tuple(ALPHABET)).encode(WORDS)
    reports = KRRTransformer(200.0).fit_transform(codes)
    assert reports.channel == KRRChannel(200.0, 3, tuple(ALPHABET))
    assert FrequencyEstimator().fit(reports).predict(reports).tolist() == WORDS
    with pytest.raises(ChannelError, match="their own alphabet"):
        KRRTransformer(categories=3).fit(codes)


def test_mechanisms_name_their_columns():
    frame = pd.DataFrame({"fruit": WORDS, "number": NUMBERS})
    rappor = RapporTransformer(categories=[ALPHABET, 3]).fit(frame)
    assert rappor.get_feature_names_out().tolist() == [
        "fruit_apple",
        "fruit_fig",
        "fruit_pear",
        "number_0",
        "number_1",
        "number_2",
    ]
    with pytest.raises(ValueError, match="not equal"):
        rappor.get_feature_names_out(["a", "b"])
    unnamed = RapporTransformer(categories=2).fit()
    assert unnamed.get_feature_names_out(["z"]).tolist() == ["z_0", "z_1"]
    with pytest.raises(ValueError, match="length"):
        unnamed.get_feature_names_out(["a", "b"])
