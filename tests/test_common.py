"""scikit-learn's estimator checks and the family's own, on every estimator in many shapes.

Expected failures are strict, and stand in one table with their reason. Configurations that
scikit-learn's checks cannot feed (strings with handle_unknown="error", several attributes, RAPPOR
reports, whose width is fixed) are covered by the family's checks and the module tests.
"""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from skldp import (
    ADPMMeanEstimator,
    AffineMeanEstimator,
    CohortHashEncoder,
    FrequencyEstimator,
    KRRTransformer,
    LocalMeanEstimator,
    OnlineCollaborativeMean,
    ProportionalMeanEstimator,
    RapporTransformer,
    SamplingMeanEstimator,
    ThresholdMeanEstimator,
    UniformMeanEstimator,
)
from skldp.channels import Alphabet, KRRChannel
from skldp.utils.estimator_checks import mechanism_checks

# The checks fit without a public alphabet, and that warns, as it should.
pytestmark = pytest.mark.filterwarnings("ignore::skldp.PrivacyWarning")


_RANDOMIZING = {
    "check_methods_sample_order_invariance": "noise depends on the whole batch, by design",
    "check_methods_subset_invariance": "noise depends on the whole batch, by design",
}

MECHANISMS = [
    KRRTransformer(),
    KRRTransformer(categories=64),
    KRRTransformer(categories=list(range(64))),
    KRRTransformer(categories=8, handle_unknown="uniform"),
    RapporTransformer(),
    RapporTransformer(categories=64),
    RapporTransformer(categories=list(range(64))),
    RapporTransformer(categories=8, handle_unknown="uniform"),
    RapporTransformer(categories=64, packed=True),
]
ENCODERS = [
    CohortHashEncoder(),
    CohortHashEncoder(n_cohorts=8),
    CohortHashEncoder(n_cohorts=4, n_hashes=2),
    CohortHashEncoder(alphabet=list(range(200))),
]
ESTIMATORS = [
    FrequencyEstimator(channel=KRRChannel(1.0, 64)),
    FrequencyEstimator(channel=KRRChannel(1.0, 64).to_dict()),
    FrequencyEstimator(channel=KRRChannel(1.0, 64), projection=None),
    FrequencyEstimator(channel=KRRChannel(1.0, 64), projection="normalize"),
    FrequencyEstimator(channel=KRRChannel(1.0, 64), decoder="inversion"),
    FrequencyEstimator(channel=KRRChannel(1.0, 64), decoder="maximum_likelihood"),
]
MEANS = [
    ADPMMeanEstimator(bounds=(0, 1)),
    ADPMMeanEstimator(bounds=(0, 1), clip_output=False),
    ADPMMeanEstimator(bounds=(0, 1), solver="cvxpy"),
    ADPMMeanEstimator(bounds=(0, 1), variance=0.1),
    ADPMMeanEstimator(bounds=(0, 1), noise="gaussian"),
    UniformMeanEstimator(bounds=(0, 1)),
    ProportionalMeanEstimator(bounds=(0, 1)),
    ThresholdMeanEstimator(bounds=(0, 1), noise="gaussian"),
    AffineMeanEstimator(bounds=(0, 1), weights=np.sqrt),
    SamplingMeanEstimator(bounds=(0, 1)),
    LocalMeanEstimator(bounds=(0, 1)),
    LocalMeanEstimator(bounds=(0, 1), noise="gaussian"),
    OnlineCollaborativeMean(bounds=(0, 1)),
    OnlineCollaborativeMean(bounds=(0, 1), first_block=4),
    OnlineCollaborativeMean(bounds=(0, 1), first_block=4, noise="gaussian", delta=1e-6),
    OnlineCollaborativeMean(bounds=(0, 1), first_block=4, schedule="restricted_round_robin"),
    OnlineCollaborativeMean(bounds=(0, 1), release="tree", horizon=255),
]


def expected_failures(estimator):
    if getattr(estimator, "n_cohorts", None) == 1:
        return {}  # nothing is drawn
    return _RANDOMIZING if hasattr(estimator, "transform") else {}


