"""What SQS refuses, told in the words of those who asked."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from signalbox.errors import RejectedError
from signalbox.exchange.model.records import ResourceRef
from signalbox.sarracenia.rights.names import UserName

DENIALS = frozenset({"AccessDenied", "AccessDeniedException", "KMS.AccessDeniedException", "KmsAccessDenied"})


class NotFound(RejectedError):
    """Raised when an exchange, a queue or a user is not there, or not any more."""


class NotPermitted(RejectedError):
    """Raised when AWS does not let a user do something."""


class HasExceptions(Protocol):
    """A client of boto3, which has the exceptions that it raises."""

    @property
    def exceptions(self) -> Any:  # noqa: ANN401 - boto3 makes them when it makes the client
        """Return the exceptions by their names, `ClientError` among them."""
        ...


@contextmanager
def translated_errors(queues: HasExceptions, *, missing: str, denied: str) -> Iterator[None]:
    """Tell meanwhile that a queue is missing, or that access is denied, by these texts.

    Raises `NotFound` and `NotPermitted`.
    """
    try:
        yield
    except queues.exceptions.QueueDoesNotExist as error:
        raise NotFound(missing) from error
    except queues.exceptions.ClientError as error:
        if error.response["Error"]["Code"] not in DENIALS:
            raise
        raise NotPermitted(denied) from error


@contextmanager
def resource_errors(
    resource: ResourceRef, queues: HasExceptions, *, user: UserName | None, what: str
) -> Iterator[None]:
    """Tell meanwhile what SQS refuses about an exchange or a queue. Raises `NotFound` and `NotPermitted`."""
    who = f"user {str(user)!r}" if user else "who has these credentials"
    denied = (
        f"{who} may not {what} {resource}: its name tells whose it is, and the user's role does not open it to others"
    )
    with translated_errors(queues, missing=f"{resource} is not there: declare it first", denied=denied):
        yield
