"""The replies to clients, byte for byte."""

from http import HTTPStatus

import pytest

from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage
from signalbox.rendezvous.wire.reply import NO_PROXIES, TIMED_OUT, ClientReply, answer_reply, error_reply, legacy_status


def test_an_answer_reply_equals_upstreams():
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
def test_an_error_reply_equals_upstreams(text, body):
    assert error_reply(text) == body


def test_writing_and_parsing_a_reply_are_inverse():
    assert ClientReply.parse(answer_reply("a & b").encode()) == ClientReply(answer="a & b")
    assert ClientReply.parse(error_reply(TIMED_OUT).encode()) == ClientReply(error=TIMED_OUT)


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
def test_an_invalid_reply_is_refused(body, problem):
    with pytest.raises(InvalidMessage) as refused:
        ClientReply.parse(body)

    assert str(refused.value) == problem


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (ClientReply(answer='{"type":"answer"}'), HTTPStatus.OK),
        (ClientReply(error=NO_PROXIES), HTTPStatus.SERVICE_UNAVAILABLE),
        (ClientReply(error=TIMED_OUT), HTTPStatus.GATEWAY_TIMEOUT),
    ],
    ids=["answer", "no proxies", "timed out"],
)
def test_a_legacy_client_gets_a_status(reply, status):
    assert legacy_status(reply) == status


def test_an_invalid_legacy_offer_gets_a_bad_request_where_upstream_closes_the_connection():
    assert legacy_status(ClientReply(error="invalid NAT type")) == HTTPStatus.BAD_REQUEST
