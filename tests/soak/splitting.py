"""The load of splitting: developers whose sessions come and go at the queues of a deployed consumer."""

import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from signalbox.clients.deployment import Deployment
from signalbox.clients.splitting.sessions import SessionClient
from signalbox.flows.consumer import DeployedConsumer, LocalConsumer, Receipt
from signalbox.flows.splitting import author_attributes, control_of, session_of, splits
from signalbox.queues import QueueName, is_fifo
from tests.soak.accounts import Account, Arrival, DeadLetter, Outage, Stamp, account
from tests.soak.loads import PASSING, Sent, insistently

AUTHORS = ("alice", "bob", "others")
GROUPS, BATCH = 240, 10
BACKLOG = 300
READS_SECONDS = 30.0
BEAT_SECONDS = 5.0
START_TIMEOUT = timedelta(minutes=4)


@dataclass(slots=True)
class SplittingLoad:
    """A deployed consumer of a standard and a FIFO queue, two developers, and a sender for each queue."""

    deployment: Deployment
    reads_seconds: float = READS_SECONDS
    name: str = "splitting"
    mark: str = field(default_factory=lambda: secrets.token_hex(4))
    sessions: int = 0
    sent: dict[QueueName, Sent] = field(default_factory=dict)
    received: dict[str, list[Receipt]] = field(default_factory=dict)
    consumer: DeployedConsumer = field(init=False)

    def __post_init__(self) -> None:
        """Deploy the consumer and apply its registry."""
        queues = [QueueName(f"demo-soak-{self.mark}-{kind}") for kind in ("standard", "in-order.fifo")]
        prefix = self.deployment.outputs["TemporaryQueuePrefix"]
        self.consumer = insistently(
            lambda: DeployedConsumer.deploy(
                self.deployment.session(), f"demo-soak-{self.mark}", queues, temporary_prefix=prefix
            )
        )
        self.sent = {queue: Sent() for queue in queues}
        insistently(self._apply)

    def run(self, until: Callable[[], bool], is_ahead: Callable[[], bool]) -> None:
        """Send to both queues while sessions come and go."""
        developers = AUTHORS[:-1]
        with ThreadPoolExecutor(len(self.sent) + len(developers)) as threads:
            running = [threads.submit(self._send, queue, until, is_ahead) for queue in self.sent]
            running += [threads.submit(self._develop, name, until) for name in developers]
            for one in running:
                one.result()

    def sent_count(self) -> int:
        """Return the number of messages that were sent to both queues."""
        return sum(map(len, self.sent.values()))

    def progress(self) -> tuple[int, int]:
        """Return the number of sent messages, and of those that have left the originals."""
        sent = self.sent_count()
        return sent, sent - self._waiting()

    def is_complete(self) -> bool:
        """Return whether every message has arrived and the split has ended."""
        sent = {(queue, stamp.number) for queue, found in self.sent.items() for stamp in found.times}
        return sent <= {_identity(one) for one in self._receipts()[0]} and not insistently(self._splits)

    def close(self) -> None:
        """Do nothing: the deployed consumer stays."""

    def counts(self) -> Mapping[str, int]:
        """Return the number of sessions."""
        return {"splitting: sessions": self.sessions}

    def accounts(self, letters: Sequence[DeadLetter], outages: Sequence[Outage]) -> Sequence[Account]:
        """Return an account for each queue."""
        receipts, receivers = self._receipts()
        ordered = sorted(zip(receipts, receivers, strict=True), key=lambda pair: pair[0].moment_ns)
        return [
            account(
                f"splitting, {'FIFO' if is_fifo(queue) else 'standard'}",
                sent.times,
                [_arrival(one, receiver) for one, receiver in ordered if _identity(one)[0] == queue],
                is_ordered=is_fifo(queue),
                dead=[_stamp(message) for message in map(_read, letters) if message.get("queue") == queue],
                outages=outages,
            )
            for queue, sent in self.sent.items()
        ]

    def _apply(self) -> None:
        control_of(self.deployment).ask("apply", {"documents": [self.consumer.registry()]})

    def _splits(self) -> list[Any]:
        return splits(control_of(self.deployment), self.consumer.target)

    def _waiting(self) -> int:
        """Return the number of messages that wait in the originals."""
        return self._counted(lambda _: self.consumer.queues.values())

    def _backlog(self) -> int:
        """Return the number of messages that wait in the originals and in the temporary queues of their split."""
        prefix = self.deployment.outputs["TemporaryQueuePrefix"]
        return self._counted(
            lambda sqs: [*self.consumer.queues.values(), *sqs.list_queues(QueueNamePrefix=prefix).get("QueueUrls", ())]
        )

    def _counted(self, urls: Callable[[Any], Iterable[str]]) -> int:
        sqs = self.deployment.session().client("sqs")
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        with suppress(*PASSING):
            pages = [sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names) for url in urls(sqs)]  # type: ignore[list-item]
            return sum(int(page["Attributes"][name]) for page in pages for name in names)  # type: ignore[index]
        return BACKLOG

    def _send(self, queue: QueueName, until: Callable[[], bool], is_ahead: Callable[[], bool]) -> None:
        sqs, number = self.deployment.session().client("sqs"), 0
        while not until():
            if is_ahead() or self._backlog() > BACKLOG:
                time.sleep(0.5)
                continue
            for _ in range(BACKLOG // BATCH // len(self.sent)):
                self._send_batch(sqs, queue, [_message(queue, one) for one in range(number, number + BATCH)])
                number += BATCH

    def _send_batch(self, sqs: Any, queue: QueueName, messages: Sequence[dict[str, Any]]) -> None:
        """Send a batch, with a group at most once; send again what was not confirmed."""
        left, at = {str(number): one for number, one in enumerate(messages)}, time.time()
        while left:
            entries = [_entry(name, one, is_ordered=is_fifo(queue)) for name, one in left.items()]
            with suppress(*PASSING):
                answer = sqs.send_message_batch(QueueUrl=self.consumer.queues[queue], Entries=entries)
                done = [left.pop(one["Id"]) for one in answer.get("Successful", ())]
                self.sent[queue].add([_stamp(one) for one in done], at=at)

    def _develop(self, name: str, until: Callable[[], bool]) -> None:
        """Start sessions one after the other; each reads for some time."""
        while not until():
            with suppress(*PASSING):
                self._one_session(name, until)

    def _one_session(self, name: str, until: Callable[[], bool]) -> None:
        client = session_of(control_of(self.deployment), self.consumer.target, name)
        state = client.start(timeout=START_TIMEOUT)
        self.sessions += 1
        receipts = self.received.setdefault(name, [])
        reader = LocalConsumer(self.deployment.session(), [queue.url for queue in state.queues], receipts)
        try:
            with reader.reading():
                self._beat(client, until)
        finally:
            insistently(client.stop)

    def _beat(self, client: SessionClient, until: Callable[[], bool]) -> None:
        end = time.monotonic() + self.reads_seconds
        while time.monotonic() < end and not until():
            with suppress(*PASSING):
                client.heartbeat()
            time.sleep(min(BEAT_SECONDS, self.reads_seconds))

    def _receipts(self) -> tuple[list[Receipt], list[str]]:
        """Return all receipts, and the receiver of each."""
        found = {"deployed": insistently(self.consumer.received)} | {n: list(r) for n, r in self.received.items()}
        return [one for r in found.values() for one in r], [name for name, r in found.items() for _ in r]


def _message(queue: QueueName, number: int) -> dict[str, Any]:
    # A group has messages of one author, since order is promised within a group at each receiver.
    group = number % GROUPS
    return {"queue": queue, "number": number, "group": f"g{group}", "author": AUTHORS[group % len(AUTHORS)]}


def _entry(name: str, message: dict[str, Any], *, is_ordered: bool) -> dict[str, Any]:
    attributes = author_attributes(message["author"])
    entry: dict[str, Any] = {"Id": name, "MessageBody": json.dumps(message), "MessageAttributes": attributes}
    if not is_ordered:
        return entry
    return entry | {"MessageGroupId": message["group"], "MessageDeduplicationId": str(message["number"])}


def _stamp(message: dict[str, Any]) -> Stamp:
    return Stamp(message["group"], message["number"])


def _identity(receipt: Receipt) -> tuple[QueueName, int]:
    message = json.loads(receipt.body)
    return QueueName(message["queue"]), message["number"]


def _arrival(receipt: Receipt, receiver: str) -> Arrival:
    return Arrival(_stamp(json.loads(receipt.body)), receiver, receipt.moment_ns / 1e9)


def _read(letter: DeadLetter) -> dict[str, Any]:
    """Return the message of a dead letter; a command has no `queue`, and other dead letters are no JSON objects."""
    with suppress(ValueError):
        message = json.loads(letter.body)
        return message if isinstance(message, dict) else {}
    return {}
