"""Which past events a session gets: when it asks and when it subscribes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

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
    """Past events, and whether there is more of them in the log.

    It `is_complete` unless it was to begin or end at an event that the log does not have, or not any more: what came
    between may be lost.
    """

    events: tuple[LoggedEvent, ...]
    is_complete: bool = True
    has_more: bool = False


def is_logged(event: LoggedEvent) -> bool:
    """Say whether an event is kept at all: not if it is for sessions by their ids, which are others tomorrow."""
    return not event.audience.names_sessions


def history_page(events: Sequence[LoggedEvent], query: HistoryRequest, listener: Listener) -> HistoryPage:
    """Return what a query finds among the events of a subscription, which stand in the order of their publication.

    A publication that is not there counts as older than all that are: who asks for what came after it gets
    everything, who asks for what came before it gets nothing.
    """
    places = {event.publication: place for place, event in enumerate(events)}
    first = max(_place(places, query.from_publication), _place(places, query.after_publication, behind=1))
    uppers = [
        _place(places, bound, behind=behind)
        for bound, behind in ((query.before_publication, 0), (query.until_publication, 1))
        if bound is not None
    ]
    among = [event for event in events[first : min(uppers, default=len(events))] if _is_found(event, query, listener)]
    if query.is_reversed:
        among.reverse()
    named = (query.from_publication, query.after_publication, query.before_publication, query.until_publication)
    is_complete = all(bound is None or bound in places for bound in named)
    return HistoryPage(tuple(among[: query.limit]), is_complete, has_more=len(among) > query.limit)


def _place(places: Mapping[PublicationId, int], bound: PublicationId | None, *, behind: int = 0) -> int:
    return 0 if bound is None or bound not in places else places[bound] + behind


def _is_found(event: LoggedEvent, query: HistoryRequest, listener: Listener) -> bool:
    return (
        (query.from_time is None or event.at >= query.from_time)
        and (query.after_time is None or event.at > query.after_time)
        and (query.before_time is None or event.at < query.before_time)
        and (query.until_time is None or event.at <= query.until_time)
        and (query.topic is None or event.topic == query.topic)
        and _is_for(event, listener)
    )


def _is_for(event: LoggedEvent, listener: Listener) -> bool:
    """Say whether an event of the past is for a user. Whose session published it does not count: it may be gone."""
    return replace(event.audience, excluded_publisher=None).admits(listener)


def backfill_page(events: Sequence[LoggedEvent], wish: BackfillStart, listener: Listener) -> HistoryPage:
    """Return what a new subscription gets of the events that it matches, before the first live one."""
    shown = [event for event in events if _is_for(event, listener)]
    if isinstance(wish, LastEvents):
        return HistoryPage(tuple(shown[-wish.count :]), has_more=len(shown) > wish.count)
    if isinstance(wish, AfterTime):
        return HistoryPage(tuple(event for event in shown if event.at > wish.at))
    if isinstance(wish, AfterSequence):
        later = tuple(event for event in shown if (event.sequence or 0) > wish.sequence)
        return HistoryPage(later, _goes_on(events, wish.sequence))
    if isinstance(wish, AfterTopicSequences):
        return HistoryPage(tuple(event for event in shown if _is_behind(event, wish)), _each_goes_on(events, wish))
    return _past_after(events, wish, listener)


def _goes_on(events: Sequence[LoggedEvent], sequence: int) -> bool:
    """Say whether a log still has what came right after a number; 0 is the beginning of whatever there is."""
    return sequence == 0 or (bool(events) and (events[0].sequence or 0) <= sequence + 1)


def _is_behind(event: LoggedEvent, wish: AfterTopicSequences) -> bool:
    number = wish.numbers.get(event.topic)
    return event.at >= wish.since if number is None else (event.sequence or 0) > number


def _each_goes_on(events: Sequence[LoggedEvent], wish: AfterTopicSequences) -> bool:
    logs: dict[str, list[LoggedEvent]] = {topic: [] for topic in wish.numbers}
    for event in events:
        logs.get(event.topic, []).append(event)
    return all(_goes_on(log, wish.numbers[topic]) for topic, log in logs.items())


def _past_after(events: Sequence[LoggedEvent], wish: AfterPublication, listener: Listener) -> HistoryPage:
    places = {event.publication: place for place, event in enumerate(events)}
    rest = events[_place(places, wish.publication, behind=1) :]
    return HistoryPage(tuple(event for event in rest if _is_for(event, listener)), wish.publication in places)


def latest_retained(events: Iterable[LoggedEvent], listener: Listener) -> list[LoggedEvent]:
    """Return the latest of each topic that was to be kept and is for a session, in the order of their publication.

    «The most recent Retained Event that they would have received if they were subscribing when it was published.»
    """
    latest: dict[RoutingKey, LoggedEvent] = {}
    for event in events:
        if event.is_retained and event.audience.admits(listener):
            latest.pop(event.topic, None)  # so that it stands where it was published last
            latest[event.topic] = event
    return list(latest.values())
