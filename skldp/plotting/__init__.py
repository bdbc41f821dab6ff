"""Displays of what was estimated; matplotlib is imported when something is drawn."""

from skldp.plotting._frequency import FrequencyDisplay
from skldp.plotting._saturation import SaturationDisplay

__all__ = ["FrequencyDisplay", "SaturationDisplay"]
