"""The relay of logs: it selects containers, polls each with one reader, and saves the positions."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import reduce
from typing import Protocol

from signalbox.clients.bridge.log_realm import LogRealm
from signalbox.clients.bridge.worker import Worker
from signalbox.live.bridge.log_positions import MAXIMUM_BYTES, LogPosition, LogPositions
from signalbox.live.bridge.log_reader import SHORTEST_SECONDS, ContainerReader, LogFiles, LogStatistics
from signalbox.live.bridge.log_selection import ContainerSelection, ListedContainer
from signalbox.live.wamp.patterns import TopicPattern

TICK_SECONDS = 0.05
WORKERS = 8


class ClusterContainers(Protocol):
    """The containers of a cluster."""

    def containers(self, known: Sequence[str]) -> Sequence[ListedContainer]:
        """Return the containers that run or have ended in the last minutes, and the `known` ones."""


class Wanted(Protocol):
    """The subscriptions of the realm."""

    def patterns(self, now: datetime) -> Iterable[TopicPattern]:
        """Return their patterns."""


@dataclass(frozen=True, slots=True)
class RelayConnections:
    """The connections of a relay until an error; `subscriptions` is None if they select no log."""

    cluster: ClusterContainers
    subscriptions: Wanted | None


@dataclass(frozen=True, slots=True)
class RelayPace:
    """The seconds between two lists of containers and between two saved positions, and how many logs are followed."""

    list_seconds: float = 2.0
    save_seconds: float = 10.0
    containers: int = 200


@dataclass(slots=True)
class LogRelay:
    """Follows the logs of containers, as the work of a `Worker`."""

    realm: LogRealm
    files: LogFiles
    selection: ContainerSelection
    connect: Callable[[], AbstractContextManager[RelayConnections]]
    pace: RelayPace = field(default_factory=RelayPace)
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    monotonic: Callable[[], float] = time.monotonic
    refused: int = 0
    _readers: dict[str, ContainerReader] = field(default_factory=dict)
    _ended: dict[str, datetime] = field(default_factory=dict)
    _past: LogStatistics = field(default_factory=LogStatistics)
    _saved: LogPositions = field(default_factory=LogPositions)

    @property
    def statistics(self) -> LogStatistics:
        """Return the sums of all readers' statistics."""
        return reduce(LogStatistics.add, (one.statistics for one in list(self._readers.values())), self._past)

    def figures(self) -> Mapping[str, int]:
        """Return the number of containers that are followed, of those above the limit, and the sums of statistics."""
        sums = {f"log_{name}": number for name, number in asdict(self.statistics).items()}
        return {"logs": len(self._readers), "logs_refused": self.refused, **sums}

    def work(self, worker: Worker) -> None:
        """Follow logs until the end, or until an error. Raises `SignalboxError`."""
        with self.connect() as connections, ThreadPoolExecutor(WORKERS) as pool:
            self._resume()
            self._follow(connections, pool, worker)

    def _resume(self) -> None:
        self._past, self._saved = self.statistics, LogPositions()
        positions = self.realm.positions()
        self._ended = dict(positions.ended)
        self._readers = {one.container: ContainerReader(one, self.files, self.realm) for one in positions.followed}

    def _follow(self, connections: RelayConnections, pool: ThreadPoolExecutor, worker: Worker) -> None:
        working: dict[str, Future[None]] = {}
        listed_at = saved_at = self.monotonic() - self.pace.list_seconds
        while not worker.is_ending:
            at = self.monotonic()
            if at - listed_at >= self.pace.list_seconds:
                listed_at = at
                self._list(connections)
            if at - saved_at >= self.pace.save_seconds:
                saved_at = at
                self._save()
            for container, one in list(self._readers.items()):
                if container not in working and one.due_at <= at:
                    working[container] = pool.submit(one.poll, at)
            self._collect(working)
            if not working:
                worker.wait(TICK_SECONDS)
        wait(working.values())
        self._collect(working)
        self._save()

    def _collect(self, working: "dict[str, Future[None]]") -> None:
        """Take the results of polls, and end the readers of logs that are read."""
        for container, future in list(working.items()):
            if not future.done():
                continue
            del working[container]
            future.result()
            reader = self._readers[container]
            # From the end of a slow poll, too, so that no second has the requests of two.
            reader.due_at = max(reader.due_at, self.monotonic() + SHORTEST_SECONDS)
            if reader.position.is_read:
                del self._readers[container]
                self._ended[container] = self.now()
                self._past = self._past.add(reader.statistics)
        if working:
            wait(working.values(), TICK_SECONDS)

    def _list(self, connections: RelayConnections) -> None:
        subscriptions = connections.subscriptions
        patterns = [] if subscriptions is None else list(subscriptions.patterns(self.now()))
        listed = {one.uuid: one for one in connections.cluster.containers(list(self._readers))}
        for container, reader in self._readers.items():
            found = listed.get(container)
            reader.is_over = found is None or found.is_over
            if found is not None and found.owners:  # the first of its requests may be deleted
                reader.position.owners, reader.position.request = found.owners, found.request
        new = [one for one in listed.values() if self._is_new(one) and self.selection.selects(one, patterns)]
        is_full = len(json.dumps(self._saved.document())) > MAXIMUM_BYTES
        room = 0 if is_full else max(self.pace.containers - len(self._readers), 0)
        self.refused = len(new) - len(new[:room])
        for one in new[:room]:
            position = LogPosition(one.uuid, one.request, one.owners)
            self._readers[one.uuid] = ContainerReader(position, self.files, self.realm, is_over=one.is_over)
        if new[:room]:
            self._save()  # before its first line

    def _is_new(self, one: ListedContainer) -> bool:
        return bool(one.request) and one.uuid not in self._readers and one.uuid not in self._ended

    def _save(self) -> None:
        """Save the positions if they have changed."""
        positions = LogPositions.of((one.position for one in self._readers.values()), self._ended, self.now())
        self._ended = dict(positions.ended)
        if positions != self._saved:
            self.realm.save(positions)
            self._saved = positions
