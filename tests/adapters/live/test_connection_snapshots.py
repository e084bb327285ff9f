"""Connection snapshots in DynamoDB."""

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from signalbox.aws.exchange.counters import DynamoRightsVersion
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoUsers
from signalbox.aws.exchange.items import rights_version_key
from signalbox.aws.exchange.routing_table import DynamoHeads
from signalbox.aws.live.account_items import grants_item
from signalbox.aws.live.cached_rights import CachedRights
from signalbox.aws.live.connection_snapshots import DynamoConnectionSnapshots
from signalbox.aws.live.grants import DynamoSecrets
from signalbox.aws.live.items import group_grants_version_key, principal_key
from signalbox.aws.live.realms import RealmSettings
from signalbox.aws.live.recent import Recent
from signalbox.aws.live.sessions import DynamoSessions
from signalbox.aws.shared.dynamodb import DynamoTable, attributes
from signalbox.aws.shared.expressions import Put
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings, User
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.ports import HeadChange
from signalbox.exchange.routing.sequences import Head, numbered
from signalbox.live.arvados.row_state import RowState
from signalbox.live.identity.tokens import CLUSTER, TokenIdentity
from signalbox.live.log.read_limits import PastTooLarge
from signalbox.live.model.effects import Close
from signalbox.live.model.state import ConnectionId, FrameId, SessionState, opened
from signalbox.live.outbox.decisions import OutboxState, Watermarks, mark_of, raise_watermarks
from signalbox.live.outbox.items import ItemId
from signalbox.live.outbox.snapshots import SnapshotRequest
from signalbox.live.outbox.totals import NO_TOTALS
from signalbox.live.rights.grants import Grant
from signalbox.live.rights.settling import RIGHTS_KEPT_SECONDS, RIGHTS_SETTLE_SECONDS, UNCHANGED_RIGHTS_KEPT_SECONDS
from signalbox.live.wamp.authentication import AuthMethod, Identity, StoredSecret
from signalbox.live.wamp.messages import SubscriptionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role
from tests.fakes.recent import TwoClocks

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
REALM, JOE, CONNECTION = ExchangeName("xs_trial.fifo"), UserName("joe"), ConnectionId("c=")
TOPIC, API = RoutingKey("trial.a"), "https://arvados.example"
GRANT = Grant(Right.READ, TopicPattern.parse("trial.", MatchPolicy.PREFIX))
OPENED = opened(CONNECTION, now=NOW)
JOINED = replace(
    OPENED,
    state=SessionState.JOINED,
    realm=REALM,
    session=7,
    identity=Identity("joe", Role.SUBSCRIBER, AuthMethod.TICKET),
)


@pytest.fixture
def snapshots(live_table, exchange_table) -> DynamoConnectionSnapshots:
    DynamoExchanges(exchange_table).create(ExchangeRecord(REALM, None, NOW, live=LiveSettings(arvados_api=API)))
    DynamoUsers(exchange_table).put(User(JOE, Role.SUBSCRIBER, Ownership.STRICT, NOW, "AIDAJOE"))
    live_table.put_item(Item=grants_item(REALM, JOE, [GRANT], version=1))
    return instance(live_table, exchange_table, TwoClocks())


def instance(live_table, exchange_table, clocks: TwoClocks) -> DynamoConnectionSnapshots:
    """Return the snapshots of a function instance of its own."""
    access = CachedRights(Recent(clocks.now), Recent(clocks.now))
    return DynamoConnectionSnapshots(
        live_table, exchange_table, realms=RealmSettings(Recent(clocks.now)), access=access
    )


def revoke(snapshots: DynamoConnectionSnapshots) -> None:
    """Take the user's grants away, as commands do."""
    snapshots.live.put_item(Item=grants_item(REALM, JOE, [], version=2))
    DynamoRightsVersion(snapshots.exchanges).increment()


def of_events(connection: ConnectionId = CONNECTION, user: UserName = JOE) -> SnapshotRequest:
    return SnapshotRequest(connection, (REALM, user), has_only_events=True)


def of_replies(connection: ConnectionId = CONNECTION) -> SnapshotRequest:
    return SnapshotRequest(connection, None, has_only_events=False)


def may_receive(snapshots: DynamoConnectionSnapshots) -> bool:
    return snapshots.recent([of_events()])[CONNECTION].rights.may_receive(TOPIC)


@dataclass
class UnitCount:
    """DynamoDB with a count of the calls and of the read units that they consume."""

    client: Any
    calls: int = 0
    units: float = 0.0

    def batch_get_item(self, **given: Any) -> Any:
        answer = self.client.batch_get_item(**given, ReturnConsumedCapacity="TOTAL")
        self.calls += 1
        self.units += sum(one["CapacityUnits"] for one in answer["ConsumedCapacity"])
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


