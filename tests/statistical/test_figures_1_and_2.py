"""Figures 1 and 2 of Kairouz et al. (2016), the rows of up to 32 categories: 270 printed cells.

A printed cell is a mean over 10,000 runs, and so is ours: the two differ by √2 standard errors and
by the last printed digit. The sum of the squares of 45 deviations, each divided by its variance,
is then about 45, and beyond its 1e-6 / 6 quantile in one of six panels with a probability of at
most 1e-6. (The two losses of a cell of Figure 1 come from the same runs, but their standard errors
are added as if they did not, which makes the sum smaller.) That is stricter than the largest
deviations that ``python -m skldp reproduce`` allows.
"""

import pytest
from scipy.stats import chi2

from skldp.reproduction import FIGURES, Options

pytestmark = pytest.mark.statistical

ROUNDING_VARIANCE = 0.001**2 / 12  # of three printed decimals


@pytest.mark.parametrize(("name", "n_panels"), [("distribution-1", 2), ("distribution-2", 4)])
def test_printed_cells_differ_by_chance_alone(name, n_panels):
    frame = FIGURES[name].compute(Options(quick=True))
    variances = 2 * frame["standard_error"] ** 2 + ROUNDING_VARIANCE
    squares = (frame["deviation"] ** 2 / variances).groupby(frame["panel"])
    assert squares.count().tolist() == [45] * n_panels
    assert squares.sum().max() < chi2.isf(1e-6 / 6, 45)
    # The sums are not small because the standard errors are large: a shift by .01 is noticed.
    shifted = ((frame["deviation"] + 0.01) ** 2 / variances).groupby(frame["panel"]).sum()
    assert shifted.min() > chi2.isf(1e-6 / 6, 45)
