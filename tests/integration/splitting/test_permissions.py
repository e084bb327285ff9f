"""The permissions of splitting on the deployed stage, as a table; the stage's settings make `demo-*` splittable."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import boto3
import pytest

from signalbox.cli.shared.deployment import Deployment
from signalbox.splitting.queues.policy import QueueTag, Splittable, policy_document
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
from tests.integration.shared.permission_checks import (
    KEY_ITSELF,
    STAGE_CALLS,
    Call,
    api_call,
    assumed_role,
    constant,
    user_with_policy,
)

pytestmark = [pytest.mark.emulator, pytest.mark.release]

STAGE_QUEUES = {
    "control queue": "SplitControlQueueUrl",
    "reply queue": "SplitReplyQueueUrl",
    "dead letters": "SplitDeadLetterQueueUrl",
}
BROKER_QUEUE = "broker queue"
OWN_KINDS = ("original", "temporary queue", "other queue")
QUEUES: dict[str, Call] = {
    **{f"{kind}: make": create_queue_call(kind) for kind in OWN_KINDS},
    **{what: call for kind in (*OWN_KINDS, *STAGE_QUEUES, BROKER_QUEUE) for what, call in queue_calls(kind).items()},
}


TABLES: dict[str, Call] = {
    **table_calls("splits", "SplitTable", pk=NOBODY, sk=NOBODY),
    **list_by_kind_call("splits", "SplitTable"),
    **table_calls("rendezvous table", "RendezvousTable", pk=NOBODY, sk=NOBODY),
    **table_calls("leases", "LeaseTable", queue_name=NOBODY),
}


FUNCTIONS: dict[str, Call] = {
    **function_calls("target", constant(f"demo-{OUR_MARK}")),
    **function_calls("other function", lambda resources: resources.outputs["SweepFunctionName"]),
    **MAPPINGS,
}
QUESTION = {"QueryExecutionId": constant("none")}


def _ask_history(work_group: str) -> Call:
    return api_call(
        "athena",
        "start_query_execution",
        QueryString=constant("SELECT 1"),
        WorkGroup=constant(work_group),
        ResultConfiguration=lambda resources: {"OutputLocation": f"s3://{resources.outputs['HistoryBucket']}/queries/"},
    )


def _parameter_call(operation: str, name: str, **arguments: object) -> Call:
    return api_call("ssm", operation, Name=constant(name), **{key: constant(one) for key, one in arguments.items()})


def _service_call(operation: str, **arguments: object) -> Call:
    return lambda session, _: getattr(session.client("ecs"), operation)(cluster="demo", **arguments)


ROLE = {"RoleName": constant(f"demo-{OUR_MARK}")}
OTHERS: dict[str, Call] = {
    "target's role: see policies": api_call("iam", "list_role_policies", **ROLE),
    "target's role: see": api_call("iam", "get_role", **ROLE),
    "target's role: change": api_call(
        "iam", "put_role_policy", **ROLE, PolicyName=constant("more"), PolicyDocument=constant("{}")
    ),
    "target's role: attach": api_call(
        "iam", "attach_role_policy", **ROLE, PolicyArn=constant("arn:aws:iam::aws:policy/AdministratorAccess")
    ),
    "history: read": api_call(
        "s3", "get_object", Bucket=lambda resources: resources.outputs["HistoryBucket"], Key=constant("raw/none")
    ),
    "history: change": api_call(
        "s3", "put_object", Bucket=lambda resources: resources.outputs["HistoryBucket"], Key=constant(f"raw/{OUR_MARK}")
    ),
    "history: delete": api_call(
        "s3",
        "delete_object",
        Bucket=lambda resources: resources.outputs["HistoryBucket"],
        Key=constant(f"raw/{OUR_MARK}"),
    ),
    "answers: write": api_call(
        "s3",
        "put_object",
        Bucket=lambda resources: resources.outputs["HistoryBucket"],
        Key=constant(f"queries/{OUR_MARK}"),
    ),
    "history: ask": _ask_history("primary"),
    "history: see question": api_call("athena", "get_query_execution", **QUESTION),
    "history: see answer": api_call("athena", "get_query_results", **QUESTION),
    "history: ask elsewhere": _ask_history(f"demo-{OUR_MARK}"),
    **{
        f"{whose}parameter: {what}": _parameter_call(operation, f"{name}-{OUR_MARK}", **more)
        for whose, name in (("", "demo"), ("other ", "other"))
        for what, operation, more in (
            ("see", "get_parameter", {}),
            ("see history", "get_parameter_history", {}),
            ("change", "put_parameter", {"Value": "x", "Overwrite": True}),
            ("delete", "delete_parameter", {}),
        )
    },
    **{
        f"{whose}service: {what}": _service_call(operation, **{key: name})
        for whose, service in (("", "demo"), ("other ", "other"))
        for what, operation, key, name in (
            ("see", "describe_services", "services", [f"{service}-{OUR_MARK}"]),
            ("change", "update_service", "service", f"{service}-{OUR_MARK}"),
            ("delete", "delete_service", "service", f"{service}-{OUR_MARK}"),
        )
    },
    "task definition: see": api_call("ecs", "describe_task_definition", taskDefinition=constant("demo")),
    "tasks: run": api_call("ecs", "run_task", cluster=constant("demo"), taskDefinition=constant("demo")),
    "secrets: list": api_call("secretsmanager", "list_secrets"),
}
CALLS: dict[str, Call] = {**TABLES, **FUNCTIONS, **OTHERS, **STAGE_CALLS, **QUEUES}


ALLOWED: dict[str, set[str]] = {
    "split": expected_calls(
        original="look, receive, remove", temporary_queue="send", dead_letters="send", splits="get, put, delete"
    )
    | {"write history"},
    "control": expected_calls(
        original="find, look, see tags, send",
        temporary_queue="make, tag, change, look, see tags, send, receive, remove, delete",
        reply_queue="send",
        control_queue="look, send, receive, remove",
        dead_letters="send",
        splits="get, put, update, delete, list",
        target="look, change, publish, see aliases",
        mappings="see, make",
        history="read, ask, see question, see answer",
        answers="write",
        parameter="see, see history, change",
        service="see, change",
        task_definition="see",
    )
    | {"target's role: see policies", "list queues", "list history", "write history"},
    "person": expected_calls(
        control_queue="find, send",
        reply_queue="find, receive, remove, hold",
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
def resources(deployment: Deployment) -> Iterator[Resources]:
    outputs = deployment.outputs
    beginnings = ("demo-", outputs["TemporaryQueuePrefix"], "other-")
    with resources_of(
        deployment,
        stage_queues={**STAGE_QUEUES, BROKER_QUEUE: "BrokerQueueUrl"},
        beginnings=dict(zip(OWN_KINDS, beginnings, strict=True)),
    ) as resources:
        yield resources
    deployment.session().client("sqs").purge_queue(QueueUrl=outputs["SplitDeadLetterQueueUrl"])


@pytest.mark.parametrize("name", ALLOWED)
def test_an_identity_of_splitting_has_exactly_the_permissions_of_the_table(
    deployment: Deployment, resources: Resources, name: str
):
    with identity(deployment, name) as session:
        allowed = permission_checks.allowed(CALLS, session, resources)

    assert allowed == ALLOWED[name]


def test_every_function_of_splitting_is_in_the_table(deployment: Deployment):
    assert permission_checks.functions_of(deployment, "splitting").keys() | {"person"} == ALLOWED.keys()


def test_the_administrator_is_refused_none_of_it_but_the_key_itself(deployment: Deployment, resources: Resources):
    refused = permission_checks.refused_to_administrator(CALLS, deployment, resources, without=HARMFUL)

    assert refused == {KEY_ITSELF}


ORIGINAL, TEMPORARY = QueueTag("splittable", "yes"), QueueTag("tool", "split")


@pytest.fixture
def operator(deployment: Deployment) -> Iterator[boto3.Session]:
    """A user with the policy that `signalbox split policy` prints, limited by both tags."""
    iam, prefix = deployment.session().client("iam"), deployment.outputs["TemporaryQueuePrefix"]
    document = policy_document(Splittable("arn:aws:sqs:*:*:", tag=ORIGINAL, temporary_tag=TEMPORARY, prefix=prefix))
    name = f"printed-{secrets.token_hex(4)}"
    policy = iam.create_policy(PolicyName=name, PolicyDocument=json.dumps(document))["Policy"]["Arn"]
    try:
        with user_with_policy(deployment, policy) as session:
            yield session
    finally:
        iam.delete_policy(PolicyArn=policy)


def test_a_printed_policy_reaches_queues_with_its_tags_only(deployment: Deployment, operator: boto3.Session):
    prefix, mark = deployment.outputs["TemporaryQueuePrefix"], secrets.token_hex(4)
    tags = {
        f"demo-tagged-{mark}": {ORIGINAL.key: ORIGINAL.value},
        f"demo-locked-{mark}": {ORIGINAL.key: "no"},
        f"{prefix}ours-{mark}": {TEMPORARY.key: TEMPORARY.value},
        f"{prefix}theirs-{mark}": {TEMPORARY.key: "other"},
        f"{prefix}plain-{mark}": {},
    }
    made = deployment.session().client("sqs")
    urls = {name: made.create_queue(QueueName=name, tags=of_queue)["QueueUrl"] for name, of_queue in tags.items()}
    again = {TEMPORARY.key: TEMPORARY.value}
    calls: dict[str, Call] = {}
    for name, url in urls.items():
        what = name.removesuffix(f"-{mark}").removeprefix(prefix)
        calls[f"{what}: send"] = api_call("sqs", "send_message", QueueUrl=constant(url), MessageBody=constant("x"))
        calls[f"{what}: receive"] = api_call("sqs", "receive_message", QueueUrl=constant(url))
        calls[f"{what}: tag"] = api_call("sqs", "tag_queue", QueueUrl=constant(url), Tags=constant(again))
    for what, of_queue in {"new": again, "new otherwise": {TEMPORARY.key: "other"}, "new and plain": {}}.items():
        name = f"{prefix}{what.replace(' ', '-')}-{mark}"
        calls[what] = api_call("sqs", "create_queue", QueueName=constant(name), tags=constant(of_queue))

    allowed = permission_checks.allowed(calls, operator, cast("Any", None))

    found = made.list_queues(QueueNamePrefix=prefix).get("QueueUrls", [])
    for url in {*urls.values(), *(url for url in found if url.endswith(mark))}:
        made.delete_queue(QueueUrl=url)
    assert allowed == {
        *("demo-tagged: send", "demo-tagged: receive"),
        *("ours: send", "ours: receive", "ours: tag"),
        "plain: tag",
        "new",
    }
