"""The declaration of exchanges and queues: created resources, their order, and repeated declarations."""

from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.errors import EffectRefused
from signalbox.exchange.control.declaration import BeingDeleted, NameNotAllowed
from signalbox.exchange.control.errors import NotFound
from signalbox.exchange.model.control_ports import CONNECTED_FOR, ChangedMeanwhile
from signalbox.exchange.model.ports import QueueSpec
from signalbox.exchange.model.records import ResourceKind, ResourceRef
from tests.fakes.clock import START
from tests.unit.exchange.control.stage import ALICE, ExchangeStage


@pytest.fixture
def stage():
    return ExchangeStage()


def test_declaring_an_exchange_again_returns_it_unchanged(stage):
    answer = stage.ask("declare_exchange", user=ALICE, exchange="xs_alice_logs.fifo")

    assert answer == {
        "exchange": "xs_alice_logs.fifo",
        "ordered": True,
        "alternate": None,
        "created_by": "alice",
        "created_at": "2026-11-21T12:00:00+00:00",
        "live": None,
        "sqs_name": "xs_alice_logs.fifo",
        "url": "https://sqs/1/xs_alice_logs.fifo",
        "connected": True,
    }


def test_an_exchange_has_a_queue_that_is_connected_to_the_router(stage):
    stage.ask("declare_exchange", exchange="xpublic")

    assert stage.sqs.queues["xpublic"] == QueueSpec(
        "xpublic", ResourceRef(ResourceKind.EXCHANGE, "xpublic"), timedelta(days=4), timedelta(seconds=90)
    )
    assert "xpublic-dlq" in stage.sqs.queues
    assert stage.mappings.connected == {"xpublic"}
    assert stage.mappings.retries == {"box-exchange-retries"}
    assert stage.kinds() == [("declared", "exchange")]


def test_only_a_new_exchange_connects_its_retry_queue(stage):
    stage.ask("declare_exchange", exchange="xs_a.fifo")
    stage.mappings.retries.clear()

    stage.ask("declare_exchange", exchange="xs_a.fifo")

    assert stage.mappings.retries == set()


def test_an_exchange_that_is_declared_again_within_a_minute_causes_no_call_of_sqs_and_lambda(stage):
    stage.ask("declare_exchange", exchange="xs_lost")
    once = stage.ask("declare_exchange", exchange="xpublic")
    stage.sqs.queues.clear()
    stage.mappings.connected.clear()

    assert stage.ask("declare_exchange", exchange="xpublic") == once
    assert stage.ask("declare_exchange", exchange="xpublic", alternate="xs_lost")["alternate"] == "xs_lost"
    assert (stage.sqs.queues, stage.mappings.connected) == ({}, set())

    stage.time.pass_by(CONNECTED_FOR)
    stage.ask("declare_exchange", exchange="xpublic")
    assert stage.mappings.connected == {"xpublic"}


def test_another_exchange_of_the_name_is_connected(stage):
    stage.ask("declare_exchange", exchange="xpublic")
    record = stage.exchanges.records["xpublic"]
    stage.exchanges.records["xpublic"] = replace(record, created_at=record.created_at + timedelta(seconds=1))
    stage.mappings.connected.clear()

    stage.ask("declare_exchange", exchange="xpublic")

    assert stage.mappings.connected == {"xpublic"}


def test_messages_wait_until_an_exchange_is_connected(stage):
    stage.mappings.is_slow = True

    assert stage.ask("declare_exchange", exchange="xpublic")["connected"] is False


@pytest.mark.parametrize(
    ("command", "given"),
    [("declare_exchange", {"exchange": "xpublic"}), ("declare_queue", {"queue": "q_a", "expires_seconds": 300})],
)
def test_declaring_twice_changes_nothing(stage, command, given):
    once = stage.ask(command, **given)

    assert stage.ask(command, **given) == once
    assert len(stage.events) == 1


@pytest.mark.parametrize(
    ("command", "given"), [("declare_exchange", {"exchange": "xpublic"}), ("declare_queue", {"queue": "q_a"})]
)
def test_a_control_plane_that_is_killed_anywhere_can_be_asked_again(stage, command, given):
    answer = stage.ask_until_done(command, **given)

    assert answer == ExchangeStage().ask(command, **given)
    assert stage.kinds() == [
        ("declared", ResourceKind.EXCHANGE if command == "declare_exchange" else ResourceKind.QUEUE)
    ]


