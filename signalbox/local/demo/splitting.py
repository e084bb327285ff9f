"""The demo of splitting: a deployed consumer and two developers share a queue, which is then restored."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import boto3

from signalbox.clients.control import ControlClient, NoControlReply
from signalbox.clients.splitting.sessions import SessionClient, SessionRequest
from signalbox.errors import UnavailableError
from signalbox.local.demo.consumer import VISIBILITY_SECONDS, DeployedConsumer, LocalConsumer, Receipt, wait_until
from signalbox.local.progress import step
from signalbox.queues import QueueName
from signalbox.splitting.control.protocol import GONE, SessionStatus

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment

Row = tuple[str, str]
QUEUE = QueueName("demo-memes")
CONSUMER = "demo-meme-app"
DEVELOPERS = ("alice", "bob")
DEPLOYED = "deployed"
MESSAGES = 30
DELIVERIES = "deliveries"
TIMEOUT = timedelta(minutes=2)
END_SECONDS = 120


class Consumer(Protocol):
    """A deployed consumer of queues."""

    @property
    def session(self) -> boto3.Session:
        """The session with which its queues were made."""
        ...

    @property
    def queues(self) -> Mapping[QueueName, str]:
        """URLs by name."""
        ...

    @property
    def target(self) -> str:
        """Its name in the commands of splitting."""
        ...

    def registry(self) -> dict[str, object]:
        """Return the document that registers its queues."""
        ...

    def received(self) -> list[Receipt]:
        """Return all receipts, ordered by time."""
        ...


C = TypeVar("C", bound=Consumer)


@dataclass(frozen=True, slots=True)
class SplitTrial(Generic[C]):
    """A deployed consumer and developers who share its queue; the filter of each matches the attribute `author`.

    `sessions` begins the names of their sessions.
    """

    deployment: "Deployment"
    consumer: C
    developers: Sequence[str]
    sessions: str

    @staticmethod
    def deploy(
        deployment: "Deployment",
        name: str,
        *,
        queue: QueueName,
        developers: Sequence[str],
        sessions: str,
        visibility_seconds: int = VISIBILITY_SECONDS,
    ) -> "SplitTrial[DeployedConsumer]":
        """Create the consumer with its queue, unless they exist."""
        prefix = deployment.outputs["TemporaryQueuePrefix"]
        consumer = DeployedConsumer.deploy(
            deployment.session(), name, [queue], temporary_prefix=prefix, visibility_seconds=visibility_seconds
        )
        return SplitTrial(deployment, consumer, developers, sessions)

    def clients(self) -> list[SessionClient]:
        """Register the consumer, and return a client for each developer's session."""
        clients = [self._client(name) for name in self.developers]
        clients[0].control.ask("apply", {"documents": [self.consumer.registry()]})
        return clients

    def share(self, ready: Sequence[SessionStatus], *, messages: int, seen: int = 0) -> Counter[str]:
        """Send messages of the developers and of others; return the number that each consumer received.

        Raises `UnavailableError` if a message reaches a wrong consumer. The deployed one has `seen` earlier messages.
        """
        got = self._received(ready, messages, seen=seen)
        wrong = [body for name, found in got.items() for body in found if self._owner(body) != name]
        if wrong or sum(map(len, got.values())) != messages:
            raise UnavailableError(f"messages reached wrong consumers: {wrong or got}")
        return Counter({name: len(found) for name, found in got.items()})

    def end(self, clients: Sequence[SessionClient]) -> None:
        """End the sessions and wait until their split has ended."""
        for client in clients:
            wait_until(lambda one=client: _phase(one.stop), "the session is stopped", seconds=END_SECONDS)  # type: ignore[misc]
        for client in clients:
            wait_until(
                lambda one=client: _phase(one.heartbeat) == GONE,  # type: ignore[misc]
                "the session has ended",
                seconds=END_SECONDS,
            )
        wait_until(lambda: _is_without_split(clients[0]), "the split has ended", seconds=END_SECONDS)

    def _client(self, name: str) -> SessionClient:
        (queue,) = self.consumer.queues
        filters = {queue: {"queue_type": "SQS", "message_filter": {"author": f"^{name}$"}}}
        config = {"feature": {"split_queues": filters}}
        request = SessionRequest(self.consumer.target, f"{self.sessions}-{name}", f"{name}@laptop", config)
        outputs = self.deployment.outputs
        sqs = self.deployment.session().client("sqs")
        control = ControlClient(sqs, outputs["SplitControlQueueUrl"], outputs["SplitReplyQueueUrl"])
        return SessionClient(control, request)

    def _received(self, ready: Sequence[SessionStatus], messages: int, *, seen: int) -> dict[str, list[str]]:
        session, authors = self.consumer.session, [*self.developers, "others"]
        (url,) = self.consumer.queues.values()
        with ExitStack() as stack:
            readers = [stack.enter_context(LocalConsumer(session, [one.queues[0].url]).reading()) for one in ready]
            for number in range(messages):
                author = authors[number % len(authors)]
                session.client("sqs").send_message(
                    QueueUrl=url,
                    MessageBody=json.dumps({"number": number, "author": author}),
                    MessageAttributes={"author": {"DataType": "String", "StringValue": author}},
                )

            def bodies() -> dict[str, list[str]]:
                receipts = {DEPLOYED: self.consumer.received()[seen:]}
                receipts |= {name: reader.received for name, reader in zip(self.developers, readers, strict=True)}
                # A standard queue may deliver a message twice.
                return {name: list(dict.fromkeys(one.body for one in found)) for name, found in receipts.items()}

            wait_until(lambda: sum(map(len, bodies().values())) >= messages, "all messages are received", seconds=60)
            return bodies()

    def _owner(self, body: str) -> str:
        author = json.loads(body)["author"]
        return author if author in self.developers else DEPLOYED


