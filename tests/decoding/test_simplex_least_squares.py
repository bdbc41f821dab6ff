"""Least squares on the simplex: against Clarabel, its optimality conditions, its own gap."""

import itertools
import warnings

import cvxpy
import numpy as np
import pytest
from cohort_systems import explicit_matrix, random_table, simulate, system_of, zipf

from skldp.decoding import (
    CohortSystem,
    least_squares,
    project_simplex,
    project_subsimplex,
    simplex_least_squares,
)
from skldp.decoding._simplex_least_squares import _project_scaled
from skldp.exceptions import DecodingWarning


def objective(system, target, p):
    return 0.5 * float((system.weights * (system.forward(p) - target) ** 2).sum())


def gradient(system, target, p):
    return system.adjoint(system.weights * (system.forward(p) - target))


def random_problem(rng, size, n_cohorts, n_buckets, n_hashes=1, *, even=True, mass=1.0, noise=0.1):
    table = random_table(rng, size, n_cohorts, n_buckets, n_hashes)
    weights = rng.uniform(50, 150, (n_cohorts, 1)) * np.ones(n_buckets)
    if not even:
        weights = weights * rng.uniform(0.05, 20, weights.shape)
        weights[0, 0] = 0.0
    system = CohortSystem(table, n_buckets, weights, 1 - (1 - 1 / n_buckets) ** n_hashes)
    p = mass * rng.dirichlet(np.full(size, 0.3))
    return system, system.forward(p) + noise * rng.normal(size=(n_cohorts, n_buckets))


@pytest.mark.parametrize("sum_at_most_one", [False, True])
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("mass", [1.0, 0.3])
@pytest.mark.parametrize("shape", [(12, 5, 4, 1), (30, 3, 8, 2), (40, 2, 16, 1), (5, 40, 3, 1)])
def test_the_objective_is_that_of_clarabel(shape, mass, even, sum_at_most_one):
    rng = np.random.default_rng(sum(shape))
    noise = 0.1 if mass == 1 else 0.01
    system, target = random_problem(rng, *shape, even=even, mass=mass, noise=noise)
    p = cvxpy.Variable(shape[0], nonneg=True)
    matrix = explicit_matrix(system.table, system.n_buckets, system.centre)
    root = np.sqrt(system.weights).reshape(-1)
    residual = cvxpy.multiply(root, matrix @ p - target.reshape(-1))
    constraint = cvxpy.sum(p) <= 1 if sum_at_most_one else cvxpy.sum(p) == 1
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(residual) / 2), [constraint])
    problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    found = simplex_least_squares(system, target, sum_at_most_one=sum_at_most_one, tolerance=1e-9)
    assert found.p.min() >= 0
    assert found.p.sum() <= 1 + 1e-12
    assert sum_at_most_one or abs(found.p.sum() - 1) <= 1e-12
    assert abs(objective(system, target, found.p) / problem.value - 1) <= 1e-6
    if mass < 1 and sum_at_most_one:
        assert found.p.sum() < 0.9  # the constraint is not active


@pytest.mark.parametrize("sum_at_most_one", [False, True])
@pytest.mark.parametrize("even", [True, False])
def test_conditions_of_optimality_hold(even, sum_at_most_one):
    rng = np.random.default_rng(11)
    for _ in range(5):
        system, target = random_problem(rng, 60, 10, 16, even=even, noise=0.3)
        p = simplex_least_squares(
            system, target, sum_at_most_one=sum_at_most_one, tolerance=1e-13
        ).p
        slope = gradient(system, target, p)
        level = float(slope @ p) / p.sum() if p.sum() > 0 else 0.0
        size = np.abs(slope).max()
        if sum_at_most_one:
            assert level <= 1e-5 * size
            assert p.sum() >= 1 - 1e-9 or abs(level) <= 1e-5 * size
        assert slope.min() >= level - 1e-5 * size
        np.testing.assert_allclose(slope[p > 1e-6], level, rtol=0, atol=1e-5 * size)


@pytest.mark.parametrize("sum_at_most_one", [False, True])
@pytest.mark.parametrize("even", [True, False])
def test_the_gap_bounds_what_is_missing(even, sum_at_most_one):
    rng = np.random.default_rng(12)
    system, target = random_problem(rng, 80, 6, 24, even=even)
    best = simplex_least_squares(system, target, sum_at_most_one=sum_at_most_one, tolerance=1e-13)
    least = objective(system, target, best.p)
    gaps = []
    for tolerance in (1.0, 1e-1, 1e-2, 1e-4, 1e-6):
        found = simplex_least_squares(
            system, target, sum_at_most_one=sum_at_most_one, tolerance=tolerance
        )
        value = objective(system, target, found.p)
        assert found.gap <= tolerance
        assert value - least <= found.gap * value + 1e-12 * value
        gaps.append(found.gap)
    assert gaps[-1] < gaps[0]


