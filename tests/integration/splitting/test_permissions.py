"""The permissions of splitting on the deployed stage, as a table; the stage's settings make `demo-*` splittable."""

from collections.abc import Iterator
from contextlib import contextmanager

import boto3
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
from tests.integration.shared.permission_checks import (
    KEY_ITSELF,
    STAGE_CALLS,
    Call,
    assumed_role,
    calling,
    just,
    user_with_policy,
)

pytestmark = pytest.mark.emulator

STAGE_QUEUES = {"control queue": "SplitControlQueueUrl", "dead letters": "SplitDeadLetterQueueUrl"}
BROKER_QUEUE = "broker queue"
OWN_KINDS = ("original", "temporary queue", "reply queue", "other queue")
QUEUES: dict[str, Call] = {
    **{f"{kind}: make": make_queue(kind) for kind in OWN_KINDS},
    **{what: call for kind in (*OWN_KINDS, *STAGE_QUEUES, BROKER_QUEUE) for what, call in on_queue(kind).items()},
}


TABLES: dict[str, Call] = {
    **on_table("splits", "SplitTable", pk=NOBODY, sk=NOBODY),
    **on_kinds("splits", "SplitTable"),
    **on_table("rendezvous table", "RendezvousTable", pk=NOBODY, sk=NOBODY),
    **on_table("leases", "LeaseTable", queue_name=NOBODY),
}


FUNCTIONS: dict[str, Call] = {
    **on_function("target", just(f"demo-{OUR_MARK}")),
    **on_function("other function", lambda place: place.outputs["SweepFunctionName"]),
    **MAPPINGS,
}
QUESTION = {"QueryExecutionId": just("none")}


def _ask_history(work_group: str) -> Call:
    return calling(
        "athena",
        "start_query_execution",
        QueryString=just("SELECT 1"),
        WorkGroup=just(work_group),
        ResultConfiguration=lambda place: {"OutputLocation": f"s3://{place.outputs['HistoryBucket']}/queries/"},
    )


ROLE = {"RoleName": just(f"demo-{OUR_MARK}")}
OTHERS: dict[str, Call] = {
    "target's role: see policies": calling("iam", "list_role_policies", **ROLE),
    "target's role: see": calling("iam", "get_role", **ROLE),
    "target's role: change": calling(
        "iam", "put_role_policy", **ROLE, PolicyName=just("more"), PolicyDocument=just("{}")
    ),
    "target's role: attach": calling(
        "iam", "attach_role_policy", **ROLE, PolicyArn=just("arn:aws:iam::aws:policy/AdministratorAccess")
    ),
    "history: read": calling(
        "s3", "get_object", Bucket=lambda place: place.outputs["HistoryBucket"], Key=just("raw/none")
    ),
    "history: change": calling(
        "s3", "put_object", Bucket=lambda place: place.outputs["HistoryBucket"], Key=just(f"raw/{OUR_MARK}")
    ),
    "history: delete": calling(
        "s3", "delete_object", Bucket=lambda place: place.outputs["HistoryBucket"], Key=just(f"raw/{OUR_MARK}")
    ),
    "answers: write": calling(
        "s3", "put_object", Bucket=lambda place: place.outputs["HistoryBucket"], Key=just(f"queries/{OUR_MARK}")
    ),
    "history: ask": _ask_history("primary"),
    "history: see question": calling("athena", "get_query_execution", **QUESTION),
    "history: see answer": calling("athena", "get_query_results", **QUESTION),
    "history: ask elsewhere": _ask_history(f"demo-{OUR_MARK}"),
    "parameter: see": calling("ssm", "get_parameter", Name=just(f"demo-{OUR_MARK}")),
    "service: see": calling("ecs", "describe_services", cluster=just("demo"), services=just(["demo"])),
    "secrets: list": calling("secretsmanager", "list_secrets"),
}
CALLS: dict[str, Call] = {**TABLES, **FUNCTIONS, **OTHERS, **STAGE_CALLS, **QUEUES}


ALLOWED: dict[str, set[str]] = {
    "split": table_of(
        original="look, receive, remove", temporary_queue="send", dead_letters="send", splits="get, put, delete"
    )
    | {"write history"},
    "control": table_of(
        original="find, look, see tags, send",
        temporary_queue="make, tag, look, see tags, send, receive, remove, delete",
        reply_queue="look, see tags, send, delete",
        control_queue="look, send, receive, remove",
        dead_letters="send",
        splits="get, put, update, delete, list",
        target="look, change, publish, see aliases",
        mappings="see, make",
        history="read, ask, see question, see answer",
        answers="write",
    )
    | {"target's role: see policies", "list queues", "list history", "write history"},
    "person": table_of(
        control_queue="find, send",
        reply_queue="make, tag, find, receive, remove, delete",
        temporary_queue="find, look, receive, remove, hold",
        history="read, ask, see question, see answer",
        answers="write",
    )
    | {"list history"},
}
# The administrator does not break what the stage needs: the calls are tried on queues of the test's own.
HARMFUL = {
    f"{kind}: {what}"
    for kind in (*STAGE_QUEUES, BROKER_QUEUE)
    for what in ("send", "tag", "change", "empty", "delete", "hold", "remove")
} | {f"other function: {what}" for what in ("change", "publish", "change code", "call", "delete")}


@contextmanager
def identity(deployment: Deployment, name: str) -> Iterator[boto3.Session]:
    if name == "person":
        with user_with_policy(deployment, deployment.outputs["SplitUserPolicyArn"]) as session:
            yield session
        return
    with assumed_role(deployment, permission_checks.functions_of(deployment, "splitting")[name]["Role"]) as session:
        yield session


@pytest.fixture
def place(deployment: Deployment) -> Iterator[Place]:
    outputs = deployment.outputs
    beginnings = ("demo-", outputs["TemporaryQueuePrefix"], outputs["SplitReplyQueuePrefix"], "other-")
    with place_of(
        deployment,
        stage_queues={**STAGE_QUEUES, BROKER_QUEUE: "BrokerQueueUrl"},
        beginnings=dict(zip(OWN_KINDS, beginnings, strict=True)),
    ) as place:
        yield place
    deployment.session().client("sqs").purge_queue(QueueUrl=outputs["SplitDeadLetterQueueUrl"])


@pytest.mark.parametrize("name", ALLOWED)
def test_an_identity_of_splitting_has_exactly_the_permissions_of_the_table(
    deployment: Deployment, place: Place, name: str
):
    with identity(deployment, name) as session:
        allowed = permission_checks.allowed(CALLS, session, place)

    assert allowed == ALLOWED[name]


def test_every_function_of_splitting_is_in_the_table(deployment: Deployment):
    assert permission_checks.functions_of(deployment, "splitting").keys() | {"person"} == ALLOWED.keys()


def test_the_administrator_is_refused_none_of_it_but_the_key_itself(deployment: Deployment, place: Place):
    refused = permission_checks.refused_to_administrator(CALLS, deployment, place, without=HARMFUL)

    assert refused == {KEY_ITSELF}
