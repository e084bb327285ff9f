"""The metrics of history events, and what each counts for: as work, as an error, and as billed actions."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class EventMetric:
    """A metric that counts events: whether they are the work of the capability, or errors, and what they cost.

    `least` and `most` are the actions of the price list that one event is at least, and at most.
    """

    name: str
    is_work: bool = False
    is_error: bool = False
    least: tuple[str, ...] = ()
    most: tuple[str, ...] = ()


def _free(*names: str) -> tuple[EventMetric, ...]:
    """Return metrics of events that cost no more than their record."""
    return tuple(EventMetric(name) for name in names)


def _priced(name: str, *actions: str, is_work: bool = False, is_error: bool = False) -> EventMetric:
    return EventMetric(name, is_work=is_work, is_error=is_error, least=actions, most=actions)


def _client(name: str, action: str, *, is_error: bool = False) -> EventMetric:
    """Return the metric of a client's end; the way by which the client came is no dimension of it."""
    http, sqs = (action, "client by HTTP"), (action, "client by SQS")
    return EventMetric(name, is_work=not is_error, is_error=is_error, least=http, most=sqs)


MESSAGE, COPY, DEAD_LETTER, SUBSCRIPTION = "message", "copy", "dead letter", "subscription"
MOST_EVENTS_OF_BATCH = 10
# docs/metrics.md has the meaning of each; a test compares the names.
EVENT_METRICS: Mapping[str, tuple[EventMetric, ...]] = MappingProxyType(
    {
        "rendezvous": (
            _client("AnswerDelivered", "answer"),
            _client("OfferDenied", "refusal"),
            _client("TimeoutExpired", "refusal"),
            _client("OfferStale", "refusal", is_error=True),
            _client("OfferRejected", "refusal", is_error=True),
            *(EventMetric(name, is_error=True) for name in ("BadInputRejected", "DeadLetterDead")),
            *_free("OfferParked", "OfferDuplicate", "ProxyAnswerSuccess", "ProxyAnswerClientGone"),
            *_free("QueueDeleted", "QueueStrayDeleted"),
        ),
        "splitting": (
            _priced("RoutedSession", MESSAGE, is_work=True),
            _priced("RoutedDeployed", MESSAGE, is_work=True),
            _priced("RoutedCopied", COPY),
            *(_priced(name, MESSAGE) for name in ("ReturnedSession", "ReturnedDeployed", "ReturnedOriginal")),
            _priced("DeadLetterDead", DEAD_LETTER, is_error=True),
            *_free("SessionStarted", "SessionReady", "SessionEnded"),
            *_free("KeptStored", "KeptReplayed", "KeptDropped"),
        ),
        "exchange": (
            _priced("RoutedDelivered", COPY),
            _priced("RoutedRetried", "retry"),
            _priced("LoggedLive", "logged event"),
            _priced("DeadLetterDead", DEAD_LETTER, is_error=True),
            *_free("UnroutedDropped", "UnroutedAlternate", "KeptStored"),
            *_free("DeclaredExchange", "DeclaredQueue", "DeclaredBinding"),
            *_free("DeletedExchange", "DeletedQueue", "DeletedBinding"),
        ),
        "live": (
            EventMetric(
                "DeliveredPosted",
                is_work=True,
                least=("delivery", "posted event"),
                most=("delivery", *["posted event"] * MOST_EVENTS_OF_BATCH),
            ),
            _priced("SessionStarted", "session start"),
            _priced("SessionEnded", "session end"),
            _priced("SessionRefused", "refused login", is_error=True),
            *(_priced(f"Subscription{outcome}", SUBSCRIPTION) for outcome in ("Subscribed", "Unsubscribed", "Revoked")),
            _priced("PublicationDropped", "dropped publication", is_error=True),
            *(
                EventMetric(name, is_error=True)
                for name in ("FrameRefused", "DeliveredDropped", "DeliveredFailed", "DeadLetterDead")
            ),
            *_free("GrantedRead", "GrantedWrite", "UngrantedRead", "UngrantedWrite"),
            *_free("DeniedRead", "DeniedWrite", "UndeniedRead", "UndeniedWrite"),
            *_free("GroupAdded", "GroupRemoved", "SecretChanged", "UserRemoved"),
        ),
    }
)
