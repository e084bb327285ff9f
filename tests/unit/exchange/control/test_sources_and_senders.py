"""The proof of callers, and the sources of the exchange's queues."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.control.delivery import UnprovenSender
from signalbox.exchange.control.caller import prove_sender
from signalbox.exchange.control.scheduled_tasks import queue_sources
from signalbox.exchange.model.records import User
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.fakes.exchange import MemoryUsers
from tests.unit.exchange.control.stage import ExchangeStage

ALICE, ROUTER = UserName("alice"), "AROAROUTE"
SENT = datetime.now(UTC)


def users() -> MemoryUsers:
    return MemoryUsers({ALICE: User(ALICE, Role.SOURCE, Ownership.STRICT, datetime.now(UTC), "AIDA1")})


def test_a_user_and_an_administrator_are_proven():
    prove_sender(users(), ALICE, sender_id="AIDA1", router_id=ROUTER, sent_at=SENT)
    prove_sender(users(), None, sender_id="AROA9:admin", router_id=ROUTER, sent_at=SENT)


def test_an_administrator_is_noted_once_by_the_id_that_messages_have():
    stored = users()

    for sender in ("AROA9:admin", "AROA9:other", "123456789012:federated"):
        prove_sender(stored, None, sender_id=sender, router_id=ROUTER, sent_at=SENT)

    assert stored.administrators == ["AROA9"]


@pytest.mark.parametrize(
    ("name", "sender"), [(ALICE, "AIDA2"), (ALICE, "AROA9:admin"), (UserName("bob"), "AIDA1"), (None, "AIDA1")]
)
def test_another_sender_than_the_owner_of_the_queue_is_refused(name, sender):
    with pytest.raises(UnprovenSender):
        prove_sender(users(), name, sender_id=sender, router_id=ROUTER, sent_at=SENT)


@pytest.mark.parametrize("sent_at", [SENT - timedelta(minutes=15), None])
def test_a_command_that_a_deleted_key_may_have_sent_is_refused(sent_at):
    """SQS delivers a message with `DelaySeconds` up to 15 minutes later."""
    stored = users()
    stored.users[ALICE] = replace(stored.users[ALICE], commands_from=SENT)

    prove_sender(stored, ALICE, sender_id="AIDA1", router_id=ROUTER, sent_at=SENT)
    with pytest.raises(UnprovenSender, match="when the keys of user 'alice' were rotated"):
        prove_sender(stored, ALICE, sender_id="AIDA1", router_id=ROUTER, sent_at=sent_at)


@pytest.mark.parametrize("noted", [[], [ROUTER]])
def test_the_router_is_never_an_administrator(noted):
    stored = users()
    stored.administrators = list(noted)

    with pytest.raises(UnprovenSender, match="router"):
        prove_sender(stored, None, sender_id=f"{ROUTER}:route", router_id=ROUTER, sent_at=SENT)

    assert stored.administrators == noted


def test_each_queue_has_its_sources():
    stage = ExchangeStage()
    stage.ask("declare_exchange", exchange="xs_alice")
    stage.ask("declare_queue", queue="q_alice")

    found = queue_sources(stage.ports)

    assert found["xs_alice"] == found["q_alice"] == ()
    assert (found["xs_alice-dlq"], found["q_alice-dlq"]) == (("xs_alice",), ("q_alice",))
    for user in stage.ports.store.users.every():
        assert found[f"box-exchange-control-{user.name}"] == found[f"box-exchange-reply-{user.name}"] == ()
