"""Subscribers in DynamoDB, and the directory that caches them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from signalbox.aws.live.items import pattern_subscribers_partition, subscriber_version_key
from signalbox.aws.live.subscribers import TRIMMED_FROM, DynamoSubscribers, _size
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.ports import Attached
from signalbox.live.procedures.realm_subscribers import CachedRealmSubscribers
from signalbox.live.router.directory import CachedSubscriberDirectory, SubscriberPartition
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
REALM, TOPIC = ExchangeName("xs_trial.fifo"), RoutingKey("trial.a")
EXACT, PREFIX = TopicPattern.parse("trial.a"), TopicPattern.parse("trial.", MatchPolicy.PREFIX)
WILDCARD = TopicPattern.parse("trial.", MatchPolicy.WILDCARD)


@pytest.fixture
def subscribers(live_table) -> DynamoSubscribers:
    return DynamoSubscribers(live_table)


@pytest.fixture
def directory(subscribers) -> CachedSubscriberDirectory:
    return CachedSubscriberDirectory(subscribers, lambda: NOW)


def subscriber(pattern: TopicPattern, connection: str = "c", session: int = 7) -> Subscriber:
    return Subscriber(ConnectionId(connection), pattern, Listener(SessionId(session), "joe", "subscriber"))


def attach(subscribers: DynamoSubscribers, *patterns: TopicPattern, **details: Any) -> None:
    for pattern in patterns:
        expires_at = NOW + timedelta(hours=2)
        subscribers.attach(REALM, subscriber(pattern, **details), at=NOW, expires_at=expires_at)


def found(directory: CachedSubscriberDirectory, topic: str = TOPIC) -> list[tuple[str, str]]:
    matching = directory.lookup(REALM, [RoutingKey(topic)])
    return sorted((one.connection, one.pattern.match.value) for one in matching(RoutingKey(topic)))


def test_every_router_finds_an_attached_subscriber(subscribers, directory) -> None:
    attach(subscribers, EXACT, PREFIX, WILDCARD)
    attach(subscribers, TopicPattern.parse("other"), TopicPattern.parse("other", MatchPolicy.PREFIX))

    assert found(directory) == [("c", "exact"), ("c", "prefix"), ("c", "wildcard")]
    assert directory.lookup(REALM, [TOPIC])(TOPIC)[-1] == subscriber(EXACT)


def test_a_detached_subscriber_is_not_found_and_detach_is_idempotent(subscribers, directory) -> None:
    attach(subscribers, EXACT, PREFIX)
    found(directory)
    for _ in range(2):
        subscribers.detach(REALM, [EXACT], ConnectionId("c"))

    assert found(directory) == [("c", "prefix")]
    assert found(CachedSubscriberDirectory(subscribers, lambda: NOW)) == [("c", "prefix")]


def test_a_connection_that_is_attached_repeatedly_is_found_once(subscribers, directory) -> None:
    for session in (7, 8):
        attach(subscribers, EXACT, session=session)

    assert found(directory) == [("c", "exact")]


def test_an_up_to_date_router_reads_no_rows_after_a_change(subscribers, directory, monkeypatch) -> None:
    attach(subscribers, PREFIX)
    found(directory)
    monkeypatch.setattr(DynamoSubscribers, "rows", lambda *_: pytest.fail("rows are read"))
    attach(subscribers, PREFIX, connection="d")
    subscribers.detach(REALM, [PREFIX], ConnectionId("c"))

    assert found(directory) == [("d", "prefix")]


def test_many_subscribers_detached_at_once_are_not_found(subscribers, directory, live_table) -> None:
    prefixes = [TopicPattern.parse(TOPIC[:length], MatchPolicy.PREFIX) for length in range(len(TOPIC))]
    exact = [TopicPattern.parse(f"other.{number}") for number in range(30)]
    attach(subscribers, EXACT, *prefixes, *exact)
    attach(subscribers, EXACT, WILDCARD, connection="d")
    found(directory)

    subscribers.detach(REALM, [*prefixes, *exact], ConnectionId("c"))

    assert found(directory) == [("c", "exact"), ("d", "exact"), ("d", "wildcard")]
    assert found(CachedSubscriberDirectory(subscribers, lambda: NOW)) == found(directory)
    assert len(list(subscribers.rows(SubscriberPartition(REALM, exact[0].uri)))) == 0


def test_an_expired_subscriber_is_not_found(subscribers, live_table) -> None:
    attach(subscribers, EXACT)

    assert found(CachedSubscriberDirectory(subscribers, lambda: NOW + timedelta(hours=2))) == []


def test_the_number_of_cached_partitions_is_limited(subscribers) -> None:
    attach(subscribers, EXACT, TopicPattern.parse("trial.b"))
    directory = CachedSubscriberDirectory(subscribers, lambda: NOW, maximum_weight=1)

    assert found(directory) == [("c", "exact")]
    assert found(directory, "trial.b") == [("c", "exact")]
    assert found(directory) == [("c", "exact")]
    assert set(directory._cache) == {SubscriberPartition(REALM, None), SubscriberPartition(REALM, TOPIC)}


@pytest.mark.parametrize("pattern", [EXACT, PREFIX, WILDCARD], ids=lambda one: one.match.value)
def test_the_sessions_of_a_pattern_are_found_with_their_start(subscribers, directory, pattern) -> None:
    attach(subscribers, EXACT, PREFIX, WILDCARD)
    attach(subscribers, pattern, connection="d", session=8)

    found = CachedRealmSubscribers(directory).attached(REALM, pattern)
    assert sorted(found, key=str) == [Attached(SessionId(7), NOW), Attached(SessionId(8), NOW)]


def test_a_subscription_costs_two_writes_of_a_unit_and_sometimes_two_more(subscribers, live_table) -> None:
    """However long its pattern is: others in the realm write to the same partition."""
    calls, events = list[str](), live_table.client.meta.events
    events.register("before-call.dynamodb", lambda model, **_: calls.append(model.name))
    uris = [f"{number:02}".ljust(254, "a") for number in range(40)]

    attach(subscribers, *(TopicPattern.parse(uri, MatchPolicy.PREFIX) for uri in uris))

    version = live_table.get_item(Key=subscriber_version_key(pattern_subscribers_partition(REALM)))["Item"]
    assert len(calls) == (2 + 2 // 2) * len(uris)
    assert sum(map(_size, version["changes"])) < TRIMMED_FROM
