"""The contract of the split store, held by the table (on moto) and by the ports in memory."""

from dataclasses import replace
from datetime import timedelta

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from signalbox.aws.shared.dynamodb import ItemBusy
from signalbox.aws.splitting.splits import (
    DynamoLedger,
    DynamoLocks,
    DynamoNotes,
    DynamoRegistries,
    DynamoSamples,
    DynamoSplits,
    SplitTooLarge,
)
from signalbox.queues import QueueName
from signalbox.splitting.model.ports import StoredRegistry, StoredSplit, UnreadableSplit
from signalbox.splitting.model.records import UnreadableRecord
from signalbox.splitting.model.split import Phase, Split, Stage
from signalbox.splitting.model.target import Target
from signalbox.splitting.model.world import Sample
from tests.fakes.splitting import START, MemoryStore
from tests.unit.splitting.control.worlds import session, split

SECOND = timedelta(seconds=1)
MEMES, ORDERS = QueueName("memes"), QueueName("orders.fifo")
APP, OTHER = Target.parse("lambda/meme-app"), Target.parse("ecs/cluster/meme-app")
DOCUMENTS = [{"kind": "MirrordSplitConfig", "spec": {"queues": []}}]
RECORD = split(Stage.STARTING, session(phase=Phase.STARTING), originals=(MEMES, ORDERS))
STORED = StoredSplit(RECORD, 1, ())


class DynamoStore:
    """The adapters as `MemoryStore` has them."""

    def __init__(self, table) -> None:
        self.table = table
        self.splits, self.locks, self.registries = DynamoSplits(table), DynamoLocks(table), DynamoRegistries(table)
        self.samples, self.notes, self.ledger = DynamoSamples(table), DynamoNotes(table), DynamoLedger(table)


@pytest.fixture(params=["memory", "dynamodb"])
def store(request: pytest.FixtureRequest) -> MemoryStore | DynamoStore:
    return MemoryStore() if request.param == "memory" else DynamoStore(request.getfixturevalue("split_table"))


def of(target: Target, *originals: QueueName) -> Split:
    return replace(split(Stage.STARTING, originals=originals), target=target)


class TestSplits:
    def test_a_record_comes_back_as_it_was_stored_by_its_target_and_by_each_of_its_queues(self, store):
        stored = store.splits.create(RECORD, documents=DOCUMENTS)

        found = [store.splits.find(APP), store.splits.of_queue(MEMES), store.splits.of_queue(ORDERS)]
        assert found == [stored] * 3
        assert (stored.split, stored.version, list(stored.documents)) == (RECORD, 1, DOCUMENTS)

    def test_nothing_is_found_where_nothing_is(self, store):
        assert store.splits.find(APP) is None
        assert store.splits.of_queue(MEMES) is None
        assert store.splits.every() == []

    def test_a_target_has_one_split(self, store):
        stored = store.splits.create(RECORD, documents=DOCUMENTS)

        assert store.splits.create(of(APP, QueueName("others")), documents=[]) is None
        assert store.splits.find(APP) == stored
        assert store.splits.of_queue(QueueName("others")) is None

    def test_a_queue_belongs_to_one_split_and_nothing_of_a_second_one_is_stored(self, store):
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

        assert (saved.split, saved.version, list(saved.documents)) == (changed, 2, DOCUMENTS)
        assert store.splits.find(APP) == saved

    def test_of_two_who_read_the_same_record_the_first_is_heard(self, store):
        read = store.splits.create(RECORD, documents=DOCUMENTS)
        first = store.splits.save(replace(RECORD, stage=Stage.SPLIT), replacing=read)

        assert store.splits.save(replace(RECORD, stage=Stage.RESTORING), replacing=read) is None
        assert not store.splits.forget(read)
        assert store.splits.find(APP) == first

    def test_a_forgotten_record_is_gone_with_all_that_was_kept_beside_it_and_its_queues_are_free(self, store):
        stored = store.splits.create(RECORD, documents=DOCUMENTS)
        store.notes.put(APP, "old", "value")
        store.samples.note(APP, {MEMES: Sample(START, 0, 0)})

        assert store.splits.forget(stored)

        assert store.splits.find(APP) is None
        assert (dict(store.notes.of(APP)), dict(store.samples.of(APP))) == ({}, {})
        assert store.splits.create(of(OTHER, MEMES), documents=[]) is not None

    def test_a_record_is_neither_changed_nor_forgotten_twice_nor_comes_back_when_it_is_gone(self, store):
        stored = store.splits.create(RECORD, documents=DOCUMENTS)
        store.splits.forget(stored)

        assert not store.splits.forget(stored)
        assert store.splits.save(RECORD, replacing=stored) is None
        assert store.splits.find(APP) is None

    def test_a_session_is_forgotten_with_the_split_and_not_the_registry(self, store):
        store.registries.put(StoredRegistry(APP, DOCUMENTS, START))
        store.splits.forget(store.splits.create(RECORD, documents=DOCUMENTS))

        assert store.registries.find(APP) is not None


