"""The backfill of a subscription: the logged events that it receives before its first live event."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.retention import NEVER, may_have_events, oldest_kept
from signalbox.live.log.selection import admits, backfill_page, in_order, is_logged, latest_retained
from signalbox.live.outbox.decisions import WATERMARKS_KEPT_FOR, SequenceNumbers, TopicMark, mark_of
from signalbox.live.outbox.items import BackfillRequest
from signalbox.live.outbox.ports import TopicLog
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import PublicationId
from signalbox.live.wamp.options import (
    AfterPublication,
    AfterSequence,
    AfterTime,
    AfterTopicSequences,
    BackfillStart,
    LastEvents,
)
from signalbox.sarracenia.rights.names import ExchangeName

# An event that was logged so long after its publication has the delay.
UNNOTED_DELAY = timedelta(seconds=1)
# A client that resumes after a known point receives all later events and none before it. `LastEvents` gives no such
# bound.
LOGS_AT_ONCE = 100
RECENT = [timedelta(hours=hours) for hours in (1, 6, 36)]
AfterPoint = AfterTopicSequences | AfterTime
ResumePoint = AfterPoint | AfterPublication | AfterSequence


@dataclass(frozen=True, slots=True)
class BackfillEvent:
    """A logged event of a backfill. With `is_latest` it is sent only as its topic's retained event."""

    event: LoggedEvent
    is_latest: bool = False


@dataclass(frozen=True, slots=True)
class Backfill:
    """The events of a backfill, and the sequence numbers by topic up to which the backfill is complete.

    With `place`, they are retained events of topics up to it: the backfill continues behind them.
    """

    events: tuple[BackfillEvent, ...]
    settled: SequenceNumbers = field(default_factory=dict)
    place: RoutingKey | None = None


@dataclass(frozen=True, slots=True)
class NewEvents:
    """The events that a subscription gets whatever it requests, since it began before them.

    They were deferred to its backfill, those of each topic in `deferred` from that number on, or published since the
    time `since`, or follow such an event in its topic. Their live copies may follow the backfill, which must not leave
    one out in front of an event that it has.
    """

    since: datetime
    deferred: SequenceNumbers

    def may_include(self, event: LoggedEvent) -> bool:
        """Return whether an event may be new."""
        return self.is_recent(event) or _number(event) >= self.deferred.get(event.topic, math.inf)

    def may_include_before(self, event: LoggedEvent) -> bool:
        """Return whether an event before another one of its topic may be new."""
        return self.is_recent(event) or _number(event) > self.deferred.get(event.topic, math.inf)

    def is_recent(self, event: LoggedEvent) -> bool:
        """Return whether an event, or one before it in its topic, may have been published since the time."""
        return event.logged_at + UNNOTED_DELAY >= self.since

    def published(self, logged: Iterable[LoggedEvent]) -> SequenceNumbers:
        """Return the number of the first event of each topic that was published since the time."""
        first = dict[RoutingKey, int]()
        for event in logged:
            if event.logged_at >= self.since:
                first[event.topic] = min(first.get(event.topic, _number(event)), _number(event))
        return first


