"""JSON forms of an event in logs and outboxes, and of the values that several items and messages of live contain."""

import json
from datetime import UTC, datetime

from signalbox.forms import Document, Form, Forms
from signalbox.live.log.events import LoggedEvent
from signalbox.live.wamp.audience import Audience, Listener
from signalbox.live.wamp.codec import NOT_IN_SQS
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.options import HISTORY_PARSERS, BackfillStart, history_option
from signalbox.live.wamp.patterns import TopicPattern


def _backfill_start(document: Document) -> BackfillStart | None:
    ((name, value),) = document.items()
    return HISTORY_PARSERS[name](value)


FORMS = Forms(
    {
        datetime: Form(datetime.isoformat, datetime.fromisoformat),
        # As SUBSCRIBE's option `_history`.
        BackfillStart: Form(history_option, _backfill_start),
    }
)
# A stored pattern is not validated again: its URI was valid when the client subscribed.
PATTERN = FORMS.record(TopicPattern)
LISTENER = FORMS.row(Listener)
# An absent list is left out, an empty list is not.
AUDIENCE = FORMS.record(
    Audience,
    sparse=[
        "eligible",
        "eligible_authid",
        "eligible_authrole",
        "exclude",
        "exclude_authid",
        "exclude_authrole",
        "excluded_publisher",
    ],
)
PAYLOAD = FORMS.record(Payload, names={"arguments": "args", "keywords": "kwargs"}, sparse=["arguments", "keywords"])


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
        "delay_ms",
    ],
    flat=["payload"],
    order=["publication", "topic", "at", "sequence"],
)
FORMS.define(LoggedEvent, Form(event_document, event_of))
