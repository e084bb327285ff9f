"""Decoding of the messages of a realm's queue into events, whether a session or an SQS client published them."""

from collections.abc import Mapping

from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.messages.publications import Publication
from signalbox.live.log.events import MAXIMUM_EVENT_BYTES, LoggedEvent
from signalbox.live.log.payloads import PAYLOAD_HEADER, RETAIN_HEADER, RETAINED, payload_from_body, publication_id
from signalbox.live.router.publication_metadata import InvalidMetadata, PublicationMetadata, parse_metadata
from signalbox.live.router.write_limits import kilobytes_of
from signalbox.live.wamp.codec import BINARY_MARK, is_readable, size_bytes
from signalbox.live.wamp.messages import EMPTY
from signalbox.messages import Message
from signalbox.messages import size_bytes as published_bytes

OWN_HEADERS = frozenset({PAYLOAD_HEADER, RETAIN_HEADER})  # consumed by the router, not passed to subscribers


def publication_metadata(publication: Publication) -> PublicationMetadata:
    """Return the metadata of a publication: the session's, or derived from the message's headers and id."""
    if publication.notes is not None:
        return parse_metadata(publication.notes)
    is_retained = _texts(publication.properties).get(RETAIN_HEADER) == RETAINED
    return PublicationMetadata(publication_id(publication.message.message_id), is_retained=is_retained)


def metadata_problem(publication: Publication) -> str | None:
    """Return why the metadata of a publication cannot be read, or None."""
    try:
        publication_metadata(publication)
    except InvalidMetadata as error:
        return str(error)
    return None


def logged_event(publication: Publication, metadata: PublicationMetadata, *, sequence: int) -> LoggedEvent:
    """Return the event to log for a publication."""
    headers, omitted = _texts(publication.properties), omitted_bytes(publication)
    payload = payload_from_body(publication.properties.body, headers) if omitted is None else EMPTY
    return LoggedEvent(
        publication=metadata.publication,
        topic=publication.properties.key,
        at=publication.message.sent_at,
        payload=payload,
        sequence=sequence,
        audience=metadata.audience,
        disclosed=metadata.disclosed,
        is_retained=metadata.is_retained,
        headers=_published(headers) if omitted is None else {},
        omitted_bytes=omitted,
        is_text=payload.arguments == (publication.properties.body,),
        sqs_sequence=_sqs_sequence(publication.message),
    )


def omitted_bytes(publication: Publication) -> int | None:
    """Return the size of a payload and headers that are not logged, since no connection can carry them; else None."""
    published = _published(_texts(publication.properties))
    size = sum(map(size_bytes, (publication.properties.body, *published.values())))
    return size if size > MAXIMUM_EVENT_BYTES else None


def kilobytes(publication: Publication) -> int:
    """Return the KB that a publication by SQS counts for its publisher."""
    size = published_bytes(publication.message) if omitted_bytes(publication) is None else 0
    return kilobytes_of(size, is_retained=publication_metadata(publication).is_retained)


def _published(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {name: text for name, text in headers.items() if name not in OWN_HEADERS}


def _sqs_sequence(message: Message) -> int | None:
    number = message.system_attributes.get("SequenceNumber")
    return None if number is None else int(number)


def _texts(properties: MessageProperties) -> Mapping[str, str]:
    """Return headers as consumers receive them; a leading U+0000 marks base64, and is removed from other text."""
    texts = {name: one.text or one.base64 or "" for name, one in properties.headers.items()}
    return {name: text if is_readable(text) else text.lstrip(BINARY_MARK) for name, text in texts.items()}
