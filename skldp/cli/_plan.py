"""``python -m skldp plan``: what to expect of each mechanism, before anything is collected."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from skldp.channels import CohortChannel, KRRChannel
from skldp.metrics import (
    Suggestion,
    compare_mechanisms,
    expected_l1_loss,
    expected_l2_loss,
    users_needed,
)

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Any) -> None:
    """Add the subcommand to a parser.

    Parameters
    ----------
    subparsers : argparse subparsers
        What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = subparsers.add_parser(
        "plan",
        help="expected losses of all mechanisms, the suggested one, and the users needed",
        description=(
            "Compare the mechanisms by the expected loss of their unbiased estimates for uniform "
            "frequencies. Nothing here touches data. A projection onto the simplex lowers the "
            "losses, the more the larger they are; no two distributions have an l1 loss above 2."
        ),
    )
    parser.add_argument("--epsilon", type=float, required=True, help="privacy level of a report")
    parser.add_argument("--users", type=int, required=True, help="number of reports")
    parser.add_argument(
        "--categories", type=int, required=True, help="size of the alphabet, or of the candidates"
    )
    parser.add_argument(
        "--open",
        action="store_true",
        help="values outside the list can occur, so that only O-RR and O-RAPPOR are possible",
    )
    parser.add_argument(
        "--target", type=float, default=0.1, help="l1 loss to reach (default: %(default)s)"
    )
    parser.add_argument(
        "--channel", type=Path, metavar="FILE", help="write the suggestion as JSON"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the losses against users")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the plan.

    Parameters
    ----------
    arguments : argparse.Namespace
        What the parser of `add_parser` made.

    Returns
    -------
    int
        0. Errors are raised.
    """
    epsilon, n_users, size = arguments.epsilon, arguments.users, arguments.categories
    if not arguments.target > 0:
        raise ValueError(f"--target must be positive, got {arguments.target}.")
    mechanisms = compare_mechanisms(epsilon, n_users, size, arguments.open)
    uniform = np.full(size, 1.0 / size)
    best = min(mechanisms, key=lambda name: mechanisms[name].expected_l2_loss)
    needed = f"users for l1 <= {arguments.target:g}"
    rows = [("mechanism", "buckets", "cohorts", "bytes", "l1 loss", "l2^2 loss", needed)]
    for name, suggestion in mechanisms.items():
        channel: Any = suggestion.channel
        rows.append(
            (
                name,
                *_shape(channel),
                f"{expected_l1_loss(channel, uniform, n_users):.4g}",
                f"{expected_l2_loss(channel, uniform, n_users):.3g}",
                _users_needed(channel, size, arguments.target),
            )
        )
    print(f"{size:,} categories, {n_users:,} users, epsilon = {epsilon:g} for each report\n")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *numbers in rows:
        aligned = (f"{text:>{width}}" for text, width in zip(numbers, widths[1:], strict=True))
        mark = "* " if name == best else "  "
        print(f"{mark}{name:<{widths[0]}}", *aligned, sep="  ")
    print(f"\n* suggested: {_recipe(mechanisms[best])}")
    if arguments.channel is not None:
        _write_channel(arguments.channel, mechanisms[best].channel)
    if arguments.plot is not None:
        _draw(arguments)
    return 0


def _users_needed(channel: Any, size: int, target: float) -> str:
    try:
        return f"{users_needed(channel, size, target):,}"
    except ValueError:  # the target was checked: it can only be out of reach
        return "> 10^18"


def _shape(channel: Any) -> tuple[str, str, str]:
    """Return buckets, cohorts ("" for none), and the bytes that a report takes."""
    bucket = channel.bucket if isinstance(channel, CohortChannel) else channel
    n_bytes = -(-bucket.n_categories // 8)  # packed bits
    if isinstance(bucket, KRRChannel):
        n_bytes = -(-(bucket.n_categories - 1).bit_length() // 8)
    if isinstance(channel, CohortChannel):
        return f"{bucket.n_categories:,}", f"{channel.hashing.n_cohorts:,}", f"{n_bytes + 4:,}"
    return f"{bucket.n_categories:,}", "", f"{n_bytes:,}"


def _recipe(suggestion: Suggestion) -> str:
    """Return the estimators to write down."""
    channel: Any = suggestion.channel
    is_cohort = isinstance(channel, CohortChannel)
    bucket = channel.bucket if is_cohort else channel
    epsilon = f"{float(channel.epsilon):g}"
    if isinstance(bucket, KRRChannel):
        mechanism = f"KRRTransformer({epsilon}"
    else:
        mechanism = f"RapporTransformer({epsilon}, packed=True"
    if not is_cohort:
        return f"{mechanism}, categories=...)"
    hashing = channel.hashing
    alphabet = "" if hashing.alphabet is None else ", alphabet=..."
    return (
        f"CohortHashEncoder(n_buckets={hashing.n_buckets}, n_cohorts={hashing.n_cohorts}"
        f"{alphabet}) and then {mechanism})"
    )


def _write_channel(path: Path, channel: Any) -> None:
    import json

    path.write_text(json.dumps(channel.to_dict(), indent=1) + "\n", encoding="utf-8")
    print(f"channel written to {path}")


def _draw(arguments: argparse.Namespace) -> None:
    from skldp.plotting import RiskCurveDisplay

    display: Any = RiskCurveDisplay.from_parameters(
        arguments.epsilon,
        arguments.users,
        arguments.categories,
        open_alphabet=arguments.open,
        target=arguments.target,
    )
    display.ax_.set_title(f"{arguments.categories} categories, ε = {arguments.epsilon:g}")
    display.figure_.savefig(arguments.plot, dpi=150)
    print(f"figure written to {arguments.plot}")
