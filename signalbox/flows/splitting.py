"""The flow of splitting: a deployed consumer and developers share its queues, which are then restored."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Protocol

import boto3

from signalbox.clients.control import ControlClient, NoControlReply
from signalbox.clients.splitting.heartbeats import HeartbeatThread
from signalbox.clients.splitting.sessions import Control, SessionClient, SessionRequest
from signalbox.control.protocol import CommandRejected
from signalbox.errors import RejectedError
from signalbox.flows.consumer import LocalConsumer, Receipt
from signalbox.flows.trial import Trial, WrongResult, expect
from signalbox.queues import QueueName, is_fifo
from signalbox.splitting.control.protocol import SessionStatus
from signalbox.verify.patience import MAPPING_SECONDS, SPLIT_END_SECONDS

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import MessageAttributeValueTypeDef

    from signalbox.clients.deployment import Deployment

CAPABILITY = "splitting"
DEVELOPERS = ("alice", "bob")
DEPLOYED = "deployed"
MESSAGES = 30
START = timedelta(seconds=MAPPING_SECONDS)
NEEDED_SETTINGS = "a stage in AWS needs the settings splittable_queues=demo-* and splittable_targets=lambda/demo-*"
SHARED = "messages are shared by the filters"

logger = logging.getLogger(__name__)


class SplitConsumer(Protocol):
    """A deployed consumer of queues."""

    @property
    def session(self) -> boto3.Session:
        """The boto3 session with which the consumer's queues were created."""

    @property
    def queues(self) -> Mapping[QueueName, str]:
        """URLs by name."""

    @property
    def target(self) -> str:
        """Its name in the commands of splitting."""

    def registry(self) -> dict[str, object]:
        """Return the document that registers its queues."""

    def received(self) -> list[Receipt]:
        """Return all receipts, ordered by time."""


def control_of(deployment: "Deployment") -> ControlClient:
    """Return a client of a deployment's control queue."""
    outputs, sqs = deployment.outputs, deployment.session().client("sqs")
    return ControlClient(sqs, outputs["SplitControlQueueUrl"], outputs["SplitReplyQueueUrl"])


def session_of(control: Control, target: str, developer: str, *, session: str | None = None) -> SessionClient:
    """Return a client for the session of a developer, whose filter matches the attribute `author` in every queue."""
    entry = {"queue_type": "SQS", "message_filter": {"author": f"^{developer}$"}}
    config = {"feature": {"split_queues": {"*": entry}}}
    return SessionClient(control, SessionRequest(target, session or developer, f"{developer}@laptop", config))


def splits(control: Control, target: str) -> list[Any]:
    """Return the splits of a target."""
    status: Any = control.ask("status", {"target": target})
    return list(status["splits"])


