"""AWS over the wire: botocore's own parsers read the responses of a test, in the form that AWS documents."""

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import EndpointConnectionError
from botocore.httpsession import URLLib3Session

ACCOUNT = "123456789012"
Body = str | dict[str, Any]
# The operations of services that are named by their path.
BY_PATH = {"/2016-08-19/account-settings": "GetAccountSettings", "/GetDataLakeSettings": "GetDataLakeSettings"}


@dataclass(frozen=True)
class Answer:
    """An HTTP response of AWS."""

    body: Body
    status: int = 200


def refusal(code: str, message: str = "no", *, status: int = 400, kind: str = "json") -> Answer:
    """Return an error response, as JSON or as XML of the query protocol."""
    if kind == "json":
        return Answer({"__type": f"com.amazonaws#{code}", "message": message}, status)
    error = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"
    return Answer(f"<ErrorResponse>{error}<RequestId>1</RequestId></ErrorResponse>", status)


def result(operation: str, content: str) -> Answer:
    """Return a response of the query protocol."""
    return Answer(f"<{operation}Response><{operation}Result>{content}</{operation}Result></{operation}Response>")


@dataclass
class Wire:
    """The responses by operation, and the requests that arrived; an operation without a response has no network."""

    answers: dict[str, Answer | list[Answer]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    hosts: dict[str, str] = field(default_factory=dict)

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        operation = _operation(request)
        self.asked.append(operation)
        self.hosts[operation] = urlsplit(request.url).netloc
        answer = self.answers.get(operation)
        if answer is None:
            raise EndpointConnectionError(endpoint_url=request.url)
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        headers = {"x-amzn-requestid": "1", "content-type": "application/x-amz-json-1.1"}
        found = AWSResponse(request.url, answer.status, headers, None)
        found._content = text.encode()
        return found


def _operation(request: AWSPreparedRequest) -> str:
    target = request.headers.get("X-Amz-Target")
    if target:
        return (target.decode() if isinstance(target, bytes) else target).rpartition(".")[2]
    url = urlsplit(request.url)
    if url.path in BY_PATH:
        return BY_PATH[url.path]
    body = request.body.decode() if isinstance(request.body, bytes) else request.body or ""
    return parse_qs(body)["Action"][0]


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """Replace the network below botocore, with fake credentials and a region."""
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "none")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "none")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    # Without a pause between the two attempts.
    monkeypatch.setattr("botocore.endpoint.time.sleep", _no_pause)
    fake = Wire(healthy())
    monkeypatch.setattr(URLLib3Session, "send", lambda _self, request: fake.send(request))
    return fake


def _no_pause(_seconds: float) -> None: ...


def healthy() -> dict[str, Answer | list[Answer]]:
    """Return the responses of an account in which a deployment succeeds."""
    caller = f"arn:aws:sts::{ACCOUNT}:assumed-role/Deployer/ann"
    return {
        "GetCallerIdentity": result("GetCallerIdentity", f"<Arn>{caller}</Arn><Account>{ACCOUNT}</Account>"),
        "GetAccountSettings": concurrency(1000, 1000),
        "DescribeStacks": refusal("ValidationError", "Stack with id signalbox does not exist", kind="query"),
        "DescribeConfigurationRecorders": Answer({"ConfigurationRecorders": []}),
        "DescribeConfigurationRecorderStatus": Answer({"ConfigurationRecordersStatus": []}),
        "ListQueues": Answer({}),
        "GetDataLakeSettings": data_lake(databases=True, tables=True),
        "SimulatePrincipalPolicy": simulated("allowed", by_organization=True),
        "GetTopicAttributes": result("GetTopicAttributes", "<Attributes></Attributes>"),
    }


def concurrency(limit: int, unreserved: int) -> Answer:
    return Answer({"AccountLimit": {"ConcurrentExecutions": limit, "UnreservedConcurrentExecutions": unreserved}})


def data_lake(*, databases: bool, tables: bool) -> Answer:
    """Return the settings of a data lake that admits every principal of IAM to new databases or tables, or not."""
    every = [{"Principal": {"DataLakePrincipalIdentifier": "IAM_ALLOWED_PRINCIPALS"}, "Permissions": ["ALL"]}]
    defaults = {"CreateDatabaseDefaultPermissions": databases, "CreateTableDefaultPermissions": tables}
    return Answer({"DataLakeSettings": {name: every if admits else [] for name, admits in defaults.items()}})


def simulated(decision: str, *, by_organization: bool) -> Answer:
    """Return the simulated decision on `iam:CreateUser`, and whether the organization allows it."""
    detail = f"<AllowedByOrganizations>{json.dumps(by_organization)}</AllowedByOrganizations>"
    member = f"<EvalActionName>iam:CreateUser</EvalActionName><EvalDecision>{decision}</EvalDecision>"
    member += f"<OrganizationsDecisionDetail>{detail}</OrganizationsDecisionDetail>"
    return result("SimulatePrincipalPolicy", f"<EvaluationResults><member>{member}</member></EvaluationResults>")
