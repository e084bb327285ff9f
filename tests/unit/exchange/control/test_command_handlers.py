"""The execution of commands: bindings, lists, messages and callers."""

from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.exchange.control.errors import NotFound, NotPermitted
from signalbox.exchange.control.status_service import MAXIMUM_OBSERVED, TooManyResources
from signalbox.exchange.messages.deliveries import DeliveredMessage
from signalbox.exchange.model.records import BindOutcome, MinuteCounts, QueueActivity, QueueSize
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership
from tests.fakes.clock import START
from tests.unit.exchange.control.stage import ALICE, BOB, FEED, USERS, ExchangeStage

TO_QUEUE = {"exchange": "xpublic", "queue": "q_alice", "pattern": "a.#"}
OLD = {"exchange": "xpublic", "routing_key": "a.b", "body": "old", "message_id": "m-1", "published_at": 1000}


@pytest.fixture
def stage():
    stage = ExchangeStage()
    for exchange in ("xpublic", "xs_alice", "xs_alice_logs.fifo", "xs_bob"):
        stage.ask("declare_exchange", exchange=exchange)
    for queue in ("q_alice", "q_bob.x"):
        stage.ask("declare_queue", queue=queue)
    stage.events.clear()
    return stage


def test_a_binding_is_made_once(stage):
    assert stage.ask("bind", user=ALICE, **TO_QUEUE) == {**TO_QUEUE, "bound": True, "was_bound": False}
    assert stage.ask("bind", user=ALICE, **TO_QUEUE) == {**TO_QUEUE, "bound": True, "was_bound": True}
    assert len(stage.bindings.bound) == 1

    (event,) = stage.events
    assert (event.kind, event.outcome, event.source, event.destination, event.topic) == (
        "declared",
        "binding",
        "xpublic",
        "q_alice",
        "a.#",
    )
    assert event.labels == {"user": "alice"}


def test_a_binding_is_taken_away_once(stage):
    stage.ask("bind", **TO_QUEUE)

    assert stage.ask("unbind", **TO_QUEUE) == {**TO_QUEUE, "unbound": True}
    assert stage.ask("unbind", **TO_QUEUE) == {**TO_QUEUE, "unbound": False}
    assert stage.kinds() == [("declared", "binding"), ("deleted", "binding")]
    assert stage.events[-1].labels == {"user": "_"}


def test_exchanges_may_be_bound_in_a_circle(stage):
    stage.ask("bind", exchange="xpublic", destination="xs_alice", pattern="#")
    stage.ask("bind", exchange="xs_alice", destination="xpublic", pattern="#")

    assert len(stage.bindings.bound) == 2


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"exchange": "xs_new"}, "exchange 'xs_new'"),
        ({"queue": "q_new"}, "queue 'q_new'"),
        ({"queue": None, "destination": "xs_new"}, "exchange 'xs_new'"),
    ],
)
def test_both_ends_of_a_binding_must_exist(stage, given, missing):
    with pytest.raises(NotFound, match=f"{missing} does not exist: declare it first"):
        stage.ask("bind", **{**TO_QUEUE, **given})


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("exchanges", {"exchange": "xs_alice_new"}),
        ("bindings", {"exchange": "xs_alice_new"}),
        ("publish", {"exchange": "xs_alice_new", "routing_key": "a", "body": "x"}),
        ("consuming", {"queue": "q_alice_new"}),
        ("replay", {"queue": "q_alice_new", "messages": [OLD]}),
    ],
)
def test_a_command_names_what_is_there(stage, command, given):
    with pytest.raises(NotFound, match=r"_alice_new' does not exist: declare it first"):
        stage.ask(command, user=ALICE, **given)


def test_a_mistyped_name_is_answered_with_the_nearest_that_the_caller_may_read(stage):
    with pytest.raises(NotFound, match=r"'q_alcie' does not exist: declare it first; did you mean 'q_alice'\?$"):
        stage.ask("consuming", queue="q_alcie")
    with pytest.raises(NotFound, match=r"declare it first; there is 'q_bob\.x'$"):
        stage.ask("consuming", user=BOB, queue="q_bob_alice")


