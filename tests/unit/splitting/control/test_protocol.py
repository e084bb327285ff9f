"""The session status in replies, and the client that requests it."""

import pytest

from signalbox.control.protocol import InvalidControlReply
from signalbox.splitting.control.protocol import SessionStatus

QUEUE = {"queue_id": "memes", "original": "memes", "temporary": "mirrord-1", "url": "https://sqs/1/mirrord-1"}


def test_a_status_has_the_queues_and_the_environment():
    document = {
        "session": "ann",
        "phase": "ready",
        "queues": [QUEUE],
        "environment": {"QUEUE": "mirrord-1"},
        "notes": ["no dead-letter queue"],
    }

    state = SessionStatus.parse(document)

    assert (state.session, state.phase, state.reason, state.has_ended) == ("ann", "ready", None, False)
    assert state.queues[0].url == "https://sqs/1/mirrord-1"
    assert state.environment == {"QUEUE": "mirrord-1"}
    assert state.notes == ("no dead-letter queue",)
    assert state.document == document


def test_an_ending_session_has_ended():
    assert SessionStatus.parse({"session": "ann", "phase": "ending"}).has_ended


def test_an_invalid_status_is_refused():
    with pytest.raises(InvalidControlReply, match=r"session\.phase: is missing"):
        SessionStatus.parse({"session": "ann"})