@pytest.fixture
def counted(snapshots) -> UnitCount:
    count = UnitCount(snapshots.live.client)
    object.__setattr__(snapshots.live, "client", count)
    return count


def test_the_snapshot_of_an_unknown_connection_is_empty(snapshots) -> None:
    snapshot = snapshots.read(CONNECTION, owner=None)

    assert (snapshot.session, snapshot.outbox, snapshot.live) == (None, OutboxState(), None)
    assert not snapshot.rights.are_any


@pytest.mark.parametrize("owner", [None, (REALM, JOE), (REALM, UserName("eve"))])
def test_a_snapshot_is_complete_whatever_owner_the_caller_gives(snapshots, owner) -> None:
    DynamoSessions(snapshots.live).open(JOINED)

    snapshot = snapshots.read(CONNECTION, owner=owner)

    assert (snapshot.session, snapshot.live) == (JOINED, LiveSettings(arvados_api=API))
    assert (snapshot.rights.may_receive(TOPIC), snapshot.rights.may_receive(RoutingKey("other"))) == (True, False)


def test_unjoined_sessions_and_deleted_users_have_no_rights(snapshots) -> None:
    DynamoSessions(snapshots.live).open(OPENED)
    assert not snapshots.read(CONNECTION, owner=None).rights.are_any

    eve = Identity("eve", Role.ADMIN, AuthMethod.TICKET)
    DynamoSessions(snapshots.live).open(replace(JOINED, connection=ConnectionId("d="), identity=eve))
    assert not snapshots.read(ConnectionId("d="), owner=None).rights.are_any


def test_a_session_has_rights_while_its_user_has_the_secret(live_table, exchange_table, snapshots) -> None:
    clocks = TwoClocks()
    one = instance(live_table, exchange_table, clocks)
    first, second = (StoredSecret.of("of-joe", salt=salt, with_key=False) for salt in ("5a17" * 8, "5a18" * 8))
    DynamoSecrets(snapshots.live).put({JOE: first})
    snapshots.save(CONNECTION, OutboxState(), session=replace(JOINED, secret=first.digest))
    assert may_receive(one)

    DynamoSecrets(snapshots.live).put({JOE: second})
    DynamoRightsVersion(snapshots.exchanges).increment()
    clocks.advance(RIGHTS_SETTLE_SECONDS)

    assert not may_receive(one)
    snapshots.save(CONNECTION, OutboxState(), session=replace(JOINED, secret=second.digest))
    assert may_receive(one)


def test_an_exchange_that_is_being_deleted_is_not_live(snapshots, exchange_table) -> None:
    DynamoSessions(snapshots.live).open(JOINED)
    exchange_table.update_item(
        Key={"pk": f"exchange#{REALM}", "sk": "exchange"},
        UpdateExpression="SET is_leaving = :yes",
        ExpressionAttributeValues={":yes": True},
    )

    assert snapshots.read(CONNECTION, owner=(REALM, JOE)).live is None


def test_an_outbox_state_round_trips(snapshots) -> None:
    one = SubscriptionId(1)
    outbox = OutboxState(
        subscribed=frozenset({one, SubscriptionId(2)}),
        unconfirmed_reply=ItemId("3"),
        done=(ItemId("1"), ItemId("2")),
        pending_backfills={SubscriptionId(2): {TOPIC: 4}},
        watermarks={one: Watermarks(NOW, {mark_of(TOPIC): 9, mark_of(RoutingKey("")): 1})},
        caught_up_at=NOW,
        progress=(ItemId("4"), 5),
        totals=replace(NO_TOTALS.plus(events=1, replies=2, size=3, lags=[timedelta(seconds=4)]), noted_at=NOW),
    )

    rows = RowState(number=3, posted=((1, 4), (6, 6)), posted_at=NOW, deferred=((7, 7),))
    for kept in (outbox, OutboxState(), replace(outbox, rows=rows), OutboxState(rows=RowState(number=1))):
        snapshots.save(CONNECTION, kept, session=None)

        assert snapshots.read(CONNECTION, owner=None).outbox == kept


