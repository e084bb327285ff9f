"""Messages of kombu as messages of SQS: one JSON object each, as in kombu's other virtual transports."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kombu.utils.json import loads

RECEIVED: Final = ("ApproximateReceiveCount", "SentTimestamp")
PUBLISHED_AT, EXPIRES_AT, TOPIC, EXCHANGE = "published_at", "expires_at", "topic", "exchange"
ATTRIBUTES = (PUBLISHED_AT, EXPIRES_AT, TOPIC, EXCHANGE)


@dataclass(frozen=True, slots=True)
class Received:
    """A received message in kombu's form, its receipt, its priority, and when it was sent and expires, in ms."""

    payload: dict[str, Any]
    receipt: str
    priority: int
    sent_at: int
    expires_at: float

    @classmethod
    def parse(cls, message: Mapping[str, Any]) -> "Received":
        """Return a message of SQS; one of another program is a text, so that it is never lost on the way."""
        attributes = {
            name: one.get("StringValue", "") for name, one in (message.get("MessageAttributes") or {}).items()
        }
        payload = _envelope(message["Body"]) or _text(message["Body"], attributes)
        properties = payload["properties"]
        system = message["Attributes"]
        properties["delivery_info"]["redelivered"] = int(system.get("ApproximateReceiveCount", "1")) > 1
        sent_at = int(attributes.get(PUBLISHED_AT) or system["SentTimestamp"])
        lifetime = float(properties.get("expiration") or "inf")
        expires_at = min(float(attributes.get(EXPIRES_AT) or "inf"), sent_at + lifetime)
        return cls(payload, message["ReceiptHandle"], int(properties.get("priority") or 0), sent_at, expires_at)


def _envelope(body: str) -> dict[str, Any] | None:
    """Return the message that a body holds, if one of kombu's wrote it."""
    try:
        found = loads(body)
        properties = found["properties"]
        float(properties.get("expiration") or 0), int(properties.get("priority") or 0)
        properties["delivery_info"]["exchange"], found["body"]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    return dict(found)


def _text(body: str, attributes: Mapping[str, str]) -> dict[str, Any]:
    info = {"exchange": attributes.get(EXCHANGE, ""), "routing_key": attributes.get(TOPIC, "")}
    properties = {"delivery_info": info, "body_encoding": "utf-8"}
    return {
        "body": body,
        "content-type": "text/plain",
        "content-encoding": "utf-8",
        "headers": {},
        "properties": properties,
    }
