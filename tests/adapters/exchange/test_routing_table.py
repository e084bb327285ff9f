"""The router's table: the ports in memory and over DynamoDB behave alike."""

import logging
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from signalbox.aws.exchange.allowances import DynamoAllowanceCounter
from signalbox.aws.exchange.bindings import DynamoBindings
from signalbox.aws.exchange.counters import DynamoCounters
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoQueues, DynamoUsers
from signalbox.aws.exchange.items import head_key
from signalbox.aws.exchange.routing_table import (
    FIRST_WORDS_READ,
    WAITING_KEPT_FOR,
    DynamoCounterWriter,
    DynamoHeads,
    DynamoRoutingTable,
    DynamoWaitingCopies,
)
from signalbox.aws.shared.dynamodb import ItemBusy
from signalbox.backoff import ATTEMPTS
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.patterns import FIRST_PLACE, LAST_PLACE, Pattern
from signalbox.exchange.model.records import (
    Binding,
    DeclaredQueue,
    ExchangeRecord,
    QueueSettings,
    ResourceKind,
    ResourceRef,
    User,
)
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.ports import CopySettings, HeadChange, Heads
from signalbox.exchange.routing.sequences import Head, numbered
from signalbox.messages import MessageId
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.adapters.shared.stubs import StubbedClient, error
from tests.fakes.aws import STORES
from tests.fakes.backoff import AT_ONCE
from tests.unit.exchange.routing.routing_world import MemoryHeads

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
LOG = ExchangeName("xlog.fifo")
KEY, EMPTY, DASH = RoutingKey("a.b"), RoutingKey(""), RoutingKey("-")
QUEUE, OTHER = QueueName("q_a.fifo"), QueueName("q_b.fifo")


@pytest.fixture(params=STORES)
def heads(request) -> Heads:
    return MemoryHeads() if request.param == "memory" else DynamoHeads(*[request.getfixturevalue("exchange_table")] * 2)


def counted(head: Head, *messages: str) -> Head:
    return numbered(head, [MessageId(message) for message in messages])


def stored(heads: Heads, key: RoutingKey = KEY) -> Head:
    return heads.read(LOG, [key]).get(key, Head())


def test_a_head_is_found_as_it_was_saved(heads) -> None:
    first = counted(Head(), "m1", "m2")

    assert heads.save(LOG, HeadChange(KEY, first, Head()))
    second = counted(first, *(f"n{number}" for number in range(30)))
    assert heads.save(LOG, HeadChange(KEY, second, first))

    assert stored(heads) == second
    assert stored(heads).recent["n29"] == 32
    assert heads.read(ExchangeName("xother.fifo"), [KEY]) == {}


def test_ids_of_sqs_take_16_bytes_each_in_a_head(exchange_table) -> None:
    heads = DynamoHeads(exchange_table, exchange_table)
    ids = [MessageId("0b1a1b9e-6f5c-4f0a-9d3e-2f6f7b0c9a11"), MessageId("0B1A1B9E-6F5C-4F0A-9D3E-2F6F7B0C9A11")]
    heads.save(LOG, HeadChange(KEY, Head(2, {one: number for number, one in enumerate(ids, start=1)}), Head()))

    stored = exchange_table.get_item(Key=head_key(LOG, KEY))["Item"]["recent"]

    assert [bytes(stored[0]), stored[1]] == [UUID(ids[0]).bytes, ids[1]]
    assert list(heads.read(LOG, [KEY])[KEY].recent) == ids


def test_a_concurrently_saved_head_is_not_overwritten(heads) -> None:
    ours, theirs = counted(Head(), "m1"), counted(Head(), "m2")
    heads.save(LOG, HeadChange(KEY, theirs, Head()))

    assert not heads.save(LOG, HeadChange(KEY, ours, Head()))
    assert not heads.save(LOG, HeadChange(KEY, counted(replace(theirs, sequence=7), "m3"), replace(theirs, sequence=7)))

    assert stored(heads) == theirs


