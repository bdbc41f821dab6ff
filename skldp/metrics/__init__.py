"""Losses between distributions, the risks that theory predicts, and scorers."""

from skldp.metrics._losses import l1_loss, l2_loss, mse_loss, total_variation
from skldp.metrics._risks import expected_l1_loss, expected_l2_loss
from skldp.metrics._scorers import (
    FrequencyScorer,
    l1_scorer,
    make_frequency_scorer,
    mse_scorer,
)
from skldp.metrics._suggest import (
    Suggestion,
    compare_mechanisms,
    suggest_parameters,
    users_needed,
)

__all__ = [
    "FrequencyScorer",
    "Suggestion",
    "compare_mechanisms",
    "expected_l1_loss",
    "expected_l2_loss",
    "l1_loss",
    "l1_scorer",
    "l2_loss",
    "make_frequency_scorer",
    "mse_loss",
    "mse_scorer",
    "suggest_parameters",
    "total_variation",
    "users_needed",
]
