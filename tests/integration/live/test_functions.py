"""The permissions of live's functions on the deployed stage, as a table."""

from collections.abc import Iterator

import pytest

from signalbox.cli.shared.deployment import Deployment
from tests.integration.shared import permission_checks
from tests.integration.shared.api_calls import (
    MAPPINGS,
    NOBODY,
    Resources,
    create_queue_call,
    expected_calls,
    function_calls,
    list_by_kind_call,
    queue_calls,
    resources_of,
    table_calls,
)
from tests.integration.shared.permission_checks import STAGE_CALLS, Call, api_call, assumed_role, constant

pytestmark = [pytest.mark.emulator, pytest.mark.release]

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
    **{f"{kind}: make": create_queue_call(kind) for kind in BEGINNINGS},
    **{what: call for kind in (*BEGINNINGS, *STAGE_QUEUES) for what, call in queue_calls(kind).items()},
    **table_calls("live", "LiveTable", **KEYS),
    **table_calls("exchanges", "ExchangeTable", **KEYS),
    **list_by_kind_call("exchanges", "ExchangeTable"),
    **table_calls("splits", "SplitTable", **KEYS),
    **list_by_kind_call("splits", "SplitTable"),
    **table_calls("offers", "RendezvousTable", **KEYS),
    "live: query": api_call(
        "dynamodb",
        "query",
        TableName=lambda resources: resources.outputs["LiveTable"],
        KeyConditionExpression=constant("pk = :pk"),
        ExpressionAttributeValues=constant({":pk": NOBODY}),
    ),
    "raw history: read": api_call(
        "s3", "get_object", Bucket=lambda resources: resources.outputs["HistoryBucket"], Key=constant("raw/none")
    ),
    "pictures: read": api_call(
        "s3",
        "get_object",
        Bucket=lambda resources: resources.outputs["HistoryBucket"],
        Key=constant("reports/none.svg"),
    ),
    **function_calls("session", lambda resources: resources.outputs["SessionFunctionName"]),
}
ALLOWED: dict[str, set[str]] = {
    "connect": expected_calls(inbox="send", live="get, put, update, query", exchanges="get") | {"write history"},
    "receive": expected_calls(inbox="send"),
    "session": expected_calls(
        inbox="look, receive, remove, send",
        outbox="send",
        dead_letters="send",
        ordered_dead_letters="send",
        live="get, put, update, delete, query",
    )
    | {"write history"},
    "overview": expected_calls(
        outbox="send",
        ordered_dead_letters="send",
        live="query",
        exchanges="list",
        splits="list",
        pictures="read",
    )
    | {"write history", "list history"},
    "deliver": expected_calls(
        inbox="send",
        outbox="look, receive, remove, hold",
        ordered_dead_letters="send",
        live="put, query",
    )
    | {"write history"},
    "page": expected_calls(inbox="look", outbox="look", live="get", exchanges="get, list"),
}


@pytest.fixture
def queues(deployment: Deployment) -> Iterator[Resources]:
    with resources_of(deployment, stage_queues=STAGE_QUEUES, beginnings=BEGINNINGS) as resources:
        yield resources
    deployment.session().client("sqs").purge_queue(QueueUrl=deployment.outputs["LiveDeadLetterQueueUrl"])


@pytest.mark.parametrize("name", ALLOWED)
def test_a_function_of_live_has_exactly_the_permissions_of_the_table(
    deployment: Deployment, queues: Resources, name: str
):
    role = permission_checks.functions_of(deployment, "live")[name]["Role"]
    with assumed_role(deployment, role) as session:
        allowed = permission_checks.allowed(CALLS, session, queues)

    assert allowed == ALLOWED[name]


def test_every_function_of_live_is_in_the_table(deployment: Deployment):
    assert permission_checks.functions_of(deployment, "live").keys() == ALLOWED.keys()
