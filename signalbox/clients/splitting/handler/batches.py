"""Batches of a session's queue, gathered and settled as an event source mapping does."""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.clients.splitting.handler.settings import MappingSettings

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

CALL_SIZE = 10  # messages in one call of SQS
LONGEST_POLL_SECONDS = 20
LARGEST_PAYLOAD_BYTES = (
    6_000_000  # an invocation takes 6 MB: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
)

Message = Mapping[str, Any]  # in boto3's form


@dataclass(slots=True)
class BatchQueue:
    """A queue from which batches are taken; `visibility_seconds` is its visibility timeout."""

    sqs: "SQSClient"
    url: str
    settings: MappingSettings
    visibility_seconds: int
    on_problem: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    _waiting: deque[Message] = field(default_factory=deque)

    def gather(self, *, poll_seconds: int) -> list[Message]:
        """Return the next batch, or nothing if no message arrives within `poll_seconds`.

        A batch ends when it is full, when its window is over, or when it would exceed what an invocation takes.
        """
        if not self._waiting:
            self._receive(poll_seconds)
        end = self.clock() + self.settings.window.total_seconds()
        while self._waiting and not self._is_full() and (left := end - self.clock()) > 0:
            self._receive(min(LONGEST_POLL_SECONDS, max(1, int(left))))
        return self._taken()

    def delete(self, messages: Sequence[Message]) -> None:
        """Delete messages; report those that SQS does not delete, which come again."""
        for part in _parts(messages):
            entries = [_entry(number, message) for number, message in enumerate(part)]
            reply = self.sqs.delete_message_batch(QueueUrl=self.url, Entries=entries)
            for failed in reply.get("Failed", ()):
                name = part[int(failed["Id"])]["MessageId"]
                self.on_problem(f"{name} is not deleted and comes again: {failed.get('Message', failed['Code'])}")

    def release(self, messages: Sequence[Message] = ()) -> None:
        """Make messages, and those that are received for a later batch, visible at once."""
        self._hide([*messages, *self._waiting], seconds=0)
        self._waiting.clear()

    @contextmanager
    def held(self, messages: Sequence[Message]) -> Iterator[None]:
        """Keep messages invisible during the block, however long a debugger stops the handler."""
        over = threading.Event()

        def hold() -> None:
            while not over.wait(max(1, self.visibility_seconds) / 2):
                self._hide(messages, seconds=self.visibility_seconds)

        thread = threading.Thread(target=hold, name="visibility", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _hide(self, messages: Sequence[Message], *, seconds: int) -> None:
        for part in _parts(messages):
            entries = [{**_entry(number, one), "VisibilityTimeout": seconds} for number, one in enumerate(part)]
            try:
                self.sqs.change_message_visibility_batch(QueueUrl=self.url, Entries=entries)  # type: ignore[arg-type]
            except (ClientError, BotoCoreError) as error:
                # Without it they come again after their visibility timeout.
                self.on_problem(f"the visibility of {len(part)} messages is not changed: {error}")

    def _receive(self, seconds: int) -> None:
        found = self.sqs.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=max(1, min(CALL_SIZE, self.settings.batch_size - len(self._waiting))),
            WaitTimeSeconds=seconds,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        )
        self._waiting.extend(found.get("Messages", ()))

    def _is_full(self) -> bool:
        return len(self._waiting) >= self.settings.batch_size or sum(map(_size, self._waiting)) > LARGEST_PAYLOAD_BYTES

    def _taken(self) -> list[Message]:
        batch: list[Message] = []
        size = 0
        while self._waiting and len(batch) < self.settings.batch_size:
            size += _size(self._waiting[0])
            if batch and size > LARGEST_PAYLOAD_BYTES:
                break
            batch.append(self._waiting.popleft())
        return batch


def chosen(messages: Sequence[Message], ids: Collection[str]) -> list[Message]:
    """Return the messages with these ids."""
    return [message for message in messages if message["MessageId"] in ids]


def _parts(messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    for start in range(0, len(messages), CALL_SIZE):
        yield messages[start : start + CALL_SIZE]


def _entry(number: int, message: Message) -> Any:  # noqa: ANN401 - of several calls
    return {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}


def _size(message: Message) -> int:
    return len(json.dumps(message, default=lambda value: value.hex()))