def test_the_empty_key_and_every_other_have_heads_of_their_own(heads) -> None:
    keys = [EMPTY, DASH, KEY]
    for number, key in enumerate(keys, start=1):
        heads.save(LOG, HeadChange(key, counted(Head(), *"abc"[:number]), Head()))

    assert {key: head.sequence for key, head in heads.read(LOG, keys).items()} == {EMPTY: 1, DASH: 2, KEY: 3}


def test_a_head_ends_unless_it_is_that_of_a_live_exchange(exchange_table) -> None:
    heads, first = DynamoHeads(exchange_table, exchange_table), counted(Head(), "m1")
    ends = []
    for head, replacing, end in ((first, Head(), NOW), (counted(first, "m2"), first, None)):
        heads.save(LOG, HeadChange(KEY, head, replacing, expires_at=end))
        ends.append(exchange_table.get_item(Key=head_key(LOG, KEY))["Item"].get("expires_at"))

    assert ends == [round(NOW.timestamp()), None]


@pytest.mark.parametrize("lost", [error("ThrottlingException"), ReadTimeoutError(endpoint_url="https://dynamodb")])
def test_a_head_that_dynamodb_does_not_take_at_once_is_not_saved(exchange_table, lost: Exception) -> None:
    once = StubbedClient(exchange_table.client, "update_item", lost)
    heads = DynamoHeads(exchange_table, replace(exchange_table, client=once))

    assert not heads.save(LOG, HeadChange(KEY, counted(Head(), "m1"), Head()))

    assert len(once.calls) == 1
    heads.start_detour(LOG, KEY, QUEUE, last=1)  # a copy is under way, and the batch may not come again
    assert stored(heads).detours == {QUEUE: 1}


def test_a_head_that_may_not_be_saved_is_an_error(exchange_table) -> None:
    denied = StubbedClient(exchange_table.client, "update_item", error("AccessDeniedException"))

    with pytest.raises(ClientError):
        DynamoHeads(exchange_table, replace(exchange_table, client=denied)).save(LOG, HeadChange(KEY, Head(1), Head()))


def test_a_detour_stays_when_the_head_is_saved(heads) -> None:
    first = counted(Head(), "m1")
    heads.save(LOG, HeadChange(KEY, first, Head()))
    heads.start_detour(LOG, KEY, QUEUE, last=1)

    heads.save(LOG, HeadChange(KEY, counted(first, "m2"), first))

    assert stored(heads).detours == {QUEUE: 1}
    assert stored(heads).sequence == 2


def test_a_detour_ends_with_its_last_message_and_no_other(heads) -> None:
    heads.start_detour(LOG, KEY, QUEUE, last=1)
    heads.start_detour(LOG, KEY, OTHER, last=1)
    assert heads.extend_detour(LOG, KEY, QUEUE, last=2)

    heads.end_detour(LOG, KEY, QUEUE, last=1)
    heads.end_detour(LOG, KEY, OTHER, last=1)
    assert stored(heads).detours == {QUEUE: 2}
    heads.end_detour(LOG, KEY, QUEUE, last=2)
    heads.end_detour(LOG, KEY, QUEUE, last=2)

    assert stored(heads).detours == {}


def test_a_detour_that_has_ended_is_not_prolonged(heads) -> None:
    heads.save(LOG, HeadChange(KEY, counted(Head(), "m1"), Head()))

    assert not heads.extend_detour(LOG, KEY, QUEUE, last=2)
    assert not heads.extend_detour(LOG, DASH, QUEUE, last=2)

    assert stored(heads).detours == {}
    assert stored(heads, DASH) == Head()


def test_a_detour_may_be_there_before_anything_was_counted(heads) -> None:
    heads.start_detour(LOG, KEY, QUEUE, last=1)

    assert heads.save(LOG, HeadChange(KEY, counted(Head(), "m1"), Head()))


def exchange(name: str) -> ExchangeRecord:
    return ExchangeRecord(ExchangeName(name), None, NOW, alternate=ExchangeName("xrest"))


def queue(name: str, **changes: Any) -> DeclaredQueue:
    return DeclaredQueue(DeclaredName(name), None, NOW, NOW, **changes)


