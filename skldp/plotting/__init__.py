"""Displays of what was estimated; matplotlib is imported when something is drawn."""

from skldp.plotting._class_recovery import ClassRecoveryDisplay
from skldp.plotting._collaboration import CollaborationDisplay
from skldp.plotting._frequency import FrequencyDisplay
from skldp.plotting._risk_curve import RiskCurveDisplay
from skldp.plotting._saturation import SaturationDisplay

__all__ = [
    "ClassRecoveryDisplay",
    "CollaborationDisplay",
    "FrequencyDisplay",
    "RiskCurveDisplay",
    "SaturationDisplay",
]
