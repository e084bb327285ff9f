"""The demo of the exchange: weather files are published and routed by pattern to two queues."""

import json
import secrets
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.aws.exchange.users import ExchangeUsers
from signalbox.aws.history.athena import Athena, quoted
from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.errors import UnavailableError
from signalbox.exchange.model.records import User
from signalbox.local.demo.consumer import wait_until
from signalbox.local.demo.weather import announcement, weather_files
from signalbox.local.progress import step
from signalbox.sarracenia.rights.names import ExchangeName, UserName, parse_user_name, source_exchange
from signalbox.sarracenia.rights.permissions import Ownership, Role

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment
    from signalbox.clients.exchange.consumer import Consumer, ReceivedMessage
    from signalbox.messages import MessageId

Row = tuple[str, str]
Files = Mapping[str, bytes]  # by path
USER = parse_user_name("demo-pump")
EXCHANGE_PREFIX, QUEUE_PREFIX = f"xs_{USER}_", f"q_{USER}_"  # of the names of the demo's own
BULLETINS, ALERTS = f"{QUEUE_PREFIX}bulletins", f"{QUEUE_PREFIX}alerts"
# A warning matches both queues, and a note matches none.
PATTERNS = {BULLETINS: ("v03.bulletins.#",), ALERTS: ("v03.bulletins.WW.*", "v03.radar.#")}
# The numbers of files of `weather.py` that match the first queue, the second and no queue.
IN_BULLETINS, IN_ALERTS, UNROUTED = 8, 3, 1
WORKERS = ("worker 1", "worker 2")
TIMEOUT_SECONDS = 60


def exchange_rows(deployment: "Deployment") -> Iterator[Row]:
    """Publish files, receive them with the workers of two queues, and yield the results.

    Raises `UnavailableError` if a worker receives other files than those that its queue's patterns match.
    """
    with ExitStack() as stack:
        files = weather_files(datetime.now(UTC))
        with step("exchange: a user, an exchange and two queues"):
            client = stack.enter_context(exchange_user(deployment, USER, Role.SOURCE))
            exchange = stack.enter_context(_declared(client))
        yield (
            "made",
            f"user {USER}, exchange {exchange}; "
            + "; ".join(f"queue {queue} bound by {' and '.join(patterns)}" for queue, patterns in PATTERNS.items()),
        )
        with step(f"exchange: {len(files)} files"):
            posted, got, acknowledged = _published_and_received(client, exchange, files)
            status = wait_until(lambda: _settled(client, exchange), "all messages are counted and acknowledged")
        yield (
            "posted",
            f"{len(posted)} real files, {sum(map(len, files.values()))} bytes, with their directories as routing keys",
        )
        yield "deliveries", ", ".join(f"{name}: {count}" for name, count in got.items()) + "; all as published"
        yield "unrouted", f"{status['dropped']}: dropped and counted"
        yield "acknowledged", f"{acknowledged} of {acknowledged} copies; the queues are empty"
        with step("exchange: the history"):
            rows = wait_until(
                lambda: _history(deployment, posted), "the history has all events", seconds=TIMEOUT_SECONDS
            )
        yield "history", ", ".join(f"{what}: {count}" for what, count in rows.items())
        with step("exchange: all of it is deleted"):
            stack.close()
    yield "afterwards", "user, exchange and queues are deleted"


def _published_and_received(
    client: ExchangeClient, exchange: ExchangeName, files: Files
) -> tuple[list["MessageId"], dict[str, int], int]:
    """Return the messages' ids, the number of files that each worker received, and that of acknowledged copies."""
    share = IN_BULLETINS // len(WORKERS)
    with ExitStack() as stack:
        # Neither receives more before it acknowledges, so the two share the queue evenly.
        consumers = {name: stack.enter_context(client.consumer(BULLETINS, prefetch=share)) for name in WORKERS}
        counts = dict.fromkeys(WORKERS, share) | {ALERTS: IN_ALERTS}
        consumers[ALERTS] = stack.enter_context(client.consumer(ALERTS))
        posted = _publish(client, exchange, files)
        with ThreadPoolExecutor(len(consumers)) as threads:
            taken = dict(zip(counts, threads.map(_taken, consumers.values(), counts.values()), strict=True))
        for name, consumer in consumers.items():
            consumer.ack(*taken[name])
    _check({name: _files(messages) for name, messages in taken.items()}, files)
    return posted, {name: len(found) for name, found in taken.items()}, sum(map(len, taken.values()))


def _publish(client: ExchangeClient, exchange: ExchangeName, files: Files) -> list["MessageId"]:
    now = datetime.now(UTC)
    sent = list(client.publish_all(exchange, (announcement(path, files[path], now=now) for path in files)))
    ids = [one.message_id for one in sent if one.message_id is not None]
    if len(ids) != len(files):
        raise UnavailableError(f"only {len(ids)} of {len(files)} files could be published: {sent}")
    return ids