def test_replies_do_not_write_the_numbers_of_many_topics_again(snapshots, live_table, monkeypatch) -> None:
    one, topics = SubscriptionId(1), [RoutingKey(f"trial.{number}") for number in range(200)]
    many = raise_watermarks(OutboxState(), one, dict.fromkeys(topics, 7), now=NOW)
    rows = RowState(number=3, posted=tuple((number, number) for number in range(0, 400, 2)))
    states = [OutboxState(), many, replace(many, done=(ItemId("1"),)), replace(many, rows=rows)]
    states += [replace(many, pending_backfills={SubscriptionId(2): dict.fromkeys(topics, 4)}), OutboxState(), many]
    written = list[str]()
    write = DynamoTable.write

    def noted(table: DynamoTable, put: Put) -> None:
        written.append(put.item["sk"])
        write(table, put)

    monkeypatch.setattr(DynamoTable, "write", noted)

    both, alone = ["marks", "outbox"], ["outbox"]
    expected = [both, alone, both, both, alone, both]
    for (before, state), of_save in zip(itertools.pairwise(states), expected, strict=True):
        written.clear()
        snapshots.save(CONNECTION, state, session=JOINED, saved=before)

        assert snapshots.read(CONNECTION, owner=None).outbox == state
        (found,) = snapshots.recent([SnapshotRequest(CONNECTION, None, has_only_events=True)]).values()
        assert found.outbox == state
        assert written == of_save


def test_a_state_of_many_topics_fits_whatever_their_names_and_a_larger_one_is_refused(snapshots) -> None:
    chance = random.Random(1)  # noqa: S311 - of a test
    numbers = {RoutingKey(chance.randbytes(120).hex()): chance.randrange(10**9) for _ in range(35_000)}
    some = dict(itertools.islice(numbers.items(), 25_000))

    kept, too_many = (raise_watermarks(OutboxState(), SubscriptionId(1), one, now=NOW) for one in (some, numbers))
    snapshots.save(CONNECTION, kept, session=None)

    assert snapshots.read(CONNECTION, owner=None).outbox == kept
    with pytest.raises(PastTooLarge, match="subscribe to fewer"):
        snapshots.save(CONNECTION, too_many, session=None)


def test_the_newest_number_of_a_topic_is_read_from_its_head(snapshots, exchange_table) -> None:
    change = HeadChange(TOPIC, numbered(Head(), [*map(MessageId, "abc")]), Head())
    DynamoHeads(exchange_table, exchange_table).save(REALM, change)

    assert (snapshots.newest(REALM, TOPIC), snapshots.newest(REALM, RoutingKey("other"))) == (3, 0)


def test_a_batch_of_events_reads_one_item(snapshots, counted) -> None:
    DynamoSessions(snapshots.live).open(JOINED)
    snapshots.save(CONNECTION, OutboxState(), session=JOINED)
    snapshots.recent([of_events()])
    before = counted.calls, counted.units

    snapshot = snapshots.recent([of_events()])[CONNECTION]

    assert (counted.calls - before[0], counted.units - before[1]) == (1, 1.0)
    assert (snapshot.session, snapshot.is_complete, snapshot.rights.may_receive(TOPIC)) == (JOINED, False, True)


def test_the_batches_of_many_connections_are_read_in_one_call(snapshots, counted) -> None:
    connections = [ConnectionId(f"{number}=") for number in range(10)]
    for connection in connections:
        snapshots.save(connection, OutboxState(), session=replace(JOINED, connection=connection))
    before = counted.calls

    found = snapshots.recent([*map(of_events, connections), of_replies(CONNECTION)])

    assert counted.calls - before == 1
    assert {one: snapshot.session and snapshot.session.connection for one, snapshot in found.items()} == {
        **{one: one for one in connections},
        CONNECTION: None,
    }


def test_a_batch_with_replies_reads_the_current_session_and_no_rights(snapshots, counted) -> None:
    DynamoSessions(snapshots.live).open(JOINED)
    snapshots.save(CONNECTION, OutboxState(), session=OPENED)
    before = counted.units

    snapshot = snapshots.recent([of_replies()])[CONNECTION]

    assert (snapshot.session, snapshot.is_complete, snapshot.rights.are_any) == (JOINED, False, False)
    assert counted.units - before == 2.0


@pytest.mark.parametrize("copied", [None, OPENED, replace(JOINED, realm=ExchangeName("xs_other.fifo"))])
def test_without_a_copy_of_the_right_session_everything_is_read(snapshots, copied) -> None:
    DynamoSessions(snapshots.live).open(JOINED)
    snapshots.save(CONNECTION, OutboxState(), session=copied)

    snapshot = snapshots.recent([of_events()])[CONNECTION]

    assert (snapshot.session, snapshot.is_complete, snapshot.rights.may_receive(TOPIC)) == (JOINED, True, True)


def test_an_outbox_that_was_never_saved_has_no_copy(snapshots) -> None:
    DynamoSessions(snapshots.live).open(JOINED)

    assert snapshots.recent([of_events()])[CONNECTION].is_complete


