"""Retries of SQS calls that AWS KMS throttled, which botocore does not retry.

SQS answers `KMS.ThrottlingException` when the key of an encrypted queue takes no more requests
(https://docs.aws.amazon.com/kms/latest/developerguide/throttling.html); botocore's list of throttling errors lacks it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from botocore.hooks import BaseEventHooks

from signalbox.aws.shared.errors import KEY_THROTTLED
from signalbox.backoff import Backoff


def retry_throttled_keys(events: BaseEventHooks, backoff: Backoff) -> None:
    """Let SQS clients repeat calls that KMS throttled; `events` are those of their session."""
    handler = cast("Callable[..., None]", partial(retry_delay, backoff))  # the stubs give handlers no result
    events.register("needs-retry.sqs", handler)


def retry_delay(
    backoff: Backoff, response: tuple[Any, dict[str, Any]] | None, attempts: int, **_: object
) -> float | None:
    """Return the delay in seconds before the next attempt, or None unless KMS throttled the call; botocore calls it."""
    code = response[1].get("Error", {}).get("Code") if response is not None else None
    return backoff.pause(attempts) if code in KEY_THROTTLED else None
