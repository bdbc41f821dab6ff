"""FrequencyEstimator: private reports in, a distribution with intervals out."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from scipy.stats import false_discovery_control
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skldp._validation import check_choice, check_level, unchanged_on_error
from skldp.channels import Channel, as_channel, carried_channel
from skldp.exceptions import ChannelError, DecodingError
from skldp.frequency._decoding import Decoding, read_settings
from skldp.frequency._reports import check_reports, count_vector, resolve_channel

__all__ = ["FrequencyEstimator"]


class FrequencyEstimator(BaseEstimator):
    """Estimate the distribution of values from their private reports.

    The estimator sees reports only. It reads the channel (mechanism, ε, alphabet) off the
    reports that a mechanism of skldp returns; reports from storage need ``channel=``. Without
    either it raises: a wrong channel would give a wrong distribution without an error. What it
    does is post-processing, and costs no privacy.

    Parameters
    ----------
    channel : Channel, dict, list of these, or None, default=None
        The channel of reports that do not carry theirs, as an object or its dictionary
        (`Channel.to_dict`), a list of one per attribute for several. A channel with one column
        applies to each column of the data. Must equal the carried channel where both are there.
    candidates : array-like of shape (S,), list of these, or None, default=None
        For reports of hashed values (`CohortHashEncoder`): the public list of values whose
        frequencies are wanted; a list of lists for several attributes. None takes the closed
        alphabet of the encoder; an open alphabet needs candidates.
    complete : bool, default=False
        Whether the candidates cover every value. If not, values that they lack are allowed for
        (as noise of mean zero), frequencies sum to at most 1, and ``unexplained_mass_`` estimates
        the rest. To ask the same reports for another list, merge them into a new estimator:
        ``FrequencyEstimator(candidates=others).merge(server)``.
    decoder : str, default="auto"
        For a fixed alphabet "inversion" or "maximum_likelihood"; for candidates "least_squares",
        "constrained_least_squares" or "maximum_likelihood"; "auto" is the first of each.

        - "inversion": the unbiased estimate.
        - "least_squares": unbiased too, equation (18), weighted by the reports of each cohort.
        - "constrained_least_squares": the same on the simplex.
        - "maximum_likelihood": the most likely distribution on the simplex, in closed form for
          k-RR. For RAPPOR it maximises the likelihood of the bits' counts as if bits were
          independent binomials (their dependence given the distribution, of order p_i p_j / n,
          is left out). For candidates by reweighted least squares.
    projection : {"auto", "simplex", "subsimplex", "normalize", None}, default="auto"
        What follows a linear decoder: the nearest distribution in ℓ2 ("simplex"); the nearest one
        with a sum of at most 1 ("subsimplex"); negative entries set to 0 and the rest divided by
        its sum ("normalize"); or nothing, which keeps the estimate unbiased, but possibly
        negative. "auto" is "simplex", or "subsimplex" where candidates do not cover everything.
        Neither projection always has the smaller error.
    constraints : callable, list, or None, default=None
        Public knowledge about the distribution, as a callable that takes a cvxpy variable p of
        shape (k,) and returns a list of cvxpy constraints, for example
        ``lambda p: [p[0] == 0.25, p[1] >= p[2]]``; for several attributes, a list with a callable
        or None for each. The estimate is then the weighted least-squares fit to the decoder's
        result under them, on the simplex with ``projection="simplex"``. Use a module-level
        function where the estimator must be pickled.

    Attributes
    ----------
    channel_ : Channel
        The channel used.
    frequencies_ : ndarray of float64 of shape (k,), or list of ndarray
        Estimated distribution over ``categories_``. This and the following are an array for one
        attribute, and a list of arrays for several.
    raw_frequencies_ : ndarray of float64 of shape (k,), or list of ndarray
        Unbiased estimate, before projection and constraints.
    unexplained_mass_ : float, or list of float
        Share of values that candidates lack: 0 for a complete list, otherwise one minus the sum
        of ``raw_frequencies_``, cut to [0, 1]. (A projection cuts negative noise off and keeps
        the positive one, so ``frequencies_`` sum to more where candidates are many and rare.)
    standard_errors_ : ndarray of float64 of shape (k,), or list of ndarray
        Estimated standard errors of ``raw_frequencies_``, users being a random sample; NaN for
        more candidates than the cohorts can tell apart. Computed when asked for.
    categories_ : ndarray of shape (k,), or list of ndarray
        The public alphabet or the candidates: int64, or object with str.
    counts_ : ndarray of int64 of shape (k,) or (n_cohorts, n_buckets), or list of ndarray
        Counts of the reports: the sufficient statistic that `partial_fit` and `merge` add up.
    n_reports_ : int, ndarray of int64 of shape (n_cohorts,), or list of these
        Number of reports.
    n_features_in_ : int
        Number of columns of a report.
    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the columns, where `fit` saw string names.

    See Also
    --------
    KRRTransformer, RapporTransformer : Mechanisms that release reports.
    skldp.plotting.FrequencyDisplay : A bar chart with intervals.

    Notes
    -----
    In a Pipeline with a mechanism, `fit`, `predict` and `score` each privatise their X afresh:
    every such call is another release of the users in X. `partial_fit` is called on the estimator
    itself: ``server.partial_fit(pipeline[:-1].transform(batch))``.

    References
    ----------
    Kairouz, Bonawitz, Ramage (2016), Discrete distribution estimation under local privacy,
    equations (6) and (11).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import FrequencyEstimator, KRRTransformer
    >>> values = np.repeat(["red", "green", "blue"], [6000, 3000, 1000])
    >>> colours = ["red", "green", "blue"]
    >>> pipeline = make_pipeline(
    ...     KRRTransformer(2.0, categories=colours, random_state=0), FrequencyEstimator()
    ... )
    >>> server = pipeline.fit(values)[-1]
    >>> bool(np.abs(server.frequencies_ - [0.6, 0.3, 0.1]).max() < 0.03)
    True
    >>> server.confidence_interval(level=0.95).shape
    (3, 2)
    """

    channel_: Channel
    counts_: Any
    n_reports_: Any
    n_features_in_: int
    feature_names_in_: Any
    _decoding: Decoding | None

    def __init__(
        self,
        channel: Any = None,
        *,
        candidates: Any = None,
        complete: bool = False,
        decoder: str = "auto",
        projection: str | None = "auto",
        constraints: Any = None,
    ) -> None:
        self.channel = channel
        self.candidates = candidates
        self.complete = complete
        self.decoder = decoder
        self.projection = projection
        self.constraints = constraints

    # -- fitting --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Estimate the distribution from a batch of reports, forgetting earlier ones.

        Parameters
        ----------
        X : Reports, array-like or DataFrame of int of shape (n_reports, width)
            Reports; whole floats count as integers. One dimension is one column.
        y : None
            Ignored.

        Returns
        -------
        self : FrequencyEstimator
            The fitted estimator.

        Raises
        ------
        ChannelError
            If there is no channel or two different ones, if the channel cannot have released X,
            or if it carries no information (ε = 0).
        ValueError
            If a parameter is wrong, X is empty, or the constraints cannot be met.
        """
        with unchanged_on_error(self):
            channel = self._channel_of(X, reset=True)
            read_settings(self, channel)
            reports = check_reports(self, X, channel, reset=True)
            self._set_statistics(channel, *self._count(channel, reports))
            self._decoding = self._decode()
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add a batch of reports; the distribution is decoded when it is next asked for.

        Parameters
        ----------
        X : Reports, array-like or DataFrame of int of shape (n_reports, width)
            Reports through the same channel as before.
        y : None
            Ignored.

        Returns
        -------
        self : FrequencyEstimator
            The estimator.

        Raises
        ------
        ChannelError, ValueError
            As `fit`, and if the channel is not that of the earlier batches. Nothing is added
            then.
        """
        with unchanged_on_error(self):
            reset = not self._has_statistics()
            channel = self._channel_of(X, reset=reset)
            self._require_same_channel(channel)
            read_settings(self, channel)
            reports = check_reports(self, X, channel, reset=reset)
            self._add(channel, *self._count(channel, reports))
        return self

    def merge(self, other: "FrequencyEstimator") -> Self:
        """Add the reports of another estimator, for example from another process or day.

        Parameters
        ----------
        other : FrequencyEstimator
            Fitted through the same channel; it is not changed.

        Returns
        -------
        self : FrequencyEstimator
            The estimator, with the counts of both.

        Raises
        ------
        ChannelError
            If the channels differ.
        """
        if not isinstance(other, FrequencyEstimator):
            raise TypeError(f"Can only merge a FrequencyEstimator, got {type(other).__name__}.")
        if other is self:
            raise ValueError(
                "An estimator cannot be merged with itself: every report would count twice."
            )
        check_is_fitted(other, "counts_")
        self._require_same_channel(other.channel_)
        resolve_channel(self.channel, other.channel_)
        read_settings(self, other.channel_)
        if not self._has_statistics():
            self.n_features_in_ = other.n_features_in_
            if hasattr(other, "feature_names_in_"):
                self.feature_names_in_ = other.feature_names_in_
        self._add(other.channel_, other._list(other.counts_), other._list(other.n_reports_))
        return self

    def fit_counts(self, counts: Any, n_reports: Any = None, *, channel: Any = None) -> Self:
        """Estimate from counts alone, such as a database's GROUP BY.

        Parameters
        ----------
        counts : array-like of int of shape (k,), mapping, Series; a list of them for several \
