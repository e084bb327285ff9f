"""What a client gets, byte for byte."""

from http import HTTPStatus

import pytest

from signalbox.rendezvous.wire.reply import (
    NO_PROXIES,
    TIMED_OUT,
    InvalidReply,
    LegacyReply,
    Reply,
    answer_reply,
    error_reply,
    legacy_reply,
)


def test_an_answer_is_written_as_the_original_writes_it():
    assert answer_reply('{"type":"answer","sdp":"<&>"}') == (
        r'{"answer":"{\"type\":\"answer\",\"sdp\":\"\u003c\u0026\u003e\"}"}'
    )


@pytest.mark.parametrize(
    ("text", "body"),
    [
        (NO_PROXIES, '{"error":"no snowflake proxies currently available"}'),
        (TIMED_OUT, '{"error":"timed out waiting for answer!"}'),
    ],
)
def test_an_error_is_written_as_the_original_writes_it(text, body):
    assert error_reply(text) == body


def test_a_client_reads_what_the_broker_writes():
    assert Reply.parse(answer_reply("a & b").encode()) == Reply(answer="a & b")
    assert Reply.parse(error_reply(TIMED_OUT).encode()) == Reply(error=TIMED_OUT)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "unexpected end of JSON input"),
        (b"{}", "received empty broker response"),
        (
            b'{"answer":7}',
            "json: cannot unmarshal number into Go struct field ClientPollResponse.answer of type string",
        ),
    ],
)
def test_a_client_refuses_what_is_no_reply(body, problem):
    with pytest.raises(InvalidReply) as refused:
        Reply.parse(body)

    assert str(refused.value) == problem


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(answer='{"type":"answer"}'), LegacyReply(HTTPStatus.OK, '{"type":"answer"}')),
        (Reply(error=NO_PROXIES), LegacyReply(HTTPStatus.SERVICE_UNAVAILABLE)),
        (Reply(error=TIMED_OUT), LegacyReply(HTTPStatus.GATEWAY_TIMEOUT)),
    ],
    ids=["answer", "no proxies", "timed out"],
)
def test_an_older_client_gets_the_bare_answer_or_a_status(reply, expected):
    assert legacy_reply(reply) == expected


def test_an_older_client_at_fault_gets_a_bad_request_where_the_original_drops_the_connection():
    assert legacy_reply(Reply(error="invalid NAT type")) == LegacyReply(HTTPStatus.BAD_REQUEST)
