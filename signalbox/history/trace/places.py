"""The last known places of a message: the ends of its way, as far as events say."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from signalbox.history.event import HistoryEvent
from signalbox.history.trace.steps import connection_words, session_words

KEPT_ELSEWHERE = ("stored", "replayed")  # the message itself stays where it is
UNRECORDED = "waits there, was consumed, or is in its dead-letter queue: SQS records none of these"
DECLARED = "waits there or was consumed: SQS records neither, and the history a death within five minutes"
DEAD_LETTERS = "dead_letters"  # the source of a replay


@dataclass(frozen=True, slots=True)
class Place:
    """A place where the message, or a copy of it, was last."""

    name: str
    state: str
    since: datetime


def last_places(events: Sequence[HistoryEvent]) -> tuple[Place, ...]:
    """Return the last known places of the message of events, which are in order of time."""
    return tuple(_queues(events)) + tuple(_live(events)) + tuple(_clients(events))


def _queues(events: Sequence[HistoryEvent]) -> Iterator[Place]:
    """Yield the queues that no later event says the message has left."""
    left = {one.message_id for one in events if one.capability == "splitting" and one.outcome not in KEPT_ELSEWHERE}
    left |= {one.labels["copy"] for one in events if one.kind == "dead_letter" and "copy" in one.labels}
    settled = {(one.message_id, one.destination) for one in events if _is_settled(one)}
    for event in events:
        copy, queue = event.labels.get("copy"), event.destination or ""
        if event.kind == "dead_letter" and any(_takes_out(one, event) for one in events):
            continue
        if event.kind == "dead_letter":
            yield Place(f"dead letters of {_dead_letters_of(event)}", event.reason or "", event.occurred_at)
        elif (event.kind, event.outcome) == ("unrouted", "dropped"):
            yield Place("nowhere", f"dropped: no binding of {event.source} matched", event.occurred_at)
        elif (event.kind, event.outcome) == ("routed", "retried"):
            if (event.message_id, event.destination) not in settled:
                yield Place(queue, "waits for a retry", event.occurred_at)
        elif _is_sent(event) and copy not in left:
            yield Place(
                queue, f"{_whose(event)}{DECLARED if event.capability == 'exchange' else UNRECORDED}", event.occurred_at
            )


def _is_settled(event: HistoryEvent) -> bool:
    is_delivered = (event.kind, event.outcome) == ("routed", "delivered")
    return event.capability == "exchange" and (is_delivered or event.kind == "dead_letter")


def _takes_out(replayed: HistoryEvent, dead: HistoryEvent) -> bool:
    """Return whether a dead letter was replayed, and so is gone from its queue."""
    is_of_it = (replayed.message_id, replayed.source) == (dead.message_id, dead.destination or dead.source)
    return replayed.outcome == DEAD_LETTERS and is_of_it and replayed.occurred_at >= dead.occurred_at


def _is_sent(event: HistoryEvent) -> bool:
    """Return whether a copy reached a queue. The events of an exchange say where its message went."""
    is_replayed = event.kind == "replayed" and not (event.destination or "").startswith("x")
    return event.kind in ("routed", "returned") or event.outcome == "replayed" or is_replayed


def _dead_letters_of(event: HistoryEvent) -> str:
    return event.destination or event.source or event.capability


def _whose(event: HistoryEvent) -> str:
    if event.capability != "splitting" or event.outcome == "original":
        return ""
    return f"queue of {session_words(event, 'heir' if event.kind == 'returned' else 'session')}: "


def _live(events: Sequence[HistoryEvent]) -> Iterator[Place]:
    logged = [one for one in events if one.kind == "logged"]
    batches = [one for one in events if one.kind == "delivered"]
    for event in batches:
        yield Place(connection_words(event), event.reason or "posted", event.occurred_at)
    if logged and not batches:
        state = "in the log; no connection got it, as far as events say"
        yield Place(f"log of {logged[-1].source}", state, logged[-1].occurred_at)


def _clients(events: Sequence[HistoryEvent]) -> Iterator[Place]:
    rendezvous = [one for one in events if one.capability == "rendezvous" and one.kind in CLIENT_STATES]
    if rendezvous:
        last = rendezvous[-1]
        yield Place("client", CLIENT_STATES[last.kind].get(last.outcome, last.reason or last.outcome), last.occurred_at)


CLIENT_STATES = {
    "offer": {"parked": "waits for a proxy", "denied": "got the reply that there is no proxy"},
    "proxy_poll": {"matched": "waits for the proxy's answer"},
    "proxy_answer": {"success": "has the proxy's answer"},
    "answer": {"delivered": "has the proxy's answer"},
    "timeout": {},
}
