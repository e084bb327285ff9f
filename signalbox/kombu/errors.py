"""Translation of the errors of a stage, of AWS and of the network into those of AMQP, which kombu's programs handle."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from amqp.exceptions import AccessRefused, NotFound, PreconditionFailed, RecoverableConnectionError
from botocore.exceptions import BotoCoreError, ClientError

from signalbox.clients.exchange.errors import DENIALS
from signalbox.errors import RejectedError, SignalboxError
from signalbox.exchange.control.errors import NotFound as ResourceMissing
from signalbox.exchange.control.errors import NotPermitted

MISSING = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})
# Errors of SQS about a message, which no repetition mends.
INVALID = frozenset({"InvalidParameterValue", "InvalidMessageContents", "AWS.SimpleQueueService.BatchRequestTooLong"})
KINDS = ((NotFound, MISSING), (AccessRefused, DENIALS), (PreconditionFailed, INVALID))


@contextmanager
def amqp_errors(what: str) -> Iterator[None]:
    """Raise errors in the context as errors of AMQP about `what`.

    What may succeed when it is repeated is a `RecoverableConnectionError`; anything else is a `ChannelError`.
    """
    try:
        yield
    except ClientError as error:
        code = error.response["Error"]["Code"]
        kind = next((kind for kind, codes in KINDS if code in codes), RecoverableConnectionError)
        raise kind(f"{what}: {error}") from error
    except RejectedError as error:
        raise _of_refusal(error)(f"{what}: {error}") from error
    except (BotoCoreError, SignalboxError) as error:
        raise RecoverableConnectionError(f"{what}: {error}") from error


def _of_refusal(error: RejectedError) -> Any:
    """Return the error of AMQP; a stage's reply has only a text, so that its words decide."""
    text = str(error)
    if isinstance(error, ResourceMissing) or "does not exist" in text:
        return NotFound
    return AccessRefused if isinstance(error, NotPermitted) or " may not " in text else PreconditionFailed
