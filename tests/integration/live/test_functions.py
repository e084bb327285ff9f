"""The permissions of live's functions on the deployed stage, as a table."""

from collections.abc import Iterator

import pytest

from signalbox.cli.shared.deployment import Deployment
from tests.integration.shared import permission_checks
from tests.integration.shared.api_calls import (
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
from tests.integration.shared.permission_checks import STAGE_CALLS, Call, assumed_role, calling, just

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
def test_a_function_of_live_has_exactly_the_permissions_of_the_table(deployment: Deployment, queues: Place, name: str):
    role = permission_checks.functions_of(deployment, "live")[name]["Role"]
    with assumed_role(deployment, role) as session:
        allowed = permission_checks.allowed(CALLS, session, queues)

    assert allowed == ALLOWED[name]


def test_every_function_of_live_is_in_the_table(deployment: Deployment):
    assert permission_checks.functions_of(deployment, "live").keys() == ALLOWED.keys()
