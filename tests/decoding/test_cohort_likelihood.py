"""Maximum likelihood for cohorts: optimality, agreement with cvxpy, efficiency."""

import warnings

import cvxpy
import numpy as np
import pytest
from cohort_systems import explicit_matrix, random_table, simulate, zipf

from skldp.decoding import _cohort_likelihood as module
from skldp.decoding import (
    cohort_maximum_likelihood,
    least_squares,
    project_simplex,
    project_subsimplex,
    simplex_least_squares,
)
from skldp.exceptions import DecodingWarning


def fit(data, *, bits=False, sum_at_most_one=False, start=None, **settings):
    if start is None:
        start = simplex_least_squares(data.system, data.target, sum_at_most_one=sum_at_most_one).p
    return cohort_maximum_likelihood(
        data.system,
        data.shares,
        data.n_reports,
        data.offset,
        data.slope,
        independent_bits=bits,
        sum_at_most_one=sum_at_most_one,
        start=start,
        **settings,
    )


def log_likelihood(data, p, *, bits):
    totals = data.n_reports[:, np.newaxis]
    counts = data.rates * totals
    m = data.offset + data.slope * (data.system.forward(p) + data.system.centre)
    value = counts * np.log(m)
    if bits:
        value += (totals - counts) * np.log1p(-m)
    return float(value.sum())


CASES = [
    # size, cohorts, buckets, hashes, epsilon, RAPPOR
    (30, 8, 8, 1, 1.0, False),
    (40, 16, 16, 1, 3.0, False),
    (60, 6, 64, 1, 6.0, False),
    (50, 2, 64, 1, 2.0, True),
    (40, 8, 32, 2, 4.0, True),
    (90, 2, 32, 1, 3.0, False),  # more candidates than can be told apart
]


@pytest.mark.parametrize("sum_at_most_one", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_the_likelihood_is_that_of_clarabel(case, sum_at_most_one):
    size, n_cohorts, n_buckets, n_hashes, epsilon, bits = case
    rng = np.random.default_rng(size)
    table = random_table(rng, size, n_cohorts, n_buckets, n_hashes)
    mass = 0.7 if sum_at_most_one else 1.0
    n_reports = rng.multinomial(20_000, np.full(n_cohorts, 1 / n_cohorts))
    data = simulate(
        rng, table, n_buckets, mass * zipf(size), n_reports, epsilon, bits=bits, rest=1 - mass
    )
    p = cvxpy.Variable(size, nonneg=True)
    centre = data.system.centre
    matrix = explicit_matrix(table, n_buckets, centre)
    totals = np.repeat(n_reports, n_buckets)
    counts = data.rates.reshape(-1) * totals
    m = data.offset + data.slope * (matrix @ p + centre)
    value = counts @ cvxpy.log(m)
    if bits:
        value = value + (totals - counts) @ cvxpy.log(1 - m)
    total = cvxpy.sum(p) <= 1 if sum_at_most_one else cvxpy.sum(p) == 1
    problem = cvxpy.Problem(cvxpy.Maximize(value), [total])
    problem.solve(solver=cvxpy.CLARABEL)
    found = fit(data, bits=bits, sum_at_most_one=sum_at_most_one)
    assert found.min() >= 0
    assert found.sum() <= 1 + 1e-9
    assert sum_at_most_one or abs(found.sum() - 1) <= 1e-9
    # What the tolerance promises, 1e-5 for each candidate; the solver's own error is 1e-8 or so
    # of the value.
    best = log_likelihood(data, np.maximum(p.value, 0), bits=bits)
    value = log_likelihood(data, found, bits=bits)
    assert value >= best - 1e-5 * size - 1e-8 * abs(best)
    tight = fit(data, bits=bits, sum_at_most_one=sum_at_most_one, tolerance=1e-9)
    assert log_likelihood(data, tight, bits=bits) <= value + 1e-5 * size


@pytest.mark.parametrize("sum_at_most_one", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_conditions_of_optimality_hold(case, sum_at_most_one):
    size, n_cohorts, n_buckets, n_hashes, epsilon, bits = case
    rng = np.random.default_rng(size + 1)
    table = random_table(rng, size, n_cohorts, n_buckets, n_hashes)
    n_reports = np.full(n_cohorts, 5000)
    data = simulate(rng, table, n_buckets, zipf(size), n_reports, epsilon, bits=bits)
    p = fit(data, bits=bits, sum_at_most_one=sum_at_most_one, tolerance=1e-8)
    m = data.offset + data.slope * (data.system.forward(p) + data.system.centre)
    counts = data.rates * n_reports[:, np.newaxis]
    score = counts / m - n_reports[:, np.newaxis] * (1 if not bits else 0)
    if bits:
        score = score - (n_reports[:, np.newaxis] - counts) / (1 - m)
    gradient = data.slope * data.system.adjoint(score)
    level = float(gradient @ p) / p.sum()
    total = float(n_reports.sum())
    assert gradient.max() <= level + 1e-6 * total
    np.testing.assert_allclose(gradient[p > 1e-3], level, rtol=0, atol=1e-4 * total)
    if sum_at_most_one:
        assert level >= -1e-6 * total
        assert p.sum() > 1 - 1e-6 or abs(level) <= 1e-6 * total


@pytest.mark.parametrize("bits", [False, True])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0, 10.0])
def test_the_likelihood_is_not_below_that_of_least_squares(epsilon, bits):
    rng = np.random.default_rng(int(10 * epsilon))
    for n_cohorts, n_buckets in ((64, 32), (2, 512)):
        table = random_table(rng, 100, n_cohorts, n_buckets)
        n_reports = rng.multinomial(50_000, np.full(n_cohorts, 1 / n_cohorts))
        data = simulate(rng, table, n_buckets, zipf(100), n_reports, epsilon, bits=bits)
        squares = simplex_least_squares(data.system, data.target).p
        projected = project_simplex(squares)
        value = log_likelihood(data, fit(data, bits=bits), bits=bits)
        for other in (squares, projected, zipf(100)):
            assert value >= log_likelihood(data, other, bits=bits) - 1e-3


