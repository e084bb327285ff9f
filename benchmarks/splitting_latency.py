"""How long a message takes from its sender to a consumer: through a split, and directly."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.figures import Summary, summary
from signalbox.errors import UnavailableError

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import MessageAttributeValueTypeDef

WARM_UP = 10
PATIENCE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Way:
    """Where a message is put in, and where it comes out, with the attributes by which it finds its way."""

    name: str
    source_url: str
    destination_url: str
    attributes: Mapping[str, str]


def measure(sqs: "SQSClient", ways: list[Way], *, messages: int, say: Callable[[str], None]) -> dict[str, Summary]:
    """Return the milliseconds of each way, one message after another, the ways in turn; nobody else may consume."""
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    for number in range(WARM_UP + messages):
        if number % 50 == 0:
            say(f"message {number} of {WARM_UP + messages}")
        for way in ways if number % 2 else reversed(ways):
            taken = _milliseconds(sqs, way, body=f"{way.name}-{number}-{time.time_ns()}")
            if number >= WARM_UP:
                times[way.name].append(taken)
    return {name: found for name, values in times.items() if (found := summary(values))}


def _milliseconds(sqs: "SQSClient", way: Way, *, body: str) -> float:
    attributes: dict[str, MessageAttributeValueTypeDef] = {
        name: {"DataType": "String", "StringValue": text} for name, text in way.attributes.items()
    }
    started = time.perf_counter()
    sqs.send_message(QueueUrl=way.source_url, MessageBody=body, MessageAttributes=attributes)
    while time.perf_counter() - started < PATIENCE_SECONDS:
        for found in sqs.receive_message(QueueUrl=way.destination_url, WaitTimeSeconds=1).get("Messages", []):
            sqs.delete_message(QueueUrl=way.destination_url, ReceiptHandle=found["ReceiptHandle"])
            if found["Body"] == body:
                return (time.perf_counter() - started) * 1000
    raise UnavailableError(f"a message did not come through {way.name} within {PATIENCE_SECONDS} s")
