"""Conversion between WAMP payloads, which connections carry, and message bodies, which queues carry."""

import hashlib
from collections.abc import Mapping
from typing import TypeGuard

from signalbox.forms import Document
from signalbox.live.log.documents import PAYLOAD, json_text
from signalbox.live.wamp.codec import MAXIMUM_DEPTH, MAXIMUM_ID, MalformedMessage, parse_json
from signalbox.live.wamp.messages import Payload, PublicationId
from signalbox.messages import MessageId

# The header that gives the format of a body: with this value, an object of `args` and `kwargs`.
PAYLOAD_HEADER, WAMP_PAYLOAD = "payload", "wamp"
DEPTH_OF_AN_ARGUMENT = 2  # in an EVENT, which clients refuse as a whole beyond `MAXIMUM_DEPTH`
RETAIN_HEADER, RETAINED = "retain", "true"  # the header that marks an event as retained


def body_of(payload: Payload) -> tuple[str, dict[str, str]]:
    """Return the message body of a payload, and the headers that describe the body.

    A payload of one positional argument becomes that argument's JSON, so queue consumers need not know WAMP.
    """
    if len(payload.arguments) == 1 and not payload.keywords:
        return json_text(payload.arguments[0]), {}
    return json_text(PAYLOAD.write(payload)), {PAYLOAD_HEADER: WAMP_PAYLOAD}


def payload_from_body(body: str, headers: Mapping[str, str]) -> Payload:
    """Return the payload of a message body.

    A body that is not JSON becomes one string argument. A body that contradicts its header becomes one JSON argument.
    """
    is_wamp = headers.get(PAYLOAD_HEADER) == WAMP_PAYLOAD
    try:
        if is_wamp and _is_payload(document := parse_json(body)):
            return PAYLOAD.read(document)
        return Payload((parse_json(body, maximum_depth=MAXIMUM_DEPTH - DEPTH_OF_AN_ARGUMENT),))
    except MalformedMessage:
        return Payload((body,))


def publication_id(message_id: MessageId) -> PublicationId:
    """Return the publication id of an SQS message: a hash of the message id, hence the same on redelivery."""
    digest = hashlib.sha256(message_id.encode()).digest()
    return PublicationId(int.from_bytes(digest[:8]) % MAXIMUM_ID + 1)


def _is_payload(document: object) -> TypeGuard[Document]:
    if not isinstance(document, dict) or not document.keys() <= {"args", "kwargs"}:
        return False
    return isinstance(document.get("args", []), list) and isinstance(document.get("kwargs", {}), dict)
