"""Local and heterogeneous differential privacy as scikit-learn estimators."""

from skldp.exceptions import ChannelError, DecodingWarning, PrivacyWarning
from skldp.frequency import FrequencyEstimator
from skldp.mechanisms import CohortHashEncoder, KRRTransformer, RapporTransformer

__all__ = [
    "ChannelError",
    "CohortHashEncoder",
    "DecodingWarning",
    "FrequencyEstimator",
    "KRRTransformer",
    "PrivacyWarning",
    "RapporTransformer",
    "__version__",
]

__version__ = "0.1.0.dev0"
