"""The function `forward` of a front: offers are posted to an existing broker, whose replies go to their clients."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lambdas.rendezvous import forward, wiring
from lambdas.shared import instance
from signalbox.aws.rendezvous import upstream
from signalbox.control import orphan_queues
from signalbox.rendezvous.wire.reply import answer_reply
from tests.handlers.environment import clear_caches
from tests.handlers.recorded_events import batch, client_id, message

ANSWER = answer_reply('{"type":"answer","sdp":"v=0"}')
NO_PROXIES = '{"error":"no snowflake proxies currently available"}'
TIMED_OUT = '{"error":"timed out waiting for answer!"}'


@dataclass
class Broker:
    """An existing broker on loopback: it answers every offer with the same status and body."""

    status: int = 200
    body: bytes = ANSWER.encode()
    offers: list[tuple[str, bytes]] = field(default_factory=list)
    until: threading.Event = field(default_factory=threading.Event)
    is_late: bool = False
    url: str = ""


@pytest.fixture
def broker(stage, monkeypatch) -> Iterator[Broker]:
    found = Broker()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.offers.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            if found.is_late:
                found.until.wait()
            self.send_response(found.status)
            self.end_headers()
            self.wfile.write(found.body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found.url = f"http://127.0.0.1:{server.server_port}/broker/"
    monkeypatch.setenv("BROKER_URL", found.url)
    clear_caches(forward, wiring, instance)
    yield found
    found.until.set()
    server.shutdown()
    server.server_close()
    clear_caches(forward, wiring, instance)


def handled(*records: dict[str, Any]) -> list[str]:
    """Return the ids of the messages that come again."""
    done = forward.handler(batch(*records), None)
    return [failure["itemIdentifier"] for failure in done["batchItemFailures"]]


def again(record: dict[str, Any], *, age_seconds: float) -> dict[str, Any]:
    """Return a later delivery of the same message."""
    sent = str(round((time.time() - age_seconds) * 1000))
    return record | {"attributes": record["attributes"] | {"ApproximateReceiveCount": "2", "SentTimestamp": sent}}


def test_an_offer_is_posted_as_it_is_and_the_brokers_reply_goes_to_its_client(stage, broker):
    record = message()

    assert handled(record) == []
    assert broker.offers == [("/broker/client", record["body"].encode())]
    assert stage.replies(client_id(record)) == [ANSWER]


def test_an_offer_whose_reply_was_sent_is_not_posted_again(stage, broker):
    record = message()
    handled(record)

    assert handled(again(record, age_seconds=20)) == []
    assert stage.replies(client_id(record)) == [ANSWER]


def test_the_queue_of_a_client_is_deleted_at_the_end_of_its_lease(stage, broker, monkeypatch):
    monkeypatch.setenv("CLIENT_QUEUE_LEASE_SECONDS", "0")
    clear_caches(forward, wiring, instance)

    handled(message("c1"))

    assert not stage.has_queue("c1")


def test_a_queue_that_cannot_be_deleted_does_not_bring_answered_offers_again(stage, broker, monkeypatch, caplog):
    monkeypatch.setenv("CLIENT_QUEUE_LEASE_SECONDS", "0")
    clear_caches(forward, wiring, instance)
    instance.sqs().meta.events.register("before-call.sqs.DeleteQueue", _refuse)

    assert handled(message("c1"), message("c2")) == []
    assert stage.has_queue("c1")
    assert "left to the sweep" in caplog.text


def _refuse(**_: object) -> None:
    raise ClientError({"Error": {"Code": "ThrottlingException"}}, "DeleteQueue")


def test_an_offer_whose_function_was_killed_before_it_sent_the_reply_is_posted_again(stage, broker):
    record = message()
    forward._service().client_queues.create(client_id(record), message_id=record["messageId"])

    handled(again(record, age_seconds=20))

    assert stage.replies(client_id(record)) == [ANSWER]


@pytest.mark.parametrize(
    ("status", "body"),
    [(503, b"overloaded"), (302, b""), (200, b"<html>"), (200, b"{}"), (200, b"\xff")],
    ids=["5xx", "redirect", "no JSON", "empty", "no text"],
)
def test_a_broker_without_a_reply_gives_clients_the_error_for_no_proxies(stage, broker, status, body):
    broker.status, broker.body = status, body
    record = message()

    handled(record)

    assert stage.replies(client_id(record)) == [NO_PROXIES]


def test_an_absent_broker_gives_clients_the_error_for_no_proxies(stage, broker, monkeypatch):
    monkeypatch.setenv("BROKER_URL", "http://127.0.0.1:1")
    clear_caches(instance)
    record = message()

    handled(record)

    assert stage.replies(client_id(record)) == [NO_PROXIES]


def test_a_broker_that_is_late_gives_its_client_a_timeout_and_delays_no_other(stage, broker):
    broker.is_late = True
    service = upstream.HttpBroker(broker.url, timeout=0.05)

    assert service.reply(b"1.0\n{}") == TIMED_OUT


def test_the_brokers_own_error_reaches_the_client(stage, broker):
    broker.body = b'{"error":"invalid NAT type"}'
    record = message()

    handled(record)

    assert stage.replies(client_id(record)) == ['{"error":"invalid NAT type"}']


def test_an_offer_that_no_proxy_can_read_is_not_posted(stage, broker):
    record = message(body="x" * 100_001)

    handled(record)

    assert stage.replies(client_id(record)) == ['{"error":"100001 bytes are too many; at most 100000 are allowed"}']
    assert broker.offers == []


def test_a_message_without_a_client_id_is_a_dead_letter(stage, broker):
    assert handled(message("")) == []
    assert [attributes["Reason"] for _, attributes in stage.dead_letters()] == ["ClientID is empty"]
    assert stage.history() == [("dead_letter", "dead")]


def test_the_schedule_deletes_the_queues_of_instances_that_have_ended(stage, broker, monkeypatch):
    monkeypatch.setattr(orphan_queues, "STRAY_AGE", timedelta(0))
    record = message("lost")
    handled(record)
    stage.sqs.create_queue(QueueName="snowflake-client-of-another-broker")

    assert forward.handler({"task": "strays"}, None) == {"deleted": 1}
    assert not stage.has_queue("lost")
    assert stage.has_queue("of-another-broker")
