"""What comes of a realm's queue, as events: published by a session, or by anybody else who may publish there."""

from collections.abc import Mapping

from signalbox.exchange.messages.properties import Envelope
from signalbox.exchange.messages.publications import Publication, sent_at
from signalbox.live.log.events import MAXIMUM_EVENT_BYTES, LoggedEvent
from signalbox.live.router.publication_metadata import PublicationMetadata, parse_metadata
from signalbox.live.wamp.codec import size_bytes
from signalbox.live.wamp.messages import EMPTY
from signalbox.live.wamp.payloads import PAYLOAD_HEADER, RETAIN_HEADER, RETAINED, payload_from_body, publication_id
from signalbox.messages import Message

OWN_HEADERS = frozenset({PAYLOAD_HEADER, RETAIN_HEADER})  # which say what an event is, and are none of its headers


def publication_metadata(publication: Publication) -> PublicationMetadata:
    """Return what is said of a publication: by a session, or by a header and by its message's id."""
    if publication.notes is not None:
        return parse_metadata(publication.notes)
    is_retained = _texts(publication.envelope).get(RETAIN_HEADER) == RETAINED
    return PublicationMetadata(publication_id(publication.message.message_id), is_retained=is_retained)


def logged_event(publication: Publication, note: PublicationMetadata, *, sequence: int) -> LoggedEvent:
    """Return the event of a publication, as it stands in its topic's log."""
    headers = _texts(publication.envelope)
    told = {name: text for name, text in headers.items() if name not in OWN_HEADERS}
    size = sum(map(size_bytes, (publication.envelope.body, *told.values())))
    is_too_large = size > MAXIMUM_EVENT_BYTES  # what no connection takes is not kept in the log either
    payload = EMPTY if is_too_large else payload_from_body(publication.envelope.body, headers)
    return LoggedEvent(
        publication=note.publication,
        topic=publication.envelope.key,
        at=sent_at(publication.message),
        payload=payload,
        sequence=sequence,
        audience=note.audience,
        disclosed=note.disclosed,
        is_retained=note.is_retained,
        headers={} if is_too_large else told,
        omitted_bytes=size if is_too_large else None,
        is_text=payload.arguments == (publication.envelope.body,),
        sqs_sequence=_place(publication.message),
    )


def _place(message: Message) -> int | None:
    number = message.system_attributes.get("SequenceNumber")
    return None if number is None else int(number)


def _texts(envelope: Envelope) -> Mapping[str, str]:
    """Return headers as texts, as consumers of queues see them."""
    return {name: one.text or one.base64 or "" for name, one in envelope.headers.items()}
