"""The latency of messages on several routes into queues, measured alternately, one message at a time."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.shared.figures import Summary, summary
from signalbox.errors import UnavailableError

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import MessageAttributeValueTypeDef

WARM_UP = 10
PATIENCE_SECONDS = 30
LOOK_SECONDS = 0.005  # between two receives, so that they do not slow the emulator down
BETWEEN_SECONDS = 0.2  # between two messages, so that no message waits for the function that handles another


@dataclass(frozen=True, slots=True)
class Way:
    """A route of messages: the source queue, the destination queue, and the attributes that route the message."""

    name: str
    source_url: str
    destination_url: str
    attributes: Mapping[str, str]
    group: str | None = None


def measure(sqs: "SQSClient", ways: Sequence[Way], *, messages: int, say: Callable[[str], None]) -> dict[str, Summary]:
    """Return a summary of milliseconds by route, measured alternately; the destinations must have no other consumer."""
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    for number in range(WARM_UP + messages):
        if number % 50 == 0:
            say(f"message {number} of {WARM_UP + messages}")
        for way in ways if number % 2 else reversed(ways):
            time.sleep(BETWEEN_SECONDS)
            taken = _milliseconds(sqs, way, body=f"{way.name}-{number}-{time.time_ns()}")
            if number >= WARM_UP:
                times[way.name].append(taken)
    return {name: found for name, values in times.items() if (found := summary(values))}


def _milliseconds(sqs: "SQSClient", way: Way, *, body: str) -> float:
    attributes: dict[str, MessageAttributeValueTypeDef] = {
        name: {"DataType": "String", "StringValue": text} for name, text in way.attributes.items()
    }
    started = time.perf_counter()
    sqs.send_message(QueueUrl=way.source_url, MessageBody=body, MessageAttributes=attributes, **_fifo(way, body))
    while time.perf_counter() - started < PATIENCE_SECONDS:
        # Without a long poll, in which the emulator checks its queue only ten times a second.
        for found in sqs.receive_message(QueueUrl=way.destination_url).get("Messages", []):
            taken = (time.perf_counter() - started) * 1000
            sqs.delete_message(QueueUrl=way.destination_url, ReceiptHandle=found["ReceiptHandle"])
            if found["Body"] == body:
                return taken
        time.sleep(LOOK_SECONDS)
    raise UnavailableError(f"no message arrived through {way.name} within {PATIENCE_SECONDS} s")


def _fifo(way: Way, body: str) -> Any:  # noqa: ANN401 - arguments of boto3's
    return {"MessageGroupId": way.group, "MessageDeduplicationId": body} if way.group else {}
