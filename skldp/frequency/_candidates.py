"""Which values an estimator is to tell the frequencies of."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skldp.channels import Channel, CohortChannel, check_values
from skldp.exceptions import ChannelError

__all__ = ["Candidates", "read_candidates"]


class Candidates(NamedTuple):
    """The categories of one attribute.

    Attributes
    ----------
    values : ndarray of shape (k,)
        Integers, or object with str.
    is_complete : bool
        Whether they cover every value.
    """

    values: NDArray[Any]
    is_complete: bool


def read_candidates(estimator: Any, channel: Channel) -> list[Candidates]:
    """Return the categories of each attribute of a channel.

    Raises
    ------
    ChannelError
        If candidates are given for a channel that has no cohorts.
    TypeError, ValueError
        If an open alphabet has no candidates, or they are empty, repeated, missing, or of
        several types.
    """
    attributes = channel.attributes
    with_cohorts = [isinstance(one, CohortChannel) for one in attributes]
    given = estimator.candidates
    if given is not None and not any(with_cohorts):
        raise ChannelError(
            "candidates= is for cohorts of hashed values, and these reports are of a fixed "
            "alphabet, which names the categories. (If the values were hashed by a "
            "CohortHashEncoder, its output lost its description before the mechanism.)"
        )
    if not isinstance(estimator.complete, bool | np.bool_):
        raise TypeError(f"complete must be a boolean, got {type(estimator.complete).__name__}.")
    listed = [given] * len(attributes)
    if given is not None and sum(with_cohorts) > 1 and _is_nested(given):
        if len(given) != sum(with_cohorts):
            raise ValueError(
                f"candidates must be one list, or one for each of {sum(with_cohorts)} attributes."
            )
        remaining = iter(given)
        listed = [next(remaining) if one else None for one in with_cohorts]
    return [
        _for_attribute(attribute, one, bool(estimator.complete))
        for attribute, one in zip(attributes, listed, strict=True)
    ]


def _is_nested(given: Any) -> bool:
    return (
        isinstance(given, list | tuple)
        and len(given) > 0
        and not isinstance(given[0], str | bytes)
        and hasattr(given[0], "__len__")
    )


def _for_attribute(attribute: Any, given: Any, complete: bool) -> Candidates:
    if not isinstance(attribute, CohortChannel):
        return Candidates(attribute.alphabet.values, True)
    closed = attribute.hashing.alphabet
    if given is None:
        if closed is None:
            raise ValueError(
                "An open alphabet has no list of its own: pass candidates=, the public list of "
                "values whose frequencies are wanted."
            )
        return Candidates(closed.values, True)
    if isinstance(given, str | bytes) or not hasattr(given, "__len__"):
        raise TypeError("candidates must be a list of strings or integers.")
    values = check_values(given)
    if len(values) == 0:
        raise ValueError("candidates is empty: there is nothing to estimate.")
    distinct = set(values.tolist())
    if len(distinct) != len(values):
        raise ValueError("candidates must be distinct; some are listed more than once.")
    if closed is not None:
        if closed.lookup(values).min() < 0:
            raise ValueError("Some candidates are not in the closed alphabet of the encoder.")
        # Permutations keep the others out of a listed value's bucket: they are no even noise.
        if len(values) < closed.n_categories:
            raise ValueError(
                "A closed alphabet is estimated as a whole: leave candidates out, and select the "
                "categories of interest afterwards."
            )
    return Candidates(values, complete or closed is not None)
