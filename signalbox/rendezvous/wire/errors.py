"""The error of messages that violate the protocol."""

from signalbox.errors import RejectedError


class InvalidMessage(RejectedError):
    """Raised when a message or a part of it violates the protocol; its text is that of upstream's reply."""
