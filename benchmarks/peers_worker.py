"""Time pure-ldp and multi-freq-ldpy; run by peers.py in an environment that has them.

Prints a JSON object: CPU nanoseconds per user, by task and library.
"""

import json
import sys
import time
import warnings

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
from multi_freq_ldpy.pure_frequency_oracles import GRR, UE  # noqa: E402
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer  # noqa: E402
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer  # noqa: E402


def timed(function):
    start = time.process_time()
    result = function()
    return result, time.process_time() - start


def pure_ldp(client, server, values):
    def estimate(reports):
        for report in reports:
            server.aggregate(report)
        return [server.estimate(value, suppress_warnings=True) for value in range(server.d)]

    reports, privatise = timed(lambda: [client.privatise(value) for value in values])
    return privatise, timed(lambda: estimate(reports))[1]


def multi_freq_ldpy(client, aggregator, values):
    client(values[0])  # compiles
    reports, privatise = timed(lambda: [client(value) for value in values])
    return privatise, timed(lambda: aggregator(reports))[1]


def main():
    epsilon, n_krr, n_unary = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    times = {}
    for mechanism, k, n in (("k-RR", 16, n_krr), ("k-RR", 256, n_krr), ("SUE", 256, n_unary)):
        values = np.random.default_rng(0).integers(0, k, n).tolist()
        same = {"index_mapper": int}  # their default takes one off every value
        if mechanism == "k-RR":
            pure = DEClient(epsilon, k, **same), DEServer(epsilon, k, **same)
            multi = (
                lambda value, k=k: GRR.GRR_Client(value, k, epsilon),
                lambda reports, k=k: GRR.GRR_Aggregator_MI(reports, k, epsilon),
            )
        else:
            pure = UEClient(epsilon, k, **same), UEServer(epsilon, k, **same)
            multi = (
                lambda value, k=k: UE.UE_Client(value, k, epsilon, False),
                lambda reports: UE.UE_Aggregator_MI(reports, epsilon, False),
            )
        for library, (privatise, estimate) in {
            "pure-ldp": pure_ldp(*pure, values),
            "multi-freq-ldpy": multi_freq_ldpy(*multi, values),
        }.items():
            times.setdefault(f"privatise {mechanism} k={k}", {})[library] = privatise * 1e9 / n
            times.setdefault(f"estimate {mechanism} k={k}", {})[library] = estimate * 1e9 / n
    json.dump(times, sys.stdout)


if __name__ == "__main__":
    main()
