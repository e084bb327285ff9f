"""The deletion of exchanges and queues: refusals, deleted parts, and interrupted deletions."""

from datetime import timedelta

import pytest

from signalbox.control.delivery import CommandDelivery, Overtaken
from signalbox.control.pages import json_text
from signalbox.errors import Contended
from signalbox.exchange.control.commands import UnbindUser
from signalbox.exchange.control.declaration import BeingDeleted
from signalbox.exchange.control.deletion import (
    REMOVED_AT_ONCE,
    SHOWN_BINDINGS,
    UNBINDING,
    BindingsLeft,
    ResourceInUse,
)
from signalbox.exchange.control.errors import NotPermitted
from signalbox.exchange.model.control_ports import DELETING, ChangedMeanwhile, RealmLeft
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import Binding, QueueSize
from signalbox.messages import MAXIMUM_BYTES
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.unit.exchange.control.stage import ALICE, ExchangeStage


@pytest.fixture
def stage():
    stage = ExchangeStage()
    stage.ask("declare_exchange", exchange="xpublic")
    stage.ask("declare_exchange", exchange="xs_alice")
    stage.ask("declare_queue", queue="q_alice")
    stage.events.clear()
    return stage


def bind(stage):
    stage.ask("bind", exchange="xpublic", queue="q_alice", pattern="a.#")
    stage.ask("bind", exchange="xs_alice", destination="xpublic", pattern="#")
    stage.events.clear()


TO_QUEUE = {"exchange": "xpublic", "queue": "q_alice", "pattern": "a.#"}
FROM_OTHER = {"exchange": "xs_alice", "destination": "xpublic", "pattern": "#"}


@pytest.mark.parametrize(
    ("command", "opposite", "given"),
    [
        ("delete_exchange", "declare_exchange", {"exchange": "xpublic"}),
        ("delete_queue", "declare_queue", {"queue": "q_alice"}),
        ("unbind", "bind", TO_QUEUE),
    ],
)
def test_a_repeated_command_does_not_remove_what_was_made_since(stage, command, opposite, given):
    bind(stage)
    sent = stage.time.now()
    first, repeated = CommandDelivery(sent), CommandDelivery(sent, is_repeated=True)
    forced = given | ({"force": True} if command == "delete_exchange" else {})
    stage.ask(command, **forced, delivery=first)
    stage.ask(command, **forced, delivery=repeated)
    stage.time.moment += timedelta(seconds=60)
    stage.ask(opposite, **given, delivery=CommandDelivery(stage.time.now()))
    stage.events.clear()

    with pytest.raises(Overtaken, match="a command that was sent after this one changed"):
        stage.ask(command, **forced, delivery=repeated)

    assert stage.events == []
    stage.ask(command, **forced, delivery=first)
    assert len(stage.events) == 1


def test_an_exchange_goes_with_all_that_it_has_in_sqs(stage):
    answer = stage.ask("delete_exchange", exchange="xpublic")

    assert answer == {
        "exchange": "xpublic",
        "deleted": True,
        "unbound": [],
        "unlisted": 0,
        "lost": 0,
        "dead_letters": None,
    }
    assert {name for name in stage.sqs.queues if "public" in name} == set()
    assert stage.mappings.connected == {"xs_alice"}
    assert "xpublic" not in stage.exchanges.records
    assert stage.kinds() == [("deleted", "exchange")]


@pytest.mark.parametrize(
    ("command", "given"), [("delete_exchange", {"exchange": "xs_bob"}), ("delete_queue", {"queue": "q_bob"})]
)
def test_deleting_a_missing_resource_changes_nothing(stage, command, given):
    assert stage.ask(command, **given) == {
        **given,
        "deleted": False,
        "unbound": [],
        "unlisted": 0,
        "lost": 0,
        "dead_letters": None,
    }


def test_an_exchange_stays_while_it_is_bound(stage):
    bind(stage)

    with pytest.raises(ResourceInUse) as caught:
        stage.ask("delete_exchange", exchange="xpublic")

    assert str(caught.value) == (
        "exchange 'xpublic' is bound (xpublic to q_alice by a.#, xs_alice to xpublic by #): unbind it first, or delete "
        "with force"
    )
    assert not stage.exchanges.records["xpublic"].is_deleting


def test_of_many_bindings_some_are_named_and_the_rest_counted(stage):
    bind(stage)
    for number in range(SHOWN_BINDINGS):
        stage.ask("bind", exchange="xpublic", queue="q_alice", pattern=str(number))

    with pytest.raises(ResourceInUse, match=r" and 2 more\): unbind it first"):
        stage.ask("delete_exchange", exchange="xpublic")


