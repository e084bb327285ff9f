"""Topic logs in DynamoDB."""

import json
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from signalbox.aws.live import log as live_log
from signalbox.aws.live.items import log_partition
from signalbox.aws.live.log import COVERED, KEPT_BEHIND, TOPICS_AT_ONCE, DynamoTopicLog
from signalbox.aws.live.stored_events import event_with_cost
from signalbox.aws.shared.dynamodb import DynamoTable, ItemBusy
from signalbox.aws.shared.expressions import attr
from signalbox.backoff import ATTEMPTS
from signalbox.exchange.control.live_settings import LiveSettingsPatch, RetentionPatch
from signalbox.exchange.model.records import LiveSettings, Retention
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.read_limits import (
    CREDIT,
    MAXIMUM_OF_REQUEST,
    NAMED,
    POST,
    QUERY,
    SMALL,
    TOPIC,
    TOPICS_PAGE,
    PastTooLarge,
    ReadsBusy,
    event_cost,
)
from signalbox.live.log.retention import LONG_AGO, NEVER
from signalbox.live.outbox.backfill import BackfillReader
from signalbox.live.outbox.items import BackfillRequest, ItemId
from signalbox.live.wamp.audience import UNRESTRICTED, Audience, Listener
from signalbox.live.wamp.codec import MAXIMUM_FRAME_BYTES
from signalbox.live.wamp.messages import Payload, PublicationId, SessionId
from signalbox.live.wamp.options import AfterTime, AfterTopicSequences, LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName
from tests.fakes.backoff import AT_ONCE
from tests.patience import wait_for

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
REALM, A, B = ExchangeName("xs_trial.fifo"), RoutingKey("trial.a"), RoutingKey("trial.b")
LIVE = LiveSettings()
ALL = TopicPattern.parse("", MatchPolicy.PREFIX)
FOR_JOE = Audience(eligible_authid=frozenset({"joe"}))
FOR_A_SESSION = Audience(eligible=frozenset({SessionId(7)}))


@pytest.fixture
def log(live_table) -> DynamoTopicLog:
    return DynamoTopicLog(replace(live_table, backoff=AT_ONCE))


def event(number: int, topic: str = A, **changed: Any) -> LoggedEvent:
    at = NOW + timedelta(seconds=number)
    made = LoggedEvent(PublicationId(number), RoutingKey(topic), at, Payload((f"line {number}",)), sequence=number)
    return replace(made, **changed)


def none_is_kept(_event: LoggedEvent) -> bool:
    return False


def numbers(log: DynamoTopicLog, topic: RoutingKey = A, *, live: LiveSettings = LIVE, now: datetime = NOW) -> list[Any]:
    return [one.sequence for one in log.events(REALM, topic, live=live, now=now)]


def test_a_logged_event_round_trips(log) -> None:
    events = [
        event(1, headers={"color": "red"}, disclosed=Listener(SessionId(7), "joe", "source")),
        event(2, payload=Payload((), {"text": "ä\x00\ud800" * 1_000})),
        event(3, audience=FOR_JOE, is_retained=True),
        event(4, payload=Payload(), omitted_bytes=500_000),
    ]

    log.append(REALM, events, live=LIVE)

    assert log.events(REALM, A, live=LIVE, now=NOW) == events


def test_an_event_that_is_logged_twice_is_stored_once(log) -> None:
    for _ in range(2):
        log.append(REALM, [event(1), event(2)], live=LIVE)

    assert numbers(log) == [1, 2]


def test_many_events_are_written_in_several_calls(log) -> None:
    log.append(REALM, [event(number, f"trial.{number % 30}") for number in range(1, 61)], live=LIVE)

    assert numbers(log, RoutingKey("trial.7")) == [7, 37]
    assert len(log.topics(REALM, ALL, since=LONG_AGO)) == 30


def test_a_log_follows_its_retention(log) -> None:
    live = LiveSettings(rules={"trial.b": Retention(count=2), "trial": Retention(age=timedelta(seconds=3))})
    for number in range(1, 7):
        log.append(REALM, [event(number), event(number, B)], live=live)

    assert numbers(log, B, live=live) == [5, 6]
    assert numbers(log, live=live, now=NOW + timedelta(seconds=6)) == [3, 4, 5, 6]


