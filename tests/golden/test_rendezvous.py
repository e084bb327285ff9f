"""Golden files of the stored items and messages of rendezvous, and of leases.

A golden file is changed by hand, on purpose, and together with a migration (see `files.py`).
"""

import json
from datetime import UTC, date, datetime, timedelta

import boto3
import pytest

from signalbox.aws.rendezvous.credentials import ClientCredentials, client_credentials
from signalbox.aws.rendezvous.cursors import LEASES, DynamoCursor
from signalbox.aws.rendezvous.held_polls import DynamoHeldPolls, DynamoPresence
from signalbox.aws.rendezvous.offers import DynamoEndedLeases, DynamoOffers
from signalbox.aws.rendezvous.statistics import DynamoStatistics
from signalbox.aws.shared.leases import DynamoLeases
from signalbox.queues import Lease, QueueName, QueueUrl
from signalbox.rendezvous.model.held_polls import HeldPoll
from signalbox.rendezvous.model.states import Claimant, OfferPool, OfferState, Rendezvous, RendezvousMethod
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from signalbox.rendezvous.wire.reply import ClientReply, answer_reply, error_reply
from tests.fakes.rendezvous import MemoryClock
from tests.golden.files import golden, store, stored_items

AT = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LEASED_UNTIL = AT + 150 * SECOND
DAY, DAY_KEY = date(2026, 3, 1), bytes(range(32))
QUEUE = QueueUrl("https://sqs.us-east-1.amazonaws.com/111122223333/trial-snowflake-client-c1")


def offer(client_id: str, **optional: object) -> Rendezvous:
    times = {"created_at": AT, "available_at": AT + 5 * SECOND, "deadline": AT + 60 * SECOND}
    return Rendezvous(client_id, **{"method": RendezvousMethod.SQS, "state": OfferState.PENDING, **times, **optional})


FULL = {
    "nat": Nat.UNRESTRICTED,
    "session_description": '{"type":"offer","sdp":"v=0"}',
    "relay_url": "wss://relay.example/",
    "country": "AT",
    "offer_digest": "d1ge57",
    "message_id": "m-1",
    "receipt_handle": "r-1",
    "queue_url": QUEUE,
    "reserved_for": "p1",
}
SPARSE_OFFER, PARKED_OFFER = offer("sparse", method=RendezvousMethod.HTTP), offer("parked", **FULL)
RESERVED_OFFER = offer("reserved", **FULL)
MATCHED = {"state": OfferState.MATCHED, "sid": "p1", "proxy_type": "standalone", "matches": 1}
MATCHED_OFFER = offer("matched", **FULL | MATCHED | {"available_at": AT + 20 * SECOND})
FINAL = {"session_description": "", "reply": '{"answer":"a"}', "receipt_handle": None}
ANSWERED_OFFER = offer(
    "answered", **FULL | MATCHED | {"available_at": LEASED_UNTIL} | FINAL | {"state": OfferState.ANSWERED}
)
EXPIRED = {"state": OfferState.EXPIRED, "reply": '{"error":"e"}', "available_at": LEASED_UNTIL}
EXPIRED_OFFER = offer("expired", method=RendezvousMethod.AMP, **EXPIRED)
OFFERS = (SPARSE_OFFER, PARKED_OFFER, RESERVED_OFFER, MATCHED_OFFER, ANSWERED_OFFER, EXPIRED_OFFER)

FREE_POLL = HeldPoll(3, "p3", Nat.RESTRICTED, "webext", 8, since=AT, until=AT + 20 * SECOND)
OFFERED_POLL = HeldPoll(4, "p4", Nat.UNKNOWN, "badge", 0, since=AT, until=AT + 20 * SECOND, offer="parked")
HIGH_POLL = HeldPoll(260, "p5", Nat.UNKNOWN, "badge", 0, since=AT, until=AT + 20 * SECOND)
LEASE = Lease(QueueName("trial-snowflake-client-c1"), QUEUE, "rendezvous", AT.replace(microsecond=0))


