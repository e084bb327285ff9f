"""Bindings of existing queues: those of a CDK app, which its deployment declares, changes and removes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from signalbox.documents import Section
from signalbox.errors import RejectedError
from signalbox.exchange.model import events
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.connections import QueueMissing
from signalbox.exchange.model.control_ports import ChangedMeanwhile, ControlPorts
from signalbox.exchange.model.names import existing_queue
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import Binding, BindOutcome, DeclaredQueue, ResourceKind, ResourceRef
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName

FIELDS = ("queue", "pattern", "key")
ALIAS = "alias/"
AWS_MANAGED = "alias/aws/"


class ForeignKey(RejectedError):
    """Raised when the messages of an existing queue are encrypted with a key that the router may not use."""


@dataclass(frozen=True, slots=True)
class AppBinding:
    """An existing queue of the account and a pattern; `key` is the ARN of the key that the app names for the queue."""

    queue: QueueName
    pattern: Pattern
    key: str | None = None

    def of(self, exchange: ExchangeName) -> Binding:
        """Return the binding from an exchange."""
        return Binding(exchange, ResourceRef(ResourceKind.QUEUE, existing_queue(self.queue)), self.pattern)


def read_bindings(section: Section, *, arn_prefix: str) -> tuple[AppBinding, ...]:
    """Read the field `bindings`: objects with the queue's ARN, a pattern and the ARN of the queue's key, or null."""
    return tuple(_bindings(section, arn_prefix))


def _bindings(section: Section, arn_prefix: str) -> Iterator[AppBinding]:
    for one in section.sections("bindings"):
        one.refuse_unknown(FIELDS)
        arn = one.required_text("queue")
        if not arn.startswith(arn_prefix):
            one.problem("queue", f"expected a queue of this account and region, {arn_prefix}…, not {arn!r}")
        text = one.text("pattern") or ""
        pattern = one.attempt("pattern", partial(Pattern.parse, text), default=Pattern(()))
        yield AppBinding(QueueName(arn.removeprefix(arn_prefix)), pattern, one.text("key"))


@dataclass(frozen=True, slots=True)
class AppBindings:
    """Binds existing queues, whose messages the exchange sends and whose settings it leaves alone.

    Each call may be repeated: a deployment that failed is rolled back by the opposite calls.
    """

    ports: ControlPorts

    def bind(self, exchange: ExchangeName, wanted: Sequence[AppBinding]) -> None:
        """Bind queues; none is bound unless all may be. Raises `ForeignKey`, `QueueMissing` and `UnavailableError`."""
        for queue, key in {one.queue: one.key for one in wanted}.items():
            self._check(queue, key)
        for one in wanted:
            self._bind(one.of(exchange))

    def unbind(self, exchange: ExchangeName, gone: Sequence[AppBinding]) -> None:
        """Remove bindings, and the records of queues that have none left. Raises `UnavailableError`."""
        for one in gone:
            binding = one.of(exchange)
            if self.ports.store.bindings.unbind(binding):
                self.ports.record([events.unbound(binding, user=None, at=self.ports.now())])
            if not self.ports.store.bindings.to(binding.target):
                self._forget(DeclaredName(binding.target.name))

    def _check(self, queue: QueueName, key: str | None) -> None:
        used = self.ports.sqs.key(queue)
        if used is None:
            raise QueueMissing(f"queue {queue!r} does not exist")
        is_open = not used or used.startswith(AWS_MANAGED)
        is_named = key is not None and (used.startswith(ALIAS) or key.endswith(used.rpartition("/")[2]))
        if not is_open and not is_named:
            raise ForeignKey(
                f"queue {queue!r} is encrypted with the key {used!r}, which the app does not name: import the queue "
                "with Queue.from_queue_attributes and its key_arn, and let the key's policy delegate its use to IAM"
            )

    def _bind(self, binding: Binding) -> None:
        store, now, name = self.ports.store, self.ports.now(), DeclaredName(binding.target.name)
        store.queues.create(DeclaredQueue(name, None, created_at=now, declared_at=now))
        outcome = store.bindings.bind(binding)
        if outcome is BindOutcome.REFUSED:
            raise ChangedMeanwhile.of(binding.target)
        if outcome is BindOutcome.BOUND:
            self.ports.record([events.bound(binding, user=None, at=now)])

    def _forget(self, name: DeclaredName) -> None:
        queue = self.ports.store.queues.find(name)
        if queue is not None and not self.ports.store.queues.forget(queue):
            raise ChangedMeanwhile.of(queue.resource)
