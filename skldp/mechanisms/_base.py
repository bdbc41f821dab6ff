"""What the mechanism transformers share: validate, delegate to a channel, keep it attached."""

from fractions import Fraction
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skldp._validation import check_choice, check_epsilon
from skldp.channels import (
    Alphabet,
    AttributeChannel,
    Channel,
    Codes,
    Hashing,
    Reports,
    as_channel,
    attach_channel,
    carried_encoding,
)
from skldp.exceptions import ChannelError, PrivacyWarning
from skldp.mechanisms._columns import read_columns

__all__ = ["MechanismTransformer"]


class _Randomizer(TransformerMixin, BaseEstimator):
    """Fit a channel, release reports. scikit-learn wraps `transform` for `set_output`."""

    def fit(self, X: Any = None, y: Any = None) -> Any:
        """Fix the channel: nothing is randomized, and with public categories nothing is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples,), default=None
            Values; only the number and the names of the columns are used, unless
            ``categories="auto"``. None: one column per alphabet in `categories`.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted transformer.

        Raises
        ------
        TypeError, ValueError
            If a parameter is wrong, or X is empty, sparse, or holds values that are missing or
            neither strings nor integers.
        """
        epsilon = check_epsilon(self.epsilon)
        check_choice(self.handle_unknown, "handle_unknown", ("error", "uniform"))
        given = _read_categories(self.categories)
        if X is None:
            alphabets: list[Any] = self._alphabets_without_data(given)
            self._forget_features(len(alphabets))
        else:
            columns = read_columns(self, X, reset=True)
            encoding = carried_encoding(X)
            if encoding is None:
                alphabets = self._alphabets_for(given, columns)
                self._check_columns(alphabets, columns)
            elif given is None:
                alphabets = list(encoding)
            else:
                raise ChannelError(
                    "The codes carry their own alphabet or hashing; leave categories at its "
                    "default."
                )
        share = Fraction(epsilon) / len(alphabets)
        self.channel_ = as_channel([self._make_channel(share, one) for one in alphabets])
        self._fitted_with = self._privacy_parameters()
        return self

    def transform(self, X: Any) -> Any:
        """Release a private report for every row of X."""
        check_is_fitted(self, "channel_")
        self._check_unchanged()
        check_choice(self.handle_unknown, "handle_unknown", ("error", "uniform"))
        columns = read_columns(self, X, reset=False)
        encoding = carried_encoding(X)
        if encoding is None:
            self._check_columns([one.encoding for one in self.channel_.attributes], columns)
            codes = self.channel_.encode(*columns)
        else:
            codes = X if isinstance(X, Codes) else Codes(np.column_stack(columns), encoding)
        if self.handle_unknown == "error" and codes.min() < 0:
            raise ValueError(
                f"X holds values that are not in the public alphabet of {type(self).__name__}; "
                "nothing was released. Add them to `categories`, or pass "
                'handle_unknown="uniform" to report a uniform symbol in their place.'
                + self._auto_advice()
            )
        return self.channel_.randomize(
            codes, handle_unknown=self.handle_unknown, random_state=self.random_state
        )

    def _make_channel(self, epsilon: Fraction, encoding: Alphabet | Hashing) -> AttributeChannel:
        raise NotImplementedError

    # -- alphabets ------------------------------------------------------------------------

    def _auto_advice(self) -> str:
        if not (isinstance(self.categories, str) and self.categories == "auto"):
            return ""
        return (
            ' The alphabet was learned from the data that fit saw (categories="auto"): in '
            "cross-validation, a fold can lack values that another one has."
        )

    def _alphabets_without_data(self, given: "list[Alphabet] | Alphabet | None") -> list[Alphabet]:
        if given is None:
            raise ValueError(
                'categories="auto" needs data to learn from: fit(X). Pass a public list of '
                "categories to fit on nothing but parameters."
            )
        return given if isinstance(given, list) else [given]

    def _alphabets_for(
        self, given: "list[Alphabet] | Alphabet | None", columns: list[NDArray[Any]]
    ) -> list[Alphabet]:
        if given is None:
            return self._learn_alphabets(columns)
        if isinstance(given, Alphabet):
            return [given] * len(columns)
        if len(given) != len(columns):
            raise ValueError(
                f"categories lists {len(given)} alphabets, but X has {len(columns)} columns."
            )
        return given

    def _learn_alphabets(self, columns: list[NDArray[Any]]) -> list[Alphabet]:
        alphabets = []
        for column in columns:
            symbols = sorted(set(column.tolist()))
            if len(symbols) < 2:
                raise ValueError(
                    "An alphabet cannot be learned from a column with one distinct value "
                    f"(n_samples={len(column)}): there would be nothing to hide it among. Pass "
                    "the public list: categories=[...], or an int k for 0..k-1."
                )
            alphabets.append(Alphabet.from_categories(symbols))
        sizes = ", ".join(str(one.n_categories) for one in alphabets)
        warn(
            f'categories="auto" learned the alphabet ({sizes} values) from the private data, and '
            "the reports make it public: that is not differentially private. Pass the public "
            "list instead: categories=[...], or an int k for 0..k-1.",
            PrivacyWarning,
            stacklevel=3,
        )
        return alphabets

    def _check_columns(self, alphabets: list[Any], columns: list[NDArray[Any]]) -> None:
        """Refuse negative numbers by name where no alphabet can hold them."""
        if self.handle_unknown != "error":
            return
        if not all(isinstance(alphabet, Alphabet) for alphabet in alphabets):
            return  # plain values behind an encoder: `encode` says what to do
        for alphabet, values in zip(alphabets, columns, strict=True):
            if alphabet.is_non_negative and values.dtype != object and values.min() < 0:
                raise ValueError(
                    f"Negative values in data passed to {type(self).__name__}: the public "
                    "alphabet has none; nothing was released." + self._auto_advice()
                )

    # -- fitted state ---------------------------------------------------------------------

    def _forget_features(self, n_features: int) -> None:
        self.n_features_in_ = n_features
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _privacy_parameters(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "categories": self.categories}

    def _check_unchanged(self) -> None:
        """Refuse to release under parameters that are no longer those on the estimator."""
        for name, fitted in self._fitted_with.items():
            current = getattr(self, name)
            if current is fitted or self._same_meaning(name, current, fitted):
                continue
            raise ChannelError(
                f"{name} was changed after fit, and the channel would still be the old one: "
                "call fit again before releasing anything."
            )

    def _same_meaning(self, name: str, current: Any, fitted: Any) -> bool:
        """Compare values of a parameter that are other objects, as after unpickling."""
        if name != "categories":
            return type(current) is type(fitted) and bool(current == fitted)
        return _read_categories(current) == _read_categories(fitted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.positive_only = self._is_positive_only()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _is_positive_only(self) -> bool:
        try:
            given = _read_categories(self.categories)
        except (TypeError, ValueError):
            return False
        if given is None or self.handle_unknown != "error":
            return False
        alphabets = given if isinstance(given, list) else [given]
        return all(one.is_non_negative for one in alphabets)


class MechanismTransformer(_Randomizer):
    """Base of the mechanisms: a transformer whose output keeps its channel."""

    channel_: Channel

    def set_output(self, *, transform: str | None = None) -> Any:
        """Choose the container of the reports.

        Parameters
        ----------
        transform : {"default", "pandas"}, default=None
            "default": `Reports`. "pandas": a DataFrame with the channel in its ``attrs``. None
            changes nothing.

        Returns
        -------
        self : object
            The transformer.

        Raises
        ------
        ValueError
            If "polars" is asked for: its frames cannot carry the channel.
        """
        if transform == "polars":
            raise ValueError(_NO_POLARS)
        return super().set_output(transform=transform)

    def transform(self, X: Any) -> Any:
        """Release a private report for every row of X.

        Each call is a new release, and costs ε again for every user in X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples,)
            Strings or integers.

        Returns
        -------
        Reports of shape (n_samples, `channel_.width`), or DataFrame after `set_output`
            The reports, with the channel attached.

        Raises
        ------
        ChannelError
            If parameters changed since fit, or X holds reports already.
        TypeError, ValueError
            If values are missing, of an unsupported type or, with ``handle_unknown="error"``, not
            in the alphabet. Nothing is released then.
        """
        released = super().transform(X)
        if isinstance(released, Reports):
            return released
        if not hasattr(released, "attrs"):
            raise ValueError(_NO_POLARS)
        return attach_channel(released, self.channel_)


_NO_POLARS = (
    "Polars frames cannot carry the channel that explains the reports. Use "
    'set_output(transform="default") or "pandas"; polars input is fine.'
)


def _read_categories(given: Any) -> "list[Alphabet] | Alphabet | None":
    """Return one alphabet per column, one for all columns, or None to learn them."""
    if isinstance(given, str):
        check_choice(given, "categories", ("auto",))
        return None
    if given is None:
        raise TypeError(
            "categories must be an int, a public list of values, a list of lists (one per column) "
            'or "auto", got None.'
        )
    if isinstance(given, list | tuple) and any(map(_is_list, given)):
        return [Alphabet.from_categories(one) for one in given]
    return Alphabet.from_categories(given)


def _is_list(value: Any) -> bool:
    return not isinstance(value, str | bytes) and hasattr(value, "__len__")
