"""Scorers: on pipelines and bare estimators, in searches, in parallel."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer

from skldp import ChannelError, FrequencyEstimator, KRRTransformer, RapporTransformer
from skldp.metrics import (
    l1_loss,
    l1_scorer,
    make_frequency_scorer,
    mse_loss,
    mse_scorer,
    total_variation,
)

WORDS = ["ash", "birch", "cedar", "elm"]
P = np.array([0.4, 0.3, 0.2, 0.1])
X = np.repeat(WORDS, (P * 2000).astype(int))
TRUTH = dict(zip(WORDS, P, strict=True))


def _pipeline(epsilon=2.0, mechanism=KRRTransformer, **parameters):
    return Pipeline(
        [
            ("mechanism", mechanism(epsilon, categories=WORDS, random_state=0)),
            ("estimator", FrequencyEstimator(**parameters)),
        ]
    )


def test_score_is_minus_the_loss_to_the_raw_values():
    fitted = _pipeline().fit(X)
    q = fitted[-1].frequencies_
    assert l1_scorer(fitted, X) == pytest.approx(-np.abs(q - P).sum())
    assert mse_scorer(fitted, X) == pytest.approx(-((q - P) ** 2).mean())
    # The scorer looks at the fold it is given, and privatises nothing.
    assert l1_scorer(fitted, X[:800]) == pytest.approx(-np.abs(q - [1, 0, 0, 0]).sum())
    assert l1_scorer(fitted, pd.Series(X)) == l1_scorer(fitted, X.reshape(-1, 1), None)
    assert make_frequency_scorer(total_variation)(fitted, X) == pytest.approx(
        l1_scorer(fitted, X) / 2
    )


def test_known_truth_needs_no_values():
    fitted = _pipeline().fit(X)
    expected = l1_scorer(fitted, X)
    for truth in (P, P.tolist(), TRUTH, pd.Series(TRUTH)):
        scorer = make_frequency_scorer(l1_loss, truth=truth)
        for estimator in (fitted, fitted[-1]):
            assert scorer(estimator, None) == pytest.approx(expected)
    partial = make_frequency_scorer(l1_loss, truth={"ash": 1.0})
    assert partial(fitted, None) == pytest.approx(l1_scorer(fitted, ["ash"]))
    with pytest.raises(ValueError, match="does not list"):
        make_frequency_scorer(l1_loss, truth={"oak": 1.0})(fitted, None)
    for wrong in ([0.5, 0.5], [5, 5, 5, 5], {"ash": 0.5}, {}, [1.5, -0.5, 0, 0], [np.nan] * 4):
        with pytest.raises(ValueError):
            make_frequency_scorer(l1_loss, truth=wrong)(fitted, None)


def test_bare_estimators_need_the_truth():
    fitted = _pipeline().fit(X)
    reports = fitted[:-1].transform(X)
    with pytest.raises(ChannelError, match="truth="):
        l1_scorer(fitted[-1], reports)
    nested = make_pipeline(
        ColumnTransformer([("m", KRRTransformer(categories=WORDS), [0])]),
        FrequencyEstimator(channel=fitted[-1].channel_),
    )
    nested.fit(X.reshape(-1, 1))
    with pytest.raises(ChannelError, match="truth="):
        l1_scorer(nested, X.reshape(-1, 1))
    with pytest.raises(NotFittedError):
        l1_scorer(_pipeline(), X)
    with pytest.raises(TypeError, match="callable"):
        make_frequency_scorer("l1")


def test_steps_before_the_mechanism_are_applied():
    rng = np.random.default_rng(0)
    ages = rng.uniform(0, 100, (3000, 1))
    bins = KBinsDiscretizer(4, encode="ordinal", strategy="uniform", subsample=None)
    pipeline = make_pipeline(
        bins, KRRTransformer(100.0, categories=4, random_state=0), FrequencyEstimator()
    ).fit(ages)
    assert l1_scorer(pipeline, ages) == pytest.approx(0, abs=1e-9)
    upper = FunctionTransformer(np.char.upper)
    words = make_pipeline(
        upper, KRRTransformer(100.0, categories=["A", "B"], random_state=0), FrequencyEstimator()
    )
    assert l1_scorer(words.fit(np.array(["a", "b", "b"])), np.array(["b", "b", "a"])) == (
        pytest.approx(0, abs=1e-9)
    )


def test_unlisted_values_belong_to_no_category():
    pipeline = make_pipeline(
        KRRTransformer(100.0, categories=["a", "b"], handle_unknown="uniform", random_state=0),
        FrequencyEstimator(),
    ).fit(["a", "b", "b", "b"])
    # Frequencies are shares of everybody: .25 and .25 against .25 and .75.
    assert l1_scorer(pipeline, ["a", "z", "b", "z"]) == pytest.approx(-0.5, abs=1e-6)
    # Without the unlisted in the denominator this would be .5 + .5 instead.
    assert l1_scorer(pipeline, ["a", "z", "z", "z"]) == pytest.approx(-0.75, abs=1e-6)
    strict = make_pipeline(KRRTransformer(categories=["a", "b"]), FrequencyEstimator())
    with pytest.raises(ValueError, match="full public list"):
        l1_scorer(strict.fit(["a", "b"]), ["a", "z"])


def test_several_attributes_are_averaged():
    table = np.column_stack([X, np.roll(X, 700)])
    pipeline = make_pipeline(
        RapporTransformer(4.0, categories=WORDS, random_state=0), FrequencyEstimator()
    ).fit(table)
    losses = [np.abs(q - P).sum() for q in pipeline[-1].frequencies_]
    assert l1_scorer(pipeline, table) == pytest.approx(-np.mean(losses))
    scorer = make_frequency_scorer(l1_loss, truth=[P, TRUTH])
    assert scorer(pipeline[-1], None) == pytest.approx(-np.mean(losses))
    with pytest.raises(ValueError, match="2 attributes"):
        make_frequency_scorer(l1_loss, truth=[P])(pipeline, None)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("mechanism", [KRRTransformer, RapporTransformer])
def test_grid_search_over_epsilon_and_projection(mechanism, n_jobs):
    rng = np.random.default_rng(1)
    users = rng.permutation(X)
    search = GridSearchCV(
        _pipeline(mechanism=mechanism),
        {
            "mechanism__epsilon": [0.05, 8.0],
            "estimator__projection": [None, "simplex", "normalize"],
        },
        scoring={
            "l1": l1_scorer,
            "mse": mse_scorer,
            "truth": make_frequency_scorer(mse_loss, truth=TRUTH),
        },
        refit="l1",
        cv=3,
        n_jobs=n_jobs,
        error_score="raise",
    ).fit(users)
    assert search.best_params_["mechanism__epsilon"] == 8.0
    assert search.best_estimator_[-1].channel_.epsilon == 8.0
    assert l1_scorer(search.best_estimator_, users) > -0.1
    low, high = np.array(search.cv_results_["mean_test_l1"]).reshape(3, 2).T
    assert (low < high).all()
    assert np.isfinite(search.cv_results_["mean_test_truth"]).all()


def test_parallel_search_equals_the_serial_one():
    results = [
        GridSearchCV(
            _pipeline(),
            {"mechanism__epsilon": [0.5, 1.0, 2.0]},
            scoring=l1_scorer,
            cv=2,
            n_jobs=n_jobs,
        )
        .fit(X[::3])
        .cv_results_["mean_test_score"]
        for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*results)


def test_cross_validate_and_pickling():
    scorers = {"l1": l1_scorer, "known": make_frequency_scorer(l1_loss, truth=TRUTH)}
    scores = cross_validate(_pipeline(), X[::2], scoring=scorers, cv=3, error_score="raise")
    assert scores["test_l1"].shape == (3,) and (scores["test_known"] < 0).all()
    fitted = _pipeline().fit(X)
    for scorer in scorers.values():
        twin = pickle.loads(pickle.dumps(scorer))
        assert twin(fitted, X) == scorer(fitted, X)
        assert "l1_loss" in repr(twin)
