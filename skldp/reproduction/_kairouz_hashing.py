"""Figure 3 of Kairouz, Bonawitz and Ramage (2016), and its like for more values: hashing.

Median ℓ1 losses over ε, for open and closed alphabets, n = 10⁶ users and S = 256 values with
geometric frequencies of mean S / 5; each point is the best over buckets k = 2, 4, ..., 4096,
cohorts C = 1, 2, ..., 1024 and hashes h = 1, 2, ..., 16, all powers of two. O-RR has one hash;
k-RR and k-RAPPOR, which need a closed alphabet, have nothing to choose. Every run draws users and
hash functions of its own, and decodes by least squares and projection onto the simplex.

The best of a grid without running all of it 50 times, in three steps for each point:

1. The expected loss of a setting (`skldp.metrics.expected_l2_loss`) is a formula. A shortlist
   takes the smallest ones; of settings within 2% of each other the cheaper one to simulate. Where
   cohorts and buckets are too few to tell all values apart there is no formula, and the loss does
   not go to 0. At low ε the best settings are among these, so all of them are on the list where
   the smallest expected ℓ1 loss is above .4.
2. A few runs of each of the shortlist.
3. The full number of runs, new ones, of those that did best. The smallest median is the point.

The quick form takes the first two by formula.

The paper's supplement shows S = 4096 at n = 10⁶ and 10⁸. These figures are computed in the same
way, with fewer runs and with one hash (several were never best with 256 values), and are compared
with nothing, for no printed numbers are at hand.
"""

import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from skldp.channels import Alphabet, CohortChannel, Hashing, KRRChannel, RapporChannel
from skldp.datasets import geometric_distribution
from skldp.exceptions import DecodingWarning
from skldp.metrics import expected_l1_loss, expected_l2_loss, l1_loss
from skldp.random import simulation_generator
from skldp.reproduction._drawing import COLOURS, new_figure, style_axes
from skldp.reproduction._figure import (
    Comparison,
    Figure,
    Options,
    compare_values,
    read_reference,
)
from skldp.simulation import simulate_losses

__all__ = ["FIGURES", "HashingFigure", "LargeAlphabetFigure"]

_BUCKETS = tuple(2**power for power in range(1, 13))
_COHORTS = tuple(2**power for power in range(11))
_HASHES = tuple(2**power for power in range(5))
_REFERENCE = "kairouz_2016_figure_3"
_ALLOWED = 0.08
_COMPARED_FROM = 1.0  # ε; below, curves end where a guess is nearly as good
_LARGE = 0.4  # expected loss above which settings without formula may be better
_MOST_PAIRS = 0.05  # of values that nothing tells apart, on average
_CLOSE = 1.02  # ratio of expected losses that are taken as equal
_CURVES = (
    ("open", "O-RR"),
    ("open", "O-RAPPOR"),
    ("closed", "O-RR"),
    ("closed", "O-RAPPOR"),
    ("closed", "k-RR"),
    ("closed", "k-RAPPOR"),
)
_INFERRED = (
    "geometric frequencies p_i ~ (1 - t)^i with t = 1 / (1 + S/5), the one reading of several "
    "under which the uniform guess and the non-private estimate have the printed losses"
)


def best_median_loss(
    mechanism: str,
    alphabet: str,
    n_values: int,
    n_users: int,
    epsilon: float,
    most_hashes: int,
    n_runs: int,
    n_first_runs: int,
    n_shortlisted: int,
    n_finalists: int,
    random_state: int,
) -> Any:
    """Return the smallest median ℓ1 loss over the grid of settings, and where it is.

    Parameters
    ----------
    mechanism : {"O-RR", "O-RAPPOR", "k-RR", "k-RAPPOR"}
        The mechanism.
    alphabet : {"open", "closed"}
        Whether hash functions know the values.
    n_values, n_users : int
        Values S and users n.
    epsilon : float
        Privacy level of a report.
    most_hashes : int
        Hash functions of a cohort, at most.
    n_runs, n_first_runs : int
        Runs of the last and of the first round.
    n_shortlisted, n_finalists : int
        Settings in the first and in the last round.
    random_state : int
        Seed.

    Returns
    -------
    pandas.DataFrame
        One row: ``median``, ``n_buckets``, ``n_cohorts``, ``n_hashes`` (0 without hashing).
    """
    import pandas as pd

    generator = simulation_generator(random_state)
    p = geometric_distribution(n_values)

    def median(channel: Any, runs: int) -> float:
        fresh = isinstance(channel, CohortChannel)
        with warnings.catch_warnings():
            # Grids reach to where candidates can hardly be told apart: the loss says so.
            warnings.simplefilter("ignore", DecodingWarning)
            losses = simulate_losses(
                channel, p, n_users, runs, fresh_hashing=fresh, random_state=generator
            )
        return float(losses["loss"].median())

    if mechanism in ("k-RR", "k-RAPPOR"):
        kind = KRRChannel if mechanism == "k-RR" else RapporChannel
        loss = median(kind(epsilon, n_values), n_runs)
        return pd.DataFrame(
            {"median": [loss], "n_buckets": n_values, "n_cohorts": 0, "n_hashes": 0}
        )
    settings = grid(mechanism, alphabet == "closed", n_values, epsilon, most_hashes)
    channels, without_formula = shortlist(settings, p, n_users, n_shortlisted)
    if n_finalists < n_shortlisted:
        if expected_l1_loss(channels[0], p, n_users) > _LARGE:
            channels += without_formula
        first = [median(channel, n_first_runs) for channel in channels]
        channels = [channels[index] for index in np.argsort(first)[:n_finalists]]
    last = [median(channel, n_runs) for channel in channels]
    hashing = channels[int(np.argmin(last))].hashing
    return pd.DataFrame(
        {
            "median": [min(last)],
            "n_buckets": hashing.n_buckets,
            "n_cohorts": hashing.n_cohorts,
            "n_hashes": hashing.n_hashes,
        }
    )


