"""The flow of the exchange: weather files are published and routed by pattern to two queues, which workers share."""

import json
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.aws.exchange.users import ExchangeUsers
from signalbox.aws.history.athena import Athena, quoted
from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient, stage_client
from signalbox.clients.exchange.consumer import Consumer, ReceivedMessage
from signalbox.errors import SignalboxError
from signalbox.exchange.control.errors import NotFound
from signalbox.exchange.model.records import User
from signalbox.flows.trial import Trial, expect
from signalbox.flows.weather_files import announcement, weather_files
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from signalbox.verify.patience import IAM_SECONDS, MAPPING_SECONDS, QUEUE_SECONDS, RECEIVE_SECONDS

T = TypeVar("T")
CAPABILITY = "exchange"
BULLETINS, ALERTS = ("v03.bulletins.#",), ("v03.bulletins.WW.*", "v03.radar.#")
# The numbers of files of `weather_files` that match the first queue, the second (two match both) and no queue.
IN_BULLETINS, IN_ALERTS, UNROUTED = 8, 3, 1
FILES = IN_BULLETINS + IN_ALERTS - 2 + UNROUTED
COPIES = IN_BULLETINS + IN_ALERTS
WORKERS = ("worker 1", "worker 2")


@dataclass(frozen=True, slots=True)
class WeatherNames:
    """The names of an exchange and its two queues."""

    exchange: str
    bulletins: str
    alerts: str

    @property
    def patterns(self) -> Mapping[str, Sequence[str]]:
        """The binding patterns by queue."""
        return {self.bulletins: BULLETINS, self.alerts: ALERTS}


def route_weather(trial: Trial, client: ExchangeClient, names: WeatherNames) -> None:
    """Declare an exchange with two queues, publish files, and receive them with the workers of each queue."""
    journal = trial.journal
    with journal.step(CAPABILITY, "a user's new key counts") as timing:
        await_key(trial, client)
        timing.detail = f"user {client.user}"
    with journal.step(CAPABILITY, "exchange, queues and bindings are declared") as timing:
        _declare(client, names)
        bound = (f"queue {queue} bound by {' and '.join(patterns)}" for queue, patterns in names.patterns.items())
        timing.detail = "; ".join([f"exchange {names.exchange}", *bound])
    with ExitStack() as stack:
        workers = dict(_workers(client, names, stack))
        with journal.step(CAPABILITY, "messages are routed by topic") as timing, timing.measured():
            timing.detail = _published_and_received(trial, client, names, workers)
        with journal.step(CAPABILITY, "all messages are counted and acknowledged") as timing:
            status = trial.wait_until(
                lambda: _settled(client, names, workers), "the queues are empty", seconds=RECEIVE_SECONDS
            )
            timing.detail = (
                f"unrouted: {status['dropped']}, dropped and counted; {COPIES} of {COPIES} copies acknowledged"
            )
    trial.meter.note(CAPABILITY, "publication", FILES)
    trial.meter.note(CAPABILITY, "copy", COPIES)
    trial.meter.note("history", "event", COPIES + UNROUTED)
    trial.has_published.set()


def _declare(client: ExchangeClient, names: WeatherNames) -> None:
    client.declare_exchange(names.exchange)
    for queue, patterns in names.patterns.items():
        client.declare_queue(queue)
        for pattern in patterns:
            client.bind(names.exchange, queue, pattern)


