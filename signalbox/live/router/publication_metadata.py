"""The metadata of a session's publication, carried in an attribute of its message in the exchange's queue."""

import json
from dataclasses import dataclass, replace

from signalbox.exchange.messages.properties import LIVE, Envelope
from signalbox.exchange.model.records import OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.documents import Document, audience_document, audience_of, listener_document, listener_of
from signalbox.live.log.event_documents import json_text
from signalbox.live.session.state import ConnectionId
from signalbox.live.wamp.audience import UNRESTRICTED, Audience, Listener
from signalbox.live.wamp.messages import Payload, PublicationId, RequestId
from signalbox.live.wamp.payloads import body_of
from signalbox.messages import Attribute, Message


@dataclass(frozen=True, slots=True)
class AcknowledgementTarget:
    """The connection and request to which PUBLISHED is sent."""

    connection: ConnectionId
    request: RequestId


@dataclass(frozen=True, slots=True)
class PublicationMetadata:
    """The metadata of a publication: id, audience, disclosed publisher, retention and acknowledgement."""

    publication: PublicationId
    audience: Audience = UNRESTRICTED
    disclosed: Listener | None = None
    is_retained: bool = False
    acknowledge_to: AcknowledgementTarget | None = None


def metadata_text(metadata: PublicationMetadata) -> str:
    """Serialize metadata as the value of its message attribute."""
    target = metadata.acknowledge_to
    document = {
        "publication": metadata.publication,
        "audience": audience_document(metadata.audience),
        "disclosed": listener_document(metadata.disclosed),
        "retain": metadata.is_retained,
        "reply": target and {"connection": target.connection, "request": target.request},
    }
    return json_text({name: value for name, value in document.items() if value is not None and value != {}})


def parse_metadata(text: str) -> PublicationMetadata:
    """Parse metadata that `metadata_text` has serialized."""
    document: Document = json.loads(text)
    target = document.get("reply")
    return PublicationMetadata(
        publication=PublicationId(document["publication"]),
        audience=audience_of(document.get("audience", {})),
        disclosed=listener_of(document.get("disclosed")),
        is_retained=document["retain"],
        acknowledge_to=None if target is None else AcknowledgementTarget(target["connection"], target["request"]),
    )


@dataclass(frozen=True, slots=True)
class RealmPublication:
    """A publication that the stage sends to a realm's queue for a user, whose name is `publisher`."""

    topic: RoutingKey
    payload: Payload
    metadata: PublicationMetadata
    publisher: str


def message_for(publication: RealmPublication, *, order_by: OrderBy, deduplication_id: str) -> Message:
    """Return the message that publishes to a realm's queue. Raises `InvalidPublication`."""
    body, headers = body_of(publication.payload)
    envelope = Envelope.of_publication(publication.topic, body, headers)
    message = envelope.published(publisher=publication.publisher, deduplication_id=deduplication_id, order_by=order_by)
    metadata = Attribute("String", metadata_text(publication.metadata))
    return replace(message, attributes={**message.attributes, LIVE: metadata})
