"""Variances of least squares for cohorts: brute force, probes, and simulated errors."""

import itertools

import numpy as np
import pytest
from cohort_systems import explicit_matrix, random_table, simulate, system_of, zipf

from skldp.decoding import (
    SamplingNoise,
    _cohort_covariance,
    least_squares,
    least_squares_variances,
)


def krr(epsilon, n_buckets):
    offset = 1 / (np.exp(epsilon) + n_buckets - 1)
    return offset, np.expm1(epsilon) * offset


def rappor(epsilon, n_hashes):
    offset = 1 / (1 + np.exp(epsilon / (2 * n_hashes)))
    return offset, 1 - 2 * offset


def noise_of(shares, offset, slope, *, bits):
    """The noise of reports whose expected bucket shares are these."""
    rates = offset + slope * shares
    if bits:
        return SamplingNoise(rates * (1 - rates) / slope**2 + shares**2, shares)
    return SamplingNoise(rates / slope**2, rates / slope)


def enumerated_covariance(buckets, n_buckets, p, offset, slope, *, bits):
    """Covariance of one report's unbiased bucket indicators, from every possible report.

    `buckets` holds a cohort's buckets of every value, shape (n_hashes, S).
    """
    if bits:
        reports = np.array(list(itertools.product([0, 1], repeat=n_buckets)), dtype=float)
    else:
        reports = np.eye(n_buckets)
    probabilities = np.zeros(len(reports))
    for value, share in enumerate(p):
        own = np.zeros(n_buckets)
        own[[b for b in buckets[:, value] if b < n_buckets]] = 1
        if bits:
            one = np.where(own == 1, 1 - offset, offset)
            likelihood = np.prod(np.where(reports == 1, one, 1 - one), axis=1)
        else:
            likelihood = offset + slope * (reports @ own)
        probabilities += share * likelihood
    assert abs(probabilities.sum() - 1) < 1e-12
    unbiased = (reports - offset) / slope
    mean = probabilities @ unbiased
    return (unbiased.T * probabilities) @ unbiased - np.outer(mean, mean)


def explicit_variances(system, covariances):
    """Diagonal of A Cov(b) Aᵀ with A = (Xᵀ W X)⁻¹ Xᵀ W, all matrices formed."""
    matrix = explicit_matrix(system.table, system.n_buckets, system.centre)
    weights = system.weights.reshape(-1)
    solution = np.linalg.inv(matrix.T @ (weights[:, None] * matrix)) @ (matrix.T * weights)
    total = np.zeros(system.n_candidates)
    for cohort, covariance in enumerate(covariances):
        n_reports = system.weights[cohort, 0]
        if n_reports:
            part = solution[:, cohort * system.n_buckets : (cohort + 1) * system.n_buckets]
            total += np.einsum("sj,jl,sl->s", part, covariance / n_reports, part)
    return total


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(("bits", "n_hashes"), [(False, 1), (True, 1), (True, 2), (True, 3)])
def test_small_systems_have_the_variances_of_all_possible_reports(bits, n_hashes, centred):
    rng = np.random.default_rng(n_hashes)
    size, n_cohorts, n_buckets, epsilon = 8, 6, 7, 1.5
    table = random_table(rng, size, n_cohorts, n_buckets, n_hashes)
    n_reports = rng.integers(100, 1000, n_cohorts)
    n_reports[1] = 0
    system = system_of(table, n_buckets, n_reports, centred=centred)
    p = rng.dirichlet(np.ones(size))
    offset, slope = rappor(epsilon, n_hashes) if bits else krr(epsilon, n_buckets)
    covariances = [
        enumerated_covariance(buckets, n_buckets, p, offset, slope, bits=bits) for buckets in table
    ]
    expected = explicit_variances(system, covariances)
    noise = noise_of(system.scatter(p), offset, slope, bits=bits)
    found = least_squares_variances(system, noise, p, None)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_counting_only_a_candidates_own_bits_is_nearly_the_same(monkeypatch):
    # What is done where counting all pairs of pairs would take long.
    rng = np.random.default_rng(1)
    for n_hashes, n_buckets in ((2, 256), (3, 512)):
        table = random_table(rng, 300, 8, n_buckets, n_hashes)
        system = system_of(table, n_buckets, np.full(8, 1000))
        p = zipf(300)
        offset, slope = rappor(6.0, n_hashes)
        noise = noise_of(system.scatter(p), offset, slope, bits=True)
        exact = least_squares_variances(system, noise, p, None)
        monkeypatch.setattr(_cohort_covariance, "_SHARED_BITS_COST", 0)
        ratio = least_squares_variances(system, noise, p, None) / exact
        monkeypatch.undo()
        assert ratio.min() > 0.98
        assert ratio.max() < 1.1  # of the heaviest
        assert 1.0 < ratio.mean() < 1.02


