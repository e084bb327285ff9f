"""The stores of exchanges, queues and users: DynamoDB (on moto) and memory behave alike."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoQueues, DynamoUsers, UsersChanged
from signalbox.aws.exchange.items import LEFT
from signalbox.aws.exchange.routing_table import DynamoRoutingTable
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.events import ADMINISTRATOR
from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.ports import Exchanges, Queues, Users
from signalbox.exchange.model.records import (
    DeclaredQueue,
    ExchangeRecord,
    LiveSettings,
    OrderBy,
    QueueSettings,
    Retention,
    User,
)
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.fakes.aws import STORES
from tests.fakes.clock import START
from tests.fakes.exchange import MemoryExchanges, MemoryQueues, MemoryUsers

SECOND = timedelta(seconds=1)
PUBLIC, OURS = ExchangeName("xpublic"), ExchangeName("xs_alice.fifo")
ALICE, BOB = UserName("alice"), UserName("bob")
EXCHANGE = ExchangeRecord(PUBLIC, created_by=None, created_at=START)
QUEUE = DeclaredQueue(DeclaredName("q_alice.a#b"), owner=ALICE, created_at=START, declared_at=START)
LIVE = LiveSettings(
    order_by=OrderBy.EXCHANGE,
    anonymous=BOB,
    retention=Retention(count=5),
    rules={"": Retention(age=SECOND), "logs.": Retention()},
    issuers=(
        Issuer("https://id.example.org", "signalbox"),
        Issuer("https://a.example.org", "a", "lab", "email", "role", "roles", 0, "page", ("https://b.example.org",)),
    ),
    arvados=True,
    earlier=(Retention(), Retention(age=SECOND)),
)
USER = User(ALICE, Role.SOURCE, Ownership.STRICT, START, "AIDA1")
LIVE_ONLY = User(BOB, Role.SUBSCRIBER, Ownership.STRICT, START, None)


def made(memory: Callable[[], object], adapter: Callable[[object], object]) -> object:
    @pytest.fixture(params=STORES)
    def port(request: pytest.FixtureRequest) -> object:
        return memory() if request.param == "memory" else adapter(request.getfixturevalue("exchange_table"))

    return port


exchanges = made(MemoryExchanges, DynamoExchanges)
queues = made(MemoryQueues, DynamoQueues)
users = made(MemoryUsers, DynamoUsers)


KINDS = {
    "exchange": (MemoryExchanges, DynamoExchanges, EXCHANGE, replace(EXCHANGE, alternate=OURS)),
    "queue": (MemoryQueues, DynamoQueues, QUEUE, replace(QUEUE, settings=QueueSettings(prefetch=1))),
}


@pytest.fixture(params=STORES)
def resources(request: pytest.FixtureRequest, kind: str) -> tuple[Any, Any, Any]:
    """Return a store, a record, and the same with a change."""
    memory, adapter, *records = KINDS[kind]
    store = memory() if request.param == "memory" else adapter(request.getfixturevalue("exchange_table"))
    return store, *records


@pytest.mark.parametrize("kind", KINDS)
class TestRecords:
    def test_a_second_record_of_a_name_is_not_stored(self, resources) -> None:
        store, record, changed = resources
        store.create(record)

        assert not store.create(changed)
        assert store.find(record.name) == record

    def test_a_change_counts_once_only(self, resources) -> None:
        store, record, changed = resources
        store.create(record)

        saved = store.save(changed, replacing=record)

        assert saved == replace(changed, version=2)
        assert store.find(record.name) == saved
        assert store.save(record, replacing=record) is None

    def test_a_change_does_not_restore_a_deleted_record(self, resources) -> None:
        store, record, _ = resources

        assert store.save(record, replacing=record) is None
        assert store.find(record.name) is None

    def test_a_record_is_forgotten_as_it_was_read_or_not_at_all(self, resources) -> None:
        store, record, _ = resources
        store.create(record)
        saved = store.save(record, replacing=record)
        assert saved is not None

        assert not store.forget(record)
        assert store.find(record.name) == saved
        assert store.forget(saved)
        assert store.find(record.name) is None
        assert not store.forget(saved)


class TestExchanges:
    def test_one_exchange_at_a_time_is_the_realm_of_arvados(self, exchanges: Exchanges) -> None:
        assert exchanges.arvados_realm() is None
        assert exchanges.make_arvados_realm(PUBLIC, replacing=None)
        assert not exchanges.make_arvados_realm(OURS, replacing=None)
        assert exchanges.arvados_realm() == PUBLIC
        assert exchanges.make_arvados_realm(OURS, replacing=PUBLIC)
        assert not exchanges.make_arvados_realm(PUBLIC, replacing=PUBLIC)
        assert exchanges.arvados_realm() == OURS

    @pytest.mark.parametrize(
        "exchange",
        [
            pytest.param(replace(EXCHANGE, name=OURS, created_by=ALICE), id="ordered-of-a-user"),
            pytest.param(replace(EXCHANGE, alternate=OURS, is_deleting=True, version=7), id="leaving-with-alternate"),
            pytest.param(replace(EXCHANGE, name=OURS, live=LiveSettings()), id="live"),
            pytest.param(replace(EXCHANGE, name=OURS, live=LIVE), id="live-with-rules"),
        ],
    )
    def test_a_record_comes_back_as_it_was_stored(self, exchanges: Exchanges, exchange: ExchangeRecord) -> None:
        assert exchanges.create(exchange)

        assert exchanges.find(exchange.name) == exchange

    def test_all_are_listed_by_name(self, exchanges: Exchanges) -> None:
        other = replace(EXCHANGE, name=OURS)
        for exchange in (other, EXCHANGE):
            exchanges.create(exchange)

        assert exchanges.every() == [EXCHANGE.listed, other.listed]
        assert exchanges.every(prefix=OURS) == [other.listed]

    def test_a_change_and_a_deletion_are_listed(self, exchanges: Exchanges) -> None:
        for exchange in (EXCHANGE, replace(EXCHANGE, name=OURS, live=LIVE)):
            exchanges.create(exchange)
        assert exchanges.live() == [replace(EXCHANGE, name=OURS, live=LIVE)]

        changed = exchanges.save(replace(EXCHANGE, alternate=OURS, is_deleting=True), replacing=EXCHANGE)
        assert changed is not None
        assert exchanges.forget(exchanges.live()[0])

        assert (exchanges.every(), exchanges.live()) == ([changed.listed], [])
        assert (changed.listed.alternate, changed.listed.is_deleting) == (OURS, True)


class TestQueues:
    @pytest.mark.parametrize(
        "queue",
        [
            pytest.param(QUEUE, id="of-a-user"),
            pytest.param(replace(QUEUE, owner=None, consumed_at=START + SECOND), id="of-an-administrator-consumed"),
            pytest.param(replace(QUEUE, settings=QueueSettings(2 * SECOND, SECOND / 2, 1, 1000)), id="settings"),
            pytest.param(replace(QUEUE, is_deleting=True, version=3), id="leaving"),
        ],
    )
    def test_a_record_comes_back_as_it_was_stored(self, queues: Queues, queue: DeclaredQueue) -> None:
        assert queues.create(queue)

        assert queues.find(queue.name) == queue
        assert queues.every() == queues.every(prefix=queue.name) == [queue]
        assert queues.every(prefix=f"{queue.name}_") == []

    def test_a_heartbeat_changes_the_version(self, queues: Queues) -> None:
        """A concurrent deletion of the unused queue must fail."""
        queues.create(QUEUE)

        recorded = queues.record_heartbeat(QUEUE.name, now=START + SECOND)

        assert recorded == replace(QUEUE, consumed_at=START + SECOND, version=2)
        assert queues.find(QUEUE.name) == recorded
        assert not queues.forget(QUEUE)

    def test_a_heartbeat_does_not_restore_a_deleted_queue(self, queues: Queues) -> None:
        assert queues.record_heartbeat(QUEUE.name, now=START) is None
        assert queues.find(QUEUE.name) is None

        queues.create(replace(QUEUE, is_deleting=True))
        assert queues.record_heartbeat(QUEUE.name, now=START) is None


def test_a_left_queue_is_none_that_is_declared(exchange_table) -> None:
    declared, left = DynamoQueues(exchange_table), DynamoQueues(exchange_table, LEFT)
    left.create(QUEUE)
    assert (declared.find(QUEUE.name), declared.every(), left.every(prefix="q_alice")) == (None, [], [QUEUE])
    declared.create(QUEUE)

    assert left.forget(QUEUE)

    assert (declared.find(QUEUE.name), left.every()) == (QUEUE, [])


class TestUsers:
    def test_a_user_is_found_by_name(self, users: Users) -> None:
        assert users.find(ALICE) is None

        users.put(USER)

        assert users.find(ALICE) == USER
        assert users.every() == [USER]

    def test_a_user_is_found_by_the_id_of_a_sender(self, users: Users) -> None:
        users.put(USER)

        assert users.find_sender(str(USER.user_id)) == USER.name
        assert users.find_sender("AIDASOMEBODYELSE") is None

    def test_an_administrator_is_noted_and_a_user_stays_one(self, users: Users) -> None:
        users.put(USER)

        for user_id in (str(USER.user_id), "AIDAADMIN", "AIDAADMIN"):
            users.note_administrator(user_id)

        assert users.find_sender("AIDAADMIN") == ADMINISTRATOR
        assert users.find_sender(str(USER.user_id)) == USER.name

    def test_a_user_is_stored_and_removed_twice_as_once(self, users: Users) -> None:
        again = replace(USER, user_id="AIDA2", role=Role.SUBSCRIBER)

        users.put(USER)
        for _ in range(2):
            users.put(again)
        assert users.find(ALICE) == again

        for _ in range(2):
            users.remove(ALICE)
        assert users.find(ALICE) is None


class TestLiveOnlyUsers:
    def test_a_live_only_user_is_found_by_name_and_listed_apart(self, users: Users) -> None:
        users.put(USER)
        users.put(LIVE_ONLY)

        assert users.find(BOB) == LIVE_ONLY
        assert users.find_all([ALICE, BOB, UserName("carol"), BOB]) == {ALICE: USER, BOB: LIVE_ONLY}
        assert users.every() == [USER]
        assert list(users.live_only()) == [LIVE_ONLY]

    def test_a_user_changes_between_the_kinds(self, users: Users) -> None:
        full = replace(LIVE_ONLY, user_id="AIDA2")

        for user in (LIVE_ONLY, full, LIVE_ONLY, full):
            users.put(user)
            assert users.find(BOB) == user
            assert (users.every(), list(users.live_only())) == (([], [user]) if user.is_live_only else ([user], []))

    def test_a_live_only_user_is_removed_twice_as_once(self, users: Users) -> None:
        users.put(LIVE_ONLY)

        for _ in range(2):
            users.remove(BOB)
        assert users.find(BOB) is None


def test_live_only_users_are_stored_a_hundred_at_a_time(exchange_table) -> None:
    users = DynamoUsers(exchange_table)
    many = [replace(LIVE_ONLY, name=UserName(f"lee{number:03}")) for number in range(101)]

    for some in (many[:1], many):  # the first is stored twice
        users.put_live_only(some)

    assert list(users.live_only()) == many
    assert users.find_all([one.name for one in many]) == {one.name: one for one in many}


def test_a_user_with_an_identity_is_not_replaced_by_a_live_only_one(exchange_table) -> None:
    users = DynamoUsers(exchange_table)
    users.put(USER)

    with pytest.raises(UsersChanged, match="users alice got"):
        users.put_live_only([LIVE_ONLY, replace(USER, user_id=None)])

    assert (users.find(ALICE), users.find(BOB)) == (USER, None)


def test_a_user_who_becomes_live_only_is_no_sender_any_more(exchange_table) -> None:
    users = DynamoUsers(exchange_table)
    users.put(USER)

    users.put(replace(USER, user_id=None))

    assert dict(DynamoRoutingTable(exchange_table).snapshot([], senders=["AIDA1", ""]).users) == {}


def test_the_router_knows_a_user_by_the_newest_sender_id_until_the_user_is_removed(exchange_table) -> None:
    users, senders = DynamoUsers(exchange_table), ["AIDA1", "AIDA2"]

    def known() -> dict[str, UserName]:
        return dict(DynamoRoutingTable(exchange_table).snapshot([], senders=senders).users)

    users.put(USER)
    assert known() == {"AIDA1": ALICE}
    users.put(replace(USER, user_id="AIDA2"))
    assert known() == {"AIDA2": ALICE}
    users.remove(ALICE)
    assert known() == {}


def test_heads_are_deleted_in_parts(exchange_table) -> None:
    exchanges, looks = DynamoExchanges(exchange_table), iter([False, False, True])
    for name in (PUBLIC, OURS):
        for number in range(60):
            exchange_table.put_item(Item={"pk": f"head#{name}", "sk": f"key#{number}"})

    assert not exchanges.delete_heads(PUBLIC, is_over=lambda: next(looks))

    assert len(exchange_table.scan()["Items"]) == 70
    assert exchanges.delete_heads(PUBLIC, is_over=lambda: False)
    assert {item["pk"] for item in exchange_table.scan()["Items"]} == {f"head#{OURS}"}


def test_an_exchange_is_forgotten_without_the_heads_which_end_by_themselves(exchange_table) -> None:
    exchanges = DynamoExchanges(exchange_table)
    exchanges.create(EXCHANGE)
    heads = [{"pk": f"head#{name}", "sk": key} for name in (PUBLIC, OURS) for key in ("-", "a.b")]
    for head in heads:
        exchange_table.put_item(Item=head)

    assert not exchanges.forget(replace(EXCHANGE, version=7))
    assert len(exchange_table.scan()["Items"]) == 6
    assert exchanges.forget(EXCHANGE)

    assert {item["pk"] for item in exchange_table.scan()["Items"]} == {f"head#{OURS}", f"head#{PUBLIC}"}
