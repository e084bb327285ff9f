"""Load with killed functions: each queue gets its messages once, and ordered keys keep their order.

The expected deliveries come from a naive reading of the rules, not from the exchange's matcher.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random

import pytest

from signalbox.clients.deployment import Deployment
from signalbox.exchange.messages.properties import DeliveredMessage
from signalbox.local.stage_folder import StageFolder
from signalbox.messages import MessageId
from tests.integration.sarracenia.pump import LOG, MESSAGES, QUEUES, Pump, Sent, expected, made_bindings, made_messages
from tests.integration.shared.fault_injection import STARTING_SECONDS, FaultInjector
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

BETWEEN_KILLS = (0.5, 1.5)
LEAST_KILLS = 5
PARTS = LEAST_KILLS + 1
END_SECONDS = 600


def test_nothing_is_lost_and_order_holds_while_functions_are_killed(deployment: Deployment, stage_folder: StageFolder):
    """Routing and control are killed at random, while unrelated bindings are added all the time."""
    pump, outputs, began = Pump.of(deployment), deployment.outputs, time.monotonic()
    bindings, messages = made_bindings(Random(1)), made_messages(Random(2))  # noqa: S311 - the same every time
    wanted = expected(bindings, messages)
    pump.declare(bindings)
    names = [outputs["RouteFunctionName"], outputs["ExchangeControlFunctionName"]]
    # A kill of an instance that a busy machine still starts interrupts no work.
    injector = FaultInjector(stage_folder, names, spared_seconds=STARTING_SECONDS)

    with pump.rebinding(), injector.continuous_kills(between=BETWEEN_KILLS) as kills:
        # A fast machine routes them all before the last kill, so each further part waits for one more.
        published = pump.publish_all(messages, may_publish=lambda share: len(kills) >= PARTS * share - 1)
        wait_for(lambda: pump.left()["waiting"] == 0, "all messages taken by the router", seconds=END_SECONDS, every=1)
    wait_for(lambda: pump.left().total() == 0, "all messages routed", seconds=END_SECONDS, every=1)
    taken = pump.drain()

    facts = {"delivered": sum(map(len, wanted.values())), "dropped": len(set(messages) - set().union(*wanted.values()))}
    wait_for(lambda: pump.facts() == facts, f"the history with all facts: {facts}", seconds=END_SECONDS, every=1)
    copies = Counter((queue, one.message_id) for queue, found in taken.items() for one in found)
    again = {copy: count for copy, count in copies.items() if count > 1}
    # All facts may be there before those of a last attempt, if the router was killed after it had recorded the first.
    wait_for(lambda: _unexplained(again, pump.attempts()) == {}, "an attempt for each further copy", every=1)
    attempts = pump.attempts()
    _tell(
        f"{len(published)} messages, {len(bindings)} bindings, {len(taken)} queues, {len(kills)} kills: "
        f"{copies.total()} copies came of {facts['delivered']}, {facts['dropped']} messages were dropped, "
        f"{len(attempts)} routed again, {copies.total() - len(copies)} copies came twice; "
        f"{time.monotonic() - began:.0f} s"
    )
    got = {queue: {published[one.message_id] for one in found} for queue, found in taken.items()}
    assert len(published) == sum(MESSAGES.values())
    assert {queue: lost for queue, sent in wanted.items() if (lost := sent - got[queue])} == {}
    assert {queue: foreign for queue, found in got.items() if (foreign := found - wanted[queue])} == {}
    assert [copy for copy in again if copy[0] in QUEUES[LOG]] == []
    for queue in QUEUES[LOG]:
        assert _sequences(taken[queue]) == _counted(wanted[queue]), queue
    assert _not_as_published(taken, published) == []
    assert _troubles(pump) == {}
    assert len(kills) >= LEAST_KILLS


def _unexplained(again: Mapping[tuple[str, str], int], attempts: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """Return the copies, by queue and publication, that came more often than their publication was routed."""
    return {copy: count for copy, count in again.items() if count > attempts.get(copy[1], 1)}


def _sequences(found: Sequence[DeliveredMessage]) -> dict[str, list[tuple[int | None, int]]]:
    """Return the numbers of each key's messages, in the order of arrival."""
    return {
        key: [(one.sequence, int(one.body)) for one in found if one.key == key] for key in {one.key for one in found}
    }


def _counted(sent: Iterable[Sent]) -> dict[str, list[tuple[int | None, int]]]:
    """Return the expected numbers: from one on, without a gap, in the order of publication."""
    numbers: dict[str, list[int]] = {}
    for one in sorted(sent, key=lambda message: message.number):
        numbers.setdefault(one.key, []).append(one.number)
    return {key: list(enumerate(found, start=1)) for key, found in numbers.items()}


def _not_as_published(
    taken: Mapping[str, Sequence[DeliveredMessage]], published: Mapping[MessageId, Sent]
) -> list[DeliveredMessage]:
    def said(one: DeliveredMessage) -> tuple[str, str, str, str]:
        return one.exchange, one.key, one.body, one.headers["number"]

    def sent(one: Sent) -> tuple[str, str, str, str]:
        return one.exchange, one.key, str(one.number), str(one.number)

    return [one for found in taken.values() for one in found if said(one) != sent(published[one.message_id])]


def _troubles(pump: Pump) -> dict[str, object]:
    """Return the dead letters and leftovers of the queues."""
    status = pump.client().status()
    counts = ("queued", "in_flight", "rejects", "dead_letters")
    names = {*MESSAGES, *(queue for queues in QUEUES.values() for queue in queues)}
    ours = [one for one in (*status["exchanges"], *status["queues"]) if one["name"] in names]
    return {one["name"]: troubles for one in ours if (troubles := {name: one[name] for name in counts if one[name]})}


def _tell(text: str) -> None:
    sys.stdout.write(f"\n{text}\n")