@pytest.mark.parametrize("bits", [False, True])
@pytest.mark.parametrize("sum_at_most_one", [False, True])
def test_the_start_does_not_matter(sum_at_most_one, bits):
    rng = np.random.default_rng(3)
    table = random_table(rng, 60, 16, 32)
    data = simulate(rng, table, 32, zipf(60), np.full(16, 5000), 4.0, bits=bits)
    settings = {"bits": bits, "sum_at_most_one": sum_at_most_one, "tolerance": 1e-9}
    first = fit(data, **settings)
    for start in (np.full(60, 1 / 60), np.eye(60)[59]):
        np.testing.assert_allclose(fit(data, start=start, **settings), first, rtol=0, atol=1e-6)


@pytest.mark.parametrize("bits", [False, True])
@pytest.mark.parametrize("sum_at_most_one", [False, True])
def test_exact_data_give_the_exact_distribution(sum_at_most_one, bits):
    rng = np.random.default_rng(4)
    for n_hashes in (1, 2) if bits else (1,):
        table = random_table(rng, 100, 16, 64, n_hashes)
        n_reports = np.full(16, 10_000)
        data = simulate(rng, table, 64, zipf(100), n_reports, 3.0, bits=bits)
        data = data._replace(shares=data.system.scatter(zipf(100)))
        project = project_subsimplex if sum_at_most_one else project_simplex
        start = project(least_squares(data.system, data.target).p)
        found = fit(data, bits=bits, sum_at_most_one=sum_at_most_one, start=start)
        np.testing.assert_allclose(found, zipf(100), rtol=0, atol=1e-9)
        # From elsewhere it comes as near as its tolerance says.
        found = fit(
            data,
            bits=bits,
            sum_at_most_one=sum_at_most_one,
            start=np.full(100, 0.01),
            tolerance=1e-11,
        )
        np.testing.assert_allclose(found, zipf(100), rtol=0, atol=1e-6)


@pytest.mark.parametrize("epsilon", [4.0, 6.0, 10.0])
@pytest.mark.parametrize("shape", [(128, 64), (256, 256)])
def test_converges_where_the_list_lacks_the_heaviest_string(shape, epsilon):
    # The counts of its buckets are far above what any fit expects.
    n_cohorts, n_buckets = shape
    rng = np.random.default_rng(5)
    table = random_table(rng, 201, n_cohorts, n_buckets)
    p = np.r_[0.6 * zipf(200), 0.4]
    n_reports = np.full(n_cohorts, 10**6 // n_cohorts)
    everything = simulate(rng, table, n_buckets, p, n_reports, epsilon)
    system = type(everything.system)(
        table[..., :200], n_buckets, everything.system.weights, 1 / n_buckets
    )
    data = everything._replace(system=system)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DecodingWarning)
        found = fit(data, sum_at_most_one=True)
    squares = simplex_least_squares(system, data.target, sum_at_most_one=True).p
    gain = log_likelihood(data, found, bits=False) - log_likelihood(data, squares, bits=False)
    assert gain > -1e-3


@pytest.mark.parametrize("bits", [False, True])
@pytest.mark.parametrize("epsilon", [20.0, 40.0])
def test_reports_that_are_all_but_true_are_no_obstacle(epsilon, bits):
    # Buckets that nobody fell into have a probability of 1e-9 and less.
    rng = np.random.default_rng(6)
    table = random_table(rng, 200, 16, 512)
    n_reports = rng.multinomial(10**6, np.full(16, 1 / 16))
    data = simulate(rng, table, 512, zipf(200), n_reports, epsilon, bits=bits)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit(data, bits=bits)
    assert np.abs(found - zipf(200)).sum() < 0.02


