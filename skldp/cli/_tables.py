"""Reading tables from files in batches, so that memory does not grow with their length."""

import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FORMATS", "read_batches"]

FORMATS = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
_ROWS = 1 << 18


def read_batches(path: Path, columns: list[str] | None, file_format: str | None) -> Iterator[Any]:
    """Yield the columns of a file, a pandas DataFrame at a time.

    Parameters
    ----------
    path : Path
        CSV with a header, which may be compressed (.csv.gz), Parquet, or Arrow (IPC file, also
        called Feather).
    columns : list of str or None
        Which columns; None takes them all, except for a pandas index in Parquet and Arrow.
    file_format : {"csv", "parquet", "arrow"} or None
        None goes by the ending of the name.

    Yields
    ------
    pandas.DataFrame
        Up to 2^18 rows; at least one frame, which is empty where the file is.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ImportError
        If pandas, or for Parquet and Arrow pyarrow, is not installed.
    ValueError
        If the format is unknown, a column is missing or there twice, a CSV has no header or
        columns without a name, or the file cannot be read as what it is said to be.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    if file_format is None:
        name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
        file_format = FORMATS.get(name.suffix.lower())
        if file_format is None:
            raise ValueError(
                f"cannot tell the format of {path.name} by its ending: pass --format csv, parquet "
                "or arrow"
            )
    reader = {"csv": _csv, "parquet": _parquet, "arrow": _arrow}[file_format]
    return reader(path, columns)


def as_rows(frame: Any) -> NDArray[Any]:
    """Return reports as a matrix: numeric columns, or one column of equally long byte strings."""
    if frame.shape[1] == 1 and frame.iloc[:, 0].map(type).eq(bytes).all() and len(frame):
        blobs = frame.iloc[:, 0].tolist()
        if len({*map(len, blobs)}) != 1:
            raise ValueError("the byte strings of the reports differ in length")
        return np.frombuffer(b"".join(blobs), dtype=np.uint8).reshape(len(blobs), -1)
    if frame.isna().to_numpy().any():
        raise ValueError("the file has empty cells: drop these rows")
    wrong = [name for name, dtype in frame.dtypes.items() if dtype.kind not in "iuf"]
    if wrong:
        raise ValueError(f"column {wrong[0]!r} does not hold numbers; choose with --columns")
    rows: NDArray[Any] = frame.to_numpy()
    return rows


def _checked(available: list[str], columns: list[str] | None, path: Path) -> list[str]:
    missing = [name for name in columns or () if name not in available]
    if missing:
        raise ValueError(
            f"{path.name} has no column {missing[0]!r}; it has {', '.join(map(repr, available))}"
        )
    chosen = available if columns is None else columns
    twice = [name for name, number in Counter(chosen).items() if number > 1]
    if twice:
        raise ValueError(f"column {twice[0]!r} is there twice")
    return chosen


def _check_header(names: list[str], path: Path) -> None:
    """Raise where the first line is a row of data, or the first column a row index."""
    unnamed = [name for name in names if name.startswith("Unnamed: ")]
    if unnamed:
        raise ValueError(
            f"{path.name} has a column without a name, such as a row index: choose with --columns"
        )
    # A frame without names is written with 0, 1, ... for a header.
    if names != [*map(str, range(len(names)))] and all(map(_is_number, names)):
        raise ValueError(f"{path.name} has no header: its first line holds numbers")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _csv(path: Path, columns: list[str] | None) -> Iterator[Any]:
    pandas = _pandas()
    try:
        # Rows longer than the header raise here; pandas may make their first column an index.
        pandas.read_csv(path, header=None, nrows=2)
        names = list(pandas.read_csv(path, nrows=0).columns)
        if columns is None:
            _check_header(names, path)
        chosen = _checked(names, columns, path)
        # Not with usecols, which hides that a row is too long.
        with pandas.read_csv(path, chunksize=_ROWS) as frames:
            for frame in frames:
                yield frame[chosen]
    except (
        pandas.errors.ParserError,
        pandas.errors.EmptyDataError,
        UnicodeDecodeError,
        EOFError,
        zlib.error,
    ) as error:
        raise ValueError(f"{path.name} is no CSV file: {error}") from None


def _parquet(path: Path, columns: list[str] | None) -> Iterator[Any]:
    pyarrow, _ = _arrow_library(), _pandas()
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            chosen = _checked(_names(file.schema_arrow, columns), columns, path)
            empty = True
            for batch in file.iter_batches(batch_size=_ROWS, columns=chosen):
                empty = False
                yield batch.to_pandas(ignore_metadata=True)[chosen]
            if empty:
                yield file.schema_arrow.empty_table().to_pandas(ignore_metadata=True)[chosen]
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path.name} is no Parquet file: {_first_line(error)}") from None


def _arrow(path: Path, columns: list[str] | None) -> Iterator[Any]:
    pyarrow, _ = _arrow_library(), _pandas()
    from pyarrow.ipc import open_file

    try:
        with pyarrow.memory_map(str(path)) as source, open_file(source) as file:
            chosen = _checked(_names(file.schema, columns), columns, path)
            if file.num_record_batches == 0:
                yield file.schema.empty_table().to_pandas(ignore_metadata=True)[chosen]
            for index in range(file.num_record_batches):
                yield file.get_batch(index).select(chosen).to_pandas(ignore_metadata=True)
    except pyarrow.ArrowException as error:
        raise ValueError(
            f"{path.name} is no Arrow file (a stream cannot be read): {_first_line(error)}"
        ) from None


def _names(schema: Any, columns: list[str] | None) -> list[str]:
    """Return the columns that may be asked for; without a choice, a pandas index is none."""
    index = () if columns else (schema.pandas_metadata or {}).get("index_columns", ())
    return [name for name in schema.names if name not in index]


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            'files are read with pandas, which is not installed: pip install "skldp[cli]"'
        ) from error
    return pandas


def _arrow_library() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "Parquet and Arrow files are read with pyarrow, which is not installed: "
            'pip install "skldp[cli]"'
        ) from error
    return pyarrow