def _taken(consumer: "Consumer", count: int) -> list["ReceivedMessage"]:
    """Receive `count` messages; they stay unacknowledged."""
    found: list[ReceivedMessage] = []
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while len(found) < count:
        if time.monotonic() > deadline:
            raise UnavailableError(f"{consumer.resource} has received {len(found)} messages instead of {count}")
        found += consumer.receive(wait_seconds=1)
    return found


def _files(messages: Sequence["ReceivedMessage"]) -> Files:
    documents = [json.loads(one.delivered.body) for one in messages]
    return {one["relPath"]: b64decode(one["content"]["value"]) for one in documents}


def _check(received: Mapping[str, Files], published: Files) -> None:
    first, second = (received[name] for name in WORKERS)
    bulletins = {path: published[path] for path in published if path.startswith("bulletins/")}
    alerts = {path: published[path] for path in published if path.startswith(("bulletins/WW/", "radar/"))}
    if {**first, **second} != bulletins or not first.keys().isdisjoint(second) or received[ALERTS] != alerts:
        raise UnavailableError(
            f"workers received wrong files: { {name: [*files] for name, files in received.items()} }"
        )


def _settled(client: ExchangeClient, exchange: ExchangeName) -> Mapping[str, object]:
    """Return the status of the exchange if all queues are empty and the counters are complete, else an empty one."""
    status = client.status()
    (found,) = (one for one in status["exchanges"] if one["name"] == exchange)
    queues = [one for one in status["queues"] if one["name"] in PATTERNS]
    left = sum(one["queued"] + one["in_flight"] for one in (found, *queues))
    return found if left == 0 and found["dropped"] == UNROUTED else {}


def _history(deployment: "Deployment", posted: Sequence["MessageId"]) -> dict[str, int]:
    """Return the numbers of the messages' events in the lake by kind and outcome, or nothing until it has all."""
    found = events_in_lake(deployment, posted)
    return found if sum(found.values()) == IN_BULLETINS + IN_ALERTS + UNROUTED else {}


def events_in_lake(deployment: "Deployment", posted: Sequence["MessageId"]) -> dict[str, int]:
    """Return the numbers of messages' events in the lake by kind and outcome."""
    outputs = deployment.outputs
    results = f"s3://{outputs['HistoryBucket']}/queries/"
    athena = Athena(deployment.session().client("athena"), outputs["HistoryDatabase"], results)
    ids = ", ".join(map(quoted, posted))
    rows = athena.rows(
        f"SELECT kind, outcome, count(DISTINCT event_id) AS facts FROM {outputs['HistoryTable']} "  # noqa: S608 - quoted
        f"WHERE capability = 'exchange' AND message_id IN ({ids}) GROUP BY kind, outcome ORDER BY kind"
    )
    return {f"{row['kind']} ({row['outcome']})": int(row["facts"] or 0) for row in rows}


@contextmanager
def exchange_user(deployment: "Deployment", name: UserName, role: Role) -> Iterator[ExchangeClient]:
    """Create a user with an access key; delete the user when the block ends."""
    session, outputs = deployment.session(), deployment.outputs
    users = ExchangeUsers.of(session, outputs)
    records = DynamoUsers(session.resource("dynamodb").Table(outputs["ExchangeTable"]))
    try:
        user_id = users.make(name, role, Ownership.STRICT)
        records.put(User(name, role, Ownership.STRICT, datetime.now(UTC), user_id))
        key = users.new_key(name)
        sqs = deployment.session_of(ClientCredentials(key.access_key_id, key.secret_access_key)).client("sqs")
        url_prefix = outputs["ExchangeControlQueueUrl"].rpartition("/")[0] + "/"
        client = ExchangeClient(sqs, users.control_queues.names, url_prefix, name)
        yield client
    finally:
        users.remove(name)
        records.remove(name)


@contextmanager
def _declared(client: ExchangeClient) -> Iterator[ExchangeName]:
    """Declare and bind the exchange and its queues; delete them when the block ends.

    Deletes those of an interrupted demo first.
    """
    # With a new name each time: the counters of a deleted exchange remain for a while.
    exchange = source_exchange(USER, suffix=secrets.token_hex(3))
    try:
        _delete(client)
        client.declare_exchange(exchange)
        for queue, patterns in PATTERNS.items():
            client.declare_queue(queue)
            for pattern in patterns:
                client.bind(exchange, queue, pattern)
        yield exchange
    finally:
        _delete(client)


def _delete(client: ExchangeClient) -> None:
    for queue in (one["queue"] for one in client.queues()):
        if queue.startswith(QUEUE_PREFIX):
            client.delete_queue(queue)
    for exchange in (one["exchange"] for one in client.exchanges()):
        if exchange.startswith(EXCHANGE_PREFIX):
            client.delete_exchange(exchange, force=True)
