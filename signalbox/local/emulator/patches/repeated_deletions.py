"""Patch: a message of a standard queue can be deleted again, or with the handle of an earlier receive, as on AWS.

MiniStack refuses both with ReceiptHandleIsInvalid. AWS does so for handles that SQS did not make
(https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

SQS = "ministack.services.sqs"
HANDLERS, ERROR = f"{SQS}:_HANDLERS", f"{SQS}:_Err"
DELETE, DISPATCH = f"{SQS}:_act_delete_message", f"{SQS}:_dispatch"
INVALID = "ReceiptHandleIsInvalid"
HANDLE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # as MiniStack makes them

Delete = Callable[[Mapping[str, Any], str], dict[str, Any]]


def repeatable(delete: Delete, error: type[Exception]) -> Delete:
    """Return a `delete` of one message that accepts handles which are no longer valid; `error` is MiniStack's."""

    def delete_again(data: Mapping[str, Any], url: str) -> dict[str, Any]:
        try:
            return delete(data, url)
        except error as problem:
            is_fifo = str(data.get("QueueUrl", url)).endswith(".fifo")
            is_ours = HANDLE.fullmatch(str(data.get("ReceiptHandle"))) is not None
            if getattr(problem, "code", "") != INVALID or is_fifo or not is_ours:
                raise
            return {}

    return delete_again


def _replacements() -> Mapping[str, object]:
    handlers = original(HANDLERS)
    delete = repeatable(handlers["DeleteMessage"], original(ERROR))
    return {HANDLERS: {**handlers, "DeleteMessage": delete}}


PATCH = Patch(
    sources={DELETE: "8d700665e3d6d9b3", DISPATCH: "6a429fdb61ebdc5a"},
    replacements=_replacements,
)
