"""Figures 1 to 3 of Kairouz et al. (2016): what is simulated, chosen, compared and drawn."""

import math

import numpy as np
import pandas as pd
import pytest

from skldp.channels import KRRChannel, RapporChannel
from skldp.datasets import geometric_distribution, point_mass_distribution
from skldp.metrics import expected_l2_loss
from skldp.reproduction import FIGURES, Options, read_reference
from skldp.reproduction import _kairouz_decoders as decoders
from skldp.reproduction import _kairouz_hashing as hashing
from skldp.simulation import DirichletPrior, simulate_losses


@pytest.fixture(scope="module")
def small():
    """Figures 1 and 2, four sizes and 20 runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoders, "_N_RUNS", 20)
        patch.setattr(decoders, "_SIZES", (16, 8, 4, 2))
        yield {
            name: FIGURES[name].compute(Options()) for name in ("distribution-1", "distribution-2")
        }


def test_a_cell_holds_the_means_of_the_decoders():
    found = decoders.mean_losses("k-RR", "Dirichlet", 500, 8, 4, 30, random_state=1)
    channel = KRRChannel(math.log(4), 8)
    losses = simulate_losses(
        channel,
        DirichletPrior(8),
        500,
        30,
        decoders=["inversion", "maximum_likelihood"],
        projections=["simplex", "normalize"],
        random_state=1,
    )
    assert found["way"].tolist() == ["simplex", "normalize", "maximum_likelihood"]
    for row, (_, group) in zip(
        found.itertuples(), losses.groupby(["decoder", "projection"], sort=False), strict=True
    ):
        assert row.mean == pytest.approx(group["loss"].mean())
        assert row.standard_error == pytest.approx(group["loss"].std() / math.sqrt(30))


def test_rappor_is_decoded_with_and_without_renormalisation():
    found = decoders.mean_losses("k-RAPPOR", "point mass", 500, 4, 4, 30, random_state=1)
    assert found["way"].tolist() == ["simplex", "normalize", "clip"]
    losses = simulate_losses(
        RapporChannel(math.log(4), 4), point_mass_distribution(4), 500, 30, random_state=1
    )
    assert found["mean"][0] == pytest.approx(losses["loss"].mean())


def test_panels_are_in_the_order_of_the_paper(small):
    for name, n_panels in (("distribution-1", 2), ("distribution-2", 4)):
        frame = small[name]
        assert frame["panel"].unique().tolist() == list(FIGURES[name].panels)
        assert len(frame) == n_panels * 4 * 9
        assert frame["n_categories"].tolist()[::9][:4] == [16, 8, 4, 2]
        assert frame["exp_epsilon"].tolist()[:9] == [2**power for power in range(1, 10)]
        assert np.isfinite(frame[["difference", "standard_error", "reference"]]).all(axis=None)
    printed = read_reference("kairouz_2016_figures_1_and_2")["panels"]
    for panel, rows in small["distribution-2"].groupby("panel"):
        assert rows["reference"].tolist() == np.ravel(printed[panel])[45:].tolist()


def test_a_cell_is_the_difference_of_the_best(small):
    frame = small["distribution-2"].set_index(["panel", "n_categories", "exp_epsilon"])
    options = Options()
    cells = [
        {
            "mechanism": mechanism,
            "distribution": "Dirichlet",
            "n_users": 100,
            "n_categories": 8,
            "exp_epsilon": 4,
            "n_runs": 20,
        }
        for mechanism in ("k-RR", "k-RAPPOR")
    ]
    losses = options.sweep(decoders.mean_losses, cells)
    best = losses.groupby("mechanism")["mean"].min()
    found = frame.loc[("figure 2, Dirichlet, n = 100", 8, 4), "difference"]
    assert found == pytest.approx(best["k-RR"] - best["k-RAPPOR"])
    others = losses[(losses["mechanism"] == "k-RR")].set_index("way")["mean"]
    assert others.nunique() == 3


def test_the_projected_decoder_is_not_among_the_others(small):
    # With two categories, maximum likelihood, projection and normalisation of k-RR all agree.
    frame = small["distribution-1"]
    two = frame[(frame["panel"] == "figure 1, k-RR, n = 30000") & (frame["n_categories"] == 2)]
    np.testing.assert_allclose(two["difference"], 0.0, atol=1e-12)
    rappor = frame[frame["panel"] == "figure 1, k-RAPPOR, n = 30000"]
    assert (rappor[rappor["n_categories"] == 16]["difference"] < -0.001).all()


@pytest.mark.parametrize("name", ["distribution-1", "distribution-2"])
def test_a_planted_deviation_does_not_hold(small, name):
    figure = FIGURES[name]
    exact = small[name].assign(difference=small[name]["reference"])
    comparisons = figure.compare(exact)
    assert all(one.holds and one.largest == 0.0 for one in comparisons)
    assert all("point mass" in one.inferred or "Dirichlet" in one.inferred for one in comparisons)
    for position, one in enumerate(comparisons):
        wrong = exact.copy()
        row = wrong.index[wrong["panel"] == one.panel][5]
        wrong.loc[row, "difference"] += 1.001 * one.allowed
        assert [found.holds for found in figure.compare(wrong)] == [
            index != position for index in range(len(comparisons))
        ]


def test_the_allowed_deviations_are_those_that_were_promised():
    allowed = {
        panel: allowed
        for name in ("distribution-1", "distribution-2")
        for panel, (_, allowed, _) in FIGURES[name].panels.items()
    }
    assert allowed == {
        "figure 1, k-RR, n = 30000": 0.006,
        "figure 1, k-RAPPOR, n = 30000": 0.006,
        "figure 2, geometric, n = 100": 0.03,
        "figure 2, geometric, n = 30000": 0.006,
        "figure 2, Dirichlet, n = 100": 0.02,
        "figure 2, Dirichlet, n = 30000": 0.02,
    }


@pytest.mark.parametrize("name", ["distribution-1", "distribution-2"])
def test_tables_show_every_number(small, name):
    drawn = FIGURES[name].draw(small[name])
    panels = drawn.get_axes()
    assert len(panels) == small[name]["panel"].nunique()
    for ax, (_, rows) in zip(panels, small[name].groupby("panel", sort=False), strict=True):
        shown = [float(text.get_text().replace("\N{MINUS SIGN}", "-")) for text in ax.texts]
        np.testing.assert_allclose(shown, rows["difference"], rtol=0, atol=5.01e-4)
        assert [label.get_text() for label in ax.get_yticklabels()] == ["16", "8", "4", "2"]


# -- Figure 3 -------------------------------------------------------------------------------


def settings(channels):
    return [
        (one.hashing.n_buckets, one.hashing.n_cohorts, one.hashing.n_hashes) for one in channels
    ]


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("mechanism", ["O-RR", "O-RAPPOR"])
def test_the_grid_is_that_of_the_paper(mechanism, is_closed):
    expected = [
        (2**k, 2**c, 2**h)
        for k in range(1, 13)
        for c in range(11)
        for h in range(5)
        if h <= k and (h == 0 or mechanism == "O-RAPPOR") and (k <= 8 or not is_closed)
    ]
    found = hashing.grid(mechanism, is_closed, 256, 1.0, 16)
    assert settings(found) == expected
    assert all(channel.epsilon == 1.0 for channel in found)
    assert all((channel.hashing.alphabet is not None) == is_closed for channel in found)


@pytest.mark.parametrize("mechanism", ["O-RR", "O-RAPPOR"])
def test_the_shortlist_has_the_smallest_expected_losses(mechanism):
    p, grid = geometric_distribution(64), hashing.grid(mechanism, False, 64, 2.0, 4)
    short, without_formula = hashing.shortlist(grid, p, 10**5, 6)
    assert len(short) == 6 and not set(settings(short)) & set(settings(without_formula))
    losses = {
        setting: expected_l2_loss(c, p, 10**5)
        for setting, c in zip(settings(grid), grid, strict=True)
    }
    rest = set(losses) - set(settings(without_formula)) - set(settings(short))
    worst = max(losses[setting] for setting in settings(short))
    # Among losses within 2% the cheaper setting comes first.
    assert worst <= 1.02 * min(losses[setting] for setting in rest)
    for setting in without_formula:
        loss = expected_l2_loss(setting, p, 10**5)
        n_pairs = (
            math.comb(64, 2)
            * (1 - (1 - 1 / setting.hashing.n_buckets) ** setting.hashing.n_hashes)
            ** setting.hashing.n_cohorts
        )
        assert math.isinf(loss) or n_pairs > 0.05


def best(mechanism, alphabet, epsilon, **changes):
    rounds = {"most_hashes": 2, "n_runs": 5, "n_first_runs": 1, "n_shortlisted": 3}
    arguments = {**rounds, "n_finalists": 1, "random_state": 0, **changes}
    return hashing.best_median_loss(mechanism, alphabet, 32, 10**5, epsilon, **arguments)


@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore::skldp.exceptions.DecodingWarning")
def test_the_narrowed_search_finds_a_setting_as_good_as_any_of_the_grid():
    p = geometric_distribution(32)

    def median(channel, n_runs, seed):
        losses = simulate_losses(channel, p, 10**5, n_runs, fresh_hashing=True, random_state=seed)
        return losses["loss"].median()

    grid = hashing.grid("O-RR", False, 32, 3.0, 1)
    found = best("O-RR", "open", 3.0, n_runs=40, n_first_runs=5, n_shortlisted=8, n_finalists=3)
    ours = grid[settings(grid).index(tuple(found.iloc[0, 1:].astype(int)))]
    # (Of equally good settings the smaller ones are quicker to try.)
    small = [one for one in grid if one.hashing.n_cohorts * one.hashing.n_buckets <= 2**14]
    theirs = min(small, key=lambda channel: median(channel, 10, 1))
    # A loss has a standard deviation of 15% here, the median of 200 an error of 1.3%, and the
    # ratio of two 1.9%: of equally good settings it exceeds 1.1 with a probability below 1e-6.
    assert median(ours, 200, 2) < 1.1 * median(theirs, 200, 3)


def test_at_low_epsilon_settings_without_a_formula_take_part():
    rounds = {"n_runs": 30, "n_first_runs": 5, "n_shortlisted": 3}
    with_all = best("O-RR", "open", 0.05, n_finalists=2, **rounds).iloc[0]
    by_formula = best("O-RR", "open", 0.05, n_finalists=3, **rounds).iloc[0]
    assert with_all["n_cohorts"] * (with_all["n_buckets"] - 1) < 32
    assert by_formula["n_cohorts"] * (by_formula["n_buckets"] - 1) > 32
    assert with_all["median"] < by_formula["median"]


@pytest.mark.parametrize("mechanism", ["k-RR", "k-RAPPOR"])
def test_mechanisms_without_hashing_have_nothing_to_choose(mechanism):
    found = best(mechanism, "closed", 2.0)
    kind = KRRChannel if mechanism == "k-RR" else RapporChannel
    losses = simulate_losses(kind(2.0, 32), geometric_distribution(32), 10**5, 5, random_state=0)
    assert found.values.tolist() == [[losses["loss"].median(), 32, 0, 0]]


def figure_3_frame(factor):
    """Return Figure 3 as if every median were this factor times the printed one."""
    rows = [
        ("open" if key[0] == "a" else "closed", key[2:], 256, 10**6, epsilon, 50, loss)
        for key, points in read_reference("kairouz_2016_figure_3")["curves"].items()
        for epsilon, loss in points
    ]
    names = ["alphabet", "mechanism", "n_values", "n_users", "epsilon", "n_runs", "reference"]
    frame = pd.DataFrame(rows, columns=names)
    return frame.assign(median=factor * frame["reference"])


@pytest.mark.parametrize(
    ("factor", "holds"), [(1.0, True), (0.93, True), (0.91, False), (1.09, False)]
)
def test_curves_hold_within_eight_percent(factor, holds):
    comparisons = FIGURES["distribution-3"].compare(figure_3_frame(factor))
    bounded = [one for one in comparisons if one.allowed is not None]
    assert len(bounded) == 6 and sum(one.n_compared for one in bounded) == 96
    assert all(one.allowed == 0.08 and one.is_relative and one.inferred for one in bounded)
    assert [one.holds for one in bounded] == [holds] * 6
    assert sum(one.n_compared for one in comparisons) == 102


def test_a_curve_that_was_not_computed_does_not_hold():
    frame = figure_3_frame(1.0)
    frame = frame[(frame["mechanism"] != "k-RR")]
    assert sum(not one.holds for one in FIGURES["distribution-3"].compare(frame)) == 1


def test_curves_and_printed_points_are_drawn():
    open_panel, closed_panel = FIGURES["distribution-3"].draw(figure_3_frame(1.5)).get_axes()
    for ax, n_curves in ((open_panel, 2), (closed_panel, 4)):
        lines = [line for line in ax.lines if len(line.get_xdata()) == 17]
        assert len(lines) == 2 * n_curves
        for computed, printed in zip(lines[::2], lines[1::2], strict=True):
            np.testing.assert_allclose(computed.get_ydata(), 1.5 * printed.get_ydata())
        levels = [line.get_ydata()[0] for line in ax.lines if len(line.get_xdata()) == 2]
        assert levels[0] == pytest.approx(0.9613, abs=1e-4)  # a uniform guess, as printed
        assert levels[1] == pytest.approx(0.01051, rel=0.03)


def test_the_large_figure_compares_with_nothing_and_draws_four_panels():
    figure = FIGURES["distribution-3-large"]
    rows = [
        (mechanism, alphabet, 4096, n_users, epsilon, 0.1 * epsilon)
        for n_users in (10**6, 10**8)
        for alphabet, mechanism in hashing._CURVES
        for epsilon in (1.0, 2.0)
    ]
    names = ["mechanism", "alphabet", "n_values", "n_users", "epsilon", "median"]
    frame = pd.DataFrame(rows, columns=names)
    assert list(figure.compare(frame)) == []
    assert len(figure.draw(frame).get_axes()) == 4
