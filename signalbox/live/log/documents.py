"""What is kept and sent of live as JSON documents: the parts that several of them have."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from signalbox.live.wamp.audience import Audience, Listener
from signalbox.live.wamp.messages import Payload, SessionId
from signalbox.live.wamp.options import HISTORY_PARSERS, BackfillStart, history_option
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

Document = Mapping[str, Any]


def listener_document(listener: Listener | None) -> list[object] | None:
    """Return a session as others can name it."""
    return None if listener is None else [listener.session, listener.authid, listener.authrole]


def listener_of(document: list[Any] | None) -> Listener | None:
    """Return the session of a document."""
    return None if document is None else Listener(SessionId(document[0]), document[1], document[2])


def audience_document(audience: Audience) -> dict[str, object]:
    """Return whom an event is for. A list that is not there is not in it, and an empty one is."""
    found = {one.name: getattr(audience, one.name) for one in fields(audience)}
    return {name: _listed(value) for name, value in found.items() if value is not None}


def audience_of(document: Document) -> Audience:
    """Return the audience of a document."""
    found: dict[str, Any] = {}
    for name, value in document.items():
        found[name] = frozenset(value) if isinstance(value, list) else value
    return Audience(**found)


def pattern_document(pattern: TopicPattern) -> dict[str, object]:
    """Return what is subscribed to."""
    return {"match": pattern.match.value, "uri": pattern.uri}


def pattern_of(document: Document) -> TopicPattern:
    """Return the pattern of a document. What could be subscribed to once is not looked at again."""
    return TopicPattern(MatchPolicy(document["match"]), document["uri"])


def payload_document(payload: Payload) -> dict[str, object]:
    """Return what applications tell one another, by the specification's names; what is empty is not in it."""
    told = {"args": list(payload.arguments), "kwargs": dict(payload.keywords)}
    return {name: value for name, value in told.items() if value}


def payload_of(document: Document) -> Payload:
    """Return the payload of a document."""
    return Payload(tuple(document.get("args", ())), document.get("kwargs", {}))


def backfill_start_document(past: BackfillStart | None) -> dict[str, object] | None:
    """Return what is wanted of the past, as a client says it in `_history`."""
    return None if past is None else history_option(past)


def backfill_start_of(document: Document | None) -> BackfillStart | None:
    """Return the wish of a document."""
    if document is None:
        return None
    ((name, value),) = document.items()
    return HISTORY_PARSERS[name](value)


def _listed(value: object) -> object:
    return sorted(value) if isinstance(value, Collection) else value
