"""Measure skldp against its performance targets and print a table.

Run ``python benchmarks/run.py --help`` for the options.
"""

import argparse
import os
import sys
from pathlib import Path

# One thread everywhere, before any library starts its pool.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import cohorts  # noqa: E402
import targets  # noqa: E402

MEASUREMENTS = targets.MEASUREMENTS | cohorts.MEASUREMENTS

ROW = "{:<45} {:>10} {:>10} {:<8} {:>8} {:>8}  {}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller arrays and fewer repeats")
    parser.add_argument("--only", choices=MEASUREMENTS, help="a single group of measurements")
    parser.add_argument("--strict", action="store_true", help="exit with status 1 on a miss")
    arguments = parser.parse_args()
    size, repeats = (0.4, 3) if arguments.quick else (1.0, 9)
    print(ROW.format("item", "measured", "reference", "unit", "ratio", "target", ""))
    n_missed = 0
    for name, measure in MEASUREMENTS.items():
        if arguments.only not in (None, name):
            continue
        for result in measure(size, repeats):
            n_missed += not result.is_met
            print(
                ROW.format(
                    result.item,
                    f"{result.measured:.3g}",
                    "-" if result.reference is None else f"{result.reference:.3g}",
                    result.unit,
                    f"{result.ratio:.3g}",
                    f"<= {result.target:.3g}",
                    "ok" if result.is_met else "MISSED",
                ),
                flush=True,
            )
    print(f"{n_missed} missed" if n_missed else "all targets met")
    return int(arguments.strict and n_missed > 0)


if __name__ == "__main__":
    sys.exit(main())
