"""The estimator: every option, input of all kinds, streams, checkpoints, forks and interrupts."""

import itertools
import os
import pickle
import traceback
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_validate

from skldp import OnlineCollaborativeMean
from skldp.collaborative._grid import HALF_STEPS
from skldp.collaborative._noise import NoiseLaw
from skldp.collaborative._releases import BlockReleases, Released, TreeReleases
from skldp.collaborative._statistics import released_statistics

SCHEDULES = ("broadcast", "round_robin", "restricted_round_robin")
NOISES = {"laplace": 0.0, "gaussian": 1e-6, "gaussian_classic": 1e-6}
RELEASES = {"blocks": None, "tree": 63}
both_releases = pytest.mark.parametrize("release", RELEASES)
every_schedule = pytest.mark.parametrize("schedule", SCHEDULES)
TRUTH = np.array([0.2, 0.2, 0.2, 0.7, 0.7, 0.7])


def build(release="blocks", **parameters):
    defaults = {"bounds": (0, 1), "first_block": 3, "random_state": 0}
    return OnlineCollaborativeMean(
        release=release, horizon=RELEASES[release], **{**defaults, **parameters}
    )


def rows(n_rows, n_agents=6, *, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    X = np.clip(np.resize(TRUTH, n_agents) + rng.uniform(-0.2, 0.2, (n_rows, n_agents)), 0, 1)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def results(agents):
    return (
        agents.means_,
        agents.public_means_,
        agents.local_means_,
        agents.same_class_,
        agents.n_observed_,
        agents.n_released_,
        agents.privacy_spent_,
    )


def agree(one, other, rtol=0.0):
    for a, b in zip(results(one), results(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


def frozen(thing):
    """Everything an object holds, in a form that compares; caches left out."""
    if isinstance(thing, np.ndarray):
        return thing.dtype.str, thing.shape, thing.tobytes()
    if isinstance(thing, tuple | list):
        return [frozen(one) for one in thing]
    if hasattr(thing, "__dict__"):
        caches = {"_means", "_statistics", "parameters", "_deviation", "_margins", "_least"}
        return {name: frozen(one) for name, one in vars(thing).items() if name not in caches}
    return thing


def last_squares(agents):
    """Noised sums of squares, the last of each agent: two draws agree once in 2^36 times."""
    squares = agents._network.releases.released().squares
    return squares[np.arange(len(squares)), np.count_nonzero(squares, axis=1) - 1]


def silence(monkeypatch):
    """Turn the noise off."""

    def zeros(self, key, agents, indices):
        return np.zeros((self.n_quantities, agents.size), dtype=np.int64)

    monkeypatch.setattr(NoiseLaw, "draw", zeros)


# -- every option --------------------------------------------------------------------------


@pytest.mark.parametrize("noise", NOISES)
@both_releases
@every_schedule
def test_all_options_together(release, noise, schedule):
    X = rows(14, missing=0.2)
    X[:6, 5] = np.nan  # comes late
    for block_weights, peer_weights, variance, significance in itertools.product(
        ("inverse_variance", "mean_of_means"),
        ("pooled", "inverse_variance", "count"),
        (0.02, "bound", "own", "private"),
        (0.05, "1/t"),
    ):
        options = {
            "noise": noise,
            "delta": NOISES[noise],
            "schedule": schedule,
            "block_weights": block_weights,
            "peer_weights": peer_weights,
            "variance": variance,
            "significance": significance,
        }
        agents = build(release, **options).fit(X[:4])
        assert np.isnan(agents.public_means_[5]) and np.isnan(agents.means_[5])
        agents.partial_fit(X[4:])
        for means in (agents.means_, agents.public_means_, agents.local_means_):
            assert means.shape == (6,) and np.all((means >= 0) & (means <= 1))
        np.testing.assert_allclose(agents.local_means_, np.nanmean(X, axis=0), rtol=1e-12)
        assert agents.same_class_.diagonal().all()
        np.testing.assert_array_equal(agents.n_observed_, np.sum(~np.isnan(X), axis=0))
        assert np.all((agents.privacy_spent_ > 0) & (agents.privacy_spent_ <= 1))


@both_releases
@every_schedule
def test_rows_in_any_chunks_are_the_same_stream(release, schedule):
    X = rows(60, missing=0.3)
    once = build(release, schedule=schedule).fit(X)
    for size in (1, 7):
        pieces = build(release, schedule=schedule)
        for start in range(0, 60, size):
            pieces.partial_fit(X[start : start + size])
        agree(once, pieces, rtol=1e-12)
    agree(once, clone(pieces).fit(X))


def test_one_seed_is_one_stream_and_generators_go_on():
    X = rows(20)
    agree(build().fit(X), build(random_state=np.int64(0)).fit(X))
    assert np.all(last_squares(build(random_state=1).fit(X)) != last_squares(build().fit(X)))
    for make in (np.random.default_rng, np.random.RandomState):
        agents = build(random_state=make(0))
        first = last_squares(agents.fit(X))
        assert np.all(first != last_squares(agents.fit(X)))


# -- streams of all kinds ------------------------------------------------------------------


def test_one_agent_is_on_its_own():
    X = rows(40, 1)
    for schedule in SCHEDULES:
        agents = build(schedule=schedule).fit(X)
        np.testing.assert_allclose(agents.means_, X.mean(axis=0), rtol=1e-12)
        assert agents.same_class_.tolist() == [[True]]


@both_releases
def test_identical_constant_streams_are_one_class(release):
    for value in (0.0, 0.4, 1.0):
        agents = build(release, epsilon=1e6).fit(np.full((60, 8), value))
        assert agents.same_class_.all()
        np.testing.assert_allclose(agents.means_, value, atol=1e-5)


def test_classes_are_found_where_noise_is_small():
    agents = build(epsilon=1e3, first_block=32).fit(rows(1000, 12))
    means = np.resize(TRUTH, 12)
    np.testing.assert_array_equal(agents.same_class_, means[:, np.newaxis] == means)
    one_class = build(epsilon=1e3).fit(rows(1000, 12)[:, [0, 1, 2, 6, 7, 8]])
    # Six agents test five others each, at 5% or less.
    assert one_class.same_class_.mean() > 0.8


@every_schedule
def test_unequal_rates_and_agents_that_never_observe(schedule):
    X = rows(60)
    X[1::2, 1] = np.nan
    X[10:, 2] = np.nan
    X[:, 3] = np.nan
    X[7] = np.nan
    agents = build(schedule=schedule).fit(X)
    np.testing.assert_array_equal(agents.n_observed_, [59, 30, 9, 0, 59, 59])
    # Blocks of 3, 6, 12, 24.
    np.testing.assert_array_equal(agents.n_released_, [4, 3, 2, 0, 4, 4])
    np.testing.assert_array_equal(agents.privacy_spent_, [1, 1, 1, 0, 1, 1])
    assert np.isnan(agents.means_[3]) and np.isfinite(np.delete(agents.means_, 3)).all()
    assert not agents.same_class_[:, 3][[0, 1, 2, 4, 5]].any()
    agents.partial_fit(np.full((5, 6), np.nan))
    np.testing.assert_array_equal(agents.n_observed_, [59, 30, 9, 0, 59, 59])


def test_values_outside_the_bounds_are_clipped():
    X = rows(50)
    wild = X.copy()
    wild[::5, 0], wild[1::5, 1], wild[2, 2], wild[3, 2] = 7, -3, 1e308, -1e308
    agree(build().fit(wild), build().fit(np.clip(wild, 0, 1)))


@both_releases
def test_agents_join_by_number(release):
    X = rows(40)
    X[:15, 4:] = np.nan
    whole = build(release).fit(X)
    late = build(release).fit(X[:15, :4]).add_agents(2)
    assert late.n_features_in_ == 6 and np.isnan(late.means_[4:]).all()
    agree(whole, late.partial_fit(X[15:]), rtol=1e-12)
    with pytest.raises(ValueError, match="6 features"):
        late.partial_fit(X[:, :5])


@every_schedule
def test_agents_join_by_name(schedule):
    frame = pd.DataFrame(rows(40), columns=list("abcdef"))
    late = build(schedule=schedule).fit(frame.iloc[:15, :4])
    for names in (["e", "f"], iter(["e", "f"]), pd.Index(["e", "f"]), np.array(["e", "f"])):
        joined = pickle.loads(pickle.dumps(late)).add_agents(names)
        assert list(joined.feature_names_in_) == list("abcdef")
        joined.partial_fit(frame.iloc[15:])
    np.testing.assert_array_equal(joined.n_observed_, [40] * 4 + [25] * 2)
    for wrong, error, message in (
        (["e", "e"], ValueError, "new names"),
        (["a"], ValueError, "new names"),
        ([], ValueError, "new names"),
        ("e", TypeError, "list of names"),
        ([1, 2], TypeError, "list of names"),
        (None, TypeError, "list of names"),
        (2.0, TypeError, "list of names"),
        (2, ValueError, "have names"),
        (True, TypeError, "boolean"),
    ):
        with pytest.raises(error, match=message):
            late.add_agents(wrong)
        assert late.n_features_in_ == 4 and late.same_class_.shape == (4, 4)
    with pytest.raises(ValueError, match="feature names"):
        joined.partial_fit(frame[list("abcdfe")])


def test_only_numbers_join_where_there_are_no_names():
    with pytest.raises(NotFittedError):
        build().add_agents(2)
    agents = build().fit(rows(5))
    with pytest.raises(ValueError, match="pass the number"):
        agents.add_agents(["g"])
    with pytest.raises(ValueError, match="at least 1"):
        agents.add_agents(0)


def test_bounds_of_each_agent():
    X = rows(60)
    scales, shifts = np.array([1, 10, 1e-3, 1e6, 5, 2]), np.array([0, -5, 3, 1e9, 0, -1])
    agents = build(bounds=(shifts, shifts + scales)).fit(X * scales + shifts)
    plain = build().fit(X)
    np.testing.assert_array_equal(agents.n_released_, plain.n_released_)
    np.testing.assert_allclose(
        (agents.local_means_ - shifts) / scales, plain.local_means_, rtol=1e-6
    )
    longer = (np.append(shifts, 0), np.append(shifts + scales, 1))
    with pytest.raises(ValueError, match=r"shape \(7,\)"):
        agents.add_agents(1)
    before = frozen(agents._network)
    changed = (np.append(shifts - 1, 0), longer[1])
    with pytest.raises(ValueError, match="cannot change"):
        agents.set_params(bounds=changed).add_agents(1)
    assert frozen(agents._network) == before
    agents.set_params(bounds=longer).add_agents(1)
    agents.partial_fit(np.column_stack([X * scales + shifts, X[:, 0]]))
    assert agents.n_observed_.tolist() == [120] * 6 + [60]


@pytest.mark.parametrize("make", [list, np.array, pd.Series, tuple])
def test_bounds_are_compared_by_value(make):
    """A series has no truth value, and an array may have been overwritten in place."""
    X = rows(5)
    agents = build(bounds=(make([0.0] * 6), make([1.0] * 6))).fit(X)
    agents.set_params(bounds=(make([0.0] * 6), 1)).partial_fit(X)
    agents.set_params(bounds=(0, make([1, 1, 1, 1, 1, 2])))
    with pytest.raises(ValueError, match=r"bounds of agents .* cannot change"):
        agents.partial_fit(X)
    upper = np.ones(6)
    agents = build(bounds=(0, upper)).fit(X)
    upper[2] = 3
    with pytest.raises(ValueError, match="cannot change"):
        agents.partial_fit(X)


def test_bounds_are_needed_at_the_first_fit():
    for call in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=r"pass bounds=\(lower, upper\)"):
            getattr(build(bounds=None), call)(rows(5))


@every_schedule
def test_an_exhausted_horizon_changes_nothing(schedule):
    X = rows(70, missing=0.01)
    agents = build("tree", schedule=schedule).fit(X[:60])
    before = frozen(agents._network)
    with pytest.raises(ValueError, match=r"horizon is exhausted.*larger horizon.*blocks"):
        agents.partial_fit(X[60:])
    assert frozen(agents._network) == before
    agents.partial_fit(X[60:63])


def test_a_thousand_agents_in_flat_memory():
    X = rows(400, 1000)
    agents = build(first_block=32).fit(X)
    results(agents)
    tracemalloc.start()
    try:
        held = []
        for _ in range(3):
            agents.partial_fit(X[:200])
            agents.means_  # noqa: B018 - computed here, and dropped
            held.append(tracemalloc.get_traced_memory()[0])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Dozens of numbers an agent, and a table of a thousand by a thousand booleans: 1 MB.
    assert max(held) - held[0] < 1e5
    assert peak < 20e6


def test_blocks_that_do_not_grow_take_no_memory():
    agents = build(growth=1.0, first_block=1, schedule="restricted_round_robin")
    for _ in range(4):
        agents.partial_fit(rows(250))
    assert agents.n_released_.tolist() == [1000] * 6
    assert agents._network.releases.noised.size == 2 * 6
    assert len(pickle.dumps(agents)) < 1e4


@pytest.mark.parametrize("block_weights", ["inverse_variance", "mean_of_means"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_blocks_of_one_size_tell_as_much_as_their_sum(noise, block_weights):
    law = NoiseLaw(noise, 1.0, NOISES[noise], 1, True)
    rng = np.random.default_rng(0)
    sums, squares = rng.uniform(0.2, 0.4, (2, 3, 7))
    exists = np.arange(7) < [[7], [1], [0]]
    apart = Released(
        np.where(exists, sums, 0.0),
        np.where(exists, squares, 0.0),
        np.where(exists, 5, 0),
        exists.astype(int),
        exists.sum(axis=1),
    )
    together = Released(*(one.sum(axis=1, keepdims=True) for one in apart[:4]), apart[4])
    for variance in ("private", "bound"):
        one, other = (
            released_statistics(released, law, 1.0, variance=variance, block_weights=block_weights)
            for released in (apart, together)
        )
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_threads_share_simulated_noise_as_calls_do():
    """Streams with one seed, in threads: as one after the other."""
    X = rows(100, 300)
    expected = build(first_block=2, random_state=7).fit(X).public_means_
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(
            lambda _: build(first_block=2, random_state=7).fit(X).public_means_, range(16)
        )
        for one in found:
            np.testing.assert_array_equal(one, expected)


# -- privacy -------------------------------------------------------------------------------


def published(agents, values):
    """All that one agent publishes, row by row: pairs (sum, sum of squares), in steps."""
    found, n_before = [], 0
    for value in values:
        agents.partial_fit([[value]])
        n, noised = int(agents.n_released_[0]), agents._network.releases.noised
        if agents.release == "blocks":
            found += noised[:, 0, n_before:n].T.tolist()
        else:  # the node that ends here
            found.append(noised[:, (n & -n).bit_length() - 1, 0].tolist())
        n_before = n
    return np.array(found).astype(np.int64)


@both_releases
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (2.0**40, 2.0**40 + 2.0**-12), (-3e49, 6e49)])
def test_the_whole_transcript_loses_at_most_epsilon(monkeypatch, release, bounds):
    """Changes over Laplace scales, added up exactly, noise off; bounds of one ulp among them."""
    silence(monkeypatch)
    lower, upper = bounds
    middle = lower / 2 + upper / 2
    law = NoiseLaw("laplace", 1.0, 0.0, 1 if release == "blocks" else 6, True)
    losses = []
    for position in (0, 5, 20):
        for one, other in ((lower, upper), (middle, upper), (lower, middle)):
            streams = np.full((2, 21), middle)
            streams[:, position] = one, other
            both = [published(build(release, bounds=bounds), values) for values in streams]
            losses.append(
                sum(
                    Fraction(abs(int(change))) / scale
                    for pair in both[0] - both[1]
                    for change, scale in zip(pair, law.parameters, strict=True)
                )
            )
            assert losses[-1] <= 1
    # A tree of six levels, of which the first observation of 21 is in five. Bounds that are next
    # to each other have no middle: half of the range, and 1/2 + 1/4 of the loss, remain.
    attained = 1 if lower < middle < upper else Fraction(3, 4)
    assert max(losses) == attained * (1 if release == "blocks" else Fraction(5, 6))


@both_releases
@every_schedule
def test_nothing_public_depends_on_what_is_not_released(release, schedule):
    """The values of the last, running block are others: queries and releases are the same."""
    X = rows(41)  # blocks of 3, 6, 12, 24 end at 3, 9, 21, 45
    other = X.copy()
    other[21:] = rows(20, seed=9)
    logs = []
    for data in (X, other):
        agents = build(release, schedule=schedule)
        queries = []
        for row in data[: 41 if release == "blocks" else 21]:
            agents.partial_fit(row[np.newaxis])
            queries.append(frozen(agents._network.schedule))
        logs.append((queries, frozen(agents.public_means_), frozen(agents.n_released_)))
        logs[-1] += (agents.means_,)
    assert logs[0][:3] == logs[1][:3]
    if release == "blocks":  # what is for own eyes does depend on it
        assert np.all(logs[0][3] != logs[1][3])


@both_releases
def test_colluding_receivers_learn_one_copy(release):
    """In a round robin all hear, of one agent, the same numbers at the same count."""
    agents = build(release, schedule="round_robin", random_state=None)
    heard_of_first = {}
    for row in rows(60):
        agents.partial_fit(row[np.newaxis])
        heard = agents._network.schedule._heard
        for receiver in range(1, 6):
            count = int(heard.n_observed[receiver, 0])
            if count:
                heard_of_first.setdefault(count, set()).add(float(heard.mean[receiver, 0]))
    assert len(heard_of_first) > 3
    assert all(len(means) == 1 for means in heard_of_first.values())


def test_means_of_others_do_not_depend_on_unreleased_data_of_one():
    X = rows(40)
    other = X.copy()
    other[21:, 0] = 0.9
    one, two = build().fit(X), build().fit(other)
    np.testing.assert_array_equal(one.means_[1:], two.means_[1:])
    np.testing.assert_array_equal(one.same_class_[1:], two.same_class_[1:])
    assert one.means_[0] != two.means_[0]


@both_releases
@every_schedule
def test_a_checkpoint_never_releases_again(release, schedule):
    X = rows(60)
    agents = build(release, schedule=schedule, random_state=None).fit(X[:40])
    checkpoint = pickle.dumps(agents)
    resumed = pickle.loads(checkpoint)
    agree(agents, resumed)
    assert frozen(agents._network) == frozen(resumed._network)
    resumed.partial_fit(X[40:])
    # Blocks of 3, 6 and 12; or, 40 being 101000 and 60 being 111100, the node of the first 32.
    old = np.s_[:, :, :3] if release == "blocks" else np.s_[:, 5]
    before, after = (one._network.releases.noised[old] for one in (agents, resumed))
    assert np.all(before != 0)
    np.testing.assert_array_equal(before, after)
    # Two copies release what comes after twice, and differently.
    other = pickle.loads(checkpoint).partial_fit(X[40:])
    assert np.all(last_squares(resumed) != last_squares(other))


def test_a_checkpoint_holds_no_more_than_is_needed():
    X = rows(5000, 20)
    agents = build(first_block=32, schedule="round_robin", random_state=None).fit(X)
    results(agents)
    state = pickle.dumps(agents)
    # Sums, a few blocks and four tables of 20 by 20 numbers; no rows, and no random stream.
    assert len(state) < 4 * 20 * 20 * 8 + 20_000
    assert agents._network.__getstate__()["_means"] is None
    assert agents._network.settings.key is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@both_releases
def test_forks_do_not_share_noise(release):
    X = rows(33)
    agents = build(release, random_state=None).fit(X[:20])
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            os.write(write, last_squares(agents.partial_fit(X[20:])).tobytes())
        finally:
            os._exit(0)
    mine = last_squares(agents.partial_fit(X[20:]))
    theirs = np.frombuffer(os.read(read, mine.nbytes))
    os.waitpid(child, 0)
    os.close(read)
    os.close(write)
    assert theirs.shape == mine.shape and np.all(theirs != mine)


class _Interrupt(BaseException):
    pass


@both_releases
@every_schedule
@pytest.mark.parametrize("where", ["noise", "after"])
def test_an_interrupt_leaves_no_trace(monkeypatch, release, schedule, where):
    """Or the same rows, given again, would be in two sums, at twice the loss."""
    X = rows(60, missing=0.1)
    agents = build(release, schedule=schedule).fit(X[:8])
    agents.means_  # noqa: B018 - so that there is a cache to get wrong
    network = agents._network
    # What stands behind the releases of an agent means nothing, so not the arrays themselves.
    before = frozen([network.releases.released(), network.schedule, network.sums])
    kind = BlockReleases if release == "blocks" else TreeReleases
    target, name = (NoiseLaw, "draw") if where == "noise" else (kind, "extend")
    original, calls = getattr(target, name), []

    def interrupted(self, *arguments):
        calls.append(1)
        result = original(self, *arguments)
        # In broadcast all rows are one call of extend.
        if len(calls) == (1 if schedule == "broadcast" else 3):
            raise _Interrupt
        return result

    with monkeypatch.context() as patched:
        patched.setattr(target, name, interrupted)
        with pytest.raises(_Interrupt):
            agents.partial_fit(X[8:])
    assert frozen([network.releases.released(), network.schedule, network.sums]) == before
    straight = build(release, schedule=schedule).fit(X[:8])
    agree(agents, straight)
    agree(agents.partial_fit(X[8:]), straight.partial_fit(X[8:]))


def test_grid_is_within_its_range_whatever_the_bounds():
    """Bounds next to each other have no middle; steps beyond the range would cost twice ε."""
    for offset in (0.0, 1.0, 2.0**40, -(2.0**60), 1e60):
        lower = np.float64(offset)
        for ulps in (1, 2, 3, 7):
            upper = lower
            for _ in range(ulps):
                upper = np.nextafter(upper, np.inf)
            if not 1e-50 <= upper - lower <= 1e50:
                continue
            for value in (lower, upper, (lower + upper) / 2):
                agents = build(bounds=(lower, upper)).fit([[value]])
                total, square = agents._network.releases.pending[:, 0]
                assert abs(total) <= HALF_STEPS and square == total**2


# -- parameters ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"epsilon": 0}, ValueError, "positive"),
        ({"epsilon": -1}, ValueError, "at least 0"),
        ({"epsilon": "1"}, TypeError, "real number"),
        ({"epsilon": [1.0]}, TypeError, "real number"),
        ({"epsilon": 2.0**-41}, ValueError, "between"),
        ({"epsilon": 10**400}, ValueError, "between"),
        ({"delta": 1e-6}, ValueError, 'noise="gaussian"'),
        ({"noise": "gaussian"}, ValueError, "for example 1e-6"),
        (
            {"noise": "gaussian_classic", "delta": 1e-6, "epsilon": 1.01},
            ValueError,
            'Use noise="gaussian"',
        ),
        ({"noise": "normal"}, ValueError, "one of 'laplace'"),
        ({"release": "trees"}, ValueError, "one of 'blocks', 'tree'"),
        ({"release": "tree", "horizon": None}, ValueError, "needs horizon"),
        ({"release": "tree", "horizon": 2.5}, TypeError, "integer"),
        ({"release": "tree", "horizon": 2**28}, ValueError, "at most"),
        ({"release": "blocks", "horizon": 7}, ValueError, "Pass horizon=None"),
        ({"schedule": "gossip"}, ValueError, "one of 'broadcast'"),
        ({"block_weights": "count"}, ValueError, "one of 'inverse_variance'"),
        ({"peer_weights": "mean_of_means"}, ValueError, "one of 'pooled'"),
        ({"variance": "known"}, ValueError, "one of 'private'"),
        ({"variance": None}, ValueError, "one of 'private'"),
        ({"variance": 0.0}, ValueError, "positive"),
        ({"variance": np.nan}, ValueError, "positive"),
        ({"variance": 0.26}, ValueError, "exceeds"),
        ({"variance": True}, TypeError, "got bool"),
        ({"variance": [0.1]}, TypeError, "got list"),
        ({"significance": 0}, ValueError, "strictly between"),
        ({"significance": "1/n"}, ValueError, "one of '1/t'"),
        ({"significance": None}, TypeError, "real number"),
        ({"first_block": 0}, ValueError, "at least 1"),
        ({"first_block": 3.0}, TypeError, "integer"),
        ({"growth": 0.5}, ValueError, "at least 1"),
        ({"growth": np.inf}, ValueError, "finite"),
        ({"growth": "2"}, TypeError, "number"),
        ({"random_state": -1}, ValueError, "non-negative"),
        ({"random_state": "0"}, TypeError, "random_state"),
        ({"bounds": (1, 0)}, ValueError, "lower < upper"),
        ({"bounds": 5}, TypeError, "pair"),
        ({"bounds": (0, [1, 2])}, ValueError, "shape"),
    ],
)
def test_wrong_parameters_raise_and_keep_the_earlier_fit(parameters, error, message):
    X = rows(10)
    agents = build().fit(X)
    state = dict(vars(agents))
    changed = agents.set_params(**parameters)
    with (
        sklearn.config_context(skip_parameter_validation=True, assume_finite=True),
        pytest.raises(error, match=message),
    ):
        changed.fit(X)
    assert vars(agents) == state | parameters
    agents.set_params(**{name: state[name] for name in parameters}).partial_fit(X)
    agree(agents, build().fit(np.vstack([X, X])), rtol=1e-12)


