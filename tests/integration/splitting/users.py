"""Users who share the queues of a deployed consumer, their messages, and the proof that no message is lost."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from signalbox.clients.control import ControlClient
from signalbox.clients.deployment import Deployment
from signalbox.clients.splitting.heartbeats import HeartbeatThread
from signalbox.flows.consumer import LocalConsumer, Receipt
from signalbox.flows.splitting import author_attributes, session_of
from signalbox.local.stage_folder import StageFolder
from signalbox.queues import FIFO_SUFFIX, QueueName
from signalbox.splitting.control.protocol import SessionStatus
from tests.integration.shared.fault_injection import STARTING_SECONDS, FaultInjector
from tests.integration.splitting.sessions import END_SECONDS, START_TIMEOUT, Users
from tests.patience import wait_for

GROUPS = 25
AUTHORS = ("alice", "bob", "carol", "others")
RECEIPTS_SECONDS = 1.0  # each look at what was received reads it all
BETWEEN_KILLS = (3.0, 6.0)
# While sessions start, and again afterwards: as many as a free machine has time for. Each of `control` in the middle of
# a reconcile is followed by the 40 s after which its command is received again, so that more kills make more time.
KILLS_EACH = 6
SLEEPS, LOSES_LAPTOP = "bob", "carol"
SLEEP_SECONDS = 10
THREADS = 16

Visits = Mapping[str, tuple[float, float]]
"""When who starts, and for how long they read: in seconds from the first message on."""


class Consumer(Protocol):
    """A deployed consumer."""

    @property
    def target(self) -> str:
        """Its name in the commands of splitting."""

    @property
    def queues(self) -> Mapping[QueueName, str]:
        """URLs by name."""

    def received(self) -> list[Receipt]:
        """Return all receipts, ordered by time."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A sent message; its body contains all fields."""

    number: int
    queue: QueueName
    author: str
    group: str

    @classmethod
    def of(cls, body: str) -> "Sent":
        return cls(**json.loads(body))

    @property
    def body(self) -> str:
        return json.dumps({"number": self.number, "queue": self.queue, "author": self.author, "group": self.group})


@dataclass(slots=True)
class Stage:
    """The stage, the deployed consumer and the users with sessions."""

    deployment: Deployment
    consumer: Consumer

    def control(self) -> AbstractContextManager[ControlClient]:
        return self._users.control()

    def splits(self) -> list[Any]:
        return self._users.splits()

    def wait_until_over(self) -> None:
        self._users.wait_until_over()

    def temporary_queues(self) -> list[str]:
        return self._users.temporary_queues()

    @property
    def _users(self) -> Users:
        return Users(self.deployment, self.consumer.target)


@dataclass(slots=True)
class Developer:
    """A user with a session and a local consumer."""

    stage: Stage
    name: str
    received: list[Receipt] = field(default_factory=list)

    @contextmanager
    def session(self, control: ControlClient) -> Iterator[SessionStatus]:
        client = session_of(control, self.stage.consumer.target, self.name)
        state = client.start(timeout=START_TIMEOUT)
        urls = [queue.url for queue in state.queues]
        reader = LocalConsumer(self.stage.deployment.session(), urls, self.received)
        with HeartbeatThread(client, print).running():
            with reader.reading():
                yield state
            if self.name == SLEEPS:
                time.sleep(SLEEP_SECONDS)
        if self.name != LOSES_LAPTOP:
            client.stop()


def send(stage: Stage, messages: Sequence[Sent]) -> dict[Sent, str]:
    """Send messages to one queue in batches of ten; return their ids."""
    sqs = stage.deployment.session().client("sqs")
    ids = {}
    for start in range(0, len(messages), 10):
        part = messages[start : start + 10]
        url = stage.consumer.queues[part[0].queue]
        entries = [_entry(message) for message in part]
        answer = sqs.send_message_batch(QueueUrl=url, Entries=entries)
        assert not answer.get("Failed")
        taken = {one["Id"]: one["MessageId"] for one in answer["Successful"]}
        ids |= {message: taken[entry["Id"]] for message, entry in zip(part, entries, strict=True)}
    return ids


def _entry(message: Sent) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "Id": str(message.number % 10),
        "MessageBody": message.body,
        "MessageAttributes": author_attributes(message.author),
    }
    if message.queue.endswith(FIFO_SUFFIX):
        entry |= {"MessageGroupId": message.group, "MessageDeduplicationId": f"{message.group}-{message.number}"}
    return entry


def made(queue: QueueName, count: int, *, first: int = 0) -> list[Sent]:
    return [
        Sent(number, queue, AUTHORS[number % len(AUTHORS)], f"g{number % GROUPS}")
        for number in range(first, first + count)
    ]


