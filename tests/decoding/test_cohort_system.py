"""The cohort system without its matrix: every product against the explicit matrix."""

import numpy as np
import pytest
import scipy.sparse
from cohort_systems import explicit_matrix, filled, random_table, system_of

from skldp.decoding import CohortSystem, _cohort_system

SHAPES = [
    # size, cohorts, buckets, hashes
    (1, 1, 2, 1),
    (7, 1, 5, 1),
    (40, 6, 5, 1),
    (30, 4, 6, 2),
    (25, 5, 4, 3),  # many collisions within a filter
    (60, 3, 40, 2),
    (50, 2, 300, 1),  # uint16 buckets
    (20, 2, 256, 3),  # "none" needs one more bit than a bucket
]


def uneven(rng, n_cohorts):
    n_reports = rng.integers(1, 1000, n_cohorts)
    if n_cohorts > 2:
        n_reports[1] = 0
    return n_reports


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.fixture(params=["sparse", "blocks"])
def way(request, monkeypatch):
    """Small systems keep a sparse matrix: once with it, once as the large ones do it."""
    if request.param == "blocks":
        monkeypatch.setattr(_cohort_system, "_FEW_CANDIDATES", 0)
        monkeypatch.setattr(_cohort_system, "_BLOCK", 8)
    return request.param


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_product_is_that_of_the_explicit_matrix(shape, centred, way):
    size, n_cohorts, n_buckets, n_hashes = shape
    rng = np.random.default_rng(size)
    table = random_table(rng, size, n_cohorts, n_buckets, n_hashes)
    system = system_of(table, n_buckets, uneven(rng, n_cohorts), centred=centred)
    assert (system._sparse is not None) == (way == "sparse")
    matrix = explicit_matrix(table, n_buckets, system.centre)
    weights = system.weights.reshape(-1)
    p = rng.normal(size=size)
    rows = rng.normal(size=(n_cohorts, n_buckets))
    close(system.forward(p).reshape(-1), matrix @ p)
    close(system.adjoint(rows), matrix.T @ rows.reshape(-1))
    close(system.normal(p), matrix.T @ (weights * (matrix @ p)))
    close(system.gram(rows), matrix.T @ (rows.reshape(-1, 1) * matrix))
    close(system.scatter(p).reshape(-1), (matrix + system.centre) @ p)
    close(system.gather(rows), (matrix + system.centre).T @ rows.reshape(-1))
    by_cohort = matrix.reshape(n_cohorts, n_buckets, size)
    close(np.array(list(system.cohort_scores(rows))), np.einsum("cys,cy->cs", by_cohort, rows))
    # <X p, u> = <p, Xᵀ u>
    left, right = (system.forward(p) * rows).sum(), p @ system.adjoint(rows)
    assert abs(left - right) <= 1e-12 * np.abs(system.forward(p) * rows).sum()


@pytest.mark.parametrize("size", [5000, 2**15 - 1, 2**15, 2**15 + 1, 70_000])
def test_large_systems_agree_with_a_sparse_matrix(size):
    rng = np.random.default_rng(size)
    n_cohorts, n_buckets, n_hashes = 3, 64, 2
    table = random_table(rng, size, n_cohorts, n_buckets, n_hashes)
    system = system_of(table, n_buckets, [5, 0, 7])
    assert system._sparse is None
    codes = table.astype(np.int64) + np.arange(n_cohorts)[:, None, None] * n_buckets
    listed = table < n_buckets
    columns = np.broadcast_to(np.arange(size), table.shape)
    matrix = scipy.sparse.coo_array(
        (np.ones(listed.sum()), (codes[listed], columns[listed])),
        shape=(n_cohorts * n_buckets, size),
    ).tocsr()
    p, rows = rng.random(size), rng.normal(size=(n_cohorts, n_buckets))
    centre = filled(n_buckets, n_hashes)
    expected = (matrix @ p - centre * p.sum()).reshape(n_cohorts, n_buckets)
    np.testing.assert_allclose(system.forward(p), expected, rtol=0, atol=1e-12 * size)
    expected = matrix.T @ rows.reshape(-1) - centre * rows.sum()
    np.testing.assert_allclose(system.adjoint(rows), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("n_hashes", [1, 2, 3])
def test_centred_and_plain_systems_agree_on_distributions(n_hashes):
    rng = np.random.default_rng(n_hashes)
    table = random_table(rng, 30, 5, 8, n_hashes)
    centred = system_of(table, 8, np.full(5, 10))
    plain = system_of(table, 8, np.full(5, 10), centred=False)
    p = rng.dirichlet(np.ones(30))
    close(centred.forward(p) + centred.centre, plain.forward(p))


def test_a_list_that_covers_nobody_looks_like_nothing_on_average():
    # An unlisted string falls anywhere: the mean of its column in X is 0.
    rng = np.random.default_rng(0)
    table = random_table(rng, 40_000, 1, 16, 2)
    means = system_of(table, 16, [1]).forward(np.full(40_000, 1 / 40_000))
    # Standard error of each at most .5 / sqrt(40000) = .0025; false alarms of 6 sigma: 3e-8.
    assert np.abs(means).max() < 0.015


@pytest.mark.parametrize("is_sparse", [True, False])
def test_reweighting_changes_the_weights_alone(is_sparse, monkeypatch):
    if not is_sparse:
        monkeypatch.setattr(_cohort_system, "_FEW_CANDIDATES", 0)
    rng = np.random.default_rng(3)
    table = random_table(rng, 20, 4, 8)
    system = system_of(table, 8, [1, 2, 3, 4])
    p = rng.random(20)
    system.normal(p)
    weights = rng.random((4, 8))
    found = system.reweighted(weights)
    close(found.normal(p), CohortSystem(table, 8, weights, system.centre).normal(p))
    assert system.weights[0, 0] == 1.0


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(60, 4, 8), (60, 1, 16), (50, 25, 2), (200, 6, 8)])
def test_the_rank_is_at_most_what_is_said_and_attained_by_many_candidates(shape, centred):
    size, n_cohorts, n_buckets = shape
    rng = np.random.default_rng(size)
    n_reports = uneven(rng, n_cohorts)
    table = random_table(rng, size, n_cohorts, n_buckets)
    system = system_of(table, n_buckets, n_reports, centred=centred)
    used = np.count_nonzero(n_reports)
    assert system.max_rank == used * (n_buckets - 1) + (not centred)
    assert system.load == size / (used * (n_buckets - 1))
    rank = np.linalg.matrix_rank(system.gram(system.weights))
    assert rank == min(size, system.max_rank)


def test_scale_is_the_mean_diagonal_of_the_normal_matrix():
    rng = np.random.default_rng(9)
    for n_hashes in (1, 2):
        table = random_table(rng, 2000, 8, 32, n_hashes)
        system = system_of(table, 32, rng.integers(1, 100, 8))
        mean = np.diag(system.gram(system.weights)).mean()
        assert abs(mean / system.scale - 1) < 0.01


def test_gram_takes_several_blocks_of_cohorts(monkeypatch):
    rng = np.random.default_rng(4)
    for n_buckets, n_hashes in ((4, 1), (64, 2)):  # a dense product, and a sparse one
        table = random_table(rng, 20, 9, n_buckets, n_hashes)
        system = system_of(table, n_buckets, rng.integers(0, 9, 9))
        whole = system.gram(system.weights)
        monkeypatch.setattr(_cohort_system, "_DENSE_ROWS", 100)
        close(system.gram(system.weights), whole)
        monkeypatch.undo()
