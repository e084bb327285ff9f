"""A simulated queue of SQS: visibility, receives, redrive, duplicates, disorder, groups, deduplication and counts."""

import json
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any

from tests.simulation.kernel import Kernel, Process
from tests.simulation.services import ACCOUNT, Refusal, Request, arn_of

DEDUPLICATION_SECONDS = 300
COUNTS_ARE_LATE = 5.0
ENTERED = 0.005  # the time from a message's visibility to its receive by a call that waits
# Of either kind. Of a FIFO queue, no message behind the first 120,000 is received, and a receive is never refused.
MOST_IN_FLIGHT = 120_000
DEFAULTS = {
    "VisibilityTimeout": "30",
    "MessageRetentionPeriod": "345600",
    "DelaySeconds": "0",
    "MaximumMessageSize": "1048576",
    "ReceiveMessageWaitTimeSeconds": "0",
}
IN_FLIGHT = "MessageNotInflight"


@dataclass(eq=False, slots=True)
class StoredMessage:
    """A message of a queue; `visible_at` is in the future while it is in flight or delayed.

    `chain` counts the invocations of each function that led to it, as the trace header of a message does. `began` is
    the time at which the invocation that sent it began.
    """

    id: str
    body: str
    attributes: dict[str, Any]
    sent_at: float
    visible_at: float
    number: int
    sender: str
    chain: Mapping[str, int] = field(default_factory=dict)
    began: float = 0.0
    group: str | None = None
    deduplication_id: str | None = None
    receives: int = 0
    first_received: float = 0.0
    handle: str = ""
    system: dict[str, Any] = field(default_factory=dict)

    def is_in_flight(self, now: float) -> bool:
        return self.receives > 0 and self.visible_at > now


@dataclass(frozen=True, slots=True)
class Counts:
    """The approximate numbers of messages at a time."""

    at: float
    visible: int
    in_flight: int
    delayed: int