def grid(
    mechanism: str, is_closed: bool, n_values: int, epsilon: float, most_hashes: int
) -> list[CohortChannel]:
    """Return the channel of every setting of O-RR or O-RAPPOR.

    Buckets beyond the values of a closed alphabet change nothing, and more hashes than buckets
    do not exist: both are left out.
    """
    alphabet = Alphabet(n_values) if is_closed else None
    name = "krr" if mechanism == "O-RR" else "rappor"
    return [
        CohortChannel.for_epsilon(
            epsilon, Hashing(n_buckets, n_cohorts, n_hashes, "figure 3", alphabet), name
        )
        for n_buckets in _BUCKETS
        if not is_closed or n_buckets <= n_values
        for n_cohorts in _COHORTS
        for n_hashes in (_HASHES if name == "rappor" else (1,))
        if n_hashes <= min(n_buckets, most_hashes)
    ]


def shortlist(
    settings: list[CohortChannel], p: Any, n_users: int, size: int
) -> tuple[list[CohortChannel], list[CohortChannel]]:
    """Return the settings of smallest expected loss, and those for which there is no formula.

    Parameters
    ----------
    settings : list of CohortChannel
        The grid.
    p : ndarray of shape (S,)
        Frequencies.
    n_users : int
        Number of users.
    size : int
        Length of the first list.
    """
    ranked: list[tuple[int, int, int, CohortChannel]] = []
    without_formula = []
    for channel in settings:
        hashing, loss = channel.hashing, expected_l2_loss(channel, p, n_users)
        n_pairs = math.comb(len(p), 2) * hashing.collision_probability**hashing.n_cohorts
        # The formula does not know of values that share their buckets in every cohort.
        if not math.isfinite(loss) or n_pairs > _MOST_PAIRS:
            without_formula.append(channel)
        else:
            n_cells = hashing.n_cohorts * (hashing.n_buckets + len(p))
            ranked.append((math.floor(math.log(loss, _CLOSE)), n_cells, len(ranked), channel))
    return [channel for *_, channel in sorted(ranked)[:size]], without_formula


def _compute(
    options: Options, cells: Iterable[dict[str, Any]], rounds: dict[str, int], description: str
) -> Any:
    frame = options.sweep(best_median_loss, [{**cell, **rounds} for cell in cells], description)
    return frame.drop(columns=["most_hashes", "n_first_runs", "n_shortlisted", "n_finalists"])


def _baselines(n_values: int, n_users: int) -> dict[str, float]:
    """Return the losses without reports and without privacy."""
    p = geometric_distribution(n_values)
    samples = np.random.default_rng(0).multinomial(n_users, p, size=50) / n_users
    uniform = np.full(n_values, 1.0 / n_values)
    return {
        "uniform guess": float(l1_loss(p, uniform)),
        "without privacy": float(np.median(l1_loss(np.tile(p, (50, 1)), samples))),
    }


def _draw_panel(ax: Any, rows: Any) -> None:
    """Draw the curves of one panel, printed points as crosses, and the two baselines."""
    names = dict(zip(("O-RR", "O-RAPPOR", "k-RR", "k-RAPPOR"), COLOURS, strict=False))
    for (mechanism, colour), marker in zip(names.items(), "osD^", strict=True):
        line = rows[rows["mechanism"] == mechanism]
        if line.empty:
            continue
        ax.plot(
            line["epsilon"],
            line["median"],
            color=colour,
            marker=marker,
            markersize=3.5,
            linewidth=1.2,
            linestyle="--" if mechanism.startswith("k-") else "-",  # they nearly coincide
            label=mechanism,
        )
        if "reference" in line:
            ax.plot(line["epsilon"], line["reference"], "+", color="0.15", markersize=7, zorder=3)
    if "reference" in rows:
        ax.plot([], [], "+", color="0.15", markersize=7, label="printed")
    baselines = _baselines(int(rows["n_values"].iloc[0]), int(rows["n_users"].iloc[0]))
    for (name, loss), style in zip(baselines.items(), (":", "--"), strict=True):
        ax.axhline(loss, color="0.45", linestyle=style, linewidth=1.0, label=name, zorder=1)
    ax.set_yscale("log")
    ax.set_xlabel("privacy level of a report, ε")
    ax.label_outer()
    ax.xaxis.get_major_locator().set_params(integer=True)
    style_axes(ax)


