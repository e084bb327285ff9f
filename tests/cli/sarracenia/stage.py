"""A fake stage for `signalbox post` and `subscribe`, whose queues a test reads and fills."""

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
    """A stage with exchanges and queues but without a router; a test delivers messages itself."""

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
        """Return the messages published to an exchange, in the form of a dry run."""
        url, sqs = self.queue_url(exchange), boto3.client("sqs")
        found: list[dict[str, Any]] = []
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]).get(
            "Messages"
        ):
            found += [_document(exchange, message) for message in messages]
        return found

    def deliver(self, queue: str, *documents: Mapping[str, Any]) -> None:
        """Deliver messages in the form of a dry run to a queue."""
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
        """Return the number of messages in a queue, in flight or not."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        attributes = boto3.client("sqs").get_queue_attributes(QueueUrl=self.queue_url(queue), AttributeNames=names)
        return sum(map(int, attributes["Attributes"].values()))


def _text(value: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}


def _document(exchange: str, message: Mapping[str, Any]) -> dict[str, Any]:
    texts = {name: one["StringValue"] for name, one in message["MessageAttributes"].items()}
    headers = json.loads(texts.get("headers", "{}")) | {n: v for n, v in texts.items() if n not in OWN_NAMES}
    return {"exchange": exchange, "routing_key": texts["topic"], "headers": headers, "body": message["Body"]}


@contextmanager
def files_stage() -> Iterator[FilesStage]:
    """Provide a deployed stage with the exchange xs_alice; the caller fakes AWS."""
    with exchange_stage() as serving:
        serving.replies["bind"] = _bound
        yield FilesStage(serving)


def _bound(command: Mapping[str, Any]) -> dict[str, str]:
    if command["exchange"] != "xs_alice":
        raise Refusal(f"there is no exchange {command['exchange']!r}")
    return {}
