"""JSON form of an event in logs and outboxes."""

import json
from datetime import UTC, datetime

from signalbox.forms import Document, Form, Forms
from signalbox.live.log.documents import AUDIENCE, FORMS, LISTENER, PAYLOAD
from signalbox.live.log.events import LoggedEvent
from signalbox.live.wamp.audience import Audience, Listener
from signalbox.live.wamp.codec import NOT_IN_SQS
from signalbox.live.wamp.messages import Payload


def json_text(document: object) -> str:
    """Serialize a document as compact JSON in which characters that SQS refuses are escaped."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return NOT_IN_SQS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def event_document(event: LoggedEvent) -> dict[str, object]:
    """Serialize an event; empty and absent fields are omitted."""
    document = EVENT.write(event)
    if not event.topic:
        del document["topic"]
    return document


def event_of(document: Document) -> LoggedEvent:
    """Parse an event."""
    return EVENT.read({"topic": "", **document})


MILLISECONDS = Form(
    lambda moment: round(moment.timestamp() * 1000), lambda number: datetime.fromtimestamp(number / 1000, UTC)
)
EVENT = Forms({datetime: MILLISECONDS, Audience: AUDIENCE, Listener: LISTENER, Payload: PAYLOAD}).record(
    LoggedEvent,
    names={"is_retained": "retained", "is_text": "text", "sqs_sequence": "place"},
    sparse=[
        "sequence",
        "audience",
        "disclosed",
        "is_retained",
        "headers",
        "omitted_bytes",
        "is_text",
        "sqs_sequence",
    ],
    flat=["payload"],
    order=["publication", "topic", "at", "sequence"],
)
FORMS.define(LoggedEvent, Form(event_document, event_of))
