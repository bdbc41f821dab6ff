"""Least squares under cvxpy constraints: closed forms, checks of the result, clear errors."""

import subprocess
import sys

import cvxpy
import numpy as np
import pytest

from skldp.decoding import _constrained, constrained_least_squares, project_simplex


def no_constraints(p):
    return []


@pytest.mark.parametrize("size", [1, 2, 30, 500])
@pytest.mark.parametrize("noise", [0.3, 1e-3, 1e-6])
def test_is_the_projection_where_there_is_only_the_simplex(size, noise):
    rng = np.random.default_rng(size)
    estimate = rng.dirichlet(np.ones(size)) + noise * rng.normal(size=size)
    found = constrained_least_squares(estimate, np.ones(size), no_constraints, simplex=True)
    # An interior-point method finds an entry that is zero, but only just, to the square root of
    # its tolerance (1e-12), here relative to the distance from the estimate.
    np.testing.assert_allclose(found, project_simplex(estimate), rtol=0, atol=1e-6 * noise)
    assert found.min() >= 0
    assert abs(found.sum() - 1) <= 1e-12


def test_without_simplex_or_constraints_the_estimate_stays():
    estimate = np.array([0.7, -0.1, 0.2])
    found = constrained_least_squares(estimate, [1, 2, 3], no_constraints, simplex=False)
    np.testing.assert_allclose(found, estimate, rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e12])
def test_one_weighted_equation_has_a_closed_form(scale):
    # Minimise sum w (p - e)**2 with a.p = b: p = e + (b - a.e)/(a.a/w) * a/w.
    rng = np.random.default_rng(4)
    estimate, weights = rng.normal(size=8), rng.uniform(0.1, 10, size=8)
    normal = rng.normal(size=8)
    expected = (
        estimate + (0.3 - normal @ estimate) / (normal**2 / weights).sum() * normal / weights
    )
    found = constrained_least_squares(
        estimate, scale * weights, lambda p: [normal @ p == 0.3], simplex=False
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_known_totals_split_the_simplex():
    # With the total of each half fixed, each half is projected onto its own simplex.
    rng = np.random.default_rng(5)
    estimate = rng.normal(size=10) * 0.3
    found = constrained_least_squares(
        estimate,
        np.ones(10),
        lambda p: [cvxpy.sum(p[:4]) == 0.7, cvxpy.sum(p[4:]) == 0.3],
        simplex=True,
    )
    expected = np.r_[project_simplex(estimate[:4], 0.7), project_simplex(estimate[4:], 0.3)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_a_known_order_pools_what_violates_it():
    # Decreasing order: weighted means of the entries that are out of order.
    found = constrained_least_squares(
        [0.2, 0.5, 0.3], [1.0, 2.0, 1.0], lambda p: [p[:-1] >= p[1:]], simplex=False
    )
    np.testing.assert_allclose(found, [0.4, 0.4, 0.3], rtol=0, atol=1e-9)


def test_constraints_in_counts_and_second_order_cones_work():
    estimate = np.array([0.5, 0.3, 0.2])
    found = constrained_least_squares(
        estimate,
        np.ones(3),
        lambda p: (10**6 * p[0] == 450_000, cvxpy.norm(p) <= 0.9, cvxpy.entr(p) >= 0.01),
        simplex=True,
    )
    np.testing.assert_allclose(found, [0.45, 0.325, 0.225], rtol=0, atol=1e-9)


def test_variables_of_the_users_own_are_allowed():
    def within_a_free_margin(p):
        margin = cvxpy.Variable()
        return [cvxpy.abs(p - 0.25) <= margin, margin <= 0.05]

    found = constrained_least_squares(
        [0.5, 0.2, 0.2, 0.1], np.ones(4), within_a_free_margin, simplex=True
    )
    np.testing.assert_allclose(found, [0.3, 0.25, 0.25, 0.2], rtol=0, atol=1e-8)


def test_the_scale_of_the_weights_does_not_matter():
    rng = np.random.default_rng(6)
    estimate, weights = rng.normal(size=6), rng.uniform(1, 5, size=6)
    first, second = (
        constrained_least_squares(estimate, scale * weights, lambda p: [p[0] == 0.2], simplex=True)
        for scale in (1.0, 2.0**200)
    )
    np.testing.assert_array_equal(first, second)


def test_inputs_are_not_touched():
    estimate, weights = np.array([0.6, 0.6, -0.2]), np.array([1.0, 2.0, 3.0])
    estimate.flags.writeable = weights.flags.writeable = False
    found = constrained_least_squares(estimate, weights, no_constraints, simplex=True)
    assert found.flags.writeable and found.dtype == np.float64


@pytest.mark.parametrize(
    "constraints",
    [
        lambda p: [p[0] == 2],
        lambda p: [cvxpy.sum(p[:2]) == 0.5, cvxpy.sum(p[2:]) == 0.49],
        lambda p: [p[0] >= 0.5, p[0] <= 0.4],
    ],
)
def test_contradictions_are_named(constraints):
    with pytest.raises(ValueError, match="no frequencies meet the constraints"):
        constrained_least_squares([0.5, 0.3, 0.1, 0.1], np.ones(4), constraints, simplex=True)


def test_constraints_that_are_not_convex_are_named():
    with pytest.raises(ValueError, match="not convex by cvxpy's rules"):
        constrained_least_squares(
            [0.5, 0.5], [1, 1], lambda p: [cvxpy.square(p[0]) >= 0.3], simplex=True
        )


def test_integer_variables_are_refused():
    with pytest.raises(ValueError, match="integer or boolean variables"):
        constrained_least_squares(
            [0.5, 0.5], [1, 1], lambda p: [p[0] == cvxpy.Variable(boolean=True)], simplex=True
        )


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (None, "must be a function"),
        ([0.5], "must be a function"),
        (lambda p: None, "returned NoneType: return a list"),
        (lambda p: p[0] >= 0.1, "returned Inequality: return a list"),
        (lambda p: [True], "returned bool in position 0"),
        (lambda p: [p[0] == 0.1, p], "returned Variable in position 1"),
    ],
)
def test_what_is_no_list_of_constraints_is_refused(constraints, message):
    with pytest.raises(TypeError, match=message):
        constrained_least_squares([0.5, 0.5], [1, 1], constraints, simplex=True)