@pytest.mark.parametrize(
    "changed",
    [
        {"epsilon": 2.0},
        {"epsilon": True},
        {"epsilon": [1.0, 1.0]},
        {"noise": "gaussian", "delta": 1e-6},
        {"schedule": "round_robin"},
        {"block_weights": "mean_of_means"},
        {"peer_weights": "count"},
        {"variance": "bound"},
        {"variance": 0.1},
        {"significance": "1/t"},
        {"first_block": 4},
        {"growth": 1.5},
        {"release": "tree", "horizon": 63},
        {"bounds": (0, 2)},
        {"bounds": None},
    ],
)
def test_a_changed_parameter_stops_the_stream_and_changes_nothing(changed):
    X = rows(20)
    agents = build().fit(X[:10])
    original, before = agents.get_params(), frozen(agents._network)
    with pytest.raises(ValueError, match=r"changed since|cannot change|bounds is required"):
        agents.set_params(**changed).partial_fit(X[10:])
    agents.set_params(**original)
    assert frozen(agents._network) == before
    agree(agents.partial_fit(X[10:]), build().fit(X), rtol=1e-12)


def test_equal_parameters_of_another_type_are_the_same():
    X = rows(20)
    agents = build().fit(X[:10])
    agents.set_params(epsilon=1, growth=np.float64(2), first_block=np.int8(3), random_state=5)
    agree(agents.partial_fit(X[10:]), build().fit(X), rtol=1e-12)


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": 2.0**-40},
        {"epsilon": 1e300},
        {"epsilon": Fraction(1, 3)},
        {"noise": "gaussian", "delta": 1e-100, "epsilon": 2.0**-40},
        {"noise": "gaussian", "delta": 0.99, "epsilon": 2.0**-40},
        {"noise": "gaussian", "delta": 1 - 2.0**-53, "epsilon": 1e4},
        {"growth": 1e308},
        {"growth": 1.0, "first_block": 1},
        {"first_block": 2**28},
        {"variance": 1e-300, "epsilon": 1e200},
        {"significance": 1e-300},
        {"significance": 1 - 2.0**-53},
        {"bounds": (0, 1e-50)},
        {"bounds": (-5e49, 5e49)},
        {"bounds": (2.0**40, 2.0**40 + 2.0**-12)},
        {"bounds": (0, [1e-50, 1, 1e50, 1, 1, 1])},
    ],
    ids=str,
)
@both_releases
def test_extremes_work_without_warnings(release, parameters):
    lower, upper = (np.asarray(side, dtype=float) for side in parameters.get("bounds", (0, 1)))
    X = lower + (upper - lower) * rows(40)
    for peer_weights, variance in itertools.product(
        ("pooled", "inverse_variance", "count"), ("private", "own")
    ):
        options = {"peer_weights": peer_weights, "variance": variance, **parameters}
        agents = build(release, schedule="restricted_round_robin", **options)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            agents.fit(X)
            for means in (agents.means_, agents.public_means_):
                known = ~np.isnan(means)
                assert np.all(((lower <= means) & (means <= upper))[known])
            assert known.any() or parameters.get("first_block") == 2**28
            assert np.all(agents.privacy_spent_ <= float(agents.epsilon))
            assert np.isfinite(agents.score(X))


