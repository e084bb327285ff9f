"""Golden files of the stored items and messages of rendezvous, and of leases.

A golden file is changed by hand, on purpose, and together with a migration (see `files.py`).
"""

import json
from base64 import b64decode, b64encode
from dataclasses import replace
from datetime import date, timedelta

import boto3
import pytest

from signalbox.aws.rendezvous.credentials import ClientCredentials, client_credentials, parameter_of
from signalbox.aws.rendezvous.cursors import LEASES, DynamoCursor
from signalbox.aws.rendezvous.offers import DynamoOffers, DynamoQueueLeases
from signalbox.aws.rendezvous.paces import DynamoPaces
from signalbox.aws.rendezvous.packing import packed, unpacked
from signalbox.aws.rendezvous.statistics import DynamoStatistics
from signalbox.aws.shared.leases import DynamoLeases
from signalbox.queues import Lease, QueueName, QueueUrl
from signalbox.rendezvous.model.pace import Pace, ProxyGroup, ProxyKind, first_pace
from signalbox.rendezvous.model.states import OfferState, RendezvousMethod, RendezvousRecord
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from signalbox.rendezvous.wire.proxy import ProxyPoll
from signalbox.rendezvous.wire.reply import ClientReply, answer_reply, error_reply
from tests.fakes.rendezvous import MemoryClock
from tests.golden.files import AT, golden, store, stored_items

SECOND = timedelta(seconds=1)
KEPT_FOR = 150 * SECOND
DAY, DAY_KEY = date(2026, 3, 1), bytes(range(32))
QUEUE = QueueUrl("https://sqs.us-east-1.amazonaws.com/111122223333/trial-snowflake-client-c1")


def offer(client_id: str, **optional: object) -> RendezvousRecord:
    times = {"created_at": AT, "available_at": AT, "deadline": AT + 60 * SECOND}
    return RendezvousRecord(
        client_id, **{"method": RendezvousMethod.SQS, "state": OfferState.PENDING, **times, **optional}
    )


FULL = {
    "nat": Nat.UNRESTRICTED,
    "session_description": '{"type":"offer","sdp":"v=0"}',
    "relay_url": "wss://relay.example/",
    "country": "AT",
    "message_id": "m-1",
    "receipt_handle": "r-1",
}
SPARSE_OFFER, PARKED_OFFER = offer("http:sparse", method=RendezvousMethod.HTTP), offer("parked", **FULL)
MATCHED = {"state": OfferState.MATCHED, "sid": "p1", "proxy_type": "standalone", "matches": 1}
MATCHED_OFFER = offer("matched", **FULL | MATCHED | {"available_at": AT + 20 * SECOND})
FINAL = {"session_description": "", "reply": '{"answer":"a"}', "receipt_handle": None, "relay_url": ""}
ANSWERED_OFFER = offer("answered", **FULL | MATCHED | FINAL | {"state": OfferState.ANSWERED})
EXPIRED = {"state": OfferState.EXPIRED, "reply": '{"error":"e"}'}
EXPIRED_OFFER = offer("ampcache:expired", method=RendezvousMethod.AMP, **EXPIRED)
POLL = ProxyPoll("p1", "standalone", Nat.UNKNOWN, 0, None)
OFFERS = (SPARSE_OFFER, PARKED_OFFER, MATCHED_OFFER, ANSWERED_OFFER, EXPIRED_OFFER)

WEBEXT, BADGE = ProxyKind(Nat.RESTRICTED, "webext"), ProxyKind(Nat.UNKNOWN, "badge")
COUNTED = {"known": {WEBEXT: 70, BADGE: 5}, "networks": {7: 3}}
PACE = Pace(30 * SECOND, AT + 60 * SECOND, AT, followed=20 * SECOND, **COUNTED)
LEASE = Lease(QueueName("trial-snowflake-client-c1"), QUEUE, "rendezvous", AT.replace(microsecond=0))


