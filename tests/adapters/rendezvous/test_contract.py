"""The contract of `signalbox.rendezvous.ports`, for the AWS adapters (on moto) and the in-memory fakes."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, timedelta
from itertools import cycle, islice

import boto3
import pytest
from botocore.exceptions import ClientError

from signalbox.aws.rendezvous.cursors import DynamoCursor
from signalbox.aws.rendezvous.offers import DynamoOffers, DynamoQueueLeases
from signalbox.aws.rendezvous.paces import DynamoPaces
from signalbox.aws.rendezvous.statistics import DynamoStatistics
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.leases import DynamoLeases
from signalbox.queues import Lease, QueueName, QueueUrl
from signalbox.rendezvous.model.pace import Pace, ProxyGroup, ProxyKind, first_pace
from signalbox.rendezvous.model.states import ClientId, OfferPool, OfferState, RendezvousMethod, RendezvousRecord
from signalbox.rendezvous.ports import Cursor, Leases, Offers, ProxyPaces, QueueLeases, Statistics
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.proxy import ProxyPoll
from tests.fakes.aws import STORES
from tests.fakes.rendezvous import (
    START,
    MemoryClock,
    MemoryCursor,
    MemoryLeases,
    MemoryOffers,
    MemoryPaces,
    MemoryQueueLeases,
    MemoryStatistics,
)

SECOND = timedelta(seconds=1)
KEPT_FOR = 150 * SECOND
RECORD = RendezvousRecord(
    client_id=ClientId("c1"),
    method=RendezvousMethod.SQS,
    state=OfferState.PENDING,
    created_at=START,
    available_at=START,
    deadline=START + 30 * SECOND,
    nat=Nat.UNRESTRICTED,
    session_description='{"type":"offer","sdp":"\ud800"}',
    relay_url="wss://bridge.example/",
    country="CA",
    message_id="m1",
    receipt_handle="h1",
)
P1, P2 = (ProxyPoll(sid, "webext", Nat.RESTRICTED, 0, None) for sid in ("p1", "p2"))
LEASE = Lease(QueueName("q1"), QueueUrl("https://queues.example/q1"), "rendezvous", START)


def both_of(memory: Callable[[], object], adapter: Callable[[object], object], table_fixture: str) -> object:
    @pytest.fixture(params=STORES)
    def port(request: pytest.FixtureRequest) -> object:
        return memory() if request.param == "memory" else adapter(request.getfixturevalue(table_fixture))

    return port


offers = both_of(MemoryOffers, lambda table: DynamoOffers(table, KEPT_FOR), "rendezvous_table")
paces = both_of(MemoryPaces, DynamoPaces, "rendezvous_table")
leases = both_of(MemoryLeases, DynamoLeases, "lease_table")
stray_cursor = both_of(MemoryCursor, lambda table: DynamoCursor(table, MemoryClock()), "lease_table")
statistics = both_of(MemoryStatistics, DynamoStatistics, "rendezvous_table")


def claim(offers: Offers, proxy: ProxyPoll = P1, *, after: timedelta = SECOND) -> RendezvousRecord | None:
    now = START + after
    return offers.claim(RECORD, proxy=proxy, now=now, until=now + 5 * SECOND, is_busy=False)


def expire(offers: Offers, record: RendezvousRecord = RECORD) -> RendezvousRecord | None:
    return offers.close(record, state=OfferState.EXPIRED, reply="late")


class TestOffers:
    @pytest.mark.parametrize(
        "record", [RECORD, replace(RECORD, state=OfferState.REFUSED, reply="no", session_description="")]
    )
    def test_a_record_comes_back_as_it_was_stored(self, offers: Offers, record: RendezvousRecord) -> None:
        assert offers.find(record) is None
        assert offers.open(record)
        assert offers.find(RECORD) == record

    def test_a_second_record_of_a_client_at_the_same_time_is_not_stored(self, offers: Offers) -> None:
        offers.open(RECORD)

        assert not offers.open(replace(RECORD, message_id="m2"))
        assert offers.find(RECORD) == RECORD

    def test_a_claimed_offer_is_its_proxys_until_the_match_ends(self, offers: Offers) -> None:
        offers.open(RECORD)

        matched = claim(offers)

        assert matched is not None
        assert (matched.state, matched.sid, matched.matches) == (OfferState.MATCHED, "p1", 1)
        assert (matched.proxy_type, matched.session_description) == ("webext", RECORD.session_description)
        assert offers.matched_by(P1.sid, since=START) == matched
        assert offers.matched_by(P1.sid, since=START + SECOND) is None
        assert claim(offers, P2, after=5 * SECOND) is None
        again = claim(offers, P2, after=6 * SECOND)
        assert again is not None
        assert again.matches == 2
        assert offers.matched_by(P1.sid, since=START + SECOND) is None

    def test_a_claim_whose_response_was_lost_has_the_same_answer_again(self, offers: Offers) -> None:
        offers.open(RECORD)
        first = claim(offers)
        assert first is not None

        again = claim(offers)

        assert again is not None
        assert replace(again, matches=1) == first
        assert claim(offers, after=2 * SECOND) is None  # another poll of the session

    def test_an_offer_past_its_deadline_or_unknown_cannot_be_claimed(self, offers: Offers) -> None:
        assert claim(offers) is None
        offers.open(RECORD)
        assert claim(offers, after=30 * SECOND) is None

    @pytest.mark.parametrize("place", [0, 19], ids=["oldest", "newest"])
    @pytest.mark.parametrize(
        ("claim", "newer"),
        [({"is_busy": False}, 0), ({"is_busy": False}, 80), ({"is_busy": True}, 80)],
        ids=["", "newer ones of a pool that was quiet", "of a busy one"],
    )
    def test_the_match_of_a_session_is_found_among_many_offers_of_both_pools(
        self, offers: Offers, place: int, claim: dict[str, bool], newer: int
    ) -> None:
        sent = [
            replace(RECORD, client_id=ClientId(f"c{number}"), created_at=START + number * SECOND / 10, nat=nat)
            for number, nat in enumerate(islice(cycle((Nat.RESTRICTED, Nat.UNRESTRICTED)), 20 + newer))
        ]
        for record in sent[:20]:
            offers.open(record)
        offers.claim(sent[place], proxy=P1, now=START + 2 * SECOND, until=START + 5 * SECOND, **claim)
        for record in sent[20:]:
            offers.open(record)

        found = offers.matched_by(P1.sid, since=START)

        assert found is not None
        assert found.client_id == f"c{place}"
        assert offers.matched_by(P2.sid, since=START) is None

    def test_only_the_matched_proxy_answers_and_only_once(self, offers: Offers) -> None:
        offers.open(RECORD)
        claim(offers)
        now = START + 2 * SECOND

        assert offers.answer(RECORD, sid=P2.sid, reply="r", now=now) is None
        answered = offers.answer(RECORD, sid=P1.sid, reply="r", now=now)
        assert answered is not None
        assert (answered.state, answered.reply, answered.session_description) == (OfferState.ANSWERED, "r", "")
        assert answered.receipt_handle == "h1"
        assert offers.answer(RECORD, sid=P1.sid, reply="r", now=now) is None
        found = offers.find(RECORD)
        assert found is not None
        assert (found.reply, found.receipt_handle, found.relay_url) == ("r", None, "")

    def test_an_answer_after_the_deadline_is_refused(self, offers: Offers) -> None:
        offers.open(RECORD)
        claim(offers)

        assert offers.answer(RECORD, sid=P1.sid, reply="r", now=RECORD.deadline) is None

    def test_an_open_offer_is_closed_once(self, offers: Offers) -> None:
        offers.open(RECORD)

        closed = expire(offers)

        assert closed is not None
        assert (closed.state, closed.reply) == (OfferState.EXPIRED, "late")
        assert expire(offers) is None
        assert claim(offers) is None

    def test_the_newest_records_of_a_pool_are_found_first(self, offers: Offers) -> None:
        for number in range(60):
            offers.open(replace(RECORD, client_id=ClientId(f"c{number}"), created_at=START + number * SECOND))
        restricted = replace(RECORD, nat=Nat.RESTRICTED)
        offers.open(restricted)

        end = START + 60 * SECOND
        newest = offers.recent(OfferPool.ANY_PROXY, since=START + 9 * SECOND, until=end)
        early = offers.recent(OfferPool.ANY_PROXY, since=START + 2 * SECOND, until=START + 4 * SECOND)
        assert [record.client_id for record in newest] == [f"c{number}" for number in range(59, 9, -1)]
        assert [record.client_id for record in early] == ["c4", "c3", "c2"]
        assert offers.recent(OfferPool.UNRESTRICTED_PROXY, since=START, until=end) == [restricted]

    @pytest.mark.parametrize(("renewed", "newest"), [([], "h1"), (["h2", "h3"], "h3")])
    def test_an_answer_has_the_newest_receipt_handle(self, offers: Offers, renewed: list[str], newest: str) -> None:
        offers.open(RECORD)
        for handle in renewed:
            offers.renew(RECORD, receipt_handle=handle)
        offers.claim(RECORD, proxy=P1, now=START + 4 * SECOND, until=START + 9 * SECOND, is_busy=False)

        answered = offers.answer(RECORD, sid="p1", reply="r", now=START + 4 * SECOND)

        assert answered is not None
        assert answered.receipt_handle == newest


class TestQueueLeases:
    """The leases are in the keys of the records of `offers`."""

    @pytest.fixture
    def queue_leases(self, offers: Offers) -> QueueLeases:
        if isinstance(offers, MemoryOffers):
            return MemoryQueueLeases(offers, KEPT_FOR)
        return DynamoQueueLeases(offers.table, "https://queues.example/snowflake-client-", KEPT_FOR)

    def test_the_lease_of_a_client_over_sqs_ends_a_fixed_time_after_its_offer(
        self, offers: Offers, queue_leases: QueueLeases
    ) -> None:
        for number, nat in enumerate((Nat.UNRESTRICTED, Nat.RESTRICTED, Nat.UNKNOWN)):
            created_at = START + number * SECOND
            offers.open(replace(RECORD, client_id=ClientId(f"c{number}"), created_at=created_at, nat=nat))
        offers.open(replace(RECORD, client_id=ClientId("http:1"), method=RendezvousMethod.HTTP))
        end = START + KEPT_FOR

        def names(leases: Iterable[Lease]) -> list[str]:
            return [str(lease.queue_name) for lease in leases]

        assert names(queue_leases.between(START, end + 2 * SECOND)) == [f"snowflake-client-c{n}" for n in range(3)]
        url = QueueUrl("https://queues.example/snowflake-client-c1")
        expected = Lease(QueueName("snowflake-client-c1"), url, "rendezvous", end + SECOND)
        assert list(queue_leases.between(end + SECOND, end + SECOND)) == [expected]
        assert queue_leases.needed(now=end) == {"snowflake-client-c1", "snowflake-client-c2"}
        assert queue_leases.needed(now=end + 2 * SECOND) == set()


def test_an_update_that_fails_for_another_reason_than_its_condition_is_an_error(aws) -> None:
    offers = DynamoOffers(DynamoTable(boto3.client("dynamodb"), "NoSuchTable"), KEPT_FOR)

    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        expire(offers)


class TestPaces:
    GROUP = ProxyGroup.RESTRICTED
    WEBEXT, BADGE = ProxyKind(Nat.RESTRICTED, "webext"), ProxyKind(Nat.UNKNOWN, "badge")

    def test_polls_add_up_and_the_first_one_makes_the_pace(self, paces: ProxyPaces) -> None:
        first = paces.add(self.GROUP, {self.WEBEXT: 1}, networks={}, now=START)
        added = paces.add(self.GROUP, {self.WEBEXT: 2, self.BADGE: 3}, networks={17: 5}, now=START + SECOND)

        assert first == replace(first_pace(START), polls={self.WEBEXT: 1})
        assert added == replace(
            first, polled_at=START + SECOND, polls={self.WEBEXT: 3, self.BADGE: 3}, networks={17: 5}
        )
        assert paces.all() == {self.GROUP: added}

    def test_a_poll_that_is_not_counted_is_remembered(self, paces: ProxyPaces) -> None:
        assert paces.add(self.GROUP, {}, networks={}, now=START) == first_pace(START)

    def test_a_pace_is_replaced_once(self, paces: ProxyPaces) -> None:
        counted = paces.add(self.GROUP, {self.WEBEXT: 1}, networks={}, now=START)
        counts = {"known": {self.WEBEXT: 4}, "networks": {17: 3}}
        newer = Pace(7 * SECOND, START + SECOND, START, followed=5 * SECOND, **counts)

        assert paces.replace(self.GROUP, newer, replaced=counted)
        assert not paces.replace(self.GROUP, newer, replaced=counted)
        assert paces.all() == {self.GROUP: newer}


class TestLeases:
    def test_leases_are_due_at_their_end_and_in_their_order(self, leases: Leases) -> None:
        later = replace(LEASE, queue_name=QueueName("q2"), due_at=START + SECOND)
        other = replace(LEASE, queue_name=QueueName("q3"), capability="splitting")
        for lease in (later, LEASE, other):
            leases.put(lease)

        assert list(leases.due("rendezvous", now=START)) == [LEASE]
        assert list(leases.due("rendezvous", now=START + SECOND)) == [LEASE, later]

    def test_a_lease_that_was_extended_does_not_end(self, leases: Leases) -> None:
        extended = replace(LEASE, due_at=START + SECOND)
        leases.put(LEASE)
        leases.put(extended)

        leases.end(LEASE)

        assert list(leases.due("rendezvous", now=START + SECOND)) == [extended]
        leases.end(extended)
        assert list(leases.due("rendezvous", now=START + SECOND)) == []


class TestStrayCursor:
    def test_a_search_continues_at_its_place_until_it_ends(self, stray_cursor: Cursor) -> None:
        assert stray_cursor.position() is None

        stray_cursor.save(0)
        assert stray_cursor.position() == 0

        stray_cursor.save(7)
        assert stray_cursor.position() == 7

        stray_cursor.clear()
        assert stray_cursor.position() is None


class TestStatistics:
    DAY = date(2026, 11, 21)

    def test_counters_add_up_by_day(self, statistics: Statistics) -> None:
        statistics.add(self.DAY, {"a|b": 1, "c": 2})
        statistics.add(self.DAY, {"c": 3})

        assert statistics.counters(self.DAY) == {"a|b": 1, "c": 5}
        assert statistics.counters(date(2026, 11, 22)) == {}

    def test_a_key_is_new_once_a_day(self, statistics: Statistics) -> None:
        assert statistics.first_seen(self.DAY, "k")
        assert not statistics.first_seen(self.DAY, "k")
        assert statistics.first_seen(date(2026, 11, 22), "k")

    def test_the_secret_is_the_days_own(self, statistics: Statistics) -> None:
        today, tomorrow = statistics.key(self.DAY), statistics.key(date(2026, 11, 22))

        assert today != tomorrow
        assert statistics.key(self.DAY) == today
