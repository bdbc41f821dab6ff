"""k-ary randomized response as a transformer."""

from fractions import Fraction
from typing import Any

from sklearn.base import OneToOneFeatureMixin

from skldp.channels import Alphabet, AttributeChannel, CohortChannel, Hashing, KRRChannel
from skldp.mechanisms._base import MechanismTransformer

__all__ = ["KRRTransformer"]


class KRRTransformer(OneToOneFeatureMixin, MechanismTransformer):
    """Privatise values by k-ary randomized response.

    Each value is reported truthfully or replaced by a uniform symbol of its alphabet. Every row
    of the output satisfies ε-local differential privacy: replacing a user's whole row by any
    other one changes the probability of any report by a factor of at most e^ε, as a statement
    about the integer probabilities really drawn from (``channel_.max_likelihood_ratio()``). With
    d columns each one spends ε/d.

    Meant to run where the user's value is. Estimate the distribution from the reports with
    `FrequencyEstimator`, which reads the channel off them.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy-loss bound in nats for a whole row, finite and >= 0.
    categories : int, list, list of lists, or "auto", default="auto"
        The public alphabet: an int k for 0..k-1; a list of strings or integers, for every
        column; a list of such lists (or ints), one per column. "auto" learns it from the data
        that `fit` sees, with a `PrivacyWarning`.
    handle_unknown : {"error", "uniform"}, default="error"
        Values outside the alphabet: raise before anything is released, or put a uniform symbol
        in their place (and randomize it), which raises every frequency by u/k for a share u.
    random_state : None, int, Generator or RandomState, default=None
        None draws from a cryptographic stream: the only private choice. Anything else is for
        simulations and tests, and whoever knows it can undo the noise. An int gives equal
        output for equal input, and other noise for other input: clients simulated one by one
        under one int would report the same whenever they hold the same, so pass them as one
        batch, or pass a Generator.

    Attributes
    ----------
    channel_ : KRRChannel or ProductChannel
        The channel of a row; its ``alphabet`` (per attribute) lists the symbols.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the columns, where `fit` saw string names.

    See Also
    --------
    RapporTransformer : Better for many categories at small ε.
    FrequencyEstimator : Turns the reports into a distribution.

    Notes
    -----
    `fit` and `transform` on the same users are one release per call of `transform`.

    References
    ----------
    Kairouz, Bonawitz, Ramage (2016), Discrete distribution estimation under local privacy,
    equation (4).

    Examples
    --------
    >>> from skldp import KRRTransformer
    >>> mechanism = KRRTransformer(1.0, categories=["no", "yes", "unsure"], random_state=0)
    >>> reports = mechanism.fit_transform(["yes", "no", "yes"])
    >>> reports.shape
    (3, 1)
    >>> reports.channel.n_categories
    3
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        categories: Any = "auto",
        handle_unknown: str = "error",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.categories = categories
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _make_channel(self, epsilon: Fraction, encoding: Alphabet | Hashing) -> AttributeChannel:
        if isinstance(encoding, Hashing):
            return CohortChannel.for_epsilon(epsilon, encoding, "krr")
        return KRRChannel(epsilon, encoding.n_categories, encoding.categories)
