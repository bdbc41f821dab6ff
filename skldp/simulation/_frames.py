"""pandas, imported on first use."""

from typing import Any

__all__ = ["import_pandas"]


def import_pandas(purpose: str) -> Any:
    """Import pandas, or say what to install for this purpose."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            f"{purpose} returns a pandas DataFrame, and pandas is not installed. "
            'Install it with: pip install "skldp[simulation]"'
        ) from error
    return pd
