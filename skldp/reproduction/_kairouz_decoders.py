"""Figures 1 and 2 of Kairouz, Bonawitz and Ramage (2016): decoders, and k-RR beside k-RAPPOR.

Both are tables of differences between mean ℓ1 losses, for k = 2, ..., 512 categories and
e^ε = 2, ..., 512. The panels labelled "geometric" agree with a point mass instead, and not with
the geometric distribution of Figure 3; the comparison says so. "Best" is the decoder with the
smallest mean loss in a cell.
"""

import math
from typing import Any, ClassVar, TypeAlias

import numpy as np

from skldp.channels import KRRChannel, RapporChannel
from skldp.datasets import point_mass_distribution
from skldp.reproduction._drawing import draw_cells, new_figure
from skldp.reproduction._figure import (
    Comparison,
    Figure,
    Options,
    compare_values,
    read_reference,
)
from skldp.simulation import DirichletPrior, simulate_losses

__all__ = ["FIGURES", "DecoderFigure", "MechanismFigure"]

Panels: TypeAlias = dict[str, tuple[str, float, str]]

_N_RUNS = 10_000
_SIZES = (512, 256, 128, 64, 32, 16, 8, 4, 2)
_QUICK_SIZES = (32, 16, 8, 4, 2)  # a tenth of the work; the runs stay as many
_EXP_EPSILONS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
_N_COLUMNS = 2  # of panels
_REFERENCE = "kairouz_2016_figures_1_and_2"

# The largest deviations that are allowed: what the chance of 10,000 printed runs and as many of
# ours comes to in the noisiest cells (standard errors up to .008 for a hundred users), and digits.
_ALLOWED = {"Dirichlet": 0.02, "point mass, 100": 0.03, "point mass, 30000": 0.006}
_POINT_MASS = (
    "a point mass on one category, where the panel says geometric: the numbers agree with it and "
    "not with the geometric distribution of Figure 3"
)
_DIRICHLET = "a new Dirichlet(1) draw for every run, and the loss against it, not the sample"
_KRR_DECODERS = "the other decoders are maximum likelihood and clipping with renormalisation"
_RAPPOR_DECODERS = "the other decoders are clipping at zero with and without renormalisation"


def mean_losses(
    mechanism: str,
    distribution: str,
    n_users: int,
    n_categories: int,
    exp_epsilon: int,
    n_runs: int,
    random_state: int,
) -> Any:
    """Return the mean ℓ1 loss of each decoder in one cell, and its standard error.

    Parameters
    ----------
    mechanism : {"k-RR", "k-RAPPOR"}
        The mechanism.
    distribution : {"point mass", "Dirichlet"}
        Where the true frequencies come from.
    n_users, n_categories, exp_epsilon, n_runs : int
        Users, categories, e^ε, and runs.
    random_state : int
        Seed.

    Returns
    -------
    pandas.DataFrame
        Columns ``way`` (the projection, or "maximum_likelihood"), ``mean``, ``standard_error``.
    """
    epsilon = math.log(exp_epsilon)
    if mechanism == "k-RR":
        channel: Any = KRRChannel(epsilon, n_categories)
        decoders = ["inversion", "maximum_likelihood"]
        projections = ["simplex", "normalize"]
    else:
        channel = RapporChannel(epsilon, n_categories)
        decoders, projections = ["inversion"], ["simplex", "normalize", "clip"]
    p: Any = DirichletPrior(n_categories)
    if distribution == "point mass":
        p = point_mass_distribution(n_categories)
    losses = simulate_losses(
        channel,
        p,
        n_users,
        n_runs,
        decoders=decoders,
        projections=projections,
        random_state=random_state,
    )
    losses["way"] = losses["projection"].where(losses["decoder"] == "inversion", losses["decoder"])
    grouped = losses.groupby("way", sort=False)["loss"]
    return grouped.agg(mean="mean", standard_error="sem").reset_index()


def _simulate(options: Options, panels: list[tuple[str, str, int]], description: str) -> Any:
    """Return the cells of panels (mechanism, distribution, users), indexed by all but ways."""
    cells = [
        {
            "mechanism": mechanism,
            "distribution": distribution,
            "n_users": n_users,
            "n_categories": size,
            "exp_epsilon": exp_epsilon,
            "n_runs": _N_RUNS,
        }
        for mechanism, distribution, n_users in panels
        for size in (_QUICK_SIZES if options.quick else _SIZES)  # the slowest first
        for exp_epsilon in _EXP_EPSILONS
    ]
    return options.sweep(mean_losses, cells, description)


def _pivot(losses: Any, mechanism: str, distribution: str, n_users: int) -> tuple[Any, Any]:
    """Return means and standard errors of a panel: a row per cell, a column per way."""
    chosen = losses[
        (losses["mechanism"] == mechanism)
        & (losses["distribution"] == distribution)
        & (losses["n_users"] == n_users)
    ]
    index = ["n_categories", "exp_epsilon"]
    means, errors = (
        chosen.pivot(index=index, columns="way", values=name).sort_index(ascending=(False, True))
        for name in ("mean", "standard_error")
    )
    return means, errors


