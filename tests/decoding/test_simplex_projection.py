"""Projection onto the simplex against exact arithmetic, brute force, and its conditions."""

import itertools
import math
from fractions import Fraction

import cvxpy
import numpy as np
import pytest

from skldp.decoding import _simplex, normalize_simplex, project_simplex

LONG = _simplex._LONG


def exact_projection(values, total=1):
    """Projection in rational arithmetic, by the textbook's sort."""
    exact = [Fraction(float(value)) for value in values]
    threshold, running = None, Fraction(0)
    for rank, value in enumerate(sorted(exact, reverse=True), start=1):
        running += value
        candidate = (running - Fraction(total)) / rank
        if value > candidate:
            threshold = candidate
    return [max(value - threshold, Fraction(0)) for value in exact]


def brute_force_projection(values):
    """Best point among the projections onto all faces that lie in the simplex."""
    best, best_distance = None, math.inf
    indices = range(len(values))
    for size in range(1, len(values) + 1):
        for face in itertools.combinations(indices, size):
            point = np.zeros(len(values))
            chosen = values[list(face)]
            point[list(face)] = chosen - (chosen.sum() - 1) / size
            distance = np.square(point - values).sum()
            if point.min() >= -1e-15 and distance < best_distance:
                best, best_distance = point, distance
    return best


def sorted_projection(row, total=1.0):
    """The path that sorts everything, whatever the length."""
    out = np.empty((1, row.size))
    _simplex._project_rows(row[np.newaxis], total, out)
    return out[0]


def check_optimality(values, projected, total=1.0):
    """Assert the conditions of Karush, Kuhn and Tucker, up to the last digits of float64."""
    assert projected.min() >= 0
    assert abs(math.fsum(projected) - total) <= 1e-12 * total
    positive = projected > 0
    taken = values[positive] - projected[positive]  # the multiplier: equal everywhere
    # One rounding of the value, one of the result, in units of the last digit of the largest.
    digit = np.spacing(max(np.abs(values[positive]).max(), projected.max(), np.abs(taken).max()))
    assert np.ptp(taken) <= 4 * digit
    if not positive.all():
        assert values[~positive].max() <= taken.min() + 4 * digit


