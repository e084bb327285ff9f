"""What the functions of the exchange may do on the deployed stage, as a table; users are in another."""

from collections.abc import Iterator

import pytest

from signalbox.cli.shared.deployment import Deployment
from tests.integration.shared import permission_checks
from tests.integration.shared.api_calls import (
    MAPPINGS,
    NOBODY,
    OUR_MARK,
    Place,
    make_queue,
    on_function,
    on_kinds,
    on_queue,
    on_table,
    place_of,
    table_of,
)
from tests.integration.shared.permission_checks import KEY_ITSELF, STAGE_CALLS, Call, assumed_role, calling, just

pytestmark = pytest.mark.emulator

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
USER = {"UserName": just(f"signalbox_{OUR_MARK}")}
CALLS: dict[str, Call] = {
    **STAGE_CALLS,
    **MAPPINGS,
    **{f"{kind}: make": make_queue(kind) for kind in BEGINNINGS},
    **{what: call for kind in (*BEGINNINGS, *STAGE_QUEUES) for what, call in on_queue(kind).items()},
    **on_table("exchanges", "ExchangeTable", pk=NOBODY, sk=NOBODY),
    **on_kinds("exchanges", "ExchangeTable"),
    "exchanges: get many": calling(
        "dynamodb",
        "batch_get_item",
        RequestItems=lambda place: {place.outputs["ExchangeTable"]: {"Keys": [{"pk": NOBODY, "sk": NOBODY}]}},
    ),
    **on_table("splits", "SplitTable", pk=NOBODY, sk=NOBODY),
    **on_function("router", lambda place: place.outputs["RouteFunctionName"]),
    "metrics: read": calling(
        "cloudwatch", "get_metric_data", MetricDataQueries=just([]), StartTime=just(0), EndTime=just(60)
    ),
    "users: make": calling("iam", "create_user", **USER),
    "users: give rights": calling(
        "iam", "put_user_policy", **USER, PolicyName=just("exchange"), PolicyDocument=just("{}")
    ),
    "users: make a key": calling("iam", "create_access_key", **USER),
}
DECLARED = "make, tag, change, look, see tags, send, delete"
ALLOWED: dict[str, set[str]] = {
    "route": table_of(
        exchange="look, receive, remove",
        plain_exchange="look, receive, remove",
        declared_queue="send",
        dead_letters="send",
        exchanges="get, get many, update",
    )
    | {"write history"},
    "control": table_of(
        exchange=DECLARED,
        plain_exchange=DECLARED,
        declared_queue=DECLARED,
        control_queue="look, receive, remove",
        reply_queue="look, see tags, send, delete",
        dead_letters="send",
        exchanges="get, put, update, delete, list",
        mappings="see, make",
        metrics="read",
    )
    | {f"user's control queue: {what}" for what in ("look", "receive", "remove")}
    | {"list queues", "write history"},
}


@pytest.fixture
def place(deployment: Deployment) -> Iterator[Place]:
    with place_of(deployment, stage_queues=STAGE_QUEUES, beginnings=BEGINNINGS) as place:
        yield place
    deployment.session().client("sqs").purge_queue(QueueUrl=deployment.outputs["ExchangeDeadLetterQueueUrl"])


@pytest.mark.parametrize("name", ALLOWED)
def test_a_function_of_the_exchange_may_do_what_the_table_says_and_nothing_else(
    deployment: Deployment, place: Place, name: str
):
    role = permission_checks.functions_of(deployment, "exchange")[name]["Role"]
    with assumed_role(deployment, role) as session:
        allowed = permission_checks.allowed(CALLS, session, place)

    assert allowed == ALLOWED[name]


def test_every_function_of_the_exchange_is_in_the_table(deployment: Deployment):
    assert permission_checks.functions_of(deployment, "exchange").keys() == ALLOWED.keys()


def test_the_administrator_is_refused_none_of_it_but_the_key_itself(deployment: Deployment, place: Place):
    # The administrator does not break what the stage needs, and makes no users.
    harmful = {
        f"{kind}: {what}"
        for kind in STAGE_QUEUES
        for what in ("send", "tag", "change", "empty", "delete", "hold", "remove")
    }
    harmful |= {f"router: {what}" for what in ("change", "publish", "change code", "call", "delete")}
    harmful |= {call for call in CALLS if call.startswith("users: ")}

    refused = permission_checks.refused_to_administrator(CALLS, deployment, place, without=harmful)

    assert refused == {KEY_ITSELF}
