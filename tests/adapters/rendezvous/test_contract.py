"""The contract of `signalbox.rendezvous.ports`, for the AWS adapters (on moto) and the in-memory fakes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial

import boto3
import pytest
from botocore.exceptions import ClientError

from signalbox.aws.rendezvous.cursors import DynamoCursor
from signalbox.aws.rendezvous.held_polls import DynamoHeldPolls, DynamoPresence
from signalbox.aws.rendezvous.offers import DynamoEndedLeases, DynamoOffers
from signalbox.aws.rendezvous.statistics import DynamoStatistics
from signalbox.aws.shared.leases import DynamoLeases
from signalbox.aws.shared.table import DynamoTable
from signalbox.queues import Lease, QueueName, QueueUrl
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
from signalbox.rendezvous.ports import (
    Cursor,
    EndedLeases,
    HeldPolls,
    Leases,
    Offers,
    ProxyPresence,
    Statistics,
)
from signalbox.rendezvous.wire.nat import Nat
from tests.fakes.aws import STORES
from tests.fakes.rendezvous import (
    START,
    MemoryClock,
    MemoryCursor,
    MemoryEndedLeases,
    MemoryHeldPolls,
    MemoryLeases,
    MemoryOffers,
    MemoryPresence,
    MemoryStatistics,
)

SECOND = timedelta(seconds=1)
LEASED_UNTIL = START + 150 * SECOND
RECORD = Rendezvous(
    client_id=ClientId("c1"),
    method=RendezvousMethod.SQS,
    state=OfferState.PENDING,
    created_at=START,
    available_at=START,
    deadline=START + 30 * SECOND,
    nat=Nat.UNRESTRICTED,
    session_description='{"type":"offer"}',
    relay_url="wss://bridge.example/",
    country="CA",
    offer_digest="d1",
    message_id="m1",
    receipt_handle="h1",
    queue_url=QueueUrl("https://queues.example/c1"),
)
P1, P2 = (Claimant(ProxySessionId(sid), "webext") for sid in ("p1", "p2"))
HELD = HeldPoll(
    slot=7,
    sid=P1.sid,
    nat=Nat.RESTRICTED,
    proxy_type="badge",
    clients=8,
    since=START,
    until=START + 10 * SECOND,
)
LEASE = Lease(QueueName("q1"), QueueUrl("https://queues.example/q1"), "rendezvous", START)


def both_of(memory: Callable[[], object], adapter: Callable[[object], object], table_fixture: str) -> object:
    @pytest.fixture(params=STORES)
    def port(request: pytest.FixtureRequest) -> object:
        return memory() if request.param == "memory" else adapter(request.getfixturevalue(table_fixture))

    return port


offers = both_of(MemoryOffers, partial(DynamoOffers, shards=3), "rendezvous_table")
held_polls = both_of(MemoryHeldPolls, partial(DynamoHeldPolls, limit=300), "rendezvous_table")
presence = both_of(MemoryPresence, DynamoPresence, "rendezvous_table")
leases = both_of(MemoryLeases, DynamoLeases, "lease_table")
stray_cursor = both_of(MemoryCursor, lambda table: DynamoCursor(table, MemoryClock()), "lease_table")
statistics = both_of(MemoryStatistics, DynamoStatistics, "rendezvous_table")


def claim(offers: Offers, proxy: Claimant = P1, *, after: timedelta = SECOND) -> Rendezvous | None:
    now = START + after
    return offers.claim(RECORD.client_id, proxy=proxy, now=now, until=now + 5 * SECOND).match


def relevant_fields(record: Rendezvous) -> tuple[object, ...]:
    """Return the fields that `is_claimable`, `is_abandoned` and the order of offers use."""
    return (
        record.client_id,
        record.state,
        record.created_at,
        record.available_at,
        record.deadline,
        record.reserved_for,
    )


class TestOffers:
    def test_a_record_comes_back_as_it_was_stored(self, offers: Offers) -> None:
        reserved = replace(RECORD, reserved_for=P1.sid)

        assert offers.open(reserved, replacing=None)
        assert offers.find(RECORD.client_id) == reserved

    def test_an_unknown_client_has_no_record(self, offers: Offers) -> None:
        assert offers.find(ClientId("nobody")) is None

    def test_a_second_record_of_a_client_is_not_stored(self, offers: Offers) -> None:
        offers.open(RECORD, replacing=None)

        assert not offers.open(replace(RECORD, message_id="m2"), replacing=None)
        assert offers.find(RECORD.client_id) == RECORD

    def test_a_final_record_is_replaced_once(self, offers: Offers) -> None:
        final = replace(RECORD, state=OfferState.REFUSED, reply="no", session_description="")
        offers.open(final, replacing=None)
        newer = replace(RECORD, message_id="m2", created_at=START + SECOND)

        assert offers.open(newer, replacing=final)
        assert not offers.open(replace(newer, message_id="m3"), replacing=final)
        assert offers.find(RECORD.client_id) == newer

    def test_a_claimed_offer_is_its_proxys_until_the_lease_ends(self, offers: Offers) -> None:
        offers.open(RECORD, replacing=None)

        matched = claim(offers)

        assert matched is not None
        assert (matched.state, matched.sid, matched.proxy_type, matched.matches) == (
            OfferState.MATCHED,
            "p1",
            "webext",
            1,
        )
        assert matched.session_description == RECORD.session_description
        assert offers.matched_by(P1.sid) == RECORD.client_id
        assert claim(offers, P2, after=5 * SECOND) is None
        again = claim(offers, P2, after=6 * SECOND)
        assert again is not None
        assert again.matches == 2

    def test_a_reserved_offer_is_claimed_by_its_held_poll_only(self, offers: Offers) -> None:
        offers.open(replace(RECORD, reserved_for=P1.sid, available_at=START + 2 * SECOND), replacing=None)

        assert claim(offers, P2) is None
        assert claim(offers, P1) is not None

    @pytest.mark.parametrize("method", list(RendezvousMethod))
    def test_only_a_reserved_offer_over_sqs_waits_for_its_second_delivery_outside_of_the_pool(
        self, offers: Offers, method: RendezvousMethod
    ) -> None:
        record = replace(RECORD, method=method, reserved_for=P1.sid)
        offers.open(record, replacing=None)
        later = START + 3 * SECOND

        def pooled() -> list[ClientId]:
            return [found.client_id for found in offers.claimable(list(OfferPool), now=later)]

        assert pooled() == ([] if method is RendezvousMethod.SQS else ["c1"])
        assert offers.renew(record, receipt_handle="h2")
        assert pooled() == ["c1"]
        assert claim(offers, P2, after=3 * SECOND) is not None

    def test_an_offer_past_its_deadline_or_unknown_cannot_be_claimed(self, offers: Offers) -> None:
        assert claim(offers) is None
        offers.open(RECORD, replacing=None)
        assert claim(offers, after=30 * SECOND) is None

    def test_a_claim_reports_whether_the_offer_is_stored(self, offers: Offers) -> None:
        def is_stored(sid: Claimant) -> bool:
            now = START + SECOND
            return offers.claim(RECORD.client_id, proxy=sid, now=now, until=now + 5 * SECOND).is_stored

        assert not is_stored(P1)
        offers.open(RECORD, replacing=None)
        assert is_stored(P1)  # and has it
        assert is_stored(P2)  # and does not

    def test_a_proxy_that_was_never_matched_has_no_client(self, offers: Offers) -> None:
        assert offers.matched_by(P1.sid) is None

    def test_only_the_matched_proxy_answers_and_only_once(self, offers: Offers) -> None:
        offers.open(RECORD, replacing=None)
        claim(offers)
        now = START + 2 * SECOND

        assert offers.answer(RECORD.client_id, sid=P2.sid, reply="r", now=now, leased_until=LEASED_UNTIL) is None
        answered = offers.answer(RECORD.client_id, sid=P1.sid, reply="r", now=now, leased_until=LEASED_UNTIL)
        assert answered is not None
        assert (answered.state, answered.reply, answered.session_description) == (OfferState.ANSWERED, "r", "")
        assert (answered.queue_url, answered.receipt_handle) == (RECORD.queue_url, "h1")
        assert offers.answer(RECORD.client_id, sid=P1.sid, reply="r", now=now, leased_until=LEASED_UNTIL) is None

    def test_an_answer_after_the_deadline_is_refused(self, offers: Offers) -> None:
        offers.open(RECORD, replacing=None)
        claim(offers)

        late = RECORD.deadline
        assert offers.answer(RECORD.client_id, sid=P1.sid, reply="r", now=late, leased_until=LEASED_UNTIL) is None

    def test_an_open_offer_is_closed_once(self, offers: Offers) -> None:
        offers.open(RECORD, replacing=None)

        closed = offers.close(RECORD.client_id, state=OfferState.EXPIRED, reply="late", leased_until=LEASED_UNTIL)

        assert closed is not None
        assert (closed.state, closed.reply) == (OfferState.EXPIRED, "late")
        assert offers.close(RECORD.client_id, state=OfferState.EXPIRED, reply="late", leased_until=LEASED_UNTIL) is None
        assert claim(offers) is None

    def test_only_open_offers_past_available_at_are_claimable(self, offers: Offers) -> None:
        ready = replace(RECORD, client_id=ClientId("ready"), created_at=START - SECOND, available_at=START - SECOND)
        reserved = replace(RECORD, client_id=ClientId("lent"), available_at=START + SECOND)
        restricted = replace(RECORD, client_id=ClientId("restricted"), nat=Nat.RESTRICTED)
        closed = replace(RECORD, client_id=ClientId("closed"))
        for record in (RECORD, ready, reserved, restricted, closed):
            offers.open(record, replacing=None)
        offers.close(closed.client_id, state=OfferState.EXPIRED, reply="", leased_until=LEASED_UNTIL)

        any_proxy = offers.claimable([OfferPool.ANY_PROXY], now=START)
        assert [relevant_fields(r) for r in any_proxy] == [relevant_fields(ready), relevant_fields(RECORD)]
        unrestricted = offers.claimable([OfferPool.UNRESTRICTED_PROXY], now=START)
        assert [relevant_fields(r) for r in unrestricted] == [relevant_fields(restricted)]
        assert next(r.client_id for r in offers.claimable(list(OfferPool), now=START + SECOND)) == "ready"

    def test_the_receipt_handle_of_an_open_offer_is_renewed(self, offers: Offers) -> None:
        offers.open(RECORD, replacing=None)

        offers.renew(RECORD, receipt_handle="h2")
        answerer = offers.close(RECORD.client_id, state=OfferState.EXPIRED, reply="", leased_until=LEASED_UNTIL)
        assert not offers.renew(RECORD, receipt_handle="h3")

        assert answerer is not None
        assert answerer.receipt_handle == "h2"
        found = offers.find(RECORD.client_id)
        assert found is not None
        assert found.receipt_handle is None
        assert offers.claimable(list(OfferPool), now=START + SECOND) == []


class TestEndedLeases:
    """The leases are in the records of `offers`."""

    @pytest.fixture
    def ended(self, offers: Offers) -> EndedLeases:
        if isinstance(offers, MemoryOffers):
            return MemoryEndedLeases(offers)
        return DynamoEndedLeases(offers.table, "https://queues.example/snowflake-client-", offers.shards)

    def test_the_lease_of_a_final_record_ends_once_at_its_time(self, offers: Offers, ended: EndedLeases) -> None:
        refused = replace(RECORD, client_id=ClientId("c3"), state=OfferState.REFUSED, available_at=LEASED_UNTIL)
        for client_id in ("c1", "c2"):
            offers.open(replace(RECORD, client_id=ClientId(client_id)), replacing=None)
        claim(offers)
        offers.answer(
            RECORD.client_id, sid=P1.sid, reply="r", now=START + SECOND, leased_until=LEASED_UNTIL + 2 * SECOND
        )
        offers.close(ClientId("c2"), state=OfferState.EXPIRED, reply="e", leased_until=LEASED_UNTIL + SECOND)
        offers.open(refused, replacing=None)

        def names(since: datetime, until: datetime) -> list[str]:
            return [str(lease.queue_name) for lease in ended.between(since, until)]

        assert names(START, LEASED_UNTIL + 2 * SECOND) == [f"snowflake-client-{name}" for name in ("c3", "c2", "c1")]
        assert names(LEASED_UNTIL + SECOND, LEASED_UNTIL + SECOND) == ["snowflake-client-c2"]
        assert list(ended.between(LEASED_UNTIL, LEASED_UNTIL)) == [
            Lease(
                QueueName("snowflake-client-c3"),
                QueueUrl("https://queues.example/snowflake-client-c3"),
                "rendezvous",
                LEASED_UNTIL,
            )
        ]

    def test_the_queues_of_waiting_clients_and_of_running_leases_are_needed(
        self, offers: Offers, ended: EndedLeases
    ) -> None:
        for name, nat in (("open", Nat.UNRESTRICTED), ("matched", Nat.RESTRICTED), ("ended", Nat.UNRESTRICTED)):
            offers.open(replace(RECORD, client_id=ClientId(name), nat=nat), replacing=None)
        offers.claim(ClientId("matched"), proxy=P1, now=START, until=START + SECOND)
        offers.close(ClientId("ended"), state=OfferState.EXPIRED, reply="e", leased_until=LEASED_UNTIL)
        http = replace(RECORD, client_id=ClientId("http:1"), method=RendezvousMethod.HTTP, queue_url=None)
        offers.open(http, replacing=None)

        def needed(now: datetime) -> set[str]:
            return {name.removeprefix("snowflake-client-") for name in ended.needed(now=now)}

        assert needed(START) == {"open", "matched", "ended"}
        assert needed(LEASED_UNTIL) == {"open", "matched"}

    def test_only_clients_over_sqs_have_leases(self, offers: Offers, ended: EndedLeases) -> None:
        offers.open(replace(RECORD, method=RendezvousMethod.HTTP, queue_url=None), replacing=None)

        offers.close(RECORD.client_id, state=OfferState.EXPIRED, reply="e", leased_until=LEASED_UNTIL)

        assert list(ended.between(START, LEASED_UNTIL)) == []

    def test_the_lease_of_a_client_that_comes_again_is_extended(self, offers: Offers, ended: EndedLeases) -> None:
        offers.open(RECORD, replacing=None)
        offers.close(RECORD.client_id, state=OfferState.EXPIRED, reply="e", leased_until=LEASED_UNTIL)
        closed = offers.find(RECORD.client_id)

        assert offers.open(replace(RECORD, message_id="m2", created_at=START + SECOND), replacing=closed)

        assert list(ended.between(START, LEASED_UNTIL)) == []


def test_an_update_that_fails_for_another_reason_than_its_condition_is_an_error(aws) -> None:
    offers = DynamoOffers(DynamoTable(boto3.client("dynamodb"), "NoSuchTable"))

    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        offers.close(ClientId("c"), state=OfferState.EXPIRED, reply="", leased_until=LEASED_UNTIL)


def reserve(held_polls: HeldPolls, client_id: str, *, until: datetime = START + SECOND) -> bool:
    return held_polls.reserve(HELD, client_id=ClientId(client_id), until=until)


class TestHeldPolls:
    def test_a_slot_is_held_by_one_until_its_end(self, held_polls: HeldPolls) -> None:
        other = replace(HELD, sid=P2.sid)

        assert held_polls.acquire(HELD, now=START)
        assert held_polls.held(now=START) == [HELD]
        assert not held_polls.acquire(other, now=START)
        assert held_polls.acquire(HELD, now=START)
        assert held_polls.held(now=HELD.until) == []
        assert held_polls.acquire(other, now=HELD.until)

    def test_one_offer_at_a_time_is_reserved_for_a_held_poll(self, held_polls: HeldPolls) -> None:
        held_polls.acquire(HELD, now=START)

        assert held_polls.reserved_offer(HELD) is None
        assert reserve(held_polls, "c1")
        assert not reserve(held_polls, "c2")
        assert held_polls.reserved_offer(HELD) == "c1"
        assert [poll.offer for poll in held_polls.held(now=START)] == ["c1"]

    def test_acquiring_the_slot_again_clears_the_reservation(self, held_polls: HeldPolls) -> None:
        held_polls.acquire(HELD, now=START)
        reserve(held_polls, "c1")

        assert held_polls.acquire(HELD, now=START)
        assert held_polls.reserved_offer(HELD) is None
        assert held_polls.held(now=START) == [HELD]

    @pytest.mark.parametrize("end", [START + SECOND, START + 60 * SECOND])
    def test_the_slot_of_a_reserved_offer_is_free_for_another_poll_at_the_end_of_the_reservation(
        self, held_polls: HeldPolls, end: datetime
    ) -> None:
        """It need not be released, and it is not held for longer than without the reservation."""
        held_polls.acquire(HELD, now=START)
        other, end_of_slot = replace(HELD, sid=P2.sid), min(end, HELD.until)

        reserve(held_polls, "c1", until=end)

        assert not held_polls.acquire(other, now=end_of_slot - SECOND / 2)
        assert held_polls.held(now=end_of_slot) == []
        assert held_polls.acquire(other, now=end_of_slot)
        assert held_polls.release(HELD) is None

    def test_a_released_slot_returns_the_reserved_offer(self, held_polls: HeldPolls) -> None:
        held_polls.acquire(HELD, now=START)
        reserve(held_polls, "c1")

        assert held_polls.release(replace(HELD, sid=P2.sid)) is None
        assert held_polls.release(HELD) == "c1"
        assert held_polls.release(HELD) is None

    def test_no_offer_is_reserved_for_a_released_slot(self, held_polls: HeldPolls) -> None:
        held_polls.acquire(HELD, now=START)

        assert held_polls.release(HELD) is None
        assert not reserve(held_polls, "c1")
        assert held_polls.reserved_offer(HELD) is None
        assert held_polls.held(now=START) == []

    def test_a_slot_is_released_by_its_own_poll_only(self, held_polls: HeldPolls) -> None:
        held_polls.acquire(HELD, now=START)

        held_polls.release(replace(HELD, sid=P2.sid))
        assert held_polls.reserved_offer(replace(HELD, sid=P2.sid)) is None
        assert held_polls.held(now=START) == [HELD]


def test_the_last_poll_of_each_nat_type_is_stored(presence: ProxyPresence) -> None:
    presence.record_poll(Nat.RESTRICTED, now=START)
    presence.record_poll(Nat.UNKNOWN, now=START)
    presence.record_poll(Nat.RESTRICTED, now=START + 6 * SECOND)

    assert presence.last_polls() == {Nat.RESTRICTED: START + 6 * SECOND, Nat.UNKNOWN: START}


class TestLeases:
    def test_leases_are_due_at_their_end_and_in_their_order(self, leases: Leases) -> None:
        later = replace(LEASE, queue_name=QueueName("q2"), due_at=START + SECOND)
        other = replace(LEASE, queue_name=QueueName("q3"), capability="splitting")
        for lease in (later, LEASE, other):
            leases.put(lease)

        assert list(leases.due("rendezvous", now=START)) == [LEASE]
        assert list(leases.due("rendezvous", now=START + SECOND)) == [LEASE, later]

    def test_a_lease_that_was_extended_does_not_end(self, leases: Leases) -> None:
        leases.put(LEASE)
        leases.put(replace(LEASE, due_at=START + SECOND))

        leases.end(LEASE)

        assert leases.leased([QueueName("q1"), QueueName("q2")]) == {"q1"}

    def test_a_lease_ends(self, leases: Leases) -> None:
        leases.put(LEASE)

        leases.end(LEASE)

        assert leases.leased([QueueName("q1")]) == set()

    def test_the_leases_of_many_queues_are_found_together(self, leases: Leases) -> None:
        names = [QueueName(f"q{number}") for number in range(150)]
        for name in names[::3]:
            leases.put(replace(LEASE, queue_name=name))

        assert leases.leased(names) == set(names[::3])
        assert leases.leased([]) == set()


class TestStrayCursor:
    def test_there_is_no_search_at_first(self, stray_cursor: Cursor) -> None:
        assert stray_cursor.position() is None

    def test_a_search_continues_at_its_place_until_it_ends(self, stray_cursor: Cursor) -> None:
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
