"""Mechanisms: transformers that run where the user's value is."""

from skldp.mechanisms._cohort_encoder import CohortHashEncoder
from skldp.mechanisms._columns import read_columns
from skldp.mechanisms._krr import KRRTransformer
from skldp.mechanisms._rappor import RapporTransformer

__all__ = ["CohortHashEncoder", "KRRTransformer", "RapporTransformer", "read_columns"]
