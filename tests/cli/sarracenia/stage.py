"""What `signalbox post` and `subscribe` need of a pretended stage: a test looks into its queues, and delivers."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3

from signalbox.exchange.messages.properties import OWN_NAMES
from signalbox.sarracenia.rights.names import sqs_name
from tests.cli.exchange.stage import exchange_stage
from tests.cli.shared.stage import FakeStage, Refusal


@dataclass
class FilesStage:
    """Has exchanges and queues that commands declare, and no router: a test delivers."""

    serving: FakeStage
    sequence: int = 0

    @property
    def asked(self) -> list[dict[str, Any]]:
        return [
            {name: value for name, value in one.items() if name not in ("id", "reply_queue_url")}
            for one in self.serving.asked
        ]

    def queue_url(self, name: str) -> str:
        return boto3.client("sqs").create_queue(QueueName=sqs_name(name))["QueueUrl"]

    def published(self, exchange: str) -> list[dict[str, Any]]:
        """Return what was published, as a dry run prints it."""
        url, sqs = self.queue_url(exchange), boto3.client("sqs")
        found: list[dict[str, Any]] = []
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]).get(
            "Messages"
        ):
            found += [_document(exchange, message) for message in messages]
        return found

    def deliver(self, queue: str, *documents: Mapping[str, Any]) -> None:
        """Deliver to a queue what a dry run printed."""
        for document in documents:
            self.sequence += 1
            own = {
                "topic": _text(document["routing_key"]),
                "exchange": _text(document["exchange"]),
                "message_id": _text(f"message-{self.sequence}"),
                "publisher": _text("alice"),
                "published_at": {"DataType": "Number", "StringValue": "1700000000000"},
            }
            headers = {"headers": _text(json.dumps(document["headers"]))} if document["headers"] else {}
            boto3.client("sqs").send_message(
                QueueUrl=self.queue_url(queue), MessageBody=document["body"], MessageAttributes={**own, **headers}
            )

    def left(self, queue: str) -> int:
        """Return how many messages are in a queue, taken or not."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        told = boto3.client("sqs").get_queue_attributes(QueueUrl=self.queue_url(queue), AttributeNames=names)
        return sum(map(int, told["Attributes"].values()))


def _text(value: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}


def _document(exchange: str, message: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: one["StringValue"] for name, one in message["MessageAttributes"].items()}
    headers = json.loads(told.get("headers", "{}")) | {n: v for n, v in told.items() if n not in OWN_NAMES}
    return {"exchange": exchange, "routing_key": told["topic"], "headers": headers, "body": message["Body"]}


@contextmanager
def files_stage() -> Iterator[FilesStage]:
    """Give a deployed stage that has the exchange xs_alice; the caller pretends AWS."""
    with exchange_stage() as serving:
        serving.replies["bind"] = _bound
        yield FilesStage(serving)


def _bound(told: Mapping[str, Any]) -> dict[str, str]:
    if told["exchange"] != "xs_alice":
        raise Refusal(f"there is no exchange {told['exchange']!r}")
    return {}
