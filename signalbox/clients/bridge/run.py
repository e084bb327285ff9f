"""The loop of a bridge: connect, take the lock, resume, publish; and begin again after a failure."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from signalbox.backoff import longest_pause
from signalbox.clients.bridge.worker import Worker
from signalbox.errors import UnavailableError
from signalbox.live.bridge.ports import BridgeRealm, LogTable
from signalbox.live.bridge.service import ArvadosBridge

# A row's notification ends the wait at once; the wait without one is for rows whose notification was lost.
IDLE_SECONDS = 0.5
WAITING_SECONDS = 0.05  # while a transaction delays rows
SETTLE_AFTER_SECONDS = 1.0
REPORT_SECONDS = 10.0
LOCK_SECONDS = 1.0


class LockedTable(LogTable, Protocol):
    """A connection to the table of logs that can wait, and can be locked for one bridge."""

    unreadable: int

    def try_lock(self, name: str) -> bool:
        """Take the lock of a name, or return False if another connection holds it."""

    def wait(self, seconds: float) -> None:
        """Wait for a row, at most a number of seconds."""


@dataclass(frozen=True, slots=True)
class BridgeClock:
    """The clocks, sleep and random source of a bridge."""

    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    chance: Callable[[], float] = random.random


@dataclass(slots=True)
class BridgeRun:
    """A bridge between a database and a realm. `say` prints progress, and `report` takes the statistics.

    The first connection must succeed; later, a database or a realm that is away is tried again without limit. The end
    interrupts `waiting`.
    """

    connect: Callable[[], AbstractContextManager[LockedTable]]
    realm: BridgeRealm
    realm_name: str
    bridge: Callable[[LogTable, BridgeRealm], ArvadosBridge]
    is_ending: Callable[[], bool]
    say: Callable[[str], None]
    report: Callable[[Mapping[str, object]], None]
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    workers: Sequence[Worker] = ()
    clock: BridgeClock = field(default_factory=BridgeClock)
    _bridge: ArvadosBridge | None = None
    _unreadable: int = 0
    _failures: int = 0
    _reported_at: float = 0.0

    def run(self) -> None:
        """Publish rows until the end is due. Raises `RejectedError`; before the first success `UnavailableError`."""
        while not self.is_ending():
            try:
                with self.connect() as table:
                    self._work(table)
            except UnavailableError as error:
                if self._bridge is None:
                    raise
                self._pause(error)
        self._report()

    def _work(self, table: LockedTable) -> None:
        if not self._take_lock(table):
            return
        before = self._bridge
        bridge = self.bridge(table, self.realm)
        if before is not None:
            bridge.statistics = before.statistics
            bridge.ignores_checkpoint = False
        with self.waiting():  # for the realm, up to a minute
            bridge.resume()
        if self.is_ending():
            return
        self._bridge, self._failures = bridge, 0
        self.say(f"publishing to {self.realm_name} the rows after {bridge.position}")
        with ExitStack() as working:  # only the holder of the lock works
            for worker in self.workers:
                working.enter_context(worker.running())
            self._publish(bridge, table)
        bridge.settle()

    def _take_lock(self, table: LockedTable) -> bool:
        is_said = False
        while not self.is_ending():
            if table.try_lock(f"signalbox bridge {self.realm_name}"):
                return True
            if not is_said:
                self.say(f"another bridge publishes to {self.realm_name}: waiting until it ends")
                is_said = True
            table.wait(LOCK_SECONDS)
        return False

    def _publish(self, bridge: ArvadosBridge, table: LockedTable) -> None:
        idle_since = self.clock.monotonic()
        while not self.is_ending():
            for worker in self.workers:
                worker.check()
            changes = bridge.statistics.permission_changes
            has_published = bridge.step()
            if bridge.statistics.permission_changes > changes:
                for worker in self.workers:
                    worker.wake()
            at = self.clock.monotonic()
            if has_published:
                idle_since = at
            else:
                if at - idle_since >= SETTLE_AFTER_SECONDS:
                    bridge.settle()
                table.wait(WAITING_SECONDS if bridge.is_waiting else IDLE_SECONDS)
            if at - self._reported_at >= REPORT_SECONDS:
                self._reported_at = at
                self._unreadable = table.unreadable
                self._report()

    def _report(self) -> None:
        bridge = self._bridge
        if bridge is None:
            return
        self.report(
            {
                "at": self.clock.now().isoformat(timespec="milliseconds"),
                "position": bridge.position,
                "published": bridge.statistics.published,
                "already_published": bridge.statistics.already_published,
                "cut": bridge.statistics.cut,
                "unreadable": self._unreadable,
                "late_ids": bridge.late_ids,
                "resumed": bridge.statistics.resumed,
                **{name: number for worker in self.workers for name, number in worker.figures().items()},
            }
        )

    def _pause(self, error: UnavailableError) -> None:
        """Wait before the next connection, with exponential backoff and jitter."""
        self._failures += 1
        self.say(f"{error}; trying again")
        seconds = self.clock.chance() * longest_pause(self._failures)
        for _ in range(max(1, round(seconds / IDLE_SECONDS))):
            if self.is_ending():
                return
            self.clock.sleep(min(seconds, IDLE_SECONDS))