def test_one_snapshot_has_exchanges_and_users(exchange_table) -> None:
    DynamoExchanges(exchange_table).create(exchange("xs"))
    alice = User(UserName("alice"), Role.SOURCE, Ownership.STRICT, NOW, "AIDA1")
    DynamoUsers(exchange_table).put(alice)
    table = DynamoRoutingTable(exchange_table)

    look = table.snapshot([ExchangeName("xs"), ExchangeName("xgone")], senders=["AIDA1", "AIDA2"])

    assert look.exchanges == {"xs": exchange("xs")}
    assert look.users == {"AIDA1": "alice"}


def test_a_binding_changes_the_version_by_which_it_is_seen(exchange_table) -> None:
    DynamoExchanges(exchange_table).create(exchange("xs"))
    DynamoQueues(exchange_table).create(queue("q_a"))
    DynamoCounterWriter(exchange_table).add({exchange("xs").resource: {"received": 1}}, at=NOW)  # in the same partition
    bound = Binding(ExchangeName("xs"), ResourceRef(ResourceKind.QUEUE, "q_a"), Pattern.parse("a.#"))
    table = DynamoRoutingTable(exchange_table)

    DynamoBindings(exchange_table).bind(bound)

    assert table.snapshot(["xs"], senders=()).exchanges["xs"].version == 2
    assert list(table.bindings(ExchangeName("xs"))) == [bound]


def test_bindings_are_found_by_the_first_words_of_their_patterns(exchange_table) -> None:
    DynamoExchanges(exchange_table).create(exchange("xs"))
    DynamoQueues(exchange_table).create(queue("q_a"))
    patterns = ["a", "a.b", "ab", "", ".a", "*", "*.a", "#", "#.a", "a#", "a\nb.c"]
    for pattern in patterns:
        resource = ResourceRef(ResourceKind.QUEUE, "q_a")
        DynamoBindings(exchange_table).bind(Binding(ExchangeName("xs"), resource, Pattern.parse(pattern)))
    table = DynamoRoutingTable(exchange_table)

    def found(first_word: str) -> list[str]:
        return sorted(str(one.pattern) for one in table.bindings(ExchangeName("xs"), first_word=first_word))

    assert {word: found(word) for word in ("a", "", "*", "#", "a#", "a\nb", "c")} == {
        "a": ["a", "a.b"],
        "": ["", ".a"],
        "*": ["*", "*.a"],
        "#": ["#", "#.a"],
        "a#": ["a#"],
        "a\nb": ["a\nb.c"],
        "c": [],
    }
    assert sorted(str(one.pattern) for one in table.bindings(ExchangeName("xs"))) == sorted(patterns)
    places = [FIRST_PLACE, "\n", "#\n", "*\n", "a\n", "a b\n", "a#\n", "ab\n", LAST_PLACE]
    assert [table.first_words(ExchangeName("xs"), around=place) for place in places[1:]] == [
        places[number:] for number in range(len(places) - 1)
    ]


def test_the_first_words_of_many_bindings_are_read_in_parts(exchange_table) -> None:
    DynamoExchanges(exchange_table).create(exchange("xs"))
    for pattern in (*(f"a.{number}" for number in range(FIRST_WORDS_READ - 1)), "b", "b.c", "d"):
        target = ResourceRef(ResourceKind.EXCHANGE, "xs")
        DynamoBindings(exchange_table).bind(Binding(ExchangeName("xs"), target, Pattern.parse(pattern)))

    parts = [DynamoRoutingTable(exchange_table).first_words(ExchangeName("xs"), around=place) for place in "ac"]

    assert parts == [[FIRST_PLACE, "a\n", "b\n"], ["b\n", "d\n", LAST_PLACE]]


def test_the_settings_for_copies_are_those_of_existing_queues(exchange_table) -> None:
    queues = DynamoQueues(exchange_table)
    queues.create(queue("q_a", settings=QueueSettings(message_ttl=timedelta(seconds=1.5))))
    queues.create(queue("q_b", settings=QueueSettings(keep=timedelta(hours=1))))

    found = DynamoRoutingTable(exchange_table).copy_settings(["q_a", "q_b", "q_gone"])

    assert found == {"q_a": CopySettings(timedelta(seconds=1.5)), "q_b": CopySettings(is_kept=True)}


