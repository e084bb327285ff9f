"""The stage of rendezvous for handlers: moto, settings in the environment, and empty caches."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lambdas.rendezvous import clients, offer, page, proxies, sweep, wiring
from lambdas.shared import poison
from signalbox.aws.shared.dynamodb import milliseconds
from signalbox.aws.shared.expressions import Delete, Item, Put, attr
from signalbox.rendezvous.model.pace import proxy_group
from signalbox.rendezvous.model.states import OfferPool
from signalbox.rendezvous.wire.nat import Nat
from tests.fakes.aws import REGION, aws, lease_table, rendezvous_table, sqs
from tests.handlers.environment import OVERFLOW, STREAM, create_history_stream, new_instances, written_events
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
    "BROKER_QUEUE_ARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:snowflake-broker",
    "BROKER_QUEUE_ATTRIBUTES": json.dumps({"VisibilityTimeout": "30"}),
    "OFFER_PATIENCE_SECONDS": "30",
    "HTTP_OFFER_PATIENCE_SECONDS": "0.3",
    "MATCH_PATIENCE_SECONDS": "5",
    "PROXY_RECENCY_SECONDS": "60",
    "POLLS_PER_MINUTE": "600",
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
        """Record a recent poll of each of these NAT types, by default of an unrestricted one, which serves all."""
        for nat in nats or (Nat.UNRESTRICTED,):
            wiring.paces().add(proxy_group(nat), {}, networks={}, now=datetime.now(UTC))

    def end_lease(self, client_id: str) -> None:
        """Let a client's offer be so old that the lease of its queue ends now."""
        sent = datetime.now(UTC) - wiring.policy().kept_for - timedelta(seconds=1)
        for item in self.forget_offer(client_id):
            wiring.table().write(Put(item | {"sk": f"{milliseconds(sent):013}#{client_id}"}))

    def forget_offer(self, client_id: str) -> list[Item]:
        """Delete the records of a client's offers, and return them."""
        table = wiring.table()
        stored = [item for pool in OfferPool for item in table.query(attr("pk").eq(pool))]
        found = [item for item in stored if item["sk"].endswith(f"#{client_id}")]
        for item in found:
            table.write(Delete({"pk": item["pk"], "sk": item["sk"]}))
        return found

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
        """Return the kinds and outcomes of the recorded events, in order of time."""
        wiring.flush()
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
    with new_instances(monkeypatch, SETTINGS | queues, wiring, clients, offer, page, proxies, sweep):
        yield Stage(sqs, create_history_stream(), *urls)
