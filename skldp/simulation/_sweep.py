"""Many calls of one function: in several processes, with a progress bar, resumable from disk.

A cell is the keyword arguments of one call. Its identity is the name of the function, the
arguments and the seed of the sweep, written as JSON; the SHA-256 digest of that names the file
of the cell, and the first half of the digest is the seed of the call. So a result depends
neither on the number of processes nor on which other cells there are, a changed argument is
another cell, and what an interrupted sweep has finished is found again.
"""

import dataclasses
import hashlib
import json
import os
import sys
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from skldp._validation import check_integer
from skldp.channels import Channel
from skldp.simulation._frames import import_pandas

__all__ = ["sweep"]

_FORMAT = 1  # of the files; a change makes all older ones other cells


def sweep(
    function: Callable[..., Any],
    cells: Iterable[Mapping[str, Any]],
    *,
    random_state: int,
    n_jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    description: str | None = None,
) -> Any:
    """Call a function for every cell of a table of settings, and return one table.

    Parameters
    ----------
    function : callable
        Called as ``function(**cell, random_state=seed)``; returns a pandas DataFrame of numbers
        and strings, as `simulate_losses` does; its index is not kept. It is what its module has
        under its name, for it is known by that name: where its code changes, empty the cache.
        Scripts, whose functions are all of the module ``__main__``, need a cache each.
    cells : iterable of mapping from str
        Keyword arguments of each call: numbers, strings, None, sequences and dictionaries of
        these, arrays, channels, frozen dataclasses, or functions defined in a module.
    random_state : int
        Seed of the sweep, at least 0. Every cell derives a seed of its own from it.
    n_jobs : int, default=None
        Processes, as joblib understands it: None is 1, -1 all processors. The result is the same.
    cache : path-like, default=None
        Directory for the results of finished cells, one file for each; made if it does not exist.
        Cells found there are not computed again.
    progress : bool, default=None
        Whether to show a progress bar, where tqdm is installed; None shows it on a terminal.
    description : str, default=None
        What stands before the bar; the name of the function by default.

    Returns
    -------
    pandas.DataFrame
        What the calls returned, in the order of the cells. Arguments that are numbers or strings
        come first, as columns; channels and dataclasses as their ``repr``. Columns hold what JSON
        can hold, whether they were just computed or read.

    Raises
    ------
    ImportError
        If pandas is not installed.
    TypeError
        If an argument of a cell has no identity, the function has no name to import it by, or
        what it returns is not a frame of numbers and strings with names that are strings.
    ValueError
        If there are no cells, one has an argument ``random_state``, the seed is negative, or a
        returned frame has a named index or a column of the name of an argument.

    Warns
    -----
    UserWarning
        If a file of the cache is damaged: the cell is then computed again.

    See Also
    --------
    simulate_losses : A function for it.

    Examples
    --------
    >>> from skldp.channels import KRRChannel
    >>> from skldp.simulation import simulate_losses, sweep
    >>> cells = [
    ...     {"channel": KRRChannel(1.0, 3), "p": [0.6, 0.3, 0.1], "n_users": n, "n_trials": 300}
    ...     for n in (1_000, 100_000)
    ... ]
    >>> losses = sweep(simulate_losses, cells, random_state=0)
    >>> losses.groupby("n_users")["loss"].median().round(3)
    n_users
    1000      0.095
    100000    0.009
    Name: loss, dtype: float64
    """
    pd = import_pandas("sweep")
    seed = check_integer(random_state, "random_state", minimum=0)
    name = _qualified_name(function)
    arguments = _arguments(cells)
    identities = [
        json.dumps(
            {"format": _FORMAT, "function": name, "seed": seed, "cell": _identity(cell)},
            sort_keys=True,
        )
        for cell in arguments
    ]
    directory = None if cache is None else Path(cache)
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)

    columns: dict[str, dict[str, list[Any]]] = {}
    waiting: dict[str, Mapping[str, Any]] = {}  # equal cells are computed once
    for identity, cell in zip(identities, arguments, strict=True):
        stored = None if directory is None else _read(_path(directory, identity), identity)
        if stored is None:
            waiting.setdefault(identity, cell)
        else:
            columns[identity] = stored
    tasks = (delayed(_run_cell)(function, cell, one, directory) for one, cell in waiting.items())
    results = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
    n_cells = len(columns) + len(waiting)
    with _progress_bar(n_cells, len(columns), description or function.__name__, progress) as bar:
        for identity, result in zip(waiting, results, strict=True):
            columns[identity] = result
            if bar is not None:
                bar.update()
    frames = [
        _labelled(pd.DataFrame(columns[identity]), cell)
        for identity, cell in zip(identities, arguments, strict=True)
    ]
    return pd.concat(frames, ignore_index=True)