def test_the_copy_of_a_session_leaves_out_what_only_the_function_session_needs(snapshots) -> None:
    busy = replace(JOINED, frames=(FrameId("f"),), pending={FrameId("f"): (Close(),)}, challenge="c")
    snapshots.save(CONNECTION, OutboxState(), session=busy)

    assert snapshots.recent([of_events()])[CONNECTION].session == JOINED


@pytest.fixture
def every_item(snapshots) -> None:
    """Store the items that a user may lack; DynamoDB bills a missing item as one, and DynamoDB Local does not."""
    for key in (principal_key(REALM, JOE), group_grants_version_key(REALM)):
        snapshots.live.put_item(Item=key)
    DynamoSecrets(snapshots.live).put({JOE: StoredSecret("", "")})
    DynamoRightsVersion(snapshots.exchanges).increment()


def units(counted: UnitCount, snapshots: DynamoConnectionSnapshots) -> tuple[int, float]:
    """Return the calls and read units of a batch of events."""
    before = counted.calls, counted.units
    snapshots.recent([of_events()])
    return counted.calls - before[0], counted.units - before[1]


@pytest.mark.usefixtures("every_item")
def test_rights_are_read_once_a_minute_and_their_version_once_a_second(
    live_table, exchange_table, snapshots, counted
) -> None:
    clocks = TwoClocks()
    one = instance(live_table, exchange_table, clocks)
    snapshots.save(CONNECTION, OutboxState(), session=JOINED)
    outbox, version, rights = 1, 1, 6  # the units of each

    assert units(counted, one) == (1, outbox + version + rights)
    assert units(counted, one) == (1, outbox)
    clocks.advance(2)
    # The first items were read before any version was known.
    assert units(counted, one) == (1, outbox + version + rights)
    for _ in range(3):
        clocks.advance(2)
        assert units(counted, one) == (1, outbox + version)
        assert units(counted, one) == (1, outbox)
    clocks.advance(UNCHANGED_RIGHTS_KEPT_SECONDS - 6)
    assert units(counted, one) == (1, outbox + version + rights)


@pytest.mark.usefixtures("every_item")
def test_a_change_lets_an_instance_read_all_rights_again(live_table, exchange_table, snapshots, counted) -> None:
    clocks = TwoClocks()
    one = instance(live_table, exchange_table, clocks)
    snapshots.save(CONNECTION, OutboxState(), session=JOINED)
    for _ in range(2):
        assert may_receive(one)
        clocks.advance(RIGHTS_SETTLE_SECONDS)

    revoke(snapshots)

    assert units(counted, one) == (2, 1 + 1 + 6)
    assert not may_receive(one)
    clocks.advance(RIGHTS_SETTLE_SECONDS)
    assert units(counted, one) == (1, 1 + 1)


@pytest.mark.parametrize("batches", [1, 2, 3, 10])
def test_no_instance_uses_a_revoked_grant_when_the_revocation_has_settled(
    live_table, exchange_table, snapshots, batches
) -> None:
    """The revocation comes right after the read of one instance, and before the first read of the other."""
    clocks = [TwoClocks(), TwoClocks()]
    instances = [instance(live_table, exchange_table, one) for one in clocks]
    snapshots.save(CONNECTION, OutboxState(), session=JOINED)
    for _ in range(batches):
        clocks[0].advance(RIGHTS_SETTLE_SECONDS)
        assert may_receive(instances[0])

    revoke(snapshots)

    assert [may_receive(one) for one in instances] == [True, False]
    for one in clocks:
        one.advance(RIGHTS_SETTLE_SECONDS)
    assert [may_receive(one) for one in instances] == [False, False]


def test_a_revocation_between_the_reads_of_one_call_is_noticed(
    live_table, exchange_table, snapshots, counted, monkeypatch
) -> None:
    """A call reads its items one after the other, so it may return the old grants with the new version."""
    clocks = TwoClocks()
    one = instance(live_table, exchange_table, clocks)
    snapshots.save(CONNECTION, OutboxState(), session=JOINED)
    read = counted.client.batch_get_item

    def interrupted(**given: Any) -> Any:
        answer = read(**given)
        revoke(snapshots)
        keys = [attributes(rights_version_key())]
        newest = read(RequestItems={exchange_table.name: {"Keys": keys, "ConsistentRead": True}})
        found = answer["Responses"][exchange_table.name]
        found[:] = [item for item in found if item["pk"]["S"] != rights_version_key()["pk"]]
        found += newest["Responses"][exchange_table.name]
        monkeypatch.setattr(counted, "client", WithReads(counted.client, read))
        return answer

    for _ in range(2):
        assert may_receive(one)
        clocks.advance(UNCHANGED_RIGHTS_KEPT_SECONDS)
    monkeypatch.setattr(counted, "client", WithReads(counted.client, interrupted))

    assert may_receive(one)
    clocks.advance(RIGHTS_SETTLE_SECONDS)
    assert not may_receive(one)


