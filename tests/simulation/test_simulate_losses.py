"""Simulated losses against their exact law, closed forms, and the decoders called by hand.

Statistical tests have fixed seeds, and a false-alarm probability of at most 1e-6 each: a
chi-square statistic beyond its 1e-6 quantile, or a mean more than 5.2 standard errors off.
"""

import itertools
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest, chi2

from skldp.channels import (
    Alphabet,
    CohortChannel,
    Hashing,
    KRRChannel,
    ProductChannel,
    RapporChannel,
)
from skldp.decoding import normalize_simplex, project_simplex
from skldp.exceptions import ChannelError, DecodingWarning
from skldp.metrics import expected_l2_loss, l1_loss
from skldp.simulation import DirichletPrior, simulate_losses

P = [0.5, 0.3, 0.2]


def exact_loss_law(channel, p, n_users, estimate, reference):
    """Enumerate values and reports of all users: {loss rounded to 9 digits: probability}."""
    matrix = channel.matrix()
    n_symbols, n_outputs = matrix.shape
    law = {}
    for values in itertools.product(range(n_symbols), repeat=n_users):
        weight = np.prod([p[value] for value in values])
        goal = p if reference == "true" else np.bincount(values, minlength=n_symbols) / n_users
        for reports in itertools.product(range(n_outputs), repeat=n_users):
            chance = weight * float(
                np.prod([matrix[x, y] for x, y in zip(values, reports, strict=True)])
            )
            if channel.mechanism == "krr":
                counts = np.bincount(reports, minlength=n_symbols)
            else:
                counts = sum(np.array([y >> j & 1 for j in range(n_symbols)]) for y in reports)
            loss = round(float(np.abs(estimate(counts) - goal).sum()), 9)
            law[loss] = law.get(loss, 0.0) + chance
    return law


@pytest.mark.statistical
@pytest.mark.parametrize("reference", ["true", "sample"])
@pytest.mark.parametrize(
    ("channel", "n_users"), [(KRRChannel(1.0, 3), 3), (RapporChannel(2.0, 3), 2)]
)
def test_losses_follow_their_exact_law(channel, n_users, reference):
    def estimate(counts):
        return project_simplex(channel.unbias(counts, n_users))

    law = exact_loss_law(channel, np.array(P), n_users, estimate, reference)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
    n_trials = 40_000
    losses = simulate_losses(channel, P, n_users, n_trials, reference=reference, random_state=1)[
        "loss"
    ]
    assert set(losses.round(9)) <= set(law)
    expected = np.array(list(law.values())) * n_trials
    observed = np.array([(losses.round(9) == loss).sum() for loss in law])
    # Cells that hardly anything is expected in are one.
    rare = expected < 20
    expected = np.append(expected[~rare], expected[rare].sum())
    observed = np.append(observed[~rare], observed[rare].sum())
    filled = expected > 0
    statistic = ((observed - expected)[filled] ** 2 / expected[filled]).sum()
    assert filled.sum() >= 5
    assert statistic < chi2.isf(1e-6, filled.sum() - 1)


@pytest.mark.statistical
@pytest.mark.parametrize("n_users", [7, 40_000, 10**12])
@pytest.mark.parametrize("kind", [KRRChannel, RapporChannel])
def test_mean_squared_loss_is_the_closed_form(kind, n_users):
    channel = kind(1.5, 6)
    p = np.array([0.4, 0.3, 0.2, 0.1, 0.0, 0.0])
    losses = simulate_losses(
        channel, p, n_users, 20_000, projections=None, loss="l2", random_state=2
    )["loss"]
    error = losses.std() / np.sqrt(len(losses))
    assert abs(losses.mean() - expected_l2_loss(channel, p, n_users)) < 5.2 * error


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [KRRChannel, RapporChannel])
def test_a_prior_gives_every_trial_its_own_distribution(kind):
    # The risk is (1 - Σp²)/n plus what does not depend on p; E Σp² = 2/(k + 1) for Dirichlet(1).
    channel, size, n_users = kind(5.0, 8), 8, 10
    losses = simulate_losses(
        channel, DirichletPrior(size), n_users, 20_000, projections=None, loss="l2", random_state=3
    )["loss"]
    at_uniform = expected_l2_loss(channel, np.full(size, 1 / size), n_users)
    expected = at_uniform + (1 / size - 2 / (size + 1)) / n_users
    error = losses.std() / np.sqrt(len(losses))
    assert abs(losses.mean() - expected) < 5.2 * error
    assert abs(at_uniform - expected) > 10 * error  # one distribution for all would be noticed


