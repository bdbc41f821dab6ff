"""Local and heterogeneous differential privacy as scikit-learn estimators."""

__version__ = "0.1.0.dev0"
