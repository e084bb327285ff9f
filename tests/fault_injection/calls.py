"""Calls of AWS and their answers, as rules see them: after the signature and the permissions were checked."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol
from urllib.parse import parse_qsl

# Parameters that name the resource of a call, the first that is given.
NAMES = ("QueueUrl", "QueueName", "TableName", "DeliveryStreamName", "StackName", "UserName", "RoleName", "KeyId")


class Wire(Enum):
    """The protocol of a call, which decides the form of errors."""

    JSON = "json"
    QUERY = "query"
    REST_JSON = "rest-json"
    REST_XML = "rest-xml"


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """One call of a service."""

    service: str
    action: str
    """The operation; for REST services the method and the path."""
    parameters: Mapping[str, Any]
    """The parameters; those of REST services are not parsed."""
    headers: Mapping[str, str] = field(default_factory=dict)
    wire: Wire = Wire.JSON

    @property
    def resource(self) -> str:
        """The name of the resource that the call is about, or an empty text."""
        named = next((str(self.parameters[name]) for name in NAMES if self.parameters.get(name)), "")
        return named.rpartition("/")[2] or named

    def with_parameters(self, **changed: object) -> "ServiceCall":
        """Return the call with other parameters."""
        return replace(self, parameters={**self.parameters, **changed})


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a call."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_success(self) -> bool:
        """Return whether the call was carried out."""
        return self.status < 300

    def document(self) -> dict[str, Any]:
        """Return the body, which is a JSON object."""
        document: dict[str, Any] = json.loads(self.body or b"{}")
        return document

    def with_document(self, document: Mapping[str, Any]) -> "Answer":
        """Return the answer with another body; a checksum of the old one is left out."""
        headers = {name: value for name, value in self.headers.items() if name.lower() != "x-amz-crc32"}
        return Answer(self.status, json.dumps(document).encode(), headers)


Forward = Callable[[ServiceCall], Awaitable[Answer]]
"""Carries a call out."""
Clock = Callable[[], float]
"""Seconds that only increase."""


class CallRule(Protocol):
    """A rule that a call passes on its way to the service, and its answer on the way back."""

    async def answer(self, call: ServiceCall, forward: Forward) -> Answer:
        """Return the answer to a call; `forward` carries the call out."""


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """An HTTP request of a call, as MiniStack passes it to a service."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    query: Mapping[str, Any]

    def with_call(self, call: ServiceCall) -> "ServiceRequest":
        """Return the request of a changed call, whose parameters are JSON."""
        return replace(self, body=json.dumps(dict(call.parameters)).encode())


def parse_call(service: str, request: ServiceRequest) -> ServiceCall:
    """Return the call of a request."""
    path, headers, body, query = request.path, request.headers, request.body, request.query
    target = headers.get("x-amz-target", "")
    if target:
        parameters = _json_object(body)
        return ServiceCall(service, target.rpartition(".")[2], parameters, headers, Wire.JSON)
    form = {**{name: _first(value) for name, value in query.items()}, **dict(parse_qsl(_text(body)))}
    if "Action" in form and service not in ("s3", "lambda"):
        named = {"QueueUrl": path, **form} if service == "sqs" and path.count("/") > 1 else form
        return ServiceCall(service, form["Action"], named, headers, Wire.QUERY)
    wire = Wire.REST_XML if service == "s3" else Wire.REST_JSON
    return ServiceCall(service, f"{request.method} {path}", {}, headers, wire)


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body or b"{}")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _text(body: bytes) -> str:
    return body.decode("utf-8", errors="replace") if len(body) < 2**20 else ""


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value
