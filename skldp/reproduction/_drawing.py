"""The two layouts of the papers: tables of coloured cells, and curves over a privacy level."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["COLOURS", "draw_cells", "new_figure", "style_axes"]

COLOURS = ("#1f5f99", "#d1495b", "#5b8c5a", "#8a6d3b", "#7a5c99", "#33475b", "#c08497")


def new_figure(width: float = 6.4, height: float = 4.8) -> Any:
    """Return an empty matplotlib figure, which no window and no global state belongs to.

    Parameters
    ----------
    width, height : float
        Size in inches.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "The figures are drawn with matplotlib, which is not installed. "
            'Install it with: pip install "skldp[plot]"'
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def draw_cells(
    ax: Any, values: ArrayLike, rows: ArrayLike, columns: ArrayLike, *, limit: float
) -> Any:
    """Draw a table of numbers, coloured by sign and size.

    Parameters
    ----------
    ax : matplotlib Axes
        Where.
    values : array-like of shape (n_rows, n_columns)
        The numbers, printed with three decimals.
    rows, columns : array-like
        Labels.
    limit : float
        The absolute value with the strongest colour.

    Returns
    -------
    matplotlib AxesImage
        For a colour bar.
    """
    table = np.asarray(values, dtype=float)
    # Half of the cells are near 0: the square root tells their signs apart.
    shade = np.sign(table) * np.sqrt(np.abs(table) / limit)
    image = ax.imshow(shade, cmap="RdBu_r", vmin=-1.0, vmax=1.0, aspect="auto")
    for (row, column), value in np.ndenumerate(table):
        text = f"{value:.3f}".replace("0.", ".", 1).replace("-.000", ".000")
        dark = abs(shade[row, column]) > 0.6
        ax.text(
            column,
            row,
            text,
            ha="center",
            va="center",
            fontsize=7,
            color="white" if dark else "0.15",
        )
    ax.set_xticks(range(table.shape[1]), [str(label) for label in np.asarray(columns)])
    ax.set_yticks(range(table.shape[0]), [str(label) for label in np.asarray(rows)])
    ax.tick_params(length=0, labelsize=8)
    ax.spines[:].set_visible(False)
    return image


def style_axes(ax: Any) -> None:
    """Leave out what says nothing: upper and right spines, heavy grids."""
    ax.grid(axis="y", color="0.9")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
