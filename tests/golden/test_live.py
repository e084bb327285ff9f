"""Golden files of the stored items and messages of live.

A golden file is changed by hand, on purpose, and together with a migration (see `files.py`).
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.aws.live import connection_snapshots, subscribers
from signalbox.aws.live.accounts import DynamoAccounts
from signalbox.aws.live.connection_snapshots import DynamoConnectionSnapshots
from signalbox.aws.live.grants import DynamoGrants, DynamoGroups, DynamoSecrets
from signalbox.aws.live.inbox import SqsInbox, SqsTimers, timed_connection
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.live.outbox import SqsOutboxes
from signalbox.aws.live.sessions import DynamoConnectionRate, DynamoRealmSessions, DynamoSessions
from signalbox.aws.live.subscribers import DynamoSubscriberChanges, DynamoSubscribers
from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.control.envelope import Envelope
from signalbox.control.protocol import command_body
from signalbox.exchange.model.records import LiveSettings, OrderBy, Retention
from signalbox.live.admin import events as admin_events
from signalbox.live.admin.command_reader import COMMANDS
from signalbox.live.admin.commands import (
    ForgetUser,
    GiveGrant,
    ListGrants,
    PutSecret,
    PutSecrets,
    TakeGrant,
    secret_fields,
)
from signalbox.live.admin.ports import StoredGrants
from signalbox.live.identity.tokens import TokenIdentity
from signalbox.live.log.documents import event_document, event_of
from signalbox.live.log.events import LoggedEvent
from signalbox.live.model import events
from signalbox.live.model.effects import (
    AnswerCall,
    Attach,
    Close,
    CountFailure,
    Detach,
    Distribute,
    Drop,
    Enter,
    Leave,
    Post,
)
from signalbox.live.model.state import Elapsed, Killed, Lost, PastRefused, RightsChanged, Session, SessionState, opened
from signalbox.live.outbox.decisions import OutboxState, TopicMark, Watermarks
from signalbox.live.outbox.items import (
    BackfillRequest,
    CloseRequest,
    EventBatch,
    OutboxMessage,
    Reply,
    SubscriptionEvent,
    parse_item,
)
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.outbox.snapshots import SnapshotRequest
from signalbox.live.outbox.totals import Totals
from signalbox.live.ports import Member, Stored
from signalbox.live.rights.grants import Grant, GrantSet, GroupGrants
from signalbox.live.router.directory import SubscriberPartition, SubscriberRow
from signalbox.live.router.publication_metadata import (
    AcknowledgementTarget,
    PublicationMetadata,
    RealmPublication,
    message_for,
    parse_metadata,
)
from signalbox.live.session.inbox import parse
from signalbox.live.wamp.audience import Audience, Listener
from signalbox.live.wamp.authentication import AuthMethod, Identity, StoredSecret
from signalbox.live.wamp.messages import Call, Payload, Subscribed, Unsubscribed
from signalbox.live.wamp.options import AfterPublication, AfterSequence, AfterTime, AfterTopicSequences, LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.messages import Message, outgoing
from signalbox.sarracenia.rights.permissions import Right, Role
from tests.golden.files import AT, FixedDatetime, RecordingSqs, golden, store, stored_items

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
PREFIX = "https://sqs.us-east-1.amazonaws.com/111122223333/"
REALM = "xs_live.fifo"
ALICE, BOB = Listener(2**53, "alice", "source"), Listener(7, "bob", "subscriber")
EXACT = TopicPattern(MatchPolicy.EXACT, "a.b")
BY_PREFIX = TopicPattern(MatchPolicy.PREFIX, "a.")
BY_WILDCARD = TopicPattern(MatchPolicy.WILDCARD, "a..c")
STARTS = {
    "last": LastEvents(3),
    "after sequence": AfterSequence(4),
    "after publication": AfterPublication(5),
    "after time": AfterTime(AT),
    "after topic sequences": AfterTopicSequences(AT, {"a.b": 4}),
}
AUDIENCE = Audience(
    eligible=frozenset({1, 2}),
    eligible_authid=frozenset({"bob"}),
    eligible_authrole=frozenset(),
    exclude=frozenset({3}),
    exclude_authid=frozenset({"eve"}),
    exclude_authrole=frozenset({"feeder"}),
    excluded_publisher=2**53,
)
PAYLOAD = Payload(("é\x01", 1, None), {"k": [True]})

EFFECTS = (
    Post(Subscribed(1, EXACT.subscription_id)),
    Post(Unsubscribed(2), ends=EXACT.subscription_id),
    Close(),
    Enter(ALICE),
    Leave(ALICE, frozenset({EXACT, BY_PREFIX})),
    *(Attach(BY_PREFIX, get_retained=True, history=start) for start in STARTS.values()),
    Attach(EXACT, get_retained=False, history=None),
    Detach(BY_WILDCARD),
    Distribute(9, "a.b", PAYLOAD, AUDIENCE, ALICE, is_retained=True, request=3),
    Distribute(10, "a.b", Payload(), Audience(), None, is_retained=False, request=None),
    AnswerCall(4, "wamp.session.count", Payload((1,))),
    Drop("wamp.error.not_authorized"),
    CountFailure("alice"),
)
NEW_SESSION = opened("c1=", now=AT, user_agent="x/1")
FULL_SESSION = Session(
    "c2=",
    opened_at=AT - SECOND,
    deadline=AT + 9 * SECOND,
    user_agent="y/2",
    state=SessionState.JOINED,
    realm=REALM,
    session=2**53,
    identity=Identity("alice", "source", AuthMethod.WAMPCRA),
    challenge="ch4llenge",
    features=frozenset({"publisher_identification", "pattern_based_subscription"}),
    subscriptions={one.subscription_id: one for one in (EXACT, BY_PREFIX, BY_WILDCARD)},
    frames=("f0", "f1"),
    pending={"f1": EFFECTS},
)
TOKEN_SESSION = replace(
    opened("c4=", now=AT),
    state=SessionState.JOINED,
    realm=REALM,
    session=8,
    identity=Identity("carol@lab", "subscriber", AuthMethod.TICKET, "lab"),
    pending={"f1": (CountFailure("", "token: expired"),)},
    token=TokenIdentity("lab", Role.SUBSCRIBER, ("a", "b"), AT + DAY, 60, "digest"),
)
MEMBERS = (Member("c1=", BOB, AT), Member("c2=", ALICE, AT))
SUBSCRIBERS = (
    Subscriber("c1=", EXACT, BOB),
    Subscriber("c1=", BY_PREFIX, BOB),
    Subscriber("c2=", BY_WILDCARD, ALICE),
    Subscriber("c2=", EXACT, ALICE),
)
MANY_CHANGES = [{"connection": f"c{number}=", "match": "exact", "uri": "many"} for number in range(32)]

LIVE = LiveSettings(rules={"kept.": Retention(count=5)})
PLAIN_EVENT = LoggedEvent(1, "a.b", AT)
FULL_EVENT = LoggedEvent(
    2**53,
    "a.b",
    AT,
    PAYLOAD,
    sequence=2,
    audience=replace(AUDIENCE, eligible=None, exclude=None),
    disclosed=ALICE,
    is_retained=True,
    headers={"color": "red"},
    sqs_sequence=18_850_000_000_000_000_001,
)
TEXT_EVENT = LoggedEvent(3, "kept.c", AT, Payload(("text",)), sequence=3, is_retained=True, is_text=True)
OMITTED_EVENT = LoggedEvent(4, "a.c", AT, sequence=4, omitted_bytes=200_000)
LONG_EVENT = LoggedEvent(5, "a.c", AT, Payload(("long " * 250,)), sequence=5)
LOGGED_EVENTS = (FULL_EVENT, TEXT_EVENT, OMITTED_EVENT, LONG_EVENT)

GRANTS = (Grant(Right.READ, BY_PREFIX), Grant(Right.WRITE, EXACT))
DENIES = (Grant(Right.READ, EXACT),)
SECRETS = {"alice": StoredSecret("5a17", "ver1f1er", "k3y"), "bob": StoredSecret("5a18", "ver1f1er")}
TOTALS = Totals(events=3, replies=2, size=512, lags=(1, 2, *[0] * 18), longest_ms=7, noted_at=AT)
FULL_OUTBOX = OutboxState(
    subscribed=frozenset({EXACT.subscription_id, BY_PREFIX.subscription_id}),
    unconfirmed_reply="i-3",
    done=("i-1", "i-2"),
    pending_backfills={BY_PREFIX.subscription_id: {"a.b": 7}},
    watermarks={EXACT.subscription_id: Watermarks(AT, {TopicMark("a.b"): 6})},
    caught_up_at=AT,
    progress=("i-4", 2),
    totals=TOTALS,
)


def write_live(table, exchange_table, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (connection_snapshots, subscribers):
        monkeypatch.setattr(module, "datetime", FixedDatetime)
    write_sessions(table)
    write_subscribers(table)
    log = DynamoTopicLog(table)
    log.append(REALM, LOGGED_EVENTS, live=LIVE)
    grants, secrets = DynamoGrants(table), DynamoSecrets(table)
    grants.save(REALM, "alice", GrantSet(GRANTS[:1]), replacing=StoredGrants())
    grants.save(REALM, "alice", GrantSet(GRANTS), replacing=StoredGrants(GRANTS[:1], 1))
    grants.save(REALM, "carol", GrantSet(GRANTS, DENIES), replacing=StoredGrants())
    grants.save(REALM, "@lab", GrantSet(GRANTS, DENIES), replacing=StoredGrants())
    DynamoGroups(table).add(REALM, "lab", "carol")
    secrets.put(SECRETS)
    for _ in range(2):
        DynamoAccounts(table, exchange_table, "p3pper").count_failure("alice", now=AT)
    DynamoAccounts(table, exchange_table, "p3pper").end_tokens(REALM, "carol@lab", now=AT)
    snapshots = DynamoConnectionSnapshots(table, exchange_table)
    snapshots.save("c1=", OutboxState(), session=None)
    snapshots.save("c2=", FULL_OUTBOX, session=None)
    snapshots.save("c3=", FULL_OUTBOX, session=FULL_SESSION)
    monkeypatch.setattr(connection_snapshots, "MANY", 0)
    snapshots.save("c5=", FULL_OUTBOX, session=None)


def write_sessions(table) -> None:
    sessions, realm_sessions = DynamoSessions(table), DynamoRealmSessions(table)
    sessions.open(NEW_SESSION)
    sessions.open(replace(FULL_SESSION, pending={}))
    sessions.save(FULL_SESSION, replacing=Stored(FULL_SESSION, 1))
    sessions.open(TOKEN_SESSION)
    for member in MEMBERS:
        realm_sessions.enter(REALM, member, expires_at=AT + DAY)
    DynamoConnectionRate(table).count(now=AT, most=1, network=None, most_of_network=1)


def write_subscribers(table) -> None:
    subscribers = DynamoSubscribers(table)
    for subscriber in SUBSCRIBERS:
        subscribers.attach(REALM, subscriber, at=AT, expires_at=AT + DAY)
    subscribers.detach(REALM, [EXACT], "c2=")
    DynamoSubscriberChanges(table).add(f"bucket#{REALM}#=many", MANY_CHANGES, at=AT)


SIGNALS = {
    "lost": Lost(),
    "elapsed": Elapsed(),
    "rights": RightsChanged(),
    "killed": Killed("a.reason", "bye"),
    "refused": PastRefused(7, "too many"),
}
ITEMS = {
    "reply": Reply("i-1", "[33,1,2]", begins=2, expects_backfill=True),
    "last reply": Reply("i-2", "[35,1]", ends=2),
    "plain reply": Reply("i-3", "[17,1,2]"),
    "close": CloseRequest("i-4"),
    "events": EventBatch(
        "i-5", REALM, "alice", (SubscriptionEvent(EXACT, FULL_EVENT), SubscriptionEvent(BY_PREFIX, PLAIN_EVENT))
    ),
    "backfill": BackfillRequest("i-6", EXACT, get_retained=True, history=None),
    "backfill of a time": BackfillRequest("i-8", EXACT, get_retained=True, history=None, at=AT),
    **{
        f"backfill {name}": BackfillRequest("i-7", BY_WILDCARD, get_retained=False, history=start)
        for name, start in STARTS.items()
    },
}
PLAIN_METADATA = PublicationMetadata(9)
FULL_METADATA = PublicationMetadata(
    9, AUDIENCE, ALICE, is_retained=True, acknowledge_to=AcknowledgementTarget("c2=", 3)
)


def inbox_messages() -> dict[str, object]:
    sqs = RecordingSqs()
    inbox = SqsInbox(sqs, PREFIX + "trial-live-inbox.fifo")
    inbox.put_frame("c1=", '[48,1,{},"wamp.session.count"]', request="q-1")
    for signal in SIGNALS.values():
        inbox.notify("c1=", signal, request="q-2")
    SqsTimers(sqs, PREFIX + "trial-live-timers").start("c1=")
    return dict(zip(("frame", *SIGNALS, "timer"), sqs.sent, strict=True))


def outbox_messages() -> dict[str, object]:
    sqs = RecordingSqs()
    outboxes = SqsOutboxes(sqs, PREFIX + "trial-live-outboxes.fifo")
    outboxes.put("c1=", list(ITEMS.values()))
    outboxes.send([OutboxMessage("c1=", "i-5", '{"item":"i-5"}')])
    return dict(zip((*ITEMS, "sent by the router"), sqs.sent, strict=True))


def other_messages() -> dict[str, object]:
    sqs = RecordingSqs()
    unreadable = Message("m-1", "no item", {}, {"MessageGroupId": "c1=", "MessageDeduplicationId": "d"}, {})
    ordered = SqsDeadLetters(sqs, PREFIX + "trial-live-dead-letters.fifo")
    ordered.dead_letter(unreadable, reason="expected an item")
    SqsDeadLetters(sqs, PREFIX + "trial-live-dead-letters").dead_letter(unreadable, reason="no timer")
    dead_letter, unordered_dead_letter = sqs.sent
    plain = RealmPublication("a.b", Payload(("text",)), PLAIN_METADATA, "alice", "c1=")
    full = RealmPublication("a.b", Payload((1, 2), {"k": 3}), FULL_METADATA, "alice", "c1=")
    return {
        "publication": outgoing(message_for(plain, order_by=OrderBy.TOPIC, deduplication_id="d-1")),
        "full publication": outgoing(message_for(full, order_by=OrderBy.PUBLISHER, deduplication_id="d-1")),
        "dead letter": dead_letter,
        "unordered dead letter": unordered_dead_letter,
    }


CREDENTIALS = StoredSecret.of("s3cret", salt="5a17" * 8, with_key=True)
GRANTED = {"user": "bob", "exchange": REALM, "right": "read", "match": "prefix", "uri": "a."}
COMMANDS_SENT = {
    "grant": (GRANTED, GiveGrant("bob", REALM, GRANTS[0])),
    "ungrant": (GRANTED, TakeGrant("bob", REALM, GRANTS[0])),
    "grants": ({"exchange": REALM, "user": "bob"}, ListGrants(REALM, "bob")),
    "secret": ({"user": "bob", **secret_fields(CREDENTIALS)}, PutSecret("bob", CREDENTIALS)),
    "secrets": (
        {"secrets": [{"user": "bob", **secret_fields(CREDENTIALS)}]},
        PutSecrets((PutSecret("bob", CREDENTIALS),)),
    ),
    "forget_user": ({"user": "bob"}, ForgetUser("bob")),
}


def control_messages() -> dict[str, str]:
    return {name: command_body(name, request_id="q-1", fields=fields) for name, (fields, _) in COMMANDS_SENT.items()}


CAUSE = events.Cause("f1", AT, "wamp.close.normal")
BY = {"by": "alice", "at": AT}
EVENTS = {
    "started": events.started(ALICE, REALM, CAUSE),
    "ended": events.ended(ALICE, REALM, CAUSE),
    "refused": events.refused(NEW_SESSION, CAUSE),
    "subscribed": events.subscribed(BY_PREFIX, BOB, REALM, CAUSE),
    "unsubscribed": events.unsubscribed(EXACT, BOB, REALM, CAUSE),
    "revoked": events.unsubscribed(EXACT, BOB, REALM, replace(CAUSE, is_revoked=True)),
    "dropped": events.dropped(FULL_SESSION, "wamp.error.not_authorized", CAUSE),
    "dead letter": events.dead_letter("m-1", holder="an outbox", at=AT),
    "granted": admin_events.changed(GiveGrant("bob", REALM, GRANTS[0]), **BY),
    "ungranted": admin_events.changed(TakeGrant("bob", REALM, GRANTS[1]), by=None, at=AT),
    "secret": admin_events.secret_changed("bob", **BY),
}


def test_items_are_written_as_in_the_golden_file(live_table, exchange_table, monkeypatch: pytest.MonkeyPatch) -> None:
    write_live(live_table, exchange_table, monkeypatch)

    assert stored_items(live_table) == golden("live", "items")


def test_golden_sessions_are_read(live_table) -> None:
    store(live_table, golden("live", "items"))

    sessions, realm_sessions = DynamoSessions(live_table), DynamoRealmSessions(live_table)
    assert sessions.find("c1=") == Stored(NEW_SESSION, 1)
    assert sessions.find("c2=") == Stored(FULL_SESSION, 2)
    assert sessions.find("c4=") == Stored(TOKEN_SESSION, 1)
    assert list(sessions.overdue(now=AT + timedelta(hours=2, minutes=5))) == ["c1=", "c4=", "c2="]
    assert list(realm_sessions.every(REALM)) == list(MEMBERS)
    assert realm_sessions.find(REALM, 7) == MEMBERS[0]
    assert realm_sessions.of_user(REALM, "alice") == ["c2="]
    assert not DynamoConnectionRate(live_table).count(now=AT, most=1, network=None, most_of_network=1)


def test_golden_subscribers_are_read(live_table) -> None:
    store(live_table, golden("live", "items"))

    found = DynamoSubscribers(live_table)
    of_topic, of_patterns = SubscriberPartition(REALM, "a.b"), SubscriberPartition(REALM, None)
    many = SubscriberPartition(REALM, "many")
    expires_at = (AT + DAY).replace(microsecond=0)
    bob, by_prefix, by_wildcard, alice = (SubscriberRow(one, AT, expires_at) for one in SUBSCRIBERS)
    assert list(found.rows(of_topic)) == [bob]
    assert list(found.rows(of_patterns)) == [by_prefix, by_wildcard]
    versions = found.versions([of_topic, of_patterns, many])
    assert [change.row for change in versions[of_topic].changes] == [bob, alice, None]
    assert [change.row for change in versions[of_patterns].changes] == [by_prefix, by_wildcard]
    first = round(AT.timestamp() * 1000) + 1
    assert (versions[of_topic].number, versions[many].number) == (first + 2, first + 31)
    assert [change.connection for change in versions[many].changes] == [f"c{number}=" for number in range(27, 32)]
    kept = found.changes(many, range(first, first + 27))
    assert {number: kept[number].connection for number in kept} == {first + n: f"c{n}=" for n in range(27)}


def test_golden_logs_are_read(live_table) -> None:
    store(live_table, golden("live", "items"))

    log = DynamoTopicLog(live_table)
    assert list(log.every_topic(REALM)) == ["a.b", "a.c", "kept.c"]
    found = [event for topic in log.every_topic(REALM) for event in log.events(REALM, topic, live=LIVE, now=AT)]
    assert found == [FULL_EVENT, OMITTED_EVENT, LONG_EVENT, TEXT_EVENT]
    assert [event.headers for event in found] == [{"color": "red"}, {}, {}, {}]
    assert [*log.retained(REALM, TopicPattern(MatchPolicy.PREFIX, ""))] == [FULL_EVENT, TEXT_EVENT]


def test_golden_accounts_and_outboxes_are_read(live_table, exchange_table) -> None:
    store(live_table, golden("live", "items"))
    store(exchange_table, golden("exchange", "items"))

    accounts = DynamoAccounts(live_table, exchange_table, "p3pper")
    grants = DynamoGrants(live_table)
    assert grants.find(REALM, "alice") == StoredGrants(GRANTS, 2)
    found = grants.find(REALM, "carol")
    assert (set(found.grants), found.denies, found.version) == (set(GRANTS), DENIES, 1)
    assert grants.of_groups(REALM) == GroupGrants(1, {"@lab": GrantSet(GRANTS, DENIES)})
    assert grants.grantees(REALM) == ["alice", "carol"]
    assert DynamoGroups(live_table).of_user(REALM, "carol") == {"lab"}
    assert DynamoGroups(live_table).members(REALM) == [("lab", "carol")]
    access = accounts.access(REALM, "alice", now=AT)
    assert (access.account.credentials, access.account.rights.grants, access.failures) == (SECRETS["alice"], GRANTS, 2)
    snapshots = DynamoConnectionSnapshots(live_table, exchange_table)
    assert snapshots.read("c1=", owner=None).outbox == OutboxState()
    assert snapshots.read("c5=", owner=None).outbox == FULL_OUTBOX
    snapshot = snapshots.read("c2=", owner=None)
    assert (snapshot.outbox, snapshot.session, snapshot.rights.grants) == (FULL_OUTBOX, FULL_SESSION, GRANTS)
    request = SnapshotRequest("c3=", (REALM, "alice"), has_only_events=True)
    copied = snapshots.recent([request])["c3="]
    assert (copied.outbox, copied.session) == (FULL_OUTBOX, replace(FULL_SESSION, frames=(), pending={}, challenge=""))


@pytest.mark.parametrize("event", [PLAIN_EVENT, *LOGGED_EVENTS], ids=lambda event: str(event.publication))
def test_event_documents_are_written_as_in_the_golden_file(event: LoggedEvent) -> None:
    document = golden("live", "event_documents")[str(event.publication)]

    assert event_document(event) == document


@pytest.mark.parametrize("event", [PLAIN_EVENT, *LOGGED_EVENTS], ids=lambda event: str(event.publication))
def test_golden_event_documents_are_read(event: LoggedEvent) -> None:
    assert event_of(golden("live", "event_documents")[str(event.publication)]) == event


def test_inbox_messages_are_written_as_in_the_golden_file() -> None:
    assert inbox_messages() == golden("live", "inbox")


def test_golden_inbox_messages_are_read() -> None:
    bodies = {name: message["MessageBody"] for name, message in golden("live", "inbox").items()}

    assert timed_connection(bodies.pop("timer")) == "c1="
    found = {name: parse(body).received for name, body in bodies.items()}
    assert found == {"frame": Call(1, {}, "wamp.session.count"), **SIGNALS}


def test_outbox_messages_are_written_as_in_the_golden_file() -> None:
    assert outbox_messages() == golden("live", "outbox")


@pytest.mark.parametrize("name", ITEMS)
def test_golden_outbox_items_are_read(name: str) -> None:
    assert parse_item(golden("live", "outbox")[name]["MessageBody"]) == ITEMS[name]


def test_publications_and_dead_letters_are_written_as_in_the_golden_file() -> None:
    assert other_messages() == golden("live", "messages")


@pytest.mark.parametrize(("name", "metadata"), [("publication", PLAIN_METADATA), ("full publication", FULL_METADATA)])
def test_golden_publication_metadata_are_read(name: str, metadata: PublicationMetadata) -> None:
    attributes = golden("live", "messages")[name]["MessageAttributes"]

    assert parse_metadata(attributes["live"]["StringValue"]) == metadata


@pytest.mark.parametrize("name", EVENTS)
def test_history_events_are_written_as_in_the_golden_file(name: str) -> None:
    assert EVENTS[name].to_json() == golden("live", "events")[name]


def test_control_messages_are_written_as_in_the_golden_file() -> None:
    assert control_messages() == golden("live", "control")


@pytest.mark.parametrize("name", COMMANDS_SENT)
def test_golden_commands_are_read(name: str) -> None:
    envelope = Envelope.parse(golden("live", "control")[name])

    assert envelope.command(COMMANDS) == COMMANDS_SENT[name][1]
