"""Noise is never shared: across forks, workers, batches, folds, columns, mechanisms, caches."""

import multiprocessing
import os
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skldp import ChannelError, FrequencyEstimator, KRRTransformer, RapporTransformer
from skldp.channels import KRRChannel
from skldp.datasets import uniform_distribution
from skldp.metrics import l1_scorer

MECHANISMS = [
    KRRTransformer(0.5, categories=16),
    RapporTransformer(0.5, categories=16),
    RapporTransformer(0.5, categories=16, packed=True),
]
ZEROS = np.zeros((64, 1), dtype=int)  # 16^64 reports: two equal batches never happen by chance


def _release(mechanism):
    return np.asarray(mechanism.transform(ZEROS)).tobytes()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_do_not_share_noise(mechanism):
    fitted = clone(mechanism).fit()
    _release(fitted)
    # A plain fork: the child inherits whatever state a stream could have.
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        os.write(write, _release(fitted))
        os._exit(0)
    mine = _release(fitted)
    theirs = os.read(read, len(mine))
    os.waitpid(child, 0)
    os.close(read)
    os.close(write)
    assert len(theirs) == len(mine) and theirs != mine


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_parallel_workers_do_not_share_noise(mechanism):
    fitted = clone(mechanism).fit()
    releases = joblib.Parallel(n_jobs=2)(joblib.delayed(_release)(fitted) for _ in range(8))
    assert len(set(releases)) == 8
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        assert len(set(pool.map(_release, [fitted] * 6))) == 6


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_pickles_and_clones_carry_no_noise(mechanism):
    fitted = clone(mechanism).fit()
    before = pickle.dumps(fitted)
    first = _release(fitted)
    assert pickle.dumps(fitted) == before
    twins = [pickle.loads(before), pickle.loads(before), clone(fitted).fit()]
    assert len({first, *map(_release, twins)}) == 4


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_one_seed_gives_other_batches_and_mechanisms_other_noise(mechanism):
    seeded = clone(mechanism).set_params(random_state=0).fit()
    reference = _release(seeded)
    assert reference == _release(seeded)
    longer = np.asarray(seeded.transform(np.vstack([ZEROS, ZEROS])))
    assert longer[:64].tobytes() != reference
    # Replacing one user's value must not leave the others' noise in place.
    neighbour = ZEROS.copy()
    neighbour[-1] = 1
    changed = np.asarray(seeded.transform(neighbour))
    assert changed[:-1].tobytes() != reference[: changed[:-1].nbytes]
    for other in ({"epsilon": 0.50001}, {"categories": 17}, {"random_state": 1}):
        assert _release(clone(seeded).set_params(**other).fit()) != reference
    two = clone(seeded).set_params(epsilon=1.0).fit(np.hstack([ZEROS, ZEROS]))
    reports = two.transform(np.hstack([ZEROS, ZEROS]))
    left, right = (part.tobytes() for part in two.channel_.split(reports))
    assert len({left, right, reference}) == 3


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_advance_and_copies_of_them_do_not_repeat_noise(make):
    mechanism = KRRTransformer(0.5, categories=16, random_state=make(0)).fit()
    assert _release(mechanism) != _release(mechanism)
    # cross-validation clones the generator, state and all, for every fold
    folds = [clone(mechanism).fit() for _ in range(2)]
    releases = [
        np.asarray(one.transform(np.full((64, 1), value)))
        for one, value in zip(folds, (0, 1), strict=True)
    ]
    assert (releases[0] == releases[1]).mean() < 0.5


@pytest.mark.statistical
def test_batches_under_one_seed_average_out():
    # Were each batch to repeat the first one's noise, the error would be that of 250 users.
    # It must be that of 100,000: within 5.2 standard deviations (false alarm 8e-7 over four).
    k, n_batches, size = 4, 400, 250
    rng = np.random.default_rng(7)
    mechanism = KRRTransformer(0.5, categories=k, random_state=0).fit()
    server = FrequencyEstimator(projection=None)
    truth = np.zeros(k)
    for _ in range(n_batches):
        batch = rng.integers(0, k, (size, 1))
        truth += np.bincount(batch[:, 0], minlength=k)
        server.partial_fit(mechanism.transform(batch))
    p = truth / truth.sum()
    deviations = np.abs(server.frequencies_ - p)
    spread = np.sqrt(mechanism.channel_.variance(uniform_distribution(k), n_batches * size))
    assert (deviations < 5.2 * spread).all()


