"""The store of bindings: one transaction for each change, with the versions of both ends."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import boto3
import pytest
from botocore.exceptions import ClientError

from signalbox.aws.exchange.bindings import DynamoBindings
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoQueues
from signalbox.aws.exchange.items import record_key
from signalbox.aws.shared.dynamodb import DynamoTable, ItemBusy
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.ports import Bindings, Exchanges, Queues
from signalbox.exchange.model.records import (
    Binding,
    BindOutcome,
    LiveSettings,
    ResourceKind,
    ResourceRef,
    Retention,
)
from signalbox.sarracenia.rights.names import ExchangeName
from tests.adapters.exchange.test_exchanges import EXCHANGE, OURS, PUBLIC, QUEUE
from tests.fakes.aws import STORES
from tests.fakes.backoff import AT_ONCE
from tests.fakes.clock import START
from tests.fakes.exchange import MemoryBindings, MemoryExchanges, MemoryQueues

MANY = Pattern.parse("v03.#")
TO_QUEUE = Binding(PUBLIC, QUEUE.resource, MANY)
TO_EXCHANGE = Binding(PUBLIC, ResourceRef(ResourceKind.EXCHANGE, OURS), MANY)
OTHER = replace(EXCHANGE, name=OURS)


class Stage:
    """A stage with two exchanges and a queue, in DynamoDB or in memory."""

    def __init__(self, table=None) -> None:
        self.exchanges: Exchanges = DynamoExchanges(table) if table else MemoryExchanges()
        self.queues: Queues = DynamoQueues(table) if table else MemoryQueues()
        self.bindings: Bindings = DynamoBindings(table) if table else MemoryBindings(self.exchanges, self.queues)
        self.exchanges.create(EXCHANGE)
        self.exchanges.create(OTHER)
        self.queues.create(QUEUE)

    def versions(self) -> tuple[int, int, int]:
        found = (self.exchanges.find(PUBLIC), self.exchanges.find(OURS), self.queues.find(QUEUE.name))
        return tuple(one.version if one else 0 for one in found)


def unbound(bindings: Bindings, some: list[Binding]) -> list[Binding]:
    return [one for removed in bindings.unbind_all(some) for one in removed]


@pytest.fixture(params=STORES)
def stage(request: pytest.FixtureRequest) -> Stage:
    return Stage(None if request.param == "memory" else request.getfixturevalue("exchange_table"))


@pytest.mark.parametrize(
    ("bound", "versions"),
    [pytest.param(TO_QUEUE, (2, 1, 1), id="queue"), pytest.param(TO_EXCHANGE, (2, 2, 1), id="exchange")],
)
def test_a_binding_is_seen_from_both_ends_and_by_the_versions(stage: Stage, bound: Binding, versions: tuple) -> None:
    assert stage.bindings.bind(bound) is BindOutcome.BOUND

    assert stage.bindings.of(PUBLIC) == [bound]
    assert stage.bindings.to(bound.target) == [bound]
    assert stage.versions() == versions


def test_a_binding_has_the_time_of_its_first_command(stage: Stage) -> None:
    assert stage.bindings.bound_at(TO_QUEUE) is None

    for at in (START, START + timedelta(seconds=1)):
        stage.bindings.bind(TO_QUEUE, at=at)

    assert stage.bindings.bound_at(TO_QUEUE) == START
    stage.bindings.unbind(TO_QUEUE)
    stage.bindings.bind(TO_QUEUE)
    assert stage.bindings.bound_at(TO_QUEUE) is None


def test_a_list_of_bindings_is_read_eventually_consistent_at_half_the_units(exchange_table, monkeypatch) -> None:
    stage, asked = Stage(exchange_table), []
    stage.bindings.bind(TO_QUEUE)
    query = exchange_table.client.query
    monkeypatch.setattr(
        exchange_table.client, "query", lambda **given: asked.append(given["ConsistentRead"]) or query(**given)
    )

    for is_consistent in (True, False):
        assert stage.bindings.of(PUBLIC, is_consistent=is_consistent) == [TO_QUEUE]
        assert stage.bindings.to(QUEUE.resource, is_consistent=is_consistent) == [TO_QUEUE]

    assert asked == [True, True, False, False]


def test_an_exchange_may_be_bound_to_itself(stage: Stage) -> None:
    itself = Binding(PUBLIC, EXCHANGE.resource, MANY)

    assert stage.bindings.bind(itself) is BindOutcome.BOUND
    assert stage.bindings.of(PUBLIC) == stage.bindings.to(EXCHANGE.resource) == [itself]
    assert stage.bindings.unbind(itself)

    assert stage.bindings.of(PUBLIC) == []
    assert stage.versions()[0] > 2


def test_an_existing_binding_changes_no_version(stage: Stage) -> None:
    stage.bindings.bind(TO_QUEUE)

    assert stage.bindings.bind(TO_QUEUE) is BindOutcome.ALREADY_BOUND
    assert stage.bindings.of(PUBLIC) == [TO_QUEUE]
    assert stage.versions() == (2, 1, 1)


def test_names_and_patterns_with_separators_do_not_meet(stage: Stage) -> None:
    stage.queues.create(replace(QUEUE, name=DeclaredName("q_a")))
    stage.queues.create(replace(QUEUE, name=DeclaredName("q_a#b")))
    bound = [
        Binding(PUBLIC, ResourceRef(ResourceKind.QUEUE, name), Pattern.parse(pattern))
        for name, pattern in (("q_a", "b#c"), ("q_a#b", "c"), ("q_a", ""), ("q_a", "*"))
    ]

    assert [stage.bindings.bind(one) for one in bound] == [BindOutcome.BOUND] * 4

    assert sorted(map(str, stage.bindings.of(PUBLIC))) == sorted(map(str, bound))


def test_a_binding_is_taken_away_from_both_ends(stage: Stage) -> None:
    stage.bindings.bind(TO_EXCHANGE)
    stage.bindings.bind(TO_QUEUE)

    assert stage.bindings.unbind(TO_EXCHANGE)

    assert stage.bindings.of(PUBLIC) == [TO_QUEUE]
    assert stage.bindings.to(TO_EXCHANGE.target) == []
    assert stage.versions() == (4, 3, 1)


def test_many_bindings_are_taken_away_together(stage: Stage) -> None:
    many = [replace(TO_QUEUE, pattern=Pattern.parse(f"a.{number}")) for number in range(60)]
    missing = replace(TO_QUEUE, pattern=Pattern.parse("b"))
    for one in (*many, TO_QUEUE, TO_EXCHANGE):
        stage.bindings.bind(one)

    assert unbound(stage.bindings, [*many, TO_EXCHANGE]) == [*many, TO_EXCHANGE]
    assert stage.bindings.of(PUBLIC) == stage.bindings.to(QUEUE.resource) == [TO_QUEUE]
    assert unbound(stage.bindings, [missing, TO_QUEUE]) == [TO_QUEUE]
    assert unbound(stage.bindings, [missing]) == []
    assert stage.bindings.of(PUBLIC) == stage.bindings.to(QUEUE.resource) == []


def test_removing_many_bindings_takes_few_transactions_and_repeats_those_in_conflict(
    exchange_table, monkeypatch
) -> None:
    stage = Stage(replace(exchange_table, backoff=AT_ONCE))
    many = [replace(TO_QUEUE, pattern=Pattern.parse(f"a.{number}")) for number in range(96)]
    for one in many:
        stage.bindings.bind(one)
    before, sizes, transact = stage.versions(), [], exchange_table.client.transact_write_items
    busy = iter(["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])

    def counted(**given):
        if reason := next(busy, None):
            Refusing(reason).transact_write_items()
        sizes.append(len(given["TransactItems"]))
        return transact(**given)

    monkeypatch.setattr(exchange_table.client, "transact_write_items", counted)

    assert unbound(stage.bindings, many) == many
    assert sizes == [97, 97]
    assert stage.versions() == (before[0] + 2, *before[1:])


def test_removing_bindings_in_lasting_conflict_is_for_later() -> None:
    table = replace(refusing("None", "TransactionConflict"), backoff=AT_ONCE)

    with pytest.raises(ItemBusy, match="other transactions"):
        unbound(DynamoBindings(table), [TO_QUEUE])


def test_removing_many_bindings_of_which_one_is_missing_repeats_in_conflict_those_that_are_there(
    exchange_table, monkeypatch
) -> None:
    stage = Stage(replace(exchange_table, backoff=AT_ONCE))
    many = [replace(TO_QUEUE, pattern=Pattern.parse(f"a.{number}")) for number in range(5)]
    for one in many[1:]:
        stage.bindings.bind(one)
    transact, calls = exchange_table.client.transact_write_items, []

    def busy_at_first(**given):
        calls.append(len(given["TransactItems"]))
        if len(calls) == 2:
            Refusing("TransactionConflict").transact_write_items()
        return transact(**given)

    monkeypatch.setattr(exchange_table.client, "transact_write_items", busy_at_first)

    assert unbound(stage.bindings, many) == many[1:]
    assert calls == [11, 9, 9]


def test_bindings_of_an_exchange_that_is_just_removed_are_for_later(exchange_table) -> None:
    stage = Stage(exchange_table)
    stage.bindings.bind(TO_QUEUE)
    assert stage.exchanges.forget(stage.exchanges.find(PUBLIC))

    with pytest.raises(ItemBusy, match="is being deleted at this moment"):
        unbound(stage.bindings, [TO_QUEUE])


def test_removing_a_missing_binding_changes_nothing(stage: Stage) -> None:
    assert not stage.bindings.unbind(TO_QUEUE)
    assert stage.versions() == (1, 1, 1)


@pytest.mark.parametrize(
    "bound",
    [
        pytest.param(replace(TO_QUEUE, exchange=ExchangeName("xnone")), id="no-exchange"),
        pytest.param(replace(TO_QUEUE, target=ResourceRef(ResourceKind.QUEUE, "q_none")), id="no-queue"),
        pytest.param(replace(TO_QUEUE, target=ResourceRef(ResourceKind.EXCHANGE, "xnone")), id="no-target-exchange"),
    ],
)
def test_a_binding_requires_both_ends(stage: Stage, bound: Binding) -> None:
    assert stage.bindings.bind(bound) is BindOutcome.REFUSED

    assert stage.bindings.of(bound.exchange) == []
    assert stage.bindings.to(bound.target) == []
    assert stage.versions() == (1, 1, 1)


def test_a_resource_that_is_being_deleted_can_only_be_unbound(stage: Stage) -> None:
    stage.bindings.bind(TO_QUEUE)
    stage.queues.save(replace(QUEUE, is_deleting=True), replacing=QUEUE)

    assert stage.bindings.bind(TO_QUEUE) is BindOutcome.REFUSED
    assert stage.bindings.bind(replace(TO_QUEUE, pattern=Pattern.parse("a"))) is BindOutcome.REFUSED
    assert stage.bindings.unbind(TO_QUEUE)

    stage.exchanges.save(replace(OTHER, is_deleting=True), replacing=OTHER)
    assert stage.bindings.bind(TO_EXCHANGE) is BindOutcome.REFUSED


def test_a_binding_makes_a_concurrent_deletion_fail(stage: Stage) -> None:
    stage.bindings.bind(TO_EXCHANGE)

    assert not stage.exchanges.forget(EXCHANGE)
    assert not stage.exchanges.forget(OTHER)


def test_bindings_of_a_record_that_goes_at_this_moment_are_for_later(exchange_table) -> None:
    stage = Stage(exchange_table)
    stage.bindings.bind(TO_EXCHANGE)
    found = stage.exchanges.find(OURS)
    assert found is not None
    stage.exchanges.forget(found)

    with pytest.raises(ItemBusy, match=r"exchange 'xs_alice\.fifo' or exchange 'xpublic' is being deleted"):
        stage.bindings.unbind(TO_EXCHANGE)


def test_lists_have_no_settings_and_no_change_of_bindings_is_one_of_the_index(exchange_table) -> None:
    """The index has one partition for all exchanges, which takes 1,000 writes a second."""
    stage, rules = Stage(exchange_table), {f"{number:03}" + "x" * 100: Retention(count=1) for number in range(80)}
    live = replace(OTHER, live=LiveSettings(rules=rules))
    stage.exchanges.save(live, replacing=OTHER)
    listed = list(exchange_table.of_kind("exchange"))

    stage.bindings.bind(TO_EXCHANGE)
    stage.bindings.unbind(TO_EXCHANGE)

    assert list(exchange_table.of_kind("exchange")) == listed
    assert max(len(str(one)) for one in listed) < 300
    assert len(str(exchange_table.get(record_key(OTHER.resource)))) > 8_000


def test_there_may_be_more_bindings_than_a_page_has(exchange_table) -> None:
    names = [f"{number:04}" + "x" * 240 for number in range(3000)]
    with exchange_table.batch_writer() as batch:
        for name in names:
            item = {"exchange": PUBLIC, "target": "q_a", "target_kind": "queue", "pattern": name}
            batch.put_item(Item={"pk": f"exchange#{PUBLIC}", "sk": f"binding#queue#q_a\n{name}", **item})

    assert [str(bound.pattern) for bound in DynamoBindings(exchange_table).of(PUBLIC)] == names


class Refusing:
    """A client whose transactions are all refused for one reason."""

    def __init__(self, *reasons: str) -> None:
        answer = {"Error": {"Code": "TransactionCanceledException", "Message": "no"}}
        self.error = ClientError(
            answer | {"CancellationReasons": [{"Code": one} for one in reasons]}, "TransactWriteItems"
        )

    def transact_write_items(self, **_: object) -> None:
        raise self.error


def refusing(*reasons: str) -> DynamoTable:
    return DynamoTable(Refusing(*reasons), "Exchanges")  # type: ignore[arg-type]  # its only call


class Counting:
    """A client whose transactions take the same number of units of each table."""

    def __init__(self, units: float) -> None:
        self.units = units

    def transact_write_items(self, *, ReturnConsumedCapacity: str, **_: object) -> object:  # noqa: N803 - botocore's
        assert ReturnConsumedCapacity == "TOTAL"
        return {"ConsumedCapacity": [{"CapacityUnits": self.units}]}


@pytest.mark.parametrize(("units", "pauses"), [(24.0, []), (94.0, [0.188, 0.188])])
def test_changes_of_large_exchanges_take_as_long_as_their_units(units, pauses) -> None:
    found: list[float] = []
    backoff = replace(AT_ONCE, clock=SimpleNamespace(sleep=found.append))
    bindings = DynamoBindings(DynamoTable(Counting(units), "Exchanges", backoff))  # type: ignore[arg-type]  # its only call

    assert (bindings.bind(TO_EXCHANGE), bindings.unbind(TO_EXCHANGE)) == (BindOutcome.BOUND, True)

    assert found == pauses


def test_a_transaction_conflict_is_retryable(aws) -> None:
    with pytest.raises(ItemBusy, match="a concurrent transaction writes to the same records of Exchanges"):
        DynamoBindings(refusing("None", "TransactionConflict")).bind(TO_QUEUE)


def test_another_refusal_is_an_error(aws) -> None:
    with pytest.raises(ClientError, match="TransactionCanceledException"):
        DynamoBindings(refusing("ValidationError")).bind(TO_QUEUE)

    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        DynamoBindings(DynamoTable(boto3.client("dynamodb"), "NoSuchTable")).unbind(TO_QUEUE)
