"""What the simulated services have in common: their errors, and the calls of clients that reach them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ACCOUNT, REGION = "123456789012", "us-east-1"

Answer = dict[str, Any]
Request = Mapping[str, Any]


@dataclass
class Refusal(Exception):
    """Raised by a service that refuses a call: the code on the wire, and the name of the exception in botocore."""

    code: str
    message: str = ""
    status: int = 400
    name: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    def document(self) -> Answer:
        """Return the response as botocore parses it."""
        error = {"Code": self.code, "Message": self.message or self.code}
        if self.name:
            error["QueryErrorCode"] = self.name
        return {"Error": error, "ResponseMetadata": {"HTTPStatusCode": self.status}, **self.details}


def arn_of(service: str, name: str) -> str:
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{name}"