@dataclass(frozen=True, slots=True)
class SharedQueues:
    """The queues of a deployed consumer, which developers share; `sessions` begins the names of their sessions."""

    trial: Trial
    consumer: SplitConsumer
    sessions: str
    restored: Callable[[], object]
    """Returns the state that must be the same before and after the sessions."""
    where: str = ""
    """The beginning of the rows."""

    def share(self) -> None:
        """Start the sessions, send messages of the developers and of others, and end the sessions."""
        journal, target = self.trial.journal, self.consumer.target
        before, seen = self.restored(), len(self.consumer.received())
        clients = self._clients()
        with journal.step(CAPABILITY, f"{self.where}two sessions start") as timing, ThreadPoolExecutor() as threads:
            ready = list(threads.map(_started, clients))
            timing.detail = ", ".join(
                f"{one.session} reads {' and '.join(queue.temporary for queue in one.queues)}" for one in ready
            )
        with journal.step(CAPABILITY, f"{self.where}{SHARED}") as timing, ExitStack() as alive:
            for client in clients:  # a mapping may take minutes, and a session without heartbeats ends after one
                alive.enter_context(HeartbeatThread(client, logger.info).running())
            got = self._received(ready, seen=seen)
            wrong = [body for name, found in got.items() for body in found if _owner(body) != name]
            expect(not wrong and sum(map(len, got.values())) == self._messages, f"wrong consumers: {wrong or got}")
            expect(all(map(_is_in_order, got.values())), f"messages of a FIFO queue are out of order: {got}")
            timing.detail = ", ".join(f"{name}: {len(bodies)}" for name, bodies in sorted(got.items()))
        self.trial.meter.note(CAPABILITY, "message", self._messages)
        with journal.step(CAPABILITY, f"{self.where}the sessions end, and the consumer is restored") as timing:
            self._end(clients)
            after = self.restored()
            expect(after == before, f"{target} is {after} instead of {before}")
            timing.detail = f"{target} is as before, {self._temporary_queues()} temporary queues remain"

    def _clients(self) -> list[SessionClient]:
        """Register the consumer, and return a client for each developer's session."""
        control_of(self.trial.deployment).ask("apply", {"documents": [self.consumer.registry()]})
        return [
            session_of(control_of(self.trial.deployment), self.consumer.target, name, session=f"{self.sessions}-{name}")
            for name in DEVELOPERS
        ]

    def _received(self, ready: Sequence[SessionStatus], *, seen: int) -> dict[str, list[str]]:
        """Send the messages and return their bodies by receiver; the deployed consumer has `seen` earlier ones."""
        session = self.consumer.session
        with ExitStack() as stack:
            readers = [
                stack.enter_context(LocalConsumer(session, [queue.url for queue in one.queues]).reading())
                for one in ready
            ]
            for queue in self.consumer.queues:
                self._send(queue)

            def bodies() -> dict[str, list[str]]:
                receipts = {DEPLOYED: self.consumer.received()[seen:]}
                receipts |= {name: reader.received for name, reader in zip(DEVELOPERS, readers, strict=True)}
                # A standard queue may deliver a message twice.
                in_order = {name: sorted(found, key=attrgetter("moment_ns")) for name, found in receipts.items()}
                return {name: list(dict.fromkeys(one.body for one in found)) for name, found in in_order.items()}

            self.trial.wait_until(
                lambda: sum(map(len, bodies().values())) >= self._messages,
                "all messages arrive",
                seconds=MAPPING_SECONDS,
            )
            return bodies()

    @property
    def _messages(self) -> int:
        return MESSAGES * len(self.consumer.queues)

    def _send(self, queue: QueueName) -> None:
        sqs, authors = self.consumer.session.client("sqs"), (*DEVELOPERS, "others")
        for number in range(MESSAGES):
            author = authors[number % len(authors)]
            body = json.dumps({"queue": queue, "number": number, "author": author})
            order: Any = {"MessageGroupId": author, "MessageDeduplicationId": body} if is_fifo(queue) else {}
            attributes = author_attributes(author)
            sqs.send_message(
                QueueUrl=self.consumer.queues[queue], MessageBody=body, MessageAttributes=attributes, **order
            )

    def _end(self, clients: Sequence[SessionClient]) -> None:
        """End the sessions and wait until their split has ended."""
        control, target = clients[0].control, self.consumer.target

        def are_over() -> bool:
            with suppress(NoControlReply):  # a repeated command is harmless
                for client in clients:
                    with suppress(CommandRejected):  # it has ended
                        client.stop()
                return not splits(control, target)
            return False

        self.trial.wait_until(are_over, "the sessions and the split have ended", seconds=SPLIT_END_SECONDS)

    def _temporary_queues(self) -> int:
        prefix = self.trial.deployment.outputs["TemporaryQueuePrefix"]
        return len(self.consumer.session.client("sqs").list_queues(QueueNamePrefix=prefix).get("QueueUrls", []))


def _started(client: SessionClient) -> SessionStatus:
    try:
        return client.start(timeout=START)
    except RejectedError as refused:
        raise WrongResult(f"{refused} ({NEEDED_SETTINGS})") from refused


def author_attributes(author: str) -> "dict[str, MessageAttributeValueTypeDef]":
    """Return the message attributes by which the filters of sessions match an author."""
    return {"author": {"DataType": "String", "StringValue": author}}


def _is_in_order(bodies: Sequence[str]) -> bool:
    """Return whether the messages of each FIFO queue are in the order of their groups."""
    messages = [json.loads(body) for body in bodies]
    groups = [(one["queue"], one["author"], one["number"]) for one in messages if is_fifo(one["queue"])]
    return sorted(groups, key=itemgetter(0, 1)) == sorted(groups)


def _owner(body: str) -> str:
    author: str = json.loads(body)["author"]
    return author if author in DEVELOPERS else DEPLOYED
