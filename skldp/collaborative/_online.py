"""Online personalised means of many agents, learned together and in private."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from skldp._validation import check_bounds, refuse_unreadable, unchanged_on_error
from skldp.collaborative._network import Network
from skldp.collaborative._scoring import mean_squared_error
from skldp.collaborative._settings import read_names, read_settings

FloatArray = NDArray[np.float64]

__all__ = ["OnlineCollaborativeMean"]


class OnlineCollaborativeMean(BaseEstimator):
    """Personal means of many agents that learn from each other's private releases.

    Every agent receives a stream of observations and wants its own mean, now. Some agents share a
    mean, and nobody knows who. Each agent releases noisy sums of its observations; everybody tests
    whose releases are compatible with their own data, and averages over those. The rows of X are
    time steps, its columns agents; NaN means that an agent observed nothing in a step.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy level of one observation in everything that its agent ever releases; positive.
    delta : float, default=0.0
        The δ of (ε, δ) for Gaussian noise, positive there; 0 with Laplace noise.
    bounds : (lower, upper), default=None
        Public bounds of the observations, each a number or an array-like with one number for every
        agent. Required: the default is there for scikit-learn alone, which constructs estimators
        without arguments. Bounds of an agent's own must not come from its data.
    release : {"blocks", "tree"}, default="blocks"
        "blocks": sums of disjoint blocks of growing size, without end. "tree": a sum of all
        observations so far after every one of them, from a binary tree of `horizon` leaves.
    noise : {"laplace", "gaussian", "gaussian_classic"}, default="laplace"
        "gaussian" is calibrated to (ε, δ) exactly; "gaussian_classic" by the sufficient condition
        of the paper's Lemma 1, which holds for ``epsilon <= 1`` only.
    schedule : {"broadcast", "round_robin", "restricted_round_robin"}, default="broadcast"
        Who hears whom: everybody every release; in each step one agent after the other; or one
        after the other of those whose releases are still compatible with one's own.
    block_weights : {"inverse_variance", "mean_of_means"}, default="inverse_variance"
        How an agent's blocks are averaged. A tree has one sum, and no use for weights.
    peer_weights : {"pooled", "inverse_variance", "count"}, default="pooled"
        How accepted peers are averaged: by inverse variance with a variance between agents where
        they disagree too much; by inverse variance alone; or by numbers of observations.
    variance : float, "private", "own" or "bound", default="private"
        Variance of the observations: a known number, at most ``(upper - lower)**2 / 4``; "bound",
        that largest one; "private", released by each agent beside the sums within the same ε; or
        "own", for an agent's own statistic that of its own data, and the bound for the others.
    significance : float or "1/t", default=0.05
        Probability of rejecting an agent with the same mean; "1/t" divides by the agent's number
        of observations, so that errors of both kinds vanish in time.
    first_block : int, default=32
        Observations in the first block of each agent.
    growth : float, default=2.0
        Each block is so many times the size of the one before, rounded up; at least 1.
    horizon : int, default=None
        Largest number of observations of an agent, required by ``release="tree"``.
    random_state : None, int, Generator or RandomState, default=None
        None: cryptographic noise. Anything else is for simulations, and protects nobody. Read when
        a stream begins.

    Attributes
    ----------
    means_ : ndarray of float64 of shape (n_agents,)
        Personal means. Each uses the agent's raw data: it is for this agent's eyes only. NaN
        before the first observation.
    public_means_ : ndarray of float64 of shape (n_agents,)
        The same from releases alone, for anybody; NaN before an agent's first release.
    local_means_ : ndarray of float64 of shape (n_agents,)
        Means of the agents' own observations, clipped to the bounds; for their eyes only.
    same_class_ : ndarray of bool of shape (n_agents, n_agents)
        Row a: which agents a believes to share its mean. For a's eyes only. An agent believes
        itself, and nobody whom it has not heard.
    n_observed_ : ndarray of int64 of shape (n_agents,)
        Numbers of observations. Public.
    n_released_ : ndarray of int64 of shape (n_agents,)
        Numbers of releases. Public.
    privacy_spent_ : ndarray of float64 of shape (n_agents,)
        The ε (with `delta`) that the most exposed observation of each agent has spent so far; at
        most `epsilon`.
    n_features_in_ : int
        Number of agents.
    feature_names_in_ : ndarray of str of shape (n_agents,)
        Names of the agents, where `fit` saw string names.

    See Also
    --------
    skldp.mean.ADPMMeanEstimator : One mean for all, where users set their own levels.
    skldp.plotting.CollaborationDisplay : Errors against time.

    Notes
    -----
    **Guarantee.** Everything that an agent ever releases is ε-differentially private (Laplace) or
    (ε, δ)-differentially private (Gaussian) for neighbouring streams that differ in the value of
    one observation of one agent (event level), against an adversary who sees every release and
    controls all other agents. Times, numbers and gaps of observations are public. n observations
    of one person in one stream are n events: that person has nε.

    **What is the paper's, and what is ours.** The setting, two privacy mechanisms with Laplace or
    Gaussian noise, a linear statistic with a variance-like one, a decision rule from Bernstein's
    condition, the two round robins, two kinds of weights and the baselines are the paper's. Its
    formulas for the mechanisms, the statistics, the threshold and the weights were in no source at
    hand: what is computed here is this project's own construction, with its own privacy proof.

    **Checkpoints.** A pickle holds the noised releases and raw sums, of each agent's observations
    and of those in the running blocks, so it is secret; it holds no random stream. Resuming it
    goes on without releasing anything again. Resuming two copies releases what comes after twice,
    with unrelated noise: the privacy losses add up. The level, bounds and all other parameters of
    a stream are fixed when it begins.

    References
    ----------
    Yakimenka, Weng, Lin, Rosnes, Kliewer (2024), Differentially-private collaborative online
    personalized mean estimation, arXiv:2411.07094.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import OnlineCollaborativeMean
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0.2, 0.7], 50)  # two classes of fifty agents
    >>> X = rng.uniform(truth - 0.2, truth + 0.2, size=(2000, 100))
    >>> agents = OnlineCollaborativeMean(epsilon=1.0, bounds=(0, 1), random_state=0).fit(X)
    >>> local = np.mean((agents.local_means_ - truth) ** 2)
    >>> bool(np.mean((agents.means_ - truth) ** 2) < local / 4)
    True
    >>> bool((agents.same_class_ == (truth[:, None] == truth)).mean() > 0.99)
    True
    """

    n_features_in_: int
    feature_names_in_: Any
    _network: Network

    def __init__(
        self,
        epsilon: Any = 1.0,
        *,
        delta: Any = 0.0,
        bounds: Any = None,
        release: Any = "blocks",
        noise: Any = "laplace",
        schedule: Any = "broadcast",
        block_weights: Any = "inverse_variance",
        peer_weights: Any = "pooled",
        variance: Any = "private",
        significance: Any = 0.05,
        first_block: Any = 32,
        growth: Any = 2.0,
        horizon: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.release = release
        self.noise = noise
        self.schedule = schedule
        self.block_weights = block_weights
        self.peer_weights = peer_weights
        self.variance = variance
        self.significance = significance
        self.first_block = first_block
        self.growth = growth
        self.horizon = horizon
        self.random_state = random_state

    # -- streaming ------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Start again from nothing: what was released before stays released.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_steps, n_agents)
            Observations in the order of time; NaN where there is none. What lies outside the
            bounds is clipped in silence.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted estimator. If anything raises, nothing was released, and an earlier fit is
            kept.

        Raises
        ------
        TypeError
            If X is sparse or masked, or a parameter is not of its type.
        ValueError
            If bounds are missing, a parameter is wrong, X holds infinite values, or a tree has
            more observations than its horizon.
        """
        with unchanged_on_error(self):
            self._begin(X)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go on with further steps; the first call is the same as `fit`.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_steps, n_agents)
            The steps that follow, any number of them.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The estimator. Splitting a stream differently into calls changes nothing.

        Raises
        ------
        TypeError, ValueError
            As in `fit`; also if a parameter has changed since the stream began. Whatever raises,
            an interrupt too: nothing is lost or released then, and the steps can be given again.
        """
        with unchanged_on_error(self):
            if not hasattr(self, "_network"):
                self._begin(X)
            else:
                self._network.settings.check_unchanged(self.get_params(deep=False))
                self._network.check_bounds(*check_bounds(self.bounds, self.n_features_in_))
                self._network.extend(self._read(X, reset=False))
        return self

    def _begin(self, X: Any) -> None:
        # Public parameters first: a wrong one must not depend on the data.
        settings = read_settings(self.get_params(deep=False))
        data = self._read(X, reset=True)
        network = Network(settings)
        network.add_agents(*check_bounds(self.bounds, data.shape[1]))
        network.extend(data)
        self._network = network

    def add_agents(self, agents: Any) -> Self:
        """Let further agents join; their columns follow those of the present ones.

        Parameters
        ----------
        agents : int, or list of str
            How many, or their names. Names are needed where the present agents have names.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        NotFittedError
            If there are no agents yet: the first fit says how many there are.
        TypeError, ValueError
            If `agents` is neither, or names repeat, or are needed, or the present agents have
            none; if `bounds` has a number for every agent and none for the new ones (set them with
            ``set_params(bounds=...)`` first), or another one for a present agent.
        """
        check_is_fitted(self, "_network")
        names, n_new = read_names(agents, getattr(self, "feature_names_in_", None))
        n_agents = self.n_features_in_ + n_new
        self._network.add_agents(*check_bounds(self.bounds, n_agents))
        self.n_features_in_ = n_agents
        if names is not None:
            self.feature_names_in_ = np.concatenate([self.feature_names_in_, names])
        return self

    def _read(self, X: Any, *, reset: bool) -> FloatArray:
        if issparse(X):
            raise TypeError(
                f"{type(self).__name__} takes dense data; sparse input is not supported. Zeros "
                "are observations like others: pass X.toarray()."
            )
        if np.ma.is_masked(X):
            raise TypeError(
                "X has masked entries. Where nothing was observed, pass NaN: X.filled(np.nan)."
            )
        refuse_unreadable(X)
        data: FloatArray = validate_data(
            self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"
        )
        # Again, because assume_finite=True makes scikit-learn skip it.
        if data.size and (np.nanmax(np.abs(data), initial=0.0) == np.inf):
            raise ValueError("Input X contains infinity. Only NaN may stand for a missing value.")
        return data

    # -- results --------------------------------------------------------------------------

    @property
    def means_(self) -> FloatArray:
        """Personal means, shape (n_agents,); each for the eyes of its agent."""
        return self._fitted_network().means()

    @property
    def public_means_(self) -> FloatArray:
        """Means from releases alone, shape (n_agents,); for anybody."""
        return self._fitted_network().public_means()

    @property
    def local_means_(self) -> FloatArray:
        """Means of each agent's own observations, shape (n_agents,); for its eyes."""
        return self._fitted_network().local_means()

    @property
    def same_class_(self) -> NDArray[np.bool_]:
        """Who is believed to share one's mean, shape (n_agents, n_agents); for one's own eyes."""
        return self._fitted_network().same_class()

    @property
    def n_observed_(self) -> NDArray[np.int64]:
        """Numbers of observations, shape (n_agents,)."""
        return self._fitted_network().n_observed()

    @property
    def n_released_(self) -> NDArray[np.int64]:
        """Numbers of releases, shape (n_agents,)."""
        return self._fitted_network().n_released()

    @property
    def privacy_spent_(self) -> FloatArray:
        """What the most exposed observation has spent, shape (n_agents,)."""
        return self._fitted_network().privacy_spent()

    def _fitted_network(self) -> Network:
        # AttributeError, so that hasattr tells whether there is a result.
        if "_network" not in self.__dict__:
            raise AttributeError(f"This {type(self).__name__} is not fitted yet: call fit first.")
        return self._network

    def __sklearn_is_fitted__(self) -> bool:
        return "_network" in self.__dict__

    def predict(self, X: Any) -> FloatArray:
        """Return the current personal mean of every agent for each row of X.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_steps, n_agents)
            Anything with the right columns; the values do not matter.

        Returns
        -------
        ndarray of float64 of shape (n_steps, n_agents)
            ``means_``, repeated. Each column is for the eyes of its agent.
        """
        check_is_fitted(self)
        data = self._read(X, reset=False)
        return np.tile(self.means_, (len(data), 1))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the negative mean squared difference between observations and personal means.

        The score is computed from raw values: it is not private, and neither is a model selection
        that uses it.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_steps, n_agents)
            Observations; NaN where there is none.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_steps,), default=None
            Weights of the steps.

        Returns
        -------
        float
            At most 0; averaged over the observations of agents that have a mean.

        Raises
        ------
        ValueError
            If there is no such observation with a positive weight, or the weights are not one
            finite number for each row, none of them negative.
        """
        check_is_fitted(self)
        data = self._read(X, reset=False)
        return -mean_squared_error(data, self.means_, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
