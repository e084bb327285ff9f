"""What comes of a realm's queue, as events: published by a session, or by anybody else who may publish there."""

from collections.abc import Mapping

from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.messages.publications import Publication, sent_at
from signalbox.live.log.events import MAXIMUM_EVENT_BYTES, LoggedEvent
from signalbox.live.router.publication_metadata import Note, note_of
from signalbox.live.wamp.codec import size_bytes
from signalbox.live.wamp.messages import EMPTY
from signalbox.live.wamp.payloads import PAYLOAD, RETAIN, YES, payload_in, publication_id
from signalbox.messages import Message

OWN_HEADERS = frozenset({PAYLOAD, RETAIN})  # which say what an event is, and are none of its headers


def noted(publication: Publication) -> Note:
    """Return what is said of a publication: by a session, or by a header and by its message's id."""
    if publication.notes is not None:
        return note_of(publication.notes)
    is_retained = _texts(publication.properties).get(RETAIN) == YES
    return Note(publication_id(publication.message.message_id), is_retained=is_retained)


def arrived(publication: Publication, note: Note, *, sequence: int) -> LoggedEvent:
    """Return the event of a publication, as it stands in its topic's log."""
    headers = _texts(publication.properties)
    told = {name: text for name, text in headers.items() if name not in OWN_HEADERS}
    size = sum(map(size_bytes, (publication.properties.body, *told.values())))
    is_too_large = size > MAXIMUM_EVENT_BYTES  # what no connection takes is not kept in the log either
    payload = EMPTY if is_too_large else payload_in(publication.properties.body, headers)
    return LoggedEvent(
        publication=note.publication,
        topic=publication.properties.key,
        at=sent_at(publication.message),
        payload=payload,
        sequence=sequence,
        audience=note.audience,
        disclosed=note.disclosed,
        is_retained=note.is_retained,
        headers={} if is_too_large else told,
        omitted_bytes=size if is_too_large else None,
        is_text=payload.arguments == (publication.properties.body,),
        place=_place(publication.message),
    )


def _place(message: Message) -> int | None:
    number = message.system_attributes.get("SequenceNumber")
    return None if number is None else int(number)


def _texts(envelope: MessageProperties) -> Mapping[str, str]:
    """Return headers as texts, as consumers of queues see them."""
    return {name: one.text or one.base64 or "" for name, one in envelope.headers.items()}
