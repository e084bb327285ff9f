"""What the stage says of an event of WAMP's beside its topic and payload, when it goes by the exchange's queue."""

import json
from dataclasses import dataclass, replace

from signalbox.exchange.messages.properties import LIVE, MessageProperties
from signalbox.exchange.model.records import OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.documents import Document, audience_document, audience_of, listener_document, listener_of
from signalbox.live.log.event_documents import text_of
from signalbox.live.session.state import ConnectionId
from signalbox.live.wamp.audience import EVERYBODY, Audience, Listener
from signalbox.live.wamp.messages import Payload, PublicationId, RequestId
from signalbox.live.wamp.payloads import body_of
from signalbox.messages import Attribute, Message


@dataclass(frozen=True, slots=True)
class Awaited:
    """Who waits for PUBLISHED."""

    connection: ConnectionId
    request: RequestId


@dataclass(frozen=True, slots=True)
class Note:
    """What was said of a publication: its id, whom it is for, and who waits for its PUBLISHED."""

    publication: PublicationId
    audience: Audience = EVERYBODY
    disclosed: Listener | None = None
    is_retained: bool = False
    awaited: Awaited | None = None


def note_text(note: Note) -> str:
    """Return the value of the attribute."""
    told = {
        "publication": note.publication,
        "audience": audience_document(note.audience),
        "disclosed": listener_document(note.disclosed),
        "retain": note.is_retained,
        "reply": note.awaited and {"connection": note.awaited.connection, "request": note.awaited.request},
    }
    return text_of({name: value for name, value in told.items() if value is not None and value != {}})


def note_of(text: str) -> Note:
    """Return the note of an attribute that the stage wrote."""
    document: Document = json.loads(text)
    awaited = document.get("reply")
    return Note(
        publication=PublicationId(document["publication"]),
        audience=audience_of(document.get("audience", {})),
        disclosed=listener_of(document.get("disclosed")),
        is_retained=document["retain"],
        awaited=None if awaited is None else Awaited(awaited["connection"], awaited["request"]),
    )


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody publishes in a realm, by the stage's hand: `publisher` is the user's name."""

    topic: RoutingKey
    payload: Payload
    note: Note
    publisher: str


def message_for(said: Said, *, order_by: OrderBy, deduplication_id: str) -> Message:
    """Return the message for a realm's queue. Raises `InvalidPublication`."""
    body, headers = body_of(said.payload)
    envelope = MessageProperties.of_publication(said.topic, body, headers)
    message = envelope.published(publisher=said.publisher, deduplication_id=deduplication_id, order_by=order_by)
    return replace(message, attributes={**message.attributes, LIVE: Attribute("String", note_text(said.note))})
