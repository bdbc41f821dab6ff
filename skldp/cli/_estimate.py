"""``python -m skldp estimate``: from a file of reports to a table of frequencies."""

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from skldp.channels import Channel
from skldp.cli._tables import as_rows, read_batches
from skldp.frequency import FrequencyEstimator

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Any) -> None:
    """Add the subcommand to a parser.

    Parameters
    ----------
    subparsers : argparse subparsers
        What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = subparsers.add_parser(
        "estimate",
        help="the frequency table of a file of reports, with intervals",
        description=(
            "Estimate frequencies from stored reports. The file has a column for each column of a "
            "report, or one column of byte strings (packed reports); with --counts a column of "
            "codes (or cohort and bucket) and last their counts."
        ),
    )
    parser.add_argument(
        "file", type=Path, help="CSV with a header (or .csv.gz), Parquet, or Arrow (IPC, Feather)"
    )
    parser.add_argument(
        "--channel", type=Path, required=True, metavar="FILE", help="JSON of Channel.to_dict()"
    )
    parser.add_argument("--columns", metavar="A,B", help="columns to read (default: all)")
    parser.add_argument("--format", choices=["csv", "parquet", "arrow"], help="of the file")
    parser.add_argument("--counts", action="store_true", help="the file holds counts, not reports")
    parser.add_argument(
        "--reports", metavar="N", help="number of reports, for counts of RAPPOR; N,N,... by cohort"
    )
    parser.add_argument(
        "--candidates",
        type=Path,
        metavar="FILE",
        help="values to ask for, in UTF-8, one a line; empty lines are skipped (cohorts)",
    )
    parser.add_argument(
        "--integers", action="store_true", help="the candidates are integers, not strings"
    )
    parser.add_argument(
        "--complete", action="store_true", help="the candidates cover every value there is"
    )
    parser.add_argument("--decoder", default="auto", help="see FrequencyEstimator")
    parser.add_argument("--projection", default="auto", help='see FrequencyEstimator; or "none"')
    parser.add_argument("--level", type=float, default=0.95, help="of the intervals (%(default)s)")
    parser.add_argument(
        "--simultaneous", action="store_true", help="the level is for all intervals at once"
    )
    parser.add_argument("--to", choices=["table", "csv", "json"], default="table", help="output")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write there")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Estimate, and write the table.

    Parameters
    ----------
    arguments : argparse.Namespace
        What the parser of `add_parser` made.

    Returns
    -------
    int
        0. Errors are raised.
    """
    estimator = FrequencyEstimator(
        channel=_read_channel(arguments.channel),
        candidates=_read_candidates(arguments),
        complete=arguments.complete,
        decoder=arguments.decoder,
        projection=None if arguments.projection == "none" else arguments.projection,
    )
    columns = arguments.columns.split(",") if arguments.columns else None
    batches = read_batches(arguments.file, columns, arguments.format)
    if arguments.reports is not None and not arguments.counts:
        raise ValueError("--reports belongs to --counts")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if arguments.counts:
            _fit_counts(estimator, batches, arguments.reports)
        else:
            for frame in batches:
                if len(frame):
                    estimator.partial_fit(as_rows(frame))
            if not hasattr(estimator, "counts_"):
                raise ValueError(f"{arguments.file.name} holds no reports")
        table = estimator.to_frame(level=arguments.level, simultaneous=arguments.simultaneous)
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print(f"skldp: warning: {message}", file=sys.stderr)
    text = _render(estimator, table, arguments)
    if arguments.output is None:
        print(text)
    else:
        arguments.output.write_text(text + "\n", encoding="utf-8")
    return 0


def _read_channel(path: Path) -> Channel:
    try:
        described = json.loads(_read_text(path))
    except (json.JSONDecodeError, RecursionError):
        raise ValueError(f"{path} is no JSON file") from None
    return Channel.from_dict(described)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # Windows begins files with a mark
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text in UTF-8") from None


def _read_candidates(arguments: argparse.Namespace) -> list[Any] | None:
    if arguments.candidates is None:
        if arguments.integers or arguments.complete:
            raise ValueError("--integers and --complete belong to --candidates")
        return None
    # Not splitlines: a value may contain one of the rarer separators.
    lines: list[Any] = [line for line in _read_text(arguments.candidates).split("\n") if line]
    if not arguments.integers:
        return lines
    try:
        return [int(line) for line in lines]
    except ValueError:
        raise ValueError(f"{arguments.candidates} has a line that is no integer") from None


def _fit_counts(estimator: FrequencyEstimator, batches: Any, reports: str | None) -> None:
    counts: dict[Any, int] = {}
    for frame in batches:
        if not len(frame):
            continue
        rows = as_rows(frame)
        if rows.shape[1] not in (2, 3) or (rows != rows.astype(int)).any():
            raise ValueError(
                "counts take integers in two columns (code, count) or three (cohort, bucket, "
                "count); choose columns with --columns"
            )
        for *code, count in rows.astype(int).tolist():
            key = code[0] if len(code) == 1 else tuple(code)
            if key in counts:
                raise ValueError(f"the counts list {key} twice")
            counts[key] = count
    if not counts:
        raise ValueError("the file holds no counts")
    estimator.fit_counts(counts, _read_totals(reports))


def _read_totals(reports: str | None) -> int | list[int] | None:
    if reports is None:
        return None
    try:
        totals = [int(one) for one in reports.split(",")]
    except ValueError:
        raise ValueError(f"--reports takes integers, got {reports}") from None
    return totals[0] if len(totals) == 1 else totals


def _render(estimator: FrequencyEstimator, table: Any, arguments: argparse.Namespace) -> str:
    if arguments.to == "csv":
        return str(table.to_csv(index=False)).rstrip("\n")
    if arguments.to == "json":
        return json.dumps(
            {
                "epsilon": float(estimator.channel_.epsilon),
                "n_reports": _n_reports(estimator),
                "level": arguments.level,
                "simultaneous": arguments.simultaneous,
                "frequencies": json.loads(table.to_json(orient="records", double_precision=15)),
            },
            indent=1,
            ensure_ascii=False,
        )
    shown = table.sort_values("frequency", ascending=False) if "attribute" not in table else table
    head = f"{_n_reports(estimator):,} reports, epsilon = {float(estimator.channel_.epsilon):g}"
    return f"{head}\n\n{shown.to_string(index=False, float_format='{:.5f}'.format)}"


def _n_reports(estimator: FrequencyEstimator) -> int:
    totals = estimator.n_reports_
    first = totals[0] if isinstance(totals, list) else totals
    return int(first if isinstance(first, int) else first.sum())