def probed(monkeypatch, *arguments):
    monkeypatch.setattr(_cohort_covariance, "LARGEST_INVERSE", 0)
    found = least_squares_variances(*arguments)
    monkeypatch.undo()
    return found


@pytest.mark.parametrize("load", [0.1, 0.3, 0.6])
@pytest.mark.parametrize(("bits", "n_hashes"), [(False, 1), (True, 1), (True, 2)])
@pytest.mark.parametrize("size", [500, 1200])
def test_probes_agree_with_the_inverse(size, bits, n_hashes, load, monkeypatch):
    n_buckets = 64
    n_cohorts = round(size / load / (n_buckets - 1))
    rng = np.random.default_rng(size)
    table = random_table(rng, size, n_cohorts, n_buckets, n_hashes)
    n_reports = rng.multinomial(10**6, np.full(n_cohorts, 1 / n_cohorts))
    data = simulate(rng, table, n_buckets, zipf(size), n_reports, 2.0, bits=bits)
    noise = noise_of(data.system.scatter(zipf(size)), data.offset, data.slope, bits=bits)
    exact = least_squares_variances(data.system, noise, zipf(size), None)
    found = probed(monkeypatch, data.system, noise, zipf(size), None)
    ratio = np.sqrt(found / exact)  # of standard errors
    assert abs(ratio.mean() - 1) < 0.03
    assert ratio.std() < 0.05
    assert np.abs(ratio - 1).max() < 0.15
    # The squares of a few dozen cohorts' scores vary more between candidates.
    residuals = data.target - data.system.forward(least_squares(data.system, data.target).p)
    exact = least_squares_variances(data.system, noise, zipf(size), residuals)
    found = probed(monkeypatch, data.system, noise, zipf(size), residuals)
    ratio = np.sqrt(found / exact)
    assert abs(ratio.mean() - 1) < 0.06
    assert ratio.std() < 0.15


def test_two_thousand_candidates_and_one_more_have_the_same_variances():
    # On either side of the largest inverse.
    size = _cohort_covariance.LARGEST_INVERSE + 1
    rng = np.random.default_rng(2)
    table = random_table(rng, size, 32, 256)
    offset, slope = krr(3.0, 256)
    found = []
    for some in (table, table[..., :-1]):
        system = system_of(some, 256, np.full(32, 30_000))
        noise = noise_of(system.scatter(zipf(some.shape[2])), offset, slope, bits=False)
        found.append(least_squares_variances(system, noise, zipf(some.shape[2]), None))
    np.testing.assert_allclose(found[0][:-1], found[1], rtol=0.1)


