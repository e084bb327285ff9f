"""Patch: MiniStack's maintenance of queues costs no time for each message of a queue at each call.

At each call MiniStack goes through all messages of the queue, to delete expired ones and to add missing fields, and
through all deduplication ids of the last five minutes. With thousands of messages that takes longer than the call.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

MINISTACK = "1.5.33"
PRUNE = "ministack.services.sqs:_prune_dedup"
EXPIRE = "ministack.services.sqs:_expire_retained"
COMPLETE = "ministack.services.sqs:_ensure_msg_fields"
UPKEEP_SECONDS = 1.0
# The fields that MiniStack adds last to a message that did not come by SendMessage.
LAST_FIELDS = ("md5_body", "sys", "seq")

Entry = dict[str, Any]  # a queue or a message, as MiniStack keeps it


def at_most_every(
    seconds: float, maintain: Callable[[Entry], None], *, now: Callable[[], float] = time.monotonic
) -> Callable[[Entry], None]:
    """Return a `maintain` that runs for each queue at most once in `seconds`."""
    last: dict[int, float] = {}

    def maintain_seldom(queue: Entry) -> None:
        moment = now()
        if moment - last.get(id(queue), -seconds) >= seconds:
            last[id(queue)] = moment
            maintain(queue)

    return maintain_seldom


def unless_complete(add_fields: Callable[[Entry], None]) -> Callable[[Entry], None]:
    """Return an `add_fields` that skips messages which have all fields."""

    def add_missing_fields(message: Entry) -> None:
        if not all(name in message for name in LAST_FIELDS):
            add_fields(message)

    return add_missing_fields


def _replacements() -> Mapping[str, object]:
    return {
        PRUNE: at_most_every(UPKEEP_SECONDS, original(PRUNE)),
        EXPIRE: at_most_every(UPKEEP_SECONDS, original(EXPIRE)),
        COMPLETE: unless_complete(original(COMPLETE)),
    }


PATCH = Patch(
    module=__name__,
    version=MINISTACK,
    sources={PRUNE: "798b8a9933ba1107", EXPIRE: "c0da3361632bea27", COMPLETE: "9a82c238b3d6b6b4"},
    replacements=_replacements,
)