@pytest.mark.parametrize("sum_at_most_one", [False, True])
@pytest.mark.parametrize(
    "shape",
    [
        # cohorts, buckets, hashes, RAPPOR
        (256, 64, 1, False),
        (64, 256, 1, False),
        (16, 1024, 1, False),
        (4, 4096, 1, True),
        (2, 4096, 1, True),
        (2, 4096, 2, True),
    ],
)
@pytest.mark.parametrize("load", [0.05, 0.12, 0.25, 0.5])
def test_passes_at_moderate_loads(load, shape, sum_at_most_one):
    # PERFORMANCE: at most 60 passes to a relative gap of 1e-6. Two cohorts with one hash are a
    # graph rather than a random matrix (a candidate joins two buckets): long paths take longer.
    n_cohorts, n_buckets, n_hashes, bits = shape
    size = int(load * n_cohorts * (n_buckets - 1))
    rng = np.random.default_rng(size)
    table = random_table(rng, size, n_cohorts, n_buckets, n_hashes)
    n_reports = rng.multinomial(10**6, np.full(n_cohorts, 1 / n_cohorts))
    data = simulate(rng, table, n_buckets, zipf(size), n_reports, 2.0, bits=bits)
    found = simplex_least_squares(data.system, data.target, sum_at_most_one=sum_at_most_one)
    assert found.gap <= 1e-6
    assert found.n_passes <= (100 if n_cohorts * n_hashes == 2 and load == 0.5 else 60)


@pytest.mark.parametrize("load", [0.9, 1.0, 1.5, 3.0])
@pytest.mark.parametrize("shape", [(64, 64), (2, 1024), (1, 512)])
def test_converges_where_least_squares_has_no_answer(shape, load):
    n_cohorts, n_buckets = shape
    size = int(load * n_cohorts * (n_buckets - 1))
    rng = np.random.default_rng(size)
    table = random_table(rng, size, n_cohorts, n_buckets)
    data = simulate(rng, table, n_buckets, zipf(size), np.full(n_cohorts, 10_000), 2.0)
    for sum_at_most_one in (False, True):
        assert (
            simplex_least_squares(
                data.system, data.target, sum_at_most_one=sum_at_most_one
            ).n_passes
            <= 300
        )


@pytest.mark.parametrize("sum_at_most_one", [False, True])
@pytest.mark.parametrize("n_hashes", [1, 2])
def test_exact_data_give_the_exact_distribution(n_hashes, sum_at_most_one):
    rng = np.random.default_rng(n_hashes)
    table = random_table(rng, 200, 16, 64, n_hashes)
    system = system_of(table, 64, np.full(16, 1000))
    p = rng.dirichlet(np.ones(200)) * (0.7 if sum_at_most_one else 1.0)
    found = simplex_least_squares(system, system.forward(p), sum_at_most_one=sum_at_most_one)
    assert found.n_passes < 200
    # The gap ends at 1e-14 of the sum of squares.
    np.testing.assert_allclose(found.p, p, rtol=0, atol=1e-7)
    # An unconstrained solution is exact, and a good start is kept.
    start = least_squares(system, system.forward(p)).p
    found = simplex_least_squares(
        system, system.forward(p), sum_at_most_one=sum_at_most_one, start=start
    )
    assert found.n_passes == 1
    np.testing.assert_allclose(found.p, p, rtol=0, atol=1e-9)


@pytest.mark.parametrize("sum_at_most_one", [False, True])
def test_the_start_does_not_matter(sum_at_most_one):
    rng = np.random.default_rng(13)
    system, target = random_problem(rng, 50, 20, 8)
    starts = [None, np.eye(50)[3], rng.normal(size=50), least_squares(system, target).p]
    values = []
    for start in starts:
        before = None if start is None else start.copy()
        found = simplex_least_squares(
            system, target, sum_at_most_one=sum_at_most_one, start=start, tolerance=1e-10
        )
        values.append(found.p)
        if start is not None:
            np.testing.assert_array_equal(start, before)
    for p in values[1:]:
        np.testing.assert_allclose(p, values[0], rtol=0, atol=1e-6)
    again = simplex_least_squares(
        system, target, sum_at_most_one=sum_at_most_one, start=values[0], tolerance=1e-6
    )
    assert again.n_passes == 1


@pytest.mark.parametrize("sum_at_most_one", [False, True])
def test_a_negligible_part_of_the_objective_saves_passes_and_no_more(sum_at_most_one):
    """More candidates than rows: closeness costs passes, and what is missing is bounded."""
    rng = np.random.default_rng(3)
    system, target = random_problem(rng, 3000, 8, 16, noise=0.05)
    options = {"sum_at_most_one": sum_at_most_one}
    close = simplex_least_squares(system, target, **options)
    lowest = objective(system, target, close.p)
    negligible = 0.05 * lowest
    rough = simplex_least_squares(system, target, negligible=negligible, **options)
    assert rough.n_passes < close.n_passes / 2
    assert 0 <= objective(system, target, rough.p) - lowest <= negligible
    assert objective(system, target, rough.p) > lowest * (1 + 1e-6)  # it did stop earlier


