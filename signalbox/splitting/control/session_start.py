"""Start of sessions: checks a request and stores the record; the reconcile loop creates the resources."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from signalbox.documents import shown
from signalbox.errors import RejectedError
from signalbox.history.event import HistoryEvent
from signalbox.optimistic_update import optimistic_update
from signalbox.splitting.consumers.registry import Registry
from signalbox.splitting.consumers.registry_file import queues_of_other_brokers
from signalbox.splitting.control.admission import (
    AdmissionRequest,
    SessionRejected,
    check_room,
    new_split,
    with_session,
)
from signalbox.splitting.control.chains import Chains
from signalbox.splitting.control.commands import Start
from signalbox.splitting.control.keeping import KeepService
from signalbox.splitting.control.ports import KeptStore, Resources
from signalbox.splitting.control.presentation import SplitPresenter
from signalbox.splitting.control.problems import note_problem
from signalbox.splitting.control.record_updates import TRIES, RecordBusy, renewed
from signalbox.splitting.control.registries import RegistryService
from signalbox.splitting.control.replays import ReplayRequest
from signalbox.splitting.model import events
from signalbox.splitting.model.session_config import parse_mirrord_file, split_queues_of
from signalbox.splitting.model.split import Split, SplitSession
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import Splits, StoredSplit

MAXIMUM_CONFIG_BYTES = 32_768  # all sessions' configs share one item
# The names that Kubernetes allows: https://kubernetes.io/docs/tasks/inject-data-application/define-environment-variable-container/
VARIABLE = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


class ConfigTooLarge(RejectedError):
    """Raised when the filters of a session are too large to be stored."""


class QueueAlreadySplit(RejectedError):
    """Raised when a queue of a target is already split for another target."""


@dataclass(frozen=True, slots=True)
class JoinableSplit:
    """An existing or new split that a session can join."""

    split: Split
    registry: Registry
    documents: Sequence[object]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Admission:
    """A split with a new session, and the variables for the session's command."""

    split: Split
    session: SplitSession
    environment: Mapping[str, str]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Admissions:
    """Stores new sessions, in an existing split or a new one."""

    splits: Splits
    registries: RegistryService
    resources: Resources
    kept: KeptStore | None
    random_parts: Iterator[str]

    def store(
        self, target: Target, request: AdmissionRequest, replay: ReplayRequest | None, *, now: datetime
    ) -> tuple[StoredSplit, Admission]:
        """Return the record with the session; of two simultaneous first sessions, the second joins the first."""
        done = optimistic_update(lambda: self._attempt(target, request, replay, now=now), tries=TRIES)
        if done is None:
            raise RecordBusy(f"the split of {target} is being changed by several writers")
        return done

    def _attempt(
        self, target: Target, request: AdmissionRequest, replay: ReplayRequest | None, *, now: datetime
    ) -> tuple[StoredSplit, Admission] | None:
        stored = self.splits.find(target)
        joinable = self._existing_split(stored, target) if stored else self._new_split(target, now=now)
        if replay is not None and joinable.split.session(request.session_id) is None:
            found = replay.replay(joinable.split, request.parsed_config, self.kept, now=now)
            request = replace(request, replay=found)
        admission = self._admission(joinable, request, now=now)
        if stored is not None and admission.split == stored.split:
            return stored, admission
        if stored is None:
            saved = self.splits.create(admission.split, documents=joinable.documents)
        else:
            saved = self.splits.save(admission.split, replacing=stored)
        if saved is not None:
            return saved, admission
        self._refuse_taken(admission.split)
        return None

    def _existing_split(self, stored: StoredSplit, target: Target) -> JoinableSplit:
        registry = replace(self.registries.reader.of_split(stored), target=target)  # with the container
        return JoinableSplit(stored.split, registry, stored.documents)

    def _new_split(self, target: Target, *, now: datetime) -> JoinableSplit:
        found, documents = self.registries.of_new_split(target, now=now)
        registry = replace(found, target=target)  # with the container
        split = new_split(
            target,
            tuple(self.resources.targets_of(target).find(registry)),
            names=self.registries.reader.names(registry),
            random_parts=self.random_parts,
            now=now,
            switch_timeout=registry.switch_timeout,
            drain_timeout=registry.drain_timeout,
        )
        notes = tuple(_notes(registry, split, documents))
        return JoinableSplit(split, registry.of(queue.queue_id for queue in split.queues), documents, notes)

    def _admission(self, joinable: JoinableSplit, request: AdmissionRequest, *, now: datetime) -> Admission:
        names = self.registries.reader.names(joinable.registry)
        split = with_session(joinable.split, request, names=names, random_parts=self.random_parts, now=now)
        session = next(one for one in split.sessions if one.session_id == request.session_id)
        environment = self.resources.targets_of(split.target).environment(joinable.registry, session.queues)
        if unsafe := ", ".join(shown(name) for name in environment if VARIABLE.fullmatch(name) is None):
            raise SessionRejected(f"no local command can have these variables, whose names a shell would run: {unsafe}")
        if joinable.split.session(request.session_id) is None:
            check_room(split, joinable.documents, environment)
        return Admission(split, session, environment, joinable.notes)

    def _refuse_taken(self, split: Split) -> None:
        for queue in split.queues:
            other = self.splits.of_queue(queue.original)
            if other is not None and other.split.target != split.target:
                raise QueueAlreadySplit(f"queue {queue.original!r} is already split for {other.split.target}")