class TestLocks:
    def take(self, store, holder: str, *, at: int, until: int) -> bool:
        return store.locks.take(APP, holder=holder, now=START + at * SECOND, until=START + until * SECOND)

    def test_one_works_on_a_target_at_a_time(self, store):
        assert self.take(store, "a", at=0, until=30)

        assert not self.take(store, "b", at=29, until=60)
        assert store.locks.take(OTHER, holder="b", now=START, until=START + SECOND)

    def test_who_has_the_lock_may_keep_it_for_longer(self, store):
        self.take(store, "a", at=0, until=30)

        assert self.take(store, "a", at=20, until=50)
        assert not self.take(store, "b", at=30, until=60)

    def test_the_lock_of_one_who_was_killed_is_free_when_its_time_is_over(self, store):
        self.take(store, "a", at=0, until=30)

        assert self.take(store, "b", at=30, until=60)

    def test_only_who_has_the_lock_gives_it_back(self, store):
        self.take(store, "a", at=0, until=30)

        store.locks.leave(APP, holder="b")
        assert not self.take(store, "b", at=1, until=30)
        store.locks.leave(APP, holder="a")
        assert self.take(store, "b", at=1, until=30)

    def test_a_lock_that_nobody_has_can_be_given_back(self, store):
        store.locks.leave(APP, holder="a")

        assert self.take(store, "b", at=0, until=30)


class TestRegistries:
    def test_a_registry_replaces_an_older_one(self, store):
        older = StoredRegistry(APP, (), START)
        newer = StoredRegistry(APP, tuple(DOCUMENTS), START + SECOND)
        store.registries.put(older)
        store.registries.put(newer)

        assert store.registries.find(APP) == newer
        assert store.registries.every() == [newer]

    def test_registries_are_found_by_their_target_and_listed_without_splits(self, store):
        registries = [StoredRegistry(target, tuple(DOCUMENTS), START) for target in (OTHER, APP)]
        for registry in registries:
            store.registries.put(registry)
        store.splits.create(RECORD, documents=DOCUMENTS)

        assert sorted(store.registries.every(), key=str) == sorted(registries, key=str)
        assert store.registries.find(Target.parse("ssm//path")) is None


class TestSamples:
    def test_samples_come_back_oldest_first(self, store):
        first, second = Sample(START, 0, 0), Sample(START + 1.5 * SECOND, 0, 0)
        store.samples.note(APP, {MEMES: first, ORDERS: first})
        store.samples.note(APP, {MEMES: second})

        assert dict(store.samples.of(APP)) == {MEMES: (first, second), ORDERS: (first,)}
        assert dict(store.samples.of(OTHER)) == {}


class TestNotes:
    def test_the_first_text_of_a_name_stays(self, store):
        store.notes.put(APP, "QUEUE", "memes")
        store.notes.put(APP, "QUEUE", "mirrord-tmp-memes")
        store.notes.put(APP, "a name with #, : and spaces", "")

        assert dict(store.notes.of(APP)) == {"QUEUE": "memes", "a name with #, : and spaces": ""}
        assert dict(store.notes.of(OTHER)) == {}

    def test_notes_are_forgotten_by_name_and_the_others_stay(self, store):
        for name in ("a", "b", "c: d"):
            store.notes.put(APP, name, "text")

        store.notes.remove(APP, ["a", "c: d", "never there"])
        store.notes.remove(OTHER, ["a"])

        assert (dict(store.notes.of(APP)), dict(store.notes.of(OTHER))) == ({"b": "text"}, {})


class TestLedger:
    def test_calls_that_began_and_did_not_finish_are_counted_from_a_moment_on(self, store):
        for seconds, call in enumerate(("a", "b", "c")):
            store.ledger.begin(ORDERS, call, now=START + seconds * SECOND)
        store.ledger.begin(MEMES, "d", now=START)
        store.ledger.finish(ORDERS, "b")
        store.ledger.finish(ORDERS, "b")

        assert store.ledger.unfinished(ORDERS, since=START) == 2
        assert store.ledger.unfinished(ORDERS, since=START + SECOND) == 1
        assert store.ledger.unfinished(QueueName("quiet.fifo"), since=START) == 0

    def test_a_call_that_begins_twice_is_one_call(self, store):
        store.ledger.begin(ORDERS, "a", now=START)
        store.ledger.begin(ORDERS, "a", now=START)

        assert store.ledger.unfinished(ORDERS, since=START) == 1


class TestDynamo:
    """What only the table can get wrong."""

    def test_a_record_of_another_version_is_told_and_not_guessed_at(self, split_table):
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
        unreadable = UnreadableSplit(str(APP), "record of a split of version 2; known is 1")
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
        assert splits.find(APP) == stored

    @pytest.mark.parametrize(
        ("operation", "write"),
        [
            ("transact_write_items", lambda splits: splits.create(RECORD, documents=[])),
            ("put_item", lambda splits: splits.save(RECORD, replacing=STORED)),
            ("transact_write_items", lambda splits: splits.forget(STORED)),
        ],
        ids=["create", "save", "forget"],
    )
    @pytest.mark.parametrize(
        ("code", "expected"), [("TransactionConflictException", ItemBusy), ("InternalServerError", ClientError)]
    )
    def test_who_meets_another_write_or_an_outage_tries_again(self, split_table, operation, write, code, expected):
        with Stubber(split_table.meta.client) as stub:
            stub.add_client_error(operation, code)

            with pytest.raises(expected):
                write(DynamoSplits(split_table))

    def test_a_transaction_that_met_another_is_tried_again(self, split_table):
        reasons = [{"Code": "None"}, {"Code": "TransactionConflict"}]
        with Stubber(split_table.meta.client) as stub:
            stub.add_client_error(
                "transact_write_items", "TransactionCanceledException", modeled_fields={"CancellationReasons": reasons}
            )

            with pytest.raises(ItemBusy, match="Splits"):
                DynamoSplits(split_table).create(RECORD, documents=[])