def test_an_alternate_stays_until_it_is_taken_away(stage):
    stage.ask("declare_exchange", exchange="xs_lost")

    assert stage.ask("declare_exchange", exchange="xpublic", alternate="xs_lost")["alternate"] == "xs_lost"
    assert stage.ask("declare_exchange", exchange="xpublic")["alternate"] == "xs_lost"
    assert stage.ask("declare_exchange", exchange="xpublic", alternate="")["alternate"] is None
    assert stage.exchanges.records["xpublic"].version == 2
    assert stage.kinds() == [("declared", "exchange")] * 3


def test_an_alternate_has_to_be_there(stage):
    with pytest.raises(NotFound, match="exchange 'xs_lost' does not exist: declare it before it becomes an alternate"):
        stage.ask("declare_exchange", exchange="xpublic", alternate="xs_lost")


def test_declaring_a_queue_again_returns_it_unchanged(stage):
    answer = stage.ask("declare_queue", user=ALICE, queue="q_alice", message_ttl_seconds=90, prefetch=10)

    assert answer == {
        "queue": "q_alice",
        "ordered": False,
        "owner": "alice",
        "created_at": "2026-11-21T12:00:00+00:00",
        "consumed_at": None,
        "expires_seconds": None,
        "message_ttl_seconds": 90,
        "prefetch": 10,
        "maximum_receives": 5,
        "group_by": "publisher",
        "sqs_name": "q_alice",
        "url": "https://sqs/1/q_alice",
    }
    assert stage.kinds() == [("declared", "queue")]


def test_a_name_that_sqs_does_not_take_is_mapped(stage):
    answer = stage.ask("declare_queue", queue="q_alice.subscribe.weather")

    assert answer["sqs_name"].startswith("q_alice_subscribe_weather-")
    assert answer["sqs_name"] in stage.sqs.queues


@pytest.mark.parametrize(
    ("given", "retention"),
    [
        ({}, timedelta(days=14)),
        ({"message_ttl_seconds": 1}, timedelta(seconds=60)),
        ({"message_ttl_seconds": 3600}, timedelta(hours=1)),
    ],
)
def test_sqs_keeps_messages_as_long_as_they_live_but_a_minute_at_least(stage, given, retention):
    stage.ask("declare_queue", queue="q_a", maximum_receives=9, **given)

    assert stage.sqs.queues["q_a"] == QueueSpec(
        "q_a", ResourceRef(ResourceKind.QUEUE, "q_a"), retention, timedelta(minutes=1), maximum_receives=9
    )


def test_settings_that_are_left_out_stay(stage):
    stage.ask("declare_queue", queue="q_a", expires_seconds=300)

    answer = stage.ask("declare_queue", queue="q_a", prefetch=1)

    assert (answer["expires_seconds"], answer["prefetch"]) == (300, 1)
    assert stage.kinds() == [("declared", "queue")] * 2


@pytest.mark.parametrize(("command", "field"), [("declare_queue", "queue"), ("declare_exchange", "exchange")])
def test_only_a_queue_of_what_is_on_record_is_the_stages_without_a_look(stage, command, field):
    name = {"queue": "q_a", "exchange": "xs_a"}[field]

    stage.ask(command, **{field: name})
    assert not stage.sqs.queues[name].is_on_record

    stage.time.pass_by(CONNECTED_FOR)
    stage.ask(command, **{field: name})
    assert stage.sqs.queues[name].is_on_record


def test_declaring_again_is_a_sign_of_life(stage):
    stage.ask("declare_queue", queue="q_a")
    stage.time.pass_by(timedelta(hours=1))

    stage.ask("declare_queue", queue="q_a")

    queue = stage.queues.records["q_a"]
    assert (queue.created_at, queue.declared_at) == (START, START + timedelta(hours=1))


