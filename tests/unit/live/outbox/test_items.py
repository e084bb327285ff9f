"""Serialization of outbox items; `tests/golden` has each kind."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.documents import event_document, json_text
from signalbox.live.log.events import LoggedEvent
from signalbox.live.model.effects import Post
from signalbox.live.outbox.items import (
    EventBatch,
    InvalidOutboxItem,
    ItemId,
    Reply,
    SubscriptionEvent,
    event_batch_body,
    item_body,
    parse_item,
    reply_item,
)
from signalbox.live.wamp.messages import Payload, PublicationId, RequestId, Subscribed, SubscriptionId, Unsubscribed
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
ID = ItemId("frame:1")
PATTERN, OTHER = TopicPattern.parse("a.", MatchPolicy.PREFIX), TopicPattern.parse("a.b")
EVENT = LoggedEvent(PublicationId(1), RoutingKey("a.b"), NOW, Payload(("ä\x00",)), 7, headers={"color": "red"})


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
    begins = reply_item(Post(Subscribed(RequestId(1), SubscriptionId(9))), ID, expects_backfill=True)
    ends = reply_item(Post(Unsubscribed(RequestId(1)), ends=SubscriptionId(9)), ID)

    assert begins == Reply(ID, "[33,1,9]", SubscriptionId(9), None, expects_backfill=True)
    assert ends == Reply(ID, "[35,1]", None, SubscriptionId(9))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "other", "item": "1"}', '{"kind": "events", "item": "1"}'])
def test_an_invalid_item_is_refused(text: str) -> None:
    with pytest.raises(InvalidOutboxItem, match=f"{len(text)} characters"):
        parse_item(text)
