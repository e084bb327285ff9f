"""The history events of copies after routing: a copy dies in its queue, or is replayed."""

from dataclasses import dataclass
from datetime import datetime

from signalbox.exchange.messages.deliveries import DeliveredMessage, InvalidDelivery
from signalbox.exchange.messages.headers import announced_file
from signalbox.exchange.messages.replayed_messages import OriginalMessage, Replayable
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.events import CAPABILITY
from signalbox.history.event import HistoryEvent
from signalbox.messages import Message, MessageId, moment, size_bytes

NOT_DELETED = "its consumers received it as often as its queue allows, and did not delete it"


def died(message: Message, queue: DeclaredName) -> HistoryEvent:
    """Return the event of a message that SQS moved to the dead-letter queue of its queue.

    Its time is the first receive of the message: SQS does not say when it moved the message.
    """
    at = moment(message.system_attributes["ApproximateFirstReceiveTimestamp"])
    copy = _copy(message)
    return HistoryEvent(
        event_id=f"dead_letter:{message.message_id}:{queue}:dead",
        occurred_at=at,
        capability=CAPABILITY,
        kind="dead_letter",
        outcome="dead",
        reason=NOT_DELETED,
        message_id=copy.message_id if copy else message.message_id,
        topic=copy.key if copy else None,
        sequence=copy.sequence if copy else None,
        source=copy.exchange if copy else None,
        destination=queue,
        size_bytes=size_bytes(message),
        latency_ms=round((at - copy.published_at).total_seconds() * 1000) if copy else None,
        labels=_labels_of(copy) | {"copy": str(message.message_id)},
    )


@dataclass(frozen=True, slots=True)
class ReplayOrigin:
    """A replay: its id, the kind and name of its source, and its destination, an exchange or a queue."""

    replay_id: str
    kind: str
    source: str
    destination: str

    def sent(self, item: Replayable, *, copy: MessageId, at: datetime) -> HistoryEvent:
        """Return the event of a message that was sent again; `copy` is its new SQS id."""
        original = item if isinstance(item, OriginalMessage) else None
        return HistoryEvent(
            event_id=f"replayed:{original.origin if original else item.message_id}:{self.replay_id}",
            occurred_at=at,
            capability=CAPABILITY,
            kind="replayed",
            outcome=self.kind,
            message_id=item.message_id,
            topic=original.properties.key if original else None,
            sequence=original.sequence if original else None,
            source=self.source,
            destination=self.destination,
            labels={"replay": self.replay_id, "copy": copy},
        )


def _copy(message: Message) -> DeliveredMessage | None:
    """Return the copy that an exchange sent; None for a message that was sent to the queue directly."""
    try:
        return DeliveredMessage.parse(message)
    except InvalidDelivery:
        return None


def _labels_of(copy: DeliveredMessage | None) -> dict[str, str]:
    if copy is None:
        return {}
    file = announced_file(copy.key, copy.body)
    # The part after the colon is the session name of a role, which may identify a person.
    return {"publisher": copy.publisher.partition(":")[0]} | ({"file": file} if file else {})
