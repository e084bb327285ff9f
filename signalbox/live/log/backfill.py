"""What a new subscription gets before its first live event."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate

from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.routing_ports import ParallelMap
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.selection import is_logged, past, retained
from signalbox.live.outbox.decisions import MARKS_KEPT_FOR, Numbers
from signalbox.live.outbox.items import PastWish
from signalbox.live.outbox.ports import TopicLog
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import PublicationId
from signalbox.live.wamp.options import AfterEach, AfterPublication, AfterSequence, AfterTime
from signalbox.sarracenia.rights.names import ExchangeName

# Who says what was seen last gets all behind it, and nothing before; of the last few, others may follow.
AFTER = AfterEach | AfterPublication | AfterSequence | AfterTime


@dataclass(frozen=True, slots=True)
class PastEvent:
    """An event of the past; one that is a topic's latest and nothing new is posted as such."""

    event: LoggedEvent
    is_latest: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What a wish finds in logs, and up to which numbers nothing else of them is wanted."""

    events: tuple[PastEvent, ...]
    settled: Numbers


@dataclass(frozen=True, slots=True)
class PastReader:
    """Reads the logs that a subscription matches."""

    log: TopicLog
    realm: ExchangeName
    live: LiveSettings
    now: datetime
    parallel_map: ParallelMap

    def read(self, wish: PastWish, listener: Listener, *, left: Numbers) -> Found:
        """Return what a wish finds, in the order of publication, and all that was left to it: from these numbers on."""
        # In this order: what is newer than the latest that was read is in the logs, and so comes behind it.
        latest = self.log.retained(self.realm, wish.pattern) if wish.get_retained else []
        topics = self.log.topics(self.realm, wish.pattern) if wish.history else list(left)
        logs = list(self.parallel_map(lambda topic: self._log(topic, left), topics))
        logged = in_order(logs)
        chosen = _chosen(logged, wish, listener, left)
        states = [one for one in retained(latest, listener) if one.publication not in chosen]
        news = [event for event in logged if event.publication in chosen]
        return Found(
            (*(PastEvent(one, is_latest=True) for one in states), *map(PastEvent, news)),
            settled=dict(self._settled(logs)) if isinstance(wish.history, AFTER) else {},
        )

    def _settled(self, logs: Iterable[Sequence[LoggedEvent]]) -> Iterator[tuple[RoutingKey, int]]:
        """Yield the last number of each log, unless it was published so long ago that it cannot be on its way."""
        for newest in (log[-1] for log in logs if log):
            if self.now - newest.at <= MARKS_KEPT_FOR:
                yield newest.topic, newest.sequence or 0

    def _log(self, topic: RoutingKey, left: Numbers) -> Sequence[LoggedEvent]:
        return self.log.back_to(self.realm, topic, left.get(topic), live=self.live, now=self.now)


def in_order(logs: Iterable[Sequence[LoggedEvent]]) -> list[LoggedEvent]:
    """Return the events of several topics in the order of their publication, in which each topic keeps its own."""
    everything = [log for log in logs if log]
    are_placed = all(event.place is not None for log in everything for event in log)
    moment = _place if are_placed else _at
    timed = (one for log in everything for one in zip(accumulate(map(moment, log), max), log, strict=True))
    return [event for _, event in sorted(timed, key=lambda one: (one[0], one[1].topic, one[1].sequence or 0))]


def _place(event: LoggedEvent) -> float:
    return event.place or 0


def _at(event: LoggedEvent) -> float:
    return event.at.timestamp()


def _chosen(
    logged: Sequence[LoggedEvent], wish: PastWish, listener: Listener, left: Numbers
) -> Collection[PublicationId]:
    others = [event for event in logged if event.audience.excluded_publisher != listener.session]
    if isinstance(wish.history, AFTER):
        return {event.publication for event in past(others, wish.history, listener).events}
    kept = [event for event in others if is_logged(event)]
    wanted = past(kept, wish.history, listener).events if wish.history else ()
    live = (event for event in others if _is_left(event, left) and event.audience.admits(listener))
    return {event.publication for event in (*wanted, *live)}


def _is_left(event: LoggedEvent, left: Numbers) -> bool:
    return event.topic in left and (event.sequence or 0) >= left[event.topic]
