"""The reconnection of the queues on record to the functions of the deployed stage.

The event source mappings of exchanges, of their retry queues and of users' control queues are created at run time, so a
deployment neither creates nor moves them. The first check after a deployment, and a daily one, find the queues without
a mapping to the function that exists now, connect them, and delete the mappings to earlier functions. A mapping to the
right function is kept as it is, also if an operator has disabled it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeVar

from signalbox.errors import RejectedError, SignalboxError, UnavailableError
from signalbox.exchange.model.connections import (
    AccountMappings,
    Connection,
    ConnectionCheck,
    ConnectionChecks,
    FunctionArn,
    QueueMissing,
    Readers,
)
from signalbox.exchange.model.control_ports import ControlPorts
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName, UserName

INTERVAL = timedelta(days=1)
# Lambda allows 15 control plane calls a second in an account (AWS Lambda quotas).
PAGE = 10

Value = TypeVar("Value")


@dataclass(slots=True)
class Reconnection:
    """The result of a check. An incomplete one has met its deadline or a failure, and is repeated in a minute."""

    connected: list[QueueName] = field(default_factory=list)
    disconnected: list[QueueName] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class _Target:
    """A queue on record: the function that reads it, and the call that connects it."""

    queue: QueueName
    function: FunctionArn
    connect: Callable[[], object]


@dataclass(frozen=True, slots=True)
class ReconnectionService:
    """Connects the queues of exchanges and users to the functions of the deployed stage."""

    ports: ControlPorts
    connections: AccountMappings
    checks: ConnectionChecks
    readers: Readers

    def check_when_due(self, *, until: datetime) -> Reconnection:
        """Reconnect after a deployment and once a day; else return an empty result at the cost of one read."""
        last, now = self.checks.last(), self.ports.now()
        if last is not None and last.readers == self.readers and now - last.at < INTERVAL:
            return Reconnection()
        done = self.reconnect(until=until)
        if done.is_complete:
            self.checks.record(ConnectionCheck(self.readers, now))
        return done

    def reconnect(self, *, until: datetime) -> Reconnection:
        """Connect every queue on record, in pages until a time; the next check continues with the others.

        Raises `UnavailableError` when the records or the mappings cannot be read.
        """
        found = self._found()
        wanted = {target.queue: target for target in self._wanted()}
        done = Reconnection()
        missing = [target for target in wanted.values() if target.function not in found[target.queue]]
        for target in self._each(missing, _connected, done, until=until):
            done.connected.append(target.queue)
        unconnected = {target.queue for target in missing} - set(done.connected)
        # A queue keeps its earlier reader until it has the right one.
        earlier = [
            connection
            for target in wanted.values()
            if target.queue not in unconnected
            for function, connection in found[target.queue].items()
            if function != target.function
        ]
        for connection in self._each(earlier, self.connections.disconnect, done, until=until):
            done.disconnected.append(connection.queue)
        return done

    def _found(self) -> Mapping[QueueName, dict[FunctionArn, Connection]]:
        found: dict[QueueName, dict[FunctionArn, Connection]] = defaultdict(dict)
        for connection in self.connections.every():
            found[connection.queue][connection.function] = connection
        return found

    def _wanted(self) -> Iterator[_Target]:
        exchanges = [one.name for one in self.ports.store.exchanges.every() if not one.is_deleting]
        yield from map(self._exchange, exchanges)
        yield from map(self._retries, sorted({self.ports.names.retry_queue(name) for name in exchanges}))
        for user in self.ports.store.users.every():
            yield self._user(user.name)

    def _exchange(self, name: ExchangeName) -> _Target:
        queue = self.ports.names.queue(name)
        return _Target(queue, self.readers.router, lambda: self._connect_exchange(name, queue))

    def _retries(self, queue: QueueName) -> _Target:
        return _Target(queue, self.readers.router, lambda: self.ports.mappings.connect(queue))

    def _user(self, name: UserName) -> _Target:
        queue = self.ports.names.control_queue(name)
        return _Target(queue, self.readers.control, lambda: self.connections.connect_user(name))

    def _connect_exchange(self, name: ExchangeName, queue: QueueName) -> None:
        if not self.ports.sqs.sizes([queue]):
            raise QueueMissing(f"queue {queue!r} does not exist: declare exchange {str(name)!r} again to create it")
        self.ports.mappings.connect(queue)
        stored = self.ports.store.exchanges.find(name)
        if stored is None or stored.is_deleting:  # deleted since the records were read
            self.ports.mappings.disconnect(queue)

    def _each(
        self, values: Sequence[Value], change: Callable[[Value], bool], done: Reconnection, *, until: datetime
    ) -> Iterator[Value]:
        """Yield the changed values, and note problems; a failure of one value does not stop the others."""

        def attempt(value: Value) -> tuple[bool, SignalboxError | None]:
            try:
                return change(value), None
            except (RejectedError, UnavailableError) as error:
                return False, error

        for page in _pages(values):
            if self.ports.now() >= until:
                done.is_complete = False
                return
            for value, (is_changed, problem) in zip(page, self.ports.parallel_map(attempt, page), strict=True):
                if problem is not None:
                    done.problems.append(str(problem))
                    # A refusal may be a new permission that does not count yet; only a missing queue lasts.
                    done.is_complete = done.is_complete and isinstance(problem, QueueMissing)
                elif is_changed:
                    yield value


def _connected(target: _Target) -> bool:
    target.connect()
    return True


def _pages(values: Sequence[Value]) -> Iterator[list[Value]]:
    rest = iter(values)
    while page := list(islice(rest, PAGE)):
        yield page