def hard_vectors(size):
    """Long vectors of different shapes: how many entries stay positive runs from 1 to all."""
    rng = np.random.default_rng(20)
    ranks = np.arange(1.0, size + 1)
    heavy = (1 / ranks) / np.sum(1 / ranks)
    every_eighth = np.arange(size) % (size // _simplex._SAMPLE) == 0
    return {
        "normal": rng.normal(size=size),
        "uniform": rng.random(size),
        "dense": rng.normal(size=size) * 0.1 / size,
        "half": rng.normal(size=size) * 3 / size,
        "sparse": rng.normal(size=size) * 100 / size,
        "distribution": rng.dirichlet(np.ones(size)),
        "equal": np.full(size, 7.0),
        "two levels": np.where(rng.random(size) < 0.3, 1.0, 1.0 - 2 / size),
        "counts": rng.poisson(2, size=size) / size,
        "few ties": rng.poisson(0.5, size=size) * 10 / size,
        "heavy head": heavy + rng.normal(size=size) / size,
        "ascending": np.sort(rng.normal(size=size) / size),
        "descending": np.sort(rng.normal(size=size) / size)[::-1],
        "one large": np.r_[0.9, rng.random(size - 1) / size],
        "one huge": np.r_[1e300, rng.random(size - 1) / size],
        "spread": rng.standard_cauchy(size),
        # The regular sample sees only the smallest values, these and a few of the largest, or
        # only the largest.
        "sample of zeros": np.where(every_eighth, 0.0, rng.random(size) * 3 / size + 1 / size),
        "sample too low": np.where(
            every_eighth,
            np.where(ranks <= 300, 5 / size, 0.0),
            rng.random(size) * 3 / size + 1 / size,
        ),
        "sample too high": np.where(every_eighth, rng.random(size) * 3 / size + 5 / size, 0.0),
        "opposite extremes": np.r_[1.7e308, np.full(size - 1, -1.7e308)],
    }


@pytest.mark.parametrize("size", range(1, 7))
def test_agrees_with_brute_force_over_faces(size):
    rng = np.random.default_rng(size)
    for scale in (0.1, 0.5, 1.0, 3.0):
        for _ in range(25):
            values = scale * rng.normal(size=size) + rng.normal()
            np.testing.assert_allclose(
                project_simplex(values), brute_force_projection(values), rtol=0, atol=1e-14
            )


@pytest.mark.parametrize("size", [2, 17, 300])
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e3, 1e12])
@pytest.mark.parametrize("total", [1.0, 0.25, 1e6])
def test_agrees_with_exact_arithmetic(size, scale, total):
    rng = np.random.default_rng(size)
    values = scale * rng.normal(size=size)
    exact = np.array([float(value) for value in exact_projection(values, total)])
    np.testing.assert_allclose(project_simplex(values, total), exact, rtol=0, atol=4e-15 * total)


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_cvxpy(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=20) * 0.3
    point = cvxpy.Variable(20)
    problem = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum_squares(point - values)), [point >= 0, cvxpy.sum(point) == 1]
    )
    tight = 1e-12  # The solver's answer is then good to about the square root of it.
    problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=tight, tol_gap_rel=tight, tol_feas=tight)
    np.testing.assert_allclose(project_simplex(values), point.value, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", hard_vectors(LONG).keys())
@pytest.mark.parametrize("total", [1.0, 3e-5])
def test_long_vectors_agree_with_sorting_everything(kind, total):
    values = hard_vectors(LONG)[kind]
    projected = project_simplex(values, total)
    check_optimality(values, projected, total)
    everything_sorted = sorted_projection(values, total)
    check_optimality(values, everything_sorted, total)
    np.testing.assert_allclose(projected, everything_sorted, rtol=0, atol=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_long_vectors_with_many_ties_agree_with_sorting_everything(seed):
    # Estimates from counts: the threshold falls on, next to, or between values that thousands
    # of entries share.
    rng = np.random.default_rng(seed)
    values = (rng.poisson(rng.uniform(0.3, 20), size=LONG) - 1.0) * 10 ** rng.uniform(-7, -2)
    projected = project_simplex(values)
    check_optimality(values, projected)
    np.testing.assert_allclose(projected, sorted_projection(values), rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", ["sample too low", "sample too high"])
def test_a_misleading_sample_is_noticed(kind, monkeypatch):
    collected = []
    above = _simplex._above

    def spy(row, top, bound):
        collected.append(bound)
        return above(row, top, bound)

    monkeypatch.setattr(_simplex, "_above", spy)
    project_simplex(hard_vectors(LONG)[kind])
    assert len(collected) == 2  # the head, and what remained once the guess was refuted


def test_values_on_the_edge_of_the_interval_are_counted_once():
    excess, n_above, between = _simplex._split(np.array([5.0, 4, 3, 2, 1]), 1.0, 1.0, 3.0)
    assert (excess, n_above) == (1.0, 1)  # 5 - 1 - 3
    assert between.tolist() == [0.0, -1.0]


@pytest.mark.parametrize("ties", [False, True])
def test_a_good_sample_leaves_little_to_sort(ties, monkeypatch):
    sorted_sizes = []
    threshold = _simplex._threshold

    def spy(descending, *args, **kwargs):
        sorted_sizes.append(descending.size)
        return threshold(descending, *args, **kwargs)

    monkeypatch.setattr(_simplex, "_threshold", spy)
    size = 4 * LONG
    rng = np.random.default_rng(0)
    values = rng.poisson(0.5, size=size) * 10.0 if ties else rng.normal(size=size)
    project_simplex(values / size)
    assert max(sorted_sizes) < size / 16


@pytest.mark.parametrize("size", [1, 5, 1000, LONG - 1, LONG, LONG + 12345])
def test_sum_and_conditions_at_every_size(size):
    values = np.random.default_rng(size).normal(size=size) / size
    check_optimality(values, project_simplex(values))


def test_many_entries_far_below_the_largest_still_sum_to_one():
    # Each entry is about 5e-8 and is a difference of numbers near .5, whose last digit is
    # 1e-16: summed over ten million entries that would be 1e-9 without the correction.
    values = np.full(10_000_000, -0.5)
    values[1234] = 0.0
    projected = project_simplex(values)
    check_optimality(values, projected)
    assert np.unique(projected).size == 2


def test_points_of_the_simplex_stay_where_they_are():
    distribution = np.random.default_rng(3).dirichlet(np.ones(500))
    np.testing.assert_allclose(project_simplex(distribution), distribution, rtol=0, atol=1e-16)
    np.testing.assert_array_equal(project_simplex([0.0, 1.0, 0.0]), [0.0, 1.0, 0.0])


def test_ties_share_equally():
    np.testing.assert_array_equal(project_simplex([3.0, 3.0, 3.0, 3.0]), np.full(4, 0.25))
    np.testing.assert_array_equal(project_simplex([5.0, 5.0, 1.0]), [0.5, 0.5, 0.0])
    np.testing.assert_array_equal(project_simplex(np.full(7, -2.0)), np.full(7, 1 / 7))


def test_one_entry_takes_the_total():
    assert project_simplex([-17.0]).tolist() == [1.0]
    assert project_simplex([[4.0], [0.0]], total=2.5).tolist() == [[2.5], [2.5]]


@pytest.mark.parametrize("offset", [1e12, -1e12, 1e300, -1e300])
def test_huge_magnitudes(offset):
    one_more = np.nextafter(offset, np.inf)
    below = offset - abs(offset) / 2
    assert project_simplex([offset, offset, below]).tolist() == [0.5, 0.5, 0.0]
    gap = one_more - offset
    expected = [1.0, 0.0] if gap >= 1 else [0.5 + gap / 2, 0.5 - gap / 2]
    np.testing.assert_allclose(project_simplex([one_more, offset]), expected, rtol=0, atol=1e-15)
    assert project_simplex([1.7e308, -1.7e308]).tolist() == [1.0, 0.0]
    assert project_simplex([0.5, 0.0, *[-1e308] * 5]).tolist() == [0.75, 0.25, 0, 0, 0, 0, 0]


def test_shifting_all_values_does_not_change_the_result():
    values = np.arange(12.0) / 8  # exact after adding 2**40
    np.testing.assert_array_equal(project_simplex(values + 2.0**40), project_simplex(values))


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 5), (1, 1, 1, 6), (0, 4), (5000, 30)])
def test_leading_axes_are_rows(shape):
    values = np.random.default_rng(7).normal(size=shape)
    for function in (project_simplex, normalize_simplex):
        together = function(values)
        assert together.shape == shape and together.dtype == np.float64
        for index in np.ndindex(shape[:-1]):
            np.testing.assert_array_equal(together[index], function(values[index]))


