"""The two families of errors: rejected input, and temporary unavailability."""


class SignalboxError(Exception):
    """The base of all errors of Signalbox; only its two families are raised."""


class RejectedError(SignalboxError):
    """Raised when a request or message can never succeed: record it, reply to its sender, do not retry."""


class UnavailableError(SignalboxError):
    """Raised when a dependency is unavailable: let it propagate, so that the platform retries."""


class Contended(UnavailableError):
    """Raised when a concurrent change interferes; an immediate retry can succeed."""


class EffectRefused(RejectedError):
    """Raised when AWS permanently refuses an effect; the text has AWS's error code and the resource's name."""


class EffectFailed(UnavailableError):
    """Raised when an effect fails and can be retried; the text has AWS's error code and the resource's name."""