def test_requested_events_are_read_even_if_expired(log) -> None:
    live = LiveSettings(retention=Retention(count=1, age=timedelta(hours=1)))
    log.append(REALM, [event(1), event(2, audience=FOR_A_SESSION), event(3), event(4)], live=live)

    def from_2(one: LoggedEvent) -> bool:
        return (one.sequence or 0) >= 2

    assert [one.sequence for one in log.newest_first(REALM, A, from_2, live=live, now=NOW)] == [4, 3, 2]
    assert numbers(log, live=live) == [4]


def test_a_log_that_has_lost_requested_events_says_so(log, monkeypatch) -> None:
    monkeypatch.setattr(live_log, "KEPT_BEHIND", 3)
    live = LiveSettings(retention=Retention(count=1))

    def read(first: int) -> list[Any]:
        newest = log.newest_first(REALM, A, lambda one: (one.sequence or 0) >= first, live=live, now=NOW)
        return [one.sequence for one in newest]

    log.append(REALM, [event(number) for number in range(1, 5)], live=live)
    assert read(1) == [4, 3, 2, 1]

    log.append(REALM, [event(5)], live=live)
    assert read(3) == [5, 4, 3]
    with pytest.raises(PastTooLarge, match="more than 3 events of a topic"):
        read(1)


def test_events_for_listed_session_ids_are_not_returned(log) -> None:
    log.append(REALM, [event(1), event(2, audience=FOR_A_SESSION, is_retained=True), event(3)], live=LIVE)

    assert numbers(log) == [1, 3]
    assert [*log.retained(REALM, TopicPattern.parse(A))] == []


def test_a_log_without_a_maximum_age_is_trimmed_by_count(log, live_table) -> None:
    live = LiveSettings(retention=Retention(count=1))
    log.append(REALM, [event(1), event(2)], live=live)
    log.append(REALM, [event(KEPT_BEHIND + 2)], live=live)

    items = live_table.scan()["Items"]
    assert [int(one["sk"]) for one in items if one["pk"] == log_partition(REALM, A)] == [2, KEPT_BEHIND + 2]
    assert all("expires_at" not in one for one in items)