def _workers(client: ExchangeClient, names: WeatherNames, stack: ExitStack) -> Iterator[tuple[str, Consumer]]:
    for name in WORKERS:
        # Neither receives more before it acknowledges, so the two share the queue evenly.
        yield name, stack.enter_context(client.consumer(names.bulletins, prefetch=IN_BULLETINS // len(WORKERS)))
    yield names.alerts, stack.enter_context(client.consumer(names.alerts))


def _published_and_received(
    trial: Trial, client: ExchangeClient, names: WeatherNames, workers: Mapping[str, Consumer]
) -> str:
    """Publish the files and receive their copies; return the detail of the step."""
    now = datetime.now(UTC)
    files = weather_files(now)
    for path, content in files.items():
        request = announcement(path, content, now=now)
        publish = partial(client.publish, names.exchange, request.routing_key, request.body)
        trial.published.append(once_usable(trial, publish))
    trial.published_at.append(time.time())
    taken: dict[str, dict[str, ReceivedMessage]] = {name: {} for name in workers}
    trial.wait_until(lambda: _receive(workers, taken), "all copies arrive", seconds=RECEIVE_SECONDS, pause=0)
    for name, worker in workers.items():
        worker.ack(*taken[name].values())
    _check({name: list(found.values()) for name, found in taken.items()}, files, client)
    counts = ", ".join(f"{name}: {len(found)}" for name, found in taken.items())
    size = sum(map(len, files.values()))
    return f"{len(files)} files, {size} bytes, with their directories as routing keys; {counts}; all as published"


def _receive(workers: Mapping[str, Consumer], taken: Mapping[str, dict[str, ReceivedMessage]]) -> bool:
    """Receive once with each worker; return whether all copies are there.

    A standard queue may repeat a message, and a call that is repeated after a fault publishes it again, with a new id.
    """
    for name, worker in workers.items():
        known = set().union(*(taken[other] for other in (WORKERS if name in WORKERS else (name,))))
        for one in received(worker):
            if one.delivered.body in known:
                worker.ack(one)
            else:
                taken[name][one.delivered.body] = one
    return sum(map(len, taken.values())) >= COPIES


def _check(taken: Mapping[str, Sequence[ReceivedMessage]], files: Mapping[str, bytes], client: ExchangeClient) -> None:
    contents = {name: dict(map(_file, messages)) for name, messages in taken.items()}
    alerts = contents.pop(next(name for name in contents if name not in WORKERS))
    wanted = {path: content for path, content in files.items() if path.startswith("bulletins/")}
    warnings = {path: content for path, content in files.items() if path.startswith(("bulletins/WW/", "radar/"))}
    shown = f"{ {name: [*found] for name, found in contents.items()} } and {[*alerts]}"
    expect(
        {path: text for found in contents.values() for path, text in found.items()} == wanted, f"wrong files: {shown}"
    )
    expect(alerts == warnings, f"wrong files: {shown}")
    senders = {one.delivered.publisher for messages in taken.values() for one in messages}
    expect(senders == {client.user}, f"the messages are of {senders}, not of {client.user}")


def _file(message: ReceivedMessage) -> tuple[str, bytes]:
    document = json.loads(message.delivered.body)
    return document["relPath"], b64decode(document["content"]["value"])


def _settled(client: ExchangeClient, names: WeatherNames, workers: Mapping[str, Consumer]) -> Mapping[str, Any]:
    """Return the status of the exchange if all queues are empty and the counters are complete, else an empty one."""
    status = client.status()
    (found,) = (one for one in status["exchanges"] if one["name"] == names.exchange)
    queues = [one for one in status["queues"] if one["name"] in names.patterns]
    if sum(one["queued"] + one["in_flight"] for one in (found, *queues)) == 0 and found["dropped"] >= UNROUTED:
        return dict(found)
    for worker in workers.values():
        worker.ack(*received(worker))  # what a standard queue delivers again
    return {}


def await_key(trial: Trial, client: ExchangeClient) -> None:
    """Wait until AWS knows a user's new key and policy."""

    def is_known() -> bool:
        try:
            return bool(client.whoami())
        except SignalboxError:
            return False
        except Exception as error:
            if "InvalidClientTokenId" not in str(error) and "AccessDenied" not in str(error):
                raise
            return False

    trial.wait_until(is_known, "AWS knows the user's key", seconds=IAM_SECONDS + MAPPING_SECONDS)


def received(consumer: Consumer) -> list[ReceivedMessage]:
    """Return messages of a queue that may not be known yet."""
    try:
        return consumer.receive(wait_seconds=1)
    except NotFound:
        return []


def once_usable(trial: Trial, publish: Callable[[], T]) -> T:
    """Publish to an exchange whose queue may not be known yet; nothing is sent to an unknown queue."""
    done: list[T] = []

    def is_published() -> bool:
        with suppress(NotFound):
            done.append(publish())
        return bool(done)

    trial.wait_until(is_published, "a new exchange takes messages", seconds=QUEUE_SECONDS)
    return done[0]


def events_in_lake(deployment: Deployment, posted: Sequence[MessageId]) -> dict[str, int]:
    """Return the numbers of messages' events in the lake by kind and outcome."""
    ids = ", ".join(map(quoted, posted))
    rows = facts_in_lake(deployment, f"capability = 'exchange' AND message_id IN ({ids})", columns="kind, outcome")
    return {f"{row['kind']} ({row['outcome']})": int(row["facts"] or 0) for row in rows}


def facts_in_lake(deployment: Deployment, condition: str, *, columns: str) -> Sequence[Mapping[str, str | None]]:
    """Return the numbers of events, as `facts`, that fulfil a condition in SQL, by columns."""
    outputs = deployment.outputs
    results = f"s3://{outputs['HistoryBucket']}/queries/"
    athena = Athena(deployment.session().client("athena"), outputs["HistoryDatabase"], results)
    return athena.rows(
        f"SELECT {columns}, count(DISTINCT event_id) AS facts FROM {outputs['HistoryTable']} "  # noqa: S608 - quoted
        f"WHERE {condition} GROUP BY {columns} ORDER BY {columns}"
    )


@contextmanager
def exchange_user(deployment: Deployment, name: UserName, role: Role) -> Iterator[ExchangeClient]:
    """Create a user with an access key; delete the user when the block ends."""
    session, outputs = deployment.session(), deployment.outputs
    users = ExchangeUsers.of(session, outputs)
    records = DynamoUsers(DynamoTable(session.client("dynamodb"), outputs["ExchangeTable"]))
    try:
        user_id = users.make(name, role, Ownership.STRICT)
        records.put(User(name, role, Ownership.STRICT, datetime.now(UTC), user_id))
        key = users.new_key(name)
        sqs = deployment.session_of(ClientCredentials(key.access_key_id, key.secret_access_key)).client("sqs")
        yield stage_client(sqs, outputs, user=name)
    finally:
        users.remove(name)
        records.remove(name)


def delete_declared(client: ExchangeClient, mark: str) -> None:
    """Delete the exchanges and queues whose names have this mark."""
    for queue in (one["queue"] for one in client.queues()):
        if mark in queue:
            client.delete_queue(queue)
    for exchange in (one["exchange"] for one in client.exchanges()):
        if mark in exchange:
            client.delete_exchange(exchange, force=True)