@dataclass
class WithReads:
    """DynamoDB with another function for reads of several items."""

    client: Any
    batch_get_item: Callable[..., Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


def test_a_new_grant_counts_within_a_second(live_table, exchange_table, snapshots) -> None:
    clocks = TwoClocks()
    one = instance(live_table, exchange_table, clocks)
    snapshots.save(CONNECTION, OutboxState(), session=JOINED)
    live_table.put_item(Item=grants_item(REALM, JOE, [], version=1))
    for _ in range(3):
        clocks.advance(RIGHTS_SETTLE_SECONDS)
        assert not may_receive(one)

    live_table.put_item(Item=grants_item(REALM, JOE, [GRANT], version=2))
    DynamoRightsVersion(exchange_table).increment()
    clocks.advance(RIGHTS_KEPT_SECONDS)

    assert may_receive(one)


def test_a_change_without_a_new_version_counts_after_a_minute(live_table, exchange_table, snapshots) -> None:
    """So does one by a command that was killed."""
    clocks = TwoClocks()
    one = instance(live_table, exchange_table, clocks)
    snapshots.save(CONNECTION, OutboxState(), session=JOINED)
    for _ in range(2):
        clocks.advance(RIGHTS_SETTLE_SECONDS)
        assert may_receive(one)

    live_table.put_item(Item=grants_item(REALM, JOE, [], version=2))
    clocks.advance(UNCHANGED_RIGHTS_KEPT_SECONDS)

    assert not may_receive(one)


def test_no_instance_uses_the_rights_of_a_removed_user_when_that_has_settled(
    live_table, exchange_table, snapshots
) -> None:
    clocks = TwoClocks()
    one = instance(live_table, exchange_table, clocks)
    snapshots.save(CONNECTION, OutboxState(), session=JOINED)
    for _ in range(2):
        clocks.advance(RIGHTS_SETTLE_SECONDS)
        assert may_receive(one)

    DynamoUsers(exchange_table).remove(JOE)
    DynamoRightsVersion(exchange_table).increment()
    clocks.advance(RIGHTS_SETTLE_SECONDS)

    assert not may_receive(one)


def test_a_complete_read_is_current_and_is_remembered(live_table, exchange_table, snapshots) -> None:
    snapshots.save(CONNECTION, OutboxState(), session=JOINED)
    DynamoSessions(live_table).open(JOINED)
    assert may_receive(snapshots)
    live_table.put_item(Item=grants_item(REALM, JOE, [], version=2))

    assert not snapshots.read(CONNECTION, owner=(REALM, JOE)).rights.may_receive(TOPIC)
    assert not may_receive(snapshots)


def test_the_state_of_an_outbox_is_current_when_instances_take_turns(live_table, exchange_table, snapshots) -> None:
    """One instance posts events, another one UNSUBSCRIBED, and the first one events again."""
    one, other = (instance(live_table, exchange_table, TwoClocks()) for _ in range(2))
    subscription = SubscriptionId(1)
    one.save(CONNECTION, OutboxState(subscribed=frozenset({subscription})), session=JOINED)
    assert one.recent([of_events()])[CONNECTION].outbox.subscribed == {subscription}

    other.save(CONNECTION, OutboxState(), session=JOINED)

    assert one.recent([of_events()])[CONNECTION].outbox.subscribed == frozenset()


def test_the_rights_of_a_token_s_user_are_those_of_the_name_without_a_record(snapshots) -> None:
    identity = TokenIdentity(CLUSTER, Role.SUBSCRIBER, (), NOW + timedelta(hours=1), trust=API)
    of_token = replace(JOINED, token=identity)
    DynamoSessions(snapshots.live).open(of_token)

    assert not snapshots.read(CONNECTION, owner=None).rights.are_any  # `joe` is a user of the stage

    other = replace(of_token, connection=ConnectionId("d="), identity=replace(JOINED.identity, authid="ann@lab"))
    DynamoSessions(snapshots.live).open(other)
    snapshots.live.put_item(Item=grants_item(REALM, UserName("ann@lab"), [GRANT], version=1))
    snapshot = snapshots.read(other.connection, owner=None)
    assert snapshot.session == other
    assert snapshot.rights.may_receive(TOPIC)