def test_long_rows_are_projected_one_by_one():
    values = np.random.default_rng(8).normal(size=(2, LONG)) / LONG
    together = project_simplex(values)
    np.testing.assert_array_equal(together[1], project_simplex(values[1]))


@pytest.mark.parametrize("function", [project_simplex, normalize_simplex])
@pytest.mark.parametrize("size", [4, LONG])
def test_input_is_not_touched_and_may_be_read_only(function, size):
    values = np.random.default_rng(1).normal(size=size)
    before = values.copy()
    values.flags.writeable = False
    result = function(values)
    np.testing.assert_array_equal(values, before)
    assert not np.shares_memory(result, values) and result.flags.writeable


@pytest.mark.parametrize("size", [6, LONG])
def test_memory_layout_does_not_matter(size):
    values = np.random.default_rng(2).normal(size=(2, size)) / size
    expected = project_simplex(values)
    np.testing.assert_array_equal(project_simplex(np.asfortranarray(values)), expected)
    np.testing.assert_array_equal(project_simplex(np.repeat(values, 2, axis=1)[:, ::2]), expected)
    backwards = project_simplex(values[:, ::-1])[:, ::-1]  # the sums in another order
    np.testing.assert_allclose(backwards, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.uint8, bool])
def test_other_number_types(dtype):
    values = np.array([1, 1, 0, 0], dtype=dtype)
    assert project_simplex(values).dtype == np.float64
    np.testing.assert_array_equal(project_simplex(values), [0.5, 0.5, 0, 0])
    np.testing.assert_array_equal(normalize_simplex(values), [0.5, 0.5, 0, 0])
    np.testing.assert_array_equal(normalize_simplex(values.tolist()), [0.5, 0.5, 0, 0])


@pytest.mark.parametrize("function", [project_simplex, normalize_simplex])
@pytest.mark.parametrize("size", [3, LONG])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_values_are_refused(function, size, bad):
    values = np.zeros(size)
    values[-1] = bad
    with pytest.raises(ValueError, match=r"values must be finite: it contains NaN or infinity"):
        function(values)
    with pytest.raises(ValueError, match="must be finite"):
        function(np.stack([np.zeros(size), values]))


@pytest.mark.parametrize("function", [project_simplex, normalize_simplex])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (0.5, "at least one entry"),
        ([], "at least one entry"),
        (np.zeros((3, 0)), "at least one entry"),
        (["a", "b"], "real numbers"),
        ([1j, 0], "real numbers"),
        ([None, 1], "real numbers"),
    ],
)
def test_what_is_no_vector_of_numbers_is_refused(function, values, message):
    with pytest.raises(ValueError, match=message):
        function(values)


@pytest.mark.parametrize("total", [0, -1, np.nan, np.inf, np.float64(1.7e308)])
def test_totals_must_be_positive_and_finite(total):
    with pytest.raises(ValueError, match="total must be a positive finite number"):
        project_simplex([0.2, 0.3], total)


def test_normalize_clips_and_divides():
    np.testing.assert_allclose(normalize_simplex([3.0, -5.0, 1.0]), [0.75, 0, 0.25], rtol=1e-15)
    np.testing.assert_array_equal(normalize_simplex([[0, 0], [-1, -2]]), np.full((2, 2), 0.5))
    np.testing.assert_array_equal(normalize_simplex([1e308, 1e308, 1e308, 0]), [1 / 3] * 3 + [0])
    np.testing.assert_array_equal(normalize_simplex([5e-324, -1.0]), [1.0, 0.0])
    many = normalize_simplex(np.random.default_rng(0).normal(size=1_000_000))
    assert abs(math.fsum(many) - 1) <= 1e-12
