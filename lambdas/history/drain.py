"""Lambda function `drain`: sends history events from the overflow queue to Firehose."""

from typing import Any

from lambdas.shared import instance
from lambdas.shared.records import in_flight
from signalbox.errors import UnavailableError


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Send the lines of all messages, and return the messages of which Firehose refused a line as batch failures.

    SQS redelivers such a message with all of its lines; the jobs remove the duplicates of accepted lines. Raises
    `UnavailableError` when Firehose accepted no message, which raises the alarm on errors.
    """
    lines = {record["messageId"]: _lines(record["body"]) for record in event["Records"]}
    refused = set(instance.stream().put([line for of_message in lines.values() for line in of_message]))
    left = [message_id for message_id, of_message in lines.items() if not refused.isdisjoint(of_message)]
    if len(left) == len(lines):
        raise UnavailableError(f"Firehose accepted none of {len(left)} messages")
    return in_flight(left)


def _lines(body: str) -> list[str]:
    return [f"{line}\n" for line in body.split("\n") if line]
