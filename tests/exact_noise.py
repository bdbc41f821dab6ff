"""Independent oracles of the exact noise: Python integers, one draw and one digit at a time."""

import math
from fractions import Fraction

import numpy as np
from scipy.stats import chi2


def exponential_interval(exponent, n_bits):
    """Bounds on e^-exponent a few units of 2^-n_bits apart: Taylor series and squarings.

    The exponent is halved until it is at most 1/2, where the series of e^-x alternates.
    """
    exponent, n_halvings = Fraction(exponent), 0
    while exponent > Fraction(1, 2):
        exponent, n_halvings = exponent / 2, n_halvings + 1
    one = 1 << (n_bits + 2 * n_halvings + 16)
    lower, upper, term, k = 0, 0, Fraction(one), 0
    while True:
        lower, upper = lower + math.floor((-1) ** k * term), upper + math.ceil((-1) ** k * term)
        k += 1
        term = Fraction(math.ceil(term * exponent / k * 2**64), 2**64)
        if term < Fraction(1, 2):
            break
    # The rounded terms are off by less than 2^-50 altogether, the rest by less than one term.
    lower, upper = lower - 2, upper + 2
    for _ in range(n_halvings):
        lower, upper = lower * lower // one, -(-upper * upper // one)
    return Fraction(max(lower, 0), one), Fraction(upper, one)


def exponential_floor(exponent, n):
    """Integer part of 2^n e^-exponent."""
    if exponent == 0:
        return 1 << n  # the only rational case, where bounds would never agree
    return _floor(exponent, n, lambda power: power)


def logistic_floor(exponent, n):
    """Integer part of 2^n / (1 + e^exponent)."""
    return _floor(exponent, n, lambda power: power / (1 + power))


def _floor(exponent, n, probability):
    n_bits = n + 32
    while True:
        lower, upper = map(probability, exponential_interval(exponent, n_bits))
        if math.floor(lower * 2**n) == math.floor(upper * 2**n):
            return math.floor(lower * 2**n)
        n_bits *= 2


class BernoulliOracle:
    """Replays `exact_bernoulli` from the arrays that a recorded stream served."""

    def __init__(self, served):
        self.served = iter(served)

    def draw(self, floors, size):
        """Rows of decisions; ``floors[i](n)`` is the integer part of 2^n p_i."""
        lanes = next(self.served)
        assert lanes.shape == (len(floors), size)
        thresholds = [floor(80) for floor in floors]
        numbers = [[int(lane) for lane in row] for row in lanes]
        tied = [
            (i, j)
            for i, row in enumerate(numbers)
            for j, number in enumerate(row)
            if number == thresholds[i] >> 64
        ]
        # The digits that only a tie asks for do not matter anywhere else.
        numbers = [[number << 64 for number in row] for row in numbers]
        if tied:
            for (i, j), word in zip(tied, next(self.served), strict=True):
                numbers[i][j] += int(word)
        assert all(numbers[i][j] != thresholds[i] for i, j in tied), "plant such ties elsewhere"
        return [
            [number < threshold for number in row]
            for row, threshold in zip(numbers, thresholds, strict=True)
        ]


def replay_geometric(oracle, scale, size):
    """Geometric variables from their definition by digits and a count of successes."""
    n_digits = 0
    while 2**n_digits < 8 * scale:
        n_digits += 1
    floors = [lambda n, j=j: logistic_floor(2**j / scale, n) for j in range(n_digits)]

    def rest(n):
        return exponential_floor(2**n_digits / scale, n)

    *digits, beyond = oracle.draw([*floors, rest], size)
    values = [sum(row[i] << j for j, row in enumerate(digits)) for i in range(size)]
    waiting = [i for i in range(size) if beyond[i]]
    while waiting:
        for i in waiting:
            values[i] += 1 << n_digits
        again = oracle.draw([rest], len(waiting))[0]
        waiting = [i for i, success in zip(waiting, again, strict=True) if success]
    return values


def replay_laplace(oracle, scale, size, block_size):
    """Discrete Laplace draws, in blocks of the given size."""
    values = []
    while len(values) < size:
        n = min(block_size, size - len(values))
        pairs = replay_geometric(oracle, Fraction(scale), 2 * n)
        values += [first - second for first, second in zip(pairs[:n], pairs[n:], strict=True)]
    return values


def chi_square_passes(counts, probabilities):
    """Pearson's test at the false-alarm rate 1e-6; cells expected below 20 count as one."""
    counts, expected = np.asarray(counts, float), np.asarray(probabilities) * np.sum(counts)
    assert abs(expected.sum() / counts.sum() - 1) < 1e-9
    order = np.argsort(expected)
    n_merged = max(np.searchsorted(np.cumsum(expected[order]), 20) + 1, np.sum(expected < 20))
    rare, others = order[:n_merged], order[n_merged:]
    counts = np.append(counts[others], counts[rare].sum())
    expected = np.append(expected[others], expected[rare].sum())
    assert counts.size > 1
    return ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6, counts.size - 1)