def test_one_candidate_has_everything_or_what_is_its_own():
    rng = np.random.default_rng(14)
    system = system_of(random_table(rng, 1, 4, 8), 8, np.full(4, 10))
    target = 0.4 * system.forward(np.ones(1))
    assert simplex_least_squares(system, target).p == [1.0]
    part = simplex_least_squares(system, target, sum_at_most_one=True, tolerance=1e-12).p
    np.testing.assert_allclose(part, [0.4], atol=1e-6)
    nothing = simplex_least_squares(system, -target, sum_at_most_one=True).p
    np.testing.assert_array_equal(nothing, [0.0])


def test_candidates_in_the_same_buckets_are_no_obstacle():
    rng = np.random.default_rng(15)
    system, target = random_problem(rng, 40, 6, 16)
    system.table[:, :, 1] = system.table[:, :, 0]
    same = CohortSystem(system.table, 16, system.weights, system.centre)
    found = simplex_least_squares(same, target, tolerance=1e-9)
    others = np.delete(np.arange(40), 1)
    alone = CohortSystem(system.table[:, :, others], 16, system.weights, system.centre)
    expected = simplex_least_squares(alone, target, tolerance=1e-9)
    merged = np.r_[found.p[:2].sum(), found.p[2:]]
    np.testing.assert_allclose(merged, expected.p, rtol=0, atol=1e-5)


def test_too_few_passes_are_announced():
    rng = np.random.default_rng(16)
    system, target = random_problem(rng, 200, 6, 24)
    with pytest.warns(DecodingWarning, match="stopped after 3 passes"):
        found = simplex_least_squares(system, target, max_passes=3)
    assert found.n_passes == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simplex_least_squares(system, target)


def brute_force(values, scale, *, sum_at_most_one):
    """Try every set of positive entries."""
    best, least = None, np.inf
    size = len(values)
    for kept in itertools.product([False, True], repeat=size):
        active = np.array(kept)
        points = []
        if active.any():
            excess = (values[active].sum() - 1) / (1 / scale[active]).sum()
            points.append(np.where(active, values - excess / scale, 0.0))
        if sum_at_most_one:
            points.append(np.where(active, values, 0.0))
        for point in points:
            distance = (scale * (point - values) ** 2).sum()
            if point.min() >= 0 and point.sum() <= 1 + 1e-12 and distance < least:
                best, least = point, distance
    return best


@pytest.mark.parametrize("sum_at_most_one", [False, True])
def test_scaled_projection_is_the_nearest_point(sum_at_most_one):
    rng = np.random.default_rng(17)
    for trial in range(200):
        size = int(rng.integers(1, 9))
        values = rng.normal(size=size) * 10.0 ** rng.uniform(-3, 3)
        scale = 10.0 ** rng.uniform(-3, 3, size)
        if trial % 4 == 0:
            values[:] = values[0]
        expected = brute_force(values, scale, sum_at_most_one=sum_at_most_one)
        found = _project_scaled(values, scale, sum_at_most_one=sum_at_most_one)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_scaled_projection_with_an_even_scale_is_the_plain_one():
    rng = np.random.default_rng(18)
    for size in (1, 2, 1000, 100_000):
        values = rng.normal(size=size) / np.sqrt(size)
        for scale in (1e-9, 1.0, 1e12):
            np.testing.assert_allclose(
                _project_scaled(values, np.full(size, scale), sum_at_most_one=False),
                project_simplex(values),
                rtol=0,
                atol=1e-12,
            )


def test_projection_below_the_simplex_is_the_nearest_point():
    rng = np.random.default_rng(19)
    for _ in range(200):
        size = int(rng.integers(1, 9))
        values = rng.normal(size=size) * 10.0 ** rng.uniform(-2, 1)
        expected = brute_force(values, np.ones(size), sum_at_most_one=True)
        np.testing.assert_allclose(project_subsimplex(values), expected, rtol=0, atol=1e-12)


def test_projection_below_the_simplex_takes_rows():
    rng = np.random.default_rng(20)
    values = rng.normal(size=(3, 4, 5)) * np.array([0.05, 1.0, 3.0])[:, None, None]
    found = project_subsimplex(values)
    for index in np.ndindex(3, 4):
        np.testing.assert_allclose(found[index], project_subsimplex(values[index]), atol=1e-15)
    np.testing.assert_array_equal(project_subsimplex([0.2, -1.0, 0.3]), [0.2, 0.0, 0.3])
    np.testing.assert_allclose(project_subsimplex([0.9, 0.5]), [0.7, 0.3])
