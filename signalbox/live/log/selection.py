"""Selection of logged events for a history request and for the backfill of a subscription."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.history_request import HistoryRequest
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


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Logged events, and whether the log has more.

    The page is incomplete if a bound is an event that the log does not have: events may have expired in between.
    """

    events: tuple[LoggedEvent, ...]
    is_complete: bool = True
    has_more: bool = False


def is_logged(event: LoggedEvent) -> bool:
    """Return whether an event is stored: not if its audience names session ids, which are valid only briefly."""
    return not event.audience.names_sessions


def history_page(events: Sequence[LoggedEvent], request: HistoryRequest, listener: Listener) -> HistoryPage:
    """Return the requested events of a subscription, given all of them in the order of their publication.

    A bound whose publication is not in the log is treated as older than the log: as a lower bound it excludes no
    event, as an upper bound it excludes all.
    """
    positions = {event.publication: position for position, event in enumerate(events)}
    first = max(
        _position(positions, request.from_publication), _position(positions, request.after_publication, offset=1)
    )
    ends = [
        _position(positions, bound, offset=offset)
        for bound, offset in ((request.before_publication, 0), (request.until_publication, 1))
        if bound is not None
    ]
    found = [event for event in events[first : min(ends, default=len(events))] if _is_found(event, request, listener)]
    if request.is_reversed:
        found.reverse()
    is_complete = all(bound is None or bound in positions for bound in request.publications)
    return HistoryPage(tuple(found[: request.limit]), is_complete, has_more=len(found) > request.limit)


def _position(positions: Mapping[PublicationId, int], bound: PublicationId | None, *, offset: int = 0) -> int:
    return 0 if bound is None or bound not in positions else positions[bound] + offset


def _is_found(event: LoggedEvent, request: HistoryRequest, listener: Listener) -> bool:
    return (
        (request.from_time is None or event.at >= request.from_time)
        and (request.after_time is None or event.at > request.after_time)
        and (request.before_time is None or event.at < request.before_time)
        and (request.until_time is None or event.at <= request.until_time)
        and (request.topic is None or event.topic == request.topic)
        and admits(event, listener)
    )


def admits(event: LoggedEvent, listener: Listener) -> bool:
    """Return whether a logged event admits a session. The publisher's exclusion ends with the publishing session."""
    return replace(event.audience, excluded_publisher=None).admits(listener)


def backfill_page(events: Sequence[LoggedEvent], start: BackfillStart, listener: Listener) -> HistoryPage:
    """Return the backfill of a subscription from a start, given all events that the subscription matches."""
    admitted = [event for event in events if admits(event, listener)]
    if isinstance(start, LastEvents):
        return HistoryPage(tuple(admitted[-start.count :]), has_more=len(admitted) > start.count)
    if isinstance(start, AfterTime):
        return HistoryPage(tuple(event for event in admitted if event.at > start.at))
    if isinstance(start, AfterSequence):
        later = tuple(event for event in admitted if (event.sequence or 0) > start.sequence)
        return HistoryPage(later, _continues(events, start.sequence))
    if isinstance(start, AfterTopicSequences):
        return HistoryPage(tuple(event for event in admitted if _is_after(event, start)), _all_continue(events, start))
    return _page_after_publication(events, start, listener)


def _continues(events: Sequence[LoggedEvent], sequence: int) -> bool:
    """Return whether a log still has the event after a sequence number; 0 is before the oldest event of any log."""
    return sequence == 0 or (bool(events) and (events[0].sequence or 0) <= sequence + 1)


def _is_after(event: LoggedEvent, start: AfterTopicSequences) -> bool:
    number = start.numbers.get(event.topic)
    # A client that has no event of a topic did not find it in the log when its session began.
    return event.logged_at >= start.since if number is None else (event.sequence or 0) > number


def _all_continue(events: Sequence[LoggedEvent], start: AfterTopicSequences) -> bool:
    logs: dict[str, list[LoggedEvent]] = {topic: [] for topic in start.numbers}
    for event in events:
        logs.get(event.topic, []).append(event)
    return all(_continues(log, start.numbers[topic]) for topic, log in logs.items())


def _page_after_publication(events: Sequence[LoggedEvent], start: AfterPublication, listener: Listener) -> HistoryPage:
    positions = {event.publication: position for position, event in enumerate(events)}
    rest = events[_position(positions, start.publication, offset=1) :]
    return HistoryPage(tuple(event for event in rest if admits(event, listener)), start.publication in positions)


def latest_retained(events: Iterable[LoggedEvent], listener: Listener) -> list[LoggedEvent]:
    """Return each topic's latest retained event that admits a session, in the order of their publication.

    «The most recent Retained Event that they would have received if they were subscribing when it was published.»
    """
    latest: dict[RoutingKey, LoggedEvent] = {}
    for event in events:
        if event.is_retained and event.audience.admits(listener):
            latest.pop(event.topic, None)  # a dict keeps the position of a replaced key
            if not event.is_removal:
                latest[event.topic] = event
    return list(latest.values())


def in_order(logs: Iterable[Sequence[LoggedEvent]]) -> list[LoggedEvent]:
    """Merge the logs of several topics in the order of publication, without reordering any topic's events.

    The order is that of SQS sequence numbers if all events have one, and otherwise that of publication times.
    """
    nonempty = [log for log in logs if log]
    are_numbered = all(event.sqs_sequence is not None for log in nonempty for event in log)
    position = _sqs_sequence if are_numbered else _published_at
    positioned = (one for log in nonempty for one in zip(accumulate(map(position, log), max), log, strict=True))
    return [event for _, event in sorted(positioned, key=lambda one: (one[0], one[1].topic, one[1].sequence or 0))]


def _sqs_sequence(event: LoggedEvent) -> float:
    return event.sqs_sequence or 0


def _published_at(event: LoggedEvent) -> float:
    return event.at.timestamp()
