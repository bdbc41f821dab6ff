"""What all displays look like."""

from typing import Any

__all__ = ["COLOURS", "STYLES", "pyplot"]

COLOURS = ("#1f5f99", "#d1495b", "#8a6d3b", "#5b8c5a", "#7a5c99", "#33475b", "#c08497")
STYLES = ("-", "--", "-.", ":")


def pyplot(display: str) -> Any:
    """Import matplotlib's pyplot, or say what to install for a display of this name."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{display} draws with matplotlib, which is not installed. "
            'Install it with: pip install "skldp[plot]"'
        ) from error
    return plt