@pytest.mark.statistical
def test_a_closed_alphabet_in_as_many_buckets_is_the_k_ary_mechanism():
    hashing = Hashing(5, 1, 1, "permuted", Alphabet(5))
    channel = CohortChannel.for_epsilon(1.0, hashing, "krr")
    p = np.array([0.4, 0.3, 0.2, 0.1, 0.0])
    losses = simulate_losses(
        channel, p, 500, 2_000, projections="none", loss="l2", fresh_hashing=True, random_state=4
    )["loss"]
    error = losses.std() / np.sqrt(len(losses))
    assert abs(losses.mean() - expected_l2_loss(KRRChannel(1.0, 5), p, 500)) < 5.2 * error


@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore::skldp.exceptions.DecodingWarning")
def test_fresh_hashing_draws_hash_functions_for_every_trial():
    # Two values, one cohort, two buckets: they collide with probability 1/2 (up to 2^-32), and
    # the solution of least norm then halves them. There is no noise to speak of.
    channel = CohortChannel.for_epsilon(40.0, Hashing(2, 1, 1, "any"), "krr")
    settings = {"p": [1.0, 0.0], "n_users": 1_000, "n_trials": 400, "random_state": 5}
    fixed = simulate_losses(channel, **settings)["loss"].round(6)
    assert fixed.nunique() == 1
    fresh = simulate_losses(channel, fresh_hashing=True, **settings)["loss"].round(6)
    assert set(fresh) == {0.0, 1.0}
    assert binomtest(int(fresh.sum()), 400).pvalue > 1e-6


def test_a_system_without_a_solution_warns():
    channel = CohortChannel.for_epsilon(1.0, Hashing(2, 1), "krr")
    with pytest.warns(DecodingWarning):
        simulate_losses(channel, np.full(9, 1 / 9), 100, 1, random_state=0)


