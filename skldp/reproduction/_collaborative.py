"""Figures 2 to 4 of Yakimenka et al. (2024): online personal means of agents in three classes.

The paper's settings with this project's mechanisms: uniform data of standard deviation σ = 1/2
within bounds of half-width L = σ√3 around each agent's mean, which would publish the means and is
for simulation only. Errors are averages over all agents; each run is a cell of its own, in which
all curves see the same data and noise. The oracle, which knows the classes, is simulated too: the
same network with the classes moved far apart, and a test that rejects nobody of one's own class.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from skldp.reproduction._drawing import COLOURS, new_figure, style_axes
from skldp.reproduction._figure import (
    Comparison,
    Figure,
    Options,
    compare_values,
    read_reference,
)
from skldp.reproduction._network_errors import (
    CLASS_MEANS,
    ORACLE,
    VARIANCE,
    WIDTH,
    Curves,
    one_run,
    theoretical_errors,
    with_oracles,
)

FloatArray = NDArray[np.float64]

__all__ = ["FIGURES", "MechanismsFigure", "SchedulesFigure", "SmallNetworkFigure"]

_REFERENCE = "yakimenka_2024_collaboration"
_COMMON_BOUNDS = (0.2 - WIDTH / 2, 0.8 + WIDTH / 2)  # hold for all classes
_LAPLACE: dict[str, Any] = {"noise": "laplace"}
_GAUSSIAN: dict[str, Any] = {"noise": "gaussian_classic", "delta": 1e-6}  # the paper's Lemma 1
_PM_1: dict[str, Any] = {"release": "blocks"}
_PM_2: dict[str, Any] = {"release": "tree"}

# Normal deviations beyond it have a probability of 6e-7; with errors estimated from a few runs,
# the quantile of Student's law with that probability takes its place.
_ALLOWED_ERRORS = 5.0
_FEW_RUNS = 10  # and below: not enough to tell an excess of a tenth
_ALLOWED_OVER_ORACLE = 0.1
_ALLOWED_MISTAKES = 0.05  # the significance of the test
_NOT_PRINTED = (
    "the paper's printed values are in no source at hand; mechanisms, statistics and threshold "
    "are this project's own, and so is the end at 4096 steps"
)
_THEORY = (
    f"{_NOT_PRINTED}; deviations from theory in standard deviations of a mean of so many "
    "independent squares (cube root of the ratio)"
)
_OVER_ORACLE = (
    f"{_NOT_PRINTED}; error beyond that of the oracle on the same data, relative to its curve; "
    "allowed is a tenth, and Monte Carlo errors as below"
)
_RECORDED = (
    f"{_NOT_PRINTED}; the reference is a simulation that this project recorded, with another "
    "program: deviations in standard errors of both, rounding to two digits included; allowed is "
    "what Student's law exceeds with probability 6e-7"
)
_MISTAKES = (
    f"{_NOT_PRINTED}; shares of the pairs of agents of one class, and of those of two, that are "
    "taken for the opposite"
)
_MEAN_OF_MEANS = (
    f"{_MISTAKES}; not to be small by then for MoM, where the noise of the first small blocks "
    "keeps its weight"
)


class _NetworkFigure(Figure):
    """A figure of errors of one network against time."""

    label: ClassVar[str]
    n_agents: ClassVar[int]
    n_runs: ClassVar[int]
    n_quick_runs: ClassVar[int]
    last: ClassVar[int]
    curves: ClassVar[Curves]
    colours: ClassVar[dict[str, str]]

    def compute(self, options: Options) -> Any:
        n_runs = self.n_quick_runs if options.quick else self.n_runs
        cells = [
            {
                "n_agents": self.n_agents,
                "times": self._times(9 if options.quick else 25),
                "curves": self.curves,
                "run": run,
            }
            for run in range(n_runs)
        ]
        runs = options.sweep(one_run, cells, self.name)
        # The same data and noise: most of what chance does to the one it does to the other.
        errors = runs.set_index(["curve", "time", "run"])["mse"]
        oracle = errors.rename(index=lambda name: name.removeprefix(ORACLE), level="curve")
        is_oracle = errors.index.get_level_values("curve").str.startswith(ORACLE)
        runs["over_oracle"] = (errors - oracle[is_oracle].reindex(errors.index)).to_numpy()
        frame = runs.groupby(["curve", "time"], sort=False).agg(
            n_runs=("mse", "size"),
            mse=("mse", "mean"),
            standard_error=("mse", "sem"),
            missed=("missed", "mean"),
            mixed=("mixed", "mean"),
            over_oracle=("over_oracle", "mean"),
            over_oracle_se=("over_oracle", "sem"),
        )
        frame = frame.reset_index()
        frame["theory"] = np.concatenate(
            [
                theoretical_errors(name, rows["time"].to_numpy(), self.n_agents, self.curves)
                for name, rows in frame.groupby("curve", sort=False)
            ]
        )
        return frame

    def _times(self, n_times: int) -> list[int]:
        """Return times that are even on a logarithmic scale, up to the last."""
        times: list[int] = np.rint(np.geomspace(16, self.last, n_times)).astype(int).tolist()
        return times

    def compare(self, frame: Any) -> list[Comparison]:
        comparisons = []
        n_classes = len(CLASS_MEANS)
        for name in ["local", "ideal", *(one for one in self.curves if one.startswith(ORACLE))]:
            rows = frame[frame["curve"] == name]
            # Errors of one class are one number for the ideal, and nearly one for the oracle:
            # to count them as one never makes a deviation look larger than it is.
            n_squares = rows["n_runs"] * (self.n_agents if name == "local" else n_classes)
            deviations = _standardised(rows["mse"] / rows["theory"], n_squares)
            comparisons.append(
                compare_values(
                    f"{self.label}, {name}",
                    deviations,
                    np.zeros(len(rows)),
                    _ALLOWED_ERRORS,
                    inferred=_THEORY,
                )
            )
        end = frame[frame["time"] == frame["time"].max()].set_index("curve")
        for name in self.curves:
            row, is_mom = end.loc[name], "MoM" in name
            if name.startswith(ORACLE):
                continue
            if not math.isnan(row["over_oracle"]):
                chance = _students_errors(row["n_runs"]) * row["over_oracle_se"] / row["theory"]
                is_clear = row["n_runs"] > _FEW_RUNS
                comparisons.append(
                    compare_values(
                        f"{self.label}, {name}, at the end beside the oracle",
                        [row["theory"] + row["over_oracle"]],
                        [row["theory"]],
                        _ALLOWED_OVER_ORACLE + float(chance) if is_clear else None,
                        is_relative=True,
                        inferred=_OVER_ORACLE,
                    )
                )
            comparisons.append(
                compare_values(
                    f"{self.label}, {name}, class recovery at the end",
                    [row["missed"], row["mixed"]],
                    [0.0, 0.0],
                    None if is_mom else _ALLOWED_MISTAKES,
                    inferred=_MEAN_OF_MEANS if is_mom else _MISTAKES,
                )
            )
        return comparisons

    def _draw_errors(self, ax: Any, frame: Any, names: Sequence[str]) -> None:
        """Draw local, ideal, and some private curves with their oracle curves."""
        for name, colour in (("local", "0.35"), ("ideal", "0.6")):
            rows = frame[frame["curve"] == name]
            ax.plot(rows["time"], rows["theory"], ":", color=colour, linewidth=1.2)
            ax.plot(rows["time"], rows["mse"], color=colour, linewidth=1.2, label=name)
        for name in names:
            rows = frame[frame["curve"] == name]
            style, colour = ("--" if "MoM" in name else "-"), self.colours[name]
            ax.plot(
                rows["time"],
                rows["mse"],
                style,
                color=colour,
                marker="o",
                markersize=2.6,
                linewidth=1.2,
                label=name,
            )
            low, high = (rows["mse"] + sign * 2 * rows["standard_error"] for sign in (-1, 1))
            ax.fill_between(rows["time"], low, high, color=colour, alpha=0.15, linewidth=0)
            if ORACLE + name in self.curves:
                ax.plot(rows["time"], rows["theory"], ":", color=colour, linewidth=1.4)
        ax.plot([], [], ":", color="0.15", label="theory (local, ideal, oracle)")
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_ylabel("MSE")
        ax.set_xlabel("time $t$")
        style_axes(ax)
        ax.legend(frameon=False, fontsize=8)

    def _draw_classes(self, ax: Any, frame: Any, names: Sequence[str]) -> None:
        """Draw how many pairs of agents are judged wrongly."""
        for name in names:
            rows = frame[frame["curve"] == name]
            colour = self.colours[name]
            ax.plot(rows["time"], rows["mixed"], color=colour, linewidth=1.3)
            ax.plot(rows["time"], rows["missed"], ":", color=colour, linewidth=1.6)
        ax.plot([], [], "-", color="0.15", label="believed, but of another class")
        ax.plot([], [], ":", color="0.15", label="of the same class, but not believed")
        ax.set_xscale("log", base=2)
        ax.set_ylim(-0.03, 1.03)
        ax.set_ylabel("share of pairs of agents")
        ax.set_xlabel("time $t$")
        style_axes(ax)
        # Below: lines may be anywhere, and their colours are those of the other panel.
        ax.legend(
            frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2
        )


def _known(*parts: dict[str, Any]) -> dict[str, Any]:
    """Return the union of parameters, with the known variance."""
    union: dict[str, Any] = {"variance": VARIANCE}
    for part in parts:
        union |= part
    return union


class MechanismsFigure(_NetworkFigure):
    """Figure 2: both mechanisms with both kinds of noise, in a large network."""

    name = "collaboration-2"
    title = (
        "200 agents, both mechanisms and kinds of noise (after Yakimenka et al. 2024, Figure 2)"
    )
    label = "figure 2"
    n_agents, n_runs, n_quick_runs, last = 200, 20, 4, 4095
    curves: ClassVar[Curves] = with_oracles(
        {
            f"{mechanism}, {noise}": _known(release, law)
            for mechanism, release in (("PM-I", _PM_1), ("PM-II", _PM_2))
            for noise, law in (("Gaussian", _GAUSSIAN), ("Laplace", _LAPLACE))
        }
    )
    colours: ClassVar[dict[str, str]] = dict(
        zip(curves, (COLOURS[0], COLOURS[1]) * 2, strict=False)
    )

    def draw(self, frame: Any) -> Any:
        figure = new_figure(10.4, 4.8)
        axes = figure.subplots(1, 2, sharey=True)
        for ax, mechanism in zip(axes, ("PM-I", "PM-II"), strict=True):
            self._draw_errors(ax, frame, [f"{mechanism}, Gaussian", f"{mechanism}, Laplace"])
        axes[1].set_ylabel("")
        figure.suptitle(self.title, fontsize=11)
        return figure


class SchedulesFigure(_NetworkFigure):
    """Figure 3: who hears whom, weights of blocks, and recovery of the classes."""

    name = "collaboration-3"
    title = (
        "200 agents, PM-I, Gaussian: schedules and weights (after Yakimenka et al. 2024, Fig. 3)"
    )
    label = "figure 3"
    n_agents, n_runs, n_quick_runs, last = 200, 20, 2, 4095
    curves: ClassVar[Curves] = {
        f"{name}{suffix}": _known(
            _PM_1, _GAUSSIAN, {"schedule": schedule, "block_weights": weights}
        )
        for suffix, weights in (("", "inverse_variance"), (", MoM", "mean_of_means"))
        for name, schedule in (
            ("broadcast", "broadcast"),
            ("RR", "round_robin"),
            ("rRR", "restricted_round_robin"),
        )
    }
    colours: ClassVar[dict[str, str]] = dict(zip(curves, COLOURS[:3] * 2, strict=True))

    def draw(self, frame: Any) -> Any:
        figure = new_figure(10.4, 4.8)
        axes = figure.subplots(1, 2)
        self._draw_errors(axes[0], frame, list(self.curves))
        self._draw_classes(axes[1], frame, [one for one in self.curves if "MoM" not in one])
        figure.suptitle(self.title, fontsize=11)
        return figure


class SmallNetworkFigure(_NetworkFigure):
    """Figure 4: a small network with Laplace noise, and what it takes not to know the variance."""

    name = "collaboration-4"
    title = "15 agents, Laplace (after Yakimenka et al. 2024, Figure 4)"
    label = "figure 4"
    n_agents, n_runs, n_quick_runs, last = 15, 100, 40, 4096
    curves: ClassVar[Curves] = {
        **with_oracles(
            {
                f"{mechanism}, variance known": _known(release, _LAPLACE)
                for mechanism, release in (("PM-I", _PM_1), ("PM-II", _PM_2))
            }
        ),
        "PM-I, variance private": {**_PM_1, **_LAPLACE, "variance": "private"},
        "PM-I, private, common bounds": {
            **_PM_1,
            **_LAPLACE,
            "variance": "private",
            "bounds": _COMMON_BOUNDS,
        },
    }
    colours: ClassVar[dict[str, str]] = dict(
        zip((one for one in curves if not one.startswith(ORACLE)), COLOURS, strict=False)
    )

    def compute(self, options: Options) -> Any:
        frame = super().compute(options)
        frame["reference"] = math.nan
        content = read_reference(_REFERENCE)
        for curve in _RECORDED_CURVES:
            known = dict(zip(content["times"], content[curve], strict=True))
            chosen = frame["curve"] == _RECORDED_CURVES[curve]
            frame.loc[chosen, "reference"] = frame.loc[chosen, "time"].map(known)
        return frame

    def _times(self, n_times: int) -> list[int]:
        return sorted({*super()._times(n_times), *read_reference(_REFERENCE)["times"]})

    def compare(self, frame: Any) -> list[Comparison]:
        n_recorded = read_reference(_REFERENCE)["n_runs"]
        comparisons = []
        for curve, name in _RECORDED_CURVES.items():
            rows = frame[(frame["curve"] == name) & frame["reference"].notna()]
            # A number with two digits is off by up to half of the last one, evenly spread.
            digit = 10.0 ** (np.floor(np.log10(rows["reference"])) - 1)
            variance = rows["standard_error"] ** 2 * (1 + rows["n_runs"] / n_recorded)
            deviations = (rows["mse"] - rows["reference"]) / np.sqrt(variance + digit**2 / 12)
            comparisons.append(
                compare_values(
                    f"{self.label}, {curve}, recorded errors",
                    deviations,
                    np.zeros(len(rows)),
                    _students_errors(rows["n_runs"].min()),
                    inferred=_RECORDED,
                )
            )
        return comparisons + super().compare(frame)

    def draw(self, frame: Any) -> Any:
        figure = new_figure(10.4, 4.8)
        axes = figure.subplots(1, 2)
        names = list(self.colours)
        self._draw_errors(axes[0], frame, names)
        axes[0].plot(frame["time"], frame["reference"], "+", color="0.15", markersize=9, zorder=3)
        axes[0].plot([], [], "+", color="0.15", markersize=9, label="recorded")
        axes[0].legend(frameon=False, fontsize=8)
        self._draw_classes(axes[1], frame, names)
        figure.suptitle(self.title, fontsize=11)
        return figure


_RECORDED_CURVES = {"private": "PM-I, variance known", "local": "local", "ideal": "ideal"}


def _students_errors(n_runs: int) -> float:
    """Return what a mean over its estimated error exceeds as rarely as a normal one 5."""
    return float(stats.t.isf(stats.norm.sf(_ALLOWED_ERRORS), n_runs - 1))


def _standardised(ratios: Any, n_squares: Any) -> FloatArray:
    """Return means of independent squared normal variables as normal deviations.

    Parameters
    ----------
    ratios : array-like of float
        Mean squares over their expectations.
    n_squares : array-like of int
        How many squares each is the mean of.

    Returns
    -------
    ndarray of float64
        By Wilson and Hilferty: the cube root of a mean of n squares is nearly normal, with mean
        1 - 2/(9 n) and variance 2/(9 n).
    """
    spread = 2 / (9 * np.asarray(n_squares, dtype=float))
    return np.asarray((np.cbrt(np.asarray(ratios, dtype=float)) - (1 - spread)) / np.sqrt(spread))


FIGURES = (MechanismsFigure(), SchedulesFigure(), SmallNetworkFigure())
