"""The loop over a session's queues: gather a batch, invoke the handler, delete what succeeded, report."""

import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from signalbox.cli.shared.output import print_json_line
from signalbox.cli.shared.stage import say
from signalbox.clients.splitting.handler.batches import BatchQueue, Message, chosen
from signalbox.clients.splitting.handler.event import sqs_event
from signalbox.clients.splitting.handler.response import BatchOutcome, InvocationEnd, batch_outcome

POLL_SECONDS = 2  # how long one queue is polled before another, and before a look for changed code
AWAY_SECONDS = 1.0  # between looks for a handler that cannot be invoked


class Invoker(Protocol):
    """The runner of the handler: `HandlerProcess` or `RuntimeInterface`."""

    def is_ready(self) -> bool:
        """Return whether the handler can be invoked; no message is received while it cannot."""

    def invoke(self, event: Mapping[str, Any], request_id: str) -> InvocationEnd:
        """Invoke the handler with an event."""


@dataclass(frozen=True, slots=True)
class HandledQueue:
    """A queue of a session; `original_arn` is what events name."""

    queue_id: str
    original_arn: str
    batches: BatchQueue


@dataclass(frozen=True, slots=True)
class HandlerLoop:
    """Gives the messages of queues to a handler, one batch at a time."""

    queues: Sequence[HandledQueue]
    invoker: Invoker
    as_json: bool

    def follow(self, *, until: threading.Event) -> None:
        """Handle batches until the event is set."""
        while not until.is_set():
            for queue in self.queues:
                if until.is_set():
                    return
                if not self.invoker.is_ready():
                    until.wait(AWAY_SECONDS)
                    continue
                self._turn(queue, until)

    def _turn(self, queue: HandledQueue, until: threading.Event) -> None:
        """Handle one batch of a queue. Whatever is not settled when it is interrupted is visible at once."""
        unsettled: Sequence[Message] = ()
        try:
            unsettled = queue.batches.gather(poll_seconds=POLL_SECONDS)
            unsettled = self._filtered(queue, unsettled)
            if unsettled:
                self._handle(queue, unsettled, until)
        except BaseException:
            queue.batches.release(unsettled)
            raise
        if until.is_set():
            queue.batches.release()

    def _filtered(self, queue: HandledQueue, batch: Sequence[Message]) -> Sequence[Message]:
        """Return the messages that the mapping's filters accept; the others are deleted, as Lambda does."""
        records = sqs_event(batch, queue_arn=queue.original_arn)["Records"]
        accepted = [record["messageId"] for record in records if queue.batches.settings.filters.accept(record)]
        rejected = [message for message in batch if message["MessageId"] not in accepted]
        if rejected:
            say(f"{queue.queue_id}: the mapping's filters reject {len(rejected)}, which are deleted as on AWS")
            queue.batches.delete(rejected)
        return chosen(batch, accepted)

    def _handle(self, queue: HandledQueue, batch: Sequence[Message], until: threading.Event) -> None:
        event, request_id = sqs_event(batch, queue_arn=queue.original_arn), str(uuid.uuid4())
        began = time.monotonic()
        with queue.batches.held(batch):
            invocation = self.invoker.invoke(event, request_id)
        milliseconds = round((time.monotonic() - began) * 1000)
        outcome = batch_outcome(invocation, batch, reports_failures=queue.batches.settings.reports_failures)
        queue.batches.delete(chosen(batch, outcome.deleted))
        if until.is_set():  # the handler was ended with the session
            queue.batches.release(chosen(batch, outcome.failed))
        self._report(queue, outcome, request_id=request_id, milliseconds=milliseconds)

    def _report(self, queue: HandledQueue, outcome: BatchOutcome, *, request_id: str, milliseconds: int) -> None:
        count = len(outcome.deleted) + len(outcome.failed) + len(outcome.kept)
        text = f"{queue.queue_id}: {count} in {milliseconds} ms, {len(outcome.failed)} failed"
        say(text if outcome.reason is None else f"{text}: {outcome.reason}")
        if outcome.kept:
            say(
                f"{queue.queue_id}: {len(outcome.kept)} after a failed message of their group come again too; "
                "AWS would delete them, since the handler does not report them"
            )
        if self.as_json:
            document = {
                "queue_id": queue.queue_id,
                "request_id": request_id,
                "messages": count,
                "milliseconds": milliseconds,
                "deleted": outcome.deleted,
                "failed": outcome.failed,
                "kept": outcome.kept,
                "reason": outcome.reason,
            }
            print_json_line(document)
