"""The reasons why a requirement cannot be examined."""

from signalbox.errors import RejectedError, UnavailableError


class CallDenied(RejectedError):
    """Raised when the credentials lack the permission `permission` for a call of the doctor."""

    def __init__(self, permission: str) -> None:
        super().__init__(f"these credentials lack the permission {permission}")
        self.permission = permission


class CallFailed(UnavailableError):
    """Raised when a call of the doctor fails for another reason; the text has AWS's code."""
