"""How the items of rendezvous are spread over the partitions of its table and index, and what reading them costs."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.aws.rendezvous.held_polls import SLOTS_PER_PARTITION, DynamoHeldPolls
from signalbox.aws.rendezvous.offers import DynamoOffers
from signalbox.rendezvous.model.held_polls import HeldPoll
from signalbox.rendezvous.model.states import (
    Claimant,
    ClientId,
    OfferPool,
    OfferState,
    ProxySessionId,
    Rendezvous,
    RendezvousMethod,
)
from signalbox.rendezvous.rules.poll_service import TICK
from signalbox.rendezvous.wire.nat import Nat
from tests.fakes.rendezvous import START

SECOND = timedelta(seconds=1)
READS = 3000  # DynamoDB's read units a second of one partition key; one unit reads 4 KB consistently
READ_BYTES = 4096
LISTS = 190  # a second, of all functions together: those of offers that find no cached list


def held(slot: int) -> HeldPoll:
    sid = ProxySessionId(f"{slot:022}")  # as long as a real proxy's
    until = START + 10 * SECOND
    return HeldPoll(slot, sid, Nat.UNRESTRICTED, "standalone", 0, since=START, until=until, offer=None)


def offer(client_id: str) -> Rendezvous:
    return Rendezvous(
        client_id=ClientId(client_id),
        method=RendezvousMethod.SQS,
        state=OfferState.PENDING,
        created_at=START,
        available_at=START,
        deadline=START + 30 * SECOND,
    )


@pytest.fixture
def queries(rendezvous_table) -> Counter[str]:
    """The number of queries from now on, by table or index."""
    counted: Counter[str] = Counter()
    rendezvous_table.client.meta.events.register(
        "provide-client-params.dynamodb.Query",
        lambda params, **_: counted.update([params.get("IndexName", "table")]),
    )
    return counted


def test_every_slot_below_the_limit_is_found(rendezvous_table, queries) -> None:
    polls = [held(slot) for slot in (0, 249, 250, 499, 500, 1999)]
    slots = DynamoHeldPolls(rendezvous_table, limit=2000)
    for poll in polls:
        assert slots.acquire(poll, now=START)

    assert slots.held(now=START) == polls
    assert queries == {"table": 8}
    assert slots.reserve(polls[-1], client_id=ClientId("c"), until=START + SECOND)
    assert slots.release(polls[-1]) == "c"


def test_a_stage_with_few_slots_reads_them_with_one_query(rendezvous_table, queries) -> None:
    slots = DynamoHeldPolls(rendezvous_table, limit=50)
    slots.acquire(held(49), now=START)

    assert [poll.slot for poll in slots.held(now=START)] == [49]
    assert queries == {"table": 1}


def test_a_partition_of_slots_stays_below_dynamodbs_reads_a_second(rendezvous_table) -> None:
    """All its polls read their slots, and offers list them."""
    slots = DynamoHeldPolls(rendezvous_table, limit=2000)
    for slot in range(2 * SLOTS_PER_PARTITION):
        slots.acquire(held(slot), now=START)
        slots.reserve(held(slot), client_id=ClientId("0123456789abcdef"), until=START + SECOND)

    by_partition: dict[str, list[int]] = {}
    for item in rendezvous_table.scan()["Items"]:
        size = sum(len(name) + _value_bytes(value) for name, value in item.items())
        by_partition.setdefault(str(item["pk"]), []).append(size)

    assert [len(sizes) for sizes in by_partition.values()] == [SLOTS_PER_PARTITION] * 2
    for sizes in by_partition.values():
        units_of_list = -(-sum(sizes) // READ_BYTES)
        assert len(sizes) / TICK.total_seconds() + LISTS * units_of_list <= READS


def _value_bytes(value: object) -> int:
    """Return DynamoDB's size of a text or number (HowItWorks.NamingRulesDataTypes: two digits a byte, and one more)."""
    return len(value) if isinstance(value, str) else len(str(value)) // 2 + 2


def test_open_offers_are_spread_over_the_shards_of_their_pool(rendezvous_table) -> None:
    offers = DynamoOffers(rendezvous_table, shards=4)
    for number in range(100):
        assert offers.open(offer(f"c{number}"), replacing=None)

    counts = Counter(item["pool"] for item in rendezvous_table.scan()["Items"])
    assert counts.keys() == {"unrestricted", "unrestricted#1", "unrestricted#2", "unrestricted#3"}
    assert max(counts.values()) < 50


@pytest.mark.parametrize("shards", [1, 4])
def test_a_poll_queries_each_shard_of_each_pool_once(rendezvous_table, queries, shards: int) -> None:
    """With one shard, a poll makes as many queries as there are pools that fit it: one or two."""
    offers = DynamoOffers(rendezvous_table, shards=shards)
    for number in range(8):
        offers.open(replace(offer(f"c{number}"), created_at=START + number * SECOND), replacing=None)

    found = offers.claimable([OfferPool.UNRESTRICTED_PROXY], now=START + SECOND)

    assert [record.client_id for record in found] == [f"c{number}" for number in range(8)]
    assert queries == {"open_offers": shards}


def test_offers_of_a_version_without_shards_are_found_and_finished(rendezvous_table) -> None:
    DynamoOffers(rendezvous_table).open(offer("old"), replacing=None)
    offers = DynamoOffers(rendezvous_table, shards=4)

    (found,) = offers.claimable([OfferPool.UNRESTRICTED_PROXY], now=START)
    offers.close(found.client_id, state=OfferState.EXPIRED, reply="{}", leased_until=START)

    assert offers.claimable([OfferPool.UNRESTRICTED_PROXY], now=START) == []


def test_a_record_outlives_the_lease_of_the_queue_whatever_its_length(rendezvous_table) -> None:
    offers, leased_until = DynamoOffers(rendezvous_table), START + timedelta(days=1)
    for name in ("answered", "closed"):
        offers.open(offer(name), replacing=None)
    refused = replace(offer("refused"), state=OfferState.REFUSED, reply="r", available_at=leased_until)
    offers.open(refused, replacing=None)
    proxy = Claimant(ProxySessionId("p"), "webext")
    offers.claim(ClientId("answered"), proxy=proxy, now=START, until=START + SECOND)
    offers.answer(ClientId("answered"), sid=proxy.sid, reply="r", now=START, leased_until=leased_until)
    offers.close(ClientId("closed"), state=OfferState.EXPIRED, reply="r", leased_until=leased_until)

    ended = [item for item in rendezvous_table.scan()["Items"] if item.get("pool") == "ended"]
    assert len(ended) == 3
    assert all(int(item["expires_at"]) > leased_until.timestamp() for item in ended)