def prove_that_nothing_is_lost(
    stage: Stage,
    stage_folder: StageFolder,
    *,
    visits: Visits,
    count: int,
    meanwhile: Sequence[Callable[[], object]] = (),
) -> None:
    """Kill forwarding and control functions at random, while the deployed consumer and the users read `count` messages
    of each queue, and `meanwhile` happens; then assert who has received what.

    One user stops reading before the session ends, and one loses the laptop: their messages go to others.
    """
    seen = len(stage.consumer.received())
    outputs = stage.deployment.outputs
    names = [outputs["SplitFunctionName"], outputs["ControlFunctionName"]]
    # A kill of an instance that a busy machine still starts interrupts no work.
    injector = FaultInjector(stage_folder, names, spared_seconds=STARTING_SECONDS)
    developers = [Developer(stage, name) for name in visits]
    sent = {queue: made(queue, count) for queue in stage.consumer.queues}
    last = max(sum(visit) for visit in visits.values())

    arrived = {name: threading.Event() for name in visits}

    def is_enough(kills: Sequence[float]) -> bool:
        return len(kills) >= KILLS_EACH * (2 if all(one.is_set() for one in arrived.values()) else 1)

    killing = injector.continuous_kills(between=BETWEEN_KILLS, is_enough=is_enough)
    with killing as kills, ThreadPoolExecutor(THREADS) as threads:
        sending = [threads.submit(_send_slowly, stage, messages, arrived, last) for messages in sent.values()]
        visiting = [threads.submit(_visit, one, *visits[one.name], arrived[one.name]) for one in developers]
        others = [threads.submit(work) for work in meanwhile]
        for visit in visiting:
            visit.add_done_callback(lambda done: done.exception() and [one.set() for one in arrived.values()])
        ids = {message: message_id for done in sending for message, message_id in done.result().items()}
        for done in (*visiting, *others):
            done.result()
    everything = Counter(message for messages in sent.values() for message in messages)

    def received() -> dict[str, list[Receipt]]:
        deployed = stage.consumer.received()[seen:]
        return {"deployed": deployed} | {developer.name: developer.received for developer in developers}

    def distinct() -> int:
        return len({one.body for receipts in received().values() for one in receipts})

    wait_for(lambda: distinct() == len(everything), "all messages", seconds=END_SECONDS, every=RECEIPTS_SECONDS)
    stage.wait_until_over()
    got = received()

    assert len(kills) >= len(visits)
    found = Counter(Sent.of(one.body) for receipts in got.values() for one in receipts)
    assert set(everything) - set(found) == set()
    assert {message: n for message, n in found.items() if message.queue.endswith(FIFO_SUFFIX) and n > 1} == {}
    assert [name for name, receipts in got.items() if not receipts] == []
    for name, receipts in got.items():
        assert out_of_order(receipts) == [], name
        assert {Sent.of(one.body).author for one in receipts} <= ({name} if name != "deployed" else set(AUTHORS))
        one = _first_split(stage, name, receipts)
        assert (name, one.queue) in _routes(stage, ids[Sent.of(one.body)])


def _first_split(stage: Stage, name: str, receipts: Sequence[Receipt]) -> Receipt:
    """Return the first message that arrived through a temporary queue without having been another session's before."""
    author = name if name in AUTHORS else "others"
    originals = stage.consumer.queues
    return next(one for one in receipts if one.queue not in originals and Sent.of(one.body).author == author)


def _routes(stage: Stage, message_id: str) -> set[tuple[str, str]]:
    """Return the recipient and the queue of a message, as the control plane finds them in the history."""

    def found() -> list[Any]:
        with stage.control() as control:
            audit: Any = control.ask("audit", {"message_id": message_id, "days": 1})
        return [event for event in audit["events"] if event["kind"] == "routed"]

    events = wait_for(found, f"the history has {message_id}")
    return {(event["labels"].get("session", "deployed"), event["destination"]) for event in events}


def _send_slowly(
    stage: Stage, messages: Sequence[Sent], arrived: Mapping[str, threading.Event], last: float
) -> dict[Sent, str]:
    """Send for as long as the visits last; return the ids. The second half is sent after everyone has joined."""
    parts = [messages[start : start + 50] for start in range(0, len(messages), 50)]
    ids: dict[Sent, str] = {}
    for number, part in enumerate(parts):
        if number == len(parts) // 2:
            wait_for(lambda: all(one.is_set() for one in arrived.values()), "everybody", seconds=END_SECONDS)
        ids |= send(stage, part)
        time.sleep(last / len(parts))
    return ids


def _visit(developer: Developer, after: float, seconds: float, arrived: threading.Event) -> None:
    time.sleep(after)
    with developer.stage.control() as control, developer.session(control):
        arrived.set()
        time.sleep(seconds)
        # Kills may have held back all of the first half, and the second half waits for those who come late.
        wait_for(lambda: developer.received, f"a message for {developer.name}", seconds=END_SECONDS)


def out_of_order(receipts: Sequence[Receipt]) -> list[tuple[Sent, Sent]]:
    """Return pairs of one author's messages of a group of which the later one arrived first."""
    newest: dict[tuple[str, str], Sent] = {}
    wrong = []
    for one in sorted(receipts, key=lambda receipt: receipt.moment_ns):
        message = Sent.of(one.body)
        if not message.queue.endswith(FIFO_SUFFIX):
            continue
        before = newest.get((message.group, message.author))
        if before is not None and before.number > message.number:
            wrong.append((before, message))
        newest[message.group, message.author] = message
    return wrong
