"""Calls parsed from requests, and errors in the forms that botocore parses."""

import json
from types import SimpleNamespace

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from tests.fault_injection.calls import ServiceCall, ServiceRequest, Wire, parse_call
from tests.fault_injection.errors import (
    FAULTS,
    GONE,
    KMS_THROTTLED,
    MAPPING_IN_USE,
    QUEUE_DELETED_RECENTLY,
    QUEUE_MISSING,
    ServiceError,
    faults_of,
)

# One for all tests: each session reads the models of the services again.
SESSION = boto3.Session("k", "s", region_name="us-east-1")
ONE_ATTEMPT = Config(retries={"total_max_attempts": 1})
URL = "http://127.0.0.1:4566/000000000000/orders"
# Calls of the services, in whose forms boto3 reads errors.
CALLS = {
    "sqs": ("sqs", Wire.JSON, lambda client: client.list_queues()),
    "dynamodb": ("dynamodb", Wire.JSON, lambda client: client.list_tables()),
    "lambda": ("lambda", Wire.REST_JSON, lambda client: client.list_functions()),
    "kms": ("kms", Wire.JSON, lambda client: client.list_keys()),
    "iam": ("iam", Wire.QUERY, lambda client: client.list_users()),
    "sts": ("sts", Wire.QUERY, lambda client: client.get_caller_identity()),
    "cloudformation": ("cloudformation", Wire.QUERY, lambda client: client.list_stacks()),
    "sns": ("sns", Wire.QUERY, lambda client: client.list_topics()),
    "s3": ("s3", Wire.REST_XML, lambda client: client.list_buckets()),
    "firehose": ("firehose", Wire.JSON, lambda client: client.list_delivery_streams()),
    "scheduler": ("scheduler", Wire.REST_JSON, lambda client: client.list_schedules()),
    "execute-api": (
        "apigatewaymanagementapi",
        Wire.REST_JSON,
        lambda client: client.post_to_connection(ConnectionId="c", Data=b"x"),
    ),
    "glue": ("glue", Wire.JSON, lambda client: client.list_jobs()),
}
ERRORS = [
    ("sqs", QUEUE_MISSING, "AWS.SimpleQueueService.NonExistentQueue"),
    ("sqs", QUEUE_DELETED_RECENTLY, "AWS.SimpleQueueService.QueueDeletedRecently"),
    ("sqs", KMS_THROTTLED, "KMS.ThrottlingException"),
    ("lambda", MAPPING_IN_USE, "ResourceInUseException"),
    ("execute-api", GONE, "GoneException"),
]


def request(target: str = "", body: bytes = b"", *, method: str = "POST", path: str = "/") -> ServiceRequest:
    return ServiceRequest(method, path, {"x-amz-target": target} if target else {}, body, {})


def test_a_call_in_json_has_its_action_parameters_and_resource():
    call = parse_call("sqs", request("AmazonSQS.SendMessage", json.dumps({"QueueUrl": URL}).encode()))

    assert (call.action, call.resource, call.wire) == ("SendMessage", "orders", Wire.JSON)


@pytest.mark.parametrize("body", [b"", b"no JSON", b"[1]"])
def test_a_call_without_an_object_of_json_has_no_parameters(body):
    assert parse_call("sqs", request("AmazonSQS.ListQueues", body)).parameters == {}


@pytest.mark.parametrize(
    ("path", "body"),
    [("/", f"Action=SendMessage&QueueUrl={URL}"), ("/000000000000/orders", "Action=SendMessage")],
    ids=["URL in the body", "URL as the path"],
)
def test_a_call_of_the_query_protocol_has_its_action_and_queue(path, body):
    call = parse_call("sqs", request(body=body.encode(), path=path))

    assert (call.action, call.resource, call.wire) == ("SendMessage", "orders", Wire.QUERY)


@pytest.mark.parametrize(("service", "wire"), [("lambda", Wire.REST_JSON), ("s3", Wire.REST_XML)])
def test_a_call_of_a_rest_service_is_named_by_method_and_path(service, wire):
    call = parse_call(service, request(method="PUT", path="/x/y"))

    assert (call.action, call.wire, call.resource) == ("PUT /x/y", wire, "")


def test_a_changed_call_is_sent_with_its_parameters():
    original = request("AmazonSQS.SendMessage", b'{"a": 1}')

    assert json.loads(original.with_call(parse_call("sqs", original).with_parameters(b=2)).body) == {"a": 1, "b": 2}


@pytest.mark.parametrize("service", CALLS)
@pytest.mark.parametrize("which", [0, 1], ids=["throttled", "server error"])
def test_boto3_reads_the_faults_of_each_service(service, which):
    _, wire, _ = CALLS[service]
    error = faults_of(ServiceCall(service, "", {}, wire=wire))[which]

    seen = seen_by_boto3(service, error)

    assert seen["Code"] == (error.query_code or error.code)
    assert seen["Message"] == error.message


@pytest.mark.parametrize(("service", "error", "expected"), ERRORS)
def test_boto3_reads_the_errors_of_the_rules(service, error, expected):
    assert seen_by_boto3(service, error)["Code"] == expected


def test_every_service_with_errors_of_its_own_is_tried():
    assert FAULTS.keys() <= CALLS.keys()


def seen_by_boto3(service: str, error: ServiceError) -> dict[str, str]:
    """Return the error that a client without retries raises for the answer."""
    name, wire, call = CALLS[service]
    answer = error.answer(ServiceCall(service, "", {}, wire=wire))
    client = SESSION.client(name, endpoint_url="http://127.0.0.1:9", config=ONE_ATTEMPT)
    raw = SimpleNamespace(stream=lambda **_: iter([answer.body]))

    def answered(request, **_):
        return AWSResponse(request.url, answer.status, {**answer.headers}, raw)

    client.meta.events.register("before-send", answered)
    try:
        call(client)
    except client.exceptions.ClientError as raised:
        return raised.response["Error"]
    raise AssertionError("no error")
