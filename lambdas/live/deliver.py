"""Posts what stands in outboxes to connections: the only function that writes to them."""

import json
import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from lambdas.live import deliver_wiring, wiring
from lambdas.live.dead_letters import put_aside
from lambdas.shared import history as writing
from lambdas.shared.records import in_flight, messages_of
from lambdas.shared.threads import parallel_map
from signalbox.exchange.messages.publications import sent_at
from signalbox.history.event import HistoryEvent
from signalbox.live.outbox.events import bundled, last_words
from signalbox.live.outbox.items import InvalidItem, OutboxItem, parse_item
from signalbox.live.outbox.results import Delivered, End
from signalbox.live.outbox.writer import Incoming
from signalbox.live.session.state import ConnectionId, Lost
from signalbox.messages import Message, MessageId

# How a connection ended of which its session has to hear.
LOST = frozenset({End.GONE, End.TOO_SLOW, End.DOUBTFUL})
# What is left is there again after this; of what failed otherwise nobody knows why, and it waits for its visibility.
PAUSES = {End.LATER: timedelta(0), End.STUCK: timedelta(seconds=2)}
# While a message that could not be put aside is in flight, its connection gets nothing that was put behind it later.
UNREADABLE_PAUSE = timedelta(seconds=2)
SHARE_OF_TIME = 0.6  # for posting; the rest is for what is under way then

_Read = tuple[Message, OutboxItem]
_Unreadable = tuple[Message, InvalidItem]

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - Lambda's
    """Return the messages that stay in flight: of each connection the first that could not be posted, and the rest."""
    until = wiring.CLOCK.now() + timedelta(milliseconds=context.get_remaining_time_in_millis()) * SHARE_OF_TIME
    by_connection, unreadable = _by_connection(messages_of(event["Records"]))
    deliver_wiring.deliverer(), deliver_wiring.queue(), wiring.inbox()  # clients are not to be made by several threads
    outcomes = list(parallel_map(partial(_delivered, until), by_connection.items()))
    buried, unburied = _put_aside(unreadable)
    delivered = [one for one in outcomes if isinstance(one, Delivered)]
    writing.record([*(told for one in delivered for told in bundled(one, now=wiring.CLOCK.now())), *buried])
    failed = (one.not_done if isinstance(one, Delivered) else one for one in outcomes)
    return in_flight(message_id for ids in (*failed, unburied) for message_id in ids)


def _by_connection(messages: Iterable[Message]) -> tuple[dict[ConnectionId, list[_Read]], list[_Unreadable]]:
    read: dict[ConnectionId, list[_Read]] = {}
    unreadable: list[_Unreadable] = []
    for message in messages:
        try:
            item = parse_item(message.body)
        except InvalidItem as problem:
            unreadable.append((message, problem))
        else:
            read.setdefault(ConnectionId(message.group_id or ""), []).append((message, item))
    return read, unreadable


def _put_aside(unreadable: Iterable[_Unreadable]) -> tuple[list[HistoryEvent], list[MessageId]]:
    """Make dead letters of messages; return what happened, and those that come again, since that failed."""
    letters = wiring.ordered_dead_letters()
    tried = [(message, put_aside(message, problem, letters, holder="an outbox")) for message, problem in unreadable]
    left = [message for message, buried in tried if buried is None]
    if left:
        deliver_wiring.queue().show_again(left, after=UNREADABLE_PAUSE)
    return [buried for _, buried in tried if buried is not None], [message.message_id for message in left]


def _delivered(until: datetime, arrived: tuple[ConnectionId, list[_Read]]) -> Delivered | list[str]:
    connection, read = arrived
    try:
        incoming = [Incoming(message.message_id, item, sent_at(message)) for message, item in read]
        delivered = deliver_wiring.deliverer().deliver(connection, incoming, until=until)
        if delivered.end is End.CLOSED:
            logger.info(json.dumps(last_words(delivered, now=wiring.CLOCK.now())))
        if delivered.end in LOST and delivered.session is not None:
            wiring.inbox().tell(connection, Lost(), request=f"lost-{delivered.first}")
        if delivered.end in PAUSES:
            left = [message for message, _ in read if message.message_id in delivered.not_done]
            deliver_wiring.queue().show_again(left, after=PAUSES[delivered.end])
    except Exception:
        logger.exception("%d items of an outbox were not posted", len(read))
        return [message.message_id for message, _ in read]  # one connection must not take others along
    return delivered
