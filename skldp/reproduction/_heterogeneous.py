"""Table II and Figures 1A and 1B of Chaudhuri and Courtade (2023): means under unequal levels.

Every number is there twice: from the closed form (``expected_mse``), averaged over draws of the
levels in the table, and by simulation of whole releases (``fit``), with its Monte Carlo error. The
reference are closed forms that this project recorded earlier.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from skldp.reproduction._drawing import COLOURS, new_figure, style_axes
from skldp.reproduction._figure import (
    Comparison,
    Figure,
    Options,
    compare_values,
    read_reference,
)
from skldp.reproduction._mean_errors import (
    LEVELS,
    MECHANISMS,
    N_USERS,
    exact_error,
    table_errors,
    two_group_errors,
    two_groups,
)

__all__ = ["FIGURES", "LevelFigure", "LevelTable", "UserFigure"]

_REFERENCE = "chaudhuri_2023_means"
_IN_TABLE = ("ADPM", "PropDPM", "UNI", "SM, printed", "SM, private")

# Normal deviations beyond it have a probability of 6e-7.
_ALLOWED_ERRORS = 5.0
_OWN_PARAMETERS = (
    "the paper's printed values are in no source at hand: the reference are closed forms that "
    "this project recorded, in its own parameters where the paper states none"
)
_LAST_DIGIT = "; all printed digits are met"
_DRAWS = (
    "; deviations in standard errors: of both averages over draws of the levels, and of rounding "
    "to the printed digits"
)
_FIRST_RECORDED = (
    "SM as printed was first recorded as 3.55e-4 at low levels: closed form and simulation give "
    "3.50e-4, and the private form with its public divisor has 3.54e-4"
)
_SIMULATED = "deviations in Monte Carlo standard errors"


class LevelTable(Figure):
    """Table II: low and high levels that are spread out."""

    name = "means-table-2"
    title = "Mean squared errors, n = 1000, Beta(2, 3) (Chaudhuri and Courtade 2023, Table II)"

    def compute(self, options: Options) -> Any:
        n_draws, n_fits = (60, 8) if options.quick else (600, 4)
        cells = [
            {"mechanism": mechanism, "levels": levels, "n_draws": n_draws, "n_fits": n_fits}
            for levels in LEVELS
            for mechanism in _IN_TABLE
        ]
        frame = options.sweep(table_errors, cells, "Table II")
        known = read_reference(_REFERENCE)["table_2"]
        keys = list(zip(frame["levels"], frame["mechanism"], strict=True))
        frame["reference"] = [known[levels].get(name, math.nan) for levels, name in keys]
        return frame

    def compare(self, frame: Any) -> list[Comparison]:
        reference = read_reference(_REFERENCE)
        comparisons = []
        for levels in LEVELS:
            rows = frame[frame["levels"] == levels]
            draws = rows["deviation_of_draws"] ** 2
            # A number with three digits is off by up to half of the last one, evenly spread.
            digit = 10.0 ** (np.floor(np.log10(rows["reference"])) - 2)
            error = np.sqrt(
                draws / rows["n_draws"] + draws / reference["table_2"]["n_draws"] + digit**2 / 12
            )
            deviation = (rows["exact"] - rows["reference"]) / error
            is_known = rows["reference"].notna().to_numpy()
            comparisons.append(
                compare_values(
                    f"table II, {levels} levels, closed form",
                    deviation.to_numpy()[is_known],
                    np.zeros(is_known.sum()),
                    _ALLOWED_ERRORS,
                    inferred=_OWN_PARAMETERS + _DRAWS,
                )
            )
            comparisons.append(
                _simulation_holds(
                    f"table II, {levels} levels, simulated",
                    rows["simulated"] - rows["exact"],
                    rows["standard_error"],
                )
            )
        for levels, numbers in reference["first_recorded"].items():
            rows = frame[(frame["levels"] == levels)].set_index("mechanism")
            comparisons.append(
                compare_values(
                    f"table II, {levels} levels, SM as first recorded",
                    rows.loc[list(numbers), "exact"],
                    list(numbers.values()),
                    None,
                    is_relative=True,
                    inferred=_FIRST_RECORDED,
                )
            )
        return comparisons

    def draw(self, frame: Any) -> Any:
        figure = new_figure(9.6, 2.9)
        ax = figure.add_subplot()
        ax.axis("off")
        header = [f"{levels}, {column}" for levels in LEVELS for column in _TABLE_COLUMNS]
        cells: list[list[str]] = []
        for mechanism in _IN_TABLE:
            cells.append([])
            for levels in LEVELS:
                chosen = (frame["mechanism"] == mechanism) & (frame["levels"] == levels)
                row = frame[chosen].iloc[0]
                shown = "" if math.isnan(row["reference"]) else f"{row['reference']:.2e}"
                simulated = f"{row['simulated']:.2e} ± {row['standard_error']:.0e}"
                cells[-1] += [f"{row['exact']:.2e}", simulated, shown]
        table = ax.table(
            cells, rowLabels=list(_IN_TABLE), colLabels=header, loc="center", edges="horizontal"
        )
        table.auto_set_font_size(False)
        table.set_fontsize(9)
        table.auto_set_column_width(list(range(-1, len(header))))
        table.scale(1.0, 1.6)
        for (row_number, _), cell in table.get_celld().items():
            cell.set_edgecolor("0.7")
            if row_number == 0:
                cell.set_text_props(weight="bold")
        figure.suptitle(
            f"{self.title}\nln ε uniform on [-3, -2] (low) and [-4, 2] (high)", fontsize=11
        )
        return figure


_TABLE_COLUMNS = ("exact", "simulated", "reference")


class _CurveFigure(Figure):
    """A figure of errors against one number, for two groups of users."""

    data: str
    mechanisms: tuple[str, ...]
    column: str  # what is on the horizontal axis: an argument of `two_group_errors`
    inferred: str
    half_digit: float  # of the reference numbers

    def _cell(self, value: float) -> dict[str, Any]:
        """Return the arguments of `two_group_errors` that describe the users."""
        raise NotImplementedError

    def _points(self, quick: bool) -> tuple[list[float], dict[float, int]]:
        """Return where the curve is exact, and numbers of releases where it is simulated."""
        raise NotImplementedError

    def _scaled(self, error: Any, cell: dict[str, Any]) -> Any:
        """Return the exact error in the units of the figure."""
        raise NotImplementedError

    def _simulated(self, frame: Any) -> tuple[Any, Any]:
        """Return simulated numbers and their errors in the units of the figure."""
        raise NotImplementedError

    def compute(self, options: Options) -> Any:
        import pandas as pd

        exact_at, simulated_at = self._points(options.quick)
        cells = [
            {"mechanism": mechanism, "data": self.data, **self._cell(value), "n_fits": n_fits}
            for value, n_fits in simulated_at.items()
            for mechanism in self.mechanisms
        ]
        frame = options.sweep(two_group_errors, cells, self.name)
        frame["simulated"], frame["standard_error"] = self._simulated(frame)
        frame = frame[["mechanism", self.column, "n_fits", "simulated", "standard_error"]]
        known = self._known()
        rows = []
        for mechanism in self.mechanisms:
            for value in sorted({*exact_at, *simulated_at, *(x for _, x in known)}):
                cell = self._cell(value)
                levels = two_groups(cell["second"], cell["n_users"])
                error = exact_error(mechanism, levels, self.data)
                rows.append(
                    {
                        "mechanism": mechanism,
                        self.column: value,
                        "exact": self._scaled(error, cell),
                        "reference": known.get((mechanism, value), math.nan),
                    }
                )
        return pd.DataFrame(rows).merge(frame, on=["mechanism", self.column], how="left")

    def _known(self) -> dict[tuple[str, float], float]:
        """Return the reference numbers by mechanism and place."""
        content = dict(read_reference(_REFERENCE)[f"figure_{self.name.removeprefix('means-')}"])
        key = "second_level" if self.column == "second" else self.column
        places = [float(place) for place in content.pop(key)]
        return {
            (mechanism, place): number
            for mechanism, numbers in content.items()
            for place, number in zip(places, numbers, strict=True)
            if number is not None
        }

    def compare(self, frame: Any) -> list[Comparison]:
        label = f"figure {self.name.removeprefix('means-').upper()}"
        simulated = frame[frame["simulated"].notna()]
        return [
            compare_values(
                f"{label}, closed form",
                frame["exact"],
                frame["reference"],
                # Numbers are multiples of twice that; what floats make of them is not.
                self.half_digit * (1 + 1e-9),
                inferred=self.inferred,
            ),
            _simulation_holds(
                f"{label}, simulated",
                simulated["simulated"] - simulated["exact"],
                simulated["standard_error"],
            ),
        ]

    def _draw_curves(self, ax: Any, frame: Any, places: Callable[[Any], Any]) -> None:
        """Draw exact curves, simulated points with their errors, and reference numbers."""
        for mechanism, colour in zip(MECHANISMS, COLOURS, strict=False):
            rows = frame[frame["mechanism"] == mechanism]
            if rows.empty:
                continue
            curve = rows[np.isfinite(rows[self.column])]
            style = "--" if mechanism == "SM, private" else "-"
            x = places(curve[self.column])
            ax.plot(x, curve["exact"], style, color=colour, linewidth=1.3, label=mechanism)
            points = rows[rows["simulated"].notna()]
            ax.errorbar(
                places(points[self.column]),
                points["simulated"],
                yerr=2 * points["standard_error"],
                fmt="o",
                color=colour,
                markersize=3.2,
                linewidth=0.9,
                capsize=2,
            )
            known = rows[rows["reference"].notna()]
            ax.plot(
                places(known[self.column]),
                known["reference"],
                "+",
                color="0.15",
                markersize=9,
                zorder=3,
            )
        ax.plot([], [], "+", color="0.15", markersize=9, label="reference")
        ax.errorbar(
            [],
            [],
            yerr=[],
            fmt="o",
            color="0.4",
            markersize=3.2,
            capsize=2,
            label="simulated, ± 2 errors",
        )
        style_axes(ax)


class UserFigure(_CurveFigure):
    """Figure 1A: what privacy costs, against the number of users."""

    name = "means-1a"
    title = "Levels .1 and .2, uniform data (Chaudhuri and Courtade 2023, Figure 1A)"
    data = "uniform"
    mechanisms = MECHANISMS
    column = "n_users"
    half_digit = 0.05
    inferred = _OWN_PARAMETERS + _LAST_DIGIT

    def _cell(self, value: float) -> dict[str, Any]:
        return {"second": 0.2, "n_users": int(value)}

    def _points(self, quick: bool) -> tuple[list[float], dict[float, int]]:
        if quick:
            return [100, 1000, 20_000], {100: 400, 1000: 400}
        sizes = 2 * np.rint(np.geomspace(50, 10_000, 24))
        return sizes.tolist(), {100: 2500, 300: 2500, 1000: 2500, 3000: 1500}

    def _scaled(self, error: Any, cell: dict[str, Any]) -> Any:
        return (error - 1 / (12 * cell["n_users"])) * cell["n_users"] ** 2

    def _simulated(self, frame: Any) -> tuple[Any, Any]:
        squares = frame["n_users"] ** 2
        return frame["excess"] * squares, frame["excess_se"] * squares

    def draw(self, frame: Any) -> Any:
        figure = new_figure(7.0, 5.0)
        ax = figure.add_subplot()
        self._draw_curves(ax, frame, lambda column: column)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_yticks([70, 100, 200, 400, 700], ["70", "100", "200", "400", "700"], minor=False)
        ax.minorticks_off()
        ax.set_xlabel("users $n$")
        ax.set_ylabel(r"(MSE $-$ 1/(12 $n$)) $n^2$")
        ax.legend(frameon=False, fontsize=9)
        figure.suptitle(self.title, fontsize=11)
        return figure


class LevelFigure(_CurveFigure):
    """Figure 1B: the error against the level of the second half of the users."""

    name = "means-1b"
    title = "Error against the second level, n = 1000 (Chaudhuri and Courtade 2023, Figure 1B)"
    data = "coins"
    mechanisms = MECHANISMS
    column = "second"
    half_digit = 0.0005
    inferred = (
        _OWN_PARAMETERS + _LAST_DIGIT + "; LDPE has two groups where the two levels are equal"
    )

    def _cell(self, value: float) -> dict[str, Any]:
        return {"second": value, "n_users": N_USERS}

    def _points(self, quick: bool) -> tuple[list[float], dict[float, int]]:
        if quick:
            return [0.1, 0.26, 2.0, math.inf], {0.26: 400, math.inf: 400}
        levels = np.geomspace(0.1, 10.0, 50)
        simulated = [0.1, 0.15, 0.26, 0.5, 1.0, 2.0, 5.0, math.inf]
        return levels.tolist(), dict.fromkeys(simulated, 2000)

    def _scaled(self, error: Any, cell: dict[str, Any]) -> Any:
        return error * 1e4

    def _simulated(self, frame: Any) -> tuple[Any, Any]:
        return frame["error"] * 1e4, frame["error_se"] * 1e4

    def draw(self, frame: Any) -> Any:
        figure = new_figure(7.0, 5.0)
        ax = figure.add_subplot()
        at_infinity = 20.0
        self._draw_curves(ax, frame, lambda column: column.replace(math.inf, at_infinity))
        ax.set_xscale("log")
        ticks = [0.1, 0.26, 1.0, 2.0, 10.0, at_infinity]
        ax.set_xticks(ticks, ["0.1", "0.26", "1", "2", "10", "∞"])
        ax.minorticks_off()
        ax.set_xlabel("level ε of the second half")
        ax.set_ylabel(r"MSE $\times 10^4$")
        ax.legend(frameon=False, fontsize=9)
        figure.suptitle(self.title, fontsize=11)
        return figure


def _simulation_holds(panel: str, difference: Any, standard_error: Any) -> Comparison:
    """Compare simulated with exact numbers, in standard errors."""
    deviations = (difference / standard_error).to_numpy()
    return compare_values(
        panel, deviations, np.zeros(deviations.size), _ALLOWED_ERRORS, inferred=_SIMULATED
    )


FIGURES = (LevelTable(), UserFigure(), LevelFigure())
