"""scikit-learn's estimator checks and the family's own, on every estimator in many shapes.

Expected failures are strict, and stand in one table with their reason. Configurations that
scikit-learn's checks cannot feed (strings with handle_unknown="error", several attributes, RAPPOR
reports, whose width is fixed) are covered by the family's checks and the module tests.
"""

import pytest
import sklearn
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from skldp import FrequencyEstimator, KRRTransformer, RapporTransformer
from skldp.channels import KRRChannel
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
ESTIMATORS = [
    FrequencyEstimator(channel=KRRChannel(1.0, 64)),
    FrequencyEstimator(channel=KRRChannel(1.0, 64).to_dict()),
    FrequencyEstimator(channel=KRRChannel(1.0, 64), projection=None),
    FrequencyEstimator(channel=KRRChannel(1.0, 64), projection="normalize"),
    FrequencyEstimator(channel=KRRChannel(1.0, 64), decoder="inversion"),
    FrequencyEstimator(channel=KRRChannel(1.0, 64), decoder="maximum_likelihood"),
]


def expected_failures(estimator):
    return _RANDOMIZING if hasattr(estimator, "transform") else {}


@parametrize_with_checks(
    MECHANISMS + ESTIMATORS,
    expected_failed_checks=expected_failures,
    xfail_strict=True,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@parametrize_with_checks(
    MECHANISMS + ESTIMATORS, expected_failed_checks=expected_failures, xfail_strict=True
)
def test_scikit_learn_checks_with_metadata_routing(estimator, check):
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


def test_the_checks_are_not_empty():
    names = [check.func.__name__ for _, check in estimator_checks_generator(KRRTransformer())]
    assert len(names) > 40 and set(_RANDOMIZING) <= set(names)
    assert len(mechanism_checks()) >= 12
