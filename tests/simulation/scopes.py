"""The small scopes that are explored, and the steps of their protocols that this finds."""

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.session import ConnectionLost
from signalbox.exchange.model.records import OrderBy
from signalbox.rendezvous.wire.nat import Nat
from signalbox.sarracenia.rights.names import UserName
from tests.simulation import guarantees, run
from tests.simulation.accesses import QUEUE_NAMES, accesses
from tests.simulation.connections import CONNECTIONS, SimulatedSocket
from tests.simulation.explore import (
    CRASH,
    CUT,
    DUPLICATE,
    EVERY,
    MANY,
    ExploredCalls,
    ExploringKernel,
    Search,
    Step,
    explore,
)
from tests.simulation.kernel import START
from tests.simulation.live import INBOX, OUTBOX, TOPICS, USER, LiveWorld
from tests.simulation.rendezvous import BROKER, PREFIX, RendezvousWorld
from tests.simulation.splitting import DEVELOPERS, FOREIGN, OTHERS, PARAMETERS, SplittingWorld
from tests.simulation.splitting import PREFIX as SPLIT_PREFIX
from tests.simulation.splitting import REPLIES as SPLIT_REPLIES
from tests.simulation.sqs import URL
from tests.simulation.world import FaultPlan, World

CALM = FaultPlan(faults_for=30, calm_for=600, factor=0, outages=0, longest_outage=0)
CLIENT_IDS = ("client1", "client2")
REPLIES = ("no reply", "one reply", "two replies", "three replies")
# The times at which each proxy polls.
PUBLISHED_AT, IDLE_AT = 10.0, 20.0
PARAMETER = "/demo/memes"
SHORT_WAITS = {"SPLIT_PARAMETER_SECONDS": "3", "SPLIT_EMPTY_SECONDS": "3", "SPLIT_TIMEOUT_SECONDS": "2"}
STARTED_AT, SENT_AT, RECEIVED_AFTER, SPLIT_ENDS = 5.0, 40.0, 36.0, 400.0
POLLS = {0: (0.0,), 1: (0.0, 10.0)}


class SmallWorld(World):
    """What the scopes have in common."""

    kernel: ExploringKernel
    explored_from = START
    unread: Container[str] = ()
    """Queues whose messages matter no more."""

    def __init__(self, kernel: ExploringKernel) -> None:
        super().__init__(0, kernel=kernel, fault_plan=CALM)  # type: ignore[call-arg]
        calls = ExploredCalls(kernel)
        calls.services = self.calls.services
        self.calls = calls

    def is_at_rest(self) -> bool:
        """Return whether nothing is left to do but what timers begin, which find nothing."""
        return False

    def request(self, function: Any, event: Any) -> Any:
        found = super().request(function, event)
        self.kernel.remember_answer(found)
        return found


class SmallRendezvous(SmallWorld, RendezvousWorld):
    """Two clients with an offer each, and two proxies that poll and answer what they get."""

    def _make_clients(self) -> None:
        for client_id in CLIENT_IDS:
            self.actor(client_id, partial(self._send, client_id, Nat.UNRESTRICTED, is_valid=True))
        for number, times in POLLS.items():
            for at in times:
                self.actor(f"proxy{number} {at}", partial(self._poll, number, Nat.UNRESTRICTED), after=at)

    def run(self) -> None:
        """Run until everything should have ended, and longer if queues are left, which are found as strays."""
        World.run(self)
        if any(name.startswith(PREFIX + one) for name in self.sqs.queues for one in CLIENT_IDS):
            super().run()

    def clients_state(self) -> object:
        """Return the requirements of the guarantees for clients and proxies."""
        account = self.account
        replies = [self.replies(one) for one in CLIENT_IDS]
        return (
            [(sorted({body for _, body in one}), min((at for at, _ in one), default=None)) for one in replies],
            [[(match.began, match.received) for match in one] for one in account.matches.values()],
            sorted(answer for _, answer in account.accepted),
        )

    def protocol(self) -> dict[str, str]:
        """Return the state of each offer: its message, its record, and the replies to it."""
        records = {
            sort.partition("#")[2]: str(item["state"])
            for known in self.dynamodb.tables["Rendezvous"].items.values()
            for sort, item in known.items()
            if "state" in item
        }
        return {
            one: f"message {self._message(one)}, {records.get(one, 'no')} record, {REPLIES[len(self.replies(one))]}"
            for one in CLIENT_IDS
        }

    def _message(self, client_id: str) -> str:
        queue = self.sqs.queues[BROKER]
        if all(_client_of(one) != client_id for one in queue.log):
            return "not sent"
        found = next((one for one in queue.messages.values() if _client_of(one) == client_id), None)
        if found is None:
            return "deleted"
        return "in flight" if found.visible_at > self.kernel.now else "visible"