@parametrize_with_checks(
    MECHANISMS + ENCODERS + ESTIMATORS,
    expected_failed_checks=expected_failures,
    xfail_strict=True,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@parametrize_with_checks(
    MECHANISMS + ENCODERS + ESTIMATORS,
    expected_failed_checks=expected_failures,
    xfail_strict=True,
)
def test_scikit_learn_checks_with_metadata_routing(estimator, check):
    with sklearn.config_context(enable_metadata_routing=True):
        check(estimator)


@parametrize_with_checks(MEANS)
def test_scikit_learn_checks_of_means(estimator, check):
    check(estimator)


@parametrize_with_checks(MEANS)
def test_scikit_learn_checks_of_means_with_metadata_routing(estimator, check):
    with sklearn.config_context(enable_metadata_routing=True):
        check(estimator)


@pytest.mark.parametrize("check", mechanism_checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "mechanism",
    [KRRTransformer(), RapporTransformer(), RapporTransformer(packed=True)],
    ids=["krr", "rappor", "rappor-packed"],
)
def test_mechanism_checks(mechanism, check):
    check(mechanism)


class _Hashed(TransformerMixin, BaseEstimator):
    """A closed CohortHashEncoder and a mechanism as one mechanism, for the family's checks.

    The categories are the encoder's alphabet, each with a bucket of its own in every cohort.
    """

    def __init__(
        self,
        mechanism=None,
        n_cohorts=1,
        *,
        epsilon=1.0,
        categories="auto",
        handle_unknown="error",
        random_state=None,
    ):
        self.mechanism = mechanism
        self.n_cohorts = n_cohorts
        self.epsilon = epsilon
        self.categories = categories
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def fit(self, X=None, y=None):
        listed = self.categories
        is_nested = isinstance(listed, list) and any(
            hasattr(one, "__len__") and not isinstance(one, str) for one in listed
        )
        # Several columns are hashed alike by one encoder: the first alphabet serves all of them.
        alphabet = Alphabet.from_categories(listed[0] if is_nested else listed)
        columns = len(listed) if is_nested else 1
        self.encoder_ = CohortHashEncoder(
            2 * alphabet.n_categories,
            self.n_cohorts,
            alphabet=alphabet,
            random_state=self.random_state,
        )
        rows = np.repeat(alphabet.values[:1, np.newaxis], columns, axis=1)
        self.mechanism_ = clone(self.mechanism).set_params(
            epsilon=self.epsilon, random_state=self.random_state
        )
        self.mechanism_.fit(self.encoder_.fit_transform(rows))
        return self

    def transform(self, X):
        check_is_fitted(self, "mechanism_")
        self.mechanism_.set_params(epsilon=self.epsilon)
        return self.mechanism_.transform(self.encoder_.transform(X))

    def get_feature_names_out(self, input_features=None):
        return self.mechanism_.get_feature_names_out()

    @property
    def channel_(self):
        return self.mechanism_.channel_


# Not here: checks that list the reports of a symbol channel (test_cohort_channel does), and
# those of unlisted values, which an encoder with a closed alphabet refuses.
_COHORT_CHECKS = (
    "check_realized_epsilon",
    "check_domain",
    "check_one_client",
    "check_strings",
    "check_channel_survives",
    "check_noise_is_not_shared",
    "check_bad_input_raises",
)
_ONE_COHORT_CHECKS = (*_COHORT_CHECKS, "check_counts_merge")


@pytest.mark.parametrize("check", _ONE_COHORT_CHECKS)
@pytest.mark.parametrize("n_cohorts", [1, 4])
@pytest.mark.parametrize(
    "mechanism",
    [KRRTransformer(), RapporTransformer(), RapporTransformer(packed=True)],
    ids=["krr", "rappor", "rappor-packed"],
)
def test_mechanism_checks_behind_an_encoder(mechanism, n_cohorts, check):
    if n_cohorts > 1 and check not in _COHORT_CHECKS:
        pytest.skip("compares one number of reports")
    by_name = {one.__name__: one for one in mechanism_checks()}
    by_name[check](_Hashed(mechanism, n_cohorts))


def test_the_checks_are_not_empty():
    names = [check.func.__name__ for _, check in estimator_checks_generator(KRRTransformer())]
    assert len(names) > 40 and set(_RANDOMIZING) <= set(names)
    assert len(mechanism_checks()) >= 12
