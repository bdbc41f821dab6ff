"""FrequencyEstimator behind hashed values: candidates, detection, intervals, statistics."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

from skldp import (
    ChannelError,
    CohortHashEncoder,
    DecodingWarning,
    FrequencyEstimator,
    KRRTransformer,
    RapporTransformer,
)
from skldp.channels import (
    Alphabet,
    CohortChannel,
    Hashing,
    KRRChannel,
    ProductChannel,
    distinct_buckets,
)
from skldp.datasets import geometric_distribution, zipf_distribution
from skldp.decoding import project_simplex, project_subsimplex
from skldp.metrics import expected_l2_loss, l1_scorer, suggest_parameters

WORDS = [f"word {i}" for i in range(40)]
P = zipf_distribution(40, 1.0)
CHANNELS = {
    "O-RR": CohortChannel.for_epsilon(3.0, Hashing(16, 32), "krr"),
    "O-RAPPOR": CohortChannel.for_epsilon(3.0, Hashing(64, 4), "rappor"),
    "O-RAPPOR packed": CohortChannel.for_epsilon(3.0, Hashing(60, 4), "rappor", packed=True),
    "O-RAPPOR, h = 2": CohortChannel.for_epsilon(3.0, Hashing(64, 8, 2), "rappor"),
    "closed": CohortChannel.for_epsilon(3.0, Hashing(16, 32, 1, "", Alphabet(40)), "krr"),
}
DECODERS = ["least_squares", "constrained_least_squares", "maximum_likelihood"]
every_channel = pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS.keys())


def _values(channel):
    return np.arange(40) if channel.hashing.alphabet is not None else np.array(WORDS, object)


def _reports(channel, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    users = _values(channel)[rng.choice(40, n, p=P)]
    cohorts = rng.integers(0, channel.hashing.n_cohorts, n)
    codes = np.column_stack([cohorts, channel.hashing.encode(users, cohorts)])
    return channel.randomize(codes, random_state=seed)


# -- exactness -------------------------------------------------------------------------------


@every_channel
@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("decoder", DECODERS)
def test_exact_expected_counts_give_back_the_distribution(channel, complete, decoder):
    from skldp.frequency._cohorts import CohortProblem

    values, k = _values(channel), channel.hashing.n_buckets
    table = distinct_buckets(channel.hashing.table(values), k)
    n = np.full(channel.hashing.n_cohorts, 10**6)
    shares = np.array(
        [[P[(rows == bucket).any(axis=0)].sum() for bucket in range(k)] for rows in table]
    )
    counts = n[:, np.newaxis] * (
        float(channel.bucket.offset) + float(channel.bucket.slope) * shares
    )
    problem = CohortProblem(channel, counts, n, values, complete)
    raw = problem.unbiased()
    np.testing.assert_allclose(raw, P, atol=1e-9)
    if decoder != "least_squares":
        np.testing.assert_allclose(problem.nonlinear(decoder, raw), P, atol=1e-6)


@pytest.mark.parametrize("mechanism", [KRRTransformer(100.0), RapporTransformer(100.0)])
def test_without_noise_the_frequencies_are_those_of_the_users(mechanism):
    rng = np.random.default_rng(0)
    users = rng.choice(WORDS, 3000, p=P).astype(object)
    pipeline = make_pipeline(
        CohortHashEncoder(64, 16), mechanism, FrequencyEstimator(candidates=WORDS, complete=True)
    )
    server = pipeline.fit(users)[-1]
    # What is left is how the users fell into cohorts: nothing is randomized.
    truth = pd.Series(users).value_counts(normalize=True).reindex(WORDS, fill_value=0)
    assert np.abs(server.frequencies_ - truth).sum() < 0.2
    assert server.categories_.tolist() == WORDS
    reports = pipeline[:-1].transform(users[:200])
    assert (server.predict(reports) == users[:200]).mean() > 0.6


# -- statistics ------------------------------------------------------------------------------


@every_channel
def test_batches_merge_and_counts_agree(channel):
    reports, candidates = _reports(channel), _values(channel)
    whole = FrequencyEstimator(candidates=candidates).fit(reports)
    streamed = FrequencyEstimator(candidates=candidates)
    for batch in np.array_split(reports, 5):
        streamed.partial_fit(batch)
    merged = FrequencyEstimator(candidates=candidates).fit(reports[:1000])
    merged.merge(FrequencyEstimator(candidates=candidates).fit(reports[1000:]))
    stored = FrequencyEstimator(channel.to_dict(), candidates=candidates).fit(np.asarray(reports))
    counted = FrequencyEstimator(channel, candidates=candidates)
    counted.fit_counts(whole.counts_, whole.n_reports_)
    for other in (streamed, merged, stored, counted, pickle.loads(pickle.dumps(whole))):
        np.testing.assert_array_equal(other.counts_, whole.counts_)
        np.testing.assert_array_equal(other.n_reports_, whole.n_reports_)
        np.testing.assert_allclose(other.frequencies_, whole.frequencies_, atol=1e-12)
    assert whole.counts_.shape == (channel.hashing.n_cohorts, channel.hashing.n_buckets)
    assert whole.n_reports_.sum() == 4000


def test_group_by_cohort_and_bucket_is_enough():
    channel = CHANNELS["O-RR"]
    reports = pd.DataFrame(np.asarray(_reports(channel)), columns=["cohort", "bucket"])
    grouped = reports.groupby(["cohort", "bucket"]).size()
    whole = FrequencyEstimator(channel, candidates=WORDS).fit(reports)
    for counts in (grouped, grouped.to_dict()):
        fitted = FrequencyEstimator(channel, candidates=WORDS).fit_counts(counts)
        np.testing.assert_array_equal(fitted.counts_, whole.counts_)
    for counts in ({(0, 16): 1}, {(32, 0): 1}, {0: 1}, {(0, 1, 2): 1}, {("0", 1): 1}):
        with pytest.raises(ChannelError, match="keyed by"):
            FrequencyEstimator(channel, candidates=WORDS).fit_counts(counts)
    rappor = CHANNELS["O-RAPPOR"]
    with pytest.raises(ChannelError):
        FrequencyEstimator(rappor, candidates=WORDS).fit_counts(np.zeros((4, 64), int))
    with pytest.raises(ChannelError, match="4 cohorts"):
        FrequencyEstimator(rappor, candidates=WORDS).fit_counts(np.zeros((4, 64), int), [1, 2])
    with pytest.raises(ChannelError, match="shape"):
        FrequencyEstimator(rappor, candidates=WORDS).fit_counts(np.zeros((64, 4), int), [9] * 4)


def test_cohorts_without_reports_are_left_out():
    channel = CHANNELS["O-RR"]
    reports = np.asarray(_reports(channel))
    half = reports[reports[:, 0] < 16]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = FrequencyEstimator(channel, candidates=WORDS, complete=True).fit(half)
    assert (fitted.n_reports_[16:] == 0).all()
    assert np.isfinite(fitted.standard_errors_).all()
    errors = fitted.raw_frequencies_ - P
    assert (np.abs(errors) < 6 * fitted.standard_errors_).all()


# -- candidate lists -------------------------------------------------------------------------


def test_candidates_are_checked():
    open_channel, closed = CHANNELS["O-RR"], CHANNELS["closed"]
    reports = _reports(open_channel)
    for candidates, error in (
        (None, ValueError),
        ([], ValueError),
        (["a", "a"], ValueError),
        (["a", None], ValueError),
        (["a", 1], TypeError),
        ([["a"]], (TypeError, ValueError)),
        ("word 1", TypeError),
        (7, TypeError),
        ([b"a"], TypeError),
        (["\ud800"], ValueError),
    ):
        with pytest.raises(error):
            FrequencyEstimator(candidates=candidates).fit(reports)
    with pytest.raises(ValueError, match="closed alphabet"):
        FrequencyEstimator(candidates=[3, 99]).fit(_reports(closed))
    with pytest.raises(ChannelError, match="candidates= is for cohorts"):
        FrequencyEstimator(candidates=[0, 1]).fit(KRRTransformer(categories=3).fit_transform([0]))
    with pytest.raises(TypeError, match="complete"):
        FrequencyEstimator(candidates=WORDS, complete="yes").fit(reports)
    with pytest.raises(ValueError, match="decoder must be one of"):
        FrequencyEstimator(candidates=WORDS, decoder="inversion").fit(reports)
    with pytest.raises(ValueError, match="decoder must be one of"):
        FrequencyEstimator(KRRChannel(1.0, 3), decoder="least_squares").fit([[1]])
    for projection in ("simplex", "normalize"):
        with pytest.raises(ValueError, match="subsimplex"):
            FrequencyEstimator(candidates=WORDS, projection=projection).fit(reports)
    one = FrequencyEstimator(candidates=["word 0"]).fit(reports)
    assert one.frequencies_.shape == (1,)


def test_another_list_can_be_asked_of_the_same_reports():
    server = FrequencyEstimator(candidates=WORDS[:20]).fit(_reports(CHANNELS["O-RR"]))
    later = FrequencyEstimator(candidates=["word 3", "word 30"]).merge(server)
    assert later.categories_.tolist() == ["word 3", "word 30"]
    again = FrequencyEstimator(candidates=["word 3", "word 30"]).fit(_reports(CHANNELS["O-RR"]))
    np.testing.assert_array_equal(later.frequencies_, again.frequencies_)


@pytest.mark.statistical
def test_unexplained_mass_is_unbiased():
    channel, rng = CohortChannel.for_epsilon(2.0, Hashing(8, 64), "krr"), np.random.default_rng(9)
    p = np.concatenate([np.full(100, 0.6 / 100), np.full(400, 0.4 / 400)])
    masses, filled = [], []
    for _ in range(200):
        counts, totals = channel.simulate_counts(np.arange(500), p, 20_000, random_state=rng)
        fitted = FrequencyEstimator(channel, candidates=np.arange(100)).fit_counts(counts, totals)
        masses.append(fitted.unexplained_mass_)
        filled.append(1 - fitted.frequencies_.sum())
    # The family of hash functions is one, which leaves an offset of its own: a tenth of the sd.
    assert abs(np.mean(masses) - 0.4) < 5 * np.std(masses) / np.sqrt(200) + 0.02
    # Why it is not read off the projection, which fills the gap with noise:
    assert np.mean(filled) < np.mean(masses) - 5 * np.std(filled) / np.sqrt(200)


def test_what_is_shown_belongs_together_whatever_is_set_afterwards():
    fitted = FrequencyEstimator(candidates=WORDS).fit(_reports(CHANNELS["O-RR"]))
    before = fitted.to_frame()
    fitted.set_params(candidates=["x", "y"], projection=None, decoder="maximum_likelihood")
    pd.testing.assert_frame_equal(fitted.to_frame(), before)
    assert fitted.categories_.tolist() == WORDS and len(fitted.detected()) == 40
    twin = pickle.loads(pickle.dumps(fitted))
    pd.testing.assert_frame_equal(twin.to_frame(), before)
    assert len(pickle.dumps(fitted)) < 30_000  # without the tables of buckets


def test_closed_alphabets_are_their_own_candidates():
    fitted = FrequencyEstimator().fit(_reports(CHANNELS["closed"]))
    assert fitted.categories_.tolist() == list(range(40))
    assert fitted.frequencies_.sum() == pytest.approx(1)
    assert fitted.unexplained_mass_ == 0
    turned = FrequencyEstimator(candidates=np.arange(40)[::-1]).fit(_reports(CHANNELS["closed"]))
    np.testing.assert_allclose(turned.frequencies_[::-1], fitted.frequencies_, atol=1e-12)
    # With part of the list the permutations' complementary buckets would bias the estimate.
    with pytest.raises(ValueError, match="as a whole"):
        FrequencyEstimator(candidates=[5, 3]).fit(_reports(CHANNELS["closed"]))


@pytest.mark.statistical
@pytest.mark.parametrize("decoder", DECODERS)
def test_what_the_candidates_lack_is_not_handed_to_them(decoder):
    # FORMULAS: with u = .4 uncovered, S = 200, k = 16, plain least squares has an ℓ1 error of
    # .434, the centred system .059.
    channel = CohortChannel.for_epsilon(4.0, Hashing(16, 256), "krr")
    covered, n = 200, 10**6
    p = np.concatenate([0.6 * zipf_distribution(covered, 1.0), 0.4 * zipf_distribution(2000, 0.5)])
    values = np.arange(covered + 2000)
    counts, totals = channel.simulate_counts(values, p, n, random_state=3)
    partial = FrequencyEstimator(channel, candidates=values[:covered], decoder=decoder)
    partial.fit_counts(counts, totals)
    error = np.abs(partial.frequencies_ - p[:covered]).sum()
    assert partial.unexplained_mass_ == pytest.approx(0.4, abs=0.03)
    # A complete list of the same size errs about as much. (The uncovered strings do not fall
    # evenly into the buckets, which is noise of its own, and more of the whole where the decoder
    # is more efficient; handing them to the candidates would cost .4 at least.)
    q = p[:covered] / 0.6
    counts, totals = channel.simulate_counts(values[:covered], q, n, random_state=4)
    whole = FrequencyEstimator(
        channel, candidates=values[:covered], complete=True, decoder=decoder
    ).fit_counts(counts, totals)
    assert error < 1.5 * np.abs(whole.frequencies_ - q).sum() < 0.1


# -- intervals and detection -----------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("name", ["O-RR", "O-RAPPOR", "O-RAPPOR, h = 2", "closed"])
def test_intervals_cover_at_their_level(name, complete):
    channel, n, n_trials, level = CHANNELS[name], 20_000, 300, 0.9
    values, rng = _values(channel), np.random.default_rng(11)
    inside, covered = 0, np.zeros(40)
    estimator = FrequencyEstimator(channel, candidates=values, complete=complete, projection=None)
    for _ in range(n_trials):
        counts, totals = channel.simulate_counts(values, P, n, random_state=rng)
        fitted = estimator.fit_counts(counts, totals)
        lower, upper = fitted.confidence_interval(level).T
        covered += (lower <= P) & (upper >= P)
        inside += (lower <= fitted.frequencies_).all() and (fitted.frequencies_ <= upper).all()
    assert inside == n_trials
    # Asymptotic intervals: at least .87 of .9 for every candidate (false alarm below 1e-6), and
    # on average .88 to .99 (clustered errors are conservative).
    assert covered.min() >= binom.ppf(1e-6 / 40, n_trials, 0.87)
    assert 0.88 < covered.mean() / n_trials < 0.99


@pytest.mark.statistical
@pytest.mark.parametrize("n", [10**6, 10**7])
@pytest.mark.parametrize(
    ("mechanism", "k", "n_cohorts"), [("krr", 16, 128), ("rappor", 4096, 2), ("rappor", 1024, 8)]
)
def test_uncovered_heavy_strings_detect_nobody_else(mechanism, k, n_cohorts, n):
    # 200 candidates, 100 of which nobody has, and an uncovered string of mass .1. Without the
    # clustered errors 6% of the absent ones are detected at n = 10⁶, 28% at 10⁷.
    alpha, n_trials = 0.05, 60
    p = np.concatenate([0.9 * zipf_distribution(100, 1.0), np.zeros(100), [0.1]])
    false_alarms, found = 0, 0
    rng = np.random.default_rng(5)
    for trial in range(n_trials):
        hashing = Hashing(k, n_cohorts, 1, f"trial {trial}")
        channel = CohortChannel.for_epsilon(4.0, hashing, mechanism)
        counts, totals = channel.simulate_counts(np.arange(201), p, n, random_state=rng)
        fitted = FrequencyEstimator(channel, candidates=np.arange(200)).fit_counts(counts, totals)
        detected = fitted.detected(alpha)
        false_alarms += detected[100:].any()
        found += detected[:10].all()
    # Family-wise error at most alpha: more alarms than this have probability 1e-6.
    assert false_alarms <= binom.isf(1e-6, n_trials, alpha)
    assert found >= 0.9 * n_trials


@pytest.mark.statistical
@pytest.mark.parametrize("cls", [KRRTransformer, RapporTransformer])
def test_detection_over_a_fixed_alphabet_is_exact(cls):
    # Exact binomial tests: family-wise error at most alpha for every n.
    channel = cls(1.0, categories=50).fit().channel_
    p = np.concatenate([zipf_distribution(10, 0.5), np.zeros(40)])
    alarms, n_trials = 0, 2000
    for counts in channel.simulate_counts(p, 20_000, n_trials, random_state=8):
        fitted = FrequencyEstimator(channel).fit_counts(counts, 20_000)
        detected = fitted.detected(0.05)
        alarms += detected[10:].any()
        assert (fitted.detected(0.05, "benjamini_hochberg") >= detected).all()
    assert alarms <= binom.isf(1e-6, n_trials, 0.05)


def test_detection_checks_its_parameters():
    fitted = FrequencyEstimator(candidates=WORDS).fit(_reports(CHANNELS["O-RR"]))
    assert fitted.detected().dtype == bool and fitted.detected().shape == (40,)
    for alpha in (0, 1, -1, float("nan")):
        with pytest.raises(ValueError, match="alpha"):
            fitted.detected(alpha)
    with pytest.raises(ValueError, match="method"):
        fitted.detected(0.05, "holm")
    pair = ProductChannel([KRRChannel(3.0, 3), KRRChannel(3.0, 4)])
    both = FrequencyEstimator().fit(pair.randomize(np.zeros((500, 2), int), random_state=0))
    assert both.detected().shape == (7,)


# -- what cohorts can tell apart -------------------------------------------------------------


def test_more_candidates_than_the_cohorts_tell_apart_is_announced():
    channel = CohortChannel.for_epsilon(4.0, Hashing(8, 4), "krr")  # rank at most 4 * 7 (+ 1)
    reports = channel.randomize(
        np.column_stack([np.arange(400) % 4, np.zeros(400, int)]), random_state=0
    )
    for decoder in DECODERS:
        with pytest.warns(DecodingWarning, match="at most 28|Maximum likelihood"):
            fitted = FrequencyEstimator(candidates=WORDS, decoder=decoder).fit(reports)
        assert np.isnan(fitted.standard_errors_).all()
        assert np.isnan(fitted.confidence_interval()).all()
        with pytest.raises(ValueError, match="no standard errors"):
            fitted.detected()
        assert np.isfinite(fitted.frequencies_).all()
    with pytest.raises(ValueError, match="variances"), pytest.warns(DecodingWarning):
        FrequencyEstimator(candidates=WORDS, constraints=_at_most_half).fit(reports)
    with pytest.warns(DecodingWarning, match="near 1"):
        FrequencyEstimator(candidates=WORDS[:27]).fit(reports)


def test_one_cohort_works_where_buckets_suffice():
    channel = CohortChannel.for_epsilon(30.0, Hashing(4096, 1), "krr")
    rng = np.random.default_rng(0)
    users = rng.choice(WORDS, 2000, p=P).astype(object)
    zeros = np.zeros(2000, dtype=np.int64)
    codes = np.column_stack([zeros, channel.hashing.encode(users, zeros)])
    fitted = FrequencyEstimator(candidates=WORDS, complete=True).fit(channel.randomize(codes))
    truth = pd.Series(users).value_counts(normalize=True).reindex(WORDS, fill_value=0).to_numpy()
    np.testing.assert_allclose(fitted.frequencies_, truth, atol=1e-6)


def _at_most_half(p):
    return [p <= 0.5]


def _first_is_tenth(p):
    return [p[0] == 0.1]


@every_channel
def test_constraints_hold(channel):
    reports = _reports(channel)
    for complete in (True, False):
        fitted = FrequencyEstimator(
            candidates=_values(channel), complete=complete, constraints=_first_is_tenth
        ).fit(reports)
        assert fitted.frequencies_[0] == pytest.approx(0.1, abs=1e-6)
        assert fitted.frequencies_.min() >= 0 and fitted.frequencies_.sum() <= 1 + 1e-9


# -- predictions -----------------------------------------------------------------------------


@every_channel
@pytest.mark.parametrize("complete", [True, False])
def test_posterior_is_bayes_rule(channel, complete, monkeypatch):
    reports, values = _reports(channel, 300), _values(channel)
    fitted = FrequencyEstimator(candidates=values, complete=complete).fit(reports)
    table = distinct_buckets(channel.hashing.table(values), channel.hashing.n_buckets)
    likelihood, other = map(np.exp, channel.log_likelihood(np.asarray(reports), table))
    prior = (project_simplex if complete else project_subsimplex)(fitted.frequencies_)
    rest = 0.0 if complete else max(1 - prior.sum(), 0)
    joint = prior * likelihood
    total = joint.sum(axis=1) + rest * other
    proba = fitted.predict_proba(reports)
    np.testing.assert_allclose(proba, joint / total[:, np.newaxis], atol=1e-10)
    assert fitted.predict(reports).tolist() == values[joint.argmax(axis=1)].tolist()
    assert fitted.score(reports) == pytest.approx(np.log(total).mean())
    monkeypatch.setattr("skldp.frequency._cohorts._BLOCK", 100)
    np.testing.assert_array_equal(fitted.predict_proba(reports), proba)


def test_several_attributes_have_lists_of_their_own():
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.choice(WORDS, 6000, p=P), rng.choice(["x", "y"], 6000)])
    pipeline = make_pipeline(
        CohortHashEncoder(16, 32, random_state=0),
        KRRTransformer(12.0, random_state=0),
        FrequencyEstimator(candidates=[WORDS, ["x", "y", "z"]]),
    ).fit(table)
    server = pipeline[-1]
    assert server.channel_.epsilon == 12.0
    assert [len(one) for one in server.categories_] == [40, 3]
    np.testing.assert_allclose(server.frequencies_[1], [0.5, 0.5, 0], atol=0.06)
    assert server.predict(pipeline[:-1].transform(table[:5])).shape == (5, 2)
    assert server.confidence_interval().shape == (43, 2)
    assert len(server.to_frame()) == 43 and len(server.unexplained_mass_) == 2
    with pytest.raises(ValueError, match="2 attributes"):
        clone(server).set_params(candidates=[WORDS, WORDS, WORDS]).fit(
            pipeline[:-1].transform(table)
        )


# -- searching and suggesting ----------------------------------------------------------------


@pytest.mark.statistical
def test_a_grid_search_finds_one_hash_and_several_cohorts():
    rng = np.random.default_rng(2)
    users = rng.choice(WORDS, 30_000, p=P).astype(object)
    pipeline = Pipeline(
        [
            ("encoder", CohortHashEncoder(64, random_state=0)),
            ("mechanism", RapporTransformer(2.0, random_state=0)),
            ("estimator", FrequencyEstimator(candidates=WORDS, complete=True)),
        ]
    )
    search = GridSearchCV(
        pipeline,
        {"encoder__n_hashes": [1, 2, 4], "encoder__n_cohorts": [1, 2, 8]},
        scoring=l1_scorer,
        cv=3,
        n_jobs=2,
        error_score="raise",
    )
    with warnings.catch_warnings():
        # One cohort puts two of the 40 words into one bucket, and says so.
        warnings.simplefilter("ignore", DecodingWarning)
        search.fit(users)
    scores = pd.DataFrame(search.cv_results_).pivot(
        index="param_encoder__n_hashes",
        columns="param_encoder__n_cohorts",
        values="mean_test_score",
    )
    assert search.best_params_["encoder__n_hashes"] == 1
    assert (scores.loc[1] > scores.loc[4]).all()
    assert (scores[1] < scores[8] - 0.05).loc[1]


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_grid_search_over_everything_at_once(epsilon):
    rng = np.random.default_rng(3)
    users = rng.choice(WORDS, 3000, p=P).astype(object)
    pipeline = Pipeline(
        [
            ("encoder", CohortHashEncoder(random_state=0)),
            ("mechanism", KRRTransformer(random_state=0)),
            ("estimator", FrequencyEstimator(candidates=WORDS)),
        ]
    )
    search = GridSearchCV(
        pipeline,
        {
            "encoder__n_buckets": [8, 16],
            "encoder__n_cohorts": [16, 32],
            "mechanism__epsilon": [epsilon],
        },
        scoring=l1_scorer,
        cv=2,
        error_score="raise",
    ).fit(users)
    server = search.best_estimator_[-1]
    assert server.channel_.epsilon == epsilon
    assert server.channel_.hashing.n_buckets == search.best_params_["encoder__n_buckets"]


@pytest.mark.statistical
@pytest.mark.parametrize("open_alphabet", [True, False])
@pytest.mark.parametrize("epsilon", [1.0, 3.0, 6.0])
def test_suggested_channels_have_the_loss_that_is_promised(epsilon, open_alphabet):
    size, n, n_trials = 300, 100_000, 40
    channel, promised = suggest_parameters(epsilon, n, size, open_alphabet)
    p = np.full(size, 1 / size)
    assert promised == pytest.approx(expected_l2_loss(channel, p, n))
    rng, losses = np.random.default_rng(4), []
    for trial in range(n_trials):
        if isinstance(channel, CohortChannel):
            hashing = channel.hashing
            family = Hashing(
                hashing.n_buckets, hashing.n_cohorts, 1, f"trial {trial}", hashing.alphabet
            )
            used = CohortChannel(channel.bucket, family)
            counts, totals = used.simulate_counts(np.arange(size), p, n, random_state=rng)
            fitted = FrequencyEstimator(
                used, candidates=np.arange(size), complete=True, projection=None
            ).fit_counts(counts, totals)
        else:
            counts = channel.simulate_counts(p, n, random_state=rng)[0]
            fitted = FrequencyEstimator(channel, projection=None).fit_counts(counts, n)
        losses.append(((fitted.frequencies_ - p) ** 2).sum())
    # The formula is first-order in shared buckets: 5%, plus the error of the simulation.
    slack = 5 * np.std(losses, ddof=1) / np.sqrt(n_trials)
    assert np.mean(losses) == pytest.approx(promised, abs=0.05 * promised + slack)


def test_suggestions_can_be_held_in_memory():
    channel, _ = suggest_parameters(1.0, 10**8, 10**6)
    assert channel.hashing.n_cohorts * 10**6 <= 2**30


def test_suggestions_follow_the_papers_advice():
    for epsilon in (2.0, 4.0):
        channel, _ = suggest_parameters(epsilon, 10**5, 10**4)
        assert isinstance(channel.bucket, KRRChannel)
        assert 0.4 < channel.hashing.n_buckets / (np.exp(epsilon) + 1) < 2.5
    assert isinstance(suggest_parameters(8.0, 10**5, 50, open_alphabet=False)[0], KRRChannel)
    with pytest.raises(ChannelError):
        suggest_parameters(0.0, 10**5, 100)
    for wrong in ((-1, 10, 10), (1.0, 0, 10), (1.0, 10, 1), ("1", 10, 10), (1.0, 2.5, 10)):
        with pytest.raises((TypeError, ValueError)):
            suggest_parameters(*wrong)


def test_geometric_frequencies_are_found_in_words():
    # End to end through the pipeline, at sizes a tutorial would use.
    rng = np.random.default_rng(6)
    p = geometric_distribution(40, 5)
    users = rng.choice(WORDS, 50_000, p=p).astype(object)
    for mechanism in (KRRTransformer(4.0), RapporTransformer(4.0, packed=True)):
        pipeline = make_pipeline(
            CohortHashEncoder(64, 16), mechanism, FrequencyEstimator(candidates=WORDS)
        )
        server = pipeline.fit(users)[-1]
        errors = server.raw_frequencies_ - p
        assert (np.abs(errors) < 6 * server.standard_errors_).all()  # false alarm 1e-7


def test_a_permutation_of_a_closed_alphabet_is_no_ill_conditioned_system(recwarn):
    channel = CohortChannel.for_epsilon(3.0, Hashing(5, 1, 1, "", Alphabet(5)), "krr")
    reports = channel.randomize([[0, 0], [0, 3], [0, 3]], random_state=0)
    fitted = FrequencyEstimator().fit(reports)
    assert np.isfinite(fitted.standard_errors_).all() and not recwarn.list


def test_two_candidates_in_the_same_buckets_do_not_stop_the_others_from_being_detected():
    channel = CohortChannel.for_epsilon(8.0, Hashing(64, 1), "krr")
    buckets = channel.hashing.table(np.arange(60))[0, 0]
    alike = np.flatnonzero(buckets == buckets[np.argmax(np.bincount(buckets)[buckets])])[:2]
    others = np.setdiff1d(np.arange(60), np.flatnonzero(np.isin(buckets, buckets[alike])))[:10]
    distinct = others[np.unique(buckets[others], return_index=True)[1]]
    candidates = np.concatenate([alike, distinct])
    p = np.zeros(len(candidates))
    p[2] = 1.0
    counts, totals = channel.simulate_counts(candidates, p, 10_000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecodingWarning)
        fitted = FrequencyEstimator(channel, candidates=candidates).fit_counts(counts, totals)
        detected = fitted.detected()
    assert np.isnan(fitted.standard_errors_[:2]).all()
    assert detected[2] and not detected[:2].any()
