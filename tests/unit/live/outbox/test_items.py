"""Items of outboxes as messages and back."""

from datetime import UTC, datetime, timedelta

import pytest

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.outbox.items import (
    Addressed,
    Bundle,
    InvalidItem,
    ItemId,
    OutboxItem,
    PastWish,
    Reply,
    closing,
    item_text,
    parse_item,
    reply,
)
from signalbox.live.session.effects import Close, Post
from signalbox.live.wamp.messages import (
    Goodbye,
    Payload,
    PublicationId,
    RequestId,
    Subscribed,
    SubscriptionId,
    Unsubscribed,
)
from signalbox.live.wamp.options import AfterEach, AfterPublication, AfterSequence, AfterTime, Last
from signalbox.live.wamp.patterns import Match, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
ID = ItemId("frame:1")
PATTERN = TopicPattern.parse("a.", Match.PREFIX)
EVENT = LoggedEvent(PublicationId(1), RoutingKey("a.b"), NOW, Payload(("ä\x00",)), 7, headers={"color": "red"})
ITEMS = [
    reply(Post(Subscribed(RequestId(1), SubscriptionId(9))), ID, expects_past=True),
    reply(Post(Unsubscribed(RequestId(1)), ends=SubscriptionId(9)), ID),
    reply(Post(Goodbye({}, "wamp.close.goodbye_and_out")), ID),
    closing(Close(), ID),
    *(
        PastWish(ID, PATTERN, get_retained=True, history=history)
        for history in (
            None,
            Last(3),
            AfterSequence(3),
            AfterPublication(PublicationId(3)),
            AfterTime(NOW),
            AfterEach(NOW - timedelta(hours=1), {"a.b": 3}),
        )
    ),
    Bundle(ID, ExchangeName("xs_trial.fifo"), UserName("joe"), (Addressed(PATTERN, EVENT), Addressed(PATTERN, EVENT))),
]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: type(item).__name__)
def test_an_item_is_read_as_it_was_put(item: OutboxItem) -> None:
    assert parse_item(item_text(item)) == item


def test_a_reply_tells_which_subscription_begins_and_which_ends() -> None:
    assert ITEMS[0] == Reply(ID, "[33,1,9]", SubscriptionId(9), None, expects_past=True)
    assert ITEMS[1] == Reply(ID, "[35,1]", None, SubscriptionId(9))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "other", "item": "1"}', '{"kind": "events", "item": "1"}'])
def test_what_is_no_item_is_told(text: str) -> None:
    with pytest.raises(InvalidItem, match=f"{len(text)} characters"):
        parse_item(text)
