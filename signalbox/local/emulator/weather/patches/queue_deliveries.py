"""Patch: standard queues deliver in any order and 1 in 100 messages twice, to clients and to functions.

MiniStack delivers each message once and in order, which no consumer of a standard queue may rely on.
"""

from collections.abc import Mapping

from signalbox.local.emulator.patches.patch import Patch, original
from signalbox.local.emulator.weather.deliveries import Deliveries
from signalbox.local.emulator.weather.dice import Dice

COLLECT = "ministack.services.sqs:_collect_msgs"
FOR_FUNCTIONS = "ministack.services.sqs:_receive_messages_for_esm"
FOR_CLIENTS = "ministack.services.sqs:_act_receive_message"


def patch(dice: Dice) -> Patch:
    """Return the patch for these dice."""

    def replacements() -> Mapping[str, object]:
        return {COLLECT: Deliveries(dice, original(COLLECT))}

    return Patch(
        sources={COLLECT: "308a6eb1b3d4c8ad", FOR_FUNCTIONS: "f230dbcd4974adcf", FOR_CLIENTS: "abc94f693de18aee"},
        replacements=replacements,
    )
