"""Quotas: how many queues, exchanges and bindings a user may have, and who has none."""

from dataclasses import replace

import pytest

from signalbox.exchange.control.quotas import MAXIMUM_BINDINGS, QuotaExceeded
from signalbox.exchange.model.records import QueueSize
from signalbox.sarracenia.rights.names import UserName
from tests.unit.exchange.control.stage import ALICE, BOB, FEED, ExchangeStage


@pytest.fixture
def stage():
    stage = ExchangeStage()
    stage.ports = replace(stage.ports, config=replace(stage.ports.config, user_quota=10))
    return stage


@pytest.mark.parametrize(
    ("command", "field", "name", "quota"),
    [("declare_queue", "queue", "q_alice", 10), ("declare_exchange", "exchange", "xs_alice", 2)],
)
def test_a_user_declares_up_to_the_quota_and_again_after_a_deletion(stage, command, field, name, quota):
    for number in (1, *range(1, quota + 1)):
        stage.ask(command, user=ALICE, **{field: f"{name}_{number}"})

    with pytest.raises(QuotaExceeded) as refused:
        stage.ask(command, user=ALICE, **{field: f"{name}_more"})
    assert str(refused.value) == (
        f"user 'alice' has {quota} {field}s, and exchange_user_quota allows no more: delete one, or have an "
        f"administrator declare {field} '{name}_more' or raise the setting"
    )
    assert f"{name}_more" not in stage.sqs.queues
    stage.ask(command, **{field: f"{name}_more"})
    stage.ask(command.replace("declare", "delete"), user=ALICE, **{field: f"{name}_1"})
    stage.ask(command, user=ALICE, **{field: f"{name}_next"})


@pytest.mark.parametrize(
    ("command", "field", "name", "quota"),
    [("declare_queue", "queue", "q_alice", 10), ("declare_exchange", "exchange", "xs_alice", 2)],
)
def test_a_deleted_one_counts_while_its_dead_letters_are_left(stage, command, field, name, quota):
    """Before, each deletion with a dead letter left a queue of SQS, without any bound."""
    for number in range(quota):
        stage.ask(command, user=ALICE, **{field: f"{name}_{number}"})
        stage.sqs.held[f"{name}_{number}-dlq"] = QueueSize(1)
        stage.ask(command.replace("declare", "delete"), user=ALICE, **{field: f"{name}_{number}"})

    with pytest.raises(QuotaExceeded) as refused:
        stage.ask(command, user=ALICE, **{field: f"{name}_more"})
    assert str(refused.value) == (
        f"user 'alice' has 0 {field}s and {quota} deleted ones with dead letters, and exchange_user_quota allows no "
        "more: take their dead letters, which ends them within a day, or have an administrator declare "
        f"{field} '{name}_more' or raise the setting"
    )
    assert len(stage.sqs.queues) == quota
    stage.ask(command, user=ALICE, **{field: f"{name}_0"})  # its dead-letter queue is in use again
    with pytest.raises(QuotaExceeded, match=f"1 {field}s and {quota - 1} deleted ones .* delete one"):
        stage.ask(command, user=ALICE, **{field: f"{name}_more"})


@pytest.mark.parametrize(
    ("user", "name", "others"), [("alice", "q_alice", {"q_alice2"}), ("al-ice", "q_al/ice", {"q_alice2"})]
)
def test_a_refused_declaration_reads_no_queue_of_users_with_other_names(stage, user, name, others):
    """Characters that SQS does not allow count as `-`: a user with one in the name declares several such names."""
    stage.users.put(replace(stage.users.find(ALICE), name=UserName(user)))
    for one in ("q_bob", "q_alice2"):
        stage.ask("declare_queue", queue=one)
    every, found = stage.queues.every, set()

    def noted(**given):
        records = every(**given)
        found.update(one.name for one in records)
        return records

    stage.queues.every = noted
    for number in range(10):
        stage.ask("declare_queue", user=UserName(user), queue=f"{name}_{number}")

    with pytest.raises(QuotaExceeded):
        stage.ask("declare_queue", user=UserName(user), queue=f"{name}_more")

    assert found == {f"{name}_{number}" for number in range(10)} | others


def test_those_who_have_all_rights_have_no_quota(stage):
    for number in range(11):
        stage.ask("declare_queue", user=FEED, queue=f"q_feed_{number}")
        stage.ask("declare_exchange", exchange=f"xs_alice_{number}")


def test_a_target_has_a_maximum_of_bindings_by_users(stage):
    stage.ask("declare_exchange", exchange="xpublic")
    stage.ask("declare_queue", user=BOB, queue="q_bob")

    def bind(number, user=BOB):
        return stage.ask("bind", user=user, exchange="xpublic", queue="q_bob", pattern=f"a.{number}")

    for number in range(MAXIMUM_BINDINGS):
        bind(number)

    with pytest.raises(QuotaExceeded) as refused:
        bind(MAXIMUM_BINDINGS)
    assert str(refused.value) == (
        f"queue 'q_bob' has {MAXIMUM_BINDINGS} bindings, and users may add no more than {MAXIMUM_BINDINGS} with "
        "2,000 words together: remove one, use patterns with '*' or '#', or have an administrator add it"
    )
    assert bind(0)["was_bound"]
    assert bind(MAXIMUM_BINDINGS, user=None)["bound"]


def test_the_patterns_of_a_target_have_a_maximum_of_words(stage):
    stage.ask("declare_exchange", exchange="xpublic")
    stage.ask("declare_queue", user=BOB, queue="q_bob")

    def bind(pattern, user=BOB):
        return stage.ask("bind", user=user, exchange="xpublic", queue="q_bob", pattern=pattern)

    longest = ".".join("a" * 100)
    for number in range(20):
        bind(f"{number}.{longest[:-2]}")

    with pytest.raises(QuotaExceeded, match="has 20 bindings, and users may add no more than 200 with 2,000 words"):
        bind("a")
    assert bind("a", user=None)["bound"]
