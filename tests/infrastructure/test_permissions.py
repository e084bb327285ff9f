"""The permissions of every identity of a stage, as the table in `permissions.json`; any other one fails the test."""

import json
from collections import defaultdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.infrastructure.templates import Templates, as_list

# By identity and resource, `service: Action Action`. The client's key is public by design: everyone has the permissions
# of `Rendezvous/ClientUser`. Only EventBridge Scheduler assumes `Schedules/Role`, for the stage's schedule group.
TABLE: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("permissions.json").read_text(encoding="utf-8"))


def granted(stage: Templates) -> dict[str, dict[str, set[str]]]:
    """Return the allowed actions of each identity, by resource."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for policy in stage.every("AWS::IAM::Policy").values():
        (identity,) = policy["Properties"].get("Roles") or policy["Properties"]["Users"]
        _add(found[stage.text(identity)], stage, policy)
    for name, policy in stage.every("AWS::IAM::ManagedPolicy").items():
        _add(found[name], stage, policy)
    return {identity: dict(resources) for identity, resources in found.items()}


def _add(found: dict[str, set[str]], stage: Templates, policy: dict[str, Any]) -> None:
    for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
        assert statement["Effect"] == "Allow"
        for resource in as_list(statement["Resource"]):
            text = stage.text(resource)
            found["<asset>" if "cdk-hnb659fds-assets" in text else text] |= set(as_list(statement["Action"]))


def actions(text: str) -> set[str]:
    """Return the actions of the short form `service: Action Action service: Action`."""
    found, service = set(), ""
    for word in text.split():
        if word.endswith(":"):
            service = word
        else:
            found.add(service + word)
    return found


@pytest.mark.parametrize("identity", TABLE)
def test_an_identity_has_exactly_the_permissions_of_the_table(stage, identity):
    expected = {resource: actions(text) for resource, text in TABLE[identity].items()}

    assert granted(stage)[identity] == expected


def test_every_role_user_and_managed_policy_is_in_the_table(stage):
    roles = set(stage.every("AWS::IAM::Role")) | set(stage.every("AWS::IAM::User"))

    assert roles | set(stage.every("AWS::IAM::ManagedPolicy")) == set(TABLE)
    assert set(granted(stage)) == set(TABLE)


def test_no_policy_allows_an_action_with_a_wildcard(stage):
    allowed = [(name, s["Action"]) for name, s in stage.statements() if s["Effect"] == "Allow"]

    assert allowed
    assert not [entry for entry in allowed if any("*" in action for action in as_list(entry[1]))]


def test_people_make_change_and_delete_no_queues(stage):
    """CreateQueue also sets where SQS moves messages, without a permission to send."""
    forbidden = {f"sqs:{action}" for action in ("CreateQueue", "DeleteQueue", "SetQueueAttributes", "TagQueue")}
    people = [name for name in granted(stage) if not name.endswith("Role")]

    assert people == ["Rendezvous/ClientUser", "Splitting/UserPolicy"]
    for name in people:
        assert not {action for actions in granted(stage)[name].values() for action in actions} & forbidden, name


def test_keys_are_used_through_services_only(stage):
    for name, statement in stage.statements():
        uses = {"kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"} & set(as_list(statement["Action"]))
        if uses:
            conditions = {key for test in statement["Condition"].values() for key in test}
            assert conditions & {"kms:ViaService", "kms:EncryptionContext:aws:logs:arn"}, name


# The condition keys that a service sends when it assumes a role, by its documentation of trust policies.
SENT_KEYS = {
    # https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html: both keys,
    # and the ARN must be that of the schedule group, not of a schedule
    "scheduler.amazonaws.com": {"aws:SourceAccount", "aws:SourceArn"},
    # https://docs.aws.amazon.com/firehose/latest/dev/controlling-access.html: a policy without conditions
    "firehose.amazonaws.com": set(),
    # https://docs.aws.amazon.com/lambda/latest/dg/lambda-intro-execution-role.html: a policy without conditions
    "lambda.amazonaws.com": set(),
    # https://docs.aws.amazon.com/glue/latest/dg/create-an-iam-role.html: a policy without conditions
    "glue.amazonaws.com": set(),
    # https://docs.aws.amazon.com/apigateway/latest/developerguide/permissions.html: a policy without conditions
    "apigateway.amazonaws.com": set(),
}
CONFUSABLE = {"scheduler.amazonaws.com", "firehose.amazonaws.com"}
"""Services whose roles are restricted to this account."""


def test_a_service_role_requires_only_keys_that_the_service_is_documented_to_send(stage):
    """A role that its service cannot assume fails the deployment of the whole stack."""
    restricted = set()
    for name, role in stage.every("AWS::IAM::Role").items():
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        service = statement["Principal"].get("Service")
        if service is None:
            continue
        for operator, keys in statement.get("Condition", {}).items():
            assert operator.endswith("IfExists") or set(keys) <= SENT_KEYS[service], name
            assert stage.text(keys["aws:SourceAccount"]) == "<AccountId>", name
            if "aws:SourceArn" in keys:
                assert stage.text(keys["aws:SourceArn"]) == "Schedules/Group", name
            restricted.add(service)
        assert service in SENT_KEYS, name

    assert restricted == CONFUSABLE


def test_every_route_may_call_its_function(stage):
    """API Gateway names the route as API/STAGE/METHOD/PATH, and a route with a name as API/STAGE/NAME.

    So `API/*/*/*` does not admit `$default`: https://github.com/aws/serverless-application-model/issues/1860.
    """
    routes, integrations = stage.every("AWS::ApiGatewayV2::Route"), stage.every("AWS::ApiGatewayV2::Integration")
    permitted = {
        (stage.text(one["Properties"]["FunctionName"]), stage.text(one["Properties"].get("SourceArn", "")))
        for one in stage.every("AWS::Lambda::Permission").values()
    }
    called = 0
    for name, route in routes.items():
        properties = route["Properties"]
        integration = integrations[stage.text(properties["Target"]).removeprefix("integrations/")]["Properties"]
        if integration["IntegrationType"] != "AWS_PROXY":
            continue
        method, _, path = properties["RouteKey"].rpartition(" ")
        source = f"{stage.text(properties['ApiId'])}/live/{method and 'GET'}{path}"
        uri = stage.text(integration["IntegrationUri"])
        called += 1
        assert any(function in uri and fnmatchcase(source, arn.rpartition(":")[2]) for function, arn in permitted), name

    assert called >= 7
