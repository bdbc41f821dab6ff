"""Errors and warnings raised by skldp."""

__all__ = ["ChannelError", "DecodingError", "DecodingWarning", "PrivacyWarning"]


class ChannelError(ValueError):
    """Reports and the channel that should explain them do not fit together.

    Raised when reports arrive without a channel, with two different ones, outside the
    output domain of theirs, or from a channel that carries no information (ε = 0).
    """


class DecodingError(ValueError, AttributeError):
    """Counts that were added by `partial_fit` or `merge` cannot be decoded when asked for.

    It is an AttributeError too, since it comes from reading an attribute: ``hasattr`` is then
    False, and an estimator can still be displayed.
    """


class PrivacyWarning(UserWarning):
    """Something about the private data becomes public unless the caller acts.

    The message names the public parameter that avoids it, for example ``categories=``.
    """


class DecodingWarning(UserWarning):
    """An estimate was computed, but the reports cannot determine it as well as one would hope.

    The message says why, and which public parameter helps.
    """
