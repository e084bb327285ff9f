"""The stage of rendezvous for handlers: moto, settings in the environment, and empty caches."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from lambdas.rendezvous import answer, client, offer, page, poll, sweep, wiring
from lambdas.shared import poison
from signalbox.rendezvous.wire.nat import Nat
from tests.fakes.aws import REGION, aws, lease_table, rendezvous_table, sqs
from tests.handlers.environment import OVERFLOW, STREAM, clear_caches, create_history_stream, written_events
from tests.handlers.recorded_events import ACCOUNT, Event

__all__ = ["aws", "lease_table", "rendezvous_table", "sqs"]

PREFIX = "snowflake-client-"
# The patience is short, since a test waits until it ends.
SETTINGS = {
    "RENDEZVOUS_TABLE": "Rendezvous",
    "LEASE_TABLE": "Leases",
    "HISTORY_STREAM": STREAM,
    "HISTORY_OVERFLOW_URL": OVERFLOW,
    "STAGE": "signalbox",
    "CLIENT_QUEUE_PREFIX": PREFIX,
    "CLIENT_QUEUE_ARN_PREFIX": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{PREFIX}",
    "CLIENT_QUEUE_LEASE_SECONDS": "120",
    "STRAY_QUEUE_AGE_SECONDS": "0",
    "BROKER_QUEUE_NAME": "snowflake-broker",
    "BROKER_QUEUE_ARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:snowflake-broker",
    "BROKER_QUEUE_ATTRIBUTES": json.dumps({"VisibilityTimeout": "30"}),
    "OFFER_PATIENCE_SECONDS": "30",
    "HTTP_OFFER_PATIENCE_SECONDS": "0.3",
    "MATCH_PATIENCE_SECONDS": "5",
    "PROXY_RECENCY_SECONDS": "60",
    "POLL_HOLD_SECONDS": "0",
    "POLL_HOLD_LIMIT": "100",
    "OFFER_POOL_SHARDS": "2",
    "POLL_INTERVAL_MILLISECONDS": "20000",
    "RESTRICTED_POLL_INTERVAL_MILLISECONDS": "30000",
    "ALLOWED_RELAY_PATTERN": "snowflake.torproject.net$",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """The queues and the history bucket of the handlers, with queries for assertions."""

    sqs: Any
    s3: Any
    broker_queue_url: str
    dead_letter_queue_url: str

    def expect_proxies(self, *nats: Nat) -> None:
        """Record a recent poll for each of these NAT types, or for all of them."""
        for nat in nats or tuple(Nat):
            wiring.poll_reserver().presence.record_poll(nat, now=datetime.now(UTC))

    def received(self, record: Event) -> Event:
        """Return a record as the broker queue delivers it, with a receipt handle that can delete it."""
        self.sqs.send_message(QueueUrl=self.broker_queue_url, MessageBody=record["body"])
        (sent,) = self.sqs.receive_message(QueueUrl=self.broker_queue_url)["Messages"]
        return record | {"messageId": sent["MessageId"], "receiptHandle": sent["ReceiptHandle"]}

    def in_flight(self) -> int:
        attributes = self.sqs.get_queue_attributes(QueueUrl=self.broker_queue_url, AttributeNames=["All"])["Attributes"]
        return int(attributes["ApproximateNumberOfMessagesNotVisible"])

    def replies(self, client_id: str) -> list[str]:
        return [message["Body"] for message in self._messages(self._client_queue(client_id))]

    def has_queue(self, client_id: str) -> bool:
        return bool(self.sqs.list_queues(QueueNamePrefix=PREFIX + client_id).get("QueueUrls"))

    def dead_letters(self) -> list[tuple[str, dict[str, str]]]:
        """Return the bodies and attributes of the dead letters."""
        messages = self._messages(self.dead_letter_queue_url)
        return [
            (m["Body"], {name: a["StringValue"] for name, a in m.get("MessageAttributes", {}).items()})
            for m in messages
        ]

    def history(self) -> list[tuple[str, str]]:
        """Return the kinds and outcomes of the written events, in order of time."""
        return [(row["kind"], row["outcome"]) for row in written_events(self.s3)]

    def _client_queue(self, client_id: str) -> str:
        return str(self.sqs.get_queue_url(QueueName=PREFIX + client_id)["QueueUrl"])

    def _messages(self, queue_url: str) -> list[dict[str, Any]]:
        received = self.sqs.receive_message(
            QueueUrl=queue_url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], VisibilityTimeout=0
        )
        return received.get("Messages", [])


@pytest.fixture(autouse=True)
def patient_with_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the readers of suspects time, also on a machine that has little for them."""
    monkeypatch.setattr(poison, "LONGEST_SECONDS", 600.0)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, sqs, rendezvous_table, lease_table) -> Iterator[Stage]:
    """A stage whose function instances are all cold."""
    urls = [sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("snowflake-broker", "dead-offers")]
    queues = dict(zip(("BROKER_QUEUE_URL", "DEAD_LETTER_QUEUE_URL"), urls, strict=True))
    for name, value in (SETTINGS | queues).items():
        monkeypatch.setenv(name, value)
    forget_everything()
    yield Stage(sqs, create_history_stream(), *urls)
    forget_everything()


def forget_everything() -> None:
    """Clear the caches of every function."""
    clear_caches(wiring, answer, client, offer, page, poll, sweep)
