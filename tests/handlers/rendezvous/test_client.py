"""The function `client`: offers over HTTP and AMP caches."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from lambdas.rendezvous import proxies
from lambdas.rendezvous.clients import handler
from signalbox.clients.rendezvous.simulator import sample_answer, sample_offer
from signalbox.rendezvous.reporting.pages import CROSS_ORIGIN, NOT_FOUND_HEADERS, TEXT
from signalbox.rendezvous.wire.proxy import ProxyAnswer, answer_body
from tests.handlers.recorded_events import armored, event, request

SID = "Ytd81pBxO3lOBlExTQBURw"
HEADERS = {"Content-Type": TEXT, **CROSS_ORIGIN}
DEADLINE_SECONDS = 10


def take_offer() -> str:
    """Poll until there is an offer and return it."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        response = json.loads(proxies.handler(event("poll"), None)["body"])
        if response["Status"] == "client match":
            return str(response["Offer"])
    raise AssertionError("no offer came")


@contextmanager
def answering() -> Iterator[None]:
    """Run a proxy that answers one offer."""

    def serve() -> None:
        body = answer_body(ProxyAnswer(SID, sample_answer(take_offer())))
        assert proxies.handler(request("answer", body=body), None)["body"] == '{"Status":"success"}'

    with ThreadPoolExecutor() as pool:
        served = pool.submit(serve)
        yield
        served.result()


@pytest.fixture
def patient(stage, monkeypatch) -> None:
    monkeypatch.setenv("HTTP_OFFER_PATIENCE_SECONDS", str(DEADLINE_SECONDS))
    stage.expect_proxies()


def test_an_offer_is_answered_while_its_request_waits(patient):
    """The offer has no content type: the HTTP API encodes such a body in base64."""
    with answering():
        response = handler(event("client"), None)

    expected = '{"answer":' + json.dumps(sample_answer(sample_offer("1"))) + "}"
    assert response == {"statusCode": 200, "headers": HEADERS, "body": expected}


def test_a_legacy_client_gets_the_answer_as_body(patient):
    with answering():
        response = handler(event("client_legacy"), None)

    assert response == {"statusCode": 200, "headers": HEADERS, "body": sample_answer(sample_offer("3"))}


def test_an_answer_passes_through_an_amp_cache(patient, stage):
    with answering():
        response = handler(event("client_amp"), None)

    assert response["statusCode"] == 200
    assert response["headers"] == {**CROSS_ORIGIN, "Content-Type": "text/html", "Cache-Control": "max-age=15"}
    assert armored(response) == '{"answer":' + json.dumps(sample_answer(sample_offer("4"))) + "}"
    assert ("answer", "delivered") in stage.history()


def test_a_legacy_client_gets_errors_as_status_codes(stage, monkeypatch):
    monkeypatch.setenv("HTTP_OFFER_PATIENCE_SECONDS", "4")  # before the first call, which caches it
    denied = handler(event("client_legacy"), None)

    stage.expect_proxies()
    with ThreadPoolExecutor() as pool:
        timed_out = pool.submit(handler, event("client_legacy"), None)
        take_offer()

    assert denied == {"statusCode": 503, "headers": HEADERS, "body": ""}
    assert timed_out.result() == {"statusCode": 504, "headers": HEADERS, "body": ""}


def test_a_malformed_legacy_offer_is_a_bad_request(stage):
    """Upstream closes the connection."""
    response = handler(request("client_legacy", body='{"type":"offer"}'), None)

    assert response == {"statusCode": 400, "headers": HEADERS, "body": ""}
    assert stage.history() == [("bad_input", "rejected")]


def test_an_offer_that_breaks_the_protocol_is_answered_with_the_reason(stage):
    response = handler(request("client", body="1.0\n{}"), None)

    assert response == {"statusCode": 200, "headers": HEADERS, "body": '{"error":"no supplied offer"}'}
    assert stage.history() == [("bad_input", "rejected")]


@pytest.mark.parametrize(("size", "status"), [(100_000, 200), (100_001, 400)])
def test_an_offer_is_limited_to_100000_bytes(stage, size, status):
    response = handler(request("client", body=b"x" * size), None)

    assert response["statusCode"] == status
    assert response["body"] == ("" if status == 400 else '{"error":"unsupported message version"}')


@pytest.mark.parametrize("rest", ["", "0", "0x/%%", "1x/MS4w"], ids=["nothing", "no slash", "no base64", "version"])
def test_an_undecodable_path_gets_the_error_as_an_amp_page(stage, rest):
    response = handler(request("client_amp", path=f"/amp/client/{rest}"), None)

    assert response["statusCode"] == 200
    assert armored(response) == '{"error":"cannot decode URL path"}'
    assert stage.history() == [("bad_input", "rejected")]


def test_the_amp_path_without_its_slash_redirects_to_the_one_with_it(stage):
    response = handler(event("client_amp_without_slash"), None)

    assert response["statusCode"] == 307
    assert response["headers"]["Location"] == "/amp/client/"


def test_other_paths_below_amp_are_not_found(stage):
    response = handler(request("client_amp", path="/amp/other/x"), None)

    assert response == {"statusCode": 404, "headers": NOT_FOUND_HEADERS, "body": "404 page not found\n"}
