"""Payloads of WAMP as bodies of messages, and the other way round: what a queue gets and what a connection gets."""

import hashlib
from collections.abc import Mapping
from typing import TypeGuard

from signalbox.live.log.documents import Document, payload_document, payload_of
from signalbox.live.log.event_documents import json_text
from signalbox.live.wamp.codec import MAXIMUM_ID, MalformedMessage, parse_json
from signalbox.live.wamp.messages import Payload, PublicationId
from signalbox.messages import MessageId

# The header that says what a body is: with this value an object of `args` and `kwargs`.
PAYLOAD_HEADER, WAMP_PAYLOAD = "payload", "wamp"
RETAIN_HEADER, RETAINED = "retain", "true"  # the header by which a publisher has an event kept as its topic's latest


def body_of(payload: Payload) -> tuple[str, dict[str, str]]:
    """Return the body of a message with a payload, and the headers that it needs.

    One argument alone is the body itself, so that consumers of queues need to know nothing of WAMP.
    """
    if len(payload.arguments) == 1 and not payload.keywords:
        return json_text(payload.arguments[0]), {}
    return json_text(payload_document(payload)), {PAYLOAD_HEADER: WAMP_PAYLOAD}


def payload_from_body(body: str, headers: Mapping[str, str]) -> Payload:
    """Return the payload in a body: what is no JSON is a text, and what is not as its header says is taken as it is."""
    try:
        document = parse_json(body)
    except MalformedMessage:
        return Payload((body,))
    if headers.get(PAYLOAD_HEADER) == WAMP_PAYLOAD and _is_payload(document):
        return payload_of(document)
    return Payload((document,))


def publication_id(message_id: MessageId) -> PublicationId:
    """Return the id of a publication that came by SQS: the same when its message comes again."""
    digest = hashlib.sha256(message_id.encode()).digest()
    return PublicationId(int.from_bytes(digest[:8]) % MAXIMUM_ID + 1)


def _is_payload(document: object) -> TypeGuard[Document]:
    if not isinstance(document, dict) or not document.keys() <= {"args", "kwargs"}:
        return False
    return isinstance(document.get("args", []), list) and isinstance(document.get("kwargs", {}), dict)
