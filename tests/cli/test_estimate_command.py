"""`python -m skldp estimate`: the same numbers as the estimator, from every kind of file."""

import csv
import gzip
import io
import json

import numpy as np
import pandas as pd
import pytest

from skldp import CohortHashEncoder, FrequencyEstimator, KRRTransformer, RapporTransformer
from skldp.cli import main

NAMES = ["bike", "bus", "car", "walk"]
VALUES = np.repeat(NAMES, [100, 500, 300, 100])


def reports_of(mechanism):
    return mechanism.fit_transform(VALUES)


@pytest.fixture
def krr():
    return reports_of(KRRTransformer(2.0, categories=NAMES, random_state=0))


@pytest.fixture
def packed():
    return reports_of(RapporTransformer(2.0, categories=NAMES, packed=True, random_state=0))


def store(folder, reports, ending, names=None):
    path = folder / f"reports{ending}"
    names = names or [f"r{i}" for i in range(reports.shape[1])]
    frame = pd.DataFrame(np.asarray(reports), columns=names)
    write = {".csv": frame.to_csv, ".parquet": frame.to_parquet, ".arrow": frame.to_feather}
    write[ending](path, **({"index": False} if ending == ".csv" else {}))
    channel = folder / "channel.json"
    channel.write_text(json.dumps(reports.channel.to_dict()))
    return ["estimate", "--channel", str(channel), str(path)]


def as_json(arguments, capsys):
    assert main([*arguments, "--to", "json"]) == 0
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