def test_a_queue_that_is_being_deleted_has_no_time_of_declaration(exchange_table) -> None:
    queues = DynamoQueues(exchange_table)
    queues.create(queue("q_a"))
    queues.create(queue("q_b", is_deleting=True))
    table = DynamoRoutingTable(exchange_table)

    assert [table.created_at(name) for name in ("q_a", "q_b", "q_gone")] == [queue("q_a").created_at, None, None]


def test_waiting_copies_add_up_for_each_owner_and_share(exchange_table) -> None:
    table, owner = DynamoWaitingCopies(exchange_table, timedelta(hours=1)), DeclaredName("q_alice")
    yesterday, today = NOW.date() - timedelta(days=1), NOW.date()

    assert table.add_waiting(owner, Counter(), now=NOW) == {}
    assert table.add_waiting(owner, Counter({(today, 1): 120, (today, 2): 5, (yesterday, 1): 3}), now=NOW) == {
        1: 123,
        2: 5,
    }
    assert table.add_waiting(DeclaredName("sqs:team"), Counter({(today, 1): 1}), now=NOW) == {1: 1}
    assert table.add_waiting(owner, Counter({(today, 1): -10}), now=NOW) == {1: 113, 2: 5}

    item = exchange_table.get_item(Key={"pk": "queue#q_alice", "sk": f"waiting#{today}"})["Item"]
    assert item["expires_at"] == round((NOW + WAITING_KEPT_FOR).timestamp())


def test_numbers_of_copies_that_are_not_tried_any_more_are_forgotten(exchange_table) -> None:
    """An instance that is killed leaves its owner numbers of copies that do not wait."""
    table, owner = DynamoWaitingCopies(exchange_table, timedelta(hours=1)), DeclaredName("q_alice")
    first, second, third = (NOW.date() + timedelta(days=day) for day in range(3))
    for number, day in enumerate((first, second, third), start=1):
        table.add_waiting(owner, Counter({(day, 0): number}), now=NOW)
    later = NOW + timedelta(minutes=59)
    assert table.add_waiting(owner, Counter({(second, 0): 0}), now=later) == {0: 6}

    assert table.add_waiting(owner, Counter(), now=NOW + timedelta(minutes=61)) == {0: 5}, "the third waits behind"
    assert table.add_waiting(owner, Counter(), now=later + timedelta(minutes=61)) == {}


def test_numbers_of_waiting_copies_that_dynamodb_does_not_take_are_unknown(exchange_table, caplog) -> None:
    table = DynamoWaitingCopies(replace(exchange_table, name="Missing"), timedelta(hours=1))

    assert table.add_waiting(DeclaredName("q_alice"), Counter({(NOW.date(), 1): 1}), now=NOW) is None

    assert "the numbers of waiting copies of q_alice are not known" in caplog.text


def test_an_allowance_is_counted_for_each_share_and_period_and_waits_for_no_table(exchange_table, caplog) -> None:
    counter = DynamoAllowanceCounter(exchange_table, "copies", lambda: NOW)

    assert [counter.add("mallory alice", 50, period=7) for _ in range(2)] == [50, 100]
    assert (counter.add("mallory alice", 60, period=8), counter.add("alice alice", 60, period=7)) == (60, 60)
    assert replace(counter, kind="heads").add("mallory alice", 60, period=7) == 60
    assert replace(counter, table=replace(exchange_table, name="Missing")).add("a b", 50, period=7) == 0
    assert "the copies of a b are not counted" in caplog.text


def test_more_than_a_hundred_keys_are_read_in_several_calls(exchange_table) -> None:
    queues = DynamoQueues(exchange_table)
    names = [DeclaredName(f"q_{number}") for number in range(120)]
    for name in names:
        queues.create(queue(name, settings=QueueSettings(message_ttl=timedelta(seconds=1))))

    assert DynamoRoutingTable(exchange_table).copy_settings(names).keys() == set(names)
    assert DynamoRoutingTable(exchange_table).copy_settings([]) == {}


