"""What breaks the protocol, on every way in: the wire's own error texts, dead letters with their reason, and 400s."""

import json
import secrets
from collections.abc import Mapping

import pytest

from signalbox.clients.rendezvous.amp import amp_path, armored
from signalbox.clients.rendezvous.client import new_client_id
from signalbox.clients.rendezvous.simulator import sample_answer, sample_offer
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from tests.integration.rendezvous.offers import OFFER, OFFERS, offer
from tests.integration.rendezvous.peers import SOON_SECONDS, HttpResponse, Parties

pytestmark = pytest.mark.emulator

SID = "Ytd81pBxO3lOBlExTQBURw"
TEXT = "text/plain; charset=utf-8"
CROSS_ORIGIN = {"access-control-allow-origin": "*", "access-control-allow-headers": "Origin, X-Session-ID"}


TOO_LONG = offer(more="x" * 100_000)

POLL = {"Sid": SID, "Version": "1.3", "Type": "standalone", "NAT": "restricted", "Clients": 0}
POLL |= {"AcceptedRelayPattern": "snowflake.torproject.net$"}
IDLE = '{"Status":"no match","Offer":"","NAT":"","NextPoll":20000,"RelayURL":""}'
REFUSED = '{"Status":"incorrect relay pattern","Offer":"","NAT":"","NextPoll":3600000,"RelayURL":""}'
ANSWER = {"Version": "1.3", "Sid": SID, "Answer": sample_answer(OFFER)}


def without(message: Mapping[str, object], name: str) -> str:
    return json.dumps({key: value for key, value in message.items() if key != name})


def poll(**members: object) -> str:
    return json.dumps(POLL | {"Sid": secrets.token_hex(8)} | members)


def answer(**members: object) -> str:
    return json.dumps(ANSWER | members)


@pytest.fixture(scope="module")
def unfit(all_parties: Parties) -> Parties:
    """Return the parties without a recorded poll, so that valid offers are denied at once."""
    all_parties.wait_until_nothing_waits()
    all_parties.forget_polls()
    return all_parties


@pytest.fixture(scope="module")
def replies(unfit: Parties) -> dict[str, str]:
    """Return the reply to each offer over SQS; all are sent before the first reply is read."""
    clients = {name: new_client_id() for name in OFFERS}
    for name, client_id in clients.items():
        unfit.send(OFFERS[name][0], client_id=client_id)
    return {name: unfit.reply(client_id, seconds=2 * SOON_SECONDS) for name, client_id in clients.items()}


@pytest.mark.parametrize("name", OFFERS)
def test_an_invalid_offer_gets_the_same_error_over_sqs_http_and_amp(unfit, replies, name):
    body, text = OFFERS[name]
    expected = json.dumps({"error": text}, separators=(",", ":"))

    by_http = unfit.http("POST", "client", body)
    by_amp = unfit.http("GET", amp_path(body))

    assert replies[name] == expected
    assert (by_http.status, by_http.body) == (200, expected)
    assert {"content-type": TEXT, **CROSS_ORIGIN}.items() <= by_http.headers.items()
    assert (by_amp.status, armored(by_amp.body)) == (200, expected)
    assert {"content-type": "text/html", "cache-control": "max-age=15"}.items() <= by_amp.headers.items()


def test_an_empty_http_body_has_an_unsupported_version(unfit):
    assert unfit.http("POST", "client").body == '{"error":"unsupported message version"}'


@pytest.mark.parametrize("path", ["amp/client/", "amp/client/0x/%25", "amp/client/1x/MS4w"])
def test_an_amp_path_without_an_offer_gets_an_armored_error(unfit, path):
    response = unfit.http("GET", path)

    assert (response.status, armored(response.body)) == (200, '{"error":"cannot decode URL path"}')


def test_the_amp_path_without_a_trailing_slash_redirects(unfit):
    assert unfit.http("GET", "amp/client").status == 307


def test_an_offer_longer_than_a_proxy_reads_is_refused(unfit):
    """Over HTTP with upstream's status; over SQS, where upstream has no limit, with a reason."""
    client_id = new_client_id()
    unfit.send(TOO_LONG, client_id=client_id)

    response = unfit.http("POST", "client", TOO_LONG)

    assert (response.status, response.body) == (400, "")
    assert unfit.reply(client_id) == (f'{{"error":"{len(TOO_LONG)} bytes are too many; at most 100000 are allowed"}}')


@pytest.mark.parametrize(
    ("body", "nat", "status"),
    [(OFFER, "restricted", 503), ('{"type":"offer"}', "restricted", 400), (OFFER, "open", 400)],
    ids=["denied", "malformed", "other NAT"],
)
def test_a_client_of_the_older_form_gets_an_http_status(unfit, body, nat, status):
    """Upstream drops the connection for an invalid offer."""
    response = unfit.http("POST", "client", body, headers={"Snowflake-NAT-Type": nat})

    assert (response.status, response.body) == (status, "")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "nothing",
        poll() + "x",
        "[]",
        poll(Clients="8"),
        poll(NAT="open"),
        poll(Version="2.0"),
        poll(Version="10.0"),
        poll(Version=1),
        without(POLL, "Version"),
        without(POLL, "Sid"),
        poll(Sid=""),
        poll(Type="x" * 100_000),
    ],
    # Fixed ids: pytest's workers compare the ids of tests, and the session ids in the bodies are random.
    ids=[
        *("nothing", "no JSON", "more than JSON", "list", "clients", "NAT", "version 2.0", "version 10.0"),
        *("version 1", "no version", "no session", "empty session", "long type"),
    ],
)
def test_an_invalid_poll_is_a_bad_request(unfit, body):
    response = unfit.http("POST", "proxy", body)

    assert (response.status, response.body) == (400, "")
    assert CROSS_ORIGIN.items() <= response.headers.items()


