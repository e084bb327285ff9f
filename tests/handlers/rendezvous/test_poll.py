"""The function `poll`."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from lambdas.rendezvous import offer, wiring
from lambdas.rendezvous.poll import handler
from signalbox.clients.rendezvous.simulator import sample_offer
from signalbox.networks import network_number
from signalbox.rendezvous.model.held_polls import HeldPoll
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
    assert response["body"] == (
        '{"Status":"client match","Offer":' + json.dumps(OFFER) + ',"NAT":"unrestricted","NextPoll":20000,'
        '"RelayURL":"wss://snowflake.torproject.net/"}'
    )
    assert stage.history() == [("offer", "parked"), ("proxy_poll", "matched")]
    assert [row["labels"].get("client") for row in written_events(stage.s3)] == [None, "client"]


def test_a_held_poll_gets_an_offer_that_arrives_while_it_is_held(stage, monkeypatch):
    monkeypatch.setenv("POLL_HOLD_SECONDS", "10")
    stage.expect_proxies()

    with ThreadPoolExecutor() as pool:
        held = pool.submit(poll)
        park()

    assert json.loads(held.result()["body"])["Offer"] == OFFER


def test_a_poll_is_held_in_a_slot_of_its_network_alone(stage, monkeypatch):
    monkeypatch.setenv("POLL_HOLD_SECONDS", "10")
    monkeypatch.setenv("POLL_HOLD_LIMIT", "5")
    poll_of_network = request("poll", body=json.dumps(POLL))
    poll_of_network["requestContext"]["http"]["sourceIp"] = "8.8.8.8"
    now = datetime.now(UTC)
    slot = network_number("8.8.8.8") % 5
    other = HeldPoll(slot, "other", Nat.UNRESTRICTED, "webext", 0, since=now, until=now + timedelta(hours=1))
    assert wiring.held_polls().acquire(other, now=now)

    handler(poll_of_network, None)

    assert [row["labels"]["held"] for row in written_events(stage.s3)] == ["false"]


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


def test_no_address_is_stored(stage, rendezvous_table):
    """The poll names 8.8.8.8 in its headers and arrives from 127.0.0.1."""
    stage.expect_proxies(Nat.UNRESTRICTED)

    handler(event("poll"), None)

    kept = repr(rendezvous_table.scan()["Items"])
    assert "distinct#" in kept
    assert "8.8.8.8" not in kept
    assert "127.0.0.1" not in kept