def pooled(offers: DynamoOffers, client_id: str) -> None:
    """Store an offer that is reserved for a held poll, and that was delivered again."""
    offers.open(offer(client_id, **FULL), replacing=None)
    offers.renew(offer(client_id, **FULL), receipt_handle="r-1")


def write_rendezvous(table, monkeypatch: pytest.MonkeyPatch) -> None:
    offers = DynamoOffers(table)
    offers.open(SPARSE_OFFER, replacing=None)
    offers.open(RESERVED_OFFER, replacing=None)
    for client_id in ("parked", "matched", "answered"):
        pooled(offers, client_id)
    for client_id in ("matched", "answered"):
        offers.claim(client_id, proxy=Claimant("p1", "standalone"), now=AT, until=AT + 20 * SECOND)
    offers.answer("answered", sid="p1", reply='{"answer":"a"}', now=AT, leased_until=LEASED_UNTIL)
    pooled(DynamoOffers(table, shards=4), "sharded")
    offers.open(offer("expired", method=RendezvousMethod.AMP), replacing=None)
    offers.close("expired", state=OfferState.EXPIRED, reply='{"error":"e"}', leased_until=LEASED_UNTIL)
    polls, presence = DynamoHeldPolls(table), DynamoPresence(table)
    for poll in (FREE_POLL, OFFERED_POLL, HIGH_POLL):
        polls.acquire(poll, now=AT)
    polls.reserve(OFFERED_POLL, client_id="parked", until=OFFERED_POLL.until)
    presence.record_poll(Nat.RESTRICTED, now=AT)
    monkeypatch.setattr("secrets.token_bytes", lambda size: DAY_KEY[:size])
    statistics = DynamoStatistics(table, shard=0)
    statistics.key(DAY)
    statistics.add(DAY, {"client_denied_count": 2, "country:AT": 1})
    DynamoStatistics(table, shard=3).add(DAY, {"country:AT": 4})
    statistics.first_seen(DAY, "AT#hash")


def claimable(table, *, shards: int) -> set[str]:
    found = DynamoOffers(table, shards=shards).claimable(tuple(OfferPool), now=AT + 20 * SECOND)
    return {record.client_id for record in found}


EVENTS = {
    "offer parked": events.offer(PARKED_OFFER, "parked", at=AT),
    "offer rejected": events.offer(SPARSE_OFFER, "rejected", at=AT, reason="no version"),
    "answer": events.answer(MATCHED_OFFER, at=AT + SECOND),
    "timeout": events.timeout(SPARSE_OFFER, at=AT + 60 * SECOND),
    "proxy answer": events.proxy_answer("accepted", at=AT, sid_hash="h4sh", record=MATCHED_OFFER),
    "proxy answer without offer": events.proxy_answer("late", at=AT, sid_hash="h4sh", record=None),
    "bad input": events.bad_input("proxy", at=AT, request_id="q-1", reason="no JSON"),
    "dead letter": events.dead_letter("m-1", at=AT, reason="no version"),
    "queue": events.queue(QueueName("trial-snowflake-client-c1"), "deleted", at=AT),
}


def messages() -> dict[str, str]:
    return {
        "offer": offer_body("sdp", "unrestricted"),
        "answer": answer_reply("sdp"),
        "error": error_reply("no snowflake proxies currently available"),
    }


