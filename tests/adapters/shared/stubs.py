"""Stubs for adapter tests: boto3 clients with one stubbed call, errors, and a Lambda function."""

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.exceptions import ClientError

URLS = "https://sqs.us-east-1.amazonaws.com/123456789012/"
ARNS = "arn:aws:sqs:us-east-1:123456789012:"
KEY = "arn:aws:kms:us-east-1:123456789012:key/1"


class StubbedClient:
    """A client with one stubbed call, which raises or returns the given answers; the last answer repeats."""

    def __init__(self, client, call: str, *answers: object) -> None:
        self.client, self.call, self.answers = client, call, list(answers)
        self.calls: list[dict[str, object]] = []

    def __getattr__(self, name: str) -> object:
        return self.respond if name == self.call else getattr(self.client, name)

    def respond(self, *_: object, **arguments: object) -> object:
        self.calls.append(arguments)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class PolicedSqs:
    """A client of moto or ElasticMQ, which do not store redrive allow policies; here by the names of queues."""

    def __init__(self, client) -> None:
        self.client = client
        self.policies: dict[str, str] = {}

    def __getattr__(self, name: str) -> object:
        return getattr(self.client, name)

    def create_queue(self, *, QueueName: str, Attributes: Mapping[str, str], **arguments) -> dict[str, str]:  # noqa: N803
        made = self.client.create_queue(QueueName=QueueName, Attributes=self._others(Attributes), **arguments)
        self._store(made["QueueUrl"], Attributes)
        return made

    def set_queue_attributes(self, *, QueueUrl: str, Attributes: Mapping[str, str]) -> None:  # noqa: N803
        if others := self._others(Attributes):
            self.client.set_queue_attributes(QueueUrl=QueueUrl, Attributes=others)
        self._store(QueueUrl, Attributes)

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: list[str]) -> dict[str, Any]:  # noqa: N803
        page = self.client.get_queue_attributes(QueueUrl=QueueUrl, AttributeNames=AttributeNames)
        policy = self.policies.get(QueueUrl.rpartition("/")[2])
        return {"Attributes": page["Attributes"] | ({"RedriveAllowPolicy": policy} if policy else {})}

    def _others(self, attributes: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in attributes.items() if name != "RedriveAllowPolicy"}

    def _store(self, url: str, attributes: Mapping[str, str]) -> None:
        if "RedriveAllowPolicy" in attributes:
            self.policies[url.rpartition("/")[2]] = attributes["RedriveAllowPolicy"]


class TaggingLambda:
    """moto's Lambda client, which does not store the tags of event source mappings."""

    def __init__(self) -> None:
        self.client = boto3.client("lambda")
        self.tags: dict[str, Mapping[str, str]] = {}

    def __getattr__(self, name: str) -> object:
        return getattr(self.client, name)

    def create_event_source_mapping(self, **arguments) -> dict[str, object]:
        made = self.client.create_event_source_mapping(**arguments)
        arn = f"{ARNS.replace(':sqs:', ':lambda:')}event-source-mapping:{made['UUID']}"
        self.tags[arn] = arguments.get("Tags", {})
        return made

    def list_tags(self, *, Resource: str) -> dict[str, object]:  # noqa: N803 - boto3's name
        return {"Tags": self.tags[Resource]}


def error(code: str, message: str = "no", *, status: int = 400) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "TheCall")


def role(name: str, *, policy: Mapping[str, object] | None = None) -> str:
    """Create a role and return its ARN."""
    iam = boto3.client("iam")
    made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17"}))["Role"]
    if policy:
        iam.put_role_policy(RoleName=name, PolicyName="queues", PolicyDocument=json.dumps(policy))
    return str(made["Arn"])


def code(text: str = "") -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("app.py", text)
    return packed.getvalue()


def function(
    name: str, *, role_name: str = "", policy: Mapping[str, object] | None = None, variables: Mapping[str, str] = {}
) -> str:
    """Create a function with a role of its own, and return its ARN."""
    made = boto3.client("lambda").create_function(
        FunctionName=name,
        Role=role(role_name or name, policy=policy),
        Handler="app.handler",
        Runtime="python3.13",
        Code={"ZipFile": code()},
        Environment={"Variables": variables},
    )
    return str(made["FunctionArn"])


def attributes_of(sqs, name: str) -> dict[str, str]:
    return sqs.get_queue_attributes(QueueUrl=URLS + name, AttributeNames=["All"])["Attributes"]


def tags_of(sqs, name: str) -> dict[str, str]:
    return sqs.list_queue_tags(QueueUrl=URLS + name)["Tags"]
