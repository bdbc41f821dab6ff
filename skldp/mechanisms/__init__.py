"""Mechanisms: transformers that run where the user's value is."""

from skldp.mechanisms._cohort_encoder import CohortHashEncoder
from skldp.mechanisms._columns import read_columns
from skldp.mechanisms._from_channel import mechanism_from_channel
from skldp.mechanisms._krr import KRRTransformer
from skldp.mechanisms._rappor import RapporTransformer

__all__ = [
    "CohortHashEncoder",
    "KRRTransformer",
    "RapporTransformer",
    "mechanism_from_channel",
    "read_columns",
]
