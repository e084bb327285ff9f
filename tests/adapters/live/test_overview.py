"""The adapters behind the stage overview and the reports."""

from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber

from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.aws.live.overview import NoPictures, OverviewTables, OverviewUnavailable, S3Pictures
from signalbox.aws.rendezvous.statistics import DynamoStatistics
from signalbox.aws.splitting.splits import DynamoSplits
from signalbox.exchange.model.records import ExchangeRecord
from signalbox.live.procedures.overview import PictureName
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
