"""What breaks the protocol, once on every way in; tests/unit/rendezvous/wire has every case and upstream's texts."""

import json
import re
import secrets

import pytest

from signalbox.clients.rendezvous.amp import amp_path, armored
from signalbox.clients.rendezvous.client import new_client_id
from tests.integration.rendezvous.peers import DOORS, SOON_SECONDS, Parties

pytestmark = [pytest.mark.emulator, pytest.mark.parametrize("door", DOORS)]

TEXT = "text/plain; charset=utf-8"
CROSS_ORIGIN = {"access-control-allow-origin": "*", "access-control-allow-headers": "Origin, X-Session-ID"}
POLL = {"Sid": "Ytd81pBxO3lOBlExTQBURw", "Version": "1.3", "Type": "standalone", "NAT": "restricted", "Clients": 0}
IDLE = re.compile(r'\{"Status":"no match","Offer":"","NAT":"","NextPoll":\d{4,7},"RelayURL":""\}')


def poll() -> str:
    more = {"Sid": secrets.token_hex(8), "AcceptedRelayPattern": "snowflake.torproject.net$"}
    return json.dumps(POLL | more)


def test_an_invalid_offer_gets_the_same_error_over_sqs_http_and_amp(parties: Parties):
    body, expected, client_id = "1.0\n{}", '{"error":"no supplied offer"}', new_client_id()
    parties.send(body, client_id=client_id)

    by_http = parties.http("POST", "client", body)
    by_amp = parties.http("GET", amp_path(body))

    assert parties.reply(client_id, seconds=2 * SOON_SECONDS) == expected
    assert (by_http.status, by_http.body) == (200, expected)
    assert {"content-type": TEXT, **CROSS_ORIGIN}.items() <= by_http.headers.items()
    assert (by_amp.status, armored(by_amp.body)) == (200, expected)
    assert {"content-type": "text/html", "cache-control": "max-age=15"}.items() <= by_amp.headers.items()


def test_the_paths_of_amp_reach_the_function_as_they_are(parties: Parties):
    response = parties.http("GET", "amp/client/0x/%25")

    assert (response.status, armored(response.body)) == (200, '{"error":"cannot decode URL path"}')
    assert parties.http("GET", "amp/client").status == 307


def test_polls_are_taken_with_any_method_and_content_type(parties: Parties):
    """The Go proxy sends no content type, browsers send one."""
    browser = {"Content-Type": "text/plain;charset=UTF-8"}

    polls = [parties.pool.submit(parties.http, "POST", "proxy", poll().encode())]
    polls += [parties.pool.submit(parties.http, method, "proxy", poll(), headers=browser) for method in ("POST", "PUT")]
    responses = [poll.result() for poll in polls]

    assert {(one.status, one.headers["content-type"]) for one in responses} == {(200, TEXT)}
    assert all(IDLE.fullmatch(one.body) for one in responses)


def test_an_offer_without_a_valid_client_id_becomes_a_dead_letter_with_a_reason(parties: Parties):
    """Its body is cut to make room for the reason."""
    queue, body = parties.deployment.outputs["BrokerQueueUrl"], "x" * 1_000_000
    attributes = {"ClientID": {"DataType": "Binary", "BinaryValue": b"f" * 16}}

    sent = parties.client_sqs.send_message(QueueUrl=queue, MessageBody=body, MessageAttributes=attributes)["MessageId"]

    dead_letter = parties.dead_letter(sent)
    assert dead_letter["Body"] == "x" * 100_000
    assert dead_letter["MessageAttributes"]["Reason"]["StringValue"] == "ClientID is empty"