def write_rendezvous(table, monkeypatch: pytest.MonkeyPatch) -> None:
    offers = DynamoOffers(table, KEPT_FOR)
    for record in (SPARSE_OFFER, PARKED_OFFER, offer("matched", **FULL), offer("answered", **FULL)):
        offers.open(record)
    for record in (MATCHED_OFFER, replace(ANSWERED_OFFER, available_at=AT + 20 * SECOND)):
        offers.claim(record, proxy=POLL, now=AT, until=AT + 20 * SECOND, is_busy=True)
    offers.answer(ANSWERED_OFFER, sid="p1", reply='{"answer":"a"}', now=AT)
    offers.renew(PARKED_OFFER, receipt_handle="r-2")
    expired = offer("ampcache:expired", method=RendezvousMethod.AMP)
    offers.open(expired)
    offers.close(expired, state=OfferState.EXPIRED, reply='{"error":"e"}')
    paces = DynamoPaces(table)
    paces.add(ProxyGroup.RESTRICTED, {WEBEXT: 4}, networks={17: 4}, now=AT)
    counted = paces.add(ProxyGroup.UNRESTRICTED, {}, networks={}, now=AT)
    paces.replace(ProxyGroup.UNRESTRICTED, PACE, replaced=counted)
    monkeypatch.setattr("secrets.token_bytes", lambda size: DAY_KEY[:size])
    statistics = DynamoStatistics(table, shard=0)
    statistics.key(DAY)
    statistics.add(DAY, {"client_denied_count": 2, "country:AT": 1})
    DynamoStatistics(table, shard=3).add(DAY, {"country:AT": 4})
    statistics.first_seen(DAY, "AT#hash")


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

    assert [shown(item) for item in stored_items(rendezvous_table)] == golden("rendezvous", "items")


PACKED = ("reply", "session_description")


def shown(item: dict) -> dict:
    """Return an item whose packed texts are readable."""
    return item | {name: {"packed": unpacked(b64decode(item[name]["B"]))} for name in PACKED if name in item}


def stored(item: dict) -> dict:
    """Return an item of the golden file as it is stored."""
    texts = {name: item[name]["packed"] for name in PACKED if name in item}
    return item | {name: {"B": b64encode(packed(text)).decode()} for name, text in texts.items()}


def test_golden_items_are_read(rendezvous_table) -> None:
    store(rendezvous_table, [stored(item) for item in golden("rendezvous", "items")])

    offers = DynamoOffers(rendezvous_table, KEPT_FOR)
    assert [offers.find(record) for record in OFFERS] == list(OFFERS)
    assert offers.matched_by("p1", since=AT) in (MATCHED_OFFER, ANSWERED_OFFER)
    offers.claim(PARKED_OFFER, proxy=POLL, now=AT, until=AT + 20 * SECOND, is_busy=False)
    assert offers.answer(PARKED_OFFER, sid="p1", reply="a", now=AT + 20 * SECOND).receipt_handle == "r-2"
    assert DynamoPaces(rendezvous_table).all() == {
        ProxyGroup.RESTRICTED: replace(first_pace(AT), polls={WEBEXT: 4}, networks={17: 4}),
        ProxyGroup.UNRESTRICTED: PACE,
    }
    leases = DynamoQueueLeases(rendezvous_table, str(QUEUE).removesuffix("c1"), KEPT_FOR)
    names = [lease.queue_name for lease in leases.between(AT, AT + KEPT_FOR)]
    assert names == [f"trial-snowflake-client-{client}" for client in ("answered", "matched", "parked")]
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
    return {"ClientUserName": "client"}


def test_the_secret_of_clients_is_written_as_in_the_golden_file(outputs: dict[str, str]) -> None:
    made = client_credentials(boto3.Session(), outputs)

    parameter = boto3.client("ssm").get_parameter(Name=parameter_of("client"), WithDecryption=True)["Parameter"]
    secret = parameter["Value"]
    found = json.loads(secret.replace(made.access_key_id, "AKIA").replace(made.secret_access_key, "s3cret"))
    assert found == golden("rendezvous", "client_secret")


def test_a_golden_secret_of_clients_is_read(outputs: dict[str, str]) -> None:
    key = boto3.client("iam").create_access_key(UserName="client")["AccessKey"]
    secret = json.dumps(golden("rendezvous", "client_secret")).replace("AKIA", key["AccessKeyId"])
    boto3.client("ssm").put_parameter(Name=parameter_of("client"), Value=secret, Type="SecureString")

    assert client_credentials(boto3.Session(), outputs) == ClientCredentials(key["AccessKeyId"], "s3cret")


@pytest.mark.parametrize("name", EVENTS)
def test_history_events_are_written_as_in_the_golden_file(name: str) -> None:
    assert EVENTS[name].to_json() == golden("rendezvous", "events")[name]