class HashingFigure(Figure):
    """Figure 3: O-RR and O-RAPPOR over ε, beside k-RR and k-RAPPOR."""

    name = "distribution-3"
    title = "Median L1 loss, S = 256, n = 1e6 (Kairouz et al. 2016, Figure 3)"

    def compute(self, options: Options) -> Any:
        printed = {
            (("open" if key[0] == "a" else "closed"), key[2:]): dict(map(tuple, points))
            for key, points in read_reference(_REFERENCE)["curves"].items()
        }
        if options.quick:
            rounds = _rounds(n_runs=25, n_first_runs=1, n_shortlisted=2, n_finalists=2)
        else:
            rounds = _rounds(n_runs=50, n_first_runs=3, n_shortlisted=8, n_finalists=3)
        cells = [
            {
                "mechanism": mechanism,
                "alphabet": alphabet,
                "n_values": 256,
                "n_users": 10**6,
                "epsilon": epsilon,
                "most_hashes": _HASHES[-1],
            }
            for alphabet, mechanism in _CURVES
            for epsilon in list(printed[alphabet, mechanism])[:: 4 if options.quick else 1]
        ]
        frame = _compute(options, cells, rounds, "Figure 3")
        keys = zip(frame["alphabet"], frame["mechanism"], frame["epsilon"], strict=True)
        frame["reference"] = [printed[alphabet, name][level] for alphabet, name, level in keys]
        frame["ratio"] = frame["median"] / frame["reference"]
        return frame

    def compare(self, frame: Any) -> list[Comparison]:
        comparisons = []
        for alphabet, mechanism in _CURVES:
            curve = frame[(frame["alphabet"] == alphabet) & (frame["mechanism"] == mechanism)]
            is_high = curve["epsilon"] >= _COMPARED_FROM
            for rows, suffix, allowed in (
                (curve[is_high], f"epsilon >= {_COMPARED_FROM:g}", _ALLOWED),
                (curve[~is_high], f"epsilon < {_COMPARED_FROM:g}", None),
            ):
                if allowed is not None or len(rows):
                    comparison = compare_values(
                        f"figure 3, {alphabet} alphabet, {mechanism}, {suffix}",
                        rows["median"],
                        rows["reference"],
                        allowed,
                        is_relative=True,
                        inferred=_INFERRED,
                    )
                    comparisons.append(comparison)
        return comparisons

    def draw(self, frame: Any) -> Any:
        figure = new_figure(10.4, 4.6)
        axes = figure.subplots(1, 2, sharey=True)
        for ax, alphabet in zip(axes, ("open", "closed"), strict=True):
            _draw_panel(ax, frame[frame["alphabet"] == alphabet])
            ax.set_title(f"{alphabet} alphabet", loc="left", fontsize=10)
        axes[0].set_ylabel(r"median $\ell_1$ loss")
        axes[1].legend(frameon=False, fontsize=9)
        figure.suptitle(self.title, fontsize=11)
        return figure


class LargeAlphabetFigure(Figure):
    """The supplement's setting: 4,096 values, a million and a hundred million users."""

    name = "distribution-3-large"
    title = "Median L1 loss, S = 4096, n = 1e6 and 1e8 (after Kairouz et al. 2016, supplement)"

    def compute(self, options: Options) -> Any:
        if options.quick:
            rounds = _rounds(n_runs=3, n_first_runs=1, n_shortlisted=1, n_finalists=1)
        else:
            rounds = _rounds(n_runs=5, n_first_runs=1, n_shortlisted=3, n_finalists=1)
        cells = [
            {
                "mechanism": mechanism,
                "alphabet": alphabet,
                "n_values": 4096,
                "n_users": n_users,
                "epsilon": epsilon,
                "most_hashes": 1,
            }
            for n_users in (10**6, 10**8)
            for alphabet, mechanism in _CURVES
            for epsilon in ((8.0,) if options.quick else (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 14.0))
        ]
        return _compute(options, cells, rounds, "Figure 3, S = 4096")

    def draw(self, frame: Any) -> Any:
        figure = new_figure(10.4, 8.4)
        axes = figure.subplots(2, 2, sharex=True, sharey="row")
        for row, n_users in zip(axes, (10**6, 10**8), strict=True):
            for ax, alphabet in zip(row, ("open", "closed"), strict=True):
                chosen = (frame["alphabet"] == alphabet) & (frame["n_users"] == n_users)
                _draw_panel(ax, frame[chosen])
                ax.set_title(f"{alphabet} alphabet, n = {n_users:,}", loc="left", fontsize=10)
            row[0].set_ylabel(r"median $\ell_1$ loss")
        handles, labels = axes[0, 1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
        figure.suptitle(self.title, fontsize=11)
        return figure


def _rounds(**numbers: int) -> dict[str, int]:
    return numbers


FIGURES = (HashingFigure(), LargeAlphabetFigure())
