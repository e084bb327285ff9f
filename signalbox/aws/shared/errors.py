"""What AWS's errors mean for what is done to the world of a split: refused for good, or to be tried again."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.errors import EffectFailed, EffectRefused

# What passes by itself, of all services that splitting calls; AWS answers these with status 400 or 409.
PASSING = frozenset(
    {
        "KmsThrottled",
        "PreconditionFailedException",
        "AWS.SimpleQueueService.QueueDeletedRecently",
        "QueueDeletedRecently",
        "RequestLimitExceeded",
        "RequestThrottled",
        "ResourceConflictException",
        "ResourceInUseException",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
    }
)
TOO_MANY_REQUESTS, SERVER_ERROR = 429, 500


@contextmanager
def effect(subject: str) -> Iterator[None]:
    """Raise `EffectRefused` or `EffectFailed` when AWS does not do what is asked of `subject`, such as a queue."""
    try:
        yield
    except ClientError as error:
        refusal = EffectFailed if is_passing(error) else EffectRefused
        raise refusal(reason(error, subject)) from error
    except BotoCoreError as error:
        raise EffectFailed(reason(error, subject)) from error


@contextmanager
def look(subject: str) -> Iterator[None]:
    """Raise `EffectFailed` when AWS does not say how `subject` is: nothing was asked for that could be refused."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise EffectFailed(reason(error, subject)) from error


def reason(error: ClientError | BotoCoreError, subject: str) -> str:
    """Return AWS's code, the call, the name of the thing, and what AWS says of it."""
    if isinstance(error, ClientError):
        told = error.response.get("Error", {})
        return f"{told.get('Code')} at {error.operation_name} of {subject}: {told.get('Message')}"
    return f"{type(error).__name__} at {subject}: {error}"  # no answer came


def is_passing(error: ClientError) -> bool:
    """Say whether the same call can succeed later, with nothing changed by anybody."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code = error.response.get("Error", {}).get("Code")
    return code in PASSING or status == TOO_MANY_REQUESTS or status >= SERVER_ERROR
