"""
Two hundred agents learn their means together
=============================================

Every agent gets one observation in each step and wants to know its own mean. Some agents share a
mean, nobody knows who, and nobody shows raw data. How much sooner does an agent know its mean if
it listens to the noisy releases of the others?

The setting is that of the paper: 200 agents in three classes of means .2, .4 and .8, uniform data
of standard deviation 1/2, ε = 1 for each observation. The chapter :doc:`/collaboration` says what
is the paper's and what is our own construction.

By hand: ``python examples/collaborative_means.py``. Tables go to the terminal, figures as PNG into
``examples/output/``.
"""

# %%
# Streams whose means are known
# -----------------------------
#
# Bounds are public and the same for all: from the least to the largest value that any agent can
# have. Bounds around an agent's own mean would be narrower, and would publish that mean.

import sys
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

from skldp import OnlineCollaborativeMean
from skldp.datasets import assign_agents, sample_agent_streams
from skldp.plotting import ClassRecoveryDisplay, CollaborationDisplay

started = perf_counter()
output = Path(sys.argv[0]).resolve().parent / "output"  # beside this script
output.mkdir(exist_ok=True)

N_AGENTS, N_STEPS, N_RUNS = 200, 4095, 20
CLASS_MEANS = [0.2, 0.4, 0.8]
HALF_WIDTH = 0.5 * np.sqrt(3)  # of uniform data with a standard deviation of 1/2
BOUNDS = (min(CLASS_MEANS) - HALF_WIDTH, max(CLASS_MEANS) + HALF_WIDTH)

means, classes = assign_agents(CLASS_MEANS, N_AGENTS, random_state=0)


def streams(means, n_runs, description):
    """Draw one run after the other, behind a progress bar."""
    for run in tqdm(range(n_runs), desc=description, unit="run", disable=None):
        yield sample_agent_streams(means, N_STEPS, random_state=run)


# %%
# Blocks against a tree
# ---------------------
#
# With blocks (PM-I) an agent releases the sum of 32 observations, then of the next 64, and so on:
# each observation is in one sum. With a tree (PM-II) it releases a fresh sum of everything after
# each observation. An observation is then in up to twelve sums, and each of these has twelve times
# the noise (√12 times with Gaussian noise).

ESTIMATORS = {
    "blocks": OnlineCollaborativeMean(bounds=BOUNDS, first_block=32, growth=2.0, random_state=1),
    "blocks, Gaussian": OnlineCollaborativeMean(
        bounds=BOUNDS, noise="gaussian", delta=1e-6, random_state=1
    ),
    "tree": OnlineCollaborativeMean(
        bounds=BOUNDS, release="tree", horizon=N_STEPS, random_state=1
    ),
    "tree, Gaussian": OnlineCollaborativeMean(
        bounds=BOUNDS,
        release="tree",
        horizon=N_STEPS,
        noise="gaussian",
        delta=1e-6,
        random_state=1,
    ),
}
TIMES = np.unique(np.append(np.geomspace(8, N_STEPS, 90).astype(int), [64, 256, 1024]))

display = CollaborationDisplay.from_streams(
    ESTIMATORS, streams(means, N_RUNS, "200 agents"), means, variance=0.25, times=TIMES
)
display.ax_.set_title(f"{N_AGENTS} agents, {N_RUNS} runs", loc="left")
display.figure_.savefig(output / "collaboration_errors.png", dpi=150)

# %%
# "local" is an agent on its own, "ideal" pools all raw data of its class, and "oracle" knows the
# class but hears only the releases of blocks. These three are formulas, the others are measured.
# Agents of one class err together, since they hear the same noise: 20 runs of three classes make
# about 60 independent errors, and a measured curve may be some 20% off.


def print_table(display, times):
    print(f"{'':<18}" + "".join(f"{time:>11}" for time in times))
    at = np.searchsorted(display.times, times)
    for name, errors in display.errors.items():
        print(f"{name:<18}" + "".join(f"{error:>11.2e}" for error in errors[at]))


print("\nMean squared error after so many steps\n")
print_table(display, [64, 256, 1024, N_STEPS])

local = display.errors["local"]
print("\nLargest ratio to the error of an agent on its own, from step 32 on\n")
for name in ESTIMATORS:
    ratios = np.where(display.times >= 32, display.errors[name] / local, 0.0)
    print(f"{name:<18}{ratios.max():6.2f} at step {display.times[ratios.argmax()]}")

# %%
# With blocks and Laplace noise the agents lose nothing on average, and come close to the ideal as
# soon as they can tell the classes apart. Gaussian noise is three times as large at δ = 1e-6, and
# while nobody can be told from anybody, small differences between many agents, too small to be
# seen, add up to errors that are larger than alone. Trees have that trouble for longer, since all
# of their releases are noisier. They help in the end, and less than blocks.


# %%
# Who belongs together
# --------------------
#
# One run, after 200 steps and at its end. Each row is what one agent believes, and for its eyes
# only; the picture exists because the data are made up.

X = sample_agent_streams(means, N_STEPS, random_state=0)
agents = OnlineCollaborativeMean(bounds=BOUNDS, random_state=1)
figure, axes = plt.subplots(1, 2, figsize=(10.2, 6.2), layout="compressed")
print("\nPairs of agents that are recognised, in one run\n")
for (start, end), ax in zip([(0, 200), (200, N_STEPS)], axes, strict=True):
    agents.partial_fit(X[start:end])
    picture = ClassRecoveryDisplay.from_estimator(agents, classes=means, ax=ax)
    ax.set_title(f"step {end}: {picture.share_right:.1%} of pairs are right", loc="left")
    print(f"step {end:<6}{picture.share_right:8.2%}")
figure.savefig(output / "collaboration_classes.png", dpi=150)

# %%
# Fifteen agents
# --------------
#
# The fewer agents, the less there is to gain, and the less can be seen of how much they disagree.
# In the harder case two of the three classes lie close to each other.

small = {}
for name, values in {
    "means .2, .4, .8": CLASS_MEANS,
    "means .2, .3, .35": [0.2, 0.3, 0.35],
}.items():
    few, _ = assign_agents(values, 15, random_state=0)
    bounds = (min(values) - HALF_WIDTH, max(values) + HALF_WIDTH)
    estimator = OnlineCollaborativeMean(bounds=bounds, random_state=1)
    curves = CollaborationDisplay.from_streams(
        {name: estimator}, streams(few, 100, f"15 agents, {name}"), few, variance=0.25, times=TIMES
    )
    plt.close(curves.figure_)
    small |= curves.errors
small.pop("oracle")
fifteen = CollaborationDisplay(TIMES, small).plot()
fifteen.ax_.set_title("15 agents, 100 runs", loc="left")
fifteen.figure_.savefig(output / "collaboration_fifteen.png", dpi=150)

print("\nFifteen agents: mean squared error after so many steps\n")
print_table(fifteen, [64, 256, 1024, N_STEPS])

# %%

print(f"\nFigures are in {output.name}/ beside this script.")
print(f"Everything took {perf_counter() - started:.1f} seconds.")
plt.close("all")