def test_bindings_go_by_force(stage):
    bind(stage)

    answer = stage.ask("delete_exchange", exchange="xpublic", force=True)

    assert answer["unbound"] == [TO_QUEUE, FROM_OTHER]
    assert stage.bindings.bound == {}
    assert stage.kinds() == [("deleted", "binding"), ("deleted", "binding"), ("deleted", "exchange")]


def test_an_exchange_stays_while_messages_wait_in_it(stage):
    stage.sqs.held["xpublic"] = QueueSize(2, in_flight=1, delayed=1)

    with pytest.raises(ResourceInUse, match="exchange 'xpublic' holds about 4 messages"):
        stage.ask("delete_exchange", exchange="xpublic")

    assert stage.ask("delete_exchange", exchange="xpublic", force=True)["lost"] == 4


def test_an_exchange_stays_while_it_is_an_alternate(stage):
    stage.ask("declare_exchange", exchange="xs_alice", alternate="xpublic")

    with pytest.raises(ResourceInUse, match="exchange 'xpublic' is the alternate of xs_alice"):
        stage.ask("delete_exchange", exchange="xpublic")

    assert stage.ask("delete_exchange", exchange="xpublic", force=True)["deleted"]
    assert stage.exchanges.records["xs_alice"].alternate is None


def test_a_realm_exists_until_its_last_event_is_deleted_and_the_next_has_none(stage):
    name = "xs_alice.fifo"
    stage.ask("declare_exchange", exchange=name, live=True)
    stage.former_events[name] = 3

    for _ in range(2):
        with pytest.raises(RealmLeft, match="send the command again"):
            stage.ask("delete_exchange", exchange=name)
        with pytest.raises(BeingDeleted):
            stage.ask("declare_exchange", exchange=name)
    assert stage.ask("delete_exchange", exchange=name)["deleted"]

    stage.former_events[name] = 2  # a router had begun a batch before the deletion
    with pytest.raises(RealmLeft):
        stage.ask("declare_exchange", exchange=name)
    assert stage.ask("declare_exchange", exchange=name)["exchange"] == name
    assert stage.former_events == {}


@pytest.mark.parametrize(("live", "left"), [(True, 0), (None, 5)])
def test_the_heads_of_a_live_exchange_are_deleted_in_parts_and_others_end_by_themselves(stage, live, left):
    name = "xs_alice.fifo"
    stage.ask("declare_exchange", exchange=name, **({"live": live} if live else {}))
    stage.exchanges.heads[name] = 5
    if live:
        stage.meanwhile(stage.exchanges, "delete_heads", lambda: stage.time.pass_by(DELETING))
        with pytest.raises(RealmLeft, match="send the command again"):
            stage.ask("delete_exchange", exchange=name)
        assert stage.exchanges.heads == {name: 5}

    assert stage.ask("delete_exchange", exchange=name)["deleted"]

    assert stage.exchanges.heads == {name: left}


def test_a_queue_takes_its_bindings_and_messages_along(stage):
    bind(stage)
    stage.sqs.held["q_alice"] = QueueSize(3)

    answer = stage.ask("delete_queue", queue="q_alice", user=ALICE)

    assert answer == {
        "queue": "q_alice",
        "deleted": True,
        "unbound": [TO_QUEUE],
        "unlisted": 0,
        "lost": 3,
        "dead_letters": None,
    }
    assert {name for name in stage.sqs.queues if name.startswith("q_")} == set()
    assert stage.kinds() == [("deleted", "binding"), ("deleted", "queue")]


def test_a_queue_stays_while_it_is_to_be_empty_first(stage):
    stage.sqs.held["q_alice"] = QueueSize(1)

    with pytest.raises(ResourceInUse, match="take them first, or delete it without if_empty"):
        stage.ask("delete_queue", queue="q_alice", if_empty=True)

    stage.sqs.held.clear()
    assert stage.ask("delete_queue", queue="q_alice", if_empty=True)["deleted"]


def test_a_dead_letter_queue_with_messages_is_kept(stage):
    stage.sqs.held["q_alice-dlq"] = QueueSize(2)

    answer = stage.ask("delete_queue", queue="q_alice")

    assert answer["dead_letters"] == {"sqs_name": "q_alice-dlq", "url": "https://sqs/1/q_alice-dlq", "waiting": 2}
    assert {name for name in stage.sqs.queues if name.startswith("q_")} == {"q_alice-dlq"}


