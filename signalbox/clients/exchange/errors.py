"""Translation of SQS's errors about the queues of an exchange's users."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from signalbox.exchange.control.errors import NotFound, NotPermitted
from signalbox.exchange.model.records import ResourceRef
from signalbox.sarracenia.rights.names import UserName

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

DENIALS = frozenset({"AccessDenied", "AccessDeniedException", "KMS.AccessDeniedException", "KmsAccessDenied"})


@contextmanager
def translated_errors(queues: "SQSClient", *, missing: str, denied: str) -> Iterator[None]:
    """Translate SQS's errors about a missing queue and about denied access into errors with these texts.

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
def resource_errors(resource: ResourceRef, queues: "SQSClient", *, user: UserName | None, what: str) -> Iterator[None]:
    """Translate SQS's errors about the queue of a resource. Raises `NotFound` and `NotPermitted`."""
    who = f"user {str(user)!r}" if user else "the owner of these credentials"
    denied = f"{who} may not {what} {resource}: the user's role does not include its name"
    with translated_errors(queues, missing=f"{resource} does not exist: declare it first", denied=denied):
        yield
