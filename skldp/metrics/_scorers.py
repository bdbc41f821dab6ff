"""Scorers that compare a fitted distribution with the raw values of a fold, or with the truth.

They are callables ``(estimator, X, y=None)`` for ``scoring=`` of GridSearchCV and
cross_validate. `sklearn.metrics.make_scorer` wants a y, and there is none here.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skldp.channels import Alphabet
from skldp.exceptions import ChannelError
from skldp.mechanisms import read_columns
from skldp.metrics._losses import l1_loss, mse_loss

__all__ = ["FrequencyScorer", "l1_scorer", "make_frequency_scorer", "mse_scorer"]


class FrequencyScorer:
    """Score a fitted distribution by minus its loss; made by `make_frequency_scorer`.

    Parameters
    ----------
    loss : callable
        ``loss(true_frequencies, estimated_frequencies) -> float``, a module-level function.
    truth : array-like of shape (k,), mapping, or list of these, default=None
        Known frequencies; None takes the empirical ones of the X that is scored.
    """

    def __init__(self, loss: Callable[[Any, Any], Any], truth: Any = None) -> None:
        if not callable(loss):
            raise TypeError(f"loss must be callable, got {type(loss).__name__}.")
        self.loss = loss
        self.truth = truth

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Return minus the loss, averaged over the attributes."""
        server = estimator[-1] if hasattr(estimator, "steps") else estimator
        check_is_fitted(server, "counts_")
        estimated = _as_list(server.frequencies_)
        if self.truth is None:
            true = _empirical(estimator, X, _as_list(server.categories_))
        else:
            true = _known(self.truth, _as_list(server.categories_))
        losses = [self.loss(p, q) for p, q in zip(true, estimated, strict=True)]
        return -float(np.mean(losses))

    def __repr__(self) -> str:
        name = getattr(self.loss, "__name__", repr(self.loss))
        return f"make_frequency_scorer({name}{'' if self.truth is None else ', truth=...'})"


def make_frequency_scorer(loss: Callable[[Any, Any], Any], truth: Any = None) -> FrequencyScorer:
    """Make a scorer from a loss between distributions.

    Parameters
    ----------
    loss : callable
        ``loss(true_frequencies, estimated_frequencies) -> float`` on arrays of shape (k,), for
        example `l1_loss`. A module-level function, so that the scorer can be pickled for
        ``n_jobs=2``.
    truth : array-like of shape (k,), mapping from category to frequency, or list, default=None
        Known frequencies in the order of ``categories_`` (a list of them for several
        attributes). None compares with the empirical frequencies of the raw values that the
        scorer is called with; this needs a Pipeline with the mechanism as a step.

    Returns
    -------
    FrequencyScorer
        Greater is better: minus the loss, averaged over attributes.

    Notes
    -----
    A scorer without `truth` looks at raw values: what it returns is not private, and neither is
    the choice that a grid search makes with it. Tune on public or synthetic data.

    Values outside the alphabet (``handle_unknown="uniform"``) belong to no category: the
    empirical frequencies then sum to less than one, and a perfect score is out of reach.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import FrequencyEstimator, KRRTransformer
    >>> from skldp.metrics import l1_loss, l1_scorer, make_frequency_scorer
    >>> X = np.repeat([0, 1, 2], [5000, 3000, 2000])
    >>> pipeline = make_pipeline(
    ...     KRRTransformer(1.0, categories=3, random_state=0), FrequencyEstimator()
    ... ).fit(X)
    >>> bool(-0.1 < l1_scorer(pipeline, X) < 0)
    True
    >>> scorer = make_frequency_scorer(l1_loss, truth={0: 0.5, 1: 0.3, 2: 0.2})
    >>> scorer(pipeline[-1], None) == l1_scorer(pipeline, X)
    True
    """
    return FrequencyScorer(loss, truth)


l1_scorer = FrequencyScorer(l1_loss)
"""Minus the l1 loss against the raw values of the fold."""

mse_scorer = FrequencyScorer(mse_loss)
"""Minus the mean squared error against the raw values of the fold."""


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _known(truth: Any, categories: list[Any]) -> list[Any]:
    """Return known frequencies as one array per attribute."""
    listed = [truth] if len(categories) == 1 else list(truth)
    if len(listed) != len(categories):
        raise ValueError(f"truth must list frequencies for each of {len(categories)} attributes.")
    arrays = []
    for known, symbols in zip(listed, categories, strict=True):
        if hasattr(known, "to_dict"):  # a Series is indexed by category
            known = known.to_dict()
        if isinstance(known, Mapping):
            codes = Alphabet(len(symbols), symbols).lookup(list(known))
            if (codes < 0).any():
                raise ValueError("truth names categories that the estimator does not list.")
            frequencies = np.zeros(len(symbols))
            frequencies[codes] = list(known.values())
        else:
            frequencies = np.asarray(known, dtype=np.float64)
        if not ((frequencies >= 0).all() and abs(frequencies.sum() - 1.0) <= 1e-6):  # also NaN
            raise ValueError(
                "truth must be frequencies: not negative, with a sum of 1 (divide counts by their "
                "total)."
            )
        arrays.append(frequencies)
    return arrays


def _empirical(estimator: Any, X: Any, categories: list[Any]) -> list[Any]:
    """Return the frequencies of the raw values that the mechanism of a pipeline would see."""
    steps = [step for _, step in getattr(estimator, "steps", [])][:-1]
    # The raw values are those in front of the mechanism, or of the encoder before it.
    mechanisms = [i for i, step in enumerate(steps) if hasattr(step, "channel_")]
    positions = [i for i, step in enumerate(steps) if hasattr(step, "hashing_")] or mechanisms
    if len(mechanisms) != 1 or len(positions) != 1:
        raise ChannelError(
            "Without truth= a frequency scorer needs the raw values: a Pipeline with one "
            "mechanism as a step of its own. On a bare estimator, or with the mechanism inside "
            "another step, pass the known frequencies: make_frequency_scorer(loss, truth=...)."
        )
    first = steps[positions[0]]
    values = estimator[: positions[0]].transform(X) if positions[0] else X
    columns = read_columns(first, values, reset=False)
    tables = []
    for symbols, column in zip(categories, columns, strict=True):
        codes = Alphabet(len(symbols), symbols).lookup(column)
        if getattr(first, "handle_unknown", "uniform") == "error" and (codes < 0).any():
            raise ValueError(
                "X holds values that are not in the mechanism's alphabet, so the estimate cannot "
                "be compared with their frequencies. Give the mechanism the full public list "
                "(an alphabet learned from a training fold can lack values of the test fold)."
            )
        counts = np.bincount(codes[codes >= 0], minlength=len(symbols))
        tables.append(counts / len(codes))
    return tables
