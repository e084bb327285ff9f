"""Client offers: valid ones, and the error texts of invalid ones (recorded from upstream)."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signalbox.rendezvous.wire.bridges import DEFAULT_BRIDGES, DEFAULT_FINGERPRINT, parse_fingerprint
from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import MAXIMUM_BODY_BYTES, Offer, is_legacy, offer_body

DESCRIPTION = r'{"type":"offer","sdp":"v=0\r\na=candidate:1 1 udp 1 203.0.113.7 9 typ host\r\n"}'
SDP = "v=0\r\na=candidate:1 1 udp 1 203.0.113.7 9 typ host\r\n"
RELAY, UNKNOWN_BRIDGE = "wss://snowflake.torproject.net/", "AB" * 20


def body(**members):
    return b"1.0\n" + json.dumps({"offer": DESCRIPTION, **members}).encode()


def test_an_offer_is_parsed_and_its_session_description_is_unchanged():
    offer = Offer.parse(body(nat="restricted", fingerprint=DEFAULT_FINGERPRINT.lower()), DEFAULT_BRIDGES)

    assert offer == Offer(DESCRIPTION, Nat.RESTRICTED, RELAY, SDP)


@pytest.mark.parametrize("absent", [{}, {"nat": "", "fingerprint": ""}, {"nat": None, "fingerprint": None}])
def test_without_nat_and_fingerprint_the_nat_is_unknown_and_the_bridge_the_default(absent):
    assert Offer.parse(body(**absent), DEFAULT_BRIDGES) == Offer(DESCRIPTION, Nat.UNKNOWN, RELAY, SDP)


def test_names_in_any_case_count_and_the_last_duplicate_wins():
    document = json.dumps(
        {"OFFER": "x", "extra": [1], "Nat": "restricted", "nat": "unrestricted", "oFFer": DESCRIPTION}
    )

    offer = Offer.parse(b"1.0\n" + document.encode(), DEFAULT_BRIDGES)

    assert offer == Offer(DESCRIPTION, Nat.UNRESTRICTED, RELAY, SDP)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (b"", "unsupported message version"),
        (b"1.0", "unsupported message version"),
        (b"1.0\r\n{}", "unsupported message version"),
        (b" 1.0\n{}", "unsupported message version"),
        (b"1.1\n{}", "unsupported message version"),
        (b"{}", "unsupported message version"),
        (b"1.0\n", "unexpected end of JSON input"),
        (b"1.0\nhello", "invalid character 'h' looking for beginning of value"),
        (b"1.0\n{} x", "invalid character 'x' after top-level value"),
        (b"1.0\n[]", "json: cannot unmarshal array into Go value of type messages.ClientPollRequest"),
        (body(offer=1), "json: cannot unmarshal number into Go struct field ClientPollRequest.offer of type string"),
        (b"1.0\n{}", "no supplied offer"),
        (b"1.0\nnull", "no supplied offer"),
        (body(offer=""), "no supplied offer"),
        (body(offer="fake"), "malformed session description: invalid character 'k' in literal false (expecting 'l')"),
        (
            body(offer="{}"),
            "malformed session description: cannot deserialize SessionDescription without type field",
        ),
        (
            body(offer='{"type":"offer"}'),
            "malformed session description: cannot deserialize SessionDescription without sdp field",
        ),
        (body(offer='{"type":1,"sdp":""}'), "malformed session description: invalid SDP type"),
        (body(offer='{"type":"offer","sdp":null}'), "malformed session description: invalid SDP"),
        (body(offer='{"type":"bid","sdp":""}'), "malformed session description: Unknown SDP type"),
        (body(fingerprint="AB" * 19), "cannot decode fingerprint"),
        (body(fingerprint="xy" * 20), "cannot decode fingerprint"),
        (body(nat="open"), "invalid NAT type"),
        (body(fingerprint=UNKNOWN_BRIDGE), "bridge with requested fingerprint is unknown to the broker"),
    ],
)
def test_an_invalid_offer_is_rejected_with_upstreams_text(given, text):
    with pytest.raises(InvalidMessage) as refused:
        Offer.parse(given, DEFAULT_BRIDGES)

    assert str(refused.value) == text


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"offer": "{}", "fingerprint": "x", "nat": "x"}, "malformed session description"),
        ({"fingerprint": "x", "nat": "x"}, "cannot decode fingerprint"),
        ({"fingerprint": UNKNOWN_BRIDGE, "nat": "x"}, "invalid NAT type"),
    ],
    ids=["description before fingerprint", "fingerprint before NAT", "NAT before bridge"],
)
def test_of_several_errors_the_reply_names_the_one_that_upstream_names(members, text):
    with pytest.raises(InvalidMessage, match=text):
        Offer.parse(body(**members), DEFAULT_BRIDGES)


def test_a_body_that_is_too_long_for_proxies_is_refused_with_its_size():
    with pytest.raises(InvalidMessage, match="100001 bytes are too many; at most 100000 are allowed"):
        Offer.parse(b"1.0\n".ljust(MAXIMUM_BODY_BYTES + 1), DEFAULT_BRIDGES)


def test_a_legacy_offer_is_only_the_session_description():
    offer = Offer.parse_legacy(DESCRIPTION.encode(), DEFAULT_BRIDGES, nat_header="restricted")

    assert offer == Offer(DESCRIPTION, Nat.RESTRICTED, RELAY, SDP)


def test_a_legacy_offer_without_the_header_has_an_unknown_nat():
    assert Offer.parse_legacy(DESCRIPTION.encode(), DEFAULT_BRIDGES, nat_header="").nat is Nat.UNKNOWN


@pytest.mark.parametrize(
    ("document", "nat_header", "bridges", "text"),
    [
        (b"{", "", DEFAULT_BRIDGES, "malformed session description: unexpected end of JSON input"),
        (DESCRIPTION.encode(), "open", DEFAULT_BRIDGES, "invalid NAT type"),
        (DESCRIPTION.encode(), "", {}, "bridge with requested fingerprint is unknown to the broker"),
    ],
    ids=["malformed", "NAT", "bridge"],
)
def test_a_legacy_offer_is_checked_like_any_other(document, nat_header, bridges, text):
    with pytest.raises(InvalidMessage) as refused:
        Offer.parse_legacy(document, bridges, nat_header=nat_header)

    assert str(refused.value) == text


def test_invalid_bytes_are_replaced_one_by_one():
    offer = Offer.parse_legacy(b'{"type":"offer","sdp":"\xe2\x82\xff"}', DEFAULT_BRIDGES, nat_header="")

    assert offer.session_description == '{"type":"offer","sdp":"\ufffd\ufffd\ufffd"}'


@pytest.mark.parametrize(("given", "expected"), [(b"{", True), (b"1.0\n{}", False), (b"", False)])
def test_a_legacy_offer_is_detected_by_its_first_byte(given, expected):
    assert is_legacy(given) is expected


def test_an_offer_body_equals_upstreams():
    assert offer_body("o", "unknown") == (
        '1.0\n{"offer":"o","nat":"unknown","fingerprint":"2B280B23E1107BB62ABFC40DDCC8824814F80A72"}'
    )


@given(st.text(), st.sampled_from(Nat), st.binary(min_size=20, max_size=20))
def test_writing_and_parsing_an_offer_are_inverse(sdp, nat, fingerprint):
    fingerprint = parse_fingerprint(fingerprint.hex())
    description = json.dumps({"type": "offer", "sdp": sdp})

    offer = Offer.parse(offer_body(description, nat, fingerprint=fingerprint).encode(), {fingerprint: "wss://b/"})

    assert offer == Offer(description, nat, "wss://b/", sdp)


@given(st.binary())
@example(b'"' + b"[" * 20_000)
@example(b'{"offer":' + b"[" * 9_000 + b"]" * 9_000 + b"}")
@example(b'{"offer":' + b"9" * 5_000 + b"}")
@example(b'{"offer":NaN}')
@example(b'{"offer":"\\ud800"}')
def test_every_invalid_body_is_rejected_with_a_text(junk):
    with pytest.raises(InvalidMessage):
        Offer.parse(b"1.0\n" + junk, DEFAULT_BRIDGES)