@pytest.mark.parametrize("few", [2, 6])
def test_few_cohorts_are_probed_one_by_one(few, monkeypatch):
    rng = np.random.default_rng(few)
    table = random_table(rng, 400, few, 1024, 2)
    data = simulate(rng, table, 1024, zipf(400), np.full(few, 10**6 // few), 4.0, bits=True)
    silent = SamplingNoise(np.zeros((few, 1024)), np.zeros((few, 1024)))
    nobody = np.zeros(400)
    residuals = data.target - data.system.forward(least_squares(data.system, data.target).p)
    exact = least_squares_variances(data.system, silent, nobody, residuals)
    found = probed(monkeypatch, data.system, silent, nobody, residuals)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-3 * exact.max())


@pytest.mark.parametrize("way", ["inverse", "probes"])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(("bits", "shape"), [(False, (48, 16)), (True, (2, 1024))])
def test_standardized_errors_have_a_variance_of_one(bits, shape, centred, way, monkeypatch):
    # 225 samples of 100 candidates, at a load of .2 or less: their mean square has a standard
    # error of √(2 / 22500) = .0094 if independent; they are nearly so (a factor of 1.3). The
    # bound is six of these; false alarms 2e-9.
    n_cohorts, n_buckets = shape
    size, n_trials = 100, 225
    rng = np.random.default_rng(n_buckets)
    table = random_table(rng, size, n_cohorts, n_buckets)
    n_reports = np.full(n_cohorts, 200_000 // n_cohorts)
    if way == "probes":
        monkeypatch.setattr(_cohort_covariance, "LARGEST_INVERSE", 0)
    squares = []
    for _ in range(n_trials):
        data = simulate(
            rng, table, n_buckets, zipf(size), n_reports, 2.0, bits=bits, centred=centred
        )
        raw = least_squares(data.system, data.target).p
        shares = np.clip(data.shares, 0, 1) if bits else np.maximum(data.shares, -data.offset)
        noise = noise_of(shares, data.offset, data.slope, bits=bits)
        variances = least_squares_variances(data.system, noise, raw, None)
        squares.append(((raw - zipf(size)) ** 2 / variances).mean())
    assert abs(np.mean(squares) - 1) < 0.0094 * 1.3 * 6


@pytest.mark.parametrize("way", ["inverse", "probes"])
def test_clustered_variances_see_strings_that_the_list_lacks(way, monkeypatch):
    # A string of mass .1 that is not listed: its buckets are errors of fixed size, so with 10^7
    # reports the sampling variances are far too small.
    size, n_cohorts, n_buckets = 200, 64, 16
    if way == "probes":
        monkeypatch.setattr(_cohort_covariance, "LARGEST_INVERSE", 0)
    rng = np.random.default_rng(3)
    sampling, clustered, above = [], [], []
    p = np.r_[0.9 * zipf(size), 0.1]
    for _ in range(25):  # new hashes each time: the error is fixed given the hashes
        table = random_table(rng, size + 1, n_cohorts, n_buckets)
        n_reports = np.full(n_cohorts, 10**7 // n_cohorts)
        whole = simulate(rng, table, n_buckets, p, n_reports, 3.0)
        system = system_of(table[..., :size], n_buckets, n_reports)
        raw = least_squares(system, whole.target).p
        noise = noise_of(whole.shares, whole.offset, whole.slope, bits=False)
        residuals = whole.target - system.forward(raw)
        plain = least_squares_variances(system, noise, raw, None)
        larger = least_squares_variances(system, noise, raw, residuals)
        assert (larger >= plain).all()
        errors = raw - p[:size]
        sampling.append((errors**2 / plain).mean())
        clustered.append((errors**2 / larger).mean())
        above.append((np.maximum(errors, 0) ** 2 / larger).mean())
    assert np.mean(sampling) > 2
    # Few cohorts share a bucket with the string, and where none does (errors below 0) there is
    # little to see. What matters for detection, errors above 0, is covered. (Of 5000
    # standardized errors; six standard errors of their mean square are 6 √(2 / 5000) = .12.)
    assert 0.5 < np.mean(clustered) < 1.5
    assert np.mean(above) < 0.5 * 1.12


def test_candidates_that_cannot_be_told_apart_have_no_variance_and_spoil_no_other():
    rng = np.random.default_rng(4)
    table = random_table(rng, 60, 2, 4096)
    table[:, :, 9] = table[:, :, 4]
    offset, slope = rappor(4.0, 1)
    system = system_of(table, 4096, [5000, 5000])
    noise = noise_of(system.scatter(zipf(60)), offset, slope, bits=True)
    residuals = rng.normal(size=(2, 4096))
    found = least_squares_variances(system, noise, zipf(60), residuals)
    assert np.isinf(found[[4, 9]]).all()
    found = least_squares_variances(system, noise, zipf(60), None)
    assert np.isinf(found[[4, 9]]).all()
    others = np.delete(np.arange(60), [4, 9])
    alone = np.delete(np.arange(60), 9)
    part = system_of(table[..., alone], 4096, [5000, 5000])
    expected = least_squares_variances(part, noise, zipf(60)[alone], None)
    np.testing.assert_allclose(found[others], np.delete(expected, 4), rtol=1e-8)


def test_probes_of_a_singular_system_give_no_variance(monkeypatch):
    rng = np.random.default_rng(5)
    table = random_table(rng, 300, 2, 1024)
    table[:, :, 9] = table[:, :, 4]
    offset, slope = rappor(4.0, 1)
    system = system_of(table, 1024, [5000, 5000])
    noise = noise_of(system.scatter(zipf(300)), offset, slope, bits=True)
    assert np.isinf(probed(monkeypatch, system, noise, zipf(300), None)).all()
