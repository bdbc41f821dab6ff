"""Lower bounds on the delivered ε from 10⁶ draws per arm.

Each bound exceeds the truth with probability at most 1e-6, so a sound mechanism stays below its
claim, at fixed seeds and for good. The planted bugs are caught by the same bound.
"""

import numpy as np
import pytest
from auditing import loss_lower_bound

from skldp.channels import KRRChannel, RapporChannel
from skldp.channels._thresholds import flip_threshold, replacement_threshold
from skldp.random import bernoulli, random_integers, random_stream

pytestmark = pytest.mark.statistical

N_DRAWS = 10**6
X, OTHER = 0, 2


def _symbol_events(reports, n_categories):
    return reports.reshape(-1, 1) == np.arange(n_categories)


def _bit_events(rows):
    """Return the four patterns of the two bits that differ, and every bit alone."""
    pair = rows[:, X] * 2 + rows[:, OTHER]
    return np.hstack([pair[:, np.newaxis] == np.arange(4), rows == 1, rows == 0])


def _bound(release, events):
    return loss_lower_bound(
        events(release(np.full(N_DRAWS, X))), events(release(np.full(N_DRAWS, OTHER)))
    )


@pytest.mark.parametrize("n_categories", [3, 8])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_krr_stays_below_its_claim(epsilon, n_categories):
    channel = KRRChannel(epsilon, n_categories)

    def release(codes):
        return np.asarray(channel.randomize(codes, random_state=1))

    bound = _bound(release, lambda reports: _symbol_events(reports, n_categories))
    assert bound <= epsilon
    # The bound is not vacuous: at 10⁶ draws it comes close.
    assert bound > epsilon - 0.1


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_rappor_stays_below_its_claim(epsilon, packed):
    channel = RapporChannel(epsilon, 5, packed=packed)

    def release(codes):
        reports = np.asarray(channel.randomize(codes, random_state=2))
        if packed:
            return np.unpackbits(reports, axis=1, count=5, bitorder="little")
        return reports

    bound = _bound(release, _bit_events)
    assert bound <= epsilon
    assert bound > epsilon - 0.1


def _flip(rows, threshold, stream, skip=None):
    flips = bernoulli(threshold, rows.size, stream).reshape(rows.shape)
    if skip is not None:
        flips[:, skip] = False
    return rows ^ flips


def _one_hot(codes):
    return (codes[:, np.newaxis] == np.arange(5)).astype(np.uint8)


def test_epsilon_spent_per_bit_is_caught():
    epsilon, stream = 1.0, random_stream(3)
    wrong = flip_threshold(2 * epsilon)  # e^ε for each of two bits
    bound = _bound(lambda codes: _flip(_one_hot(codes), wrong, stream), _bit_events)
    assert bound > epsilon


def test_a_bit_that_is_never_flipped_is_caught():
    epsilon, stream = 1.0, random_stream(4)
    threshold = flip_threshold(epsilon)
    bound = _bound(lambda codes: _flip(_one_hot(codes), threshold, stream, skip=X), _bit_events)
    assert bound > epsilon


def test_truth_kept_in_the_lie_branch_is_caught():
    # The lie is drawn among all symbols, although the probabilities are those of a lie among
    # the others.
    epsilon, n_categories, stream = 1.0, 3, random_stream(5)
    truth = np.exp(epsilon) / (np.exp(epsilon) + n_categories - 1)

    def release(codes):
        lies = bernoulli(int((1 - truth) * 2**64), codes.size, stream)
        return np.where(lies, random_integers(n_categories, codes.size, stream), codes)

    assert _bound(release, lambda reports: _symbol_events(reports, n_categories)) > epsilon


def test_the_true_value_listed_first_is_caught():
    # A report that is private as a set leaks by its order.
    epsilon, n_categories, stream = 1.0, 3, random_stream(6)
    threshold = replacement_threshold(epsilon, n_categories)

    def release(codes):
        replaced = bernoulli(threshold, codes.size, stream)
        return np.where(replaced, random_integers(n_categories, codes.size, stream), codes + 3)

    assert _bound(release, lambda reports: _symbol_events(reports, 2 * n_categories)) > epsilon
