"""JSON forms of the values that several stored items and messages of live contain."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from signalbox.live.wamp.audience import Audience, Listener
from signalbox.live.wamp.messages import Payload, SessionId
from signalbox.live.wamp.options import HISTORY_PARSERS, BackfillStart, history_option
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

Document = Mapping[str, Any]


def listener_document(listener: Listener | None) -> list[object] | None:
    """Serialize a session's identity as `[session, authid, authrole]`."""
    return None if listener is None else [listener.session, listener.authid, listener.authrole]


def listener_of(document: list[Any] | None) -> Listener | None:
    """Parse a session's identity."""
    return None if document is None else Listener(SessionId(document[0]), document[1], document[2])


def audience_document(audience: Audience) -> dict[str, object]:
    """Serialize an audience: an absent list is omitted, an empty list is not."""
    lists = {one.name: getattr(audience, one.name) for one in fields(audience)}
    return {name: _listed(value) for name, value in lists.items() if value is not None}


def audience_of(document: Document) -> Audience:
    """Parse an audience."""
    lists: dict[str, Any] = {}
    for name, value in document.items():
        lists[name] = frozenset(value) if isinstance(value, list) else value
    return Audience(**lists)


def pattern_document(pattern: TopicPattern) -> dict[str, object]:
    """Serialize a topic pattern."""
    return {"match": pattern.match.value, "uri": pattern.uri}


def pattern_of(document: Document) -> TopicPattern:
    """Parse a topic pattern without validating its URI, which was valid when the client subscribed."""
    return TopicPattern(MatchPolicy(document["match"]), document["uri"])


def payload_document(payload: Payload) -> dict[str, object]:
    """Serialize a payload as `args` and `kwargs`; an empty one of these is omitted."""
    parts = {"args": list(payload.arguments), "kwargs": dict(payload.keywords)}
    return {name: value for name, value in parts.items() if value}


def payload_of(document: Document) -> Payload:
    """Parse a payload."""
    return Payload(tuple(document.get("args", ())), document.get("kwargs", {}))


def backfill_start_document(start: BackfillStart | None) -> dict[str, object] | None:
    """Serialize a backfill start in the form of SUBSCRIBE's option `_history`."""
    return None if start is None else history_option(start)


def backfill_start_of(document: Document | None) -> BackfillStart | None:
    """Parse a backfill start."""
    if document is None:
        return None
    ((name, value),) = document.items()
    return HISTORY_PARSERS[name](value)


def _listed(value: object) -> object:
    return sorted(value) if isinstance(value, Collection) else value
