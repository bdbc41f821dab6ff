"""Measure skldp beside pure-ldp and multi-freq-ldpy.

They need an old numpy and packages they do not declare, so they get a virtual environment of
their own, built at the first run in ``benchmarks/.venv-peers``. Where it cannot be built the
comparison is skipped with a message. Each task is timed in both interpreters in turn; printed
are medians of CPU nanoseconds per user.
"""

import json
import os
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np  # noqa: E402

from skldp.channels import Channel, KRRChannel, RapporChannel  # noqa: E402

ENVIRONMENT = HERE / ".venv-peers"
REQUIREMENTS = [
    "pure-ldp==1.2.0",
    "multi-freq-ldpy==0.2.5",
    "numpy<2",  # pure-ldp breaks on later versions
    "scipy<1.14",
    "scikit-learn<1.6",  # pure-ldp imports this and the next without declaring them
    "statsmodels<0.15",
    "xxhash<4",  # version 4 refuses the strings it is given
]
COMPILED = "numpy,scipy,scikit-learn,statsmodels,pandas,numba,llvmlite,xxhash"
EPSILON, N_KRR, N_UNARY, ROUNDS = 1.0, 10**6, 10**5, 3
ROW = "{:<22} {:>12} {:>12} {:>16} {:>10}"


class CannotRunError(Exception):
    """The peers cannot be installed or do not run here."""


def run(*command: object) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise CannotRunError(f"{command[1]} {command[2]} failed: {lines[-1]}")
    return done.stdout


def environment() -> Path:
    """Return the Python of the peers' environment, which is built if need be."""
    python = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    complete = ENVIRONMENT / "complete.txt"
    pins = "\n".join(REQUIREMENTS)
    if not complete.exists() or complete.read_text() != pins:
        print(f"building {ENVIRONMENT} ...", flush=True)
        try:
            venv.create(ENVIRONMENT, clear=True, with_pip=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise CannotRunError(f"no virtual environment: {error}") from error
        run(python, "-m", "pip", "install", "--quiet", f"--only-binary={COMPILED}", *REQUIREMENTS)
        complete.write_text(pins)
    return python


def cpu_nanoseconds(function, n: int) -> tuple[object, float]:
    start = time.process_time()
    result = function()
    return result, (time.process_time() - start) * 1e9 / n


def measure_skldp() -> dict[str, float]:
    times = {}
    channels: list[tuple[str, Channel, int]] = [
        ("k-RR k=16", KRRChannel(EPSILON, 16), N_KRR),
        ("k-RR k=256", KRRChannel(EPSILON, 256), N_KRR),
        ("SUE k=256", RapporChannel(EPSILON, 256, packed=True), N_UNARY),
    ]
    for name, channel, n in channels:
        codes = channel.encode(np.random.default_rng(0).integers(0, channel.n_categories, n))
        reports, times[f"privatise {name}"] = cpu_nanoseconds(
            lambda channel=channel, codes=codes: channel.randomize(codes), n
        )
        _, times[f"estimate {name}"] = cpu_nanoseconds(
            lambda channel=channel, reports=reports, n=n: channel.unbias(
                channel.count(reports), n
            ),
            n,
        )
    return times


def main() -> int:
    try:
        python = environment()
        measure_skldp()  # warm-up
        rounds = []
        for _ in range(ROUNDS):
            theirs = json.loads(run(python, HERE / "peers_worker.py", EPSILON, N_KRR, N_UNARY))
            rounds.append((measure_skldp(), theirs))
    except CannotRunError as reason:
        print(f"skipped: {reason}")
        return 0
    print(
        f"CPU ns per user, epsilon = {EPSILON}, n = {N_KRR} (k-RR), {N_UNARY} (SUE, packed here)"
    )
    print(ROW.format("task", "skldp", "pure-ldp", "multi-freq-ldpy", "faster"))
    for task in rounds[0][0]:
        ours = statistics.median(skldp[task] for skldp, _ in rounds)
        pure, multi = (
            statistics.median(theirs[task][library] for _, theirs in rounds)
            for library in ("pure-ldp", "multi-freq-ldpy")
        )
        row = (f"{ours:.3g}", f"{pure:.4g}", f"{multi:.4g}", f"{min(pure, multi) / ours:.3g} x")
        print(ROW.format(task, *row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
