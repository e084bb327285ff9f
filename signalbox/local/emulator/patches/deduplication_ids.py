"""Patch: a message to a FIFO queue removes the deduplication ids that have expired, and does not copy the others.

MiniStack keeps each id for five minutes, as SQS does, and copies all that a queue has for each message: after 20,000
messages, a call that sends ten takes longer than all else that the emulator does for them.
"""

import time
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from signalbox.local.emulator.patches.patch import Patch

MINISTACK = "1.5.33"
PRUNE = "ministack.services.sqs:_prune_dedup"
SEND = "ministack.services.sqs:_act_send_message"


def prune(queue: dict[str, Any]) -> None:
    """Remove the expired ids of a queue, which are the first: each is added when it begins its five minutes."""
    now, known = time.time(), queue["dedup_cache"]
    for expired in list(takewhile(lambda one: known[one]["expire"] <= now, known)):
        del known[expired]


def _replacements() -> Mapping[str, object]:
    return {PRUNE: prune}


PATCH = Patch(
    module=__name__,
    version=MINISTACK,
    sources={PRUNE: "798b8a9933ba1107", SEND: "3abd766508c885c6"},
    replacements=_replacements,
)