@pytest.mark.parametrize(
    ("command", "given"),
    [("delete_exchange", {"exchange": "xpublic", "force": True}), ("delete_queue", {"queue": "q_alice"})],
)
def test_a_control_plane_that_is_killed_anywhere_can_be_asked_again(stage, command, given):
    bind(stage)

    stage.ask_until_done(command, **given)

    name = given.get("exchange") or given["queue"]
    assert name not in {*stage.exchanges.records, *stage.queues.records, *stage.sqs.queues, *stage.mappings.connected}
    assert not [bound for bound in stage.bindings.bound if name in (bound.exchange, bound.target.name)]


@pytest.mark.parametrize(
    ("command", "given"), [("delete_exchange", {"exchange": "xpublic"}), ("delete_queue", {"queue": "q_alice"})]
)
def test_a_concurrently_changed_resource_is_not_deleted(stage, command, given):
    port, change = (stage.exchanges, "bind") if "exchange" in given else (stage.queues, "declare_queue")
    changing = TO_QUEUE if change == "bind" else given
    stage.meanwhile(port, "save", lambda: stage.ask(change, **changing))

    with pytest.raises(ChangedMeanwhile):
        stage.ask(command, **given)

    assert {"xpublic", "q_alice"} <= {*stage.exchanges.records, *stage.queues.records}
    assert {"xpublic", "q_alice"} <= stage.sqs.queues.keys()


def test_an_alternate_is_removed_from_a_changing_exchange_by_repeating_the_command(stage):
    stage.ask("declare_exchange", exchange="xs_alice", alternate="xpublic")
    change = lambda: stage.meanwhile(stage.exchanges, "save", lambda: stage.exchanges.bump("xs_alice"))  # noqa: E731
    stage.meanwhile(stage.mappings, "disconnect", change)

    with pytest.raises(ChangedMeanwhile, match="exchange 'xs_alice'"):
        stage.ask("delete_exchange", exchange="xpublic", force=True)

    assert stage.ask("delete_exchange", exchange="xpublic", force=True)["deleted"]


def test_an_alternate_is_removed_although_its_exchange_is_bound_or_deleted_all_the_time(stage):
    stage.ask("declare_exchange", exchange="xs_alice", alternate="xpublic")
    stage.ask("declare_exchange", exchange="xs_bob", alternate="xpublic")
    gone = lambda: (stage.exchanges.bump("xs_bob"), stage.exchanges.records.pop("xs_alice"))  # noqa: E731
    stage.meanwhile(stage.exchanges, "every", lambda: stage.meanwhile(stage.exchanges, "find", gone))

    assert stage.ask("delete_exchange", exchange="xpublic", force=True)["deleted"]

    assert stage.exchanges.records["xs_bob"].alternate is None


def test_a_record_goes_only_as_it_was_read_last(stage):
    stage.meanwhile(stage.exchanges, "forget", lambda: stage.exchanges.bump("xpublic"))

    with pytest.raises(ChangedMeanwhile):
        stage.ask("delete_exchange", exchange="xpublic")

    assert stage.ask("delete_exchange", exchange="xpublic")["deleted"]


def test_two_concurrent_deletions_both_succeed(stage):
    stage.meanwhile(stage.sqs, "delete", lambda: stage.ask("delete_queue", queue="q_alice"))

    assert stage.ask("delete_queue", queue="q_alice")["deleted"]


def unbind_user(stage, name, *, caller=None, before=(Role.SUBSCRIBER, Ownership.STRICT)):
    return stage.service.answer(caller, UnbindUser(name, *before))


def test_nothing_more_reaches_the_queues_and_exchanges_of_a_removed_user(stage):
    bind(stage)
    stage.ask("bind", exchange="xpublic", destination="xs_alice", pattern="b")
    stage.ask("declare_queue", queue="q_alice2")
    stage.ask("bind", exchange="xpublic", queue="q_alice2", pattern="#")
    stage.events.clear()

    stage.users.remove(ALICE)
    answer = unbind_user(stage, "alice")

    to_exchange = {"exchange": "xpublic", "destination": "xs_alice", "pattern": "b"}
    assert answer == {
        "user": "alice",
        "unbound": [TO_QUEUE, to_exchange],
        "queues": ["q_alice"],
        "exchanges": ["xs_alice"],
        "unlisted": 0,
    }
    assert stage.kinds() == [("deleted", "binding")] * 2
    assert stage.ask("bindings") == [{**TO_QUEUE, "queue": "q_alice2", "pattern": "#"}, FROM_OTHER]
    assert unbind_user(stage, "alice")["unbound"] == []


