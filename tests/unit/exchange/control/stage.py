"""The exchange's control plane in memory: callers send commands, and time passes."""

from collections.abc import Callable
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

from signalbox.control.delivery import ONCE, CommandDelivery
from signalbox.control.envelope import Envelope
from signalbox.exchange.control.command_handlers import ExchangeService
from signalbox.exchange.control.command_reader import COMMANDS
from signalbox.exchange.control.scheduled_tasks import ExpiryService
from signalbox.exchange.model.control_ports import ControlPorts, ExchangeStore, StageConfig
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.records import User
from signalbox.history.event import HistoryEvent
from signalbox.live.admin.denies import StoredDenies
from signalbox.queues import QueueUrl
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from signalbox.task_time import TaskTime
from tests.fakes.clock import START, MemoryTime
from tests.fakes.exchange import (
    Countdown,
    Killed,
    Killing,
    MemoryBindings,
    MemoryCounters,
    MemoryExchangeQueues,
    MemoryExchanges,
    MemoryMappings,
    MemoryMetrics,
    MemoryQueues,
    MemorySender,
    MemoryUsers,
)
from tests.fakes.grants import MemoryGrants, MemoryGroups

ALICE, BOB, FEED = UserName("alice"), UserName("bob"), UserName("feed")
USERS = [
    User(ALICE, Role.SOURCE, Ownership.STRICT, START, "AIDAALICE"),
    User(BOB, Role.SUBSCRIBER, Ownership.STRICT, START, "AIDABOB"),
    User(FEED, Role.FEEDER, Ownership.STRICT, START, "AIDAFEED"),
]


class ExchangeStage:
    def __init__(self) -> None:
        self.time = MemoryTime()
        self.exchanges = MemoryExchanges()
        self.queues, self.left = MemoryQueues(), MemoryQueues()
        self.bindings = MemoryBindings(self.exchanges, self.queues)
        self.users = MemoryUsers({user.name: user for user in USERS})
        self.counters = MemoryCounters()
        self.sqs = MemoryExchangeQueues()
        self.mappings = MemoryMappings(self.sqs)
        self.metrics = MemoryMetrics()
        self.sender = MemorySender()
        self.events: list[HistoryEvent] = []
        self.grants, self.groups = MemoryGrants(), MemoryGroups()
        self.former_events: dict[str, int] = {}  # of realms: in how many commands they are deleted
        self.ports = ControlPorts(
            store=ExchangeStore(self.exchanges, self.queues, self.left, self.bindings, self.users),
            counters=self.counters,
            sqs=self.sqs,
            mappings=self.mappings,
            metrics=self.metrics,
            now=self.time.now,
            config=StageConfig(StageNames("box"), account="1", region="eu-central-1"),
            queue_url=lambda name: QueueUrl(f"https://sqs/1/{name}"),
            record=self.events.extend,
            end_realm=self._end_realm,
        )

    @property
    def service(self) -> ExchangeService:
        return ExchangeService(self.ports, self.sender, StoredDenies(self.users, self.grants, self.groups))

    def _end_realm(self, realm: ExchangeName) -> bool:
        assert realm not in self.exchanges.records or self.exchanges.records[realm].is_deleting
        left = self.former_events.pop(realm, 1) - 1
        if left:
            self.former_events[realm] = left
        return not left

    def ask(
        self,
        command: str,
        *,
        user: UserName | None = None,
        service: ExchangeService | None = None,
        delivery: CommandDelivery = ONCE,
        **given: Any,
    ) -> Any:
        envelope = Envelope("1", None, {"command": command, "id": "1", **given})
        return (service or self.service).answer(user, envelope.command(COMMANDS), delivery=delivery)

    def ask_until_done(self, command: str, **given: Any) -> Any:
        """Send a command to a function that is killed before its first call, then its second, until it succeeds."""
        for calls in range(100):
            try:
                return self.ask(command, service=self.killed_after(calls), **given)
            except Killed:
                continue
        raise AssertionError("it is never done")

    def killed_after(self, calls: int) -> ExchangeService:
        """Return the service of a function that is killed after this number of calls."""
        countdown = Countdown(calls)
        store = replace(self.ports.store, **_killing(self.ports.store, countdown))
        sqs, mappings = Killing(self.sqs, countdown), Killing(self.mappings, countdown)
        ports = replace(self.ports, store=store, sqs=sqs, mappings=mappings)
        return replace(self.service, ports=ports, sender=Killing(self.sender, countdown))

    def task_time(self) -> TaskTime:
        return TaskTime(self.time.now, self.time.now() + timedelta(seconds=22))

    def delete_expired(self) -> list[str]:
        return [queue.name for queue in ExpiryService(self.ports).delete_expired(self.task_time())]

    def kinds(self) -> list[tuple[str, str]]:
        """Return the kinds and outcomes of the history events, in order."""
        return [(event.kind, event.outcome) for event in self.events]

    def meanwhile(self, port: object, name: str, change: Callable[[], object]) -> None:
        """Run an action just before the next call of a port's method."""
        found = getattr(port, name)

        def call(*arguments: object, **named: object) -> object:
            setattr(port, name, found)
            change()
            return found(*arguments, **named)

        setattr(port, name, call)


def _killing(store: ExchangeStore, countdown: Countdown) -> dict[str, Any]:
    return {one.name: Killing(getattr(store, one.name), countdown) for one in fields(store)}
