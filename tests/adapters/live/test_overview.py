"""The adapters behind the stage overview and the reports."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber

from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.live.overview import KEPT, DynamoTopics, NoPictures, OverviewTables, OverviewUnavailable, S3Pictures
from signalbox.aws.rendezvous.statistics import DynamoStatistics
from signalbox.aws.splitting.splits import DynamoSplits
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.procedures.overview import PictureName, Topic
from signalbox.live.wamp.audience import Audience
from signalbox.live.wamp.messages import Payload, PublicationId
from signalbox.sarracenia.rights.names import ExchangeName
from signalbox.splitting.model.split import Stage
from tests.unit.splitting.control.observed_states import session, split

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
BUCKET = "history"


@pytest.fixture
def s3(aws: None):
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    return client


def test_the_parts_of_the_overview_are_read_from_their_tables(rendezvous_table, split_table, exchange_table):
    DynamoStatistics(rendezvous_table).add(NOW.date(), {"proxy_type|webext": 2})
    DynamoSplits(split_table).create(split(Stage.SPLIT, session()), documents=[])
    for name in ("trial.fifo", "private.fifo"):
        DynamoExchanges(exchange_table).create(ExchangeRecord(ExchangeName(name), None, NOW))
    may_read = "trial.fifo".__eq__
    minute = round((NOW - timedelta(minutes=1)).timestamp() / 60)
    exchange_table.put_item(Item={"pk": "exchange#trial.fifo", "sk": f"minute#{minute}", "received": 7})

    parts = OverviewTables(rendezvous_table, split_table, exchange_table).parts()

    assert [name for name, part in parts.items() if part.for_administrators] == ["splits"]
    assert parts["rendezvous"].read(NOW, may_read)["proxies"] == {"webext": 2}  # type: ignore[index]
    assert [one["stage"] for one in parts["splits"].read(NOW, may_read)] == ["split"]  # type: ignore[attr-defined]
    assert [(one["name"], one["received"]) for one in parts["exchanges"].read(NOW, may_read)] == [("trial.fifo", 7)]  # type: ignore[attr-defined]


def test_the_counters_are_read_for_all_callers_together_and_kept_for_some_seconds(exchange_table):
    exchanges = DynamoExchanges(exchange_table)
    exchanges.create(ExchangeRecord(ExchangeName("a.fifo"), None, NOW))
    read = OverviewTables(None, None, exchange_table).parts()["exchanges"].read
    assert [one["name"] for one in read(NOW, lambda _: True)] == ["a.fifo"]
    exchanges.create(ExchangeRecord(ExchangeName("b.fifo"), None, NOW))

    found = [read(NOW + KEPT * n, lambda name: name == "b.fifo") for n in (0.5, 1)]

    assert [[one["name"] for one in some] for some in found] == [[], ["b.fifo"]]


def test_a_stage_has_the_parts_of_its_capabilities(exchange_table):
    assert list(OverviewTables(None, None, exchange_table).parts()) == ["exchanges"]
    assert (NoPictures().every(), NoPictures().find(PictureName("a.svg"))) == ((), None)


def test_a_refused_read_is_unavailable(rendezvous_table, split_table, exchange_table):
    parts = OverviewTables(rendezvous_table, split_table, exchange_table).parts()
    split_table.delete()

    with pytest.raises(OverviewUnavailable, match="AWS answered ResourceNotFoundException"):
        parts["splits"].read(NOW, bool)


def test_only_pictures_are_listed_and_read(s3):
    for key, text in (("reports/a/day=1.svg", "<svg/>"), ("reports/a/day=1.txt", "text"), ("raw/b.svg", "<svg/>")):
        s3.put_object(Bucket=BUCKET, Key=key, Body=text.encode())
    pictures = S3Pictures(s3, BUCKET)

    assert [picture.name for picture in pictures.every()] == ["a/day=1.svg"]
    assert pictures.find(PictureName("a/day=1.svg")) == "<svg/>"
    assert pictures.find(PictureName("a/day=1.txt")) is None
    assert pictures.find(PictureName("a/day=2.svg")) is None


def test_an_unreachable_bucket_is_unavailable(s3):
    def unreachable(**_: object) -> None:
        raise EndpointConnectionError(endpoint_url="https://s3")

    s3.meta.events.register("before-send.s3", unreachable)

    with pytest.raises(OverviewUnavailable, match="AWS cannot be reached: EndpointConnectionError"):
        S3Pictures(s3, BUCKET).every()


def test_a_picture_without_permission_is_unavailable(s3):
    stubbed = Stubber(s3)
    stubbed.add_client_error("get_object", "AccessDenied")

    with stubbed, pytest.raises(OverviewUnavailable, match="AWS answered AccessDenied"):
        S3Pictures(s3, BUCKET).find(PictureName("a.svg"))


REALM = ExchangeName("trial.fifo")


STATE = Payload((1,))


@pytest.fixture
def topics(live_table) -> DynamoTopics:
    """The topics `a.0` to `a.4` and others, of which `a.1` has two retained events and `a.3` is one of them alone."""
    log = DynamoTopicLog(live_table)
    for number, name in enumerate(("a.0", "a.1", "a.1", "a.2", "a.4", "b", "a", "", "a.\U0010ffff")):
        at, audience = NOW + timedelta(seconds=number), Audience(eligible_authrole=frozenset({f"{number}"}))
        logged = LoggedEvent(
            PublicationId(number + 1), RoutingKey(name), at, STATE, sequence=1, is_retained=name == "a.1"
        )
        log.append(REALM, [replace(logged, audience=audience) if number == 2 else logged], live=LiveSettings())
    kept = LoggedEvent(PublicationId(99), RoutingKey("a.3"), NOW, STATE, sequence=1, is_retained=True)
    log.append(REALM, [kept], live=LiveSettings())
    live_table.delete_item(Key={"pk": f"topics#{REALM}", "sk": ".a.3"})
    return DynamoTopics(live_table)


@pytest.mark.parametrize(
    ("prefix", "after", "found"),
    [
        ("a.", "", ["a.0", "a.1", "a.2", "a.3", "a.4", "a.\U0010ffff"]),
        ("a.", "a.1", ["a.2", "a.3", "a.4", "a.\U0010ffff"]),
        ("a.", "a.10", ["a.2", "a.3", "a.4", "a.\U0010ffff"]),
        ("a.4", "a.1", ["a.4"]),
        ("a.", "b", []),
        ("", "a.4", ["a.\U0010ffff", "b"]),
        ("", "", ["", "a", "a.0", "a.1", "a.2", "a.3", "a.4", "a.\U0010ffff", "b"]),
    ],
)
def test_topics_are_read_in_their_order(topics, prefix, after, found):
    assert [topic.name for topic, _ in topics.behind(REALM, prefix, after)] == found


def test_a_topic_has_the_time_of_its_latest_retained_event_and_costs_what_is_read(topics):
    read = dict(topics.behind(REALM, "a.", ""))

    assert list(read)[1:4:2] == [Topic("a.1", NOW + timedelta(seconds=2)), Topic("a.3", NOW)]
    assert read[Topic("a.2")] < read[Topic("a.3", NOW)] < read[Topic("a.1", NOW + timedelta(seconds=2))]


def test_topics_behind_a_page_are_not_read(topics, monkeypatch):
    monkeypatch.setattr("signalbox.aws.live.overview.TOPICS_AT_ONCE", 1)
    calls = []
    topics.table.client.meta.events.register("before-call.dynamodb", lambda model, **_: calls.append(model.name))

    assert next(topics.behind(REALM, "a.", ""))[0] == Topic("a.0")

    assert len(calls) == 4