def _panel(
    name: str, first: tuple[Any, Any], second: tuple[Any, Any], reference: dict[str, Any]
) -> Any:
    """Return the rows of a panel: the difference of two losses, and the printed number.

    Parameters
    ----------
    name : str
        Name of the panel.
    first, second : tuple of DataFrame
        Means and standard errors of the ways to choose the best of.
    reference : dict
        The printed numbers of all panels, with their rows and columns.
    """
    best, errors = [], []
    for means, standard_errors in (first, second):
        choice = means.to_numpy().argmin(axis=1)[:, np.newaxis]
        best.append(np.take_along_axis(means.to_numpy(), choice, axis=1)[:, 0])
        errors.append(np.take_along_axis(standard_errors.to_numpy(), choice, axis=1)[:, 0])
    frame = first[0].index.to_frame(index=False)
    frame.insert(0, "panel", name)
    frame["difference"] = best[0] - best[1]
    # As if independent; within one mechanism the runs are the same, and the error is smaller.
    frame["standard_error"] = np.hypot(*errors)
    frame["reference"] = [
        reference["panels"][name][reference["rows"].index(size)][
            reference["columns"].index(exp_epsilon)
        ]
        for size, exp_epsilon in first[0].index
    ]
    frame["deviation"] = frame["difference"] - frame["reference"]
    return frame


class _CellFigure(Figure):
    """A figure of panels of 9 × 9 cells."""

    panels: ClassVar[Panels]  # title, allowed deviation, what is inferred

    def compare(self, frame: Any) -> list[Comparison]:
        return [
            compare_values(name, rows["difference"], rows["reference"], allowed, inferred=inferred)
            for name, (_, allowed, inferred) in self.panels.items()
            for rows in [frame[frame["panel"] == name]]
        ]

    def draw(self, frame: Any) -> Any:
        n_rows = len(self.panels) // _N_COLUMNS
        figure = new_figure(5.2 * _N_COLUMNS, 0.6 + 4.1 * n_rows)
        axes = figure.subplots(n_rows, _N_COLUMNS, squeeze=False)
        limit = float(frame["difference"].abs().max())
        for ax, (name, (title, _, _)) in zip(axes.flat, self.panels.items(), strict=True):
            rows = frame[frame["panel"] == name]
            sizes, exp_epsilons = rows["n_categories"].unique(), rows["exp_epsilon"].unique()
            values = rows["difference"].to_numpy().reshape(len(sizes), len(exp_epsilons))
            draw_cells(ax, values, sizes, exp_epsilons, limit=limit)
            worst = float(rows["deviation"].abs().max())
            ax.set_title(f"{title}\nwithin {worst:.3f} of the printed cells", fontsize=10)
            ax.set_xlabel("$e^{ε}$")
            ax.set_ylabel("categories $k$")
        figure.suptitle(self.title, fontsize=11)
        return figure


class DecoderFigure(_CellFigure):
    """Figure 1: the projected estimate against the best of the other decoders."""

    name = "distribution-1"
    title = "L1 loss: projected decoder minus best of the others (Kairouz et al. 2016, Figure 1)"
    panels: ClassVar[Panels] = {
        f"figure 1, {mechanism}, n = 30000": (
            f"{mechanism}, point mass, n = 30,000",
            _ALLOWED["point mass, 30000"],
            f"{_POINT_MASS}; {decoders}",
        )
        for mechanism, decoders in (("k-RR", _KRR_DECODERS), ("k-RAPPOR", _RAPPOR_DECODERS))
    }

    def compute(self, options: Options) -> Any:
        import pandas as pd

        printed = read_reference(_REFERENCE)
        mechanisms = ("k-RR", "k-RAPPOR")
        losses = _simulate(
            options, [(one, "point mass", 30_000) for one in mechanisms], "Figure 1"
        )
        frames = []
        for name, mechanism in zip(self.panels, mechanisms, strict=True):
            tables = _pivot(losses, mechanism, "point mass", 30_000)
            projected, others = (
                (tables[0][ways], tables[1][ways])
                for ways in (["simplex"], tables[0].columns.drop("simplex"))
            )
            frames.append(_panel(name, projected, others, printed))
        return pd.concat(frames, ignore_index=True)


class MechanismFigure(_CellFigure):
    """Figure 2: k-RR against k-RAPPOR, each with its best decoder."""

    name = "distribution-2"
    title = "L1 loss: k-RR minus k-RAPPOR, best decoders (Kairouz et al. 2016, Figure 2)"
    panels: ClassVar[Panels] = {
        f"figure 2, {printed}, n = {n_users}": (
            f"{distribution}, n = {n_users:,}",
            _ALLOWED.get(f"{distribution}, {n_users}", _ALLOWED["Dirichlet"]),
            inferred,
        )
        for printed, distribution, inferred in (
            ("geometric", "point mass", _POINT_MASS),
            ("Dirichlet", "Dirichlet", _DIRICHLET),
        )
        for n_users in (100, 30_000)
    }

    def compute(self, options: Options) -> Any:
        import pandas as pd

        printed = read_reference(_REFERENCE)
        settings = [(kind, n) for kind in ("point mass", "Dirichlet") for n in (100, 30_000)]
        mechanisms = ("k-RR", "k-RAPPOR")
        losses = _simulate(
            options, [(one, *setting) for setting in settings for one in mechanisms], "Figure 2"
        )
        frames = []
        for name, setting in zip(self.panels, settings, strict=True):
            first, second = (_pivot(losses, mechanism, *setting) for mechanism in mechanisms)
            frames.append(_panel(name, first, second, printed))
        return pd.concat(frames, ignore_index=True)


FIGURES = (DecoderFigure(), MechanismFigure())