@pytest.mark.parametrize(
    ("estimate", "weights", "message"),
    [
        ([], [], "estimate must be a non-empty one-dimensional"),
        ([[0.5, 0.5]], [[1, 1]], "estimate must be a non-empty one-dimensional"),
        ([0.5, np.nan], [1, 1], "estimate must be finite"),
        ([0.5, 0.5], [1], "weights must have the shape of estimate"),
        ([0.5, 0.5], 1.0, "weights must have the shape of estimate"),
        ([0.5, 0.5], [1, 0], "weights must be positive"),
        ([0.5, 0.5], [1, -1], "weights must be positive"),
        ([0.5, 0.5], [1, np.inf], "weights must be finite"),
    ],
)
def test_bad_estimates_and_weights_are_refused(estimate, weights, message):
    with pytest.raises(ValueError, match=message):
        constrained_least_squares(estimate, weights, no_constraints, simplex=True)


@pytest.mark.parametrize("status", ["optimal_inaccurate", "user_limit", "infeasible_inaccurate"])
def test_an_inaccurate_answer_is_not_returned(status, monkeypatch):
    monkeypatch.setattr(_constrained, "_attempt", lambda problem: status)
    with pytest.raises(ValueError, match=f"could not be found accurately.*{status}"):
        constrained_least_squares([0.5, 0.5], [1, 1], no_constraints, simplex=True)


def test_an_unbounded_problem_is_named(monkeypatch):
    monkeypatch.setattr(_constrained, "_attempt", lambda problem: "unbounded")
    with pytest.raises(ValueError, match="unbounded"):
        constrained_least_squares([0.5, 0.5], [1, 1], no_constraints, simplex=True)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0.5, 0.6], "the simplex is missed by"),
        ([1.1, -0.1], "the simplex is missed by"),
        ([np.nan, 1.0], "the simplex is missed by"),
        ([0.4, 0.6], "constraint 1 is missed by"),
    ],
)
def test_what_the_solver_calls_optimal_is_checked(answer, message, monkeypatch):
    def solve_wrongly(distance, constraints):
        distance.variables()[0].save_value(np.array(answer))

    monkeypatch.setattr(_constrained, "_solve", solve_wrongly)
    with pytest.raises(ValueError, match=message):
        constrained_least_squares(
            [0.5, 0.5], [1, 1], lambda p: [p[0] >= 0.1, p[0] == 0.5], simplex=True
        )


def test_a_refinement_that_fails_leaves_the_first_solution(monkeypatch):
    attempt, calls = _constrained._attempt, []

    def fail_the_second_time(problem):
        calls.append(problem)
        if len(calls) == 1:
            return attempt(problem)
        for variable in problem.variables():
            variable.save_value(None)
        return "user_limit"

    monkeypatch.setattr(_constrained, "_attempt", fail_the_second_time)
    found = constrained_least_squares(
        [0.7, 0.5], [1, 1], lambda p: [p[0] <= cvxpy.Variable(nonneg=True)], simplex=True
    )
    assert len(calls) == 2
    np.testing.assert_allclose(found, [0.6, 0.4], rtol=0, atol=1e-7)


def test_a_tolerance_out_of_reach_is_followed_by_a_looser_one(monkeypatch):
    monkeypatch.setattr(_constrained, "_SOLVER_TOLERANCES", (1e-300, 1e-10))
    found = constrained_least_squares([0.7, 0.5], [1, 1], no_constraints, simplex=True)
    np.testing.assert_allclose(found, [0.6, 0.4], rtol=0, atol=1e-8)


def test_cvxpy_is_imported_on_first_use():
    program = (
        "import sys, skldp.decoding as decoding\n"
        "assert 'cvxpy' not in sys.modules\n"
        "decoding.project_simplex([0.5, 0.7])\n"
        "decoding.krr_maximum_likelihood([1, 2], 1.0)\n"
        "assert 'cvxpy' not in sys.modules\n"
        "decoding.constrained_least_squares([0.5, 0.7], [1, 1], lambda p: [], simplex=True)\n"
        "assert 'cvxpy' in sys.modules\n"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