@pytest.mark.parametrize("kind", [KRRChannel, RapporChannel])
def test_decoders_and_projections_are_those_of_the_library(kind):
    channel, n_users, n_trials = kind(1.0, 3), 200, 50
    found = simulate_losses(
        channel,
        P,
        n_users,
        n_trials,
        decoders=["inversion", "maximum_likelihood"],
        projections=["none", "simplex", "subsimplex", "normalize", "clip"],
        random_state=6,
    )
    # 50 trials are one block, so the generator is used in the same way.
    rng = np.random.default_rng(6)
    truth = np.tile(P, (n_trials, 1))
    counts = channel.simulate_counts(truth, n_users, n_trials, rng)
    raw = channel.unbias(counts, n_users)
    clipped = np.maximum(raw, 0.0)
    is_light = clipped.sum(axis=1, keepdims=True) <= 1.0
    by_hand = {
        ("inversion", "none"): raw,
        ("inversion", "simplex"): project_simplex(raw),
        ("inversion", "subsimplex"): np.where(is_light, clipped, project_simplex(raw)),
        ("inversion", "normalize"): normalize_simplex(raw),
        ("inversion", "clip"): clipped,
        ("maximum_likelihood", "none"): [channel.maximum_likelihood(c, n_users) for c in counts],
    }
    groups = dict(list(found.groupby(["decoder", "projection"])))
    assert groups.keys() == by_hand.keys()
    for key, estimates in by_hand.items():
        assert groups[key]["trial"].tolist() == list(range(n_trials))
        np.testing.assert_allclose(
            groups[key]["loss"], l1_loss(truth, np.asarray(estimates)), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("kind", [KRRChannel, RapporChannel])
def test_what_is_named_twice_is_listed_once(kind):
    settings = {"n_users": 200, "n_trials": 10, "random_state": 0}
    once = simulate_losses(kind(1.0, 3), P, projections="none", **settings)
    twice = simulate_losses(
        kind(1.0, 3),
        P,
        decoders=["auto", "inversion"],
        projections=[None, "none"],
        **settings,
    )
    assert twice.equals(once)


def test_a_block_is_limited_by_the_values_too(monkeypatch):
    # Two counts of a trial, and a thousand frequencies.
    sizes = []
    blocks = simulate_losses.__globals__["_blocks"]

    def noted(n_trials, n_cells):
        sizes.append(n_cells)
        return blocks(n_trials, n_cells)

    monkeypatch.setitem(simulate_losses.__globals__, "_blocks", noted)
    opened = CohortChannel.for_epsilon(1.0, Hashing(2, 1), "krr")
    closed = CohortChannel.for_epsilon(1.0, Hashing(2, 1, 1, "", Alphabet(1_000)), "krr")
    uniform = np.full(1_000, 1e-3)
    for channel, p in [
        (opened, uniform),
        (opened, DirichletPrior(1_000)),
        (closed, lambda n_trials, generator: np.tile(uniform, (n_trials, 1))),
    ]:
        with pytest.warns(DecodingWarning):
            simulate_losses(channel, p, 100, 1, random_state=0)
    assert sizes == [1_000] * 3


def test_cohorts_know_all_their_decoders():
    channel = CohortChannel.for_epsilon(3.0, Hashing(8, 4), "rappor")
    names = ["least_squares", "constrained_least_squares", "maximum_likelihood"]
    found = simulate_losses(channel, P, 5_000, 3, decoders=names, random_state=0)
    assert [tuple(key) for key in found[["decoder", "projection"]].drop_duplicates().values] == [
        ("least_squares", "simplex"),
        ("constrained_least_squares", "none"),
        ("maximum_likelihood", "none"),
    ]
    assert found["loss"].between(0.0, 0.5).all()
    auto = simulate_losses(channel, P, 5_000, 3, random_state=0)
    np.testing.assert_array_equal(auto["loss"], found["loss"][:3])


def test_against_the_sample_nothing_is_lost_without_noise():
    channel = KRRChannel(45.0, 3)
    settings = {"n_users": 1_000, "n_trials": 30, "random_state": 0}
    against = {
        reference: simulate_losses(channel, P, reference=reference, **settings)["loss"]
        for reference in ("true", "sample")
    }
    assert against["sample"].max() < 1e-12
    assert against["true"].median() > 0.01


@pytest.mark.parametrize("kind", [KRRChannel, RapporChannel])
def test_a_projection_never_moves_away_from_the_truth(kind):
    found = simulate_losses(
        kind(0.5, 3), P, 50, 500, projections=["none", "simplex"], loss="l2", random_state=0
    )
    losses = found.pivot(index="trial", columns="projection", values="loss")
    assert (losses["simplex"] <= losses["none"] + 1e-12).all()
    assert (losses["simplex"] < losses["none"] - 1e-6).any()


def test_blocks_do_not_repeat_each_other():
    # A block is 54 trials here. With a prior no two losses agree by chance.
    channel, prior = KRRChannel(1.0, 300), DirichletPrior(300)
    losses = simulate_losses(channel, prior, 1_000, 200, random_state=0)["loss"]
    assert losses.nunique() == 200


def test_a_seed_repeats_and_a_generator_goes_on():
    channel = RapporChannel(1.0, 3)
    first, second = (simulate_losses(channel, P, 99, 20, random_state=7) for _ in range(2))
    assert first.equals(second)
    rng = np.random.default_rng(7)
    third, fourth = (simulate_losses(channel, P, 99, 20, random_state=rng) for _ in range(2))
    assert third.equals(first)
    assert not fourth.equals(third)


def test_a_loss_of_ones_own():
    def largest(truth, estimates):
        return np.abs(truth - estimates).max(axis=1)

    found = simulate_losses(KRRChannel(1.0, 3), P, 100, 10, loss=largest, random_state=0)["loss"]
    whole = simulate_losses(KRRChannel(1.0, 3), P, 100, 10, random_state=0)["loss"]
    assert (found <= whole).all() and (found > 0).all()


def test_a_loss_cannot_change_what_the_next_one_sees():
    def in_place(truth, estimates):
        estimates -= truth
        return np.abs(estimates).sum(axis=1)

    with pytest.raises(ValueError, match="read-only"):
        simulate_losses(
            KRRChannel(1.0, 3), P, 50, 20, projections=["none", "simplex"], loss=in_place
        )


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"channel": ProductChannel([KRRChannel(1.0, 3)] * 2)}, TypeError, "channel.attributes"),
        ({"channel": KRRChannel(0.0, 3)}, ChannelError, "nothing can be estimated"),
        ({"p": [0.5, 0.5]}, ValueError, "shape"),
        ({"p": [0.5, 0.6, 0.2]}, ValueError, "sum to 1"),
        ({"p": [1.5, -0.5, 0.0]}, ValueError, "not be negative"),
        ({"p": [0.5, np.nan, 0.5]}, ValueError, "finite"),
        ({"p": [[0.5, 0.3, 0.2]]}, ValueError, "shape"),
        ({"p": lambda n, generator: np.ones((n + 1, 3)) / 3}, ValueError, "for 10 trials"),
        ({"p": lambda n, generator: np.ones((n, 3))}, ValueError, "sum to 1"),
        ({"n_users": 0}, ValueError, "n_users"),
        ({"n_users": 1.5}, TypeError, "n_users"),
        ({"n_users": 2**63}, ValueError, "n_users"),
        ({"n_trials": 0}, ValueError, "n_trials"),
        ({"decoders": "least_squares"}, ValueError, "decoders must be one of"),
        ({"decoders": []}, ValueError, "empty"),
        ({"decoders": 5}, ValueError, "names or lists"),
        ({"projections": [["simplex"]]}, ValueError, "projections must be one of"),
        ({"projections": ["simplex", "nearest"]}, ValueError, "projections must be one of"),
        ({"loss": "l3"}, ValueError, "loss must be one of"),
        ({"loss": lambda truth, estimates: 0.0}, ValueError, "one number per trial"),
        ({"reference": "both"}, ValueError, "reference must be one of"),
        ({"fresh_hashing": True}, ValueError, "cohorts"),
        ({"random_state": -1}, ValueError, "random_state"),
    ],
)
def test_wrong_arguments_are_refused(changes, error, message):
    arguments = {"channel": KRRChannel(1.0, 3), "p": P, "n_users": 10, "n_trials": 10}
    with pytest.raises(error, match=message):
        simulate_losses(**{**arguments, **changes})


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0,), ValueError),
        ((3, 0.0), ValueError),
        ((3, [1.0, 2.0]), ValueError),
        ((2.5,), TypeError),
    ],
)
def test_wrong_priors_are_refused(arguments, error):
    with pytest.raises(error):
        DirichletPrior(*arguments)


def test_whole_numbers_are_frequencies_too():
    # [0, 1, 0] is a point mass, and not the counts of one user.
    losses = simulate_losses(KRRChannel(2.0, 3), [0, 1, 0], 1_000, 5, random_state=0)["loss"]
    assert losses.between(0.0, 0.3).all()


def test_an_exact_epsilon_is_simulated():
    channel = KRRChannel(Fraction(1, 3), 3)
    assert len(simulate_losses(channel, P, 10, 4, random_state=0)) == 4


def test_without_pandas_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"skldp\[simulation\]"):
        simulate_losses(KRRChannel(1.0, 3), P, 10, 10)