def _client_of(message: Any) -> str:
    return str(message.attributes["ClientID"]["StringValue"])


class SmallLive(SmallWorld, LiveWorld):
    """Two publishers with an event each of one topic, and a subscriber whose connection is cut once."""

    explored_from = START + PUBLISHED_AT

    def __init__(self, kernel: ExploringKernel) -> None:
        super().__init__(kernel)
        self.calls.services[CONNECTIONS] = self._post

    def _make_tables(self) -> None:
        self.order_by = OrderBy.PUBLISHER
        super()._make_tables()

    def _make_clients(self) -> None:
        self.actor("subscriber0", partial(self._subscriber, 0))
        for number in range(2):
            work = partial(self._publish, TOPICS[0], f"sqs {number}", f"publisher{number}")
            self.actor(f"publisher{number}", work, after=PUBLISHED_AT)
        self.actor("network", self._cut_at_once, after=IDLE_AT)

    def _client(self, user: UserName = USER) -> LiveClient:
        client = super()._client(user)
        client.clock = replace(client.clock, chance=lambda: 0.0)  # it connects again at once
        return client

    def _connect(self) -> SimulatedSocket:
        socket = super()._connect()
        socket.receive = partial(self._remembered, socket.receive)  # type: ignore[method-assign]
        socket.send = partial(self._sent, socket, socket.send)  # type: ignore[method-assign]
        return socket

    def _sent(self, socket: SimulatedSocket, send: Callable[[str], Any], text: str) -> Any:
        """Send a frame: a step that reads whether the connection is open, and sends to the inbox."""
        request = {"QueueUrl": URL + INBOX, "MessageGroupId": socket.connection}
        found = accesses(self, "sqs", "SendMessage", request) | {((CONNECTIONS, socket.connection), False)}
        with self.kernel.step(found):
            return self._remembered(send, text)

    def _remembered(self, method: Callable[[Any], Any], value: Any) -> Any:
        try:
            found = method(value)
        except ConnectionLost:
            self.kernel.remember_answer("lost")
            raise
        self.kernel.remember_answer(found)
        return found

    def _post(self, operation: str, request: Any) -> Any:
        """Post to the connection, which is cut before or after it or not."""
        self._cut()
        try:
            return self.gateway(operation, request)
        finally:
            self._cut()

    def _cut_at_once(self) -> None:
        self.kernel.begin_step((CONNECTIONS,), is_written=True)
        self._cut()

    def _cut(self) -> None:
        for socket in list(self.gateway.open.values()):
            if self.kernel.is_faulty(CUT, 1):
                self.gateway.lose(socket)

    def clients_state(self) -> object:
        sockets = [(name, list(map(str, one.arrived)), bool(one.waiting)) for name, one in self.gateway.open.items()]
        events = [event for one in self.account.followers.values() for _, event in one.events]
        return [(one.topic, one.sequence, one.publication, one.skipped) for one in events], sockets

    def protocol(self) -> dict[str, str]:
        """Return the state of the subscription: its connection, the log, the outboxes, and what the client has."""
        items = self.dynamodb.tables["Live"].items
        is_subscribed = any(str(key).startswith("bucket#") and len(found) > 1 for key, found in items.items())
        logged = sum(len(found) for key, found in items.items() if str(key).startswith("log#"))
        got = sum(len(one.events) for one in self.account.followers.values())
        sent = sum(one.sender.endswith(":route") for one in self.sqs.queues[OUTBOX].messages.values())
        connected = "subscribed" if is_subscribed else "connected"
        connection = connected if self.gateway.open else "not connected"
        return {"": f"{connection}, {logged} logged, {sent} in the outbox, {got} received"}


