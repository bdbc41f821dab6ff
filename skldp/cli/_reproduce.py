"""``python -m skldp reproduce``: the figures of the papers, beside what was printed."""

import argparse
import time
from pathlib import Path
from typing import Any

from skldp.reproduction import FIGURES, Options, comparison_table, reproduce

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Any) -> None:
    """Add the subcommand to a parser.

    Parameters
    ----------
    subparsers : argparse subparsers
        What ``ArgumentParser.add_subparsers`` returned.
    """
    known = "\n".join(f"  {name:<22}{figure.title}" for name, figure in FIGURES.items())
    parser = subparsers.add_parser(
        "reproduce",
        help="compute the figures of the papers, and compare them with the printed numbers",
        description=(
            "Compute figures of the papers again. Of each, the directory gets the numbers\n"
            "(NAME.csv), the picture (NAME.png) and the comparison with the printed numbers\n"
            "(NAME-comparison.csv), which is shown too. Finished parts are kept in the\n"
            "directory: an interrupted run goes on where it was."
        ),
        epilog=(
            f"figures:\n{known}\n\n"
            "The exit status is 1 if a comparison does not hold, and 2 for wrong arguments."
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("figures", nargs="*", metavar="figure", help="which ones (default: all)")
    parser.add_argument("--list", action="store_true", help="list the figures, and stop")
    parser.add_argument("--quick", action="store_true", help="fewer points and runs, in seconds")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("reproduction"),
        metavar="DIR",
        help="directory of the results (%(default)s)",
    )
    parser.add_argument(
        "--jobs", type=int, default=-1, metavar="N", help="processes (default: one per processor)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed (%(default)s)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Reproduce figures.

    Parameters
    ----------
    arguments : argparse.Namespace
        What the parser of `add_parser` made.

    Returns
    -------
    int
        0 if every comparison holds, 1 if one does not, 130 after an interruption. Errors are
        raised.
    """
    if arguments.list:
        for name, figure in FIGURES.items():
            print(f"{name:<22}{figure.title}")
        return 0
    unknown = [name for name in arguments.figures if name not in FIGURES]
    if unknown:
        raise ValueError(f"unknown figure {unknown[0]!r}; known are {', '.join(FIGURES)}")
    if arguments.jobs == 0:
        raise ValueError("--jobs must not be 0; -1 is one process per processor")
    if arguments.seed < 0:
        raise ValueError("--seed must not be negative")
    options = Options(
        quick=arguments.quick,
        n_jobs=arguments.jobs,
        random_state=arguments.seed,
        cache=arguments.output / "cells",
    )
    names = dict.fromkeys(arguments.figures or FIGURES)
    failed = []
    try:
        for name in names:
            started = time.perf_counter()
            outcome = reproduce(FIGURES[name], options, arguments.output)
            print(f"{name}: {FIGURES[name].title}, {time.perf_counter() - started:.0f} s")
            if outcome.comparisons:
                print(comparison_table(outcome.comparisons))
            else:
                print("no printed numbers to compare with")
            print(f"written: {', '.join(map(str, outcome.files))}\n", flush=True)
            if not outcome.holds:
                failed.append(name)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here")
        return 130
    if failed:
        print(f"does not hold: {', '.join(failed)}")
        return 1
    return 0
