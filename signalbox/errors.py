"""The two families of errors: theirs, and the world's."""


class SignalboxError(Exception):
    """Raised when Signalbox cannot do what it was asked; never raised itself, only its two families."""


class RejectedError(SignalboxError):
    """Raised when a message can never succeed: record it, answer its sender if there is one, do not retry."""


class UnavailableError(SignalboxError):
    """Raised when the world is not ready: let it propagate, so that the platform tries again."""


class Contended(UnavailableError):
    """Raised when somebody else's change came in between: the same again may well succeed at once."""


class EffectRefused(RejectedError):
    """Raised when AWS refuses an effect for good; the text has AWS's code and the name of the thing."""


class EffectFailed(UnavailableError):
    """Raised when an effect did not work now and may later; the text has AWS's code and the name of the thing."""
