"""The function `poll`."""

import json
from datetime import UTC, datetime, timedelta

from lambdas.rendezvous import offer, wiring
from lambdas.rendezvous.proxies import handler
from signalbox.clients.rendezvous.simulator import sample_offer
from signalbox.rendezvous.model.pace import ProxyGroup
from signalbox.rendezvous.reporting.pages import CROSS_ORIGIN, TEXT
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from tests.handlers.environment import written_events
from tests.handlers.recorded_events import batch, event, message, request

REFUSED = '{"Status":"incorrect relay pattern","Offer":"","NAT":"","NextPoll":3600000,"RelayURL":""}'
OFFER = sample_offer("client")
POLL = {"Sid": "sid", "Version": "1.3", "Type": "webext", "NAT": "unrestricted", "Clients": 0}
POLL |= {"AcceptedRelayPattern": "snowflake.torproject.net$"}


def poll(**changes: object) -> dict:
    return handler(request("poll", body=json.dumps(POLL | changes)), None)


def park(client_id: str = "client", *, nat: str = "unrestricted") -> None:
    offer.handler(batch(message(client_id, body=offer_body(OFFER, nat))), None)


def test_a_proxy_gets_the_parked_offer_byte_for_byte(stage):
    """The poll has no content type, as with the Go proxy: the HTTP API encodes such a body in base64."""
    stage.expect_proxies()
    park()

    response = handler(event("poll"), None)

    assert response["statusCode"] == 200
    assert response["headers"] == {"Content-Type": TEXT, **CROSS_ORIGIN}
    next_poll = json.loads(response["body"])["NextPoll"]
    assert 1000 <= next_poll <= 4000  # spread around the two seconds of the first proxies
    assert response["body"] == (
        '{"Status":"client match","Offer":' + json.dumps(OFFER) + f',"NAT":"unrestricted","NextPoll":{next_poll},'
        '"RelayURL":"wss://snowflake.torproject.net/"}'
    )
    assert stage.history() == [("offer", "parked"), ("proxy_poll", "matched")]
    wiring.flush()
    assert [row["labels"].get("client") for row in written_events(stage.s3)] == [None, "client"]


def test_a_proxy_with_another_relay_pattern_is_rejected(stage):
    response = poll(AcceptedRelayPattern="evil.example$")

    assert (response["statusCode"], response["body"]) == (200, REFUSED)
    assert stage.history() == [("proxy_poll", "relay_rejected")]


def test_a_poll_that_breaks_the_protocol_is_a_bad_request(stage):
    response = handler(request("poll_not_json", body="not json"), None)

    assert (response["statusCode"], response["body"]) == (400, "")
    assert response["headers"] == {"Content-Type": TEXT, **CROSS_ORIGIN}
    assert stage.history() == [("bad_input", "rejected")]


def test_a_cors_preflight_is_answered(stage):
    response = handler(request("poll", method="OPTIONS"), None)

    assert (response["statusCode"], response["body"]) == (200, "")
    assert CROSS_ORIGIN.items() <= response["headers"].items()
    assert stage.history() == []


def test_the_group_of_a_network_depends_on_the_key_of_the_day(stage, monkeypatch):
    """By a hash without a key, a stranger could choose a network that shares the group of a known proxy."""
    monkeypatch.setattr("signalbox.rendezvous.rules.pacer.SHARED_EVERY", timedelta(0))

    for key in (b"monday", b"tuesday", b"wednesday"):
        monkeypatch.setitem(wiring.statistics().keys, datetime.now(UTC).date(), key)
        handler(request("poll", body=json.dumps(POLL), source_ip="8.8.8.8"), None)

    assert len(wiring.paces().all()[ProxyGroup.UNRESTRICTED].networks) == 3


def test_no_address_is_stored(stage, rendezvous_table):
    """The poll names 8.8.8.8 in its headers and arrives from 127.0.0.1."""
    stage.expect_proxies(Nat.UNRESTRICTED)

    handler(event("poll"), None)

    kept = repr(rendezvous_table.scan()["Items"])
    assert "distinct#" in kept
    assert "8.8.8.8" not in kept
    assert "127.0.0.1" not in kept
