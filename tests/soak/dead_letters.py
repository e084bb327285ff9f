"""The dead letters of a stage, with their queues and reasons."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from signalbox.clients.deployment import Deployment
from tests.soak.accounts import DeadLetter
from tests.soak.loads import PASSING

EMPTY_RECEIVES = 2  # a single one may miss messages


def dead_letters(deployment: Deployment) -> list[DeadLetter]:
    """Receive and delete the messages of all dead-letter queues, and return them."""
    sqs = deployment.session().client("sqs")
    pages = sqs.get_paginator("list_queues").paginate(PaginationConfig={"PageSize": 1000})
    urls = [url for page in pages for url in page.get("QueueUrls", [])]
    return [one for url in urls if _is_for_dead_letters(url.rpartition("/")[2]) for one in _drained(sqs, url)]


def _is_for_dead_letters(name: str) -> bool:
    return "-dlq" in name or "DeadLetters" in name or "DeadOffers" in name


def _drained(sqs: Any, url: str) -> Iterator[DeadLetter]:
    seen: set[str] = set()
    empty = 0
    while empty < EMPTY_RECEIVES:
        with suppress(*PASSING):
            messages = sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], WaitTimeSeconds=0
            ).get("Messages", [])
            empty = 0 if messages else empty + 1
            for message in messages:
                if message["MessageId"] not in seen:
                    seen.add(message["MessageId"])
                    yield DeadLetter(url.rpartition("/")[2], message["Body"], _texts(message))
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def _texts(message: dict[str, Any]) -> dict[str, str]:
    attributes = message.get("MessageAttributes", {})
    return {name: value["StringValue"] for name, value in attributes.items() if "StringValue" in value}