def test_items_are_written_as_in_the_golden_file(rendezvous_table, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rendezvous(rendezvous_table, monkeypatch)

    assert stored_items(rendezvous_table) == golden("rendezvous", "items")


def test_golden_items_are_read(rendezvous_table) -> None:
    store(rendezvous_table, golden("rendezvous", "items"))

    offers, polls = DynamoOffers(rendezvous_table), DynamoHeldPolls(rendezvous_table)
    assert [offers.find(record.client_id) for record in OFFERS] == list(OFFERS)
    assert offers.matched_by("p1") == "answered"
    assert polls.held(now=AT) == [FREE_POLL, OFFERED_POLL]
    assert DynamoHeldPolls(rendezvous_table, limit=300).held(now=AT) == [FREE_POLL, OFFERED_POLL, HIGH_POLL]
    assert DynamoPresence(rendezvous_table).last_polls() == {Nat.RESTRICTED: AT}
    assert claimable(rendezvous_table, shards=1) == {"sparse", "parked", "matched"}
    assert claimable(rendezvous_table, shards=4) == {"sparse", "parked", "matched", "sharded"}
    leases = DynamoEndedLeases(rendezvous_table, str(QUEUE).removesuffix("c1")).between(AT, LEASED_UNTIL)
    assert [lease.queue_name for lease in leases] == ["trial-snowflake-client-answered"]
    statistics = DynamoStatistics(rendezvous_table)
    assert statistics.key(DAY) == DAY_KEY
    assert statistics.counters(DAY) == {"client_denied_count": 2, "country:AT": 5}
    assert not statistics.first_seen(DAY, "AT#hash")


def test_leases_are_written_as_in_the_golden_file(lease_table) -> None:
    DynamoLeases(lease_table).put(LEASE)
    DynamoCursor(lease_table, MemoryClock()).save(7)
    DynamoCursor(lease_table, MemoryClock(), LEASES).save(1_772_366_400_000)

    assert stored_items(lease_table) == golden("rendezvous", "leases")


def test_golden_leases_are_read(lease_table) -> None:
    store(lease_table, golden("rendezvous", "leases"))

    assert list(DynamoLeases(lease_table).due("rendezvous", now=AT)) == [LEASE]
    assert DynamoLeases(lease_table).leased([LEASE.queue_name]) == {LEASE.queue_name}
    assert DynamoCursor(lease_table, MemoryClock()).position() == 7
    assert DynamoCursor(lease_table, MemoryClock(), LEASES).position() == 1_772_366_400_000


def test_messages_are_written_as_in_the_golden_file() -> None:
    assert messages() == golden("rendezvous", "messages")


def test_golden_replies_are_read() -> None:
    found = golden("rendezvous", "messages")

    assert ClientReply.parse(found["answer"].encode()) == ClientReply(answer="sdp")
    assert ClientReply.parse(found["error"].encode()) == ClientReply(error="no snowflake proxies currently available")


@pytest.fixture
def outputs(aws: None) -> dict[str, str]:
    boto3.client("iam").create_user(UserName="client")
    secret = boto3.client("secretsmanager").create_secret(Name="client", SecretString="generated")
    return {"ClientUserName": "client", "ClientSecretArn": secret["ARN"]}


def test_the_secret_of_clients_is_written_as_in_the_golden_file(outputs: dict[str, str]) -> None:
    made = client_credentials(boto3.Session(), outputs)

    secret = boto3.client("secretsmanager").get_secret_value(SecretId="client")["SecretString"]
    found = json.loads(secret.replace(made.access_key_id, "AKIA").replace(made.secret_access_key, "s3cret"))
    assert found == golden("rendezvous", "client_secret")


def test_a_golden_secret_of_clients_is_read(outputs: dict[str, str]) -> None:
    key = boto3.client("iam").create_access_key(UserName="client")["AccessKey"]
    secret = json.dumps(golden("rendezvous", "client_secret")).replace("AKIA", key["AccessKeyId"])
    boto3.client("secretsmanager").put_secret_value(SecretId="client", SecretString=secret)

    assert client_credentials(boto3.Session(), outputs) == ClientCredentials(key["AccessKeyId"], "s3cret")


@pytest.mark.parametrize("name", EVENTS)
def test_history_events_are_written_as_in_the_golden_file(name: str) -> None:
    assert EVENTS[name].to_json() == golden("rendezvous", "events")[name]