def test_a_resource_that_is_being_deleted_cannot_be_bound(stage):
    queue = stage.queues.records["q_alice"]
    stage.queues.records["q_alice"] = replace(queue, is_deleting=True)

    with pytest.raises(NotFound, match="queue 'q_alice' is being deleted"):
        stage.ask("bind", **TO_QUEUE)


def test_a_binding_that_raced_with_a_declaration_can_be_retried(stage):
    stage.bindings.bind = lambda bound, **_: BindOutcome.REFUSED

    with pytest.raises(NotFound, match="did not exist a moment ago: retry"):
        stage.ask("bind", **TO_QUEUE)


def test_lists_show_what_one_may_read(stage):
    stage.ask("bind", **TO_QUEUE)
    stage.ask("bind", exchange="xpublic", queue="q_bob.x", pattern="b")
    stage.ask("bind", exchange="xs_bob", destination="xpublic", pattern="#")

    assert [one["exchange"] for one in stage.ask("exchanges", user=BOB)] == ["xpublic", "xs_bob"]
    assert [one["queue"] for one in stage.ask("queues", user=BOB)] == ["q_bob.x"]
    assert stage.ask("bindings", user=BOB) == [
        {"exchange": "xpublic", "queue": "q_bob.x", "pattern": "b"},
        {"exchange": "xs_bob", "destination": "xpublic", "pattern": "#"},
    ]
    assert stage.ask("bindings", user=ALICE, exchange="xpublic") == [TO_QUEUE]
    assert len(stage.ask("exchanges")) == 4
    assert len(stage.ask("bindings")) == 3


def test_a_list_of_exchanges_has_no_settings_and_one_exchange_has_them(stage):
    rules = {"x" * 100 + str(number): {"count": 5} for number in range(50)}
    stage.ask("declare_exchange", user=ALICE, exchange="xs_alice_public.fifo", rules=rules)

    (found,) = (one for one in stage.ask("exchanges", user=BOB) if one["ordered"])
    (known,) = stage.ask("exchanges", user=BOB, exchange="xs_alice_public.fifo")

    assert (found["live"], len(known.pop("live")["rules"])) == (True, 50)
    assert found == {**known, "live": True}
    assert len(str(found)) < 500


@pytest.mark.parametrize(
    ("command", "given", "may_not"),
    [
        ("declare_exchange", {"exchange": "xs_alice"}, "configure exchange 'xs_alice'"),
        ("declare_exchange", {"exchange": "xs_bob", "alternate": "xs_alice"}, "write exchange 'xs_alice'"),
        ("delete_exchange", {"exchange": "xpublic"}, "configure exchange 'xpublic'"),
        ("declare_queue", {"queue": "q_alice"}, "configure queue 'q_alice'"),
        ("declare_queue", {"queue": "q_bob2"}, "configure queue 'q_bob2'"),
        ("delete_queue", {"queue": "q_alice"}, "configure queue 'q_alice'"),
        ("bind", TO_QUEUE, "write queue 'q_alice'"),
        ("bind", {**TO_QUEUE, "exchange": "xs_alice", "queue": "q_bob.x"}, "read exchange 'xs_alice'"),
        ("unbind", TO_QUEUE, "write queue 'q_alice'"),
        ("bindings", {"exchange": "xs_alice"}, "read exchange 'xs_alice'"),
        ("exchanges", {"exchange": "xs_alice"}, "read exchange 'xs_alice'"),
        ("publish", {"exchange": "xpublic", "routing_key": "a", "body": "x"}, "write exchange 'xpublic'"),
        ("consuming", {"queue": "q_alice"}, "read queue 'q_alice'"),
        ("replay", {"queue": "q_alice", "messages": [OLD]}, "write queue 'q_alice'"),
    ],
)
def test_a_user_has_rights_by_name_only(stage, command, given, may_not):
    with pytest.raises(NotPermitted) as caught:
        stage.ask(command, user=BOB, **given)

    assert f"user 'bob' (subscriber) may not {may_not}: " in str(caught.value)
    assert stage.events == []


@pytest.mark.parametrize("user", [None, FEED])
def test_administrators_and_feeders_may_do_everything(stage, user):
    stage.ask("declare_exchange", user=user, exchange="xpublic")
    stage.ask("bind", user=user, **TO_QUEUE)

    assert stage.ask("delete_queue", user=user, queue="q_bob.x")["deleted"]