def test_cross_validation_folds_do_not_share_noise():
    seen = []

    def spy(reports):
        seen.append(np.asarray(reports)[:32].tobytes())
        return reports

    pipeline = make_pipeline(
        KRRTransformer(0.5, categories=16, random_state=0),
        FunctionTransformer(spy),
        FrequencyEstimator(),
    )
    values = np.repeat(np.arange(16), 16)
    GridSearchCV(pipeline, {"krrtransformer__epsilon": [0.5, 0.6]}, scoring=l1_scorer, cv=4).fit(
        values
    )
    assert len(seen) >= 8 and len(set(seen)) == len(seen)


# -- caches ----------------------------------------------------------------------------------


@pytest.mark.parametrize("random_state", [0, None])
def test_a_pipeline_cache_never_returns_another_candidate(tmp_path, random_state):
    users = np.random.default_rng(0).integers(0, 4, 3000)
    pipeline = Pipeline(
        [
            ("mechanism", KRRTransformer(categories=4, random_state=random_state)),
            ("pass", FunctionTransformer()),
            ("estimator", FrequencyEstimator()),
        ],
        memory=str(tmp_path),
    )
    for epsilon in (0.5, 2.0, 8.0, 0.5, 2.0):
        fitted = clone(pipeline).set_params(mechanism__epsilon=epsilon).fit(users)
        assert fitted[-1].channel_ == KRRChannel(epsilon, 4)
        assert fitted["mechanism"].channel_ == KRRChannel(epsilon, 4)
    # A step behind the mechanism sees the same bytes at every huge ε: only the channel differs.
    for epsilon in (300.0, 400.0, 300.0):
        fitted = clone(pipeline).set_params(mechanism__epsilon=epsilon).fit(users)
        assert fitted[-1].channel_.epsilon == epsilon


def test_a_cached_function_of_reports_tells_channels_apart(tmp_path):
    memory = joblib.Memory(tmp_path, verbose=0)
    channel_of = memory.cache(_channel_epsilon)
    for epsilon in (300.0, 400.0, 300.0):
        reports = KRRTransformer(epsilon, categories=4).fit_transform([0, 1, 2, 3])
        assert channel_of(reports) == channel_of(reports[:]) == epsilon


def _channel_epsilon(reports):
    return reports.channel.epsilon


# -- steps that lose the channel -------------------------------------------------------------


def test_steps_that_lose_the_channel_are_noticed():
    table = np.random.default_rng(0).integers(0, 3, (50, 2))
    mechanism = KRRTransformer(categories=3)
    for lossy in (
        make_column_transformer((mechanism, [0, 1])),
        FeatureUnion([("a", mechanism), ("b", KRRTransformer(categories=3))]),
        make_pipeline(mechanism, FunctionTransformer(np.asarray)),
        make_pipeline(mechanism, FunctionTransformer(lambda r: r[:, ::-1])),
    ):
        with pytest.raises(ChannelError, match="carries no channel"):
            make_pipeline(lossy, FrequencyEstimator()).fit(table)


def test_one_mechanism_after_the_column_transformer_works():
    table = np.random.default_rng(0).integers(0, 3, (50, 2))
    pipeline = make_pipeline(
        ColumnTransformer([("both", "passthrough", [1, 0])]),
        KRRTransformer(2.0, categories=3),
        FrequencyEstimator(),
    ).fit(table)
    assert pipeline[-1].channel_.epsilon == 2.0 and len(pipeline[-1].frequencies_) == 2


def test_two_mechanisms_in_a_row_are_refused():
    with pytest.raises(ChannelError, match="one mechanism per pipeline"):
        make_pipeline(
            KRRTransformer(categories=3), KRRTransformer(categories=3), FrequencyEstimator()
        ).fit([0, 1, 2])


def test_no_mechanism_is_noticed():
    with pytest.raises(ChannelError, match="carries no channel"):
        make_pipeline(FunctionTransformer(), FrequencyEstimator()).fit([[0], [1]])


def test_streaming_is_partial_fit_of_the_last_step():
    pipeline = make_pipeline(KRRTransformer(30.0, categories=3), FrequencyEstimator())
    pipeline.fit([0, 1])
    server = pipeline[-1]
    for batch in ([0, 0], [2], [1, 1, 1]):
        server.partial_fit(pipeline[:-1].transform(batch))
    assert server.n_reports_ == 8
    np.testing.assert_allclose(server.frequencies_, [3 / 8, 4 / 8, 1 / 8], atol=1e-6)
