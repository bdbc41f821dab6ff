"""Unconstrained least squares: dense and iterative ways agree, exact data, singular systems."""

import warnings

import numpy as np
import pytest
from cohort_systems import explicit_matrix, random_table, simulate, system_of, zipf

from skldp.decoding import CohortSystem, _least_squares, least_squares
from skldp.exceptions import DecodingWarning


def iterative(monkeypatch):
    monkeypatch.setattr(_least_squares, "LARGEST_DENSE", 0)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(
    "shape", [(50, 20, 8, 1), (30, 10, 16, 2), (12, 30, 4, 3), (60, 2, 90, 1)]
)
def test_dense_and_iterative_solutions_are_that_of_lstsq(shape, centred, monkeypatch):
    size, n_cohorts, n_buckets, n_hashes = shape
    rng = np.random.default_rng(size)
    table = random_table(rng, size, n_cohorts, n_buckets, n_hashes)
    n_reports = rng.integers(1, 1000, n_cohorts)
    n_reports[0] = 0
    if n_cohorts == 2:
        n_reports[0] = 500
    system = system_of(table, n_buckets, n_reports, centred=centred)
    target = rng.normal(size=(n_cohorts, n_buckets))
    matrix = explicit_matrix(table, n_buckets, system.centre)
    root = np.sqrt(system.weights).reshape(-1)
    expected = np.linalg.lstsq(root[:, None] * matrix, root * target.reshape(-1))[0]
    found = least_squares(system, target)
    assert found.n_passes == 0
    np.testing.assert_allclose(found.p, expected, rtol=0, atol=1e-8)
    iterative(monkeypatch)
    found = least_squares(system, target)
    assert found.n_passes > 0
    np.testing.assert_allclose(found.p, expected, rtol=0, atol=1e-8)


def test_weights_are_those_of_the_rows(monkeypatch):
    # Any weights, not only the same for a whole cohort.
    rng = np.random.default_rng(1)
    table = random_table(rng, 20, 8, 16)
    weights = rng.uniform(0.1, 10, (8, 16))
    system = CohortSystem(table, 16, weights, 1 / 16)
    target = rng.normal(size=(8, 16))
    matrix, root = explicit_matrix(table, 16, 1 / 16), np.sqrt(weights).reshape(-1)
    expected = np.linalg.lstsq(root[:, None] * matrix, root * target.reshape(-1))[0]
    np.testing.assert_allclose(least_squares(system, target).p, expected, rtol=0, atol=1e-9)
    iterative(monkeypatch)
    np.testing.assert_allclose(least_squares(system, target).p, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("is_dense", [True, False])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(
    "shape",
    [
        (256, 128, 16, 1),
        (256, 1024, 4, 1),
        (900, 64, 16, 1),  # load .94
        (256, 2, 4096, 1),
        (1000, 16, 256, 2),
        (3000, 64, 64, 1),
        (5000, 16, 1024, 3),
    ],
)
def test_exact_data_give_the_exact_distribution(shape, centred, is_dense, monkeypatch):
    size, n_cohorts, n_buckets, n_hashes = shape
    if is_dense and size > _least_squares.LARGEST_DENSE:
        pytest.skip("solved iteratively in any case")
    if not is_dense:
        iterative(monkeypatch)
    rng = np.random.default_rng(size + n_hashes)
    table = random_table(rng, size, n_cohorts, n_buckets, n_hashes)
    system = system_of(table, n_buckets, rng.integers(100, 1000, n_cohorts), centred=centred)
    p = zipf(size)
    found = least_squares(system, system.scatter(p) - system.centre).p
    np.testing.assert_allclose(found, p, rtol=0, atol=1e-9)


def test_exact_data_of_a_list_that_lacks_nobody_on_average_need_no_total():
    # Centred: exact for any total, if the rest is spread as an average over all strings is.
    rng = np.random.default_rng(2)
    table = random_table(rng, 100, 32, 16, 1)
    system = system_of(table, 16, np.full(32, 100))
    p = 0.6 * zipf(100)
    shares = system.scatter(p) + 0.4 * system.centre
    np.testing.assert_allclose(
        least_squares(system, shares - system.centre).p, p, rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("is_dense", [True, False])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(40, 1, 16, 1), (10, 1, 64, 1), (100, 3, 16, 1), (90, 4, 8, 2)])
def test_singular_systems_give_the_solution_of_least_norm(shape, centred, is_dense, monkeypatch):
    size, n_cohorts, n_buckets, n_hashes = shape
    rng = np.random.default_rng(size)
    table = random_table(rng, size, n_cohorts, n_buckets, n_hashes)
    if size == 10:
        table[:, :, 1] = table[:, :, 0]  # enough buckets, but a pair in the same one
    system = system_of(table, n_buckets, rng.integers(1, 100, n_cohorts), centred=centred)
    target = rng.normal(size=(n_cohorts, n_buckets))
    root = np.sqrt(system.weights).reshape(-1)
    matrix = explicit_matrix(table, n_buckets, system.centre)
    expected = np.linalg.pinv(root[:, None] * matrix, rcond=1e-10) @ (root * target.reshape(-1))
    if not is_dense:
        iterative(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecodingWarning)
        found = least_squares(system, target).p
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