# -- input ---------------------------------------------------------------------------------


def test_containers_and_types_mean_the_same():
    integers = np.random.default_rng(0).integers(0, 4, (20, 3))
    reference = build(bounds=(0, 3)).fit(integers.astype(float))
    for data in (
        integers,
        integers.astype(np.uint8),
        integers.astype(np.float32),
        integers.astype(np.longdouble),
        integers.astype(object),
        np.asfortranarray(integers, dtype=float),
        integers.tolist(),
        np.ma.masked_array(integers),
        pd.DataFrame(integers, columns=list("abc")),
        pd.DataFrame(integers, columns=list("abc")).convert_dtypes(),
        pl.DataFrame(integers, schema=list("abc")),
        pa.table({name: integers[:, i] for i, name in enumerate("abc")}),
    ):
        agree(reference, build(bounds=(0, 3)).fit(data), rtol=1e-12)
    agree(build().fit(integers > 1), build().fit((integers > 1).astype(float)))
    named = build(bounds=(0, 3)).fit(pl.DataFrame(integers, schema=list("abc")))
    assert list(named.feature_names_in_) == list("abc")


def test_missing_values_of_all_containers():
    X = rows(20, 3, missing=0.3)
    reference = build().fit(X)
    as_lists = [[None if np.isnan(x) else x for x in row] for row in X.tolist()]
    for data in (
        as_lists,
        pd.DataFrame(X, columns=list("abc")),
        pd.DataFrame(X, columns=list("abc")).convert_dtypes(),
        pl.DataFrame(as_lists, schema=list("abc"), orient="row"),
    ):
        agree(reference, build().fit(data), rtol=1e-12)
    flags = pd.DataFrame({"a": pd.array([True, None, False, True], dtype="boolean")})
    assert build().fit(flags).local_means_ == pytest.approx(2 / 3)