@pytest.mark.parametrize(
    ("command", "given"),
    [("declare_exchange", {"exchange": "xs_alice_a-dlq"}), ("declare_queue", {"queue": "q_alice_a-dlq"})],
)
def test_nothing_has_the_name_of_a_dead_letter_queue(stage, command, given):
    with pytest.raises(NameNotAllowed, match="contains '-dlq', as the names of dead-letter queues do"):
        stage.ask(command, user=ALICE, **given)


def test_a_failure_to_create_the_sqs_queue_leaves_no_record(stage):
    stage.sqs.refused["xpublic"] = "it is foreign"

    with pytest.raises(EffectRefused):
        stage.ask("declare_exchange", exchange="xpublic")

    assert stage.exchanges.records == {}


@pytest.mark.parametrize(
    ("declare", "delete", "name"),
    [("declare_exchange", "delete_exchange", "exchange"), ("declare_queue", "delete_queue", "queue")],
)
def test_nothing_is_declared_while_it_is_deleted(stage, declare, delete, name):
    given = {name: "xpublic" if name == "exchange" else "q_a"}
    stage.ask(declare, **given)
    refusals = []

    def declare_again():
        with pytest.raises(BeingDeleted) as caught:
            stage.ask(declare, **given)
        refusals.append(str(caught.value))

    stage.meanwhile(stage.sqs, "delete", declare_again)

    assert stage.ask(delete, **given)["deleted"]
    (refusal,) = refusals
    assert refusal.endswith("is being deleted: retry later, or delete it again if this lasts")


@pytest.mark.parametrize(
    ("command", "given"), [("declare_exchange", {"exchange": "xpublic"}), ("declare_queue", {"queue": "q_a"})]
)
def test_a_concurrent_declaration_is_refused_as_retryable(stage, command, given):
    stage.meanwhile(stage.sqs, "make", lambda: stage.ask(command, **given))

    with pytest.raises(ChangedMeanwhile, match="was changed by another command at the same time: retry"):
        stage.ask(command, **given)


def test_a_concurrent_change_of_an_exchange_is_refused_as_retryable(stage):
    stage.ask("declare_exchange", exchange="xs_lost")
    stage.ask("declare_exchange", exchange="xpublic")
    stage.meanwhile(stage.exchanges, "save", lambda: stage.exchanges.bump("xpublic"))

    with pytest.raises(ChangedMeanwhile):
        stage.ask("declare_exchange", exchange="xpublic", alternate="xs_lost")


@pytest.mark.parametrize(("change", "error"), [("forget", ChangedMeanwhile), ("leave", BeingDeleted)])
def test_an_exchange_that_is_deleted_before_its_change_is_refused(stage, change, error):
    stage.ask("declare_exchange", exchange="xs_lost")
    stage.ask("declare_exchange", exchange="xpublic")
    stage.time.pass_by(CONNECTED_FOR)
    found = stage.exchanges.find("xpublic")
    leaving = {"xpublic": replace(found, is_deleting=True)} if change == "leave" else {}
    others = {"xs_lost": stage.exchanges.find("xs_lost")}
    stage.meanwhile(stage.sqs, "make", lambda: setattr(stage.exchanges, "records", others | leaving))

    with pytest.raises(error):
        stage.ask("declare_exchange", exchange="xpublic", alternate="xs_lost")


def test_bindings_that_come_all_the_time_prevent_no_change_of_an_exchange(stage):
    stage.ask("declare_exchange", exchange="xs_lost")
    stage.ask("declare_exchange", exchange="xpublic")
    stage.time.pass_by(CONNECTED_FOR)
    stage.meanwhile(stage.sqs, "make", lambda: stage.exchanges.bump("xpublic"))

    assert stage.ask("declare_exchange", exchange="xpublic", alternate="xs_lost")["alternate"] == "xs_lost"


def test_an_exchange_that_is_deleted_before_it_is_connected_does_not_stay_connected(stage):
    stage.ask("declare_exchange", exchange="xpublic")
    stage.time.pass_by(CONNECTED_FOR)

    def delete_and_leave_the_queue():
        stage.exchanges.records.clear()

    stage.meanwhile(stage.mappings, "connect", delete_and_leave_the_queue)

    with pytest.raises(BeingDeleted, match="was deleted while it was declared: retry"):
        stage.ask("declare_exchange", exchange="xpublic")

    assert stage.mappings.connected == set()
