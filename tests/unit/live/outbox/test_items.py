"""Serialization of outbox items."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.documents import event_document, json_text
from signalbox.live.log.events import LoggedEvent
from signalbox.live.model.effects import Post
from signalbox.live.outbox.items import (
    BackfillRequest,
    CatchUpRequest,
    CloseRequest,
    EventBatch,
    InvalidOutboxItem,
    ItemId,
    OutboxItem,
    Reply,
    SubscriptionEvent,
    event_batch_body,
    item_body,
    parse_item,
    reply_item,
)
from signalbox.live.wamp.messages import (
    Goodbye,
    Payload,
    PublicationId,
    RequestId,
    Subscribed,
    SubscriptionId,
    Unsubscribed,
)
from signalbox.live.wamp.options import AfterPublication, AfterSequence, AfterTime, AfterTopicSequences, LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
ID = ItemId("frame:1")
PATTERN, OTHER = TopicPattern.parse("a.", MatchPolicy.PREFIX), TopicPattern.parse("a.b")
EVENT = LoggedEvent(PublicationId(1), RoutingKey("a.b"), NOW, Payload(("ä\x00",)), 7, headers={"color": "red"})
ITEMS = [
    reply_item(Post(Subscribed(RequestId(1), SubscriptionId(9))), ID, expects_backfill=True),
    reply_item(Post(Unsubscribed(RequestId(1)), ends=SubscriptionId(9)), ID),
    reply_item(Post(Goodbye({}, "wamp.close.goodbye_and_out")), ID),
    CloseRequest(ID),
    CatchUpRequest(ID, SubscriptionId(9)),
    *(
        BackfillRequest(ID, PATTERN, get_retained=True, history=history)
        for history in (
            None,
            LastEvents(3),
            AfterSequence(3),
            AfterPublication(PublicationId(3)),
            AfterTime(NOW),
            AfterTopicSequences(NOW - timedelta(hours=1), {"a.b": 3}),
        )
    ),
    EventBatch(
        ID,
        ExchangeName("xs_trial.fifo"),
        UserName("joe"),
        (SubscriptionEvent(PATTERN, EVENT), SubscriptionEvent(PATTERN, EVENT)),
    ),
]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: type(item).__name__)
def test_an_item_round_trips(item: OutboxItem) -> None:
    assert parse_item(item_body(item)) == item


def test_an_event_that_several_patterns_match_is_written_once() -> None:
    other = replace(EVENT, publication=PublicationId(8))
    addressed = tuple(SubscriptionEvent(*one) for one in ((PATTERN, EVENT), (OTHER, EVENT), (OTHER, other)))
    batch = EventBatch(ID, ExchangeName("xs_trial.fifo"), UserName("joe"), addressed)
    texts = [json_text(event_document(one.event)) for one in addressed]

    body = event_batch_body(batch, texts)

    assert body == item_body(batch)
    assert parse_item(body) == batch
    assert [body.count(text) for text in texts] == [1, 1, 1]


def test_a_reply_has_the_subscriptions_that_it_begins_and_ends() -> None:
    assert ITEMS[0] == Reply(ID, "[33,1,9]", SubscriptionId(9), None, expects_backfill=True)
    assert ITEMS[1] == Reply(ID, "[35,1]", None, SubscriptionId(9))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "other", "item": "1"}', '{"kind": "events", "item": "1"}'])
def test_an_invalid_item_is_refused(text: str) -> None:
    with pytest.raises(InvalidOutboxItem, match=f"{len(text)} characters"):
        parse_item(text)
