"""Patch: calls that remove messages of a queue exclude one another, also those of pollers.

MiniStack removes messages by building a new list of the others. Pollers do it in threads of their own, under a lock
that calls of clients do not take. When both overlap, the later one restores what the earlier one removed, and loses
what was sent in between.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from signalbox.local.emulator.patches.patch import Patch, original

SQS = "ministack.services.sqs"
LOCK, HANDLERS = f"{SQS}:_queues_lock", f"{SQS}:_HANDLERS"
EXPIRE, SWEEP = f"{SQS}:_expire_retained", f"{SQS}:_dlq_sweep"
DELETE, DELETE_BATCH = f"{SQS}:_act_delete_message", f"{SQS}:_act_delete_message_batch"
FOR_FUNCTIONS, BY_FUNCTIONS = f"{SQS}:_receive_messages_for_esm", f"{SQS}:_delete_messages_for_esm"

Result = TypeVar("Result")


def exclusive(remove: Callable[..., Result], lock: AbstractContextManager[Any]) -> Callable[..., Result]:
    """Return a `remove` that holds the lock."""

    def remove_exclusively(*arguments: object) -> Result:
        with lock:
            return remove(*arguments)

    return remove_exclusively


def _replacements() -> Mapping[str, object]:
    lock = threading.RLock()  # a poller that holds it sweeps the queue
    deletions = {"DeleteMessage": original(DELETE), "DeleteMessageBatch": original(DELETE_BATCH)}
    exclusively = {action: exclusive(delete, lock) for action, delete in deletions.items()}
    return {
        LOCK: lock,
        EXPIRE: exclusive(original(EXPIRE), lock),
        SWEEP: exclusive(original(SWEEP), lock),
        HANDLERS: {**original(HANDLERS), **exclusively},
    }


PATCH = Patch(
    sources={
        EXPIRE: "c0da3361632bea27",
        SWEEP: "6a77691e16715a0d",
        DELETE: "8d700665e3d6d9b3",
        DELETE_BATCH: "877517c32f0fe636",
        FOR_FUNCTIONS: "f230dbcd4974adcf",
        BY_FUNCTIONS: "c1686f29b48b42ee",
    },
    replacements=_replacements,
)
