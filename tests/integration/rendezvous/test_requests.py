"""The paths of AMP and the methods of polls, as they reach the functions; tests/handlers/rendezvous has bad input."""

import json
import re
import secrets

import pytest

from signalbox.clients.rendezvous.amp import armored
from tests.integration.rendezvous.peers import Parties, at_each_door

pytestmark = [pytest.mark.emulator, at_each_door]

TEXT = "text/plain; charset=utf-8"
POLL = {"Sid": "Ytd81pBxO3lOBlExTQBURw", "Version": "1.3", "Type": "standalone", "NAT": "restricted", "Clients": 0}
IDLE = re.compile(r'\{"Status":"no match","Offer":"","NAT":"","NextPoll":\d{4,7},"RelayURL":""\}')


def poll() -> str:
    more = {"Sid": secrets.token_hex(8), "AcceptedRelayPattern": "snowflake.torproject.net$"}
    return json.dumps(POLL | more)


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
