"""Translation of AWS errors into `EffectRefused` (permanent) and `EffectFailed` (retryable)."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.errors import EffectFailed, EffectRefused

# SQS's code on the wire, and the name of the exception in botocore.
KEY_THROTTLED = frozenset({"KMS.ThrottlingException", "KmsThrottled"})
# A key that cannot be used may be usable again, and concerns neither the queue nor the message.
OF_KEYS = ("KMS.", "Kms")
# Retryable codes that AWS returns with status 400 or 409.
PASSING = KEY_THROTTLED | frozenset(
    {
        "PreconditionFailedException",
        "ProvisionedThroughputExceededException",
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
DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
TOO_MANY_REQUESTS, SERVER_ERROR = 429, 500


@contextmanager
def translate_write_errors(subject: str, *, setting: str | None = None) -> Iterator[None]:
    """Translate errors of a write to `subject`, such as a queue. Raises `EffectRefused` or `EffectFailed`.

    The text of a denied call names `setting`, the setting of the stage that allows it.
    """
    try:
        yield
    except ClientError as error:
        refusal = EffectFailed if is_retryable(error) else EffectRefused
        allows = f"not in the setting {setting}: " if setting and is_denied(error) else ""
        raise refusal(f"{allows}{reason(error, subject)}") from error
    except BotoCoreError as error:
        raise EffectFailed(reason(error, subject)) from error


@contextmanager
def translate_read_errors(subject: str) -> Iterator[None]:
    """Translate errors of a read of `subject`. Raises `EffectFailed`: a read that fails can always be retried."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise EffectFailed(reason(error, subject)) from error


def reason(error: ClientError | BotoCoreError, subject: str) -> str:
    """Return AWS's error code, the operation, the subject and AWS's message as one text."""
    if isinstance(error, ClientError):
        details = error.response.get("Error", {})
        return f"{details.get('Code')} at {error.operation_name} of {subject}: {details.get('Message')}"
    return f"{type(error).__name__} at {subject}: {error}"  # no response arrived


def is_denied(error: ClientError) -> bool:
    """Return whether IAM denies the call."""
    return error.response.get("Error", {}).get("Code") in DENIED


def is_retryable(error: ClientError) -> bool:
    """Return whether a retry of the same call can succeed (throttling, conflicts, keys, server errors)."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code = error.response.get("Error", {}).get("Code", "")
    return code in PASSING or code.startswith(OF_KEYS) or status == TOO_MANY_REQUESTS or status >= SERVER_ERROR
