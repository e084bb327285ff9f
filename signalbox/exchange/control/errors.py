"""Errors of the exchange's control plane and clients."""

from signalbox.errors import RejectedError


class NotFound(RejectedError):
    """Raised when an exchange, a queue or a user does not exist."""


class NotPermitted(RejectedError):
    """Raised when a user lacks the right to do something."""