def test_a_killed_removal_has_recorded_most_bindings_that_it_removed(stage):
    for number in range(150):
        stage.ask("bind", exchange="xpublic", queue="q_alice", pattern=f"a.{number}")
    stage.events.clear()
    stage.users.remove(ALICE)
    unbind, removed = stage.bindings.unbind, []

    def killed(binding):
        if len(removed) == 120:
            raise KeyboardInterrupt
        removed.append(binding)
        return unbind(binding)

    stage.bindings.unbind = killed
    with pytest.raises(KeyboardInterrupt):
        unbind_user(stage, "alice")

    assert stage.kinds() == [("deleted", "binding")] * 2 * REMOVED_AT_ONCE


@pytest.mark.parametrize(
    "command",
    [lambda stage: stage.ask("delete_queue", queue="q_alice"), lambda stage: unbind_user(stage, "alice")],
    ids=["delete_queue", "unbind_user"],
)
def test_a_command_that_has_no_time_for_all_bindings_tells_how_many_are_left(stage, command):
    for number in range(3 * REMOVED_AT_ONCE):
        stage.ask("bind", exchange="xpublic", queue="q_alice", pattern=f"a.{number}")
    stage.users.remove(ALICE)
    unbind_all = stage.bindings.unbind_all

    def slow(bindings):
        stage.time.pass_by(UNBINDING)
        return unbind_all(bindings)

    stage.bindings.unbind_all = slow
    with pytest.raises(BindingsLeft) as left:
        command(stage)

    assert str(left.value) == f"{REMOVED_AT_ONCE} of {3 * REMOVED_AT_ONCE} bindings are left: send the command again"
    assert len(stage.bindings.bound) == REMOVED_AT_ONCE
    assert len(command(stage)["unbound"]) == REMOVED_AT_ONCE


def test_a_reply_lists_some_of_very_many_bindings_and_counts_the_others(stage):
    for number in range(1_000):
        stage.ask("bind", exchange="xpublic", queue="q_alice", pattern="\x01" * 250 + str(number))
    stage.users.remove(ALICE)

    answers = [unbind_user(stage, "alice"), unbind_user(stage, "alice")]

    assert [len(one["unbound"]) + one["unlisted"] for one in answers] == [1_000, 0]
    assert answers[0]["unlisted"] > 0
    assert MAXIMUM_BYTES // 2 < len(json_text(answers[0])) < MAXIMUM_BYTES


def test_a_removal_that_fails_on_the_way_has_recorded_what_it_removed(stage):
    bind(stage)
    removed = []

    def busy(bindings):
        stage.bindings.unbind(bindings[0])
        removed.append(bindings[0])
        yield removed
        raise Contended("busy")

    stage.bindings.unbind_all = busy
    with pytest.raises(Contended):
        stage.ask("delete_exchange", exchange="xpublic", force=True)

    assert stage.kinds() == [("deleted", "binding")]


def test_a_deleted_exchange_that_is_bound_to_itself_is_unbound_once(stage):
    itself = Binding("xpublic", stage.exchanges.records["xpublic"].resource, Pattern.parse("#"))  # of an old version
    stage.bindings.bind(itself)
    stage.bindings.unbind_all = lambda bindings: list(map(stage.bindings.bound.pop, bindings)) and [bindings]

    answer = stage.ask("delete_exchange", exchange="xpublic", force=True)

    assert answer["unbound"] == [{"exchange": "xpublic", "destination": "xpublic", "pattern": "#"}]


def test_another_role_ends_the_bindings_from_exchanges_that_it_may_not_read(stage):
    stage.ask("declare_exchange", exchange="xs_bob")
    for exchange in ("xs_bob", "xpublic", "xs_alice"):
        stage.ask("bind", exchange=exchange, queue="q_alice", pattern="#")

    assert unbind_user(stage, "alice")["unbound"] == []  # bound by administrators, with the same rights as before
    answer = unbind_user(stage, "alice", before=(Role.FEEDER, Ownership.STRICT))

    assert answer["unbound"] == [{"exchange": "xs_bob", "queue": "q_alice", "pattern": "#"}]


def test_only_administrators_remove_the_bindings_of_a_user(stage):
    with pytest.raises(NotPermitted, match="only administrators"):
        unbind_user(stage, "bob", caller=ALICE)