@dataclass(frozen=True, slots=True)
class SessionStarter:
    """Starts sessions. Starting an identical session again returns the existing one."""

    admissions: Admissions
    keeping: KeepService
    presenter: SplitPresenter
    chains: Chains
    record: Callable[[Sequence[HistoryEvent]], None]
    reads_objects: bool = False
    """Whether the function `split` may read metadata of S3 objects."""

    def start(self, command: Start, *, principal: str = "") -> dict[str, object]:
        """Store a session and return its document. Raises `RejectedError` and `UnavailableError`.

        `principal` is the IAM unique id of the command's sender, who must be a reader of the kept messages.
        """
        parsed_config = parse_mirrord_file(command.config, self.admissions.registries.reader.compiler)
        request = AdmissionRequest(
            command.session_id,
            command.owner,
            _stored_config_text(command.config),
            parsed_config,
            reads_objects=self.reads_objects,
        )
        now, target = self.chains.clock.now(), command.target
        replay = ReplayRequest(command.since, principal) if command.since is not None else None
        stored, admission = self.admissions.store(target, request, replay, now=now)
        stored = self.keeping.apply(stored)
        self.presenter.save_environment(target, admission.session, admission.environment)
        for note in admission.notes:
            note_problem(self.presenter.annotations, target, note, now=now)
        split = stored.split
        if admission.session.started_at == now:
            self.record((events.session(admission.session, "started", target=target, at=now),))
        else:
            split = renewed(self.presenter.heartbeats, split, command.session_id, now=now)
        self.chains.wake(target)
        return self.presenter.session(split, command.session_id)


def _notes(registry: Registry, split: Split, documents: Sequence[object]) -> Iterator[str]:
    """Yield notes on the queues of a registry that are not split."""
    if names := ", ".join(queues_of_other_brokers(documents)):
        yield f"not on SQS, so not split: {names}"
    known = {queue.queue_id for queue in split.queues}
    if names := ", ".join(queue.queue_id for queue in registry.queues if queue.queue_id not in known):
        yield f"{split.target} has no reference to these queues of its registry, so they are not split: {names}"


def _stored_config_text(document: object) -> str:
    """Return the stored part of a mirrord.json; the rest is not needed and may be secret."""
    queues = split_queues_of(document)
    text = json.dumps({"feature": {"split_queues": queues}}, separators=(",", ":"), sort_keys=True)
    if len(text.encode()) > MAXIMUM_CONFIG_BYTES:
        raise ConfigTooLarge(f"filters of {len(text.encode())} bytes; at most {MAXIMUM_CONFIG_BYTES} are allowed")
    return text
