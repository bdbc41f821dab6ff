"""What all displays look like, and what displays of curves share."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

__all__ = [
    "COLOURS",
    "STYLES",
    "checked_curves",
    "checked_positions",
    "draw_curves",
    "finish_axes",
    "new_axes",
    "pyplot",
]

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


def new_axes(display: str, ax: Any, figure_size: tuple[float, float]) -> Any:
    """Return the axes to draw on, those of a new figure where there are none."""
    plt = pyplot(display)
    if ax is None:
        _, ax = plt.subplots(figsize=figure_size, layout="constrained")
    return ax


def checked_positions(positions: ArrayLike, name: str, least: int) -> FloatArray:
    """Return positive, ascending positions of curves, at least so many."""
    values: FloatArray = np.asarray(positions, dtype=np.float64)
    if values.ndim != 1 or values.size < least:
        raise ValueError(
            f"{name} must have shape (n_{name},) with n_{name} >= {least}, got {values.shape}."
        )
    if not (values[0] > 0 and np.all(np.diff(values) > 0)):
        raise ValueError(f"{name} must be positive and ascending.")
    return values


def checked_curves(
    curves: Mapping[str, ArrayLike], name: str, n_positions: int
) -> dict[str, FloatArray]:
    """Return curves by name, each with a value for every position."""
    values = {str(label): np.asarray(curve, dtype=np.float64) for label, curve in curves.items()}
    if not values:
        raise ValueError(f"{name} must hold at least one curve.")
    for label, curve in values.items():
        if curve.shape != (n_positions,):
            raise ValueError(
                f"The {name} of {label} must have shape ({n_positions},), got {curve.shape}."
            )
    return values


def draw_curves(
    ax: Any,
    positions: FloatArray,
    curves: Mapping[str, FloatArray],
    line_kwargs: Mapping[str, Any],
    own_styles: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Draw curves, each with a colour and a line style of its own, or that given for its name.

    Returns
    -------
    dict of str to matplotlib Line2D
        The lines.
    """
    lines, number = {}, 0
    for name, values in curves.items():
        style: dict[str, Any] = {"linewidth": 1.8, "label": name}
        if own_styles is not None and name in own_styles:
            style |= own_styles[name]
        else:
            style |= {
                "color": COLOURS[number % len(COLOURS)],
                "linestyle": STYLES[number % len(STYLES)],
            }
            number += 1
        (lines[name],) = ax.plot(positions, values, **{**style, **line_kwargs})
    return lines


def finish_axes(ax: Any, x_label: str, y_label: str) -> None:
    """Label the axes, and give them grid and legend."""
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.set_axisbelow(True)
    ax.grid(color="0.9")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(framealpha=1.0, edgecolor="white")
