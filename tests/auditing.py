"""Checks of the delivered ε that several test modules share.

`exact_excess` compares an exact likelihood ratio with the claim; `loss_lower_bound` takes draws
of a report from two neighbouring values and returns a lower bound on ε that holds with
probability 1 - 1e-6 (Clopper-Pearson, Bonferroni over the events, fixed before the draws).
"""

from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
from scipy.special import betaincinv

FALSE_ALARM = 1e-6
EPSILONS = (0, 1e-6, 0.1, float(np.log(2)), 1.0, 2.0, 10.0, 36.5, 40.0, 100.0, 800.0)
SIZES = (2, 3, 8, 255, 256, 257, 4096)

_CONTEXT = Context(prec=120, Emax=10**9, Emin=-(10**9))


def decimal(value):
    value = Fraction(value)
    return _CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator))


def exceeds(ratio, epsilon):
    """Whether ln(ratio) > epsilon, decided with 120 digits."""
    loss, claim = _CONTEXT.ln(decimal(ratio)), decimal(epsilon)
    # Both sides are off by at most one unit in the 120th digit; an equality of two such numbers
    # other than at 0 would be a coincidence of 100 digits.
    return loss - claim > (1 + claim) * Decimal(10) ** -100


def _clopper_pearson(hits, n_draws, tail):
    misses = n_draws - hits
    lower = np.where(hits > 0, betaincinv(np.maximum(hits, 1), misses + 1, tail), 0.0)
    upper = np.where(misses > 0, betaincinv(hits + 1, np.maximum(misses, 1), 1 - tail), 1.0)
    return lower, upper


def loss_lower_bound(events_of_x, events_of_other):
    """Return the largest lower bound on ln P(event | x) / P(event | x') over all events.

    Parameters
    ----------
    events_of_x, events_of_other : bool arrays of shape (n_draws, n_events)
        Which events happened in each draw.
    """
    n_draws, n_events = events_of_x.shape
    # Two orders, two tails each.
    tail = FALSE_ALARM / (4 * n_events)
    low, high = _clopper_pearson(events_of_x.sum(axis=0), n_draws, tail)
    other_low, other_high = _clopper_pearson(events_of_other.sum(axis=0), n_draws, tail)
    with np.errstate(divide="ignore"):
        return max(np.log(low / other_high).max(), np.log(other_low / high).max())
