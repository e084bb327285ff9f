"""The metadata of a session's publication, carried in an attribute of its message in the exchange's queue."""

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from signalbox.errors import RejectedError
from signalbox.exchange.messages.properties import LIVE, MessageProperties
from signalbox.exchange.model.records import OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.documents import FORMS, json_text
from signalbox.live.log.payloads import body_of
from signalbox.live.model.effects import Distribute
from signalbox.live.model.state import ConnectionId, Session
from signalbox.live.wamp.audience import UNRESTRICTED, Audience, Listener
from signalbox.live.wamp.authentication import Identity
from signalbox.live.wamp.messages import Payload, PublicationId, RequestId
from signalbox.messages import Attribute, Message


class InvalidMetadata(RejectedError):
    """Raised when metadata of a publication were not written by a session."""


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
    return json_text(METADATA.write(metadata))


@lru_cache(maxsize=100)  # the router reads the metadata of a publication up to four times
def parse_metadata(text: str) -> PublicationMetadata:
    """Parse metadata that `metadata_text` has serialized. Raises `InvalidMetadata`."""
    try:
        return METADATA.read(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidMetadata(f"live: expected the metadata of a session, not {len(text)} other characters") from error


METADATA = FORMS.record(
    PublicationMetadata,
    names={"is_retained": "retain", "acknowledge_to": "reply"},
    sparse=["audience", "disclosed", "acknowledge_to"],
)


@dataclass(frozen=True, slots=True)
class RealmPublication:
    """A publication that the stage sends to a realm's queue for a user, whose name is `publisher`.

    By publisher, it is in order with the others of its `connection`.
    """

    topic: RoutingKey
    payload: Payload
    metadata: PublicationMetadata
    publisher: str
    connection: ConnectionId


def publication_of(effect: Distribute, session: Session) -> RealmPublication:
    """Return the publication of an effect of a session that has joined."""
    awaited = None if effect.request is None else AcknowledgementTarget(session.connection, effect.request)
    note = PublicationMetadata(effect.publication, effect.audience, effect.disclosed, effect.is_retained, awaited)
    publisher = cast("Identity", session.identity).authid
    return RealmPublication(effect.topic, effect.payload, note, publisher, session.connection)


def message_for(publication: RealmPublication, *, order_by: OrderBy, deduplication_id: str) -> Message:
    """Return the message that publishes to a realm's queue. Raises `InvalidPublication`."""
    body, headers = body_of(publication.payload)
    properties = MessageProperties.of_publication(publication.topic, body, headers)
    message = properties.published(
        publisher=publication.publisher,
        deduplication_id=deduplication_id,
        order_by=order_by,
        sender=publication.connection,
    )
    metadata = Attribute("String", metadata_text(publication.metadata))
    return replace(message, attributes={**message.attributes, LIVE: metadata})
