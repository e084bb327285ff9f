"""Errors of the exchange's control plane and clients."""

from signalbox.errors import RejectedError
from signalbox.exchange.model.records import ResourceRef


class NotFound(RejectedError):
    """Raised when an exchange, a queue or a user does not exist; `undeclared` may be a mistyped name."""

    def __init__(self, text: str, undeclared: ResourceRef | None = None) -> None:
        super().__init__(text)
        self.undeclared = undeclared


class NotPermitted(RejectedError):
    """Raised when a user lacks the right to do something."""