def test_a_denial_names_all_missing_rights_and_the_remedy(stage):
    with pytest.raises(NotPermitted) as caught:
        stage.ask("bind", user=BOB, exchange="xs_alice", queue="q_alice", pattern="#")

    read, write = str(caught.value).splitlines()
    assert read == (
        "user 'bob' (subscriber) may not read exchange 'xs_alice': the role allows the exchanges xl_bob, "
        "xl_bob_*, xr_bob, xr_bob_*, xs_bob, xs_bob_*, xpublic, x*_public; "
        "use one of them, or have an administrator give the user another role"
    )
    assert write == (
        "user 'bob' (subscriber) may not write queue 'q_alice': the role allows the queues q_bob, q_bob_*; "
        "use one of them, or have an administrator give the user another role"
    )


def test_a_denial_states_that_no_name_is_permitted(stage):
    with pytest.raises(NotPermitted) as caught:
        stage.ask("declare_exchange", user=BOB, exchange="xs_bob")

    assert str(caught.value) == (
        "user 'bob' (subscriber) may not configure exchange 'xs_bob': the role allows no exchanges to configure; "
        "have an administrator give the user another role"
    )


def test_a_loose_user_owns_what_begins_with_the_name(stage):
    stage.users.put(replace(USERS[0], ownership=Ownership.LOOSE))

    assert stage.ask("declare_queue", user=ALICE, queue="q_alice2")["owner"] == "alice"


def test_a_removed_user_has_no_rights(stage):
    with pytest.raises(NotFound, match="user 'carol' does not exist: have an administrator add the user"):
        stage.ask("whoami", user=UserName("carol"))


def test_whoami_returns_the_caller(stage):
    answer = {"stage": "box", "exchange_prefix": "", "account": "1", "region": "eu-central-1"}

    assert stage.ask("whoami", user=BOB) == {"user": "bob", "role": "subscriber", "ownership": "strict", **answer}
    assert stage.ask("whoami") == {"user": None, "role": "admin", "ownership": "strict", **answer}


def test_a_message_is_put_into_the_queue_of_its_exchange(stage):
    answer = stage.ask(
        "publish", user=ALICE, exchange="xs_alice", routing_key="a.b", body="hello", headers={"from": "ann"}
    )

    (message,) = stage.sender.sent["xs_alice"]
    attributes = {name: one.text for name, one in message.attributes.items()}
    assert answer == {"exchange": "xs_alice", "routing_key": "a.b", "message_id": "message-0"}
    assert attributes == {"topic": "a.b", "publisher": "alice", "from": "ann"}
    assert message.deduplication_id is None


def test_a_message_of_the_administrators_has_a_publisher_that_no_user_can_be(stage):
    stage.ask("publish", exchange="xs_alice", routing_key="a.b", body="hello")

    (message,) = stage.sender.sent["xs_alice"]
    assert message.attributes["publisher"].text == "_"


def test_a_command_that_comes_twice_is_one_message_of_an_ordered_exchange(stage):
    for user in (ALICE, ALICE, FEED):
        stage.ask("publish", user=user, exchange="xs_alice_logs.fifo", routing_key="a.b", body="hello")

    sent = stage.sender.sent["xs_alice_logs.fifo"]
    first, again, other = (message.deduplication_id for message in sent)
    assert first == again != other
    assert {message.group_id for message in sent} == {"a.b"}


def test_a_consumer_gives_signs_of_life(stage):
    stage.time.pass_by(timedelta(minutes=1))

    answer = stage.ask("consuming", user=ALICE, queue="q_alice")

    assert answer["consumed_at"] == "2026-11-21T12:01:00+00:00"


def test_a_queue_may_be_deleted_during_a_heartbeat(stage):
    stage.meanwhile(stage.queues, "record_heartbeat", stage.queues.records.clear)

    with pytest.raises(NotFound, match="queue 'q_alice' does not exist any more"):
        stage.ask("consuming", user=ALICE, queue="q_alice")


