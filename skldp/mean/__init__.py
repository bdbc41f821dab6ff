"""Means of users who set their own privacy levels: central, replace-one differential privacy."""

from skldp.mean._adpm import ADPMMeanEstimator, free_privacy
from skldp.mean._baselines import (
    ProportionalMeanEstimator,
    ThresholdMeanEstimator,
    UniformMeanEstimator,
)
from skldp.mean._local import LocalMeanEstimator
from skldp.mean._sampling import SamplingMeanEstimator
from skldp.mean._weighted import AffineMeanEstimator

__all__ = [
    "ADPMMeanEstimator",
    "AffineMeanEstimator",
    "LocalMeanEstimator",
    "ProportionalMeanEstimator",
    "SamplingMeanEstimator",
    "ThresholdMeanEstimator",
    "UniformMeanEstimator",
    "free_privacy",
]
