"""Commands and replies of control queues."""

import json

import pytest

from signalbox.control.protocol import (
    CommandRejected,
    CommandUnavailable,
    ControlReply,
    InvalidControlReply,
)


def test_a_reply_returns_its_result():
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
def test_an_invalid_reply_is_refused(body, problem):
    with pytest.raises(InvalidControlReply, match=problem):
        ControlReply.parse(body)


@pytest.mark.parametrize(("body", "found"), [('{"id": "1"}', "1"), ('{"id": 1}', None), ("[]", None), ("{", None)])
def test_the_id_of_a_reply_is_found_without_its_content(body, found):
    assert ControlReply.id_of(body) == found
