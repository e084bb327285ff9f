"""What functions store of messages: bodies, attributes and headers are only where docs/history.md says."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest

from lambdas.exchange import route as route_function
from lambdas.exchange import route_wiring, wiring
from signalbox.aws.exchange.exchanges import DynamoQueues
from signalbox.aws.splitting.splits import DynamoSplits
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.splitting.model.split import with_kept
from tests.fakes.aws import aws, exchange_table, live_table, split_table, sqs  # noqa: F401 - fixtures
from tests.handlers.environment import BUCKET, clear_caches
from tests.handlers.exchange.test_route import (
    RouteStage,
    stage,  # noqa: F401 - fixture
)
from tests.handlers.exchange.test_route_live import REALM, realm  # noqa: F401 - fixture
from tests.handlers.recorded_events import batch
from tests.handlers.splitting.test_split import CONTEXT, STANDARD, SplitStage, handler, record_of, session
from tests.handlers.splitting.test_split import stage as splitting  # noqa: F401 - fixture

BODY, ATTRIBUTE = "body-4711", "attribute-4711"
MARKS = (BODY, ATTRIBUTE)


@pytest.fixture(autouse=True)
def no_mark_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert not any(mark in caplog.text for mark in MARKS)


def marked_places() -> set[str]:
    """Return the objects and the tables in which a mark is, and `history` for events."""
    s3, dynamodb = boto3.client("s3"), boto3.client("dynamodb")
    found = set()
    for one in s3.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        text = s3.get_object(Bucket=BUCKET, Key=one["Key"])["Body"].read().decode()
        if any(mark in text for mark in MARKS):
            found.add("/".join(one["Key"].split("/")[:2]) if one["Key"].startswith("kept/") else "history")
    for name in dynamodb.list_tables()["TableNames"]:
        if any(mark in str(dynamodb.scan(TableName=name)["Items"]) for mark in MARKS):
            found.add(name)
    return found


def forward(split: SplitStage, *, is_kept: bool) -> None:
    """Forward a message that a session gets, one that the consumer gets, and one that cannot be kept or sent."""
    stored = split.split(session("ann", ATTRIBUTE))
    kept = with_kept(stored.split, STANDARD, is_kept=is_kept)
    assert DynamoSplits(split.table).save(kept, replacing=stored)
    records = [record_of(f"{BODY}-{number}", color=color) for number, color in enumerate((ATTRIBUTE, "other"))]
    for number, record in enumerate(records):
        record["messageId"] = f"m-{number}"
    assert handler(batch(*records), CONTEXT) == {"batchItemFailures": []}


def test_a_split_stores_no_message_unless_its_queue_is_kept(splitting):  # noqa: F811 - fixture
    forward(splitting, is_kept=False)

    # A verdict quotes the filter of the session, which is in its record.
    assert marked_places() == {"Splits", "history"}
    assert BODY not in str(splitting.table.scan()["Items"]) + json.dumps(splitting.history())


def test_a_split_stores_the_messages_of_a_kept_queue_below_its_prefix_alone(splitting):  # noqa: F811 - fixture
    forward(splitting, is_kept=True)

    assert marked_places() == {"Splits", "history", f"kept/{STANDARD}"}
    assert BODY not in str(splitting.table.scan()["Items"]) + json.dumps(splitting.history())


def test_an_exchange_stores_no_message_unless_its_queue_is_kept(stage):  # noqa: F811 - fixture
    publish(stage, "xs")

    assert marked_places() == set()


def test_an_exchange_stores_the_copies_of_a_kept_queue_below_its_prefix_alone(stage):  # noqa: F811 - fixture
    stage.bind("xs", "#", queue="q_all")
    assert DynamoQueues(stage.table).mark(DeclaredName("q_all"), timedelta(hours=1))

    publish(stage, "xs")

    assert marked_places() == {"kept/stage-q_all"}


def test_a_live_exchange_stores_messages_in_its_log_alone(realm):  # noqa: F811 - fixture
    publish(realm, REALM)

    assert marked_places() == {"Live"}


def publish(to: RouteStage, name: str) -> None:
    """Route a publication with a copy, and a message that is no publication."""
    clear_caches(wiring, route_wiring, route_function)
    to.bind(name, "#", queue="q_all.fifo" if name.endswith(".fifo") else "q_all")
    to.publish(name, "a", BODY, color=ATTRIBUTE)
    assert to.route(name) == []


def test_the_marks_would_be_found(splitting: Any):  # noqa: F811 - fixture
    splitting.s3.put_object(Bucket=BUCKET, Key="raw/x", Body=BODY)

    assert marked_places() == {"history"}
