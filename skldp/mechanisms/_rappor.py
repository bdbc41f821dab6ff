"""k-RAPPOR as a transformer."""

from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skldp.channels import Alphabet, AttributeChannel, CohortChannel, Hashing, RapporChannel
from skldp.mechanisms._base import MechanismTransformer
from skldp.mechanisms._columns import input_names

__all__ = ["RapporTransformer"]


class RapporTransformer(MechanismTransformer):
    """Privatise values by k-RAPPOR (basic one-time RAPPOR): flipped one-hot bits.

    Each value becomes a one-hot row of bits, and every bit is flipped with a probability near
    1 / (1 + e^(ε/2)). Every row of the output satisfies ε-local differential privacy: replacing
    a user's whole row by any other one changes the probability of any report by a factor of at
    most e^ε, as a statement about the integer probabilities really drawn from
    (``channel_.max_likelihood_ratio()``). With d columns each one spends ε/d.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy-loss bound in nats for a whole row, finite and >= 0.
    categories : int, list, list of lists, or "auto", default="auto"
        The public alphabet: an int k for 0..k-1; a list of strings or integers, for every
        column; a list of such lists (or ints), one per column. "auto" learns it from the data
        that `fit` sees, with a `PrivacyWarning`.
    packed : bool, default=False
        Return ⌈k/8⌉ bytes per attribute instead of k columns of 0 and 1.
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
    channel_ : RapporChannel or ProductChannel
        The channel of a row; its ``alphabet`` (per attribute) lists the symbols.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the columns, where `fit` saw string names.

    See Also
    --------
    KRRTransformer : Smaller reports; better for few categories or large ε.
    FrequencyEstimator : Turns the reports into a distribution.

    Notes
    -----
    Every call of `transform` is a release of its own. This is the one-time response only: the
    memoised "permanent" response of longitudinal RAPPOR is not part of it, so averaging over
    repeated calls for one user spends ε each time.

    References
    ----------
    Kairouz, Bonawitz, Ramage (2016), Discrete distribution estimation under local privacy,
    section 3.2; Erlingsson, Pihur, Korolova (2014), RAPPOR.

    Examples
    --------
    >>> from skldp import RapporTransformer
    >>> mechanism = RapporTransformer(1.0, categories=["no", "yes", "unsure"], random_state=0)
    >>> mechanism.fit_transform(["yes", "no", "yes"]).shape
    (3, 3)
    >>> mechanism.get_feature_names_out()
    array(['x0_no', 'x0_yes', 'x0_unsure'], dtype=object)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        categories: Any = "auto",
        packed: bool = False,
        handle_unknown: str = "error",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.categories = categories
        self.packed = packed
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _make_channel(self, epsilon: Fraction, encoding: Alphabet | Hashing) -> AttributeChannel:
        if isinstance(encoding, Hashing):
            return CohortChannel.for_epsilon(epsilon, encoding, "rappor", packed=self.packed)
        return RapporChannel(epsilon, encoding.n_categories, encoding.categories, self.packed)

    def _privacy_parameters(self) -> dict[str, Any]:
        return {**super()._privacy_parameters(), "packed": self.packed}

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return a name per column of the reports.

        Parameters
        ----------
        input_features : array-like of str of shape (`n_features_in_`,), default=None
            Names of the input columns; those seen by `fit`, or x0, x1, ..., by default.

        Returns
        -------
        ndarray of str of shape (`channel_.width`,), dtype object
            ``name_symbol`` for bits, ``name_byte0`` and so on for packed reports.
        """
        check_is_fitted(self, "channel_")
        names = list(input_names(self, input_features))
        columns: list[str] = []
        for channel in self.channel_.attributes:
            encoding = channel.encoding
            name, *_ = names[: encoding.width]
            names = names[encoding.width :]
            bits = channel.width
            if isinstance(encoding, Hashing):
                cohort = [f"{name}_byte{i}" for i in range(4)] if self.packed else [name]
                columns += cohort
                bits -= len(cohort)
                # ("bits0": the cohort of a packed report has byte0 to byte3.)
                one = "bits" if self.packed else "bit"
                suffixes: Any = (f"{one}{j}" for j in range(bits))
            elif self.packed:
                suffixes = (f"byte{i}" for i in range(bits))
            else:
                suffixes = encoding.values
            columns += [f"{name}_{suffix}" for suffix in suffixes]
        return np.array(columns, dtype=object)