def _run_cell(
    function: Callable[..., Any],
    cell: Mapping[str, Any],
    identity: str,
    directory: Path | None,
) -> dict[str, list[Any]]:
    """Compute a cell, store it if there is a directory, and return its columns."""
    seed = int(_digest(identity)[:32], 16)
    # One thread: the cells themselves run side by side, and sums in another order would
    # differ in their last digits.
    with threadpool_limits(limits=1):
        frame = function(**cell, random_state=seed)
    try:
        if not all(isinstance(column, str) for column in frame.columns):
            raise TypeError("names of columns must be strings.")
        text = json.dumps({column: frame[column].tolist() for column in frame.columns})
    except (AttributeError, TypeError) as error:
        raise TypeError(
            f"{function.__name__} must return a pandas DataFrame of numbers and strings: {error}"
        ) from error
    if any(name is not None for name in frame.index.names):
        raise ValueError(
            f"The index of the frame that {function.__name__} returns would be lost: make it "
            "columns, with frame.reset_index()."
        )
    if directory is not None:
        _write(_path(directory, identity), identity, text)
    columns: dict[str, list[Any]] = json.loads(text)
    return columns


# -- files ----------------------------------------------------------------------------------


def _path(directory: Path, identity: str) -> Path:
    return directory / f"{_digest(identity)}.json"


def _write(path: Path, identity: str, text: str) -> None:
    """Write a file that is either complete or not there, whenever the process ends."""
    record = {"cell": json.loads(identity), "checksum": _digest(text), "columns": text}
    # Processes of other machines and threads of this one may write the same cell.
    partial = path.with_suffix(f".{uuid.uuid4().hex}.partial")
    try:
        partial.write_text(json.dumps(record, indent=1), encoding="utf-8")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _read(path: Path, identity: str) -> dict[str, list[Any]] | None:
    """Return the columns of a stored cell; None where there is none, or it is damaged."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        record = json.loads(content)
        text = record["columns"]
        if record["cell"] != json.loads(identity) or record["checksum"] != _digest(text):
            raise ValueError("it is not what was written")
        columns: dict[str, list[Any]] = json.loads(text)
    except (ValueError, KeyError, TypeError, AttributeError):
        warnings.warn(f"{path} is damaged: its cell is computed again.", UserWarning, stacklevel=3)
        return None
    return columns


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# -- identities and labels ------------------------------------------------------------------


def _arguments(cells: Any) -> list[dict[str, Any]]:
    """Return the keyword arguments of each call, checked."""
    listed = [] if isinstance(cells, Mapping | str) else list(cells)
    if isinstance(cells, Mapping | str) or not all(isinstance(cell, Mapping) for cell in listed):
        raise TypeError(
            "cells must be a list of dictionaries, the keyword arguments of each call."
        )
    if not listed:
        raise ValueError("cells must not be empty: there is nothing to compute.")
    if any("random_state" in cell for cell in listed):
        raise ValueError(
            "random_state must not be an argument of a cell: every cell derives its own from the "
            "random_state of the sweep."
        )
    return [dict(cell) for cell in listed]


def _identity(value: Any) -> Any:
    """Return a JSON form that two values share only if they are equal and of one kind."""
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("Names of arguments, and keys of dictionaries in them, are strings.")
        return {"mapping": {key: _identity(item) for key, item in value.items()}}
    if isinstance(value, Channel):
        return {"channel": value.to_dict()}
    is_masked = isinstance(value, np.ma.MaskedArray)  # its mask is not among its bytes
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU" and not is_masked:
        array = np.ascontiguousarray(value)
        digest = hashlib.sha256(array.tobytes()).hexdigest()
        return {"array": [array.dtype.str, list(array.shape), digest]}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_identity(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: _identity(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
        return {"dataclass": _qualified_name(type(value)), "fields": fields}
    if callable(value):
        return {"function": _qualified_name(value)}
    raise TypeError(
        f"An argument of a cell is of type {type(value).__name__}, which has no form to recognise "
        "it by. Pass numbers, strings, arrays, channels or frozen dataclasses."
    )


def _qualified_name(function: Any) -> str:
    """Return the name that a function or class is imported by."""
    name = getattr(function, "__qualname__", "<unnamed>")
    module = getattr(function, "__module__", None)
    # Methods of two objects have one name, and so have what a decorator makes and what it is
    # made of: only what is found under the name may be known by it.
    found: Any = sys.modules.get(module) if isinstance(module, str) else None
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None or found != function:
        raise TypeError(
            f"{name} has no name to import it by: define functions of a sweep, and functions and "
            "classes among its arguments, at the top level of a module."
        )
    return f"{module}.{name}"


def _labelled(frame: Any, cell: Mapping[str, Any]) -> Any:
    """Put the arguments of a cell that fit into a table before its columns."""
    labels: dict[str, Any] = {}
    for name, value in cell.items():
        if isinstance(value, bool | int | float | str | np.generic):
            labels[name] = value
        elif isinstance(value, Channel) or dataclasses.is_dataclass(value):
            labels[name] = repr(value)
    repeated = sorted(labels.keys() & set(frame.columns))
    if repeated:
        raise ValueError(
            f"The returned columns {', '.join(repeated)} have the names of arguments of the cell; "
            "rename them."
        )
    for position, (name, value) in enumerate(labels.items()):
        frame.insert(position, name, value)
    return frame


def _progress_bar(total: int, done: int, description: str, progress: bool | None) -> Any:
    """Return a context that gives a progress bar, or None where there is none to show."""
    if progress is False:
        return nullcontext()
    try:
        from tqdm import tqdm
    except ImportError:
        return nullcontext()
    hidden = None if progress is None else False  # None: unless it is a terminal
    return tqdm(total=total, initial=done, desc=description, unit="cell", disable=hidden)