BAD = {
    "strings": [["0.123456789x", "0.5"]],
    "bytes": [[b"0.123456789x", b"0.5"]],
    "mixed": np.array([["0.123456789x", 1]], dtype=object),
    "complex": [[0.123456789 + 1j, 0.5]],
    "infinite": [[0.123456789, np.inf]],
    "minus infinite": [[0.123456789, -np.inf]],
    "one-dimensional": [0.123456789, 0.5],
    "scalar": 0.123456789,
    "three-dimensional": [[[0.123456789, 0.5]]],
    "dates": np.array([["2123-01-01", "2020-01-01"]], dtype="datetime64[D]"),
    "date objects": [[date(2123, 1, 1), date(2020, 1, 1)]],
    "durations": np.array([[123, 4]], dtype="timedelta64[s]"),
    "text frame": pd.DataFrame({"a": ["0.123456789x"], "b": ["0.5"]}),
    "categories": pd.DataFrame({"a": pd.Categorical(["0.123x"]), "b": pd.Categorical(["0.5"])}),
    "polars text": pl.DataFrame({"a": ["0.123456789x"], "b": ["0.5"]}),
    "sparse": sparse.csr_array([[0.123456789, 0.5]]),
    "masked": np.ma.masked_array([[0.123456789, 0.5]], [[False, True]]),
    "empty": np.empty((0, 2)),
    "no columns": np.empty((3, 0)),
    "ragged": [[0.123456789, 0.5], [0.5]],
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("finite", [False, True])
def test_unreadable_input_raises_without_echoing_data(name, finite):
    agents = build().fit(rows(8, 2))
    before = frozen(agents._network)
    calls = (agents.fit, agents.partial_fit, agents.predict, agents.score, build().fit)
    with sklearn.config_context(assume_finite=finite):
        for call in calls:
            with pytest.raises((ValueError, TypeError)) as caught:
                call(BAD[name])
            # The whole chain of exceptions, without lines of source.
            text = "".join(
                line
                for line in traceback.format_exception(caught.value)
                if not line.startswith("  File")
            )
            assert "123" not in text
    assert frozen(agents._network) == before


def test_messages_say_what_to_do():
    for name, message in (
        ("sparse", r"X\.toarray\(\)"),
        ("masked", r"X\.filled\(np\.nan\)"),
        ("one-dimensional", "Reshape your data"),
        ("strings", "convert them"),
        ("infinite", "infinity"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            build().fit(BAD[name])


def test_input_is_not_changed():
    X = rows(20, missing=0.2)
    X[0, 0] = 5.0
    before = X.copy()
    agents = build().fit(X)
    agents.predict(X), agents.score(X)
    np.testing.assert_array_equal(X, before)
    for result in results(agents):
        result[...] = 0  # nor does writing into results change the stream
    agree(agents, build().fit(before))


# -- predict, score and scikit-learn -------------------------------------------------------


def test_nothing_is_there_before_the_first_fit():
    agents = build()
    for name in ("means_", "public_means_", "same_class_", "privacy_spent_"):
        assert not hasattr(agents, name)
        with pytest.raises(AttributeError, match="call fit first"):
            getattr(agents, name)
    for method in (agents.predict, agents.score):
        with pytest.raises(NotFittedError):
            method(rows(3))
    assert not hasattr(clone(build().fit(rows(3))), "means_")


def test_predict_repeats_the_means():
    agents = build().fit(rows(20))
    np.testing.assert_array_equal(agents.predict(rows(3)), np.tile(agents.means_, (3, 1)))


def test_score_is_the_weighted_squared_error():
    X = rows(30, missing=0.3)
    X[:, 5] = np.nan
    agents = build().fit(X)
    new = rows(4, seed=1, missing=0.2)
    weights = np.array([1.0, 0.0, 2.0, 3.0])
    means, total, mass = agents.means_, 0.0, 0.0
    for row, weight in zip(new, weights, strict=True):
        for a in range(5):
            if not np.isnan(row[a]):
                total += weight * (row[a] - means[a]) ** 2
                mass += weight
    for given in (weights, weights.tolist(), pd.Series(weights)):
        assert agents.score(new, sample_weight=given) == pytest.approx(-total / mass, rel=1e-12)
    repeated = np.repeat(new, [1, 0, 2, 3], axis=0)
    assert agents.score(repeated) == pytest.approx(-total / mass, rel=1e-12)
    assert agents.score(np.full((1, 6), 1e300)) == -np.inf
    for wrong in ([1, 2], np.ones((4, 1)), [1, 1, 1, -1], [1, 1, 1, np.nan], list("abcd"), 1.0):
        with pytest.raises(ValueError, match="sample_weight"):
            agents.score(new, sample_weight=wrong)
    for nothing in (np.full((2, 6), np.nan), np.where(np.arange(6) == 5, 0.5, np.nan)[None]):
        with pytest.raises(ValueError, match="no observation"):
            agents.score(nothing)
    with pytest.raises(ValueError, match="no observation"):
        agents.score(new, sample_weight=np.zeros(4))


def test_grid_search_over_epsilon_and_schedule_with_a_time_series_split():
    X = rows(400, missing=0.1)
    agents = build(random_state=None, first_block=16)
    grid = {"epsilon": [1e-3, 1e3], "schedule": list(SCHEDULES)}
    for n_jobs in (None, 2):
        search = GridSearchCV(
            agents, grid, cv=TimeSeriesSplit(3), n_jobs=n_jobs, error_score="raise"
        ).fit(X)
        scores = search.cv_results_["mean_test_score"]
        assert np.all(np.isfinite(scores)) and np.all(scores < 0)
        assert search.best_estimator_.n_observed_.sum() == np.count_nonzero(~np.isnan(X))


def test_weights_of_scores_are_routed():
    X, weights = rows(60), np.arange(60.0)
    with sklearn.config_context(enable_metadata_routing=True):
        agents = build().set_score_request(sample_weight=True)
        found = cross_validate(
            agents,
            X,
            cv=TimeSeriesSplit(2),
            params={"sample_weight": weights},
            error_score="raise",
        )
    expected = build().fit(X[:40]).score(X[40:], sample_weight=weights[40:])
    assert found["test_score"][-1] == pytest.approx(expected, rel=1e-12)


def test_folds_do_not_share_secure_noise():
    X = rows(30)
    first, second = (clone(build(random_state=None)).fit(X) for _ in range(2))
    assert np.all(last_squares(first) != last_squares(second))
    noise = NoiseLaw("laplace", 1.0, 0.0, 1, True).draw(
        b"k" * 32, np.arange(600), np.zeros(600, int)
    )
    assert len(np.unique(noise[0])) > 590  # agents of one seed do not share any either
    assert abs(np.corrcoef(noise[0], noise[1].astype(float))[0, 1]) < 4.9 / np.sqrt(600)
