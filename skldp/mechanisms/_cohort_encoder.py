"""Values to (cohort, bucket, ...): the front end of O-RR and O-RAPPOR."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skldp.channels import Alphabet, Codes, Hashing, attach_encoding, carried_encoding
from skldp.exceptions import ChannelError
from skldp.mechanisms._columns import input_names, read_columns
from skldp.random import random_integers, random_stream

__all__ = ["CohortHashEncoder"]


class _Encoder(TransformerMixin, BaseEstimator):
    """Fit the hashing, encode values. scikit-learn wraps `transform` for `set_output`."""

    def fit(self, X: Any = None, y: Any = None) -> Any:
        """Fix the hashing: nothing is learned from X but the number and names of its columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples,), default=None
            Values. None: one column.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted encoder.

        Raises
        ------
        ChannelError
            If X is encoded or private already.
        TypeError, ValueError
            If a parameter is wrong, or X is empty, sparse, or holds values that are missing or
            neither strings nor integers.
        """
        closed = None if self.alphabet is None else Alphabet.from_categories(self.alphabet)
        hashing = Hashing(self.n_buckets, self.n_cohorts, self.n_hashes, self.hash_key, closed)
        if X is None:
            self.n_features_in_ = 1
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        else:
            _read_values(self, X, reset=True)
        self.hashing_ = hashing
        self._fitted_with = {name: getattr(self, name) for name in _HASHING_PARAMETERS}
        return self

    def transform(self, X: Any, *, cohorts: Any = None) -> Any:
        """Encode values as cohorts and buckets."""
        check_is_fitted(self, "hashing_")
        self._check_unchanged()
        columns = _read_values(self, X, reset=False)
        table = self._cohorts(cohorts, columns)
        parts: list[NDArray[Any]] = []
        for column, of_column in zip(columns, table.T, strict=True):
            parts += [of_column[:, np.newaxis], self.hashing_.encode(column, of_column)]
        return Codes(np.hstack(parts), (self.hashing_,) * len(columns))

    def _check_unchanged(self) -> None:
        """Refuse to encode under parameters that are no longer those on the estimator."""
        for name, fitted in self._fitted_with.items():
            current = getattr(self, name)
            if current is fitted:
                continue
            if name == "alphabet" and current is not None and fitted is not None:
                # Equal lists that are other objects, as after unpickling.
                current, fitted = map(Alphabet.from_categories, (current, fitted))
            if type(current) is not type(fitted) or current != fitted:
                raise ChannelError(
                    f"{name} was changed after fit, and the hashing would still be the old one: "
                    "call fit again before encoding anything."
                )

    def _cohorts(self, given: Any, columns: list[NDArray[Any]]) -> NDArray[np.int64]:
        """Return cohorts of shape (n_samples, n_features), drawn where none are given."""
        shape = (len(columns[0]), len(columns))
        n_cohorts = self.hashing_.n_cohorts
        if given is None:
            seeded = self.random_state is not None
            context = [_content(column) for column in columns] if seeded else []
            stream = random_stream(self.random_state, "skldp.cohorts", n_cohorts, *context)
            drawn = random_integers(n_cohorts, shape[0] * shape[1], stream)
            return drawn.reshape(shape)
        if np.ma.is_masked(given):
            raise ValueError("cohorts are missing: some of them are masked.")
        cohorts = np.asarray(given)
        if cohorts.dtype.kind not in "iu":
            raise TypeError(f"cohorts must be integers, got dtype {cohorts.dtype}.")
        if cohorts.ndim == 1:
            cohorts = np.repeat(cohorts[:, np.newaxis], shape[1], axis=1)
        if cohorts.shape != shape:
            raise ValueError(
                f"cohorts must have a row per row of X: expected {shape} or ({shape[0]},), got "
                f"{cohorts.shape}."
            )
        if cohorts.min() < 0 or cohorts.max() >= n_cohorts:
            raise ValueError(
                f"cohorts must lie in 0..{n_cohorts - 1}. Cohorts that users keep belong to one "
                "value of n_cohorts: a search over n_cohorts must leave them to be drawn."
            )
        return cohorts.astype(np.int64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


class CohortHashEncoder(_Encoder):
    """Hash values of an open alphabet into cohorts and buckets.

    In front of `KRRTransformer` this is O-RR, in front of `RapporTransformer` O-RAPPOR. The output
    is encoded, NOT private: only the mechanism behind it makes it so. A user's cohort is drawn
    independently of the value and is public.

    Parameters
    ----------
    n_buckets : int, default=64
        Number of buckets k, at least 2. For O-RR near e^ε + 1; large (4096) for O-RAPPOR.
    n_cohorts : int, default=1
        Number of cohorts C. Candidates can be told apart while there are fewer than C (k - 1).
    n_hashes : int, default=1
        Number of hash functions h of a cohort, at most `n_buckets`; more than one needs RAPPOR,
        and rarely helps.
    alphabet : int, list, or None, default=None
        None leaves the alphabet open. A public list of values (or an int k for 0..k-1) closes it:
        buckets are then pseudo-random permutations of it modulo k, which spread evenly.
    hash_key : str, default=""
        Names the public hash family. Client and server need the same one. It is no secret, and
        is printed by ``repr``.
    random_state : None, int, Generator or RandomState, default=None
        Source of the cohorts where none are given. None is cryptographic.

    Attributes
    ----------
    hashing_ : Hashing
        The hash family.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the columns, where `fit` saw string names.

    See Also
    --------
    KRRTransformer, RapporTransformer : Mechanisms for the encoded values.
    skldp.channels.Hashing : The hash, specified to the byte.

    References
    ----------
    Kairouz, Bonawitz, Ramage (2016), Discrete distribution estimation under local privacy,
    section 5.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import CohortHashEncoder, FrequencyEstimator, KRRTransformer
    >>> words = ["ant"] * 3000 + ["bee"] * 2000 + ["cat"] * 1000
    >>> pipeline = make_pipeline(
    ...     CohortHashEncoder(16, 8, random_state=0),
    ...     KRRTransformer(3.0, random_state=0),
    ...     FrequencyEstimator(candidates=["ant", "bee", "dog"]),
    ... )
    >>> server = pipeline.fit(words)[-1]
    >>> server.detected().tolist()
    [True, True, False]
    """

    def __init__(
        self,
        n_buckets: int = 64,
        n_cohorts: int = 1,
        n_hashes: int = 1,
        *,
        alphabet: Any = None,
        hash_key: str = "",
        random_state: Any = None,
    ) -> None:
        self.n_buckets = n_buckets
        self.n_cohorts = n_cohorts
        self.n_hashes = n_hashes
        self.alphabet = alphabet
        self.hash_key = hash_key
        self.random_state = random_state

    def set_output(self, *, transform: str | None = None) -> Any:
        """Choose the container of the codes.

        Parameters
        ----------
        transform : {"default", "pandas"}, default=None
            "default": `Codes`. "pandas": a DataFrame with the hashing in its ``attrs``. None
            changes nothing.

        Returns
        -------
        self : object
            The encoder.

        Raises
        ------
        ValueError
            If "polars" is asked for: its frames cannot carry the hashing.
        """
        if transform == "polars":
            raise ValueError(_NO_POLARS)
        return super().set_output(transform=transform)

    def fit_transform(self, X: Any, y: Any = None, *, cohorts: Any = None) -> Any:
        """Fit the hashing and encode X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples,)
            Strings or integers.
        y : None
            Ignored.
        cohorts : array-like of int of shape (n_samples,) or (n_samples, n_features), default=None
            Cohorts that the users keep; drawn uniformly by default.

        Returns
        -------
        Codes of shape (n_samples, n_features * (1 + n_hashes))
            As `transform`.
        """
        return self.fit(X, y).transform(X, cohorts=cohorts)

    def transform(self, X: Any, *, cohorts: Any = None) -> Any:
        """Encode values as cohorts and buckets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples,)
            Strings or integers.
        cohorts : array-like of int of shape (n_samples,) or (n_samples, n_features), default=None
            Cohorts that the users keep; drawn uniformly by default. Metadata that can be routed:
            ``set_transform_request(cohorts=True)``.

        Returns
        -------
        Codes of shape (n_samples, n_features * (1 + n_hashes)), or DataFrame after `set_output`
            Columns (cohort, bucket, ...) for each column of X. Not private.

        Raises
        ------
        ChannelError
            If parameters of the hashing changed since fit, or X is encoded or private already.
        TypeError, ValueError
            If values are missing, of an unsupported type, or not in a closed alphabet; if cohorts
            are out of range.
        """
        encoded = super().transform(X, cohorts=cohorts)
        if isinstance(encoded, Codes):
            return encoded
        if not hasattr(encoded, "attrs"):
            raise ValueError(_NO_POLARS)
        return attach_encoding(encoded, (self.hashing_,) * self.n_features_in_)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return a name per column of the codes.

        Parameters
        ----------
        input_features : array-like of str of shape (`n_features_in_`,), default=None
            Names of the input columns; those seen by `fit`, or x0, x1, ..., by default.

        Returns
        -------
        ndarray of str, dtype object
            ``name_cohort``, ``name_bucket0`` and so on.
        """
        check_is_fitted(self, "hashing_")
        suffixes = ["cohort", *(f"bucket{j}" for j in range(self.hashing_.n_hashes))]
        names = input_names(self, input_features)
        return np.array(
            [f"{name}_{suffix}" for name in names for suffix in suffixes], dtype=object
        )


_HASHING_PARAMETERS = ("n_buckets", "n_cohorts", "n_hashes", "alphabet", "hash_key")

_NO_POLARS = (
    "Polars frames cannot carry the hashing that explains the codes. Use "
    'set_output(transform="default") or "pandas"; polars input is fine.'
)


def _read_values(encoder: Any, X: Any, *, reset: bool) -> list[NDArray[Any]]:
    if carried_encoding(X) is not None:
        raise ChannelError("X is encoded already; use one encoder per pipeline.")
    return read_columns(encoder, X, reset=reset)


def _content(column: NDArray[Any]) -> Any:
    """Return a column as something that a seeded stream can be keyed with."""
    if column.dtype != object:
        return column.astype(np.int64)
    lengths = np.fromiter(map(len, column), np.int64, len(column))
    return lengths, "".join(column)
