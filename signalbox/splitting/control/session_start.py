"""Starting sessions: everything is checked and written down, and nothing is made yet."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from signalbox.errors import RejectedError
from signalbox.splitting.consumers.registry import Registry
from signalbox.splitting.control.admission import Request, new_split, with_session
from signalbox.splitting.control.commands import Start
from signalbox.splitting.control.optimistic_update import TRIES, RecordBusy
from signalbox.splitting.control.presentation import Telling
from signalbox.splitting.control.reconcile_loop import RoundDesk
from signalbox.splitting.model import events
from signalbox.splitting.model.control_ports import ControlPorts, NoRegistry
from signalbox.splitting.model.ports import StoredSplit
from signalbox.splitting.model.session_config import parse_mirrord_file
from signalbox.splitting.model.split import Session, Split
from signalbox.splitting.model.target import Target

MAXIMUM_CONFIG_BYTES = 32_768  # all sessions' configs stand in one record: DynamoDB takes 400 KB
MAXIMUM_CONFIGS_BYTES = 200_000


class ConfigTooLarge(RejectedError):
    """Raised when a session's filters are too large to be kept."""


class QueueTaken(RejectedError):
    """Raised when a queue of a target is split for another target already."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a session joins: a split that is there, or a new one."""

    split: Split
    registry: Registry
    documents: Sequence[object]


@dataclass(frozen=True, slots=True)
class Joined:
    """A split with a session more, and what that session's command is to have in its environment."""

    split: Split
    session: Session
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Starting:
    """Starts sessions. The same one a second time changes nothing, and is told again."""

    ports: ControlPorts

    def start(self, command: Start) -> dict[str, object]:
        """Write a session down and return it. Raises `RejectedError` and `UnavailableError`."""
        asks_for = parse_mirrord_file(command.config, self.ports.compiler)
        request = Request(command.session_id, command.owner, _kept_config(command.config), asks_for)
        now, target = self.ports.now(), command.target
        stored, joined = self._stored(target, request, now=now)
        telling = Telling(self.ports)
        telling.note_environment(target, joined.session, joined.environment)
        if joined.session.started_at == now:
            self.ports.record((events.session(joined.session, "started", target=target, at=now),))
        RoundDesk(self.ports).wake(target)
        return telling.session(stored.split, command.session_id)

    def _stored(self, target: Target, request: Request, *, now: datetime) -> tuple[StoredSplit, Joined]:
        """Return the record with the session; of two who start at the same moment the second joins the first."""
        splits = self.ports.store.splits
        for _ in range(TRIES):
            stored = splits.find(target)
            began = self._began(stored) if stored else self._begins(target, now=now)
            joined = self._joined(began, request, now=now)
            if stored is not None and joined.split == stored.split:
                return stored, joined
            if stored is None:
                saved = splits.create(joined.split, documents=began.documents)
            else:
                saved = splits.save(joined.split, replacing=stored)
            if saved is not None:
                return saved, joined
            self._refuse_taken(joined.split)
        raise RecordBusy(f"the split of {target} is changed by many at the same time")

    def _began(self, stored: StoredSplit) -> Beginning:
        return Beginning(stored.split, self.ports.registry_of(stored), stored.documents)

    def _begins(self, target: Target, *, now: datetime) -> Beginning:
        known = self.ports.store.registries.find(target)
        if known is None:
            raise NoRegistry(f"nothing is known of the queues of {target}: apply a registry, or discover one, first")
        registry = self.ports.registry_in(known.documents, target)
        split = new_split(
            target,
            tuple(self.ports.targets_of(target).find(registry)),
            names=self.ports.names(registry),
            fresh=self.ports.fresh,
            now=now,
            switch_timeout=registry.switch_timeout,
            drain_timeout=registry.drain_timeout,
        )
        return Beginning(split, registry, known.documents)

    def _joined(self, began: Beginning, request: Request, *, now: datetime) -> Joined:
        names = self.ports.names(began.registry)
        split = with_session(began.split, request, names=names, fresh=self.ports.fresh, now=now)
        size = sum(len(session.config.encode()) for session in split.sessions)
        if size > MAXIMUM_CONFIGS_BYTES:
            raise ConfigTooLarge(f"the filters of all sessions of {split.target} have {size} bytes together")
        session = next(one for one in split.sessions if one.session_id == request.session_id)
        environment = self.ports.targets_of(split.target).environment(began.registry, session.queues)
        return Joined(split, session, environment)

    def _refuse_taken(self, split: Split) -> None:
        for queue in split.queues:
            other = self.ports.store.splits.of_queue(queue.original)
            if other is not None and other.split.target != split.target:
                raise QueueTaken(f"queue {queue.original!r} is split for {other.split.target} already")


def _kept_config(document: object) -> str:
    """Return the part of a mirrord.json that is kept; the rest of it is none of our business, and may be secret."""
    feature = document.get("feature") if isinstance(document, Mapping) else None
    queues = feature.get("split_queues") if isinstance(feature, Mapping) else None
    text = json.dumps({"feature": {"split_queues": queues}}, separators=(",", ":"), sort_keys=True)
    if len(text.encode()) > MAXIMUM_CONFIG_BYTES:
        raise ConfigTooLarge(f"filters of {len(text.encode())} bytes; at most {MAXIMUM_CONFIG_BYTES} are kept")
    return text