class SimulatedQueue:
    """One queue; `watchers` are called with the time at which a message becomes visible.

    `others` are all queues by name: those to which messages are moved.
    """

    def __init__(
        self,
        kernel: Kernel,
        name: str,
        attributes: dict[str, str],
        tags: dict[str, str],
        others: "Mapping[str, SimulatedQueue]",
    ) -> None:
        self.kernel, self.name, self.others = kernel, name, others
        self.given, self.tags = dict(attributes), dict(tags)
        self.is_fifo = name.endswith(".fifo")
        self.created_at = self.modified_at = kernel.now
        self.messages: dict[str, StoredMessage] = {}
        self.watchers: list[Callable[[float], None]] = []
        self.numbers = 0
        self.log: list[StoredMessage] = []
        self.refuses_until = 0.0
        self.most_in_flight = MOST_IN_FLIGHT
        self._sent_ids: dict[tuple[str, str], tuple[float, str, int]] = {}
        self._counts: deque[Counts] = deque()

    def setting(self, name: str) -> str:
        return self.given.get(name, DEFAULTS.get(name, ""))

    @property
    def visibility(self) -> float:
        return float(self.setting("VisibilityTimeout"))

    # Sending.

    def send(self, request: Request, *, sender: Process | None) -> StoredMessage:
        """Store a message, or return the one that it repeats in a FIFO queue."""
        kernel, now = self.kernel, self.kernel.now
        group, deduplication_id = request.get("MessageGroupId"), request.get("MessageDeduplicationId")
        if self.is_fifo:
            repeated = self._repeated(request, group, deduplication_id)
            if repeated is not None:
                return repeated
        self.numbers += 1
        message = StoredMessage(
            id=kernel.message_id(self, request["MessageBody"]),
            body=request["MessageBody"],
            attributes=dict(request.get("MessageAttributes") or {}),
            sent_at=now,
            visible_at=now + self._delay(request),
            number=self.numbers,
            sender=sender.identity if sender else ACCOUNT,
            chain=sender.chain if sender else {},
            began=sender.began if sender else now,
            group=group,
            deduplication_id=deduplication_id,
        )
        self._add(message)
        if self.is_fifo:
            self._sent_ids[self._scope(group, deduplication_id)] = (now, message.id, message.number)
        return message

    def _add(self, message: StoredMessage) -> None:
        self.messages[message.id] = message
        self.log.append(message)
        self._changed(message.visible_at)

    def _delay(self, request: Request) -> float:
        if self.is_fifo:
            if "DelaySeconds" in request:
                raise Refusal("InvalidParameterValue", "FIFO queues have no delay of a message")
            return float(self.setting("DelaySeconds"))
        return float(request.get("DelaySeconds", self.setting("DelaySeconds")))

    def _repeated(self, request: Request, group: str | None, deduplication_id: str | None) -> StoredMessage | None:
        if not group:
            raise Refusal("MissingParameter", "The request must contain the parameter MessageGroupId.")
        if not deduplication_id:
            raise Refusal("InvalidParameterValue", "The queue should have ContentBasedDeduplication enabled")
        known = self._sent_ids.get(self._scope(group, deduplication_id))
        if known is None or self.kernel.now - known[0] >= DEDUPLICATION_SECONDS:
            return None
        sent_at, message_id, number = known
        return StoredMessage(message_id, request["MessageBody"], {}, sent_at, sent_at, number, ACCOUNT)

    def _scope(self, group: str | None, deduplication_id: str | None) -> tuple[str, str]:
        scoped = self.setting("DeduplicationScope") == "messageGroup"
        return (group or "" if scoped else "", deduplication_id or "")

    # Receiving.

    def receive(self, most: int, *, visibility: float | None = None) -> list[StoredMessage]:
        """Take visible messages into flight; a FIFO queue blocks the groups of those that are in flight already."""
        kernel, now = self.kernel, self.kernel.now
        hidden_for = self.visibility if visibility is None else visibility
        taken: list[StoredMessage] = []
        for message in self._candidates():
            if len(taken) == most or self.is_full:
                break
            if self._is_moved(message):
                continue
            message.receives += 1
            message.first_received = message.first_received or now
            message.handle = f"{message.id}:{message.receives}"
            message.visible_at = now + hidden_for
            if not self.is_fifo and self._is_faulty("a message is received twice", message, kernel.rates.duplicate):
                message.visible_at = now + kernel.between(0.0, 1.0)
                self._changed(message.visible_at)
            taken.append(message)
        if taken:
            self._changed(now + hidden_for)
        return taken

    def _candidates(self) -> Iterator[StoredMessage]:
        self._expire()
        if self.is_fifo:
            yield from self._in_group_order()
            return
        visible = [one for one in self.messages.values() if one.visible_at <= self.kernel.now]
        first = self.kernel.first_of([f"{self.name} {one.id}.{one.receives}" for one in visible])
        yield from visible[first:] + visible[:first]  # a standard queue has no order

    @property
    def is_full(self) -> bool:
        """Return whether no more messages can be in flight."""
        return len(self.messages) > self.most_in_flight and self.counts_now().in_flight >= self.most_in_flight

    def _is_moved(self, message: StoredMessage) -> bool:
        """Move a message that was received too often to its dead-letter queue, as the redrive policy says."""
        target, most = _redrive(self.given.get("RedrivePolicy", ""))
        if most is None or message.receives < most or target not in self.others:
            return False
        del self.messages[message.id]
        queue = self.others[target]
        queue.numbers += 1
        message.number = queue.numbers
        message.system["DeadLetterQueueSourceArn"] = arn_of("sqs", self.name)
        self.kernel.note(f"{message.body[:40]!r} is moved from {self.name} to {target}")
        queue._add(message)
        return True

    def _in_group_order(self) -> Iterator[StoredMessage]:
        now, blocked = self.kernel.now, set()
        for message in list(islice(self.messages.values(), self.most_in_flight)):
            if message.group in blocked:
                continue
            if message.visible_at > now:
                blocked.add(message.group)
                continue
            yield message

    def _is_faulty(self, kind: str, message: StoredMessage, probability: float) -> bool:
        """Return whether a fault of a message happens; its key does not depend on other messages."""
        return self.kernel.is_faulty(kind, probability, key=f"{message.id}.{message.receives}")

    def _expire(self) -> None:
        oldest = self.kernel.now - float(self.setting("MessageRetentionPeriod"))
        for message in [one for one in self.messages.values() if one.sent_at < oldest]:
            del self.messages[message.id]

    def wait(self, longest: float) -> float:
        """Let the current task wait until a message may be visible; return for how long."""
        kernel, task, began, is_over = self.kernel, self.kernel.current, self.kernel.now, False

        def end() -> None:
            nonlocal is_over
            if not is_over and task is not None:
                is_over = True
                kernel.resume(task)

        def watch(visible_at: float) -> None:
            kernel.at(visible_at + ENTERED, end)

        watch(min(self.next_visible() or math.inf, began + longest))
        self.watchers.append(watch)
        try:
            kernel.pause()
        finally:
            self.watchers.remove(watch)
        return kernel.now - began

    # Receipts.

    def delete(self, handle: str) -> None:
        """Delete a message by a receipt; an old one of a standard queue may leave it."""
        message = self._of(handle)
        if message is None:
            return
        if message.handle != handle:
            if self.is_fifo:
                raise Refusal("InvalidParameterValue", "The receipt handle has expired")
            if self.kernel.random() < 0.5:
                return
        if self.is_fifo and not message.is_in_flight(self.kernel.now):
            raise Refusal("InvalidParameterValue", "The receipt handle has expired")
        is_left = not self.is_fifo and self._is_faulty("a message comes back", message, self.kernel.rates.undelete)
        if is_left:
            message.visible_at = self.kernel.now + self.kernel.between(0, 60)
            self._changed(message.visible_at)
            return
        del self.messages[message.id]
        self._changed(self.kernel.now)

    def hide(self, handle: str, seconds: float) -> None:
        """Change the visibility of a message in flight."""
        message = self._of(handle)
        if message is None or message.handle != handle or not message.is_in_flight(self.kernel.now):
            raise Refusal("AWS.SimpleQueueService.MessageNotInflight", name=IN_FLIGHT)
        message.visible_at = self.kernel.now + seconds
        self._changed(message.visible_at)

    def _of(self, handle: str) -> StoredMessage | None:
        message_id, colon, _ = handle.partition(":")
        if not colon:
            raise Refusal("ReceiptHandleIsInvalid", f"The input receipt handle {handle[:20]!r} is invalid.")
        return self.messages.get(message_id)

    # Counts and watchers.

    def _changed(self, visible_at: float) -> None:
        now = self.kernel.now
        if not self._counts or now - self._counts[-1].at >= 1:
            self._counts.append(self.counts_now())
        while len(self._counts) > 1 and self._counts[1].at < now - COUNTS_ARE_LATE:
            self._counts.popleft()
        for watcher in self.watchers:
            watcher(visible_at)

    def counts_now(self) -> Counts:
        now = self.kernel.now
        waiting = [one for one in self.messages.values() if one.visible_at > now]
        in_flight = sum(1 for one in waiting if one.receives)
        return Counts(now, len(self.messages) - len(waiting), in_flight, len(waiting) - in_flight)

    def counts(self) -> Counts:
        """Return the numbers of messages, perhaps those of some seconds ago."""
        if self._counts and self.kernel.is_faulty("counts are late", self.kernel.rates.late_counts):
            then = self.kernel.now - self.kernel.between(0, COUNTS_ARE_LATE)
            return next((one for one in reversed(self._counts) if one.at <= then), Counts(then, 0, 0, 0))
        return self.counts_now()

    def next_visible(self) -> float | None:
        """Return when the next message that is not visible becomes so, if there is one."""
        now = self.kernel.now
        return min((one.visible_at for one in self.messages.values() if one.visible_at > now), default=None)


@cache
def _redrive(policy: str) -> tuple[str, int | None]:
    """Return the name of a dead-letter queue, and after how many receives a message is moved there."""
    found = json.loads(policy or "{}")
    most = found.get("maxReceiveCount")
    return found.get("deadLetterTargetArn", "").rpartition(":")[2], None if most is None else int(most)


def received(queue: SimulatedQueue, message: StoredMessage) -> dict[str, Any]:
    """Return a message as ReceiveMessage has it."""
    attributes = {
        "ApproximateReceiveCount": str(message.receives),
        "SentTimestamp": str(round(message.sent_at * 1000)),
        "SenderId": message.sender,
        "ApproximateFirstReceiveTimestamp": str(round(message.first_received * 1000)),
        **message.system,
    }
    if queue.is_fifo:
        attributes |= {
            "MessageGroupId": message.group,
            "MessageDeduplicationId": message.deduplication_id,
            "SequenceNumber": f"{message.number:020}",
        }
    elif message.group:
        attributes["MessageGroupId"] = message.group
    found = {"MessageId": message.id, "ReceiptHandle": message.handle, "Body": message.body, "Attributes": attributes}
    return found | ({"MessageAttributes": message.attributes} if message.attributes else {})
