"""Requests and responses of the HTTP API (payload format 2.0)."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

Response = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request; header names are in lower case, as in the HTTP API's events."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    source_ip: str
    request_id: str
    query: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, event: Mapping[str, Any]) -> "Request":
        """Return the request of an event."""
        body = event.get("body") or ""
        http = event["requestContext"]["http"]
        return cls(
            method=http["method"].upper(),
            path=event["rawPath"],
            headers={name.lower(): value for name, value in event.get("headers", {}).items()},
            body=base64.b64decode(body) if event.get("isBase64Encoded") else body.encode(errors="surrogatepass"),
            source_ip=http["sourceIp"],
            request_id=event["requestContext"]["requestId"],
            query=event.get("queryStringParameters") or {},
        )

    @property
    def is_preflight(self) -> bool:
        """Return whether the request is a CORS preflight."""
        return self.method == "OPTIONS"


def response(body: str, *, status: HTTPStatus, content_type: str, headers: Mapping[str, str]) -> Response:
    """Return a response."""
    return {"statusCode": int(status), "headers": {"Content-Type": content_type, **headers}, "body": body}
