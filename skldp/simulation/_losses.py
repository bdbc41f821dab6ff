"""The losses of a mechanism over simulated trials, from counts and without users."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from skldp._validation import check_choice, check_integer, finite_floats
from skldp.channels import CohortChannel, SymbolChannel
from skldp.decoding import normalize_simplex, project_simplex, project_subsimplex
from skldp.frequency import FrequencyEstimator
from skldp.metrics import l1_loss, l2_loss, mse_loss, total_variation
from skldp.random import simulation_generator
from skldp.simulation._frames import import_pandas
from skldp.simulation._priors import DirichletPrior

__all__ = ["simulate_losses"]

FloatArray: TypeAlias = NDArray[np.float64]
Frequencies: TypeAlias = ArrayLike | Callable[[int, np.random.Generator], ArrayLike]
Decoded: TypeAlias = Iterator[tuple[str, bool, FloatArray]]

_MOST_USERS = int(np.iinfo(np.int64).max)  # counts are 64-bit integers
_BLOCK = 1 << 14  # counts that are simulated and decoded at a time: they stay in the cache
_LARGEST_SUM_ERROR = 1e-6  # of frequencies: what float32 or printed digits lose

_LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "l1": l1_loss,
    "l2": l2_loss,
    "mse": mse_loss,
    "total_variation": total_variation,
}
_PROJECTIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "none": lambda estimates: estimates,
    "simplex": project_simplex,
    "subsimplex": project_subsimplex,
    "normalize": normalize_simplex,
    "clip": lambda estimates: np.maximum(estimates, 0.0),
}
_SYMBOL_DECODERS = ("inversion", "maximum_likelihood")
_COHORT_DECODERS = ("least_squares", "constrained_least_squares", "maximum_likelihood")


def simulate_losses(
    channel: SymbolChannel | CohortChannel,
    p: Frequencies,
    n_users: int,
    n_trials: int,
    *,
    decoders: str | Sequence[str] = "auto",
    projections: str | Sequence[str | None] | None = "simplex",
    loss: str | Callable[[FloatArray, FloatArray], ArrayLike] = "l1",
    reference: str = "true",
    fresh_hashing: bool = False,
    random_state: Any = None,
) -> Any:
    """Simulate surveys, decode each in several ways, and return the losses.

    Every trial draws users from `p`, the counts of their reports with the exact joint law of the
    mechanism, and estimates from them. The cost does not depend on the number of users.

    Parameters
    ----------
    channel : KRRChannel, RapporChannel or CohortChannel
        The mechanism, for one attribute.
    p : array-like of shape (k,), or callable
        True frequencies, one per category of the channel; with cohorts one per candidate, which
        are those of the closed alphabet or 0, ..., k - 1. Or a callable ``p(n_trials, generator)``
        that returns frequencies of shape (n_trials, k), one distribution for each trial, such as
        `DirichletPrior`; it is called for blocks of trials.
    n_users : int
        Users of each trial, from 1 to 2^63 - 1.
    n_trials : int
        Number of independent trials, at least 1.
    decoders : str or sequence of str, default="auto"
        "inversion" or "maximum_likelihood"; with cohorts "least_squares",
        "constrained_least_squares" or "maximum_likelihood". "auto" is the first of them, the one
        that is linear.
    projections : str, None, or sequence of these, default="simplex"
        What is done with linear estimates: "simplex", "subsimplex", "normalize" (clip at zero and
        divide by the sum), "clip" (at zero, nothing else), "none" or None. The other decoders
        return distributions already: they are listed once, with the projection "none".
    loss : {"l1", "l2", "mse", "total_variation"} or callable, default="l1"
        Loss of `skldp.metrics`, or ``loss(truth, estimate)`` of two arrays of shape (n, k) that
        returns n losses. The arrays are read-only.
    reference : {"true", "sample"}, default="true"
        Whether estimates are compared with `p`, or with the frequencies among the users of the
        trial.
    fresh_hashing : bool, default=False
        With cohorts: whether every trial has hash functions of its own, which averages over hash
        families as `skldp.metrics.expected_l2_loss` does, or uses those of the channel.
    random_state : None, int, Generator or RandomState, default=None
        Source of the simulation. Nothing private is released here.

    Returns
    -------
    pandas.DataFrame
        One row per trial and way of decoding: columns ``trial`` (from 0), ``decoder``,
        ``projection`` and ``loss``.

    Raises
    ------
    ChannelError
        If reports of the channel do not depend on the values (ε = 0).
    ImportError
        If pandas is not installed.
    TypeError, ValueError
        If an argument is of the wrong type or out of range, or frequencies are not those of the
        channel's categories.

    See Also
    --------
    sweep : Many settings at once.
    skldp.metrics.expected_l2_loss : The exact mean for linear estimates without projection.

    Examples
    --------
    >>> from skldp.channels import KRRChannel
    >>> from skldp.simulation import DirichletPrior, simulate_losses
    >>> losses = simulate_losses(
    ...     KRRChannel(1.0, 16),
    ...     DirichletPrior(16),
    ...     n_users=10_000,
    ...     n_trials=200,
    ...     projections=["none", "simplex"],
    ...     random_state=0,
    ... )
    >>> losses.groupby("projection")["loss"].mean().round(3)
    projection
    none       0.321
    simplex    0.287
    Name: loss, dtype: float64
    """
    pd = import_pandas("simulate_losses")
    n_users = check_integer(n_users, "n_users", minimum=1, maximum=_MOST_USERS)
    n_trials = check_integer(n_trials, "n_trials", minimum=1)
    check_choice(reference, "reference", ("true", "sample"))
    measure = loss if callable(loss) else _LOSSES[check_choice(loss, "loss", tuple(_LOSSES))]
    names = _listed(projections, None, "none")
    for name in names:
        check_choice(name, "projections", tuple(_PROJECTIONS))
    truths = _frequencies(p)
    generator = simulation_generator(random_state)
    simulation = _simulation(channel, decoders, fresh_hashing, n_users)

    parts: dict[tuple[str, str], list[FloatArray]] = {}
    # The matrices of a trial are small: threads would cost several times what they save.
    with threadpool_limits(limits=1):
        for n_block in _blocks(n_trials, max(simulation.n_cells, _width(p))):
            truth = truths(n_block, generator)
            sample = generator.multinomial(n_users, truth) if reference == "sample" else None
            goal = truth if sample is None else sample / n_users
            for decoder, is_linear, estimates in simulation.decode(truth, sample, generator):
                # A loss that works in place would change what the next one is computed from.
                for array in (goal, estimates):
                    array.setflags(write=False)
                for name in names if is_linear else ["none"]:
                    losses = _measured(measure, goal, _PROJECTIONS[name](estimates))
                    parts.setdefault((decoder, name), []).append(losses)
    frames = [
        pd.DataFrame(
            {
                "trial": np.arange(n_trials),
                "decoder": decoder,
                "projection": projection,
                "loss": np.concatenate(losses),
            }
        )
        for (decoder, projection), losses in parts.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _measured(measure: Callable[..., Any], goal: FloatArray, estimates: FloatArray) -> FloatArray:
    """Return the losses of a block of trials."""
    losses = np.asarray(measure(goal, estimates), dtype=np.float64)
    if losses.shape != (len(goal),):
        raise ValueError(
            f"loss must return one number per trial, an array of shape ({len(goal)},); got shape "
            f"{losses.shape}."
        )
    return losses


class _Simulation(Protocol):
    """Trials of one channel."""

    @property
    def n_cells(self) -> int:
        """Numbers of a trial: counts, or values where these are known and more."""

    def decode(
        self, truth: FloatArray, sample: NDArray[np.int64] | None, generator: np.random.Generator
    ) -> Decoded:
        """Simulate trials; yield the name of a decoder, whether it is linear, and estimates.

        Parameters
        ----------
        truth : ndarray of shape (n_trials, k)
            Frequencies of each trial.
        sample : ndarray of int64 of shape (n_trials, k) or None
            True counts of each trial, where these have been drawn already.
        generator : numpy.random.Generator
            Source of the simulation.
        """


class _SymbolSimulation:
    """k-RR and RAPPOR: all trials of a block at once."""

    def __init__(self, channel: SymbolChannel, decoders: list[str], n_users: int) -> None:
        self.channel = channel
        self.decoders = decoders
        self.n_users = n_users

    @property
    def n_cells(self) -> int:
        return self.channel.n_categories

    def decode(
        self, truth: FloatArray, sample: NDArray[np.int64] | None, generator: np.random.Generator
    ) -> Decoded:
        given = truth if sample is None else sample
        counts = self.channel.simulate_counts(given, self.n_users, len(truth), generator)
        for decoder in self.decoders:
            if decoder == "maximum_likelihood":
                yield decoder, False, self.channel.maximum_likelihood(counts, self.n_users)
            else:
                yield decoder, True, self.channel.unbias(counts, self.n_users)


class _CohortSimulation:
    """O-RR and O-RAPPOR: a system of equations, and so a fit, for each trial."""

    def __init__(
        self, channel: CohortChannel, decoders: list[str], n_users: int, fresh_hashing: bool
    ) -> None:
        self.channel = channel
        self.decoders = decoders
        self.n_users = n_users
        self.fresh_hashing = fresh_hashing

    @property
    def n_cells(self) -> int:
        hashing = self.channel.hashing
        n_values = 0 if hashing.alphabet is None else hashing.alphabet.n_categories
        return max(hashing.n_cohorts * hashing.n_buckets, n_values)

    def decode(
        self, truth: FloatArray, sample: NDArray[np.int64] | None, generator: np.random.Generator
    ) -> Decoded:
        alphabet = self.channel.hashing.alphabet
        values = np.arange(truth.shape[1]) if alphabet is None else alphabet.values
        estimates = {decoder: np.empty(truth.shape) for decoder in self.decoders}
        for trial, given in enumerate(truth if sample is None else sample):
            channel = self._rehashed(generator) if self.fresh_hashing else self.channel
            counts, totals = channel.simulate_counts(values, given, self.n_users, generator)
            for decoder, rows in estimates.items():
                server = FrequencyEstimator(
                    channel, candidates=values, complete=True, decoder=decoder, projection=None
                )
                rows[trial] = server.fit_counts(counts, totals).frequencies_
        for decoder, rows in estimates.items():
            yield decoder, decoder == "least_squares", rows

    def _rehashed(self, generator: np.random.Generator) -> CohortChannel:
        hashing = self.channel.hashing
        key = f"{hashing.key} {generator.integers(2**63)}"
        return replace(self.channel, hashing=replace(hashing, key=key))


def _simulation(
    channel: Any, decoders: str | Sequence[str], fresh_hashing: bool, n_users: int
) -> _Simulation:
    """Return the trials of a channel, with decoders checked."""
    known: tuple[str, ...]
    if isinstance(channel, CohortChannel):
        known = _COHORT_DECODERS
    elif isinstance(channel, SymbolChannel):
        known = _SYMBOL_DECODERS
    else:
        raise TypeError(
            "channel must be a KRRChannel, RapporChannel or CohortChannel, got "
            f"{type(channel).__name__}. Of several attributes simulate each of channel.attributes."
        )
    names = _listed(decoders, "auto", known[0])
    for name in names:
        check_choice(name, "decoders", ("auto", *known))
    if isinstance(channel, CohortChannel):
        return _CohortSimulation(channel, names, n_users, bool(fresh_hashing))
    if fresh_hashing:
        raise ValueError("fresh_hashing is for channels with cohorts; this one hashes nothing.")
    return _SymbolSimulation(channel, names, n_users)


def _listed(
    names: str | Sequence[str | None] | None, alias: str | None, meaning: str
) -> list[Any]:
    """Return one name, or several, as a list without repetitions, the alias by its meaning."""
    one = names is None or isinstance(names, str)
    listed: list[Any] = [names] if one else list(names) if np.iterable(names) else []
    if not listed:
        raise ValueError("decoders and projections must be names or lists of these, not empty.")
    distinct: list[Any] = []
    for name in (meaning if name == alias else name for name in listed):
        if name not in distinct:
            distinct.append(name)
    return distinct


def _blocks(n_trials: int, n_cells: int) -> Iterator[int]:
    """Yield numbers of trials whose counts stay in the cache together."""
    n_rows = max(1, _BLOCK // n_cells)
    for start in range(0, n_trials, n_rows):
        yield min(n_rows, n_trials - start)


def _width(p: Frequencies) -> int:
    """Return the number of frequencies of a trial, where it is known; otherwise 0."""
    if isinstance(p, DirichletPrior):
        return p.n_categories
    return 0 if callable(p) else np.size(p)


def _frequencies(p: Frequencies) -> Callable[[int, np.random.Generator], FloatArray]:
    """Return a function that draws the frequencies of a block of trials."""
    if not callable(p):
        fixed = finite_floats(p, "p")
        if fixed.ndim != 1 or not fixed.size:
            raise ValueError(f"p must have shape (k,), or be a callable; got {fixed.shape}.")
        row = _distributions(fixed[np.newaxis])
        return lambda n_trials, generator: np.repeat(row, n_trials, axis=0)

    def draw(n_trials: int, generator: np.random.Generator) -> FloatArray:
        drawn = finite_floats(p(n_trials, generator), "p")
        if drawn.ndim != 2 or len(drawn) != n_trials:
            raise ValueError(
                f"p must return frequencies of shape ({n_trials}, k) for {n_trials} trials, got "
                f"shape {drawn.shape}."
            )
        return _distributions(drawn)

    return draw


def _distributions(rows: FloatArray) -> FloatArray:
    """Return rows of frequencies, checked and divided by their sums."""
    sums = rows.sum(axis=1, keepdims=True)
    if not (rows >= 0).all() or np.abs(sums - 1.0).max() > _LARGEST_SUM_ERROR:
        raise ValueError("Frequencies p must not be negative, and sum to 1.")
    distributions: FloatArray = rows / sums
    return distributions