def test_candidates_that_share_every_bucket_are_announced():
    rng = np.random.default_rng(5)
    table = random_table(rng, 50, 2, 4096)
    table[:, :, 7] = table[:, :, 3]
    data = simulate(rng, table, 4096, zipf(50), np.array([5000, 5000]), 3.0)
    with pytest.warns(DecodingWarning, match=r"2 of 50 candidates share buckets"):
        found = least_squares(data.system, data.target).p
    assert abs(found[3] - found[7]) <= 1e-9  # least norm: the total, in equal parts
    others = np.delete(np.arange(50), 7)
    alone = system_of(table[:, :, others], 4096, data.n_reports)
    expected = least_squares(alone, data.target).p
    np.testing.assert_allclose(np.delete(found, [3, 7]), np.delete(expected, 3), atol=1e-9)
    assert abs(2 * found[3] - expected[3]) <= 1e-9


def test_a_cycle_of_candidates_in_two_cohorts_is_singular_too():
    # Four candidates on the corners of a square of buckets: p + (t, -t, t, -t) fits as well.
    # Rounding may let a Cholesky factorisation of this matrix pass.
    rng = np.random.default_rng(6)
    for size in (4, 30, 300):
        table = random_table(rng, size, 2, 4096)
        table[0, 0, :4], table[1, 0, :4] = [1, 1, 2, 2], [5, 6, 6, 5]
        system = system_of(table, 4096, [997, 1003])
        target = rng.normal(size=(2, 4096))
        with pytest.warns(DecodingWarning, match="4 of"):
            found = least_squares(system, target).p
        assert abs(found[:4] @ [1, -1, 1, -1]) <= 1e-9
        assert np.abs(found).max() < 10


def test_nothing_is_announced_where_all_is_well():
    rng = np.random.default_rng(7)
    for size, n_cohorts, n_buckets in ((256, 2, 4096), (256, 128, 16), (3000, 64, 256)):
        table = random_table(rng, size, n_cohorts, n_buckets)
        if n_cohorts == 2:
            table[0, 0] = np.arange(size)  # no accidents
        data = simulate(rng, table, n_buckets, zipf(size), np.full(n_cohorts, 5000), 3.0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            least_squares(data.system, data.target)


def test_an_iteration_that_does_not_converge_says_so(monkeypatch):
    rng = np.random.default_rng(8)
    table = random_table(rng, 2040, 32, 65)  # load .996
    data = simulate(rng, table, 65, zipf(2040), np.full(32, 5000), 3.0)
    monkeypatch.setattr(_least_squares, "_MAX_ITERATIONS", 100)
    with pytest.warns(DecodingWarning, match=r"S / \(C \(k - 1\)\) = 1.00 and 32 cohorts"):
        least_squares(data.system, data.target)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("load", [0.12, 0.25, 0.5])
@pytest.mark.parametrize("shape", [(256, 64), (64, 256), (16, 1024)])
def test_iterations_are_those_predicted_for_random_tables(shape, load, centred):
    # PERFORMANCE: ½ ln(2 / tolerance) (1 + √γ) / |1 - √γ| + 5, where H has C >> 2 rows for
    # each candidate; the plain system has one more large eigenvalue.
    n_cohorts, n_buckets = shape
    size = int(load * n_cohorts * (n_buckets - 1))
    rng = np.random.default_rng(size)
    table = random_table(rng, size, n_cohorts, n_buckets)
    data = simulate(
        rng, table, n_buckets, zipf(size), np.full(n_cohorts, 4000), 2.0, centred=centred
    )
    root = np.sqrt(load)
    predicted = 0.5 * np.log(2 / 1e-10) * (1 + root) / abs(1 - root)
    assert 0 < least_squares(data.system, data.target).n_passes <= predicted + 5


def test_empty_cohorts_are_as_if_they_were_not_there(monkeypatch):
    rng = np.random.default_rng(9)
    table = random_table(rng, 40, 12, 16)
    n_reports = rng.integers(100, 200, 12)
    n_reports[[2, 11]] = 0
    data = simulate(rng, table, 16, zipf(40), n_reports, 3.0)
    kept = n_reports > 0
    part = system_of(table[kept], 16, n_reports[kept])
    expected = least_squares(part, data.target[kept]).p
    for _ in range(2):
        np.testing.assert_allclose(least_squares(data.system, data.target).p, expected, atol=1e-8)
        iterative(monkeypatch)
