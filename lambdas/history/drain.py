"""Brings history events from the overflow queue to Firehose, once it takes them again."""

import os
from functools import cache
from typing import Any

from lambdas.shared.history import stream
from lambdas.shared.records import in_flight
from signalbox.aws.history.firehose import DeliveryStream
from signalbox.aws.shared.settings import Settings


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Return the messages that stay in the queue, since Firehose did not take all of their lines.

    Of such a message all lines come again: jobs drop the copies of those that were taken.
    """
    lines = {record["messageId"]: _lines(record["body"]) for record in event["Records"]}
    refused = set(_stream().refused([line for of_message in lines.values() for line in of_message]))
    return in_flight(message_id for message_id, of_message in lines.items() if not refused.isdisjoint(of_message))


def _lines(body: str) -> list[str]:
    return [f"{line}\n" for line in body.split("\n") if line]


@cache
def _stream() -> DeliveryStream:
    return stream(Settings(os.environ))
