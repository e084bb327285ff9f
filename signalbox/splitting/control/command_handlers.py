"""The control service of splitting, which executes commands; all of them are idempotent."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from signalbox.control.delivery import ONCE, CommandDelivery
from signalbox.errors import RejectedError
from signalbox.splitting.control import commands
from signalbox.splitting.control.ports import AuditTrail, Discovery
from signalbox.splitting.control.presentation import unknown_session
from signalbox.splitting.control.reconcile_loop import STOPPED, ReconcileLoop
from signalbox.splitting.control.record_updates import changed, renewed
from signalbox.splitting.control.registries import RegistryService
from signalbox.splitting.control.session_start import SessionStarter
from signalbox.splitting.control.summary import summary
from signalbox.splitting.forwarding.explanation import DescribedSession, as_document, explained, parse_messages
from signalbox.splitting.forwarding.filter_budget import SHARE, FilterBudget
from signalbox.splitting.forwarding.route import stored_config
from signalbox.splitting.model.filters import Compiler, FilterUse
from signalbox.splitting.model.session_config import SessionConfig
from signalbox.splitting.model.split import Split, ended
from signalbox.splitting.ports import Splits

MAXIMUM_EXPLAINED = 100
# The time of all filters and patterns in one command: half of the function's time-out, which a test compares.
FILTER_TIME = timedelta(seconds=15)


class NoSplit(RejectedError):
    """Raised when a target is not split."""


class TooManyMessages(RejectedError):
    """Raised when a command contains too many messages to explain."""


@dataclass(frozen=True, slots=True)
class ControlService:
    """Executes the commands of the control queue."""

    splits: Splits
    registries: RegistryService
    starter: SessionStarter
    loop: ReconcileLoop
    discovery: Discovery
    audit_trail: AuditTrail

    def answer(self, command: commands.Command, *, principal: str = "", delivery: CommandDelivery = ONCE) -> object:
        """Execute a command and return its result. Raises `RejectedError` and `UnavailableError`.

        `principal` is the IAM unique id of the command's sender.
        """
        answers: dict[type, Callable[[Any], object]] = {
            commands.Apply: self._apply,
            commands.Remove: partial(self._remove, delivery=delivery),
            commands.ListRegistries: lambda _: self.registries.every(),
            commands.Discover: self._discover,
            commands.Start: partial(self.starter.start, principal=principal),
            commands.Heartbeat: self._heartbeat,
            commands.Stop: partial(self._stop, delivery=delivery),
            commands.SplitStatus: self._status,
            commands.Explain: self._explain,
            commands.Audit: self._audit,
            commands.Keep: self.starter.keeping.keep,
            commands.Reconcile: self.loop.run,
        }
        # The patterns and programs in a command have the time of one session together.
        self._compiler.begin(FilterUse(FILTER_TIME.total_seconds() * SHARE))
        return answers[type(command)](self._completed(command))

    @property
    def _compiler(self) -> Compiler:
        return self.registries.reader.compiler

    def _now(self) -> datetime:
        return self.loop.chains.clock.now()

    def _completed(self, command: commands.Command) -> commands.Command:
        """Return a command with its target's full name."""
        if isinstance(
            command,
            commands.Remove
            | commands.Discover
            | commands.Start
            | commands.Heartbeat
            | commands.Stop
            | commands.Explain,
        ):
            return replace(command, target=self.registries.completed(command.target))
        if isinstance(command, commands.SplitStatus) and command.target is not None:
            return commands.SplitStatus(self.registries.completed(command.target))
        return command

    def _apply(self, command: commands.Apply) -> object:
        return {"targets": [str(target) for target in self.registries.apply(command.documents)]}

    def _remove(self, command: commands.Remove, delivery: CommandDelivery) -> object:
        self.registries.remove(command.target, delivery)
        return {"target": str(command.target)}

    def _discover(self, command: commands.Discover) -> object:
        return {"documents": list(self.discovery.discover(command.target))}

    def _heartbeat(self, command: commands.Heartbeat) -> object:
        """Record a heartbeat and return the session's status. Raises `UnknownSession`."""
        stored, presenter = self.splits.find(command.target), self.starter.presenter
        if stored is None:
            raise unknown_session(command.target, command.session_id, ())
        split = renewed(presenter.heartbeats, stored.split, command.session_id, now=self._now())
        return presenter.session(split, command.session_id)

    def _stop(self, command: commands.Stop, delivery: CommandDelivery) -> object:
        """Save the end of a session and return its status. Raises `UnknownSession` and `Overtaken`."""
        now = self._now()

        def change(split: Split) -> Split:
            session = split.session(command.session_id)
            delivery.refuse_overtaken(session.started_at if session else None, f"session {str(command.session_id)!r}")
            return ended(split, command.session_id, reason=STOPPED, now=now)

        stored, presenter = changed(self.splits, command.target, change), self.starter.presenter
        if stored is None:
            raise unknown_session(command.target, command.session_id, ())
        self.loop.chains.wake(command.target)
        return presenter.session(presenter.current(stored.split), command.session_id)

    def _status(self, command: commands.SplitStatus) -> object:
        """Return the split of a target with the counts of its queues, or a summary of all splits without them."""
        if command.target is None:
            return summary(self.splits.every())
        stored = self.splits.find(command.target)
        return {"splits": [self.starter.presenter.split(stored)] if stored else []}

    def _explain(self, command: commands.Explain) -> object:
        messages = parse_messages(command.messages)
        if len(messages) > MAXIMUM_EXPLAINED:
            raise TooManyMessages(f"{len(messages)} messages; at most {MAXIMUM_EXPLAINED} are explained at a time")
        stored = self.splits.find(command.target)
        if stored is None:
            raise NoSplit(f"{command.target} is not split, so the deployed consumer gets every message")
        queue = next((one for one in stored.split.queues if one.queue_id == command.queue_id), None)
        if queue is None:
            known = ", ".join(sorted({str(one.queue_id) for one in stored.split.queues}))
            raise NoSplit(f"{command.target} has no queue {command.queue_id!r}; it has {known}")
        budget = FilterBudget.of(self._compiler, FILTER_TIME)
        read = ((one.session_id, stored_config(one.config, budget, one.session_id)) for one in stored.split.live)
        sessions = [DescribedSession(name, config) for name, config in read if isinstance(config, SessionConfig)]
        decisions = explained(
            messages, sessions, command.queue_id, sns=queue.sns, s3_event=queue.s3_event, budget=budget
        )
        return {"decisions": [as_document(number, decision) for number, decision in enumerate(decisions)]}

    def _audit(self, command: commands.Audit) -> object:
        since = (self._now() - timedelta(days=command.days)).date()
        return {"events": list(self.audit_trail.events(command.message_id, since=since))}
