"""Local and heterogeneous differential privacy as scikit-learn estimators."""

from skldp.collaborative import OnlineCollaborativeMean
from skldp.exceptions import ChannelError, DecodingWarning, PrivacyWarning
from skldp.frequency import FrequencyEstimator
from skldp.mean import (
    ADPMMeanEstimator,
    AffineMeanEstimator,
    LocalMeanEstimator,
    ProportionalMeanEstimator,
    SamplingMeanEstimator,
    ThresholdMeanEstimator,
    UniformMeanEstimator,
)
from skldp.mechanisms import CohortHashEncoder, KRRTransformer, RapporTransformer

__all__ = [
    "ADPMMeanEstimator",
    "AffineMeanEstimator",
    "ChannelError",
    "CohortHashEncoder",
    "DecodingWarning",
    "FrequencyEstimator",
    "KRRTransformer",
    "LocalMeanEstimator",
    "OnlineCollaborativeMean",
    "PrivacyWarning",
    "ProportionalMeanEstimator",
    "RapporTransformer",
    "SamplingMeanEstimator",
    "ThresholdMeanEstimator",
    "UniformMeanEstimator",
    "__version__",
]

__version__ = "0.1.0.dev0"
