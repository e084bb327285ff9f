"""The DynamoDB store of bindings, which changes bindings and the versions of their exchanges in one transaction."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from signalbox.aws.exchange.items import (
    BACK_REFERENCE,
    BINDING,
    IS_DELETING,
    back_reference_key,
    binding_items,
    binding_key,
    binding_of,
    partition,
    record_key,
)
from signalbox.aws.shared.dynamodb import MAXIMUM_TRANSACTION, DynamoTable, ItemBusy, milliseconds, moment
from signalbox.aws.shared.expressions import EXISTS, IS_NEW, Check, Delete, Expression, Put, Update, Write, attr
from signalbox.exchange.model.records import Binding, BindOutcome, ResourceKind, ResourceRef
from signalbox.sarracenia.rights.names import ExchangeName

# Each change writes the records of its exchanges, with their settings; two commands are handled at a time.
UNITS_A_SECOND = 500
BOUND_AT = "bound_at"
STAYS = EXISTS & attr(IS_DELETING).not_exists()


@dataclass(frozen=True, slots=True)
class DynamoBindings:
    """`Bindings` over the table `Exchanges`: one item in the partition of each end."""

    table: DynamoTable

    def bind(self, binding: Binding, *, at: datetime | None = None) -> BindOutcome:
        """Store a binding, requested at a time, unless one of its ends is missing or being deleted; return the outcome.

        Raises `ItemBusy`.
        """
        item, back_reference = binding_items(binding)
        bound = {} if at is None else {BOUND_AT: milliseconds(at)}
        writes: list[Write] = [Put(item | bound, IS_NEW), Put(back_reference)]
        writes += [_next_version(resource, STAYS) for resource in _exchanges(binding)]
        if binding.target.kind is ResourceKind.QUEUE:
            writes.append(Check(record_key(binding.target), STAYS))
        is_new, _, *stay = self.table.transact(*writes, units_a_second=UNITS_A_SECOND)
        if not all(stay):
            return BindOutcome.REFUSED
        return BindOutcome.BOUND if is_new else BindOutcome.ALREADY_BOUND

    def bound_at(self, binding: Binding) -> datetime | None:
        """Return when a binding was requested; None if it does not exist or its time is unknown."""
        item = self.table.get(binding_key(binding)) or {}
        return moment(item[BOUND_AT]) if BOUND_AT in item else None

    def unbind(self, binding: Binding) -> bool:
        """Remove a binding, with the same changes of versions; return whether it existed. Raises `ItemBusy`."""
        was_there, *others = self.table.transact(
            Delete(binding_key(binding), EXISTS),
            Delete(back_reference_key(binding)),
            *(_next_version(resource, EXISTS) for resource in _exchanges(binding)),
            units_a_second=UNITS_A_SECOND,
        )
        if was_there and not all(others):
            # A record is removed after its bindings, so they are being removed at this moment.
            raise ItemBusy(f"{binding.target} or exchange {binding.exchange!r} is being deleted at this moment")
        return was_there

    def unbind_all(self, bindings: Sequence[Binding]) -> Iterator[Sequence[Binding]]:
        """Remove different bindings, some 50 in a transaction; yield for each transaction the bindings that existed.

        Raises `ItemBusy`.
        """
        writes: list[Write] = [Delete(binding_key(binding), EXISTS) for binding in bindings]
        writes += [Delete(back_reference_key(binding)) for binding in bindings]
        changed = dict.fromkeys(exchange for binding in bindings for exchange in _exchanges(binding))
        writes += [_next_version(exchange, EXISTS) for exchange in changed]
        if len(writes) > MAXIMUM_TRANSACTION:
            half = len(bindings) // 2
            yield from self.unbind_all(bindings[:half])
            yield from self.unbind_all(bindings[half:])
            return
        held = self._transacted(writes)
        existing = [binding for binding, was_there in zip(bindings, held, strict=False) if was_there]
        if all(held):
            yield bindings
        elif existing == list(bindings):
            raise ItemBusy("an exchange of these bindings is being deleted at this moment")
        elif existing:
            yield from self.unbind_all(existing)

    def _transacted(self, writes: Sequence[Write]) -> Sequence[bool]:
        for _ in self.table.backoff.attempts():
            with suppress(ItemBusy):
                return self.table.transact(*writes)
        raise ItemBusy("other transactions write to the same exchanges, or their items take no more writes now")

    def of(self, exchange: ExchangeName, *, is_consistent: bool = True) -> Sequence[Binding]:
        """Return the bindings from an exchange."""
        return self._read(ResourceRef(ResourceKind.EXCHANGE, exchange), BINDING, is_consistent=is_consistent)

    def to(self, target: ResourceRef, *, is_consistent: bool = True) -> Sequence[Binding]:
        """Return the bindings to an exchange or a queue."""
        return self._read(target, BACK_REFERENCE, is_consistent=is_consistent)

    def _read(self, resource: ResourceRef, beginning: str, *, is_consistent: bool) -> Sequence[Binding]:
        condition = attr("pk").eq(partition(resource)) & attr("sk").begins_with(beginning)
        return list(map(binding_of, self.table.query(condition, is_consistent=is_consistent)))


def _next_version(exchange: ResourceRef, condition: Expression) -> Update:
    return Update(record_key(exchange), adds={"version": 1}, condition=condition)


def _exchanges(binding: Binding) -> Sequence[ResourceRef]:
    """Return the exchanges of a binding: one, if it binds an exchange to itself."""
    source = ResourceRef(ResourceKind.EXCHANGE, binding.exchange)
    return (
        [source] if binding.target.kind is ResourceKind.QUEUE or binding.target == source else [source, binding.target]
    )
