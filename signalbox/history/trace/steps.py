"""The steps of a message's way: each event in words, with its time since the start."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.history.event import HistoryEvent

Kind = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what happened, why, and the event that says so.

    `depth` is the number of queues behind the first one that the message had reached. A step without an event is the
    start, whose time follows from the latency of the first event.
    """

    at: datetime
    capability: str
    text: str
    reason: str = ""
    depth: int = 0
    event: HistoryEvent | None = None


def step_of(event: HistoryEvent, *, depth: int = 0) -> Step:
    """Return the step of an event."""
    words = WORDS.get((event.capability, event.kind, event.outcome)) or WORDS.get((event.capability, event.kind, ""))
    text = words(event) if words else f"{event.kind}: {event.outcome}"
    reason = event.reason or event.labels.get("verdict") or ""
    return Step(event.occurred_at, event.capability, text, reason, depth, event)


def start_of(event: HistoryEvent) -> Step | None:
    """Return the publication or the sending of a message, as its first event says; None if it says no possible time."""
    if event.latency_ms is None or event.kind != "routed":
        return None
    try:
        at = event.occurred_at - timedelta(milliseconds=event.latency_ms)
    except OverflowError:  # such as a latency of 2**63 ms, or a time before the year 1
        return None
    if event.capability == "exchange":
        return Step(at, "exchange", f"published to {event.source}{_by(event)}")
    return Step(at, event.capability, f"sent to {event.source}")


def _by(event: HistoryEvent) -> str:
    publisher = event.labels.get("publisher")
    if publisher == "_":
        return " by an administrator"
    return f" by {publisher}" if publisher else ""


def _copied(event: HistoryEvent) -> str:
    again = f", attempt {event.attempt}" if (event.attempt or 1) > 1 else ""
    return f"a copy to {event.destination}{_as(event)}{again}"


def _as(event: HistoryEvent) -> str:
    copy = event.labels.get("copy")
    return f" as {copy}" if copy else ""


def session_words(event: HistoryEvent, name: str = "session") -> str:
    """Return the words for a split session, or for the deployed consumer."""
    session, owner = event.labels.get(name), event.labels.get("owner")
    if session is None:
        return "the deployed consumer"
    return f"session {session} of {owner}" if owner and name == "session" else f"session {session}"


def _returned(event: HistoryEvent) -> str:
    place = "the original queue" if event.outcome == "original" else session_words(event, "heir")
    return f"not consumed by {session_words(event)}: back to {place} in {event.destination}{_as(event)}"


def _logged(event: HistoryEvent) -> str:
    publication = event.labels.get("publication")
    number = f", number {event.sequence} of its topic" if event.sequence is not None else ""
    return f"in the log of {event.source}{f' as publication {publication}' if publication else ''}{number}{_by(event)}"


def connection_words(event: HistoryEvent) -> str:
    """Return the words for the connection of a live batch."""
    session, user = event.labels.get("session"), event.labels.get("user")
    return f"live session {session} of {user}" if session else "a connection without a session"


def _with_proxy(event: HistoryEvent) -> str:
    proxy = event.labels.get("proxy_type")
    return f" of type {proxy}" if proxy else ""


WORDS: Mapping[Kind, Callable[[HistoryEvent], str]] = {
    ("exchange", "routed", "delivered"): _copied,
    ("exchange", "routed", "retried"): lambda e: f"{e.destination} did not take its copy, which waits for a retry",
    ("exchange", "unrouted", "dropped"): lambda e: f"no binding of {e.source} matched {e.topic!r}: dropped{_by(e)}",
    ("exchange", "unrouted", "alternate"): (
        lambda e: f"no binding of {e.source} matched {e.topic!r}: to its alternate exchange{_by(e)}"
    ),
    ("exchange", "logged", ""): _logged,
    ("exchange", "dead_letter", ""): (
        lambda e: f"dead letter of {e.destination}" if e.destination else f"dead letter of {e.source or 'the retries'}"
    ),
    ("exchange", "replayed", ""): lambda e: f"replayed by {e.labels.get('replay')} to {e.destination}{_as(e)}",
    ("exchange", "declared", "binding"): lambda e: f"{e.source} bound to {e.destination} by {e.topic!r}",
    ("exchange", "deleted", "binding"): lambda e: f"{e.source} not bound to {e.destination} by {e.topic!r} any more",
    ("splitting", "routed", "session"): lambda e: f"{e.source} → {session_words(e)}, {e.destination}{_as(e)}",
    ("splitting", "routed", "copied"): (
        lambda e: f"{e.source} → a copy for {session_words(e)}, {e.destination}{_as(e)}"
    ),
    ("splitting", "routed", "deployed"): (
        lambda e: f"{e.source} → the deployed consumer, {e.destination}{_as(e)}: no session's filter took it"
    ),
    ("splitting", "returned", ""): _returned,
    ("splitting", "dead_letter", ""): lambda e: f"dead letter of {e.source}: SQS refuses it in every queue",
    ("splitting", "kept", "stored"): lambda e: f"kept, as it passed {e.source}",
    ("exchange", "kept", "stored"): lambda e: f"kept, as it passed {e.source}",
    ("splitting", "kept", "replayed"): (
        lambda e: f"replayed to {session_words(e)}, {e.destination}{_as(e)}: a copy of the kept message"
    ),
    ("splitting", "kept", "dropped"): lambda e: f"{session_words(e)} left its replayed copy, which was deleted",
    ("splitting", "session", ""): lambda e: f"{session_words(e)} {e.outcome}",
    ("live", "delivered", "posted"): lambda e: f"posted to {connection_words(e)}",
    ("live", "delivered", "failed"): lambda e: f"not posted to {connection_words(e)} yet",
    ("live", "delivered", "dropped"): lambda e: f"not posted to {connection_words(e)}",
    ("rendezvous", "offer", "parked"): lambda e: f"offer of a client by {e.source}: it waits for a proxy",
    ("rendezvous", "offer", "denied"): lambda e: f"offer of a client by {e.source}: no proxy is there for it",
    ("rendezvous", "offer", ""): lambda e: f"offer of a client by {e.source}: {e.outcome}",
    ("rendezvous", "proxy_poll", "matched"): lambda e: f"a proxy{_with_proxy(e)} got the offer",
    ("rendezvous", "proxy_answer", "success"): lambda e: f"the proxy{_with_proxy(e)} answered",
    ("rendezvous", "answer", ""): lambda e: f"the client got the answer, after {_proxies(e)}",
    ("rendezvous", "timeout", ""): lambda e: f"the client waited in vain, for {_proxies(e)}",
    ("rendezvous", "dead_letter", ""): lambda _: "dead letter: the offer has no usable reply address",
}


def _proxies(event: HistoryEvent) -> str:
    number = event.attempt or 0
    return f"{number} {'proxy' if number == 1 else 'proxies'}"