class Hesitant:
    """A DynamoDB client that returns one item a call, as the real one may."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def batch_get_item(self, *, RequestItems: Any) -> Any:  # noqa: N803 - boto3's name
        ((name, wanted),) = RequestItems.items()
        first, *rest = wanted["Keys"]
        answer = self.client.batch_get_item(RequestItems={name: {**wanted, "Keys": [first]}})
        return answer | {"UnprocessedKeys": {name: {**wanted, "Keys": rest}} if rest else {}}


def test_unprocessed_keys_are_requested_again_a_limited_number_of_times(exchange_table) -> None:
    queues = DynamoQueues(exchange_table)
    names = [DeclaredName(f"q_{number}") for number in range(ATTEMPTS + 1)]
    for name in names:
        queues.create(queue(name, settings=QueueSettings(message_ttl=timedelta(seconds=1))))
    table = DynamoRoutingTable(replace(exchange_table, client=Hesitant(exchange_table.client), backoff=AT_ONCE))

    assert table.copy_settings(names[:ATTEMPTS]).keys() == set(names[:ATTEMPTS])
    with pytest.raises(ItemBusy, match="'Exchanges' returned no result for some of the keys"):
        table.copy_settings(names)


def test_counters_add_up_minute_by_minute(exchange_table) -> None:
    resource, counters = ResourceRef(ResourceKind.QUEUE, "q_a"), DynamoCounterWriter(exchange_table)

    counters.add({resource: {"received": 2, "bytes": 100}, ResourceRef(ResourceKind.QUEUE, "q_b"): {"dead": 7}}, at=NOW)
    counters.add({resource: {"received": 1, "dead": 1}}, at=NOW + timedelta(seconds=29))
    counters.add({resource: {"received": 4}}, at=NOW + timedelta(seconds=30))

    first, second = DynamoCounters(exchange_table).since(resource, NOW)
    assert (first.received, first.dead, first.size_bytes) == (3, 1, 100)
    assert first.last_at == NOW + timedelta(seconds=29)
    assert second.received == 4
    item = exchange_table.get_item(Key={"pk": "queue#q_a", "sk": f"minute#{round(NOW.timestamp()) // 60}"})["Item"]
    assert item["expires_at"] == round(NOW.timestamp()) + 29 + 7200


def test_counters_that_cannot_be_increased_stop_nothing(exchange_table, caplog) -> None:
    exchange_table.delete()

    with caplog.at_level(logging.ERROR):
        DynamoCounterWriter(exchange_table).add({ResourceRef(ResourceKind.QUEUE, "q_a"): {"received": 1}}, at=NOW)

    assert "1 of 1 counters were not increased; the first: queue 'q_a'" in caplog.text


def test_counters_of_earlier_versions_are_read_as_those_of_their_minute(exchange_table) -> None:
    resource = ResourceRef(ResourceKind.QUEUE, "q_a")
    DynamoCounterWriter(exchange_table).add({resource: {"received": 2}}, at=NOW)
    exchange_table.put_item(
        Item={"pk": "queue#q_a", "sk": f"minute#{round(NOW.timestamp()) // 60}.000000007", "received": 3}
    )

    minutes = DynamoCounters(exchange_table).since(resource, NOW)

    assert [one.received for one in minutes] == [2, 3]
    assert {one.begins_at.replace(second=0, microsecond=0) for one in minutes} == {NOW.replace(second=0)}


def test_a_head_that_cannot_be_written_is_the_worlds_fault(exchange_table) -> None:
    heads = DynamoHeads(exchange_table, exchange_table)
    exchange_table.delete()

    with pytest.raises(ClientError):
        heads.start_detour(LOG, KEY, QUEUE, last=1)


def test_a_snapshot_has_the_requested_heads(exchange_table) -> None:
    DynamoExchanges(exchange_table).create(ExchangeRecord(LOG, None, NOW))
    head = counted(Head(), "m1")
    DynamoHeads(exchange_table, exchange_table).save(LOG, HeadChange(KEY, head, Head()))
    table = DynamoRoutingTable(exchange_table)

    read = table.snapshot([LOG], senders=["AIDAEVE"], heads=(LOG, [KEY, EMPTY]))

    assert (list(read.exchanges), read.users, read.heads) == ([LOG], {}, {KEY: head})
    assert table.snapshot([LOG], senders=()).heads is None
