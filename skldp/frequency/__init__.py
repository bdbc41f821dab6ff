"""The server's side: from private reports to a distribution."""

from skldp.frequency._estimator import FrequencyEstimator

__all__ = ["FrequencyEstimator"]
