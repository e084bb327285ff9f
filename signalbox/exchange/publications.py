"""What came of an exchange's queue: publications with their copies, and messages that are none."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from signalbox.exchange.bindings import DeclaredName
from signalbox.exchange.copies import Copy, is_fifo
from signalbox.exchange.envelope import PUBLISHER, TOPIC, Envelope, InvalidPublication
from signalbox.exchange.graph import Routes
from signalbox.exchange.naming import StageNames
from signalbox.messages import Message, size_bytes
from signalbox.sarracenia.names import ExchangeName, UserName

NOBODY = "unknown"


@dataclass(frozen=True, slots=True)
class Publication:
    """A message that was published to an exchange, and where it goes."""

    message: Message
    envelope: Envelope
    routes: Routes
    publisher: str


@dataclass(frozen=True, slots=True)
class Rejection:
    """A message that no exchange takes, and why."""

    message: Message
    reason: str


def read(message: Message, exchange: ExchangeName, *, control_id: str) -> Envelope | Rejection:
    """Return what was published with a message of an exchange's queue."""
    own_names = (TOPIC, PUBLISHER) if user_id(message) == control_id else (TOPIC,)
    try:
        return Envelope.from_published(message, is_ordered=is_fifo(exchange), own_names=own_names)
    except InvalidPublication as error:
        return Rejection(message, str(error))


def publication(
    message: Message, envelope: Envelope, routes: Routes, users: Mapping[str, UserName], *, control_id: str
) -> Publication:
    """Return a publication, with its publisher's name if that is a user's."""
    return Publication(message, envelope, routes, _publisher(message, users, control_id))


def _publisher(message: Message, users: Mapping[str, UserName], control_id: str) -> str:
    # The control plane publishes for users, and says for whom. Of anybody else this is one header more.
    if user_id(message) == control_id and PUBLISHER in message.attributes:
        return message.attributes[PUBLISHER].text or NOBODY
    return users.get(user_id(message)) or message.system_attributes.get("SenderId") or NOBODY


def user_id(message: Message) -> str:
    """Return by which id IAM knows who sent a message: what is behind the colon names a session of a role."""
    return message.system_attributes.get("SenderId", "").partition(":")[0]


def copies(
    publication: Publication,
    *,
    exchange: ExchangeName,
    names: StageNames,
    lifetimes: Mapping[DeclaredName, timedelta],
    sequence: int | None,
    now: datetime,
) -> Iterator[Copy]:
    """Yield the copy for each queue. Copies that say the same share their message."""
    message, envelope = publication.message, publication.envelope
    shared: dict[tuple[bool, timedelta | None], tuple[Message, int]] = {}
    for queue in publication.routes.queues:
        destination, lifetime = names.queue(queue), lifetimes.get(queue)
        variant = is_fifo(destination), lifetime
        if variant not in shared:
            copied = envelope.delivered(
                message,
                exchange=exchange,
                publisher=publication.publisher,
                sequence=sequence,
                expires_at=None if lifetime is None else now + lifetime,
                is_fifo=is_fifo(destination),
            )
            shared[variant] = copied, size_bytes(copied)
        yield Copy(
            queue=queue,
            destination=destination,
            message=shared[variant][0],
            size_bytes=shared[variant][1],
            exchange=exchange,
            key=envelope.key,
            sequence=sequence,
            published_at=sent_at(message),
            attempt=attempt(message),
        )


def sent_at(message: Message) -> datetime:
    """Return when a message was sent."""
    return datetime.fromtimestamp(int(message.system_attributes["SentTimestamp"]) / 1000, UTC)


def attempt(message: Message) -> int:
    """Return how often a message was received, this time included."""
    return int(message.system_attributes["ApproximateReceiveCount"])
