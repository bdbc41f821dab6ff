"""Displays of what was estimated; matplotlib is imported when something is drawn."""

from skldp.plotting._frequency import FrequencyDisplay

__all__ = ["FrequencyDisplay"]
