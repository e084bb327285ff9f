"""The messages between proxies and broker, byte for byte."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.proxy import (
    MATCH,
    NO_MATCH,
    PollResponse,
    ProxyAnswer,
    ProxyPoll,
    answer_body,
    answer_response,
    poll_body,
    poll_response,
)

POLL = {
    "Sid": "ymbcCMto7KHNGYlp",
    "Version": "1.3",
    "Type": "standalone",
    "NAT": "restricted",
    "Clients": 8,
    "AcceptedRelayPattern": "snowflake.torproject.net$",
}
DESCRIPTION = r'{"type":"answer","sdp":"a=candidate:1"}'
ANSWER = {"Version": "1.3", "Sid": "s", "Answer": DESCRIPTION}


def poll(**changes):
    return json.dumps({**POLL, **changes}).encode()


def without(members, name):
    return json.dumps({key: value for key, value in members.items() if key != name}).encode()


def test_a_poll_is_parsed():
    assert ProxyPoll.parse(poll()) == ProxyPoll(
        sid="ymbcCMto7KHNGYlp",
        proxy_type="standalone",
        nat=Nat.RESTRICTED,
        clients=8,
        relay_pattern="snowflake.torproject.net$",
    )


@pytest.mark.parametrize("version", ["1", "1.0", "1.99", "1."])
def test_every_version_1_is_accepted(version):
    assert ProxyPoll.parse(poll(Version=version)) == ProxyPoll.parse(poll())


@pytest.mark.parametrize("name", ["standalone", "webext", "badge", "iptproxy", "bloco"])
def test_a_known_type_is_kept(name):
    assert ProxyPoll.parse(poll(Type=name)).proxy_type == name


@pytest.mark.parametrize("name", ["", None, "Standalone", "toaster", "unknown"])
def test_another_type_counts_as_unknown(name):
    assert ProxyPoll.parse(poll(Type=name)).proxy_type == "unknown"


@pytest.mark.parametrize(("clients", "counted"), [(-1, 0), (0, 0), (None, 0), (2**63 - 1, 2**63 - 1), (-(2**63), 0)])
def test_a_negative_number_of_clients_counts_as_zero(clients, counted):
    assert ProxyPoll.parse(poll(Clients=clients)).clients == counted


@pytest.mark.parametrize("nat", ["", None, "unknown"])
def test_a_missing_nat_is_unknown(nat):
    assert ProxyPoll.parse(poll(NAT=nat)).nat is Nat.UNKNOWN


def test_a_missing_relay_pattern_differs_from_the_empty_one():
    assert ProxyPoll.parse(without(POLL, "AcceptedRelayPattern")).relay_pattern is None
    assert ProxyPoll.parse(poll(AcceptedRelayPattern=None)).relay_pattern is None
    assert ProxyPoll.parse(poll(AcceptedRelayPattern="")).relay_pattern == ""


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        b"null",
        b"[]",
        poll() + b"x",
        poll() + b" " * 100_000,
        without(POLL, "Version"),
        without(POLL, "Sid"),
        poll(Version=1),
        poll(Version="10.0"),
        poll(Version="2.0"),
        poll(Sid=""),
        poll(Sid=None),
        poll(Sid="ü" * 51),
        poll(NAT="open"),
        poll(Clients="8"),
        poll(Clients=8.0),
        poll(Clients=2**63),
        poll(Clients=10**4000),
        poll(Type=True),
        poll(AcceptedRelayPattern={}),
    ],
)
def test_a_poll_that_does_not_follow_the_protocol_is_refused(body):
    with pytest.raises(InvalidMessage):
        ProxyPoll.parse(body)


def test_a_poll_of_exactly_100000_bytes_is_accepted():
    assert ProxyPoll.parse(poll() + b" " * (100_000 - len(poll()))).sid == POLL["Sid"]


def test_an_answer_is_parsed_and_unchanged():
    assert ProxyAnswer.parse(json.dumps(ANSWER).encode()) == ProxyAnswer("s", DESCRIPTION)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"a=candidate",
        json.dumps(ANSWER).replace("a=candidate", "a=candidat").encode(),
        json.dumps(ANSWER).encode() + b" " * 100_000,
        json.dumps({**ANSWER, "Version": "2"}).encode(),
        without(ANSWER, "Sid"),
        json.dumps(ANSWER | {"Sid": "ü" * 51}).encode(),
        json.dumps({**ANSWER, "Answer": "", "x": "a=candidate"}).encode(),
        json.dumps({**ANSWER, "Answer": "a=candidate"}).encode(),
        json.dumps({**ANSWER, "Answer": {"type": "answer", "sdp": "a=candidate"}}).encode(),
    ],
    ids=[
        "empty",
        "no JSON",
        "no candidate",
        "size",
        "version",
        "no Sid",
        "long Sid",
        "no answer",
        "no description",
        "object",
    ],
)
def test_an_answer_that_does_not_follow_the_protocol_is_refused(body):
    with pytest.raises(InvalidMessage):
        ProxyAnswer.parse(body)


def test_a_match_response_equals_upstreams():
    body = poll_response(
        MATCH,
        offer='{"sdp":"<>"}',
        nat=Nat.RESTRICTED,
        next_poll=20_000,
        relay_url="wss://snowflake.torproject.net/",
    )

    assert body == (
        r'{"Status":"client match","Offer":"{\"sdp\":\"\u003c\u003e\"}","NAT":"restricted","NextPoll":20000,'
        r'"RelayURL":"wss://snowflake.torproject.net/"}'
    )


def test_a_response_without_a_match_has_all_five_keys():
    body = poll_response(NO_MATCH, next_poll=20_000)

    assert body == '{"Status":"no match","Offer":"","NAT":"","NextPoll":20000,"RelayURL":""}'


def test_the_answer_response_states_whether_the_answer_was_in_time():
    assert answer_response(accepted=True) == '{"Status":"success"}'
    assert answer_response(accepted=False) == '{"Status":"client gone"}'


def test_proxy_requests_equal_upstreams():
    assert poll_body(ProxyPoll("sid", "standalone", Nat.UNKNOWN, 8, "net$")) == (
        '{"Sid":"sid","Version":"1.3","Type":"standalone","NAT":"unknown","Clients":8,"AcceptedRelayPattern":"net$"}'
    )
    assert answer_body(ProxyAnswer("sid", "ans<")) == r'{"Version":"1.3","Sid":"sid","Answer":"ans\u003c"}'


@given(st.text(min_size=1, max_size=100), st.sampled_from(Nat), st.integers(0, 2**63 - 1), st.none() | st.text())
def test_writing_and_parsing_a_poll_are_inverse(sid, nat, clients, relay_pattern):
    written = ProxyPoll(sid, "webext", nat, clients, relay_pattern)

    assert ProxyPoll.parse(poll_body(written).encode()) == written


@given(st.text())
def test_writing_and_parsing_an_answer_are_inverse(sdp):
    written = ProxyAnswer("s", json.dumps({"type": "answer", "sdp": "a=candidate" + sdp}))

    assert ProxyAnswer.parse(answer_body(written).encode()) == written


@given(st.text(min_size=1, max_size=100), st.sampled_from(Nat), st.integers(0, 2**53), st.text())
def test_writing_and_parsing_a_response_are_inverse(offer, nat, next_poll, relay_url):
    body = poll_response(MATCH, offer=offer, nat=nat, next_poll=next_poll, relay_url=relay_url)

    response = PollResponse.parse(body.encode())

    assert response == PollResponse("client match", offer, nat, next_poll, relay_url)
    assert response.is_match


def test_a_response_without_a_client_has_the_interval_of_the_next_poll():
    response = PollResponse.parse(poll_response(NO_MATCH, next_poll=20_000).encode())

    assert response == PollResponse("no match", "", Nat.UNKNOWN, 20_000, "")
    assert not response.is_match


@pytest.mark.parametrize("body", [b"", b"{}", b'{"Status":"client match"}', b'{"Status":"no match","NAT":"open"}'])
def test_an_invalid_response_is_refused(body):
    with pytest.raises(InvalidMessage):
        PollResponse.parse(body)


@pytest.mark.parametrize("parse", [ProxyPoll.parse, ProxyAnswer.parse, PollResponse.parse])
@given(st.binary())
@example(b"[" * 50_000)
@example(b'{"a":"a=candidate","Clients":1e999,"Sid":-0}')
@example(b'{"Answer":"a=candidate\xff\\ud800\\"","Sid":"s","Version":"1","Clients":"x"}')
def test_every_invalid_body_raises_invalid_message(parse, junk):
    with pytest.raises(InvalidMessage):
        parse(junk)
