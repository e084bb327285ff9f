"""Messages of an exchange's queue: publications, and rejected messages."""

from collections.abc import Mapping
from dataclasses import dataclass

from signalbox.exchange.matching.graph import Routes
from signalbox.exchange.messages.headers import announced_file
from signalbox.exchange.messages.properties import LIVE, PUBLISHER, TOPIC, InvalidPublication, MessageProperties
from signalbox.exchange.model.records import OrderBy
from signalbox.exchange.model.topics import RESERVED_WORD, RoutingKey, is_reserved, shown
from signalbox.messages import Attribute, Message
from signalbox.sarracenia.rights.names import UserName

UNKNOWN_PUBLISHER = "unknown"


@dataclass(frozen=True, slots=True)
class Publication:
    """A message that was published to an exchange, with its routes.

    `notes` are metadata of a live session, and `file` is the id of the file that the message announces.
    """

    message: Message
    properties: MessageProperties
    routes: Routes
    publisher: str
    notes: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    """A message that is not a valid publication, and the reason."""

    message: Message
    reason: str


@dataclass(frozen=True, slots=True)
class TrustedSenders:
    """The IAM ids of the control plane and of sessions, which publish on behalf of the users that they name.

    Only sessions add metadata of live and publish the reserved topics of WAMP. A stage without live has none.
    """

    control_id: str
    session_id: str | None = None

    def trust(self, message: Message) -> bool:
        """Return whether a message is of the control plane or of a session."""
        return principal_id(message) in (self.control_id, self.session_id)

    def is_of_session(self, message: Message) -> bool:
        """Return whether a message is of a session."""
        return principal_id(message) == self.session_id


def read_publication(message: Message, senders: TrustedSenders) -> MessageProperties | Rejection:
    """Return the properties of a message in an exchange's queue, or its rejection."""
    is_of_session = senders.is_of_session(message)
    names = [(TOPIC, True), (PUBLISHER, senders.trust(message)), (LIVE, is_of_session)]
    own_names = [name for name, is_own in names if is_own]
    try:
        properties = MessageProperties.from_published(message, own_names=own_names)
    except InvalidPublication as error:
        return Rejection(message, str(error))
    if is_reserved(properties.key) and not is_of_session:
        return Rejection(message, reserved_problem(properties.key))
    return properties


def reserved_problem(key: RoutingKey) -> str:
    """Return why a topic that `is_reserved` is refused."""
    return f"topic: {shown(key)} begins with {RESERVED_WORD!r}: such topics are for the events of sessions"


def publisher_of(message: Message, users: Mapping[str, UserName], senders: TrustedSenders) -> str:
    """Return the publisher of a message: the name of a known user, or the sender's id."""
    # From senders that are not trusted this attribute is only a header.
    attributes = message.attributes if senders.trust(message) else {}
    publisher = (
        _text(attributes, PUBLISHER) or users.get(principal_id(message)) or message.system_attributes.get("SenderId")
    )
    return publisher or UNKNOWN_PUBLISHER


def publication(
    message: Message, properties: MessageProperties, routes: Routes, publisher: str, senders: TrustedSenders
) -> Publication:
    """Return a publication; the metadata of live is read only if a session sent the message."""
    return Publication(
        message,
        properties,
        routes,
        publisher,
        notes=_text(message.attributes, LIVE) if senders.is_of_session(message) else None,
        file=announced_file(properties.key, message.body),
    )


def checked_group(publication: Publication, order_by: OrderBy | None) -> Publication | Rejection:
    """Return a publication, or its rejection if its message group does not match `order_by`.

    Without an order, and by publisher, any group will do: a message is in order with the others of its group.
    """
    if order_by in (None, OrderBy.PUBLISHER):
        return publication
    try:
        publication.properties.check_group(publication.message, order_by)
    except InvalidPublication as error:
        return Rejection(publication.message, str(error))
    return publication


def _text(attributes: Mapping[str, Attribute], name: str) -> str | None:
    return attributes[name].text if name in attributes else None


def principal_id(message: Message) -> str:
    """Return the IAM unique id of a message's sender; after the colon, SenderId names the session of a role."""
    return message.system_attributes.get("SenderId", "").partition(":")[0]


def attempt(message: Message) -> int:
    """Return how often a message was received, including this time."""
    return int(message.system_attributes["ApproximateReceiveCount"])
