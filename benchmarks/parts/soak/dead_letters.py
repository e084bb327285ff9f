"""The dead letters of a stage, by queue and reason."""

from collections import Counter
from contextlib import suppress
from typing import Any

from benchmarks.parts.soak.loads import PASSING
from signalbox.cli.shared.deployment import Deployment

REASONS = ("Reason", "reason")
LONGEST = 80
EMPTY_RECEIVES = 2  # a single one may miss messages


def dead_letters(deployment: Deployment) -> Counter[str]:
    """Receive and delete the messages of all dead-letter queues; return their number by queue and reason."""
    sqs = deployment.session().client("sqs")
    pages = sqs.get_paginator("list_queues").paginate(PaginationConfig={"PageSize": 1000})
    urls = [url for page in pages for url in page.get("QueueUrls", [])]
    found: Counter[str] = Counter()
    for url in (url for url in urls if _is_for_dead_letters(url.rpartition("/")[2])):
        _drain(sqs, url, found)
    return found


def _is_for_dead_letters(name: str) -> bool:
    return "-dlq" in name or "DeadLetters" in name or "DeadOffers" in name


def _drain(sqs: Any, url: str, found: Counter[str]) -> None:  # noqa: ANN401 - a boto3 client
    empty = 0
    while empty < EMPTY_RECEIVES:
        with suppress(*PASSING):
            messages = sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], WaitTimeSeconds=0
            ).get("Messages", [])
            empty = 0 if messages else empty + 1
            for message in messages:
                found[f"{url.rpartition('/')[2]}: {_reason(message)}"] += 1
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def _reason(message: dict[str, Any]) -> str:
    attributes = message.get("MessageAttributes", {})
    texts = (attributes[name]["StringValue"] for name in REASONS if name in attributes)
    return next(texts, "without a reason: received too often")[:LONGEST]
