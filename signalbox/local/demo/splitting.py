"""The demo of splitting: a deployed consumer and two developers share a queue, which is then restored."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from signalbox.clients.splitting.control import split_client
from signalbox.clients.splitting.sessions import SessionClient, SessionRequest
from signalbox.errors import UnavailableError
from signalbox.local.demo.consumer import DeployedConsumer, LocalConsumer, wait_until
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
TIMEOUT = timedelta(minutes=2)


def splitting_rows(deployment: "Deployment") -> Iterator[Row]:
    """Start two sessions on a deployed consumer's queue, send messages, and yield the results.

    Raises `UnavailableError` if a message reaches a wrong consumer, or the deployed one is not restored.
    """
    session = deployment.session()
    with step("splitting: a deployed consumer"):
        prefix = deployment.outputs["TemporaryQueuePrefix"]
        consumer = DeployedConsumer.deploy(session, CONSUMER, [QUEUE], temporary_prefix=prefix)
    before, seen = consumer.mappings(), len(consumer.received())
    with ExitStack() as stack:
        clients = [stack.enter_context(_session_client(deployment, name)) for name in DEVELOPERS]
        clients[0].control.ask("apply", {"documents": [consumer.registry()]})
        with step("splitting: two sessions start"), ThreadPoolExecutor() as threads:
            ready = list(threads.map(lambda client: client.start(timeout=TIMEOUT), clients))
        yield "sessions", ", ".join(f"{one.session} reads {one.queues[0].temporary}" for one in ready)
        with step(f"splitting: {MESSAGES} messages"):
            got = _shared(consumer, ready, seen=seen)
        yield "deliveries", ", ".join(f"{name}: {count}" for name, count in sorted(got.items()))
        with step("splitting: the sessions end, and the consumer is restored"):
            for client in clients:
                client.stop()
            for client in clients:
                wait_until(lambda one=client: one.heartbeat().phase == GONE, "the session has ended", seconds=120)  # type: ignore[misc]
            wait_until(lambda: not _splits(clients[0]), "the split has ended", seconds=120)
    if consumer.mappings() != before:
        raise UnavailableError(f"{CONSUMER} reads {consumer.mappings()} instead of {before}")
    left = session.client("sqs").list_queues(QueueNamePrefix=prefix).get("QueueUrls", [])
    yield "afterwards", f"{CONSUMER} reads {QUEUE} as before, {len(left)} temporary queues remain"


@contextmanager
def _session_client(deployment: "Deployment", name: str) -> Iterator[SessionClient]:
    queues = {QUEUE: {"queue_type": "SQS", "message_filter": {"author": f"^{name}$"}}}
    config = {"feature": {"split_queues": queues}}
    request = SessionRequest(f"lambda/{CONSUMER}", f"demo-{name}", f"{name}@laptop", config)
    outputs = deployment.outputs
    sqs = deployment.session().client("sqs")
    prefix = outputs["SplitReplyQueuePrefix"]
    with split_client(sqs, control_queue_url=outputs["SplitControlQueueUrl"], reply_queue_prefix=prefix) as control:
        yield SessionClient(control, request)


def _splits(client: SessionClient) -> list[object]:
    status = client.control.ask("status", {"target": client.request.target})
    return list(status["splits"]) if isinstance(status, dict) else []


def _shared(consumer: DeployedConsumer, ready: list[SessionStatus], *, seen: int) -> Counter[str]:
    """Send messages of the developers and of others; return the number that each consumer received."""
    authors = [*DEVELOPERS, "others"]
    sent = [authors[number % len(authors)] for number in range(MESSAGES)]
    with ExitStack() as stack:
        readers = [stack.enter_context(LocalConsumer(consumer.session, [one.queues[0].url]).reading()) for one in ready]
        for number, author in enumerate(sent):
            consumer.session.client("sqs").send_message(
                QueueUrl=consumer.queues[QUEUE],
                MessageBody=json.dumps({"number": number, "author": author}),
                MessageAttributes={"author": {"DataType": "String", "StringValue": author}},
            )

        def bodies() -> dict[str, list[str]]:
            receipts = {DEPLOYED: consumer.received()[seen:]}
            receipts |= {name: reader.received for name, reader in zip(DEVELOPERS, readers, strict=True)}
            # A standard queue may deliver a message twice.
            return {name: list(dict.fromkeys(one.body for one in found)) for name, found in receipts.items()}

        wait_until(lambda: sum(map(len, bodies().values())) >= MESSAGES, "all messages are received", seconds=60)
        got = bodies()
    wrong = [body for name, found in got.items() for body in found if _owner(body) != name]
    if wrong or sum(map(len, got.values())) != MESSAGES:
        raise UnavailableError(f"messages reached wrong consumers: {wrong or got}")
    return Counter({name: len(found) for name, found in got.items()})


def _owner(body: str) -> str:
    author = json.loads(body)["author"]
    return author if author in DEVELOPERS else DEPLOYED
