"""The permissions of live's functions on the deployed stage, as a table."""

from collections.abc import Iterator

import pytest

from signalbox.cli.shared.deployment import Deployment
from tests.integration.shared import identities
from tests.integration.shared.calls import (
    MAPPINGS,
    NOBODY,
    Place,
    make_queue,
    on_function,
    on_kinds,
    on_queue,
    on_table,
    place_of,
    table_of,
)
from tests.integration.shared.identities import STAGE_CALLS, Call, acting_as, calling, just

pytestmark = pytest.mark.emulator

STAGE_QUEUES = {
    "inbox": "LiveInboxUrl",
    "outbox": "LiveOutboxUrl",
    "dead letters": "LiveDeadLetterQueueUrl",
    "ordered dead letters": "LiveOrderedDeadLetterQueueUrl",
    "broker queue": "BrokerQueueUrl",
    "commands about splits": "SplitControlQueueUrl",
    "commands about exchanges": "ExchangeControlQueueUrl",
}
BEGINNINGS = {"plain exchange": "x", "declared queue": "q_", "other queue": "other-"}
KEYS = {"pk": NOBODY, "sk": NOBODY}
CALLS: dict[str, Call] = {
    **STAGE_CALLS,
    **MAPPINGS,
    **{f"{kind}: make": make_queue(kind) for kind in BEGINNINGS},
    **{what: call for kind in (*BEGINNINGS, *STAGE_QUEUES) for what, call in on_queue(kind).items()},
    **on_table("live", "LiveTable", **KEYS),
    **on_table("exchanges", "ExchangeTable", **KEYS),
    **on_kinds("exchanges", "ExchangeTable"),
    **on_table("splits", "SplitTable", **KEYS),
    **on_kinds("splits", "SplitTable"),
    **on_table("offers", "RendezvousTable", **KEYS),
    "live: query": calling(
        "dynamodb",
        "query",
        TableName=lambda place: place.outputs["LiveTable"],
        KeyConditionExpression=just("pk = :pk"),
        ExpressionAttributeValues=just({":pk": NOBODY}),
    ),
    "raw history: read": calling(
        "s3", "get_object", Bucket=lambda place: place.outputs["HistoryBucket"], Key=just("raw/none")
    ),
    "pictures: read": calling(
        "s3", "get_object", Bucket=lambda place: place.outputs["HistoryBucket"], Key=just("reports/none.svg")
    ),
    **on_function("session", lambda place: place.outputs["SessionFunctionName"]),
}
ALLOWED: dict[str, set[str]] = {
    "connect": table_of(inbox="send", live="get, put, update"),
    "receive": table_of(inbox="send"),
    "session": table_of(
        inbox="look, receive, remove, send",
        outbox="send",
        dead_letters="send",
        ordered_dead_letters="send",
        live="get, put, update, delete, query",
    )
    | {"write history"},
    "overview": table_of(
        outbox="send",
        ordered_dead_letters="send",
        live="query",
        exchanges="list",
        splits="list",
        pictures="read",
    )
    | {"write history", "list history"},
    "deliver": table_of(
        inbox="send",
        outbox="look, receive, remove, hold",
        ordered_dead_letters="send",
        live="put, query",
    )
    | {"write history"},
    "page": table_of(inbox="look", outbox="look", live="get", exchanges="get, list"),
}


@pytest.fixture
def queues(deployment: Deployment) -> Iterator[Place]:
    with place_of(deployment, stage_queues=STAGE_QUEUES, beginnings=BEGINNINGS) as place:
        yield place
    deployment.session().client("sqs").purge_queue(QueueUrl=deployment.outputs["LiveDeadLetterQueueUrl"])


@pytest.mark.parametrize("name", ALLOWED)
def test_a_function_of_live_may_do_what_the_table_says_and_nothing_else(
    deployment: Deployment, queues: Place, name: str
):
    role = identities.functions_of(deployment, "live")[name]["Role"]
    with acting_as(deployment, role) as session:
        allowed = identities.allowed(CALLS, session, queues)

    assert allowed == ALLOWED[name]


def test_every_function_of_live_is_in_the_table(deployment: Deployment):
    assert identities.functions_of(deployment, "live").keys() == ALLOWED.keys()