def test_empty_cohorts_and_empty_buckets_are_no_obstacle():
    rng = np.random.default_rng(7)
    table = random_table(rng, 20, 12, 64)
    n_reports = rng.integers(1, 20, 12)
    n_reports[[0, 5]] = 0
    data = simulate(rng, table, 64, zipf(20), n_reports, 8.0)
    for sum_at_most_one in (False, True):
        found = fit(data, sum_at_most_one=sum_at_most_one)
        assert np.isfinite(found).all()
        kept = n_reports > 0
        part = data._replace(
            system=type(data.system)(table[kept], 64, data.system.weights[kept], 1 / 64),
            shares=data.shares[kept],
            n_reports=n_reports[kept],
        )
        expected = fit(part, sum_at_most_one=sum_at_most_one)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-2)


def test_stopping_short_is_announced(monkeypatch):
    rng = np.random.default_rng(8)
    table = random_table(rng, 60, 16, 32)
    data = simulate(rng, table, 32, zipf(60), np.full(16, 5000), 6.0)
    monkeypatch.setattr(module, "_MAX_ROUNDS", 1)
    with pytest.warns(DecodingWarning, match="below the largest log-likelihood"):
        fit(data, start=np.full(60, 1 / 60))


@pytest.mark.parametrize("bits", [False, True])
def test_candidates_that_can_fit_the_noise_stop_once_everything_is_explained(bits):
    """Twenty times as many candidates as rows: the saturated likelihood is in reach."""
    rng = np.random.default_rng(9)
    table = random_table(rng, 1200, 4, 16)
    data = simulate(rng, table, 16, np.full(1200, 1 / 1200), np.full(4, 5000), 3.0, bits=bits)
    uniform = np.full(1200, 1 / 1200)
    totals = data.n_reports[:, np.newaxis]
    counts = data.rates * totals
    saturated = float((counts * np.log(data.rates)).sum())
    if bits:
        saturated += float(((totals - counts) * np.log1p(-data.rates)).sum())
    found = fit(data, bits=bits, start=uniform)
    assert saturated - log_likelihood(data, uniform, bits=bits) > 0.3 * counts.size
    assert saturated - log_likelihood(data, found, bits=bits) < 0.01 * 0.5 * counts.size * 1.001


def sandwich(system, rates, slope, inverse):
    """Cov(A b) for independent cohorts of k-RR with one report each, A = inverse Xᵀ."""
    middle = system.gram(rates / slope**2)
    for scores in system.cohort_scores(rates / slope):
        middle -= np.outer(scores, scores)
    return inverse @ middle @ inverse


@pytest.mark.parametrize(("epsilon", "excess"), [(3.0, 0.11), (6.0, 0.37)])
def test_least_squares_has_more_variance_by_what_the_formula_sheet_says(epsilon, excess):
    # FORMULAS, section 1: "plain least squares has 11% more variance at ε = 3, 37% at 6".
    size, n_cohorts, n_buckets, n_trials = 200, 64, 16, 100
    rng = np.random.default_rng(9)
    table = random_table(rng, size, n_cohorts, n_buckets)
    p = zipf(size)
    # So many that all estimates are well inside the simplex, and the constraint does nothing.
    n_reports = np.full(n_cohorts, 10**8)
    data = simulate(rng, table, n_buckets, p, n_reports, epsilon, centred=False)
    rates = data.offset + data.slope * data.system.scatter(p)
    # Within Σp = 1: the covariance of least squares, and the inverse of the information.
    tangent = np.linalg.svd(np.ones((1, size)))[2][1:].T
    normal = data.system.gram(np.ones_like(rates))
    inverse = tangent @ np.linalg.inv(tangent.T @ normal @ tangent) @ tangent.T
    information = tangent.T @ data.system.gram(data.slope**2 / rates) @ tangent
    expected = np.trace(sandwich(data.system, rates, data.slope, inverse)) / np.trace(
        np.linalg.inv(information)
    )
    assert abs(expected - 1 - excess) < 0.03
    losses = np.empty((n_trials, 2))
    for trial in range(n_trials):
        data = simulate(rng, table, n_buckets, p, n_reports, epsilon)
        raw = least_squares(data.system, data.target).p
        start = simplex_least_squares(data.system, data.target, start=raw).p
        likely = fit(data, start=start)
        losses[trial] = ((start - p) ** 2).sum(), ((likely - p) ** 2).sum()
    ratio = losses[:, 0].mean() / losses[:, 1].mean()
    # Standard error of a ratio of means; five of them, false alarms 6e-7 for each epsilon.
    spread = (losses[:, 0] - ratio * losses[:, 1]).std() / losses[:, 1].mean()
    assert abs(ratio - expected) < 5 * spread / np.sqrt(n_trials)