@dataclass(frozen=True, slots=True)
class BackfillReader:
    """Reads the backfill of a subscription from the logs of the topics that it matches."""

    log: TopicLog
    realm: ExchangeName
    live: LiveSettings
    now: datetime

    def read(
        self,
        request: BackfillRequest,
        listener: Listener,
        *,
        deferred: SequenceNumbers,
        posted: Mapping[TopicMark, int],
        after: RoutingKey | None = None,
    ) -> Backfill:
        """Return the requested events in the order of publication, of retained ones those of the topics behind `after`.

        The backfill also includes the `NewEvents` of the topics that it has, and of those in `deferred`. Those up to
        the numbers in `posted` were posted before, and may be left out.
        """
        new = NewEvents(request.at, deferred)
        # The retained events are read before the logs, so an event newer than the retained one follows it.
        latest, place = self._retained(request, listener, deferred, after)
        first = [one.topic for one in latest if one.topic in deferred or new.is_recent(one)]
        # Events before a publication are known by its position in the log.
        ends = {} if isinstance(request.history, AfterPublication) else posted

        def log_of(topic: RoutingKey) -> Sequence[LoggedEvent]:
            return self._log(topic, request.history, listener, new, ends.get(mark_of(topic), -1))

        if place is None:
            logs = list(self._logs(request, listener, log_of, new, [*deferred, *first]))
        else:
            logs = list(self.log.parallel_map(log_of, first))
        logged = in_order(logs)
        selected = _selected(logged, request, listener, new)
        retained = [one for one in latest if one.publication not in selected]
        events = [event for event in logged if event.publication in selected]
        return Backfill(
            (*(BackfillEvent(one, is_latest=True) for one in retained), *map(BackfillEvent, events)),
            settled=dict(self._settled(logs)) if isinstance(request.history, ResumePoint) else {},
            place=place,
        )

    def _retained(
        self,
        request: BackfillRequest,
        listener: Listener,
        deferred: SequenceNumbers,
        after: RoutingKey | None,
    ) -> tuple[Sequence[LoggedEvent], RoutingKey | None]:
        """Return retained events, and the topic behind which further ones follow if there are many.

        Those of topics that may have requested events come last, with these, which may include them. Of the last
        events, and those after a publication, any topic may have some, so that all retained events are read at once.
        """
        read, place, history = list[LoggedEvent](), None, request.history
        for event in self.log.retained(self.realm, request.pattern, after=after) if request.get_retained else ():
            if isinstance(history, None | AfterPoint) and self.log.is_large and place not in (None, event.topic):
                break
            read += [event] if request.pattern.matches(event.topic) else []
            place = event.topic
        else:
            place = None
        if isinstance(history, AfterPoint) and (place, after) != (None, None):
            # Listed after the retained events are read: an event before one of them makes its topic one of these.
            since, matches = self._since(history, min(self.now, request.at)), request.pattern.matches
            listed = self.log.topics(self.realm, request.pattern, since=since)
            last = {*deferred, *filter(matches, _numbers(history)), *listed}
            read = [one for one in read if one.topic not in last]
            read += self.log.retained_of(self.realm, last) if place is None else []
        return latest_retained(sorted(read, key=_published), listener), place

    def _topics(
        self, request: BackfillRequest, first: Collection[RoutingKey]
    ) -> Iterator[tuple[datetime, Mapping[RoutingKey, datetime]]]:
        """Yield topics that may have requested events, each with the time of its newest, in parts; `first` ones first.

        Topics that are in no part so far have had no event since the part's time. For the last events, topics without
        one for hours are listed only if others have too few.
        """
        history, oldest, begin = request.history, oldest_kept(self.live, now=self.now), min(self.now, request.at)
        yield NEVER, dict.fromkeys(first, NEVER)
        if isinstance(history, LastEvents):
            begins = (begin - ago for ago in RECENT)
            starts = [*(one for one in begins if one > oldest), oldest]
        else:
            starts = [self._since(history, begin) if isinstance(history, AfterPoint) else oldest]
        for since in starts if history else ():
            found = self.log.topics(self.realm, request.pattern, since=since, named=_numbers(history)).items()
            yield since, {one: at for one, at in found if may_have_events(one, at, self.live, now=self.now)}

    def _since(self, history: AfterPoint, begin: datetime) -> datetime:
        """Return the time since which topics are listed: the same in each part, as one leaves topics to the last."""
        since = history.at if isinstance(history, AfterTime) else history.since
        return min(begin, max(since, oldest_kept(self.live, now=begin)))

    def _logs(
        self,
        request: BackfillRequest,
        listener: Listener,
        log_of: Callable[[RoutingKey], Sequence[LoggedEvent]],
        new: NewEvents,
        first: Collection[RoutingKey],
    ) -> Iterator[Sequence[LoggedEvent]]:
        """Read the logs of topics; of the last events, those with the newest first, until no other has a later one."""
        count = request.history.count if isinstance(request.history, LastEvents) else math.inf
        times, read = list[datetime](), set[RoutingKey]()
        for since, topics in self._topics(request, first):
            left = sorted((one for one in topics if one not in read), key=topics.__getitem__, reverse=True)
            read.update(left)
            while left and sum(at > topics[left[0]] for at in times) < count:
                some, left = left[:LOGS_AT_ONCE], left[LOGS_AT_ONCE:]
                for log in self.log.parallel_map(log_of, some):
                    times += [one.at for one in log if _is_past(one, listener) and not new.is_recent(one)]
                    yield log
            if sum(at >= since for at in times) >= count:
                return

    def _settled(self, logs: Iterable[Sequence[LoggedEvent]]) -> Iterator[tuple[RoutingKey, int]]:
        """Yield the last sequence number of each log, unless it is too old for its live event to be in the outbox."""
        for newest in (log[-1] for log in logs if log):
            if self.now - newest.at <= WATERMARKS_KEPT_FOR:
                yield newest.topic, _number(newest)

    def _log(
        self,
        topic: RoutingKey,
        history: BackfillStart | None,
        listener: Listener,
        new: NewEvents,
        posted: int,
    ) -> Sequence[LoggedEvent]:
        """Return the newest events of a topic, back to the first that is requested, and at least one."""
        page = history.count if isinstance(history, LastEvents) else None
        found: list[LoggedEvent] = []
        past = 0
        read = self.log.newest_first(self.realm, topic, new.may_include, live=self.live, now=self.now, page=page)
        for event in read:
            found.append(event)
            past += _is_past(event, listener) and not new.is_recent(event)
            is_first = not new.may_include_before(event) and _has_no_earlier(event, history, past)
            if _number(event) <= posted or is_first:
                break
        return found[::-1]