def test_old_messages_are_delivered_again_as_they_were(stage):
    answer = stage.ask("replay", user=ALICE, queue="q_alice", messages=[OLD, {**OLD, "publisher": "feed"}])

    assert answer == {"queue": "q_alice", "delivered": 2, "failed": []}
    one, other = map(DeliveredMessage.parse, stage.sender.sent["q_alice"])
    assert (one.exchange, one.key, one.body, one.message_id) == ("xpublic", "a.b", "old", "m-1")
    assert (one.publisher, other.publisher) == ("alice", "alice")  # a user names no other publisher
    assert one.published_at.timestamp() == 1
    assert (one.sequence, one.expires_at) == (None, None)
    stage.ask("replay", queue="q_alice", messages=[{**OLD, "publisher": "feed"}])  # by an administrator
    assert DeliveredMessage.parse(stage.sender.sent["q_alice"][-1]).publisher == "feed"


@pytest.mark.parametrize("key", ["wamp.session.on_join", "wamp", "wamp."])
def test_topics_of_sessions_are_refused(stage, key):
    with pytest.raises(NotPermitted, match="such topics are for the events of sessions"):
        stage.ask("publish", exchange="xs_alice", routing_key=key, body="forged", user=ALICE)
    with pytest.raises(NotPermitted, match="such topics are for the events of sessions"):
        stage.ask("publish", exchange="xs_alice", routing_key=key, body="forged")
    with pytest.raises(NotPermitted, match="such topics are for the events of sessions"):
        stage.ask("replay", user=ALICE, queue="q_alice", messages=[OLD, {**OLD, "routing_key": key}])

    assert stage.ask("replay", queue="q_alice", messages=[{**OLD, "routing_key": key}])["delivered"] == 1
    assert stage.ask("publish", exchange="xs_alice", routing_key="wampum.a", body="b", user=ALICE)["message_id"]


def test_a_replayed_message_gets_the_queues_full_ttl(stage):
    stage.ask("declare_queue", queue="q_alice", message_ttl_seconds=60)

    stage.ask("replay", queue="q_alice", messages=[OLD])

    delivered = DeliveredMessage.parse(stage.sender.sent["q_alice"][0])
    assert (delivered.publisher, delivered.expires_at) == ("_", START + timedelta(minutes=1))


def test_messages_that_cannot_be_replayed_are_reported(stage):
    stage.ask("declare_queue", queue="q_alice.fifo")
    stage.sender.not_taken = {"bad"}

    answer = stage.ask("replay", queue="q_alice.fifo", messages=[OLD, {**OLD, "message_id": "m-2", "body": "bad"}])

    assert answer == {"queue": "q_alice.fifo", "delivered": 1, "failed": ["m-2"]}
    (message,) = stage.sender.sent["q_alice.fifo"]
    assert (message.group_id, message.deduplication_id) == ("a.b", "m-1")


def test_the_status_is_that_of_what_one_may_read(stage):
    queue = stage.queues.records["q_bob.x"]
    name = stage.ports.names.queue("q_bob.x")
    stage.sqs.held = {name: QueueSize(1), f"{name}-dlq": QueueSize(2)}
    stage.metrics.activities[name] = QueueActivity(removed=300)
    stage.counters.minutes[queue.resource] = [MinuteCounts(START, received=1, last_at=START)]

    answer = stage.ask("status", user=BOB)

    assert [one["name"] for one in answer["exchanges"]] == ["xpublic", "xs_bob"]
    (found,) = answer["queues"]
    assert (found["queued"], found["dead_letters"], found["rate_out"]) == (1, 2, 1.0)
    assert (found["state"], found["lag_seconds"]) == ("running", 0)
    assert stage.metrics.asked == [name]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["xpublic"], ["xpublic"]),
        (["xs_*"], ["xs_alice", "xs_alice_logs.fifo"]),
        (["q_alice", "q_alice*", "xs_alic?"], ["xs_alice", "q_alice"]),
    ],
)
def test_the_status_of_some_is_asked_for_by_name(stage, names, expected):
    answer = stage.ask("status", user=ALICE, names=names)

    assert [one["name"] for one in (*answer["exchanges"], *answer["queues"])] == expected


def test_the_status_of_a_name_with_brackets_is_asked_for_by_it(stage):
    stage.ask("declare_queue", user=ALICE, queue="q_alice_[1]")

    (found,) = stage.ask("status", user=ALICE, names=["q_alice_[1]"])["queues"]

    assert found["name"] == "q_alice_[1]"


