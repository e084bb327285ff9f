"""Retries of SQS calls that AWS KMS throttled, which botocore does not retry.

SQS answers `KMS.ThrottlingException` when the key of an encrypted queue takes no more requests
(https://docs.aws.amazon.com/kms/latest/developerguide/throttling.html); botocore's list of throttling errors lacks it.
"""

import random
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    import boto3

CODES = ("KMS.ThrottlingException", "KmsThrottled")
ATTEMPTS = 6
FIRST_PAUSE_SECONDS = 0.2


def retry_throttled_keys(session: "boto3.Session") -> None:
    """Let the SQS clients of a session retry calls that KMS throttled, with exponential back-off and jitter."""
    handler = cast("Callable[..., None]", retry_delay)  # the stubs give handlers no result
    session.events.register("needs-retry.sqs", handler)


def retry_delay(response: tuple[Any, dict[str, Any]] | None, attempts: int, **_: object) -> float | None:
    """Return the delay in seconds before the next attempt, or None if this is not for us; botocore calls it."""
    code = response[1].get("Error", {}).get("Code") if response is not None else None
    if code not in CODES or attempts >= ATTEMPTS:
        return None
    pause: float = FIRST_PAUSE_SECONDS * 2 ** (attempts - 1)
    return pause * (0.5 + random.random() / 2)  # noqa: S311 - jitter