@pytest.mark.parametrize(
    "body",
    [
        poll(AcceptedRelayPattern="02.snowflake.torproject.net$"),
        poll(AcceptedRelayPattern="^snowflake.torproject.net$"),
        poll(AcceptedRelayPattern="evil.example$"),
        poll(AcceptedRelayPattern=None),
        without(POLL, "AcceptedRelayPattern"),
    ],
    ids=["narrower", "exact", "another", "null", "missing"],
)
def test_a_proxy_that_does_not_accept_the_allowed_relays_is_refused(unfit, body):
    response = unfit.http("POST", "proxy", body)

    assert (response.status, response.body) == (200, REFUSED)


def test_polls_that_upstream_accepts_are_held_to_the_end_and_get_the_next_poll_interval(unfit):
    """All polls are concurrent; the Go proxy sends no content type, browsers send one, and any method is accepted."""
    bodies = [
        *(poll(Version=version) for version in ("1", "1.0", "1.99")),
        *(poll(AcceptedRelayPattern=p) for p in ("snowflake.torproject.net", "torproject.net$", "", "$")),
        poll(Clients=-8),
        poll(Type="unheard-of"),
        poll(NAT=""),
        without(POLL, "NAT"),
    ]
    browser = {"Content-Type": "text/plain;charset=UTF-8"}

    polls = [unfit.pool.submit(unfit.http, "POST", "proxy", body.encode()) for body in bodies]
    polls += [unfit.pool.submit(unfit.http, method, "proxy", poll(), headers=browser) for method in ("POST", "PUT")]

    assert {_seen(poll.result()) for poll in polls} == {(200, IDLE, TEXT)}
    assert unfit.held_sids() == set()


def _seen(response: HttpResponse) -> tuple[int, str, str]:
    return response.status, response.body, response.headers["content-type"]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "a=candidate",
        answer() + "x",
        answer(Answer='{"type":"answer","sdp":"v=0"}'),
        answer(Answer="a=candidate"),
        answer(Answer='{"sdp":"a=candidate"}'),
        answer(Version="2.0"),
        without(ANSWER, "Sid"),
        answer(Answer="", more="a=candidate"),
        answer(more="x" * 100_000),
    ],
    ids=[
        *("nothing", "no JSON", "more than JSON", "no SDP", "no JSON within", "no type", "version 2.0", "no session"),
        *("empty", "long"),
    ],
)
def test_an_invalid_answer_is_a_bad_request(unfit, body):
    response = unfit.http("POST", "answer", body)

    assert (response.status, response.body) == (400, "")
    assert CROSS_ORIGIN.items() <= response.headers.items()


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({}, "ClientID is empty"),
        ({"ClientId": {"DataType": "String", "StringValue": "f" * 16}}, "ClientID is empty"),
        ({"ClientID": {"DataType": "Binary", "BinaryValue": b"f" * 16}}, "ClientID is empty"),
        (
            {"ClientID": {"DataType": "String", "StringValue": "f" * 64}},
            "queue name of 81 characters; SQS allows 1 to 80",
        ),
        (
            {"ClientID": {"DataType": "String", "StringValue": "../a b"}},
            "queue name 'snowflake-client-../a b' has characters other than letters, digits, '-' and '_'",
        ),
    ],
    ids=["missing", "other name", "Binary", "too long", "bad characters"],
)
def test_an_offer_without_a_valid_client_id_becomes_a_dead_letter_with_a_reason(unfit, attributes, reason):
    body = offer_body(sample_offer(secrets.token_hex(8)), Nat.UNRESTRICTED)

    sent = _send(unfit, body, attributes)

    dead_letter = unfit.dead_letter(sent)
    assert dead_letter["Body"] == body
    assert dead_letter["MessageAttributes"]["Reason"]["StringValue"] == reason


def test_the_body_of_a_long_dead_letter_is_cut_to_make_room_for_its_reason(unfit):
    sent = _send(unfit, "x" * 2**20, {})

    dead_letter = unfit.dead_letter(sent)
    assert dead_letter["Body"] == "x" * 100_000
    assert dead_letter["MessageAttributes"]["Reason"]["StringValue"] == "ClientID is empty"


def _send(parties: Parties, body: str, attributes: Mapping[str, object]) -> str:
    queue = parties.deployment.outputs["BrokerQueueUrl"]
    return parties.client_sqs.send_message(QueueUrl=queue, MessageBody=body, MessageAttributes=attributes)["MessageId"]


def test_the_endpoints_work_after_invalid_input(unfit: Parties):
    held = unfit.hold(unfit.proxy(Nat.RESTRICTED))

    asked = unfit.ask(Nat.UNRESTRICTED)

    assert unfit.reply(asked.client_id) == asked.answer
    assert held.offer() == asked.offer
    assert unfit.waiting_messages() == 0