class SmallSplitting(SmallWorld, SplittingWorld):
    """Two sessions that start at once and stop at once, and a message for each and for the deployed consumer."""

    explored_from = START + STARTED_AT
    unread = (SPLIT_REPLIES,)

    def __init__(self, kernel: ExploringKernel) -> None:
        super().__init__(kernel)
        for function in self.functions.values():
            function.environment |= SHORT_WAITS

    @property
    def end(self) -> float:
        return START + SPLIT_ENDS

    def _make_clients(self) -> None:
        self.actor("administrator", self._apply)
        for developer in DEVELOPERS:
            self.actor(developer, partial(self._use_session, developer), after=STARTED_AT)
        for author in (*DEVELOPERS, OTHERS):
            self.actor(f"producer for {author}", partial(self._produce, author), after=SENT_AT)
        self.actor("consumer", self._consume)

    def _ask(self, command: str, developer: str, **fields: object) -> None:
        self._control().send(command, {"target": f"ssm/{PARAMETER}", "session": developer, **fields})

    def _use_session(self, developer: str) -> None:
        entry = {"queue_type": "SQS", "message_filter": {"author": f"^{developer}$"}}
        self._ask("start", developer, owner=developer, config={"feature": {"split_queues": {"*": entry}}})
        for wait in (RECEIVED_AFTER, 1.0):
            self.kernel.sleep(wait)
            self.kernel.begin_step(QUEUE_NAMES)
            names = [name for name in self.sqs.queues if name.startswith(SPLIT_PREFIX) and developer in name]
            self.kernel.remember_answer(names)
            for name in names:
                self._handle(developer, URL + name)
        self._ask("stop", developer)

    def _produce(self, author: str) -> None:
        queue = PARAMETERS[PARAMETER]
        body = json.dumps({"queue": queue, "number": 1, "author": author, "group": author})
        self.account.sent[body] = (queue, author)
        attributes = {"author": {"DataType": "String", "StringValue": author}}
        self._send(queue, MessageBody=body, MessageAttributes=attributes)

    def _consume(self) -> None:
        while self.kernel.now < self.end:
            self.kernel.sleep(10)
            self._handle("consumer", self._read(PARAMETER, ""))
            self.kernel.forget("")

    def is_at_rest(self) -> bool:
        queues = [queue for name, queue in self.sqs.queues.items() if name not in (SPLIT_REPLIES, FOREIGN)]
        return (
            self.kernel.now > START + STARTED_AT + RECEIVED_AFTER + 1
            and not any(queue.messages or queue.name.startswith(SPLIT_PREFIX) for queue in queues)
            and "split" not in self.dynamodb.tables["Splits"].items.get(f"split#ssm/{PARAMETER}", {})
            and not any(function.running for function in self.functions.values())
            and not self.calls.services["lambda"].sources
        )

    def _finish(self, who: str, url: str, message: Any) -> bool:
        found = super()._finish(who, url, message)
        self.kernel.remember_answer(found)
        return found

    def clients_state(self) -> object:
        sources = [(key, one.document) for key, one in self.calls.services["lambda"].sources.items()]
        versions = self.parameters.versions[PARAMETER]
        values = [one["Value"] for one in versions], versions[-1]["LastModifiedDate"]
        return sorted({one.body for one in self.account.handled}), values, sources

    def protocol(self) -> dict[str, str]:
        """Return the state of the split, with its queues and what the consumer reads, and the phase of each session."""
        items = self.dynamodb.tables["Splits"].items.get(f"split#ssm/{PARAMETER}", {})
        record = json.loads(items["split"]["record"]) if "split" in items else {"stage": "no split", "sessions": ()}
        phases = {one["session_id"]: one["phase"] for one in record["sessions"]}
        queues = "with" if any(name.startswith(SPLIT_PREFIX) for name in self.sqs.queues) else "without"
        is_switched = self.parameters.value(PARAMETER) != URL + PARAMETERS[PARAMETER]
        reads = "its temporary queue" if is_switched else "the original"
        sessions = {one: f"session: {phases.get(one, 'none')}" for one in DEVELOPERS}
        return {"": f"{record['stage']}, {queues} queues, the consumer reads {reads}", **sessions}


