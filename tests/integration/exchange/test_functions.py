"""The permissions of the exchange's functions on the deployed stage, as a table without users."""

from collections.abc import Iterator

import pytest

from signalbox.cli.shared.deployment import Deployment
from tests.integration.shared import permission_checks
from tests.integration.shared.api_calls import (
    MAPPINGS,
    NOBODY,
    OUR_MARK,
    Resources,
    create_queue_call,
    expected_calls,
    function_calls,
    list_by_kind_call,
    queue_calls,
    resources_of,
    table_calls,
)
from tests.integration.shared.permission_checks import KEY_ITSELF, STAGE_CALLS, Call, api_call, assumed_role, constant

pytestmark = [pytest.mark.emulator, pytest.mark.release]

STAGE_QUEUES = {
    "control queue": "ExchangeControlQueueUrl",
    "dead letters": "ExchangeDeadLetterQueueUrl",
    "broker queue": "BrokerQueueUrl",
    "commands about splits": "SplitControlQueueUrl",
}
BEGINNINGS = {
    "exchange": "xs_",
    "plain exchange": "x",
    "declared queue": "q_",
    "other queue": "other-",
    "user's control queue": "signalbox-exchange-control-",
    "reply queue": "signalbox-exchange-reply-",
    "session's queue": "mirrord-",
}
USER = {"UserName": constant(f"signalbox_{OUR_MARK}")}
CALLS: dict[str, Call] = {
    **STAGE_CALLS,
    **MAPPINGS,
    **{f"{kind}: make": create_queue_call(kind) for kind in BEGINNINGS},
    **{what: call for kind in (*BEGINNINGS, *STAGE_QUEUES) for what, call in queue_calls(kind).items()},
    **table_calls("exchanges", "ExchangeTable", pk=NOBODY, sk=NOBODY),
    **list_by_kind_call("exchanges", "ExchangeTable"),
    "exchanges: get many": api_call(
        "dynamodb",
        "batch_get_item",
        RequestItems=lambda resources: {resources.outputs["ExchangeTable"]: {"Keys": [{"pk": NOBODY, "sk": NOBODY}]}},
    ),
    **table_calls("splits", "SplitTable", pk=NOBODY, sk=NOBODY),
    **function_calls("router", lambda resources: resources.outputs["RouteFunctionName"]),
    "metrics: read": api_call(
        "cloudwatch", "get_metric_data", MetricDataQueries=constant([]), StartTime=constant(0), EndTime=constant(60)
    ),
    "users: make": api_call("iam", "create_user", **USER),
    "users: give rights": api_call(
        "iam", "put_user_policy", **USER, PolicyName=constant("exchange"), PolicyDocument=constant("{}")
    ),
    "users: make a key": api_call("iam", "create_access_key", **USER),
}
DECLARED = "make, tag, change, look, see tags, send, delete"
ALLOWED: dict[str, set[str]] = {
    "route": expected_calls(
        exchange="look, receive, remove",
        plain_exchange="look, receive, remove",
        declared_queue="send",
        dead_letters="send",
        exchanges="get, get many, update",
    )
    | {"write history"},
    "control": expected_calls(
        exchange=DECLARED,
        plain_exchange=DECLARED,
        declared_queue=DECLARED,
        control_queue="look, receive, remove",
        reply_queue="make, tag, change, look, see tags, send",
        dead_letters="send",
        exchanges="get, get many, put, update, delete, list",
        mappings="see, make",
        metrics="read",
    )
    | {f"user's control queue: {what}" for what in ("look", "receive", "remove", "change")}
    | {"list queues", "write history"},
}


@pytest.fixture
def resources(deployment: Deployment) -> Iterator[Resources]:
    with resources_of(deployment, stage_queues=STAGE_QUEUES, beginnings=BEGINNINGS) as resources:
        yield resources
    deployment.session().client("sqs").purge_queue(QueueUrl=deployment.outputs["ExchangeDeadLetterQueueUrl"])


@pytest.mark.parametrize("name", ALLOWED)
def test_a_function_of_the_exchange_may_do_what_the_table_says_and_nothing_else(
    deployment: Deployment, resources: Resources, name: str
):
    role = permission_checks.functions_of(deployment, "exchange")[name]["Role"]
    with assumed_role(deployment, role) as session:
        allowed = permission_checks.allowed(CALLS, session, resources)

    assert allowed == ALLOWED[name]


def test_every_function_of_the_exchange_is_in_the_table(deployment: Deployment):
    assert permission_checks.functions_of(deployment, "exchange").keys() == ALLOWED.keys()


def test_the_administrator_is_refused_none_of_it_but_the_key_itself(deployment: Deployment, resources: Resources):
    # The administrator does not break what the stage needs, and makes no users.
    harmful = {
        f"{kind}: {what}"
        for kind in STAGE_QUEUES
        for what in ("send", "tag", "change", "empty", "delete", "hold", "remove")
    }
    harmful |= {f"router: {what}" for what in ("change", "publish", "change code", "call", "delete")}
    harmful |= {call for call in CALLS if call.startswith("users: ")}

    refused = permission_checks.refused_to_administrator(CALLS, deployment, resources, without=harmful)

    assert refused == {KEY_ITSELF}