attributes
            For k-RR, how many reports are equal to each code 0..k-1. For RAPPOR, how many
            reports have each bit set. A mapping or Series goes from code to count, absent codes
            counting 0. For cohorts a table of shape (n_cohorts, n_buckets), or a mapping from
            (cohort, bucket).
        n_reports : int, array-like of int of shape (n_cohorts,), or a list of these, default=None
            Number of reports, for cohorts one each; may be left out for k-RR, where the counts
            sum to it.
        channel : Channel, dict or list, default=None
            Channel of the reports; that of the constructor by default.

        Returns
        -------
        self : FrequencyEstimator
            The fitted estimator.

        Raises
        ------
        ChannelError
            If no channel is known, or it cannot have released reports with these counts.
        """
        if channel is None and self.channel is None:
            raise ChannelError("Counts do not say which channel they came through: pass channel=.")
        used = resolve_channel(self.channel, None if channel is None else as_channel(channel))
        attributes = used.attributes
        several = len(attributes) > 1
        listed = list(counts) if several else [counts]
        totals = [n_reports] * len(listed)
        if several and isinstance(n_reports, list | tuple):
            totals = list(n_reports)
        if len(listed) != len(attributes) or len(totals) != len(attributes):
            raise ChannelError(f"Expected counts for {len(attributes)} attributes.")
        checked = [
            one.check_counts(count_vector(table, one), total)
            for one, table, total in zip(attributes, listed, totals, strict=True)
        ]
        if any(np.sum(total) < 1 for _, total in checked):
            raise ChannelError("The counts hold no reports at all.")
        read_settings(self, used)
        with unchanged_on_error(self):
            self._forget_features(used.width)
            self._set_statistics(used, [table for table, _ in checked], [n for _, n in checked])
            self._decoding = self._decode()
        return self

    # -- results --------------------------------------------------------------------------

    @property
    def frequencies_(self) -> Any:
        """Estimated distribution over ``categories_``."""
        return self._unlist([one.frequencies for one in self._decoded().estimates])

    @property
    def raw_frequencies_(self) -> Any:
        """Unbiased estimate, before projection and constraints."""
        return self._unlist([one.raw for one in self._decoded().estimates])

    @property
    def standard_errors_(self) -> Any:
        """Estimated standard errors of ``raw_frequencies_``."""
        return self._unlist(self._decoded().errors)

    @property
    def unexplained_mass_(self) -> Any:
        """Estimated frequency of everything that the categories do not list."""
        return self._unlist(self._decoded().unexplained)

    @property
    def categories_(self) -> Any:
        """The public alphabet."""
        return self._unlist(self._decoded().categories)

    def confidence_interval(self, level: float = 0.95, simultaneous: bool = False) -> Any:
        """Return an interval for the frequency of every category.

        Parameters
        ----------
        level : float, default=0.95
            Coverage, strictly between 0 and 1.
        simultaneous : bool, default=False
            Whether `level` is for all intervals at once (Bonferroni), or for each.

        Returns
        -------
        ndarray of float64 of shape (n, 2)
            Lower and upper ends, a row per category (several attributes one after the other).

        Notes
        -----
        The intervals cover the frequency in the population that the users are a random sample
        of; their share among the users themselves varies less. Each covers it with at least the
        given probability for every n, k and ε, since counts of reports are exactly binomial
        (Clopper-Pearson); for candidates they are normal, and asymptotic. With a projection,
        another decoder or constraints, they are cut to [0, 1] and extended to the returned
        frequency where that lies outside; they still cover the truth, and always hold the
        estimate, but are not centred on it.
        """
        return np.concatenate(self._intervals(level, simultaneous))

    def _intervals(self, level: float, simultaneous: bool) -> list[Any]:
        miss = 1.0 - check_level(level)
        decoding = self._decoded()
        if simultaneous:
            miss /= sum(len(one.raw) for one in decoding.estimates)
        return decoding.intervals(miss)

    def detected(self, alpha: float = 0.05, method: str = "bonferroni") -> Any:
        """Return which categories are really there: whose frequency is more than noise.

        Parameters
        ----------
        alpha : float, default=0.05
            "bonferroni": probability that anything absent is detected. "benjamini_hochberg":
            expected share of absent ones among the detected.
        method : {"bonferroni", "benjamini_hochberg"}, default="bonferroni"
            Correction for the number of categories.

        Returns
        -------
        ndarray of bool of shape (n,)
            True for each detected category, in the order of ``categories_`` (several attributes
            one after the other).

        Raises
        ------
        ValueError
            If there are no standard errors, for more candidates than the cohorts can tell apart.

        Notes
        -----
        The test is exact for k-RR and RAPPOR (binomial), and asymptotic for cohorts. Where the
        candidates do not cover everything, heavy strings that they lack are allowed for by the
        cohort-clustered standard errors.
        """
        alpha = check_level(alpha, "alpha")
        check_choice(method, "method", ("bonferroni", "benjamini_hochberg"))
        per_attribute = self._decoded().p_values()
        if any(np.isnan(values).all() for values in per_attribute):
            raise ValueError(
                "There are no standard errors: more candidates than the cohorts can tell apart. "
                "Use more cohorts or buckets, or fewer candidates."
            )
        # Single candidates that share every bucket have no error of their own: not detected.
        p_values = np.nan_to_num(np.concatenate(per_attribute), nan=1.0)
        if method == "bonferroni":
            return p_values <= alpha / len(p_values)
        return false_discovery_control(p_values) <= alpha

    def to_frame(self, level: float = 0.95, simultaneous: bool = False) -> Any:
        """Return the result as a pandas DataFrame, a row per category.

        Parameters
        ----------
        level, simultaneous : float, bool
            As in `confidence_interval`.

        Returns
        -------
        pandas.DataFrame
            Columns category, count (not for cohorts), frequency, raw_frequency, standard_error,
            lower and upper; with several attributes preceded by attribute (its number).
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas.") from error
        intervals = self._intervals(level, simultaneous)
        frames = [
            pd.DataFrame({**table, "lower": ends[:, 0], "upper": ends[:, 1]})
            for table, ends in zip(self._decoded().tables(), intervals, strict=True)
        ]
        frame = pd.concat(frames, ignore_index=True)
        return frame if len(frames) > 1 else frame.drop(columns="attribute")

    def predict_proba(self, X: Any) -> Any:
        """Return the posterior of the value behind every report.

        Parameters
        ----------
        X : Reports or array-like of int of shape (n_reports, width)
            Reports through the same channel.

        Returns
        -------
        ndarray of float64 of shape (n_reports, Σk)
            P(value | report) under the estimated distribution (projected onto the simplex if it
            is not on it); the blocks of several attributes stand side by side, and each sums
            to 1, or to less by the probability of a value that the candidates lack.
        """
        return np.hstack(
            [
                np.vstack([np.exp(joint - total) for joint, total in blocks])
                for blocks in self._log_joint(X)
            ]
        )

    def predict(self, X: Any) -> Any:
        """Return the most probable value behind every report.

        Parameters
        ----------
        X : Reports or array-like of int of shape (n_reports, width)
            Reports through the same channel.

        Returns
        -------
        ndarray of shape (n_reports,), or (n_reports, n_attributes) for several
            Categories.
        """
        log_joint = self._log_joint(X)  # before anything else: it checks X
        columns = [
            values[np.concatenate([joint.argmax(axis=1) for joint, _ in blocks])]
            for values, blocks in zip(self._decoded().categories, log_joint, strict=True)
        ]
        if len(columns) == 1:
            return columns[0]
        same = len({column.dtype for column in columns}) == 1
        return np.column_stack([c if same else c.astype(object) for c in columns])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood of reports under the estimated distribution.

        Parameters
        ----------
        X : Reports or array-like of int of shape (n_reports, width)
            Reports through the same channel. Compare scores only at equal ε and mechanism.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_reports,), default=None
            Weights of the reports.

        Returns
        -------
        float
            Mean of ln P(report), attributes taken as independent.
        """
        per_attribute = [
            np.concatenate([total[:, 0] for _, total in blocks]) for blocks in self._log_joint(X)
        ]
        return float(np.average(np.sum(per_attribute, axis=0), weights=sample_weight))

    # -- reading reports ------------------------------------------------------------------

    def _channel_of(self, X: Any, *, reset: bool) -> Channel:
        shape = np.shape(X)
        n_columns = shape[1] if len(shape) == 2 else 1
        if not reset:
            n_columns = self.n_features_in_
        return resolve_channel(self.channel, carried_channel(X), n_columns)

    def _require_same_channel(self, channel: Channel) -> None:
        if self._has_statistics() and channel != self.channel_:
            raise ChannelError(
                f"These reports came through another channel than the fitted one: {channel} and "
                f"{self.channel_}. Fit a new estimator for them."
            )

    def _log_joint(self, X: Any) -> list[Iterator[tuple[Any, Any]]]:
        """Read X, through the fitted channel, and return what each report says of its value."""
        check_is_fitted(self, "counts_")
        carried = carried_channel(X)
        if carried is not None:
            self._require_same_channel(carried)
        return self._decoded().log_joint(check_reports(self, X, self.channel_, reset=False))

    # -- statistics -----------------------------------------------------------------------

    @staticmethod
    def _count(channel: Channel, reports: np.ndarray) -> tuple[list[Any], list[int]]:
        parts = zip(channel.attributes, channel.split(reports), strict=True)
        tallies = [one.tally(part) for one, part in parts]
        return [counts for counts, _ in tallies], [n_reports for _, n_reports in tallies]

    def _has_statistics(self) -> bool:
        return hasattr(self, "counts_")

    def _set_statistics(self, channel: Channel, counts: list[Any], totals: list[int]) -> None:
        self.channel_ = channel
        self.counts_ = self._unlist(counts)
        self.n_reports_ = self._unlist(totals)
        self._decoding = None

    def _add(self, channel: Channel, counts: list[Any], totals: list[int]) -> None:
        if not self._has_statistics():
            self._set_statistics(channel, [table.copy() for table in counts], totals)
            return
        old_counts, old_totals = self._list(self.counts_), self._list(self.n_reports_)
        self._set_statistics(
            channel,
            [old + new for old, new in zip(old_counts, counts, strict=True)],
            [old + new for old, new in zip(old_totals, totals, strict=True)],
        )

    def _forget_features(self, n_features: int) -> None:
        self.n_features_in_ = n_features
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _list(self, value: Any) -> list[Any]:
        return value if isinstance(value, list) else [value]

    @staticmethod
    def _unlist(values: list[Any]) -> Any:
        return values[0] if len(values) == 1 else values

    def _decoded(self) -> Decoding:
        """Return the decoded counts; after `partial_fit` and `merge` they are decoded here."""
        check_is_fitted(self, "counts_")
        if self._decoding is None:
            try:
                self._decoding = self._decode()
            except ValueError as error:
                raise DecodingError(str(error)) from error
        return self._decoding

    def _decode(self) -> Decoding:
        settings = read_settings(self, self.channel_)
        return Decoding(
            self.channel_, self._list(self.counts_), self._list(self.n_reports_), settings
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        return tags