SCOPES: Mapping[str, tuple[Callable[[ExploringKernel], World], Any]] = {
    "rendezvous": (SmallRendezvous, guarantees.RENDEZVOUS),
    "splitting": (SmallSplitting, guarantees.SPLITTING),
    "live": (SmallLive, guarantees.LIVE),
}


# The faults of each scope that are explored, the largest number of states, and the changes of order. With `MANY` of
# them, orders may be left.
STATED: tuple[tuple[str, tuple[str, ...], int, float], ...] = (
    ("rendezvous", (), 1000, EVERY),
    ("rendezvous", (CRASH,), 10_000, EVERY),
    ("rendezvous", (DUPLICATE,), 12_000, EVERY),
    ("rendezvous", (CRASH, DUPLICATE), 2000, MANY),
    ("live", (), 2000, EVERY),
    ("live", (CUT,), 1000, 0),
    ("live", (CRASH,), 1000, 0),
    ("live", (DUPLICATE,), 1000, 0),
    ("live", (CRASH, DUPLICATE, CUT), 2000, MANY),
    ("splitting", (), 6000, EVERY),
    ("splitting", (DUPLICATE,), 4000, 0),
    ("splitting", (CRASH, DUPLICATE), 2000, MANY),
)
COMPARED, MOST_COMPARED = ("rendezvous", "live"), 20_000


def explored(
    scope: str, most_states: int, faults: Sequence[str], *, is_reduced: bool = True, most_changes: float = EVERY
) -> Search:
    """Explore a scope within a number of states, with one fault of each kind anywhere."""
    made, checks = SCOPES[scope]
    checks = (*checks, run.unexpected_errors)
    return explore(made, checks, most_states, faults, is_reduced=is_reduced, most_changes=most_changes)


def are_all_explored(scopes: Sequence[str], table_of_page: Callable[[str], str]) -> bool:
    """Explore scopes with the faults and within the numbers of states that are stated, and compare ends and pages."""
    found = []
    for scope, faults, most_states, most_changes in STATED:
        if scope in scopes:
            search = explored(scope, most_states, faults, most_changes=most_changes)
            found.append(is_kept(scope, search, is_whole=most_changes != MANY))
            if not faults and table(search.steps) != table_of_page(scope):
                found.append(False)
                print(f"the page of {scope} has another table: run python -m tests.simulation --tables")
    return all([*found, *(are_ends_kept(scope) for scope in COMPARED if scope in scopes)])


def is_kept(scope: str, found: Search, *, is_whole: bool, has_table: bool = False) -> bool:
    """Print the size of an exploration; return if no guarantee is broken and, if it `is_whole`, no order is left.

    The orders that are left have as many changes of the first order as the next one.
    """
    if has_table:
        print(table(found.steps))
    end = "no other state is left"
    if found.waiting:
        end = f"{len(found.waiting)} orders are left, from {found.waiting[0][0]} changes of the first one on"
    elif found.most_changes < MANY:
        end += f" with at most {found.most_changes} changes of the first order"
    sizes = f"{len(found.states)} states, {found.runs} runs, {found.repetitions} repetitions, {found.seconds:.0f} s"
    print(f"{scope} with {' and '.join(found.faults) or 'no fault'}: {sizes}; {end}", flush=True)
    for name, problem in found.broken.items():
        print(f"BROKEN {name}: {problem}")
    return not found.broken and (found.is_complete or not is_whole)


def are_ends_kept(scope: str) -> bool:
    """Explore a scope without faults in all orders, also of steps that commute, and compare the states at the ends."""
    one, every = (explored(scope, MOST_COMPARED, (), is_reduced=is_reduced) for is_reduced in (True, False))
    is_kept = one.is_complete and every.is_complete and one.ends == every.ends
    sizes = f"{len(one.states)} of {len(every.states)} states, {len(one.ends)} of {len(every.ends)} ends"
    print(f"{scope} with no fault: {sizes}; {'no end is lost' if is_kept else 'ENDS DIFFER'}", flush=True)
    return is_kept


def table(steps: Iterable[Step]) -> str:
    """Return steps of a protocol as a table of a page."""
    lines = ["| State | Step | State after it |", "|---|---|---|"]
    return "\n".join(lines + [f"| {before} | {step} | {after} |" for before, step, after in steps])
