"""The tail of a mirroring session: prints the copies in its queues and deletes them."""

import json
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from signalbox.cli.shared.output import print_line
from signalbox.errors import RejectedError
from signalbox.splitting.control.protocol import SessionQueue

if TYPE_CHECKING:
    import boto3


LONG_POLL_SECONDS = 2  # how long one queue is polled while others may have messages
EVERYTHING = "true"


def tail_config(queue_id: str, message_filter: Sequence[str], jq_filter: str | None) -> object:
    """Return a mirrord.json that requests copies; without a filter, of all messages."""
    entry: dict[str, object] = {"queue_type": "SQS", "queue_mode": "mirror"}
    if message_filter:
        entry["message_filter"] = dict(map(_pair, message_filter))
    if jq_filter is not None or not message_filter:
        entry["jq_filter"] = EVERYTHING if jq_filter is None else jq_filter
    return {"feature": {"split_queues": {queue_id: entry}}}


def _pair(text: str) -> tuple[str, str]:
    name, separator, pattern = text.partition("=")
    if not name or not separator:
        raise RejectedError(f"filter {text!r} is not NAME=REGEX")
    return name, pattern


@dataclass(frozen=True, slots=True)
class Tail:
    """Follows the queues of a session."""

    session: "boto3.Session"
    as_json: bool

    def follow(self, queues: Sequence[SessionQueue], *, until: threading.Event, count: int | None) -> None:
        """Print messages until the event is set or `count` messages were printed."""
        sqs = self.session.client("sqs")
        left = count
        while not until.is_set():
            for queue, message in _received(sqs, queues):
                self._print(queue, message)
                sqs.delete_message(QueueUrl=queue.url, ReceiptHandle=message["ReceiptHandle"])
                left = None if left is None else left - 1
                if left == 0:
                    return

    def _print(self, queue: SessionQueue, message: Mapping[str, Any]) -> None:
        shown = {name: value for name, value in message.items() if name != "ReceiptHandle"}
        if self.as_json:
            print_line(json.dumps({"queue_id": queue.queue_id, "message": shown}, default=_base64))
        else:
            attributes = [f"{n}={a.get('StringValue', '…')}" for n, a in message.get("MessageAttributes", {}).items()]
            print_line("  ".join([queue.queue_id, message["MessageId"], *attributes]))
            print_line(f"  {message['Body']}")
        sys.stdout.flush()


def _received(sqs: Any, queues: Sequence[SessionQueue]) -> Iterator[tuple[SessionQueue, Mapping[str, Any]]]:  # noqa: ANN401 - boto3's client
    for queue in queues:
        received = sqs.receive_message(
            QueueUrl=queue.url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=LONG_POLL_SECONDS,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        )
        for message in received.get("Messages", ()):
            yield queue, message


def _base64(value: bytes) -> str:
    import base64

    return base64.b64encode(value).decode()
