"""Commands and replies of the control queue, as clients know them."""

import json

import pytest

from signalbox.splitting.protocol import (
    CommandRejected,
    CommandUnavailable,
    ControlReply,
    InvalidControlReply,
    SessionState,
    command_body,
    stage_of,
)

QUEUE = {"queue_id": "memes", "original": "memes", "temporary": "mirrord-1", "url": "https://sqs/1/mirrord-1"}


def test_a_reply_has_its_result():
    reply = ControlReply.parse('{"id": "1", "ok": true, "result": {"targets": []}}')

    assert reply.request_id == "1"
    assert reply.value() == {"targets": []}


@pytest.mark.parametrize(("code", "error"), [("rejected", CommandRejected), ("unavailable", CommandUnavailable)])
def test_a_refusal_is_raised_with_its_text(code, error):
    reply = ControlReply.parse(json.dumps({"id": "1", "ok": False, "error": "no such target", "code": code}))

    with pytest.raises(error, match=r"^no such target$"):
        reply.value()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("{", "not JSON"),
        ("[]", "reply: expected an object"),
        ('{"ok": true}', "reply.id: is missing"),
        ('{"id": "1", "ok": false, "error": "x", "code": "odd"}', "reply.code: expected rejected or unavailable"),
        ('{"id": "1", "ok": false}', "reply.error: is missing"),
    ],
)
def test_what_is_no_reply_is_refused(body, problem):
    with pytest.raises(InvalidControlReply, match=problem):
        ControlReply.parse(body)


def test_a_session_is_read_with_its_queues_and_environment():
    document = {
        "session": "ann",
        "phase": "ready",
        "queues": [QUEUE],
        "environment": {"QUEUE": "mirrord-1"},
        "notes": ["no dead-letter queue"],
    }

    state = SessionState.parse(document)

    assert (state.session, state.phase, state.reason, state.has_ended) == ("ann", "ready", None, False)
    assert state.queues[0].url == "https://sqs/1/mirrord-1"
    assert state.environment == {"QUEUE": "mirrord-1"}
    assert state.notes == ("no dead-letter queue",)
    assert state.document == document


@pytest.mark.parametrize("phase", ["ending", "gone"])
def test_an_ending_session_and_one_that_is_gone_have_ended(phase):
    assert SessionState.parse({"session": "ann", "phase": phase}).has_ended


def test_a_session_that_cannot_be_read_is_refused():
    with pytest.raises(InvalidControlReply, match=r"session\.phase: is missing"):
        SessionState.parse({"session": "ann"})


def test_a_command_is_one_document():
    body = command_body("status", request_id="1", reply_queue_url="https://sqs/1/r", fields={"target": "lambda/app"})

    assert json.loads(body) == {
        "command": "status",
        "id": "1",
        "reply_queue_url": "https://sqs/1/r",
        "target": "lambda/app",
    }


def test_the_names_of_reply_queues_begin_with_their_stage():
    assert stage_of("signalbox-split-reply-") == "signalbox"
