"""The data of a stage, as the procedures of the page return them."""

import json
import math
from pathlib import Path

from signalbox.live.wamp.messages import Payload
from signalbox.sarracenia.rights.permissions import Role
from tests.fakes import live_router

AT = "2026-11-21T20:15:00+00:00"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 3"><rect width="4" height="3"/></svg>'
OVERVIEW = json.loads(Path(__file__).with_name("overview.json").read_text(encoding="utf-8"))
QUESTIONS = dict.fromkeys(("rate", "backlog", "oldest", "errors", "cost"), "signalbox report cost")


def _active(capability: str, unit: str, **numbers: object) -> dict[str, object]:
    idle = {"rate": 0, "minutes": [0] * 60, "backlog": 0, "oldest_seconds": None, "errors": 0}
    idle |= {"usd_least": 0, "usd_most": 0, "questions": QUESTIONS}
    return {"capability": capability, "unit": unit, **idle, **numbers}


WAVE = [round(40 + 30 * math.sin(minute / 6)) for minute in range(60)]
ACTIVITY = {
    "at": AT,
    "capabilities": [
        _active(
            "rendezvous",
            "clients",
            rate=0.874,
            minutes=WAVE,
            backlog=31,
            oldest_seconds=21,
            usd_least=0.0512,
            usd_most=0.0713,
        ),
        _active("splitting", "messages", rate=0.02, minutes=[0] * 55 + [1, 0, 2, 0, 1], usd_most=0.00001),
        _active(
            "exchange",
            "messages",
            rate=1240.2,
            minutes=[one * 900 for one in WAVE],
            backlog=12044,
            oldest_seconds=754,
            errors=7,
            usd_least=0.4123,
            usd_most=3.9127,
            questions={**QUESTIONS, "errors": 'signalbox history query "SELECT reason, message_id FROM events_raw"'},
        ),
        _active("live", "posts", rate=310.5, minutes=list(reversed(WAVE)), usd_least=0.1, usd_most=0.9),
        _active("history", "events", rate=1551.1, minutes=[one * 950 for one in WAVE], usd_least=0.02, usd_most=0.2),
    ],
}
SESSIONS = {7: "alice", 9: "crunch"}


def furnish(router: live_router.Router) -> None:
    """Register the procedures of the page with a router, and make its user an administrator."""
    router.roles = {"alice": Role.ADMIN}
    router.procedures.update(
        {
            "signalbox.overview": lambda _: Payload((OVERVIEW,), {"unavailable": {}}),
            "signalbox.activity": lambda _: Payload((ACTIVITY,)),
            "signalbox.topics": lambda payload: Payload(
                (_topics(router, str(payload.keywords["prefix"])),), {"more": False}
            ),
            "signalbox.report": _report,
            "wamp.session.list": lambda _: Payload((list(SESSIONS),)),
            "wamp.session.get": lambda payload: Payload((_session(payload.arguments[0]),)),
        }
    )


def _topics(router: live_router.Router, prefix: str) -> list[dict[str, object]]:
    retained = {event.topic: event.is_retained for event in router.log if event.topic.startswith(prefix)}
    return [{"topic": topic, "retained_at": AT if retained[topic] else None} for topic in sorted(retained)]


def _report(payload: Payload) -> Payload:
    if payload.arguments:
        return Payload((SVG,))
    return Payload(
        ([{"name": f"{report}/picture/day=2026-11-21.svg", "made_at": AT} for report in ("rendezvous", "splitting")],)
    )


def _session(session: object) -> dict[str, object]:
    return {"session": session, "authid": SESSIONS[session], "authrole": "subscriber", "authmethod": "ticket"}
