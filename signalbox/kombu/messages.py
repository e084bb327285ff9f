"""Messages of kombu as messages of SQS: JSON objects, of which a publisher chooses every byte."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from kombu.transport import virtual
from kombu.utils.json import loads, object_hook

from signalbox.exchange.messages.deliveries import DeliveredMessage, InvalidDelivery
from signalbox.kombu.names import Namespace
from signalbox.messages import Message, NotAMessage

RECEIVED: Final = ("ApproximateReceiveCount", "SentTimestamp")
# The attributes of a copy without its headers.
ATTRIBUTES = ("topic", "exchange", "message_id", "publisher", "published_at", "expires_at")
TEXT = "utf-8"  # the encoding of a body that is a text
HIGHEST_PRIORITY = 255  # AMQP, an octet
DECIMAL_DIGITS = 255  # AMQP's decimals have a scale of an octet; of `1E+999999999` Python makes an integer for hours
SHORT_STRINGS = ("content-type", "content-encoding")
SHORT_STRINGS_OF_PROPERTIES = ("correlation_id", "reply_to", "message_id", "type", "user_id", "app_id")


@dataclass(frozen=True, slots=True)
class Received:
    """A received message in kombu's form, its receipt, its priority, and when it was sent and expires, in ms."""

    payload: dict[str, Any]
    receipt: str
    priority: int
    sent_at: int
    expires_at: float

    @classmethod
    def parse(cls, message: Mapping[str, Any], names: Namespace) -> "Received":
        """Return a message of SQS; one that AMQP could not carry is a text, so that it is never lost on the way.

        `names` are those of the receiver. A copy came by the exchange and the key that the stage says, not the body:
        a program that sends a message again, as Celery does for a retry, sends it there.
        """
        copy, system = _copy(message), message["Attributes"]
        payload = _envelope(message["Body"]) or _text(message["Body"])
        properties = payload["properties"]
        info = properties["delivery_info"]
        if copy is not None and not names.are_of(copy.exchange, copy.key, info["exchange"], info["routing_key"]):
            info.update(exchange=copy.exchange, routing_key=copy.key)
        if copy is not None and properties.get("user_id") != copy.publisher:
            properties.pop("user_id", None)  # AMQP 0-9-1 extension of RabbitMQ: it is validated, so programs trust it
        info["redelivered"] = int(system.get("ApproximateReceiveCount", "1")) > 1
        sent_at = int(system["SentTimestamp"]) if copy is None else _milliseconds(copy.published_at)
        of_queue = _milliseconds(copy.expires_at) if copy and copy.expires_at else math.inf
        expires_at = min(of_queue, sent_at + _lifetime(properties))
        return cls(payload, message["ReceiptHandle"], _priority(properties), sent_at, expires_at)


def _copy(message: Mapping[str, Any]) -> DeliveredMessage | None:
    """Return the copy of a publication; None if a message came by no exchange."""
    try:
        return DeliveredMessage.parse(Message.parse(message))
    except (NotAMessage, InvalidDelivery):
        return None


def _envelope(body: str) -> dict[str, Any] | None:
    """Return the message that a body holds, if it has the types that AMQP gives its parts."""
    try:
        found = loads(body, object_hook=_decoded)
        _check(found)
    except Exception:  # noqa: BLE001 - decoders that a program registered with kombu may raise anything
        return None
    return dict(found)


def _decoded(written: dict[str, Any]) -> Any:
    value = object_hook(written)
    if isinstance(value, Decimal) and (
        abs(value.adjusted()) > DECIMAL_DIGITS or len(value.as_tuple().digits) > DECIMAL_DIGITS
    ):
        raise ValueError("a decimal is out of range")
    return value


def _check(found: Any) -> None:
    """Raise an error for a message that kombu's programs could not read."""
    properties, headers = found["properties"], found.get("headers")
    info = properties["delivery_info"]
    texts = [found["body"], info["exchange"], info["routing_key"]]
    texts += [found[name] for name in SHORT_STRINGS if found.get(name) is not None]
    texts += [properties[name] for name in SHORT_STRINGS_OF_PROPERTIES if properties.get(name) is not None]
    if not all(isinstance(text, str) for text in texts) or not isinstance(headers or {}, dict):
        raise TypeError("the parts of the message have other types than in AMQP")
    if math.isnan(_lifetime(properties)) or not 0 <= _priority(properties) <= HIGHEST_PRIORITY:
        raise ValueError("expiration or priority is out of range")
    if (encoding := properties.get("body_encoding") or TEXT) != TEXT:
        virtual.Channel.codecs[encoding].decode(found["body"])


def _lifetime(properties: Mapping[str, Any]) -> float:
    return float(properties.get("expiration") or math.inf)


def _priority(properties: Mapping[str, Any]) -> int:
    return int(properties.get("priority") or 0)


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _text(body: str) -> dict[str, Any]:
    properties = {"delivery_info": {"exchange": "", "routing_key": ""}, "body_encoding": TEXT}
    types = {"content-type": "text/plain", "content-encoding": TEXT}
    return {"body": body, **types, "headers": {}, "properties": properties}
