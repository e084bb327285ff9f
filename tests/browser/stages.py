"""The data of a stage, as the procedures of the page return them."""

from signalbox.live.wamp.messages import Payload
from tests.fakes import live_router

AT = "2026-11-21T20:15:00+00:00"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 3"><rect width="4" height="3"/></svg>'
OVERVIEW = {
    "at": AT,
    "rendezvous": {
        "day": "2026-11-21",
        "proxies": {"webext": 41, "standalone": 12},
        "nats": {"restricted": 30, "unrestricted": 23},
        "idle_polls": 1208,
        "clients": {"matched": 512, "denied": 40, "timed_out": 16},
    },
    "splits": [
        {
            "target": "lambda/meme-app",
            "stage": "split",
            "since": AT,
            "queues": [{"queue_id": "memes", "original": "memes"}],
            "sessions": [
                {"session": "ann-x7", "owner": "ann", "phase": "ready", "started_at": AT, "reason": None},
            ],
        },
        {"target": "ssm/other", "unreadable": "record of a split of version 9"},
    ],
    "exchanges": [
        {
            "name": "trial.fifo",
            "ordered": True,
            "received": 12044,
            "routed": 12040,
            "dropped": 4,
            "rejected": 0,
            "last_at": AT,
        }
    ],
}
SESSIONS = {7: "alice", 9: "crunch"}


def furnish(router: live_router.Router) -> None:
    """Register the procedures of the page with a router."""
    router.procedures.update(
        {
            "signalbox.overview": lambda _: Payload((OVERVIEW,), {"unavailable": {}}),
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
