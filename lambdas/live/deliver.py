"""Posts outbox items to connections; no other function writes to connections."""

import json
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from lambdas.live import deliver_wiring, wiring
from lambdas.live.batches import dead_letter
from lambdas.shared import instance
from lambdas.shared.poison import poison_of
from lambdas.shared.records import in_flight, messages_of
from lambdas.shared.threads import parallel_map
from signalbox.aws.shared.batch_calls import hide
from signalbox.history.event import HistoryEvent
from signalbox.live.model.state import ConnectionId, Lost
from signalbox.live.outbox.events import closing_summary, delivery_events
from signalbox.live.outbox.items import InvalidOutboxItem, OutboxItem, parse_item
from signalbox.live.outbox.results import BatchResult, DeliveryOutcome
from signalbox.live.outbox.snapshots import ConnectionSnapshot
from signalbox.live.outbox.writer import BROKEN, ReceivedItem
from signalbox.messages import Message, MessageId

# Outcomes after which the session is notified that its connection is lost.
LOST = BROKEN | {DeliveryOutcome.GONE}
# The delay after which what cannot be read or posted now is visible again.
BUSY, PAUSE = {DeliveryOutcome.READS_BUSY, DeliveryOutcome.BLOCKED}, timedelta(seconds=2)
# An unreadable message that could not be dead-lettered blocks the later items of its connection while it is in flight.
UNREADABLE_PAUSE = timedelta(seconds=2)

_Parsed = tuple[Message, OutboxItem]
_Unreadable = tuple[Message, InvalidOutboxItem]

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - Lambda's
    """Handle a batch of the outbox queue; report as failed each connection's first unposted item and all after it."""
    instance.begin(context)
    until = instance.CLOCK.now() + timedelta(seconds=instance.seconds_left())
    poison = poison_of(event["Records"], lambda record: parse_item(record["body"]))
    by_connection, unreadable = _by_connection(messages_of(event["Records"]), poison)
    _create_clients()
    results = list(parallel_map(partial(_deliver, until, _snapshots(by_connection)), by_connection.items()))
    dead_lettered, undecided = _dead_letter(unreadable)
    delivered = [one for one in results if isinstance(one, BatchResult)]
    instance.record(
        [*(fact for one in delivered for fact in delivery_events(one, now=instance.CLOCK.now())), *dead_lettered]
    )
    failed = (one.not_done if isinstance(one, BatchResult) else one for one in results)
    return in_flight(message_id for ids in (*failed, undecided) for message_id in ids)


def _create_clients() -> None:
    """Create the AWS clients in this thread, since creating them concurrently is not thread-safe."""
    deliver_wiring.outbox_writer()
    instance.sqs()
    wiring.inbox()


def _by_connection(
    messages: Iterable[Message], poison: Mapping[str, str]
) -> tuple[dict[ConnectionId, list[_Parsed]], list[_Unreadable]]:
    parsed: dict[ConnectionId, list[_Parsed]] = {}
    unreadable: list[_Unreadable] = []
    for message in messages:
        try:
            item = _item(message, poison)
        except InvalidOutboxItem as problem:
            unreadable.append((message, problem))
        else:
            parsed.setdefault(ConnectionId(message.group_id or ""), []).append((message, item))
    return parsed, unreadable


def _item(message: Message, poison: Mapping[str, str]) -> OutboxItem:
    if message.message_id in poison:
        raise InvalidOutboxItem(poison[message.message_id])
    return parse_item(message.body)


def _dead_letter(unreadable: Iterable[_Unreadable]) -> tuple[list[HistoryEvent], list[MessageId]]:
    """Dead-letter messages; return the history events, and the messages for which that failed."""
    dead_letters = wiring.ordered_dead_letters()
    tried = [
        (message, dead_letter(message, problem, dead_letters, holder="an outbox")) for message, problem in unreadable
    ]
    failed = [message for message, fact in tried if fact is None]
    if failed:
        _hide(failed, UNREADABLE_PAUSE)
    return [fact for _, fact in tried if fact is not None], [message.message_id for message in failed]


def _hide(messages: Iterable[Message], pause: timedelta) -> None:
    url = instance.settings().text("LIVE_OUTBOX_URL")
    hide(instance.sqs(), url, {str(one.document["ReceiptHandle"]): pause for one in messages})


def _snapshots(by_connection: Mapping[ConnectionId, list[_Parsed]]) -> Mapping[ConnectionId, ConnectionSnapshot]:
    """Read the snapshots of all connections in one call; none if that failed, since each can be read alone."""
    try:
        return deliver_wiring.outbox_writer().read(
            {connection: [item for _, item in parsed] for connection, parsed in by_connection.items()}
        )
    except Exception:
        logger.exception("the snapshots of %d connections were not read together", len(by_connection))
        return {}


def _deliver(
    until: datetime,
    snapshots: Mapping[ConnectionId, ConnectionSnapshot],
    batch: tuple[ConnectionId, list[_Parsed]],
) -> BatchResult | list[str]:
    connection, parsed = batch
    began = instance.CLOCK.now()
    try:
        received = [ReceivedItem(message.message_id, item, message.sent_at) for message, item in parsed]
        snapshot = snapshots.get(connection)
        result = deliver_wiring.outbox_writer().deliver(connection, received, until=until, snapshot=snapshot)
        if result.outcome is DeliveryOutcome.CLOSED:
            logger.info(json.dumps(closing_summary(result, now=instance.CLOCK.now())))
        if result.outcome in LOST and result.session is not None:
            wiring.inbox().notify(connection, Lost(), request=f"lost-{result.first}")
        for item_id, refused in result.refused.items():
            wiring.inbox().notify(connection, refused, request=f"refused-{item_id}")
        if result.not_done:
            # Others, who came later, go before what is left of a connection. More may be behind a request that waits.
            is_busy = result.outcome in BUSY and len(result.not_done) == len(parsed)
            pause = PAUSE if is_busy or result.outcome is DeliveryOutcome.BLOCKED else instance.CLOCK.now() - began
            remaining = [message for message, _ in parsed if message.message_id in result.not_done]
            _hide(remaining, pause)
    except Exception:
        logger.exception("%d items of an outbox were not posted", len(parsed))
        return [message.message_id for message, _ in parsed]  # the items of other connections must not fail with it
    return result
