"""Batch calls of SQS by functions: entries that fail through no fault of theirs are sent again after a pause."""

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.errors import PASSING
from signalbox.aws.shared.settings import BACKOFF
from signalbox.backoff import Backoff

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import BatchResultErrorEntryTypeDef, SendMessageBatchRequestEntryTypeDef

logger = logging.getLogger(__name__)


def send_batch(
    sqs: "SQSClient",
    queue_url: str,
    entries: "Sequence[SendMessageBatchRequestEntryTypeDef]",
    *,
    backoff: Backoff = BACKOFF,
) -> "tuple[dict[str, str], list[BatchResultErrorEntryTypeDef]]":
    """Send entries; return the message ids of the accepted ones by entry id, and the remaining failures.

    No two entries may be of one message group: the first could fail alone, and would then follow the second. Errors of
    the first call propagate; after an error of a later call, its entries are among the failures.
    """
    accepted: dict[str, str] = {}
    failed: list[BatchResultErrorEntryTypeDef] = []
    left = list(entries)
    for attempt in backoff.attempts():
        try:
            answer = sqs.send_message_batch(QueueUrl=queue_url, Entries=left)
        except (ClientError, BotoCoreError):
            if attempt == 0:
                raise
            logger.exception("%d messages were not sent again to %s", len(left), queue_url)
            return accepted, failed
        accepted |= {one["Id"]: one["MessageId"] for one in answer.get("Successful", [])}
        failures = answer.get("Failed", [])
        repeated = {one["Id"] for one in failures if not one["SenderFault"] or one["Code"] in PASSING}
        failed = [one for one in failed if one["Id"] not in {entry["Id"] for entry in left}] + failures
        left = [entry for entry in left if entry["Id"] in repeated]
        if not left:
            break
    return accepted, failed


def hide(sqs: "SQSClient", queue_url: str, pauses: Mapping[str, timedelta]) -> None:
    """Hide at most ten messages, by receipt handle, for these times from now on, in one call.

    A failure is only logged: the message was deleted, or comes again after the visibility timeout of its queue.
    """
    entries = [
        {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": round(pause.total_seconds())}
        for number, (receipt, pause) in enumerate(pauses.items())
    ]
    try:
        answer = sqs.change_message_visibility_batch(QueueUrl=queue_url, Entries=entries)  # type: ignore[arg-type]
    except (ClientError, BotoCoreError):
        logger.exception("%d messages keep the visibility timeout of %s", len(entries), queue_url)
        return
    for failed in answer.get("Failed", ()):
        logger.info("a message keeps the visibility timeout of %s: %s", queue_url, failed["Code"])
