"""JSON form of an event in logs and outboxes."""

import json
from datetime import UTC, datetime

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.documents import (
    Document,
    audience_document,
    audience_of,
    listener_document,
    listener_of,
    payload_document,
    payload_of,
)
from signalbox.live.log.events import LoggedEvent
from signalbox.live.wamp.codec import NOT_IN_SQS
from signalbox.live.wamp.messages import PublicationId


def json_text(document: object) -> str:
    """Serialize a document as compact JSON in which characters that SQS refuses are escaped."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return NOT_IN_SQS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def event_document(event: LoggedEvent) -> dict[str, object]:
    """Serialize an event; empty and absent fields are omitted."""
    document = {
        "publication": event.publication,
        "topic": event.topic,
        "at": round(event.at.timestamp() * 1000),
        "sequence": event.sequence,
        **payload_document(event.payload),
        "audience": audience_document(event.audience),
        "disclosed": listener_document(event.disclosed),
        "retained": event.is_retained,
        "headers": dict(event.headers),
        "omitted_bytes": event.omitted_bytes,
        "text": event.is_text,
        "place": event.sqs_sequence,
    }
    return {name: value for name, value in document.items() if value}


def event_of(document: Document) -> LoggedEvent:
    """Parse an event."""
    return LoggedEvent(
        publication=PublicationId(document["publication"]),
        topic=RoutingKey(document.get("topic", "")),
        at=datetime.fromtimestamp(document["at"] / 1000, UTC),
        payload=payload_of(document),
        sequence=document.get("sequence"),
        audience=audience_of(document.get("audience", {})),
        disclosed=listener_of(document.get("disclosed")),
        is_retained=document.get("retained", False),
        headers=document.get("headers", {}),
        omitted_bytes=document.get("omitted_bytes"),
        is_text=document.get("text", False),
        sqs_sequence=document.get("place"),
    )