def test_a_deleted_realm_leaves_nothing_to_the_next_of_its_name(log, live_table) -> None:
    live, other = LiveSettings(arvados=True), ExchangeName("xs_trial_b.fifo")
    kept = [event(n, f"trial.{n}", is_retained=True, audience=FOR_JOE) for n in range(1, TOPICS_AT_ONCE + 2)]
    events = [*kept, *(event(n) for n in range(1, 30)), event(1, "", is_retained=True), row(1, 7, "rows")]
    log.append(REALM, events, live=live)
    log.append(other, [event(1)], live=live)

    assert not log.delete(REALM, now=lambda: NOW, until=NOW)
    assert numbers(log) == [*range(1, 30)]
    assert log.delete(REALM, now=lambda: NOW, until=NOW + timedelta(seconds=1))

    assert {one["pk"] for one in live_table.scan()["Items"]} == {f"log#{other}#{A}", f"topics#{other}"}
    log.append(REALM, [event(1)], live=live)
    assert list(log.topics(REALM, ALL, since=LONG_AGO)) == [A]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_topic_expires_after_its_newest_event(log, live_table, is_known) -> None:
    """Also if a redrive delivers an older event last, to an instance that knows the topic or to another."""
    live = LiveSettings(retention=Retention(age=timedelta(hours=1)))
    later, delay = event(3).at + COVERED, timedelta(days=14)
    redriven = event(4, at=later - delay, delay_ms=delay // timedelta(milliseconds=1))

    for number, one in enumerate((event(1), event(2), event(3, at=later), redriven)):
        (log if is_known else DynamoTopicLog(live_table)).append(REALM, [one], live=live)
        items = live_table.scan()["Items"]
        (topic,) = (one["expires_at"] for one in items if one["pk"] == f"topics#{REALM}")
        events = [one["expires_at"] for one in items if one["pk"] == log_partition(REALM, A)]
        assert (len(events), topic > max(events)) == (number + 1, True)


@pytest.mark.parametrize("earlier", [timedelta(days=14), None])
def test_a_topic_of_which_events_expire_earlier_now_stays_for_those_before(log, live_table, earlier) -> None:
    """Otherwise the deletion of its realm did not find these, and the next realm of its name had them."""
    before = LiveSettings(retention=Retention(age=earlier))
    after = LiveSettingsPatch(retention=RetentionPatch(age=timedelta(hours=1))).apply_to(before)
    assert after

    for number, live in enumerate((before, after), start=1):
        log.append(REALM, [event(number)], live=live)

    items = live_table.scan()["Items"]
    (topic,) = (one.get("expires_at") for one in items if one["pk"] == f"topics#{REALM}")
    events = [one.get("expires_at") for one in items if one["pk"] == log_partition(REALM, A)]
    assert topic is None if earlier is None else topic >= max(events)


def test_a_topic_tells_until_when_its_events_were_logged_in_few_writes(log, live_table) -> None:
    minutes = [event(number, at=NOW + timedelta(minutes=number)) for number in range(1, 121)]

    writes = 0
    for one in minutes:
        writes += len(log.changes(REALM, [one], LIVE)) - 1
        log.append(REALM, [one], live=LIVE)
        (until,) = log.topics(REALM, ALL, since=LONG_AGO).values()
        assert one.logged_at + COVERED / 2 <= until + timedelta(minutes=1)

    assert writes == 4


def test_a_topic_of_an_earlier_version_may_have_events_of_any_time(log, live_table) -> None:
    live_table.put_item(Item={"pk": f"topics#{REALM}", "sk": f".{A}"})

    assert log.topics(REALM, ALL, since=LONG_AGO) == {A: NEVER}


@pytest.mark.parametrize(
    ("history", "waited", "found"),
    [
        (LastEvents(10), timedelta(days=2), 0),
        (LastEvents(10), timedelta(hours=2), 10),
        (AfterTopicSequences(NOW + timedelta(hours=1), {"trial.1": 0}), timedelta(hours=2), 1),
        (AfterTime(NOW + timedelta(hours=2)), timedelta(hours=2), 0),
    ],
)
def test_topics_of_others_without_requested_events_do_not_end_a_subscription(log, history, waited, found) -> None:
    """A user with 1,251 topics ended each subscription with history above them until 15 days after their expiry."""
    early = NOW - timedelta(minutes=90)
    for start in range(0, 1_260, 20):
        at = NOW if start == 1_240 else early
        some = range(start, start + 20)
        log.append(REALM, [event(one, f"trial.{one}", sequence=1, at=at) for one in some], live=LIVE)
    request = BackfillRequest(ItemId("i"), ALL, get_retained=False, history=history)

    with log.request("joe") as limited:
        reader = BackfillReader(limited, REALM, LIVE, NOW + waited)
        backfill = reader.read(request, Listener(SessionId(7), "joe", "subscriber"), deferred={}, posted={})

    assert len(backfill.events) == found


@pytest.mark.parametrize(
    ("history", "found"),
    [(LastEvents(10), 10), (AfterTopicSequences(NOW - timedelta(minutes=5), {"trial.70": 0}), 12)],
)
def test_topics_whose_events_are_older_than_the_request_cost_nothing(log, history, found, monkeypatch) -> None:
    """A user with 79,000 topics ended each subscription with history above them until their events expired."""
    monkeypatch.setattr(live_log, "TOPIC", MAXIMUM_OF_REQUEST // 30)
    old = [event(n, f"trial.{n}", sequence=1, at=NOW - timedelta(hours=20)) for n in range(60, 120)]
    log.append(REALM, [*old, *(event(n, sequence=n) for n in range(1, 12))], live=LIVE)
    request = BackfillRequest(ItemId("i"), ALL, get_retained=False, history=history)

    with log.request("joe") as limited:
        reader = BackfillReader(limited, REALM, LIVE, NOW)
        backfill = reader.read(request, Listener(SessionId(7), "joe", "subscriber"), deferred={}, posted={})

    assert len(backfill.events) == found
    with log.request("ann") as limited, pytest.raises(PastTooLarge):
        limited.topics(REALM, ALL, since=NOW - timedelta(hours=21))


def test_a_request_reads_a_limited_number_of_pages_of_old_topics(log, monkeypatch) -> None:
    """400,000 old topics of one publisher stopped each connection that requested past events above them."""
    monkeypatch.setattr(DynamoTable, "pages", lambda *_, **__: iter([[]] * 400))

    with log.request("joe") as limited, pytest.raises(PastTooLarge):
        limited.topics(REALM, ALL, since=NOW)

    assert limited.budget.spent == QUERY + MAXIMUM_OF_REQUEST // TOPICS_PAGE * TOPICS_PAGE


def test_each_name_of_a_topic_is_paid_whether_the_topic_exists_or_not(log) -> None:
    """Names of topics that do not exist cost nothing, and took all reads of the realm's list of topics."""
    trial, words = TopicPattern.parse("trial.", MatchPolicy.PREFIX), ("trial", "other")
    log.append(REALM, [event(1, "trial.1"), event(1, "other.1")], live=LIVE)

    with log.request("joe") as limited:
        named = [RoutingKey(f"{word}.{number}") for word in words for number in range(200)]
        assert list(limited.topics(REALM, trial, since=NOW + timedelta(hours=2), named=named)) == ["trial.1"]

    assert limited.budget.spent == 200 * NAMED + QUERY + TOPIC


def test_the_topic_of_events_that_never_expire_stays(log, live_table) -> None:
    log.append(REALM, [event(1)], live=LiveSettings(retention=Retention(age=timedelta(hours=1))))
    log.append(REALM, [event(2)], live=LiveSettings(retention=Retention(count=9)))

    (topic,) = (one for one in live_table.scan()["Items"] if one["pk"] == f"topics#{REALM}")
    assert "expires_at" not in topic


def test_events_have_a_ttl_after_their_retention(log, live_table) -> None:
    log.append(REALM, [event(1)], live=LiveSettings(retention=Retention(age=timedelta(hours=1))))

    (item,) = (one for one in live_table.scan()["Items"] if one["pk"] == log_partition(REALM, A))
    assert item["expires_at"] >= (event(1).at + timedelta(hours=1)).timestamp()


@pytest.mark.parametrize(
    ("uri", "match", "found"),
    [
        ("trial.a", MatchPolicy.EXACT, ["trial.a"]),
        ("trial.", MatchPolicy.PREFIX, ["trial.a", "trial.a.b", "trial.b"]),
        ("", MatchPolicy.PREFIX, ["other", "trial.a", "trial.a.b", "trial.b"]),
        ("trial.", MatchPolicy.WILDCARD, ["trial.a", "trial.b"]),
        (".a", MatchPolicy.WILDCARD, ["trial.a"]),
    ],
)
def test_topics_are_found_by_pattern(log, uri, match, found) -> None:
    topics = ("trial.a", "trial.b", "trial.a.b", "other")
    log.append(REALM, [event(1, topic, is_retained=True) for topic in topics], live=LIVE)
    pattern = TopicPattern.parse(uri, match)

    assert list(log.topics(REALM, pattern, since=LONG_AGO)) == found
    assert sorted(one.topic for one in log.retained(REALM, pattern) if pattern.matches(one.topic)) == found


def test_the_latest_unrestricted_and_the_latest_restricted_event_are_retained(log) -> None:
    for number, audience in ((1, UNRESTRICTED), (2, Audience(excluded_publisher=SessionId(9))), (3, FOR_JOE)):
        log.append(REALM, [event(number, audience=audience, is_retained=True)], live=LIVE)
    log.append(REALM, [event(4)], live=LIVE)

    assert {one.sequence for one in log.retained(REALM, TopicPattern.parse(A))} == {2, 3}


def test_the_retained_event_of_one_topic_is_read_alone(log, monkeypatch) -> None:
    """Who may publish below `trial.a` made those of `trial.a` too many."""
    beside = [event(number, f"trial.a.{number}", is_retained=True) for number in range(1, 30)]
    log.append(REALM, [*beside, event(30, is_retained=True), event(31, is_retained=True, audience=FOR_JOE)], live=LIVE)
    monkeypatch.setattr(live_log, "event_with_cost", lambda item: (event_with_cost(item)[0], MAXIMUM_OF_REQUEST // 3))

    with log.request("joe") as limited:
        assert {one.sequence for one in limited.retained(REALM, TopicPattern.parse(A))} == {30, 31}
    with log.request("ann") as limited, pytest.raises(PastTooLarge):
        list(limited.retained(REALM, TopicPattern.parse(A, MatchPolicy.PREFIX)))


def test_retained_events_are_read_by_topic_behind_a_place(log) -> None:
    topics = ("trial", "trial.a", "trial.a.b", "trial.b", "trial.c", "triangle", "tri")
    log.append(REALM, [event(1, topic, is_retained=True) for topic in topics], live=LIVE)
    log.append(REALM, [event(2, "trial.b", is_retained=True, audience=FOR_JOE)], live=LIVE)
    pattern = TopicPattern.parse("trial", MatchPolicy.PREFIX)

    assert [one.topic for one in log.retained(REALM, pattern)] == [*topics[:3], "trial.b", "trial.b", "trial.c"]
    behind = log.retained(REALM, pattern, after=RoutingKey("trial.a"))
    assert [(one.topic, one.sequence) for one in behind][1:] == [("trial.b", 1), ("trial.b", 2), ("trial.c", 1)]
    named = log.retained_of(REALM, map(RoutingKey, ("tri", "trial.b", "other")))
    assert sorted((one.topic, one.sequence) for one in named) == [("tri", 1), ("trial.b", 1), ("trial.b", 2)]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(("audience", "left"), [(UNRESTRICTED, []), (FOR_JOE, [1])])
def test_a_retained_event_without_a_payload_removes_those_before_it(log, audience, left, at_once) -> None:
    kept = [event(1, is_retained=True), event(2, is_retained=True, audience=FOR_JOE)]
    removal = event(3, is_retained=True, payload=Payload(), audience=audience)

    for events in [[*kept, removal]] if at_once else [kept, [removal]]:
        log.append(REALM, events, live=LIVE)

    assert [one.sequence for one in log.retained(REALM, ALL)] == left
    assert numbers(log) == [1, 2, 3]


def test_the_empty_topic_has_a_log(log) -> None:
    log.append(REALM, [event(1, "", is_retained=True)], live=LIVE)

    assert numbers(log, RoutingKey("")) == [1]
    assert list(log.topics(REALM, ALL, since=LONG_AGO)) == [""]


def test_the_number_of_remembered_topics_is_limited(log, monkeypatch) -> None:
    monkeypatch.setattr(live_log, "KNOWN_TOPICS", 1)
    for topic in (A, B, RoutingKey("trial.c")):
        log.append(REALM, [event(1, topic)], live=LIVE)

    assert list(log.topics(REALM, TopicPattern.parse("trial", MatchPolicy.PREFIX), since=LONG_AGO)) == [
        "trial.a",
        "trial.b",
        "trial.c",
    ]


def test_unprocessed_writes_are_retried_and_finally_raised(log, monkeypatch) -> None:
    client = log.table.client
    write, takes = client.batch_write_item, [1, 1, 1, *([0] * ATTEMPTS)]

    def reluctant(RequestItems: dict[str, list[Any]]) -> dict[str, Any]:  # noqa: N803 - boto3's
        count = takes.pop(0)
        taken, left = RequestItems["Live"][:count], RequestItems["Live"][count:]
        if taken:
            write(RequestItems={"Live": taken})
        return {"UnprocessedItems": {"Live": left} if left else {}}

    monkeypatch.setattr(client, "batch_write_item", reluctant)

    log.append(REALM, [event(1), event(2)], live=LIVE)
    with pytest.raises(ItemBusy, match="did not take 1 writes"):
        log.append(REALM, [event(3)], live=LIVE)

    assert numbers(log) == [1, 2]


# --- the log rows of Arvados' realm


FOR_ARVADOS = LiveSettings(arvados=True)


def row(number: int, log_id: int, topic: str = A, **fields: Any) -> LoggedEvent:
    return event(number, topic, payload=Payload(({"id": log_id},)), **fields)


def rows_after(log: DynamoTopicLog, log_id: int, *, now: datetime = NOW) -> list[int]:
    return [one.payload.arguments[0]["id"] for one in log.rows_after(REALM, log_id, now=now)]  # type: ignore[index]


def test_the_rows_of_all_topics_are_in_the_order_of_their_ids(log) -> None:
    late = NOW - timedelta(minutes=15)
    events = [row(1, 10**18), row(2, 5, B), row(3, 7, at=late), row(4, 6, at=NOW - timedelta(minutes=25))]

    log.append(REALM, [*events, event(5)], live=FOR_ARVADOS)

    assert rows_after(log, -1) == [5, 6, 7, 10**18]
    assert rows_after(log, 6) == [7, 10**18]
    assert list(log.rows_after(REALM, 5, now=NOW))[1] == events[2]


def test_rows_are_kept_for_half_an_hour(log) -> None:
    log.append(REALM, [row(1, 1, at=NOW), row(60, 2)], live=FOR_ARVADOS)

    assert rows_after(log, 0, now=NOW + timedelta(minutes=30)) == [1, 2]
    assert rows_after(log, 0, now=NOW + timedelta(minutes=30, seconds=1)) == [2]
    assert rows_after(log, 0, now=NOW + timedelta(minutes=32)) == []


def test_only_a_realm_for_arvados_has_rows_and_none_for_named_sessions(log) -> None:
    log.append(REALM, [row(1, 1)], live=LIVE)
    log.append(REALM, [row(2, 2, audience=FOR_A_SESSION)], live=FOR_ARVADOS)

    assert rows_after(log, 0) == []
    assert numbers(log) == [1]


def test_a_request_reads_a_limited_part_of_the_log(log) -> None:
    """An event of 120 KB of empty lists compresses to 200 bytes, and needs 3 MB of memory."""
    bomb = Payload(([[]] * 40_000,))
    log.append(REALM, [event(number, payload=bomb, is_retained=True) for number in range(1, 41)], live=LIVE)
    log.append(REALM, [event(41, B, payload=bomb)], live=LIVE)
    with log.request("alice") as limited, pytest.raises(PastTooLarge):
        limited.events(REALM, A, live=LIVE, now=NOW)

    with log.request("bob") as limited:
        newest = limited.newest_first(REALM, A, none_is_kept, live=LIVE, now=NOW, page=2)
        assert [next(newest).sequence for _ in range(3)] == [40, 39, 38]

    with log.request("carol") as limited:
        assert ([*limited.topics(REALM, ALL, since=LONG_AGO)], len([*limited.retained(REALM, ALL)])) == ([A, B], 1)
        assert len(limited.events(REALM, B, live=LIVE, now=NOW)) == 1
    log.count_post(1)
    assert len(numbers(log)) == 40  # a router and an export have no limit


def test_large_requests_share_the_memory_of_an_instance_and_small_ones_never_wait(log) -> None:
    log.append(REALM, [event(1)], live=LIVE)

    with log.request("alice") as large, log.request("bob") as other, log.request("carol") as small:
        large.budget.spend(MAXIMUM_OF_REQUEST)
        with pytest.raises(ReadsBusy):
            other.budget.spend(SMALL + 1)
        assert small.events(REALM, A, live=LIVE, now=NOW) == [event(1)]

    with log.request("carol") as alone:
        assert alone.events(REALM, A, live=LIVE, now=NOW) == [event(1)]


def test_the_log_knows_no_reader_whose_requests_are_over(log) -> None:
    for reader in range(100):
        with log.request(reader), log.request("alice"):
            assert len(log._turns) == 2

    assert not log._turns


def test_requests_of_one_reader_follow_one_another_and_owe_their_posts(log) -> None:
    log.append(REALM, [event(1)], live=LIVE)
    order: list[str] = []

    def read_again() -> None:
        order.append("begun")
        with log.request("alice") as second:
            order.append("admitted")
            second.events(REALM, A, live=LIVE, now=NOW)

    with ThreadPoolExecutor(1) as threads:
        with log.request("alice") as first:
            later = threads.submit(read_again)
            wait_for(lambda: order == ["begun"], "a second request")
            with log.request("bob") as other:
                other.events(REALM, A, live=LIVE, now=NOW)
            first.events(REALM, A, live=LIVE, now=NOW)
            first.count_post(10 * MAXIMUM_FRAME_BYTES * CREDIT // POST)
            order.append("ended")
        with pytest.raises(ReadsBusy):
            later.result()

    assert order == ["begun", "ended"]


def test_any_number_of_past_events_may_be_requested() -> None:
    limits = []

    class Client:
        def query(self, *, Limit: int, **_given: object) -> object:  # noqa: N803 - of the client
            limits.append(Limit)
            return {"Items": []}

    log = DynamoTopicLog(DynamoTable(cast("Any", Client()), "Live"))

    assert (
        list(log.newest_first(REALM, A, none_is_kept, live=LiveSettings(retention=Retention()), now=NOW, page=2**53))
        == []
    )
    assert limits == [2**31 - 1]


def test_the_last_event_above_many_for_others_is_read_in_pages_of_which_each_counts(log, monkeypatch) -> None:
    log.append(REALM, [event(number, audience=FOR_JOE) for number in range(1, 301)], live=LIVE)
    calls, query = [], log.table.client.query
    monkeypatch.setattr(log.table.client, "query", lambda **given: calls.append(given) or query(**given))
    request = BackfillRequest(ItemId("i"), TopicPattern.parse(A), get_retained=False, history=LastEvents(1))

    with log.request("eve") as limited:
        reader = BackfillReader(limited, REALM, LIVE, NOW)
        backfill = reader.read(request, Listener(SessionId(7), "eve", "subscriber"), deferred={}, posted={})

    read = len(calls)
    assert (backfill.events, read in (3, 4)) == ((), True)  # DynamoDB returns an empty last page
    costs = [event_with_cost(item)[1] for item in log.table.query(attr("pk").eq(log_partition(REALM, A)))]
    assert limited.budget.spent == sum(costs) + read * QUERY


def test_past_rows_are_a_debt_of_their_reader(log) -> None:
    log.append(REALM, [row(number, number) for number in range(1, 4)], live=FOR_ARVADOS)
    with log.request("alice") as first:
        assert len(list(first.rows_after(REALM, 0, now=NOW))) == 3
        assert first.budget.spent > sum(map(event_cost, ["{}"] * 3))
        assert not first.is_large
        first.budget.spend(SMALL)
        assert first.is_large


def test_an_invocation_that_is_late_reads_nothing_more(log) -> None:
    log.append(REALM, [event(1)], live=LIVE)

    hours = iter([False, True])

    with replace(log, is_late=lambda: next(hours)).request("alice") as late, pytest.raises(ReadsBusy):
        late.events(REALM, A, live=LIVE, now=NOW)

    with pytest.raises(ReadsBusy), replace(log, is_late=lambda: True).request("alice"):
        pass


@pytest.mark.parametrize("text", ["[" + "[]," * 1_000 + "[]]", '{"' + '":{},"'.join(map(str, range(500))) + '":0}'])
def test_the_cost_of_an_event_is_at_least_the_memory_that_it_needs(text: str) -> None:
    tracemalloc.start()
    held = json.loads(text)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert held
    assert event_cost(text) >= used


def test_a_character_that_needs_four_bytes_widens_its_text() -> None:
    assert event_cost('"\\ud83d\\ude00' + "a" * 1_000 + '"') > event_cost('"' + "a" * 4_000 + '"')