def _phase(command: Callable[[], SessionStatus]) -> str:
    """Return a session's phase after a command, or an empty text if the stage does not reply: it may be repeated."""
    with suppress(NoControlReply):
        return command().phase
    return ""


def _is_without_split(client: SessionClient) -> bool:
    with suppress(NoControlReply):
        return not splits(client)
    return False


def splitting_rows(deployment: "Deployment") -> Iterator[Row]:
    """Start two sessions on a deployed consumer's queue, send messages, and yield the results.

    Raises `UnavailableError` if a message reaches a wrong consumer, or the deployed one is not restored.
    """
    with step("splitting: a deployed consumer"):
        trial = SplitTrial.deploy(deployment, CONSUMER, queue=QUEUE, developers=DEVELOPERS, sessions="demo")
    consumer = trial.consumer
    before, seen = consumer.mappings(), len(consumer.received())
    clients = trial.clients()
    with step("splitting: two sessions start"), ThreadPoolExecutor() as threads:
        ready = list(threads.map(lambda client: client.start(timeout=TIMEOUT), clients))
    yield "sessions", ", ".join(f"{one.session} reads {one.queues[0].temporary}" for one in ready)
    with step(f"splitting: {MESSAGES} messages"):
        got = trial.share(ready, messages=MESSAGES, seen=seen)
    yield DELIVERIES, ", ".join(f"{name}: {count}" for name, count in sorted(got.items()))
    with step("splitting: the sessions end, and the consumer is restored"):
        trial.end(clients)
    if consumer.mappings() != before:
        raise UnavailableError(f"{CONSUMER} reads {consumer.mappings()} instead of {before}")
    prefix = deployment.outputs["TemporaryQueuePrefix"]
    left = consumer.session.client("sqs").list_queues(QueueNamePrefix=prefix).get("QueueUrls", [])
    yield "afterwards", f"{CONSUMER} reads {QUEUE} as before, {len(left)} temporary queues remain"


def splits(client: SessionClient) -> list[object]:
    """Return the splits of the session's target."""
    status = client.control.ask("status", {"target": client.request.target})
    return list(status["splits"]) if isinstance(status, dict) else []
