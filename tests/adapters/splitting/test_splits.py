"""The contract of the split stores, for the table (on moto) and the in-memory ports."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from signalbox.aws.shared.dynamodb import ItemBusy
from signalbox.aws.splitting.locks import DynamoHeartbeats, DynamoLedger, DynamoLocks, DynamoQueueUses
from signalbox.aws.splitting.splits import DynamoRegistries, DynamoSplits, SplitTooLarge
from signalbox.aws.splitting.target_notes import DynamoAnnotations, DynamoSamples
from signalbox.queues import QueueName
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import QueueUse, Sample
from signalbox.splitting.model.records import UnreadableRecord
from signalbox.splitting.model.split import Phase, Split, Stage
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import StoredRegistry, StoredSplit, UnreadableSplit
from tests.fakes.aws import STORES
from tests.fakes.clock import START
from tests.fakes.splitting import MemoryStore
from tests.unit.splitting.control.observed_states import session, split

SECOND = timedelta(seconds=1)
MEMES, ORDERS = QueueName("memes"), QueueName("orders.fifo")
APP, OTHER = Target.parse("lambda/meme-app"), Target.parse("ecs/cluster/meme-app")
DOCUMENTS = [{"kind": "MirrordSplitConfig", "spec": {"queues": []}}]
RECORD = split(Stage.STARTING, session(phase=Phase.STARTING), originals=(MEMES, ORDERS))
STORED = StoredSplit(RECORD, 1, ())


def size(item) -> int:
    return len(json.dumps(item, default=str))


class DynamoStore:
    """The adapters, with the fields of `MemoryStore`."""

    def __init__(self, table) -> None:
        self.table = table
        self.splits, self.locks, self.registries = DynamoSplits(table), DynamoLocks(table), DynamoRegistries(table)
        self.samples, self.annotations, self.ledger = (
            DynamoSamples(table),
            DynamoAnnotations(table),
            DynamoLedger(table),
        )
        self.uses, self.heartbeats = DynamoQueueUses(table), DynamoHeartbeats(table)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> MemoryStore | DynamoStore:
    return MemoryStore() if request.param == "memory" else DynamoStore(request.getfixturevalue("split_table"))


def of(target: Target, *originals: QueueName) -> Split:
    return replace(split(Stage.STARTING, originals=originals), target=target)


class TestSplits:
    def test_a_record_is_found_by_its_target_and_by_each_queue(self, store):
        stored = store.splits.create(RECORD, documents=DOCUMENTS)

        found = [store.splits.find(APP), store.splits.of_queue(MEMES), store.splits.of_queue(ORDERS)]
        assert found == [stored] * 3
        assert (stored.split, list(stored.documents)) == (RECORD, DOCUMENTS)

    def test_an_unknown_split_is_not_found(self, store):
        assert store.splits.find(APP) is None
        assert store.splits.of_queue(MEMES) is None
        assert store.splits.every() == []

    def test_a_target_has_one_split(self, store):
        stored = store.splits.create(RECORD, documents=DOCUMENTS)

        assert store.splits.create(of(APP, QueueName("others")), documents=[]) is None
        assert store.splits.find(APP) == stored
        assert store.splits.of_queue(QueueName("others")) is None

    def test_a_queue_belongs_to_one_split(self, store):
        stored = store.splits.create(RECORD, documents=DOCUMENTS)

        assert store.splits.create(of(OTHER, QueueName("free"), MEMES), documents=[]) is None
        assert store.splits.find(OTHER) is None
        assert store.splits.of_queue(QueueName("free")) is None
        assert store.splits.of_queue(MEMES) == stored

    def test_all_splits_are_listed(self, store):
        first = store.splits.create(RECORD, documents=DOCUMENTS)
        second = store.splits.create(of(OTHER, QueueName("others")), documents=[])
        store.registries.put(StoredRegistry(APP, DOCUMENTS, START))

        assert sorted(store.splits.every(), key=str) == sorted([first, second], key=str)

    def test_a_changed_record_replaces_the_one_that_was_read_and_keeps_the_documents(self, store):
        read = store.splits.create(RECORD, documents=DOCUMENTS)
        changed = replace(RECORD, stage=Stage.SPLIT, was_split=True)

        saved = store.splits.save(changed, replacing=read)

        assert (saved.split, saved.version, list(saved.documents)) == (changed, read.version + 1, DOCUMENTS)
        assert store.splits.find(APP) == saved

    def test_a_known_record_is_found_until_it_changes(self, store):
        first = store.splits.create(RECORD, documents=DOCUMENTS)
        assert store.splits.of_queue(MEMES, known=first) is first

        second = store.splits.save(replace(RECORD, stage=Stage.SPLIT), replacing=first)
        third = store.splits.save(replace(RECORD, stage=Stage.DRAINING), replacing=second)
        assert store.splits.save(RECORD, replacing=first) is None

        assert [store.splits.of_queue(MEMES, known=one) for one in (first, second, third)] == [third] * 3

    def test_a_known_record_of_an_earlier_split_of_the_target_is_not_found(self, store):
        earlier = store.splits.create(RECORD, documents=DOCUMENTS)
        store.splits.forget(earlier)
        assert store.splits.of_queue(MEMES, known=earlier) is None

        later = store.splits.create(replace(RECORD, since=RECORD.since + SECOND), documents=[])

        assert store.splits.of_queue(MEMES, known=earlier) == later

    def test_the_first_of_two_concurrent_writes_wins(self, store):
        read = store.splits.create(RECORD, documents=DOCUMENTS)
        first = store.splits.save(replace(RECORD, stage=Stage.SPLIT), replacing=read)

        assert store.splits.save(replace(RECORD, stage=Stage.RESTORING), replacing=read) is None
        assert not store.splits.forget(read)
        assert store.splits.find(APP) == first

    def test_a_deleted_record_frees_its_queues_and_loses_its_samples_and_annotations(self, store):
        stored = store.splits.create(RECORD, documents=DOCUMENTS)
        store.annotations.put(APP, "old", "value")
        store.samples.add(APP, {MEMES: Sample(START, 0, 0)})

        assert store.splits.forget(stored)

        assert store.splits.find(APP) is None
        assert (dict(store.annotations.of(APP)), dict(store.samples.add(APP, {}))) == ({}, {})
        assert store.splits.create(of(OTHER, MEMES), documents=[]) is not None

    def test_a_deleted_record_can_be_neither_written_nor_deleted_again(self, store):
        stored = store.splits.create(RECORD, documents=DOCUMENTS)
        store.splits.forget(stored)

        assert not store.splits.forget(stored)
        assert store.splits.save(RECORD, replacing=stored) is None
        assert store.splits.find(APP) is None

    def test_a_registry_outlives_its_split(self, store):
        store.registries.put(StoredRegistry(APP, DOCUMENTS, START))
        store.splits.forget(store.splits.create(RECORD, documents=DOCUMENTS))

        assert store.registries.find(APP) is not None


class TestLocks:
    def take(self, store, holder: str, *, at: int, until: int) -> bool:
        return store.locks.acquire(APP, holder=holder, now=START + at * SECOND, until=START + until * SECOND)

    def test_a_lock_has_one_holder(self, store):
        assert self.take(store, "a", at=0, until=30)

        assert not self.take(store, "b", at=29, until=60)
        assert store.locks.acquire(OTHER, holder="b", now=START, until=START + SECOND)

    def test_a_holder_can_extend_its_lock(self, store):
        self.take(store, "a", at=0, until=30)

        assert self.take(store, "a", at=20, until=50)
        assert not self.take(store, "b", at=30, until=60)

    def test_an_expired_lock_is_free(self, store):
        self.take(store, "a", at=0, until=30)

        assert self.take(store, "b", at=30, until=60)

    def test_only_the_holder_releases_a_lock(self, store):
        self.take(store, "a", at=0, until=30)

        store.locks.release(APP, holder="b")
        assert not self.take(store, "b", at=1, until=30)
        store.locks.release(APP, holder="a")
        assert self.take(store, "b", at=1, until=30)

    def test_releasing_a_free_lock_is_ignored(self, store):
        store.locks.release(APP, holder="a")

        assert self.take(store, "b", at=0, until=30)


class TestRegistries:
    def test_a_registry_replaces_an_older_one(self, store):
        older = StoredRegistry(APP, (), START)
        newer = StoredRegistry(APP, tuple(DOCUMENTS), START + SECOND)
        store.registries.put(older)
        store.registries.put(newer)

        assert store.registries.find(APP) == newer
        assert store.registries.every() == [newer]

    def test_a_registry_keeps_the_cluster_that_it_was_read_from(self, store):
        registry = StoredRegistry(APP, tuple(DOCUMENTS), START, "cluster main")
        store.registries.put(registry)

        assert store.registries.find(APP) == registry

    def test_registries_are_found_by_their_target_and_listed_without_splits(self, store):
        registries = [StoredRegistry(target, tuple(DOCUMENTS), START) for target in (OTHER, APP)]
        for registry in registries:
            store.registries.put(registry)
        store.splits.create(RECORD, documents=DOCUMENTS)

        assert sorted(store.registries.every(), key=str) == sorted(registries, key=str)
        assert store.registries.find(Target.parse("ssm//path")) is None


class TestSamples:
    def test_samples_are_returned_oldest_first(self, store):
        first, second = Sample(START, 0, 0), Sample(START + 1.5 * SECOND, 0, 0)
        store.samples.add(APP, {MEMES: first, ORDERS: first})

        added = store.samples.add(APP, {MEMES: second})

        assert dict(added) == {MEMES: (first, second), ORDERS: (first,)}
        assert dict(store.samples.add(OTHER, {ORDERS: second})) == {ORDERS: (second,)}


class TestNotes:
    def test_an_annotation_is_not_overwritten(self, store):
        store.annotations.put(APP, "QUEUE", "memes")
        store.annotations.put(APP, "QUEUE", "mirrord-tmp-memes")
        store.annotations.put(APP, "a name with #, : and spaces", "")

        assert dict(store.annotations.of(APP)) == {"QUEUE": "memes", "a name with #, : and spaces": ""}
        assert dict(store.annotations.of(OTHER)) == {}

    def test_annotations_are_deleted_by_name(self, store):
        for name in ("a", "b", "c: d"):
            store.annotations.put(APP, name, "text")

        store.annotations.remove(APP, ["a", "c: d", "never there"])
        store.annotations.remove(OTHER, ["a"])
        store.annotations.remove(APP, [])

        assert (dict(store.annotations.of(APP)), dict(store.annotations.of(OTHER))) == ({"b": "text"}, {})


class TestHeartbeats:
    def test_the_newest_heartbeats_of_a_splits_sessions_are_found(self, store):
        for number in range(2):
            store.heartbeats.record(APP, SessionId(f"s{number}"), now=START)
        store.heartbeats.record(APP, SessionId("s0"), now=START + 1.5 * SECOND)
        store.heartbeats.record(OTHER, SessionId("s1"), now=START + SECOND)
        sessions = (session(SessionId(name)) for name in ("s0", "s1", "silent"))

        found = store.heartbeats.of(split(Stage.SPLIT, *sessions))

        assert dict(found) == {"s0": START + 1.5 * SECOND, "s1": START}
        assert dict(store.heartbeats.of(split(Stage.SPLIT))) == {}


class TestLedger:
    def test_a_call_is_unfinished_until_its_messages_are_finished_by_whatever_call(self, store):
        first = store.ledger.begin(ORDERS, ["a", "b", "c"], now=START)
        store.ledger.begin(MEMES, ["a"], now=START)
        other = store.ledger.begin(ORDERS, ["y"], now=START - SECOND)
        store.ledger.finish(first, ["b"], redelivered=False)
        again = store.ledger.begin(ORDERS, ["a", "x"], now=START + 2 * SECOND)
        assert sorted(store.ledger.unfinished(ORDERS)) == [START - SECOND, START, START + 2 * SECOND]

        store.ledger.finish(again, ["a", "x"], redelivered=True)
        assert sorted(store.ledger.unfinished(ORDERS)) == [START - SECOND, START]

        store.ledger.finish(other, ["y"], redelivered=False)
        last = store.ledger.begin(ORDERS, ["c"], now=START + 4 * SECOND)
        store.ledger.finish(last, ["c"], redelivered=True)
        assert store.ledger.unfinished(ORDERS) == []
        assert store.ledger.unfinished(MEMES) == [START]

    def test_a_call_ends_with_its_messages_alone_if_none_was_redelivered(self, store):
        store.ledger.begin(ORDERS, ["a"], now=START)
        store.ledger.finish(store.ledger.begin(ORDERS, ["a"], now=START + SECOND), ["a"], redelivered=False)

        assert store.ledger.unfinished(ORDERS) == [START]


class TestDynamo:
    """Cases that only the table has."""

    def test_a_record_of_another_version_is_unreadable(self, split_table):
        splits = DynamoSplits(split_table)
        splits.create(RECORD, documents=DOCUMENTS)
        key = {"pk": "split#lambda/meme-app", "sk": "split"}
        split_table.update_item(
            Key=key,
            UpdateExpression="SET #r = :r",
            ExpressionAttributeNames={"#r": "record"},
            ExpressionAttributeValues={":r": '{"record_version":2}'},
        )

        with pytest.raises(UnreadableRecord, match="version 2"):
            splits.of_queue(MEMES)

        readable = splits.create(of(OTHER, QueueName("others")), documents=[])
        unreadable = UnreadableSplit(str(APP), "record of a split of version 2; expected 1")
        assert sorted(splits.every(), key=str) == sorted([readable, unreadable], key=str)

    def test_a_split_with_more_queues_than_a_transaction_holds_is_refused(self, split_table):
        many = of(APP, *(QueueName(f"q{number}") for number in range(100)))

        with pytest.raises(SplitTooLarge, match="100 queues"):
            DynamoSplits(split_table).create(many, documents=[])

    def test_a_record_that_becomes_too_large_is_refused_and_the_old_one_stays(self, split_table):
        splits = DynamoSplits(split_table)
        stored = splits.create(RECORD, documents=DOCUMENTS)
        large = replace(RECORD, sessions=(session(config="x" * 410_000),))

        with pytest.raises(SplitTooLarge, match="1 sessions"):
            splits.save(large, replacing=stored)
        assert splits.find(APP) == splits.of_queue(MEMES, known=stored) == stored

    def test_a_look_at_an_unchanged_record_and_the_index_cost_a_unit(self, split_table):
        """By whole records, 65 instances would read the 3,000 units a second that a key permits, and three writes a
        second be all that the index takes."""
        splits, sizes = DynamoSplits(split_table), []
        large = replace(RECORD, sessions=(session(config="x" * 380_000),))
        stored = splits.save(large, replacing=splits.create(RECORD, documents=DOCUMENTS))
        split_table.client.meta.events.register(
            "after-call.dynamodb.GetItem", lambda parsed, **_: sizes.append(size(parsed["Item"]))
        )

        splits.of_queue(MEMES)
        splits.of_queue(MEMES, known=stored)

        assert [number > 380_000 for number in sizes] == [False, True, False]
        assert max(sizes[0], sizes[2], *map(size, split_table.of_kind("split"))) < 150

    @pytest.mark.parametrize(
        ("operation", "write"),
        [
            ("transact_write_items", lambda splits: splits.create(RECORD, documents=[])),
            ("update_item", lambda splits: splits.save(RECORD, replacing=STORED)),
            ("transact_write_items", lambda splits: splits.forget(STORED)),
        ],
        ids=["create", "save", "forget"],
    )
    @pytest.mark.parametrize(
        ("code", "expected"), [("TransactionConflictException", ItemBusy), ("InternalServerError", ClientError)]
    )
    def test_conflicts_and_outages_are_retryable(self, split_table, operation, write, code, expected):
        with Stubber(split_table.client) as stub:
            stub.add_client_error(operation, code)

            with pytest.raises(expected):
                write(DynamoSplits(split_table))

    def test_a_conflicting_transaction_is_retried(self, split_table):
        reasons = [{"Code": "None"}, {"Code": "TransactionConflict"}]
        with Stubber(split_table.client) as stub:
            stub.add_client_error(
                "transact_write_items", "TransactionCanceledException", modeled_fields={"CancellationReasons": reasons}
            )

            with pytest.raises(ItemBusy, match="Splits"):
                DynamoSplits(split_table).create(RECORD, documents=[])


def test_a_removed_registry_is_gone(split_table):
    registries = DynamoRegistries(split_table)
    registries.put(StoredRegistry(APP, (), START))

    registries.remove(APP)
    registries.remove(APP)

    assert registries.find(APP) is None


class TestQueueUses:
    def test_a_queue_has_the_latest_use_that_was_recorded(self, store):
        late, early = START + 2 * SECOND, START + SECOND

        taken = [store.uses.extend(MEMES, until=until) for until in (early, late, early)]

        assert taken == [True] * 3
        assert store.uses.of([MEMES, ORDERS]) == {MEMES: QueueUse(late), ORDERS: QueueUse()}

    @pytest.mark.parametrize("until", [None, START], ids=["never used", "used"])
    def test_a_closed_queue_keeps_its_use_and_takes_no_other(self, store, until):
        if until is not None:
            store.uses.extend(MEMES, until=until)

        assert store.uses.close(MEMES, seen=QueueUse(until), now=START)
        assert store.uses.close(MEMES, seen=QueueUse(until), now=START)
        assert not store.uses.extend(MEMES, until=START + SECOND)
        assert store.uses.of([MEMES]) == {MEMES: QueueUse(until, is_closed=True)}

    @pytest.mark.parametrize("seen", [None, START], ids=["never used", "used"])
    def test_a_queue_that_was_used_meanwhile_is_not_closed(self, store, seen):
        store.uses.extend(MEMES, until=START + SECOND)

        assert not store.uses.close(MEMES, seen=QueueUse(seen), now=START)
        assert store.uses.extend(MEMES, until=START + 2 * SECOND)

    def test_a_use_is_kept_longer_than_sqs_keeps_a_message(self, split_table):
        DynamoQueueUses(split_table).extend(MEMES, until=START)

        (item,) = split_table.scan()["Items"]
        assert item["expires_at"] >= (START + timedelta(days=14)).timestamp()