def expected_rows(reports, **settings):
    return FrequencyEstimator(**settings).fit(reports).to_frame().to_dict("records")


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one["category"] == other["category"]
        for name in ("frequency", "raw_frequency", "standard_error", "lower", "upper"):
            assert one[name] == pytest.approx(other[name], rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
@pytest.mark.parametrize("kind", ["krr", "packed"])
def test_files_give_what_the_estimator_gives(kind, ending, tmp_path, capsys, request):
    reports = request.getfixturevalue(kind)
    found, errors = as_json(store(tmp_path, reports, ending), capsys)
    assert errors == ""
    assert (found["n_reports"], found["epsilon"], found["level"]) == (1000, 2.0, 0.95)
    assert_same(found["frequencies"], expected_rows(reports))


def test_many_batches_are_one_file(krr, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("skldp.cli._tables._ROWS", 64)
    for ending in (".csv", ".parquet"):
        found, _ = as_json(store(tmp_path, krr, ending), capsys)
        assert found["n_reports"] == 1000
        assert_same(found["frequencies"], expected_rows(krr))


def test_packed_reports_may_be_byte_strings(packed, tmp_path, capsys):
    arguments = store(tmp_path, packed, ".parquet")
    blobs = pd.DataFrame({"blob": [row.tobytes() for row in np.asarray(packed)]})
    blobs.to_parquet(tmp_path / "reports.parquet")
    found, _ = as_json(arguments, capsys)
    assert_same(found["frequencies"], expected_rows(packed))


def test_compressed_files_and_frames_with_an_index_are_read(krr, packed, tmp_path, capsys):
    arguments = store(tmp_path, krr, ".csv")
    compressed = tmp_path / "reports.csv.gz"
    compressed.write_bytes(gzip.compress((tmp_path / "reports.csv").read_bytes()))
    found, _ = as_json([*arguments[:-1], str(compressed)], capsys)
    assert_same(found["frequencies"], expected_rows(krr))
    # A filtered frame stores its index as a column; names of columns may be integers.
    for reports in (krr, packed):
        arguments = store(tmp_path, reports, ".parquet")
        frame = pd.DataFrame(np.asarray(reports))
        frame.index = frame.index[::-1].to_numpy()
        frame.to_parquet(tmp_path / "reports.parquet")
        found, _ = as_json(arguments, capsys)
        assert_same(found["frequencies"], expected_rows(reports))


def test_a_header_of_numbers_is_one_if_pandas_made_it(krr, tmp_path, capsys):
    arguments = store(tmp_path, krr, ".csv", names=["0"])
    found, _ = as_json(arguments, capsys)
    assert found["n_reports"] == 1000


def test_counts_are_enough(krr, packed, tmp_path, capsys):
    arguments = store(tmp_path, krr, ".csv")
    codes, counts = np.unique(np.asarray(krr), return_counts=True)
    pd.DataFrame({"code": codes, "n": counts}).to_csv(tmp_path / "reports.csv", index=False)
    found, _ = as_json([*arguments, "--counts"], capsys)
    assert_same(found["frequencies"], expected_rows(krr))

    arguments = store(tmp_path, packed, ".csv")
    bits = FrequencyEstimator().fit(packed).counts_
    pd.DataFrame({"n": bits, "bit": range(4)}).to_csv(tmp_path / "reports.csv", index=False)
    chosen = [*arguments, "--counts", "--reports", "1000", "--columns", "bit,n"]
    found, _ = as_json(chosen, capsys)
    assert_same(found["frequencies"], expected_rows(packed))


def test_cohorts_are_asked_about_candidates(tmp_path, capsys):
    encoder = CohortHashEncoder(n_buckets=8, n_cohorts=4, random_state=0)
    codes = encoder.fit_transform(VALUES)
    reports = KRRTransformer(3.0, random_state=1).fit_transform(codes)
    arguments = store(tmp_path, reports, ".parquet")
    candidates = tmp_path / "candidates.txt"
    candidates.write_text("\n".join(NAMES) + "\n")
    arguments = [*arguments, "--candidates", str(candidates), "--complete"]
    found, _ = as_json(arguments, capsys)
    assert_same(found["frequencies"], expected_rows(reports, candidates=NAMES, complete=True))

    table = pd.DataFrame(np.asarray(reports), columns=["cohort", "bucket"])
    counts = table.value_counts().reset_index()
    counts.to_parquet(tmp_path / "reports.parquet")
    found, _ = as_json([*arguments, "--counts"], capsys)
    assert_same(found["frequencies"], expected_rows(reports, candidates=NAMES, complete=True))


@pytest.mark.parametrize(
    "text",
    ["\ufeffbike\nbus\u2028\ncar\n", "bike\r\n\r\nbus\u2028\r\ncar\r\n\r\n"],
    ids=["a mark and no empty lines", "Windows lines and empty ones"],
)
def test_candidates_are_the_lines_of_a_file(text, tmp_path, capsys):
    encoder = CohortHashEncoder(n_buckets=8, n_cohorts=4, random_state=0)
    reports = KRRTransformer(3.0, random_state=1).fit_transform(encoder.fit_transform(VALUES))
    arguments = store(tmp_path, reports, ".csv")
    candidates = tmp_path / "candidates.txt"
    candidates.write_bytes(text.encode("utf-8"))
    found, _ = as_json([*arguments, "--candidates", str(candidates)], capsys)
    expected = expected_rows(reports, candidates=["bike", "bus\u2028", "car"])
    assert_same(found["frequencies"], expected)


def test_output_as_table_and_csv_and_into_a_file(krr, tmp_path, capsys):
    arguments = store(tmp_path, krr, ".csv")
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1,000 reports, epsilon = 2"
    assert [line.split()[0] for line in lines[3:]] == ["bus", "car", "bike", "walk"] or (
        sorted(line.split()[0] for line in lines[3:]) == NAMES
    )
    target = tmp_path / "table.csv"
    assert main([*arguments, "--to", "csv", "--output", str(target)]) == 0
    assert capsys.readouterr().out == ""
    rows = list(csv.DictReader(io.StringIO(target.read_text())))
    assert [row["category"] for row in rows] == NAMES
    for row, expected in zip(rows, expected_rows(krr), strict=True):
        assert float(row["frequency"]) == pytest.approx(expected["frequency"], abs=1e-12)


def test_warnings_are_shown_on_one_line_each(tmp_path, capsys):
    encoder = CohortHashEncoder(n_buckets=2, n_cohorts=2, random_state=0)
    reports = KRRTransformer(3.0, random_state=1).fit_transform(encoder.fit_transform(VALUES))
    arguments = store(tmp_path, reports, ".csv")
    candidates = tmp_path / "candidates.txt"
    candidates.write_text("\n".join(f"w{i}" for i in range(30)))
    _, errors = as_json([*arguments, "--candidates", str(candidates)], capsys)
    assert errors.startswith("skldp: warning: 30 candidates are more than")
    assert errors.count("\n") == 1


def broken(tmp_path, krr):
    """Yield (what is wrong, arguments, message)."""
    good = store(tmp_path, krr, ".csv")
    yield "no file", [*good[:-1], str(tmp_path / "none.csv")], "no such file"
    odd = tmp_path / "reports.xlsx"
    odd.write_text("x")
    yield "ending", [*good[:-1], str(odd)], "--format"
    yield "format", [*good, "--format", "parquet"], "is no Parquet file"
    yield "arrow", [*good, "--format", "arrow"], "is no Arrow file"
    yield "column", [*good, "--columns", "r0,other"], "has no column 'other'"
    yield "level", [*good, "--level", "2"], "level must lie strictly between 0 and 1"
    yield "candidates", [*good, "--complete"], "belong to --candidates"
    yield "reports", [*good, "--reports", "9"], "--reports belongs to --counts"
    yield "counts", [*good, "--counts"], "two columns (code, count)"
    empty = tmp_path / "empty.csv"
    empty.write_text("r0\n")
    yield "empty", [*good[:-1], str(empty)], "holds no reports"
    nothing = tmp_path / "nothing.csv"
    nothing.write_text("")
    yield "nothing", [*good[:-1], str(nothing)], "is no CSV file"
    holes = tmp_path / "holes.csv"
    holes.write_text("r0,r1\n1,2\n,3\n")
    yield "holes", [*good[:-1], str(holes)], "empty cells"
    words = tmp_path / "words.csv"
    words.write_text("r0\nbus\n")
    yield "words", [*good[:-1], str(words)], "does not hold numbers"
    outside = tmp_path / "outside.csv"
    outside.write_text("r0\n7\n")
    yield "outside", [*good[:-1], str(outside)], ""
    for what, content, message in (
        ("index", ",r0\n0,1\n1,2\n", "a column without a name"),
        ("no header", "1\n2\n", "has no header"),
        ("long rows", "r0\n1,2\n3,1\n", "is no CSV file"),
        ("a long row", "r0\n1\n3,1\n", "is no CSV file"),
    ):
        path = tmp_path / f"{what}.csv"
        path.write_text(content)
        yield what, [*good[:-1], str(path)], message
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(b"r0\n" + bytes(range(48, 58)) * 99)[:30])
    yield "cut", [*good[:-1], str(cut)], "is no CSV file"
    yield "column twice", [*good, "--columns", "r0,r0"], "'r0' is there twice"
    latin = tmp_path / "latin.txt"
    latin.write_bytes("Zürich".encode("latin-1"))
    yield "latin", [*good, "--candidates", str(latin)], "no text in UTF-8"
    none = tmp_path / "none.csv"
    none.write_text("code,n\n")
    yield "no counts", [*good[:-1], str(none), "--counts"], "holds no counts"
    text = tmp_path / "text.json"
    text.write_text("no JSON")
    yield "json", ["estimate", "--channel", str(text), good[-1]], "is no JSON file"
    other = tmp_path / "other.json"
    other.write_text("[1]")
    yield "channel", ["estimate", "--channel", str(other), good[-1]], ""
    yield "missing", ["estimate", "--channel", str(tmp_path / "no.json"), good[-1]], "no.json"
    twice = tmp_path / "twice.csv"
    twice.write_text("code,n\n1,2\n1,3\n")
    yield "twice", [*good[:-1], str(twice), "--counts"], "list 1 twice"


def test_errors_are_one_line_and_a_status(tmp_path, krr, capsys):
    for what, arguments, message in broken(tmp_path, krr):
        assert main(arguments) == 2, what
        captured = capsys.readouterr()
        assert captured.out == "", what
        assert message in captured.err, what
        assert captured.err.count("\n") == 1, (what, captured.err)
        assert "Traceback" not in captured.err, what