def _selected(
    logged: Sequence[LoggedEvent], request: BackfillRequest, listener: Listener, new: NewEvents
) -> Collection[PublicationId]:
    published, others = new.published(logged), [event for event in logged if _is_of_others(event, listener)]
    # The last events are those before the subscription, however many were published since.
    ends = published if isinstance(request.history, LastEvents) else {}
    # A client that names a point has the events up to it, and any may be in front of its request again.
    deferred = {} if isinstance(request.history, ResumePoint) else new.deferred
    past = [event for event in others if is_logged(event) and not _is_from(event, ends)]
    history = backfill_page(past, request.history, listener).events if request.history else ()
    live = (event for event in others if _is_from(event, published) or _is_from(event, deferred))
    return {event.publication for event in (*history, *(one for one in live if one.audience.admits(listener)))}


def _has_no_earlier(event: LoggedEvent, history: BackfillStart | None, past: int) -> bool:
    """Return whether a topic has no requested event before one; `past` are those that a session gets, up to it."""
    if isinstance(history, LastEvents):
        return past >= history.count
    if isinstance(history, AfterSequence):
        return _number(event) <= history.sequence + 1
    if isinstance(history, AfterTopicSequences):
        return _number(event) <= history.numbers.get(event.topic, -1) + 1
    return history is None


def _numbers(history: BackfillStart | None) -> list[RoutingKey]:
    return list(map(RoutingKey, history.numbers)) if isinstance(history, AfterTopicSequences) else []


def _published(event: LoggedEvent) -> tuple[datetime, int]:
    return event.at, _number(event)


def _is_past(event: LoggedEvent, listener: Listener) -> bool:
    return is_logged(event) and _is_of_others(event, listener) and admits(event, listener)


def _is_of_others(event: LoggedEvent, listener: Listener) -> bool:
    return event.audience.excluded_publisher != listener.session


def _is_from(event: LoggedEvent, first: SequenceNumbers) -> bool:
    return event.topic in first and _number(event) >= first[event.topic]


def _number(event: LoggedEvent) -> int:
    return event.sequence or 0