def test_the_status_of_names_that_one_may_not_read_is_refused_with_the_nearest_ones(stage):
    with pytest.raises(NotFound) as refused:
        stage.ask("status", user=BOB, names=["q_bob.x", "Xpublic", "q_alice*"])

    assert str(refused.value).splitlines() == [
        "there is no exchange or queue 'Xpublic' that you may read; did you mean 'xpublic'?",
        "there is no exchange or queue 'q_alice*' that you may read; there are 'q_bob.x', 'xpublic', 'xs_bob'",
    ]


def test_a_status_that_exceeds_one_reply_is_refused(stage):
    exchange, queue = stage.exchanges.records["xpublic"], stage.queues.records["q_alice"]
    stage.exchanges.records = {"xpublic": exchange}
    stage.queues.records = {f"q_{n}": replace(queue, name=f"q_{n}") for n in range(MAXIMUM_OBSERVED)}

    with pytest.raises(TooManyResources, match=r"501 exchanges and queues match, more than .* 500: give"):
        stage.ask("status")

    assert len(stage.ask("status", names=["q_*"])["queues"]) == MAXIMUM_OBSERVED


def test_looks_are_taken_side_by_side(stage):
    looks = []

    def noted(function, values):
        looks.append([getattr(value, "name", value) for value in values])
        return map(function, values)

    stage.ports = replace(stage.ports, parallel_map=noted)
    stage.ask("status", user=BOB)

    assert looks[2:] == [["xpublic", "xs_bob"], ["q_bob.x"]]


BOBS = ["q_bob"]


@pytest.mark.parametrize(
    ("user", "command", "given", "beginnings"),
    [
        (BOB, "exchanges", {}, (["x"], [])),
        (BOB, "queues", {}, ([], BOBS)),
        (BOB, "status", {}, (["x"], BOBS)),
        (BOB, "status", {"names": ["q_bob.x", "q_bob.x*"]}, ([], ["q_bob.x"])),
        (BOB, "status", {"names": ["q_b*", "xpublic"]}, (["xpublic"], BOBS)),
        (None, "status", {"names": ["q_bob.x", "xs_a*", "xs_alice"]}, (["xs_a"], ["q_bob.x"])),
        (None, "queues", {}, ([], [""])),
        (BOB, "bindings", {}, (["x"], BOBS)),
        (BOB, "bindings", {"exchange": "xpublic"}, (["x"], BOBS)),
        (None, "bindings", {"exchange": "xpublic"}, ([], [])),
    ],
)
def test_a_list_reads_what_begins_as_names_that_the_caller_may_read(stage, user, command, given, beginnings):
    every, read = {"exchanges": stage.exchanges.every, "queues": stage.queues.every}, {"exchanges": [], "queues": []}
    for kind, store in (("exchanges", stage.exchanges), ("queues", stage.queues)):
        store.every = lambda *, prefix="", kind=kind: read[kind].append(prefix) or every[kind](prefix=prefix)

    stage.ask(command, user=user, **given)

    assert tuple(read.values()) == beginnings


def test_the_nearest_name_is_one_of_those_that_the_caller_may_read(stage):
    every, found = stage.queues.every, []
    stage.queues.every = lambda *, prefix="": found.append(prefix) or every(prefix=prefix)

    with pytest.raises(NotFound, match=r"did you mean 'q_bob\.x'"):
        stage.ask("consuming", user=BOB, queue="q_bob.y")

    assert found == BOBS


def test_bindings_of_a_user_are_read_by_their_targets(stage):
    stage.ask("bind", exchange="xpublic", queue="q_alice", pattern="b")
    stage.ask("bind", exchange="xpublic", queue="q_bob.x", pattern="a")
    stage.ask("bind", exchange="xs_bob", destination="xpublic", pattern="#")
    of, sources = stage.bindings.of, []
    stage.bindings.of = lambda one, **given: sources.append(given) or of(one, **given)
    own = {"exchange": "xpublic", "queue": "q_bob.x", "pattern": "a"}
    other = {"exchange": "xpublic", "queue": "q_alice", "pattern": "b"}

    assert stage.ask("bindings", user=BOB, exchange="xpublic") == [own]
    assert stage.ask("bindings", user=BOB) == [own, {"exchange": "xs_bob", "destination": "xpublic", "pattern": "#"}]
    assert sources == []
    assert stage.ask("bindings", exchange="xpublic") == [own, other]
    assert sources == [{"is_consistent": False}]
