"""Conformance checks of the mechanisms, beside scikit-learn's own.

scikit-learn's checks know nothing of privacy. These hold a mechanism to its promise: reports
stay in their domain, follow the exact probabilities of the channel, and lose no more than the
claimed ε; the channel survives whatever keeps the reports; counts merge.

A mechanism is a transformer with the parameters ``epsilon``, ``categories``, ``handle_unknown``
and ``random_state``, and a fitted ``channel_``. Every check takes an unfitted one, and clones it.
"""

import copy
import json
import pickle
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import sklearn
from scipy.stats import binom, chi2
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from skldp.channels import Channel, Reports
from skldp.exceptions import ChannelError
from skldp.frequency import FrequencyEstimator

__all__ = ["check_loss_bounded", "check_mechanism", "mechanism_checks"]

_FALSE_ALARM = 1e-6
_SMALL = 3  # categories in the checks that list every report


def check_loss_bounded(channel: Channel) -> None:
    """Check that the exact e^ε of a channel is at most the claimed one.

    Parameters
    ----------
    channel : Channel
        Any channel; its ratio is a fraction, and is compared with 100 digits of e^ε.

    Raises
    ------
    AssertionError
        If the channel delivers more privacy loss than it claims.
    """
    ratio = channel.max_likelihood_ratio()
    assert isinstance(ratio, Fraction), "max_likelihood_ratio must be an exact Fraction"
    assert ratio >= 1
    context = Context(prec=100, Emax=10**9, Emin=-(10**9))
    epsilon = Fraction(channel.epsilon)
    exponent = context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    # ln of the ratio, rounded up by more than the error of both operations.
    loss = context.ln(context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    slack = Decimal(10) ** -90
    assert loss <= exponent + slack * (1 + exponent), (
        f"{channel} claims epsilon={channel.epsilon} and delivers {loss}"
    )
    assert channel.realized_epsilon <= float(channel.epsilon)


def check_small_channel_is_exact(mechanism: Any) -> None:
    """Check the channel against every report listed: rows, loss, and the mean of the counts."""
    channel = _fitted(mechanism, categories=_SMALL).channel_
    matrix = channel.matrix()
    assert all(isinstance(entry, Fraction) for entry in matrix.flat)
    assert all(sum(row) == 1 for row in matrix), "every row must sum to 1 exactly"
    assert (matrix > 0).all()
    worst = max(max(column) / min(column) for column in matrix.T)
    assert worst == channel.max_likelihood_ratio()
    likelihood = np.exp(channel.log_likelihood(_every_report(channel)))
    np.testing.assert_allclose(likelihood.T, matrix.astype(float), rtol=1e-12)
    # The expected counts of one report whose value is x: offset, plus slope at x.
    counts = np.array([channel.count(row[np.newaxis]) for row in _every_report(channel)])
    means = matrix @ counts.astype(object)
    for x, j in product(range(_SMALL), repeat=2):
        assert means[x, j] == channel.offset + (channel.slope if x == j else 0)


def check_realized_epsilon(mechanism: Any) -> None:
    """Check that the realised ε never exceeds the claim, for one column and for several."""
    for epsilon in (0, 1e-6, 0.1, float(np.log(2)), 1.0, 2.0, 10.0, 36.5, 40.0, 100.0, 800.0):
        for categories in (2, 3, 257, [[3, 1, 2], ["a", "b"], 5]):
            fitted = _fitted(mechanism, epsilon=epsilon, categories=categories)
            assert float(fitted.channel_.epsilon) == epsilon, "epsilon must be that of the row"
            check_loss_bounded(fitted.channel_)


def check_reports_follow_channel(mechanism: Any) -> None:
    """Check frequencies of reports against the exact matrix, by a chi-square test at 1e-6."""
    n_reports = 30_000
    fitted = _fitted(mechanism, categories=_SMALL, random_state=20161)
    channel = fitted.channel_
    every = _every_report(channel)
    for symbol in range(_SMALL):
        reports = np.asarray(fitted.transform(np.full((n_reports, 1), symbol)))
        hits = (reports[:, np.newaxis, :] == every).all(axis=2)
        assert (hits.sum(axis=1) == 1).all(), "a report lies outside the output domain"
        expected = n_reports * channel.matrix()[symbol].astype(float)
        likely = expected >= 5
        observed = hits.sum(axis=0)
        statistic = ((observed - expected)[likely] ** 2 / expected[likely]).sum()
        assert statistic < chi2.isf(_FALSE_ALARM, likely.sum())


def check_every_count_follows_channel(mechanism: Any) -> None:
    """Check the counts of many categories, the last ones too, against their exact binomials.

    A z-test for each count, at a false-alarm rate of 1e-6 for all of them.
    """
    n_reports = 4_000
    for n_categories in (9, 100, 257):
        fitted = _fitted(mechanism, categories=n_categories, random_state=7)
        channel = fitted.channel_
        for symbol in (0, n_categories - 1):
            reports = fitted.transform(np.full((n_reports, 1), symbol))
            counts = channel.count(np.asarray(reports))
            rates = float(channel.offset) + float(channel.slope) * (
                np.arange(n_categories) == symbol
            )
            # Exact tails: rates can be small.
            tails = np.minimum(
                binom.cdf(counts, n_reports, rates), binom.sf(counts - 1, n_reports, rates)
            )
            assert tails.min() > _FALSE_ALARM / (12 * n_categories), "a count is impossible"


def check_domain(mechanism: Any) -> None:
    """Check that every report of every value lies in the channel's domain, at odd sizes."""
    for n_categories in (2, 7, 8, 9, 255, 256, 257, 300):
        fitted = _fitted(mechanism, categories=n_categories)
        reports = fitted.transform(np.arange(n_categories).reshape(-1, 1))
        assert reports.shape == (n_categories, fitted.channel_.width)
        fitted.channel_.check_reports(np.asarray(reports))
        assert len(fitted.get_feature_names_out()) == reports.shape[1]


def check_one_client(mechanism: Any) -> None:
    """Check that a single value can be privatised, with parameters alone to fit on."""
    symbols = ["no", "yes", "unsure"]
    fitted = clone(mechanism).set_params(categories=symbols).fit()
    report = fitted.transform([["yes"]])
    assert report.shape == (1, fitted.channel_.width)
    assert fitted.transform(["no"]).shape == report.shape


def check_strings(mechanism: Any) -> None:
    """Check that strings, integers and their order in the alphabet mean the same channel."""
    seeded = {"random_state": 3, "epsilon": 50.0}  # at ε = 50 reports tell the value
    words = ["pear", "apple", "fig"]
    fitted = _fitted(mechanism, categories=words, **seeded)
    server = FrequencyEstimator().fit(fitted.transform(np.array(["fig"] * 40 + ["pear"] * 60)))
    assert list(server.categories_) == words
    np.testing.assert_allclose(server.frequencies_, [0.6, 0.0, 0.4], atol=1e-6)
    assert set(server.predict(fitted.transform(["fig", "pear"]))) == {"fig", "pear"}


def check_channel_survives(mechanism: Any) -> None:
    """Check that what keeps rows keeps the channel, and that nothing else does."""
    fitted = _fitted(mechanism, categories=4)
    reports = fitted.transform(np.arange(4).repeat(5).reshape(-1, 1))
    channel = fitted.channel_
    assert isinstance(reports, Reports) and reports.channel == channel
    kept: Any
    for kept in (
        reports[3:7],
        reports[[1, 0]],
        reports[np.arange(20) % 2 == 0],
        reports.take([2, 1], axis=0),
        reports.copy(),
        copy.deepcopy(reports),
        pickle.loads(pickle.dumps(reports)),
        np.concatenate([reports, reports]),
    ):
        assert kept.channel == channel
    for lost in (reports + 1, reports[:, ::-1], np.hstack([reports, reports]), reports[0]):
        assert getattr(lost, "channel", None) is None
    assert Channel.from_dict(json.loads(json.dumps(channel.to_dict()))) == channel
    assert pickle.loads(pickle.dumps(fitted)).channel_ == channel
    assert copy.deepcopy(fitted).channel_ == channel
    unfitted = clone(fitted)
    assert not hasattr(unfitted, "channel_")
    try:
        unfitted.transform([[0]])
    except NotFittedError:
        pass
    else:
        raise AssertionError("an unfitted clone must not release anything")


def check_counts_merge(mechanism: Any) -> None:
    """Check that batches, merging and counts give the estimate of all reports at once."""
    fitted = _fitted(mechanism, categories=5, random_state=11)
    values = np.arange(5).repeat([40, 30, 20, 10, 0]).reshape(-1, 1)
    reports = fitted.transform(values)
    whole = FrequencyEstimator().fit(reports)
    streamed = FrequencyEstimator().partial_fit(reports[:13]).partial_fit(reports[13:])
    merged = FrequencyEstimator().fit(reports[:50])
    merged.merge(FrequencyEstimator().fit(reports[50:]))
    counted = FrequencyEstimator().fit_counts(
        whole.counts_, whole.n_reports_, channel=fitted.channel_.to_dict()
    )
    for other in (streamed, merged, counted):
        np.testing.assert_array_equal(other.counts_, whole.counts_)
        np.testing.assert_array_equal(other.frequencies_, whole.frequencies_)
        assert other.n_reports_ == whole.n_reports_


def check_noise_is_not_shared(mechanism: Any) -> None:
    """Check that batches, columns and calls do not repeat noise, and equal calls agree."""
    zeros = np.zeros((400, 1), dtype=int)
    secure = _fitted(mechanism, categories=8, epsilon=0.5)
    assert (np.asarray(secure.transform(zeros)) != np.asarray(secure.transform(zeros))).any()
    seeded = _fitted(mechanism, categories=8, epsilon=0.5, random_state=0)
    first = np.asarray(seeded.transform(zeros))
    np.testing.assert_array_equal(first, np.asarray(seeded.transform(zeros)))
    other = np.vstack([zeros, zeros[:1]])
    assert (first != np.asarray(seeded.transform(other))[:400]).any()
    symbols = list(range(8))
    pair = _fitted(mechanism, categories=[symbols, symbols], epsilon=1.0, random_state=0)
    left, right = pair.channel_.split(pair.transform(np.hstack([zeros, zeros])))
    assert (left != right).any()
    assert (left != first).any()


def check_bad_input_raises(mechanism: Any) -> None:
    """Check that nothing is released for missing, unknown or foreign values.

    scikit-learn's configuration must not switch any of it off.
    """
    fitted = _fitted(mechanism, categories=["a", "b"])
    numbers = _fitted(mechanism, categories=3)
    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
        rows: Any
        for rows in ([["a"], [None]], [["a"], [float("nan")]], [["a"], ["c"]], [[True]], [[1]]):
            _assert_raises((TypeError, ValueError), fitted.transform, rows)
        for rows in ([[0], [np.nan]], [[3]], [[-1]], [[0.5]], [["0"]], [[np.inf]]):
            _assert_raises((TypeError, ValueError), numbers.transform, rows)
        for epsilon in (-1.0, float("nan"), float("inf"), True, "1", None, 1 + 0j):
            bad = clone(mechanism).set_params(epsilon=epsilon, categories=3)
            _assert_raises((TypeError, ValueError), bad.fit, [[0]])
        for categories in (1, 0, True, [], ["a"], ["a", "a"], ["a", 1], [None, "a"], "letters"):
            bad = clone(mechanism).set_params(categories=categories)
            _assert_raises((TypeError, ValueError), bad.fit, [["a"]])
    _assert_raises(ChannelError, fitted.set_params(epsilon=2.0).transform, [["a"]])
    reports = numbers.transform([[0], [1]])
    _assert_raises(ChannelError, numbers.transform, reports)


def check_unknown_is_uniform(mechanism: Any) -> None:
    """Check that an unlisted value is reported as a uniform symbol, and stays in the domain."""
    n_reports = 20_000
    fitted = _fitted(
        mechanism, categories=4, epsilon=40.0, handle_unknown="uniform", random_state=5
    )
    reports = fitted.transform(np.full((n_reports, 1), 99))
    counts = FrequencyEstimator().fit(reports).counts_
    # At ε = 40 the counts are those of the uniform symbols.
    statistic = ((counts - n_reports / 4) ** 2 / (n_reports / 4)).sum()
    assert statistic < chi2.isf(_FALSE_ALARM, 3)


def check_pipeline_needs_no_parameter_twice(mechanism: Any) -> None:
    """Check that the estimator takes ε and the alphabet from the mechanism before it."""
    values = np.arange(3).repeat(50).reshape(-1, 1)
    pipeline = make_pipeline(
        clone(mechanism).set_params(categories=3, random_state=0), FrequencyEstimator()
    )
    for epsilon in (0.5, 3.0):
        pipeline[0].set_params(epsilon=epsilon)
        assert pipeline.fit(values)[-1].channel_.epsilon == epsilon
    _assert_raises(ChannelError, pipeline.set_params(**{_step(pipeline): 0.0}).fit, values)


_CHECKS: tuple[Callable[[Any], None], ...] = (
    check_small_channel_is_exact,
    check_realized_epsilon,
    check_reports_follow_channel,
    check_every_count_follows_channel,
    check_domain,
    check_one_client,
    check_strings,
    check_channel_survives,
    check_counts_merge,
    check_noise_is_not_shared,
    check_bad_input_raises,
    check_unknown_is_uniform,
    check_pipeline_needs_no_parameter_twice,
)


def mechanism_checks() -> tuple[Callable[[Any], None], ...]:
    """Return every check: functions of an unfitted mechanism that raise AssertionError.

    Returns
    -------
    tuple of callable
        For ``pytest.mark.parametrize("check", mechanism_checks())``.
    """
    return _CHECKS


def check_mechanism(mechanism: Any) -> None:
    """Run every check on a mechanism.

    Parameters
    ----------
    mechanism : estimator
        Unfitted; the checks set ``epsilon``, ``categories``, ``handle_unknown`` and
        ``random_state`` on clones, and leave its other parameters as they are.

    Raises
    ------
    AssertionError
        At the first check that fails.

    Examples
    --------
    >>> from skldp import RapporTransformer
    >>> from skldp.utils.estimator_checks import check_mechanism
    >>> check_mechanism(RapporTransformer(packed=True))
    """
    for check in mechanism_checks():
        check(mechanism)


def _fitted(mechanism: Any, **parameters: Any) -> Any:
    return clone(mechanism).set_params(**parameters).fit()


def _step(pipeline: Any) -> str:
    return f"{pipeline.steps[0][0]}__epsilon"


def _every_report(channel: Any) -> Any:
    """Return every report in the order of the columns of the matrix."""
    numbers = np.arange(channel.matrix().shape[1])[:, np.newaxis]
    if channel.width == 1:
        return channel.check_reports(numbers)
    return channel.check_reports(numbers >> np.arange(channel.width) & 1)


def _assert_raises(errors: Any, function: Callable[..., Any], *arguments: Any) -> None:
    try:
        function(*arguments)
    except errors as error:
        assert str(error), "an error must say what to do"
    else:
        raise AssertionError(f"nothing was raised for {arguments!r}")
